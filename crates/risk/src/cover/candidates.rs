//! The values of the rows that cover each point.

use super::Boxes;
use super::walk::{Visitor, Walk};

/// Candidates of each point by the rows that cover it: lists of values, each with the number of covering rows that
/// have it (by the shares of their groups).
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Number of each point's list. Points may share lists.
    list: Vec<u32>,
    /// First entry of each list, and one more.
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Candidates {
    /// Returns the candidates of a point, in no order.
    pub(crate) fn of(&self, point: u32) -> &[(u32, f64)] {
        let list = self.list[point as usize] as usize;
        &self.entries[self.starts[list]..self.starts[list + 1]]
    }
}

/// Returns the candidates of each point by the boxes of a release. The codes of the points stand one after the other; `values` is the number of
/// sensitive values.
pub(crate) fn join(boxes: &Boxes, points: &[u32], values: usize) -> Candidates {
    let number = points.len() / boxes.quasi.max(1);
    let found = Candidates { list: vec![0; number], starts: vec![0], entries: Vec::new() };
    let lists =
        Lists { boxes, counts: vec![(0.0, 0); values], touched: Vec::new(), listed: vec![false; values], found };
    Walk::run(boxes.quasi, points, boxes.ends.clone(), boxes.group.len(), lists).found
}

struct Lists<'a> {
    boxes: &'a Boxes,
    /// For each value, the rows and the number of boxes around the node.
    counts: Vec<(f64, u32)>,
    /// Values that have counts, and such as had them before; and of each value whether it is there.
    touched: Vec<u32>,
    listed: Vec<bool>,
    found: Candidates,
}

impl Visitor for Lists<'_> {
    fn enter(&mut self, place: u32) {
        let (counts, touched, listed) = (self.counts.as_mut_slice(), &mut self.touched, self.listed.as_mut_slice());
        self.boxes.for_each(place, |value, rows| {
            let (sum, boxes) = &mut counts[value as usize];
            if *boxes == 0 && !std::mem::replace(&mut listed[value as usize], true) {
                touched.push(value);
            }
            *sum += rows;
            *boxes += 1;
        });
    }

    fn leave(&mut self, place: u32) {
        let counts = self.counts.as_mut_slice();
        self.boxes.for_each(place, |value, rows| {
            let (sum, boxes) = &mut counts[value as usize];
            *boxes -= 1;
            // No remainders of rounding where nothing is left.
            *sum = if *boxes == 0 { 0.0 } else { *sum - rows };
        });
    }

    fn report(&mut self, points: &[u32]) {
        let Self { counts, touched, listed, found, .. } = self;
        let list = found.starts.len() as u32 - 1;
        points.iter().for_each(|&point| found.list[point as usize] = list);
        touched.retain(|&value| {
            listed[value as usize] = counts[value as usize].1 > 0;
            listed[value as usize]
        });
        found.entries.extend(touched.iter().map(|&value| (value, counts[value as usize].0)));
        found.starts.push(found.entries.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn by_pairs(boxes: &Boxes, points: &[u32]) -> Vec<BTreeMap<u32, f64>> {
        let covers = |place: usize, point: &[u32]| {
            let ends = &boxes.ends[place * boxes.quasi..][..boxes.quasi];
            ends.iter().zip(point).all(|([lo, hi], code)| lo <= code && code <= hi)
        };
        let candidates = |point: &[u32]| {
            let mut found = BTreeMap::new();
            for place in (0..boxes.group.len()).filter(|&place| covers(place, point)) {
                for &(value, share) in boxes.group(boxes.group[place]) {
                    *found.entry(value).or_insert(0.0) += share * f64::from(boxes.rows[place]);
                }
            }
            found
        };
        points.chunks_exact(boxes.quasi).map(candidates).collect()
    }

    /// Generates boxes with any ends, and points.
    fn instance() -> impl Strategy<Value = (Boxes, Vec<u32>)> {
        (1..4_usize, 2..9_u32).prop_flat_map(|(quasi, codes)| {
            let ends = prop::collection::vec((0..codes, 0..codes), quasi);
            let group = prop::collection::vec((0..6_u32, 1..3_u32), 1..4);
            let boxes = prop::collection::vec((ends, 1..4_u32, group), 0..12);
            let points = prop::collection::vec(prop::collection::vec(0..codes, quasi), 0..25);
            (boxes, points).prop_map(move |(made, points)| {
                let mut boxes = Boxes { quasi, starts: vec![0], ..Boxes::default() };
                for (number, (ends, rows, group)) in (0..).zip(made) {
                    boxes.ends.extend(ends.into_iter().map(|(lo, hi)| [lo, hi]));
                    boxes.group.push(number);
                    boxes.rows.push(rows);
                    let group: BTreeMap<u32, u32> = group.into_iter().collect();
                    let total = f64::from(group.values().sum::<u32>());
                    boxes.shares.extend(group.into_iter().map(|(value, count)| (value, f64::from(count) / total)));
                    boxes.starts.push(boxes.shares.len() as u32);
                }
                boxes.pack();
                (boxes, points.concat())
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_join_agrees_with_all_pairs((boxes, points) in instance()) {
            let found = join(&boxes, &points, 6);
            let expected = by_pairs(&boxes, &points);
            for (point, expected) in (0..).zip(expected) {
                let values = found.of(point);
                prop_assert_eq!(values.len(), expected.len(), "a value twice, or another number of them");
                let found: BTreeMap<u32, f64> = values.iter().copied().collect();
                prop_assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found, expected);
                prop_assert!(found.values().zip(expected.values()).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}
