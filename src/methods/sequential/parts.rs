//! Small parts of a matching: as many released rows as rows of a world, both from the same corner of the table.

use rand::Rng;
use rayon::prelude::*;

use super::measure::Measure;
use crate::microdata::{Microdata, shuffle};

/// Released rows of a class, and as many people, by numbers from 0: copies of what they have, side by side. They are looked at many times, and the tables that
/// they come from do not fit into the cache.
pub(super) struct Near {
    d: usize,
    boxes: Vec<[u32; 2]>,
    codes: Vec<u32>,
}

/// Numbers of rows and people of a class in the order of parts.
pub(super) struct Parts {
    rows: Vec<u32>,
    people: Vec<u32>,
    lengths: Vec<usize>,
}

/// How classes are cut.
pub(super) struct Cutting<'a> {
    pub microdata: &'a Microdata,
    pub measure: &'a Measure,
    /// Most rows of a part.
    pub most: usize,
}

/// Sides of more rows are cut on several cores.
const LARGE: usize = 1 << 14;

impl Near {
    /// Copies. `boxes` are those of all released rows.
    pub(super) fn new(microdata: &Microdata, boxes: &[[u32; 2]], rows: &[u32], people: &[u32]) -> Self {
        let d = microdata.quasi.len();
        let mut near = Self { d, boxes: vec![[0; 2]; rows.len() * d], codes: vec![0; people.len() * d] };
        near.boxes.par_chunks_exact_mut(d).zip(rows).with_min_len(1024).for_each(|(own, &row)| {
            own.iter_mut().zip(&boxes[row as usize * d..][..d]).for_each(|(own, interval)| *own = *interval);
        });
        near.codes.par_chunks_exact_mut(d).zip(people).with_min_len(1024).for_each(|(own, &person)| {
            own.iter_mut().zip(microdata.quasi_of(person)).for_each(|(own, code)| *own = *code);
        });
        near
    }

    /// Boxes of some rows, row after row.
    pub(super) fn boxes_of(&self, rows: &[u32]) -> Vec<[u32; 2]> {
        rows.iter().flat_map(|&row| &self.boxes[row as usize * self.d..][..self.d]).copied().collect()
    }

    /// Codes of some people, person after person.
    pub(super) fn codes_of(&self, people: &[u32]) -> Vec<u32> {
        people.iter().flat_map(|&person| &self.codes[person as usize * self.d..][..self.d]).copied().collect()
    }
}

impl Parts {
    /// Rows and people of each part.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let mut start = 0;
        self.lengths.iter().map(move |&length| {
            let range = start..start + length;
            start += length;
            (&self.rows[range.clone()], &self.people[range])
        })
    }
}

impl Cutting<'_> {
    /// Cuts both sides alike, at the middle of the attribute that spreads most, until parts are small enough. Where there is an end of a
    /// value near the middle, values stay together. Both sides have nearly the same values, so both sides of a cut have, too. Rows that
    /// tie are in random order. `rows` are those of the class.
    pub(super) fn cut(&self, near: &Near, rows: &[u32], rng: &mut impl Rng) -> Parts {
        let people = in_random_order(rows.len(), rng);
        self.in_order(near, rows, people, rng)
    }

    /// Cuts rows alone, for parts in which every row keeps the person that it has: the one with its number.
    pub(super) fn cut_rows(&self, near: &Near, rows: &[u32], rng: &mut impl Rng) -> Parts {
        let parts = self.in_order(near, rows, Vec::new(), rng);
        Parts { people: parts.rows.clone(), ..parts }
    }

    fn in_order(&self, near: &Near, of_class: &[u32], mut people: Vec<u32>, rng: &mut impl Rng) -> Parts {
        let mut rows = in_random_order(of_class.len(), rng);
        if rows.len() <= self.most {
            return Parts { lengths: vec![rows.len()], rows, people };
        }
        let d = near.d;
        let centers = near.boxes.iter().map(|interval| interval.iter().sum());
        let mut centers: Vec<u32> = centers.collect();
        // Where there is a hierarchy, nodes jump, and their middles say little: there, that of the person whom the row began with, who has the
        // row's number.
        for (j, _) in self.microdata.quasi.iter().enumerate().filter(|(_, attribute)| attribute.hierarchy.is_some()) {
            let own = of_class.iter().map(|&row| 2 * self.microdata.quasi_of(row)[j]);
            centers.iter_mut().skip(j).step_by(d).zip(own).for_each(|(center, own)| *center = own);
        }
        let codes: Vec<u32> = match people.is_empty() {
            true => Vec::new(),
            false => near.codes.iter().map(|code| 2 * code).collect(),
        };
        let sides = [centers.as_slice(), codes.as_slice()].map(|places| Side { d, places });
        let lengths = self.halve(&sides, [&mut rows, &mut people]);
        Parts { rows, people, lengths }
    }

    /// Puts some of them in the order of parts, and returns the lengths of these. There may be no people.
    fn halve(&self, sides: &[Side<'_>; 2], [rows, people]: [&mut [u32]; 2]) -> Vec<usize> {
        let n = rows.len();
        if n <= self.most {
            return vec![n];
        }
        let mut middle = self.middle(n);
        if let Some(j) = self.widest(sides, [rows, people]) {
            let [of_rows, of_people] = sides;
            if people.is_empty() {
                middle = of_rows.near_middle(rows, j, middle);
            } else {
                middle = of_people.near_middle(people, j, middle);
                of_people.lowest_first(people, j, middle);
            }
            of_rows.lowest_first(rows, j, middle);
        }
        let (rows, more_rows) = rows.split_at_mut(middle);
        let (people, more_people) = people.split_at_mut(middle.min(people.len()));
        let (left, right) = ([rows, people], [more_rows, more_people]);
        let (mut lengths, more) = match n > LARGE {
            true => rayon::join(|| self.halve(sides, left), || self.halve(sides, right)),
            false => (self.halve(sides, left), self.halve(sides, right)),
        };
        lengths.extend(more);
        lengths
    }

    /// As many rows as whole parts need.
    fn middle(&self, n: usize) -> usize {
        let pieces = n.div_ceil(self.most);
        n * (pieces / 2) / pieces
    }

    /// The quasi-identifier that spreads most over both sides; `None` if all are alike.
    fn widest(&self, sides: &[Side<'_>; 2], numbers: [&[u32]; 2]) -> Option<usize> {
        let d = self.microdata.quasi.len();
        let mut ends = vec![(u32::MAX, 0_u32); d];
        for (side, numbers) in sides.iter().zip(numbers) {
            for &number in numbers {
                for (end, &place) in ends.iter_mut().zip(side.of(number)) {
                    *end = (end.0.min(place), end.1.max(place));
                }
            }
        }
        let half = |place: u32| 0.5 * place as f32;
        let widths = ends.iter().enumerate().map(|(j, &(lo, hi))| (self.measure.width(j, half(lo), half(hi)), j));
        widths.filter(|(width, _)| *width > 0.0).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, j)| j)
    }
}

fn in_random_order(rows: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..rows as u32).collect();
    shuffle(&mut numbers, rng);
    numbers
}

/// Where rows or people lie: twice the middles of `d` quasi-identifiers, one after the other.
struct Side<'a> {
    d: usize,
    places: &'a [u32],
}

impl Side<'_> {
    fn of(&self, number: u32) -> &[u32] {
        &self.places[number as usize * self.d..][..self.d]
    }

    /// What lies at a rank in the order of quasi-identifier `j`, and how many lie below.
    fn at(&self, numbers: &[u32], j: usize, rank: usize) -> (u32, usize) {
        let mut places: Vec<u32> = numbers.iter().map(|&number| self.of(number)[j]).collect();
        let (below, &mut at, _) = places.select_nth_unstable(rank);
        (at, below.iter().filter(|&&place| place < at).count())
    }

    /// The rank nearest to the middle, of those not far from it, at which a value ends; the middle if there is none.
    fn near_middle(&self, numbers: &[u32], j: usize, middle: usize) -> usize {
        let n = numbers.len();
        if middle == 0 || middle >= n {
            return middle;
        }
        let (at, below) = self.at(numbers, j, middle);
        let upto = below + numbers.iter().filter(|&&number| self.of(number)[j] == at).count();
        let far = n / 4;
        let (before, after) = (middle - below, upto - middle);
        match (below > 0 && before < far, upto < n && after < far) {
            (true, true) if after < before => upto,
            (true, _) => below,
            (false, true) => upto,
            (false, false) => middle,
        }
    }

    /// Moves the `cut` that lie lowest to the front; both sides keep their order.
    fn lowest_first(&self, numbers: &mut [u32], j: usize, cut: usize) {
        if cut == 0 || cut >= numbers.len() {
            return;
        }
        let (last, below) = self.at(numbers, j, cut - 1);
        let mut equal = cut - below;
        let mut ordered = vec![0; numbers.len()];
        let (mut left, mut right) = (0, cut);
        for &number in &*numbers {
            let place = self.of(number)[j];
            let is_last = (place == last) & (equal > 0);
            equal -= usize::from(is_last);
            let low = is_last | (place < last);
            ordered[if low { left } else { right }] = number;
            left += usize::from(low);
            right += usize::from(!low);
        }
        numbers.copy_from_slice(&ordered);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against sorting.
        #[test]
        fn sides_are_cut_as_if_they_were_sorted(places in prop::collection::vec(0_u32..12, 2..200), middle in 0.0..1.0) {
            let n = places.len();
            let middle = (n as f64 * middle) as usize;
            let side = Side { d: 1, places: &places };
            let mut numbers: Vec<u32> = (0..n as u32).rev().collect();
            let mut sorted = numbers.clone();
            sorted.sort_by_key(|&number| places[number as usize]);
            let ends = |place: usize| places[sorted[place - 1] as usize] != places[sorted[place] as usize];
            let near = (0..n / 4).flat_map(|off| [middle.saturating_sub(off), middle + off]);
            let expected = near.filter(|&place| place > 0 && place < n).find(|&place| ends(place)).unwrap_or(middle);
            let cut = side.near_middle(&numbers, 0, middle);
            prop_assert!(middle == 0 || cut == expected, "{cut} {expected}");
            side.lowest_first(&mut numbers, 0, cut);
            let [low, of_sorted] = [&numbers[..cut], &sorted[..cut]].map(|low| low.iter().collect::<std::collections::BTreeSet<_>>());
            prop_assert_eq!(low, of_sorted);
            let descends = |numbers: &[u32]| numbers.is_sorted_by(|a, b| a > b);
            prop_assert!(cut == 0 || (descends(&numbers[..cut]) && descends(&numbers[cut..])));
        }
    }
}
