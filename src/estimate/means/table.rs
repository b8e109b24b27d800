//! Means over whole numbers and dates: prefix sums over all values.

use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};

use crate::estimate::factor::Compiled;
use crate::estimate::scale::from_steps;

/// Most values that a function is evaluated on: a table of 8 MiB.
pub(super) const MOST_VALUES: i64 = 1 << 20;

/// A function on the values from `first` on.
#[derive(Debug)]
pub(super) struct Table {
    first: i64,
    /// Sum over the values before each one, and over all.
    sums: Vec<f64>,
    of_null: f64,
}

impl Table {
    /// Makes the table; `None` if the function is not finite everywhere.
    pub(super) fn new(
        function: &Compiled,
        data_type: &DataType,
        first: i64,
        last: i64,
        of_null: f64,
    ) -> Result<Option<Self>> {
        let values = from_steps(Int64Array::from_iter_values(first..=last), data_type)?;
        let mut sums = Vec::with_capacity(values.len() + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for value in function.evaluate(&values)? {
            sum += value;
            sums.push(sum);
        }
        // One infinite value would spoil all sums.
        Ok(sum.is_finite().then_some(Self { first, sums, of_null }))
    }

    pub(super) fn first(&self) -> i64 {
        self.first
    }

    pub(super) fn last(&self) -> i64 {
        self.first + self.sums.len() as i64 - 2
    }

    pub(super) fn covers(&self, first: i64, last: i64) -> bool {
        self.first() <= first && last <= self.last()
    }

    /// Returns the means over the intervals, which lie in the table; where `lo` is NULL, from `least` on.
    pub(super) fn means(&self, lo: &Int64Array, hi: &Int64Array, least: Option<i64>) -> Result<Vec<f64>> {
        let sum = |lo: i64, hi: i64| self.sums[(hi - self.first + 1) as usize] - self.sums[(lo - self.first) as usize];
        let mean = |lo: i64, hi: i64| sum(lo, hi) / (hi - lo + 1) as f64;
        if lo.null_count() == 0 && hi.null_count() == 0 {
            return Ok(lo.values().iter().zip(hi.values()).map(|(&lo, &hi)| mean(lo, hi)).collect());
        }
        let means = (0..lo.len()).map(|i| match (lo.is_valid(i), hi.is_valid(i), least) {
            (_, false, _) => Ok(self.of_null),
            (true, true, _) => Ok(mean(lo.value(i), hi.value(i))),
            (false, true, Some(least)) => {
                let hi = hi.value(i);
                let lo = least.min(hi);
                Ok((sum(lo, hi) + self.of_null) / (hi - lo + 2) as f64)
            }
            (false, true, None) => internal_err!("intervals with NULL, but no least value of the column"),
        });
        means.collect()
    }
}
