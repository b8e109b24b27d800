//! Small parts of a matching: as many released rows as rows of a world, both from the same corner of the table.

use rand::Rng;

use super::measure::Measure;
use crate::microdata::{Microdata, copied_rows, shuffle};

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
        Self { d, boxes: copied_rows(boxes, d, rows), codes: microdata.quasi_codes.copied(people) }
    }

    /// Boxes of some rows, row after row.
    pub(super) fn boxes_of(&self, rows: &[u32]) -> Vec<[u32; 2]> {
        copied_rows(&self.boxes, self.d, rows)
    }

    /// Codes of some people, person after person.
    pub(super) fn codes_of(&self, people: &[u32]) -> Vec<u32> {
        copied_rows(&self.codes, self.d, people)
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

    fn in_order(&self, near: &Near, of_class: &[u32], people: Vec<u32>, rng: &mut impl Rng) -> Parts {
        let rows = in_random_order(of_class.len(), rng);
        if rows.len() <= self.most {
            return Parts { lengths: vec![rows.len()], rows, people };
        }
        let quasi = || self.microdata.quasi.iter().enumerate();
        // Where there is a hierarchy, nodes jump, and their middles say little: there, that of the person whom the row began with, who has the
        // row's number.
        let centers = quasi().map(|(j, attribute)| {
            let center = |&row: &u32| match attribute.hierarchy {
                Some(_) => 2 * self.microdata.quasi_at(of_class[row as usize], j),
                None => near.boxes[row as usize * near.d + j].iter().sum(),
            };
            rows.iter().map(center).collect()
        });
        let mut of_rows = Side { places: centers.collect(), numbers: Vec::new() };
        let codes = |j: usize| people.iter().map(|&person| 2 * near.codes[person as usize * near.d + j]).collect();
        let mut of_people = Side { places: quasi().map(|(j, _)| codes(j)).collect(), numbers: Vec::new() };
        (of_rows.numbers, of_people.numbers) = (rows, people);
        let lengths = self.halve(of_rows.all(), of_people.all());
        Parts { rows: of_rows.numbers, people: of_people.numbers, lengths }
    }

    /// Puts some of them in the order of parts, and returns the lengths of these. There may be no people.
    fn halve(&self, mut rows: Piece<'_>, mut people: Piece<'_>) -> Vec<usize> {
        let n = rows.numbers.len();
        if n <= self.most {
            return vec![n];
        }
        let mut middle = self.middle(n);
        if let Some((j, ends)) = self.widest(&rows, &people) {
            let of_rows = Ranks::new(rows.places[j], ends);
            if people.numbers.is_empty() {
                middle = of_rows.near_middle(middle);
            } else {
                let of_people = Ranks::new(people.places[j], ends);
                middle = of_people.near_middle(middle);
                people.lowest_first(j, middle, &of_people);
            }
            rows.lowest_first(j, middle, &of_rows);
        }
        let (rows, more_rows) = rows.split_at(middle);
        let (people, more_people) = people.split_at(middle);
        let (mut lengths, more) = match n > LARGE {
            true => rayon::join(|| self.halve(rows, people), || self.halve(more_rows, more_people)),
            false => (self.halve(rows, people), self.halve(more_rows, more_people)),
        };
        lengths.extend(more);
        lengths
    }

    /// As many rows as whole parts need.
    fn middle(&self, n: usize) -> usize {
        let pieces = n.div_ceil(self.most);
        n * (pieces / 2) / pieces
    }

    /// The quasi-identifier that spreads most over both sides, and from where to where; `None` if all are alike.
    fn widest(&self, rows: &Piece<'_>, people: &Piece<'_>) -> Option<(usize, [u32; 2])> {
        let half = |place: u32| 0.5 * place as f32;
        let widths = rows.places.iter().zip(&people.places).enumerate().map(|(j, (rows, people))| {
            // One after the other, for each is a loop over vectors.
            let all = [&**rows, &**people];
            let least = all.map(|places| places.iter().copied().fold(u32::MAX, u32::min));
            let greatest = all.map(|places| places.iter().copied().fold(0, u32::max));
            let ends = [least[0].min(least[1]), greatest[0].max(greatest[1])];
            (self.measure.width(j, half(ends[0]), half(ends[1])), j, ends)
        });
        let widest = widths.filter(|(width, ..)| *width > 0.0).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        widest.map(|(_, j, ends)| (j, ends))
    }
}

fn in_random_order(rows: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..rows as u32).collect();
    shuffle(&mut numbers, rng);
    numbers
}

/// Rows or people, by numbers, and where they lie: twice the middles, for each quasi-identifier, in the order of the numbers.
struct Side {
    numbers: Vec<u32>,
    places: Vec<Vec<u32>>,
}

/// Some of them, which lie side by side.
struct Piece<'a> {
    numbers: &'a mut [u32],
    places: Vec<&'a mut [u32]>,
}

impl Side {
    fn all(&mut self) -> Piece<'_> {
        Piece { numbers: &mut self.numbers, places: self.places.iter_mut().map(Vec::as_mut_slice).collect() }
    }
}

impl<'a> Piece<'a> {
    /// The first ones, and the others. There may be none at all.
    fn split_at(self, middle: usize) -> (Self, Self) {
        let middle = middle.min(self.numbers.len());
        let (numbers, more) = self.numbers.split_at_mut(middle);
        let (places, more_places) = self.places.into_iter().map(|places| places.split_at_mut(middle)).unzip();
        (Piece { numbers, places }, Piece { numbers: more, places: more_places })
    }

    /// Moves the `cut` that lie lowest by quasi-identifier `j` to the front; both sides keep their order.
    fn lowest_first(&mut self, j: usize, cut: usize, ranks: &Ranks) {
        if cut == 0 || cut >= self.numbers.len() {
            return;
        }
        let Rank { place: last, below, .. } = ranks.at(cut - 1);
        let mut equal = cut - below;
        let is_low = |&place: &u32| {
            let is_last = (place == last) & (equal > 0);
            equal -= usize::from(is_last);
            is_last | (place < last)
        };
        let low: Vec<bool> = self.places[j].iter().map(is_low).collect();
        let mut high = vec![0; low.len() - cut + 1];
        for numbers in self.places.iter_mut().chain([&mut self.numbers]) {
            // Every number is written to both sides, and counts on one: without a branch that would be guessed wrongly half of the time.
            let (mut left, mut right) = (0, 0);
            for (at, &low) in low.iter().enumerate() {
                let number = numbers[at];
                numbers[left] = number;
                high[right] = number;
                left += usize::from(low);
                right += usize::from(!low);
            }
            numbers[left..].copy_from_slice(&high[..right]);
        }
    }
}

/// Places in order, which are looked up by rank.
enum Ranks {
    /// From a place on, how many lie at it and below.
    Counted {
        first: u32,
        upto: Vec<u32>,
    },
    Sorted(Vec<u32>),
}

/// What lies at a rank, how many lie below, and how many up to there.
struct Rank {
    place: u32,
    below: usize,
    upto: usize,
}

impl Ranks {
    /// Of places between two ends, both included.
    fn new(places: &[u32], [first, last]: [u32; 2]) -> Self {
        let width = (last - first) as usize + 1;
        if width > 4 * places.len() {
            let mut sorted = places.to_vec();
            sorted.sort_unstable();
            return Self::Sorted(sorted);
        }
        let mut upto = vec![0; width];
        places.iter().for_each(|&place| upto[(place - first) as usize] += 1);
        let mut sum = 0;
        for count in &mut upto {
            sum += *count;
            *count = sum;
        }
        Self::Counted { first, upto }
    }

    fn len(&self) -> usize {
        match self {
            Self::Counted { upto, .. } => upto.last().map_or(0, |&all| all as usize),
            Self::Sorted(sorted) => sorted.len(),
        }
    }

    /// `rank` is below the number of places.
    fn at(&self, rank: usize) -> Rank {
        match self {
            Self::Counted { first, upto } => {
                let at = upto.partition_point(|&upto| upto as usize <= rank);
                let below = at.checked_sub(1).map_or(0, |before| upto[before] as usize);
                Rank { place: first + at as u32, below, upto: upto[at] as usize }
            }
            Self::Sorted(sorted) => {
                let place = sorted[rank];
                let below = sorted.partition_point(|&other| other < place);
                Rank { place, below, upto: sorted.partition_point(|&other| other <= place) }
            }
        }
    }

    /// The rank nearest to the middle, of those not far from it, at which a value ends; the middle if there is none.
    fn near_middle(&self, middle: usize) -> usize {
        let n = self.len();
        if middle == 0 || middle >= n {
            return middle;
        }
        let Rank { below, upto, .. } = self.at(middle);
        let far = n / 4;
        let (before, after) = (middle - below, upto - middle);
        match (below > 0 && before < far, upto < n && after < far) {
            (true, true) if after < before => upto,
            (true, _) => below,
            (false, true) => upto,
            (false, false) => middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against sorting; where places are few they are counted, otherwise sorted.
        #[test]
        fn sides_are_cut_as_if_they_were_sorted(
            places in prop::sample::select(vec![12_u32, 1 << 20])
                .prop_flat_map(|most| prop::collection::vec(0..most, 2..200)),
            middle in 0.0..1.0,
        ) {
            let n = places.len();
            let middle = (n as f64 * middle) as usize;
            let numbers: Vec<u32> = (0..n as u32).rev().collect();
            let other: Vec<u32> = places.iter().rev().map(|place| !place).collect();
            let mut side = Side { numbers, places: vec![other, places.iter().rev().copied().collect()] };
            let mut sorted = side.numbers.clone();
            sorted.sort_by_key(|&number| places[number as usize]);
            let ends = |place: usize| places[sorted[place - 1] as usize] != places[sorted[place] as usize];
            let near = (0..n / 4).flat_map(|off| [middle.saturating_sub(off), middle + off]);
            let expected = near.filter(|&place| place > 0 && place < n).find(|&place| ends(place)).unwrap_or(middle);
            let bounds = [*places.iter().min().unwrap(), *places.iter().max().unwrap()];
            let ranks = Ranks::new(&side.places[1], bounds);
            let cut = ranks.near_middle(middle);
            prop_assert!(middle == 0 || cut == expected, "{cut} {expected}");
            side.all().lowest_first(1, cut, &ranks);
            let [low, of_sorted] = [&side.numbers[..cut], &sorted[..cut]].map(|low| low.iter().collect::<std::collections::BTreeSet<_>>());
            prop_assert_eq!(low, of_sorted);
            let descends = |numbers: &[u32]| numbers.is_sorted_by(|a, b| a > b);
            prop_assert!(cut == 0 || (descends(&side.numbers[..cut]) && descends(&side.numbers[cut..])));
            // All of a row stay together.
            let place = |&number: &u32| places[number as usize];
            prop_assert!(side.numbers.iter().map(place).eq(side.places[1].iter().copied()));
            prop_assert!(side.places[1].iter().map(|place| !place).eq(side.places[0].iter().copied()));
        }
    }
}
