//! The records of a snapshot that are held back: which of them are drawn, where the window only counts them.

use super::stream::{Placed, Record};
use super::window::{Value, mix};

/// The records of a snapshot, in random order among those of a value.
#[derive(Debug)]
pub(super) struct Home {
    /// Value after value; those of a value are drawn from the back.
    records: Vec<Record>,
    /// Where those of each value are, in the order of values.
    values: Vec<OfValue>,
    left: usize,
}

#[derive(Debug, Clone, Copy)]
struct OfValue {
    value: Value,
    start: usize,
    end: usize,
}

/// Counts of records by value, all 0 between uses: snapshots are small, and there may be many values.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<usize>);

impl Tally {
    fn of(&mut self, value: Value) -> &mut usize {
        let value = value as usize;
        if value >= self.0.len() {
            self.0.resize(value + 1, 0);
        }
        &mut self.0[value]
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.0.capacity() * size_of::<usize>()
    }
}

impl Home {
    pub(super) fn new(arrived: Vec<Record>, tally: &mut Tally) -> Self {
        // In place by value, and by lot among the few of a value.
        let mut values = Vec::new();
        for record in &arrived {
            let count = tally.of(record.value);
            if *count == 0 {
                values.push(OfValue { value: record.value, start: 0, end: 0 });
            }
            *count += 1;
        }
        values.sort_unstable_by_key(|of| of.value);
        let mut before = 0;
        for of in &mut values {
            of.start = before;
            before += std::mem::replace(tally.of(of.value), before);
        }
        let mut records = arrived.clone();
        for record in arrived {
            let place = tally.of(record.value);
            records[*place] = record;
            *place += 1;
        }
        for of in &mut values {
            of.end = std::mem::take(tally.of(of.value));
            by_lot(&mut records[of.start..of.end]);
        }
        Self { left: records.len(), records, values }
    }

    /// How many records there are of each value, in the order of values.
    pub(super) fn counts(&self) -> Vec<(Value, u32)> {
        self.values.iter().map(|of| (of.value, (of.end - of.start) as u32)).collect()
    }

    /// How many records were not drawn.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Draws some records of a value, which are of the time `home`. `None` if there are not so many.
    pub(super) fn draw(&mut self, value: Value, count: usize, home: i64, drawn: &mut Vec<Placed>) -> Option<()> {
        let at = self.values.binary_search_by_key(&value, |of| of.value).ok()?;
        let OfValue { start, end, .. } = &mut self.values[at];
        let from = end.checked_sub(count).filter(|from| from >= start)?;
        drawn.extend(self.records[from..*end].iter().map(|&record| Placed { record, home }));
        *end = from;
        self.left -= count;
        Some(())
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.values.capacity() * size_of::<OfValue>()
    }
}

/// Puts records of a value in the order of their priorities, all of which are different then.
fn by_lot(records: &mut [Record]) {
    records.sort_unstable_by_key(|record| record.priority);
    // Rows that are alike in everything have one priority; they are told apart by counting them.
    let mut twins = false;
    let mut first = 0;
    for at in 1..records.len() {
        // The first keeps its own, with which the others are compared.
        let own = records[first].priority;
        if records[at].priority != own {
            first = at;
            continue;
        }
        twins = true;
        records[at].priority = mix(own ^ mix((at - first) as u64));
        debug_assert_ne!(records[at].priority, own);
    }
    if twins {
        records.sort_unstable_by_key(|record| record.priority);
    }
}

/// Puts records in an order by lot: by other random numbers made of their priorities, and a number that all share.
pub(super) fn reorder(placed: &mut Vec<Placed>, salt: u64) {
    let lot = |placed: &Placed| mix(placed.record.priority ^ salt);
    // A lot's last bits give way to the record's place, so that numbers are sorted alone.
    let mask = placed.len().next_power_of_two() as u64 - 1;
    let place = |key: u64| (key & mask) as usize;
    let mut keys: Vec<u64> = placed.iter().enumerate().map(|(at, placed)| lot(placed) & !mask | at as u64).collect();
    keys.sort_unstable();
    // So that the order of arrival decides nothing.
    for alike in keys.chunk_by_mut(|a, b| a & !mask == b & !mask).filter(|alike| alike.len() > 1) {
        alike.sort_unstable_by_key(|&key| lot(&placed[place(key)]));
    }
    *placed = keys.into_iter().map(|key| placed[place(key)]).collect();
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
        /// Against sorting all of them; again with the same tally, of which nothing is left.
        #[test]
        fn records_by_value_and_lot(
            snapshots in prop::collection::vec(prop::collection::vec((0_u32..6, any::<u64>()), 0..60), 1..4),
        ) {
            let mut tally = Tally::default();
            for snapshot in snapshots {
                let arrived = records(&snapshot);
                let mut sorted = arrived.clone();
                sorted.sort_by_key(|record| (record.value, record.priority));
                let mut home = Home::new(arrived, &mut tally);
                prop_assert_eq!(&home.records, &sorted);
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

        /// As if the whole lots were sorted, also where only their last bits differ.
        #[test]
        fn an_order_by_whole_lots(
            priorities in prop::collection::vec((0_u64..4, any::<u64>()), 0..40),
            salt in any::<u64>(),
        ) {
            // Priorities whose lots have one of four beginnings, from the other end of `mix`.
            let lots: Vec<u64> = priorities.iter().enumerate().map(|(at, (high, low))| high << 62 | (low & 63) << 6 | at as u64).collect();
            let drawn: Vec<(Value, u64)> = lots.iter().map(|&lot| (0, unmixed(lot) ^ salt)).collect();
            let mut placed: Vec<Placed> = records(&drawn).into_iter().map(|record| Placed { record, home: 0 }).collect();
            let mut expected = placed.clone();
            expected.sort_by_key(|placed| mix(placed.record.priority ^ salt));
            reorder(&mut placed, salt);
            prop_assert_eq!(placed, expected);
        }
    }

    /// What is mixed to a number.
    fn unmixed(number: u64) -> u64 {
        // Inverses of odd factors by Newton's method, and of shifts by shifting on.
        let inverse =
            |factor: u64| (0..6).fold(factor, |x, _| x.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(x))));
        let unshift = |z: u64, by: u32| (0..64 / by).fold(z, |x, _| z ^ x >> by);
        let z = unshift(number, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
        let z = unshift(z, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
        unshift(z, 30).wrapping_sub(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn twins_are_told_apart() {
        let arrived = records(&[(1, 7), (0, 7), (1, 7), (1, 7), (1, 8)]);
        let home = Home::new(arrived, &mut Tally::default());
        let mut lots: Vec<u64> =
            home.records.iter().filter(|record| record.value == 1).map(|record| record.priority).collect();
        assert!(lots.is_sorted() && lots.contains(&7) && lots.contains(&8), "{lots:?}");
        lots.dedup();
        assert_eq!(lots.len(), 4);
        assert_eq!(home.records[0].priority, 7, "of another value");
    }
}
