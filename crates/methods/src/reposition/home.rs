//! The records of a snapshot that are held back: which of them are drawn, where the window only counts them.
//!
//! Most values leave a snapshot whole, with all of their records at once. Then it does not matter which are drawn, and only where a value is divided are its
//! records put in order by lot.

use super::stream::{Placed, Record};
use super::window::{Value, mix};

/// The records of a snapshot.
#[derive(Debug)]
pub(super) struct Home {
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

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        self.0.capacity() * size_of::<usize>()
    }
}

impl Home {
    pub(super) fn new(arrived: Vec<Record>, tally: &mut Tally) -> Self {
        let mut values = Vec::new();
        for record in &arrived {
            let count = tally.of(record.value);
            if *count == 0 {
                values.push(OfValue { value: record.value, start: 0, end: 0, in_order: false });
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

    /// Returns the bytes held.
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
pub(super) fn reorder(placed: &mut Vec<Placed>, salt: u64) {
    let lot = |placed: &Placed| mix(placed.record.priority ^ salt);
    // A lot's last bits give way to the record's place, so that numbers are sorted alone.
    let mask = placed.len().next_power_of_two() as u64 - 1;
    let place = |key: u64| (key & mask) as usize;
    let mut keys: Vec<u64> = placed.iter().enumerate().map(|(at, placed)| lot(placed) & !mask | at as u64).collect();
    sort_spread(&mut keys);
    // So that the order of arrival decides nothing.
    let mut alike = false;
    for lots in keys.chunk_by_mut(|a, b| a & !mask == b & !mask).filter(|lots| lots.len() > 1) {
        lots.sort_unstable_by_key(|&key| lot(&placed[place(key)]));
        alike = true;
    }
    *placed = keys.into_iter().map(|key| placed[place(key)]).collect();
    // Side by side they would be known for twins.
    if alike && tell_apart(placed.iter_mut().map(|placed| &mut placed.record.priority)) {
        reorder(placed, salt);
    }
}

/// Fewer numbers than these are sorted at once.
const FEW: usize = 64;
/// Greatest number of bits that decide a number's first place, to stay in the cache.
const BITS: u32 = 12;
/// Most numbers with the same first bits that are put in order one by one. Unless there are many numbers, there are seldom more.
const MOST: usize = 16;

/// Sorts numbers that are spread over all there are, as random ones: each is put near its place by its first bits.
fn sort_spread(numbers: &mut Vec<u64>) {
    if numbers.len() < FEW {
        numbers.sort_unstable();
        return;
    }
    let bits = numbers.len().ilog2().min(BITS);
    let part = |number: u64| (number >> (u64::BITS - bits)) as usize;
    let mut ends = vec![0_usize; 1 << bits];
    numbers.iter().for_each(|&number| ends[part(number)] += 1);
    let (mut before, mut most) = (0, 0);
    for end in &mut ends {
        most = most.max(*end);
        before += std::mem::replace(end, before);
    }
    let mut sorted = vec![0; numbers.len()];
    for &number in numbers.iter() {
        let end = &mut ends[part(number)];
        let mut at = *end;
        *end += 1;
        // Those of its part that came before, and belong behind it. What is in front of its part is smaller.
        while most <= MOST && at > 0 && sorted[at - 1] > number {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = number;
    }
    if most > MOST {
        let mut start = 0;
        for end in ends {
            sorted[start..end].sort_unstable();
            start = end;
        }
    }
    *numbers = sorted;
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

        /// The order is as if whole lots were sorted, even by their last bits.
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

    proptest! {
        /// Rows that are alike, drawn whole or in any parts: as if all were put in order by lot first.
        #[test]
        fn lots_of_many_twins(
            snapshot in prop::collection::vec((0_u32..3, 0_u64..4), 1..60),
            parts in prop::collection::vec(1_usize..8, 1..5),
            salt in any::<u64>(),
        ) {
            let arrived = records(&snapshot);
            let mut home = Home::new(arrived.clone(), &mut Tally::default());
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

        #[test]
        fn spread_numbers_are_sorted(
            mut numbers in prop::collection::vec((0_u64..3, any::<u64>()), 0..5000),
            alike in any::<bool>(),
        ) {
            // Spread over all, or a quarter and a few others.
            let mut numbers: Vec<u64> =
                numbers.drain(..).map(|(high, low)| if alike { ((high / 2) << 62) | (low & 0xff) } else { low }).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sort_spread(&mut numbers);
            prop_assert_eq!(numbers, sorted);
        }
    }

    /// Returns the number that is mixed to a number.
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
        let priorities = |home: &mut Home, draws: &[usize]| {
            let mut drawn = Vec::new();
            draws.iter().for_each(|&count| home.draw(1, count, 0, &mut drawn).unwrap());
            reorder(&mut drawn, 3);
            let lots: Vec<u64> = drawn.iter().map(|placed| mix(placed.record.priority ^ 3)).collect();
            assert!(lots.is_sorted(), "{lots:?}");
            let mut priorities: Vec<u64> = drawn.iter().map(|placed| placed.record.priority).collect();
            priorities.sort_unstable();
            priorities
        };
        let home = || Home::new(records(&[(1, 7), (0, 7), (1, 7), (1, 7), (1, 8)]), &mut Tally::default());
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
