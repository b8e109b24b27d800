//! The records of a snapshot that are held back: which of them are drawn, where the window only counts them.
//!
//! Most values leave a snapshot whole, with all of their records at once. Then it does not matter which are drawn, and only where a value is divided are its
//! records put in order by lot.

use super::record::{Placed, Record};
use super::window::{Value, mix};

#[derive(Debug)]
pub(super) struct SnapshotRecords {
    /// Value after value; those of a value are drawn from the back, in random order if not all of them are.
    records: Vec<Record>,
    /// Records of each value, in the order of values.
    values: Vec<OfValue>,
    left: usize,
}

#[derive(Debug, Clone, Copy)]
struct OfValue {
    value: Value,
    start: usize,
    end: usize,
    /// True if its records are in the order of their priorities.
    in_order: bool,
}

impl SnapshotRecords {
    pub(super) fn new(mut records: Vec<Record>) -> Self {
        records.sort_by_key(|record| record.value);
        let (mut values, mut start) = (Vec::new(), 0);
        for of_value in records.chunk_by(|a, b| a.value == b.value) {
            let end = start + of_value.len();
            values.push(OfValue { value: of_value[0].value, start, end, in_order: false });
            start = end;
        }
        Self { left: records.len(), records, values }
    }

    /// Counts the records of each value, in the order of values.
    pub(super) fn counts(&self) -> Vec<(Value, u32)> {
        self.values.iter().map(|of| (of.value, (of.end - of.start) as u32)).collect()
    }

    /// Counts the records that were not drawn.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Draws some records of a value, which are of the time `home`. `None` if there are not so many.
    pub(super) fn draw(&mut self, value: Value, count: usize, home: i64, drawn: &mut Vec<Placed>) -> Option<()> {
        let at = self.values.binary_search_by_key(&value, |of| of.value).ok()?;
        let OfValue { start, end, in_order, .. } = &mut self.values[at];
        let from = end.checked_sub(count).filter(|from| from >= start)?;
        if from > *start && !std::mem::replace(in_order, true) {
            by_lot(&mut self.records[*start..*end]);
        }
        drawn.extend(self.records[from..*end].iter().map(|&record| Placed { record, home }));
        *end = from;
        self.left -= count;
        Some(())
    }

    pub(super) fn size(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.values.capacity() * size_of::<OfValue>()
    }
}

/// Puts records of a value in the order of their priorities. All priorities are different then.
fn by_lot(records: &mut [Record]) {
    records.sort_unstable_by_key(|record| record.priority);
    if tell_apart(records.iter_mut().map(|record| &mut record.priority)) {
        records.sort_unstable_by_key(|record| record.priority);
    }
}

/// Numbers rows that are alike and have one priority, to give them their own. The first keeps its own; whether
/// there are any. Those that are alike come one after the other.
fn tell_apart<'a>(priorities: impl Iterator<Item = &'a mut u64>) -> bool {
    let (mut first, mut twins, mut any) = (None, 0, false);
    for priority in priorities {
        if first == Some(*priority) {
            twins += 1;
            *priority = mix(*priority ^ mix(twins));
            any = true;
        } else {
            (first, twins) = (Some(*priority), 0);
        }
    }
    any
}

/// Puts records in an order by lot: by other random numbers made of their priorities, and a number that all share.
pub(super) fn reorder(placed: &mut [Placed], salt: u64) {
    placed.sort_unstable_by_key(|placed| mix(placed.record.priority ^ salt));
    // Side by side they would be known for twins.
    if tell_apart(placed.iter_mut().map(|placed| &mut placed.record.priority)) {
        reorder(placed, salt);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records(drawn: &[(Value, u64)]) -> Vec<Record> {
        let record = |(row, &(value, priority))| Record { value, priority, row: row as u64 };
        drawn.iter().enumerate().map(record).collect()
    }

    proptest! {
        /// Against sorting all of them.
        #[test]
        fn records_by_value_and_lot(
            snapshot in prop::collection::vec((0_u32..6, any::<u64>()), 0..60),
        ) {
            let arrived = records(&snapshot);
            let mut sorted = arrived.clone();
            sorted.sort_by_key(|record| (record.value, record.priority));
            let mut home = SnapshotRecords::new(arrived);
            prop_assert_eq!(home.counts().iter().map(|&(_, count)| count as usize).sum::<usize>(), sorted.len());
            prop_assert!(home.draw(9, 1, 0, &mut Vec::new()).is_none());
            for (value, count) in home.counts() {
                prop_assert!(home.draw(value, count as usize + 1, 3, &mut Vec::new()).is_none());
                let mut drawn = Vec::new();
                for count in [1, count as usize - 1] {
                    home.draw(value, count, 3, &mut drawn).unwrap();
                }
                let mut of_value: Vec<_> = sorted.iter().filter(|record| record.value == value).collect();
                of_value.rotate_right(1);
                prop_assert!(drawn.iter().map(|placed| &placed.record).eq(of_value));
            }
            prop_assert_eq!(home.left(), 0);
        }
    }

    proptest! {
        /// Rows that are alike, drawn whole or in any parts: as if all were put in order by lot first.
        #[test]
        fn lots_of_many_twins(
            snapshot in prop::collection::vec((0_u32..3, 0_u64..4), 1..60),
            parts in prop::collection::vec(1_usize..8, 1..5),
            salt in any::<u64>(),
        ) {
            let arrived = records(&snapshot);
            let mut home = SnapshotRecords::new(arrived.clone());
            for (value, count) in home.counts() {
                let mut sorted: Vec<Record> = arrived.iter().copied().filter(|record| record.value == value).collect();
                by_lot(&mut sorted);
                let (mut left, mut parts) = (count as usize, parts.iter().cycle());
                while left > 0 {
                    let part = (*parts.next().unwrap()).min(left);
                    let mut drawn = Vec::new();
                    home.draw(value, part, 0, &mut drawn).unwrap();
                    reorder(&mut drawn, salt);
                    let mut expected = sorted.split_off(sorted.len() - part);
                    expected.sort_by_key(|record| mix(record.priority ^ salt));
                    let priorities = |records: &[Record]| records.iter().map(|record| record.priority).collect::<Vec<_>>();
                    let drawn: Vec<Record> = drawn.iter().map(|placed| placed.record).collect();
                    prop_assert_eq!(priorities(&drawn), priorities(&expected));
                    left -= part;
                }
            }
        }
    }

    #[test]
    fn twins_are_told_apart() {
        let priorities = |home: &mut SnapshotRecords, draws: &[usize]| {
            let mut drawn = Vec::new();
            draws.iter().for_each(|&count| home.draw(1, count, 0, &mut drawn).unwrap());
            reorder(&mut drawn, 3);
            let lots: Vec<u64> = drawn.iter().map(|placed| mix(placed.record.priority ^ 3)).collect();
            assert!(lots.is_sorted(), "{lots:?}");
            let mut priorities: Vec<u64> = drawn.iter().map(|placed| placed.record.priority).collect();
            priorities.sort_unstable();
            priorities
        };
        let home = || SnapshotRecords::new(records(&[(1, 7), (0, 7), (1, 7), (1, 7), (1, 8)]));
        // Whether the value is drawn whole or divided.
        let whole = priorities(&mut home(), &[4]);
        assert!(whole.contains(&7) && whole.contains(&8), "{whole:?}");
        assert!(whole.windows(2).all(|pair| pair[0] < pair[1]), "{whole:?}");
        for divided in [[1, 3], [2, 2], [3, 1]] {
            assert_eq!(priorities(&mut home(), &divided), whole);
        }
        let mut home = home();
        let mut other = Vec::new();
        home.draw(0, 1, 0, &mut other).unwrap();
        assert_eq!(other[0].record.priority, 7, "of another value");
    }
}
