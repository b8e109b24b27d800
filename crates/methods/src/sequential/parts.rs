//! Small parts of a matching: as many released rows as rows of a world, both from the same corner of the table.

use rand::Rng;
use rand::seq::SliceRandom;

use super::measure::Measure;
use crate::microdata::Microdata;
use crate::release::Intervals;

/// Rows and people of a class in the order of parts.
pub(super) struct Parts {
    rows: Vec<u32>,
    people: Vec<u32>,
    lengths: Vec<usize>,
}

pub(super) struct Cutting<'a> {
    pub microdata: &'a Microdata,
    pub measure: &'a Measure,
    /// Most rows of a part.
    pub most: usize,
}

impl Parts {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let mut start = 0;
        self.lengths.iter().map(move |&length| {
            let range = start..start + length;
            start += length;
            (&self.rows[range.clone()], &self.people[range])
        })
    }
}

/// Rows or people of a class, with their places by each quasi-identifier.
///
/// They are numbered from 0. A place is twice the middle of an interval, or of a code.
struct Side {
    d: usize,
    places: Vec<u32>,
}

impl Side {
    fn on(&self, number: u32, j: usize) -> u32 {
        self.places[number as usize * self.d + j]
    }
}

struct Sides {
    rows: Side,
    people: Side,
}

impl Cutting<'_> {
    /// Cuts rows and people of a class alike, until parts are small enough.
    ///
    /// A cut is at the middle of the attribute that spreads most. If a value ends near the middle, the cut is there, and equal values stay together.
    /// Rows and people have nearly the same values, so both sides of a cut have, too. Rows that tie are in random order.
    pub(super) fn cut(&self, boxes: &Intervals, rows: &[u32], people: &[u32], rng: &mut impl Rng) -> Parts {
        let numbers = in_random_order(people.len(), rng);
        let (of_rows, of_people, lengths) = self.in_order(boxes, rows, (people, numbers), rng);
        let [rows, people] = [(of_rows, rows), (of_people, people)]
            .map(|(numbers, all)| numbers.into_iter().map(|number| all[number as usize]).collect());
        Parts { rows, people, lengths }
    }

    /// Cuts rows alone, for parts in which every row keeps the person that it has.
    pub(super) fn cut_rows(
        &self,
        boxes: &Intervals,
        rows: &[u32],
        person: impl Fn(u32) -> u32,
        rng: &mut impl Rng,
    ) -> Parts {
        let (numbers, _, lengths) = self.in_order(boxes, rows, (&[], Vec::new()), rng);
        let rows: Vec<u32> = numbers.into_iter().map(|number| rows[number as usize]).collect();
        Parts { people: rows.iter().map(|&row| person(row)).collect(), rows, lengths }
    }

    /// Returns the numbers of rows and of people, part after part, and the parts' lengths.
    fn in_order(
        &self,
        boxes: &Intervals,
        of_class: &[u32],
        (people_of_class, mut people): (&[u32], Vec<u32>),
        rng: &mut impl Rng,
    ) -> (Vec<u32>, Vec<u32>, Vec<usize>) {
        let mut rows = in_random_order(of_class.len(), rng);
        if rows.len() <= self.most {
            let lengths = vec![rows.len()];
            return (rows, people, lengths);
        }
        let d = self.microdata.quasi.len();
        // Where there is a hierarchy, nodes jump, and their middles say little: there, that of the person whom the row began with, who has the
        // row's number.
        let of_row = |&row: &u32| {
            let all = boxes.of(row).zip(self.microdata.quasi_of(row)).zip(&self.microdata.quasi);
            all.map(|(([lo, hi], code), attribute)| if attribute.hierarchy.is_some() { 2 * code } else { lo + hi })
        };
        let of_person = |&person: &u32| self.microdata.quasi_of(person).map(|code| 2 * code);
        let sides = Sides {
            rows: Side { d, places: of_class.iter().flat_map(of_row).collect() },
            people: Side { d, places: people_of_class.iter().flat_map(of_person).collect() },
        };
        let mut lengths = Vec::new();
        self.halve(&sides, &mut rows, &mut people, &mut lengths);
        (rows, people, lengths)
    }

    /// Puts some of them in the order of parts, and appends the lengths of these. There may be no people.
    fn halve(&self, sides: &Sides, rows: &mut [u32], people: &mut [u32], lengths: &mut Vec<usize>) {
        let n = rows.len();
        if n <= self.most {
            return lengths.push(n);
        }
        let mut middle = self.middle(n);
        if let Some(j) = self.widest(sides, rows, people) {
            let (of_row, of_person) = (|row| sides.rows.on(row, j), |person| sides.people.on(person, j));
            middle = match people.is_empty() {
                true => near_middle(rows.iter().map(|&row| of_row(row)).collect(), middle),
                false => near_middle(people.iter().map(|&person| of_person(person)).collect(), middle),
            };
            lowest_first(rows, middle, of_row);
            lowest_first(people, middle, of_person);
        }
        let (rows, more_rows) = rows.split_at_mut(middle);
        let (people, more_people) = people.split_at_mut(middle.min(people.len()));
        self.halve(sides, rows, people, lengths);
        self.halve(sides, more_rows, more_people, lengths);
    }

    /// Returns as many rows as whole parts need.
    fn middle(&self, n: usize) -> usize {
        let pieces = n.div_ceil(self.most);
        n * (pieces / 2) / pieces
    }

    /// Returns the quasi-identifier that spreads most over both sides; `None` if all are alike.
    fn widest(&self, sides: &Sides, rows: &[u32], people: &[u32]) -> Option<usize> {
        let width = |j: usize| {
            let of_people = people.iter().map(|&person| sides.people.on(person, j));
            let places = rows.iter().map(|&row| sides.rows.on(row, j)).chain(of_people);
            let [lo, hi] = places.fold([u32::MAX, 0], |[lo, hi], place| [lo.min(place), hi.max(place)]);
            self.measure.width(j, 0.5 * lo as f32, 0.5 * hi as f32)
        };
        let widths = (0..self.microdata.quasi.len()).map(|j| (width(j), j)).filter(|(width, _)| *width > 0.0);
        widths.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, j)| j)
    }
}

fn in_random_order(rows: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..rows as u32).collect();
    numbers.shuffle(rng);
    numbers
}

/// Moves the `cut` that lie lowest to the front; both sides keep their order.
fn lowest_first(items: &mut [u32], cut: usize, place: impl Fn(u32) -> u32) {
    if cut == 0 || cut >= items.len() {
        return;
    }
    let mut places: Vec<u32> = items.iter().map(|&item| place(item)).collect();
    let (below, &mut last, _) = places.select_nth_unstable(cut - 1);
    let mut equal = cut - below.iter().filter(|&&place| place < last).count();
    let is_low = |&item: &u32| {
        let place = place(item);
        let is_last = place == last && equal > 0;
        equal -= usize::from(is_last);
        is_last || place < last
    };
    let (low, high): (Vec<u32>, Vec<u32>) = items.iter().copied().partition(is_low);
    items[..cut].copy_from_slice(&low);
    items[cut..].copy_from_slice(&high);
}

/// Returns the rank nearest to the middle at which a value ends.
///
/// Ranks a quarter of all places or more away from the middle do not count. Without another rank, the function returns the middle.
fn near_middle(mut places: Vec<u32>, middle: usize) -> usize {
    let n = places.len();
    if middle == 0 || middle >= n {
        return middle;
    }
    let (_, &mut place, _) = places.select_nth_unstable(middle);
    let [below, upto] = [place, place + 1].map(|end| places.iter().filter(|&&other| other < end).count());
    let far = n / 4;
    let (before, after) = (middle - below, upto - middle);
    match (below > 0 && before < far, upto < n && after < far) {
        (true, true) if after < before => upto,
        (true, _) => below,
        (false, true) => upto,
        (false, false) => middle,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against sorting.
        #[test]
        fn sides_are_cut_as_if_they_were_sorted(
            places in prop::sample::select(vec![12_u32, 1 << 16])
                .prop_flat_map(|most| prop::collection::vec(0..most, 2..200)),
            middle in 0.0..1.0,
        ) {
            let n = places.len();
            let middle = (n as f64 * middle) as usize;
            let mut items: Vec<u32> = (0..n as u32).rev().collect();
            let mut sorted = items.clone();
            sorted.sort_by_key(|&number| places[number as usize]);
            let ends = |place: usize| places[sorted[place - 1] as usize] != places[sorted[place] as usize];
            let near = (0..n / 4).flat_map(|off| [middle.saturating_sub(off), middle + off]);
            let expected = near.filter(|&place| place > 0 && place < n).find(|&place| ends(place)).unwrap_or(middle);
            let cut = near_middle(places.clone(), middle);
            prop_assert!(middle == 0 || cut == expected, "{cut} {expected}");
            lowest_first(&mut items, cut, |number| places[number as usize]);
            let [low, of_sorted] = [&items[..cut], &sorted[..cut]].map(|low| low.iter().collect::<std::collections::BTreeSet<_>>());
            prop_assert_eq!(low, of_sorted);
            let descends = |numbers: &[u32]| numbers.is_sorted_by(|a, b| a > b);
            prop_assert!(cut == 0 || (descends(&items[..cut]) && descends(&items[cut..])));
        }
    }
}
