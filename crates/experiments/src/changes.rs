//! Snapshots of people who come, leave and change their sensitive value (m-Distinct, Section VI-A).
//!
//! A sixth of all people are there at first. At each further release a tenth of these leave, a fourth come, and of as many the value changes
//! for another one of its class; everybody's age grows by one up to 100, where there is a column `age`.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::error::Result;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::input::Input;

/// The column of values: ranks of the sensitive attribute's values.
pub(super) const VALUE: &str = "value";

/// Shares of the first snapshot that leave: by default, and where counterfeits are counted (2,000 and 3,000 of 20,000).
pub(super) const LEAVING: [f64; 2] = [0.1, 0.15];
const COMING: f64 = 0.25;
const CHANGING: f64 = 0.25;

/// Values whose ranks agree but for the last so many can become each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classes {
    pub(super) size: i32,
    pub(super) values: i32,
}

impl Classes {
    fn of(self, value: i32) -> Range<i32> {
        let first = value / self.size * self.size;
        first..first + self.size
    }

    pub(super) fn updates(self) -> Result<RecordBatch> {
        let (from, to): (Vec<i32>, Vec<i32>) =
            (0..self.values).flat_map(|value| self.of(value).map(move |to| (value, to))).unzip();
        let column = |values: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        Ok(RecordBatch::try_from_iter([("from_value", column(from)), ("to_value", column(to))])?)
    }
}

#[derive(Debug)]
pub(super) struct Changing {
    /// Places of those who have not come yet.
    waiting: Vec<u32>,
    /// Places of those who are there, and their values.
    present: Vec<(u32, i32)>,
    ranks: Arc<[i32]>,
    classes: Classes,
    first: usize,
    leaving: f64,
    /// Releases since the first one.
    age: i32,
    rng: ChaCha8Rng,
}

impl Changing {
    /// Begins with people with these values, by place. People whose class would be smaller than the greatest classes are left out.
    pub(super) fn new(ranks: Arc<[i32]>, classes: Classes, leaving: f64, seed: u64) -> Self {
        let mut waiting: Vec<u32> =
            (0..ranks.len() as u32).filter(|&place| ranks[place as usize] < classes.values).collect();
        let first = waiting.len() / 6;
        let present =
            waiting.split_off(waiting.len() - first).into_iter().map(|place| (place, ranks[place as usize])).collect();
        Self { waiting, present, ranks, classes, first, leaving, age: 0, rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    pub(super) fn advance(&mut self) {
        let share = |share: f64| (self.first as f64 * share).round() as usize;
        let (leaving, coming, changing) = (share(self.leaving), share(COMING), share(CHANGING));
        self.present.shuffle(&mut self.rng);
        self.present.truncate(self.present.len() - leaving);
        if self.classes.size > 1 {
            for (_, value) in &mut self.present[..changing] {
                let class = self.classes.of(*value);
                // One of the others.
                let other = self.rng.random_range(class.start..class.end - 1);
                *value = if other < *value { other } else { other + 1 };
            }
        }
        let newcomers = self.waiting.split_off(self.waiting.len() - coming.min(self.waiting.len()));
        self.present.extend(newcomers.into_iter().map(|place| (place, self.ranks[place as usize])));
        self.age += 1;
    }

    /// Returns the people of now: identifier, quasi-identifiers, value.
    pub(super) fn snapshot(&self, input: &Input) -> Result<RecordBatch> {
        let places = UInt32Array::from_iter_values(self.present.iter().map(|&(place, _)| place));
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        for name in std::iter::once(&input.id).chain(&input.quasi) {
            let Some(column) = input.people.column_by_name(name) else { continue };
            let mut column = take(column, &places, None)?;
            if name == "age" && column.data_type().is_integer() {
                let ages = cast(&column, &DataType::Int32)?;
                let older = |age: i32| if age < 100 { (age + self.age).min(100) } else { age };
                column = Arc::new(ages.as_primitive::<Int32Type>().unary::<_, Int32Type>(older));
            }
            columns.push((name, column));
        }
        columns.push((VALUE, Arc::new(Int32Array::from_iter_values(self.present.iter().map(|&(_, value)| value)))));
        Ok(RecordBatch::try_from_iter(columns)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn values_change_within_their_class() {
        let ranks: Arc<[i32]> = (0..6_000).map(|place| place % 53).collect();
        for size in [1, 2, 5, 10] {
            let classes = Classes { size, values: 50 };
            let mut people = Changing::new(Arc::clone(&ranks), classes, LEAVING[0], 1);
            let mut before: BTreeMap<u32, i32> = people.present.iter().copied().collect();
            assert!(before.values().all(|&value| value < 50));
            let first = before.len();
            for _ in 1..20 {
                people.advance();
                let now: BTreeMap<u32, i32> = people.present.iter().copied().collect();
                assert_eq!(now.len(), people.present.len());
                let changed = now.iter().filter(|(place, value)| before.get(place).is_some_and(|old| old != *value));
                assert_eq!(changed.clone().count() > 0, size > 1);
                assert!(changed.clone().all(|(place, value)| before[place] / size == value / size));
                assert!(changed.count() <= first / 4 + 1);
                before = now;
            }
            assert!(people.present.len() > 3 * first);
        }
    }
}
