//! The domain of an attribute: its distinct values in order, and how far apart they lie.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type};

use crate::error::Result;

/// The distinct values of an attribute in ascending order. A *code* is a value's index in it.
///
/// NULL is a value of its own and comes first. Numbers, dates and timestamps are ordered by value; strings and booleans by
/// value unless an order was given.
#[derive(Debug, Clone)]
pub struct Domain {
    values: ArrayRef,
    positions: Arc<[f32]>,
}

impl Domain {
    /// Returns a domain from its sorted distinct values, NULL (if any) first.
    ///
    /// # Errors
    /// When Arrow cannot read the values as numbers although their type is numeric.
    pub fn new(values: ArrayRef) -> Result<Self> {
        let positions = positions(&values)?.into_iter().map(|place| place as f32).collect();
        Ok(Self { values, positions })
    }

    /// Returns a domain in an order that was given, NULL (if any) first: measured by steps whatever the type.
    pub fn in_order(values: ArrayRef) -> Self {
        Self { positions: ranks(values.len()).into_iter().map(|place| place as f32).collect(), values }
    }

    /// Returns the domain without NULL. Every code is one less if NULL was among the values.
    /// Fails as for [`new`](Self::new).
    pub(super) fn without_null(&self) -> Result<Self> {
        let nulls = self.values.null_count().min(1);
        let values = self.values.slice(nulls, self.values.len() - nulls);
        // An order that was given goes by steps.
        let in_order = Self::in_order(ArrayRef::clone(&self.values)).positions == self.positions;
        if in_order { Ok(Self::in_order(values)) } else { Self::new(values) }
    }

    /// Returns the number of distinct values, NULL included.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are no values at all.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the values; `values()[code]` is the value of a code.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Returns true if NULL is among the values (it then has code 0).
    pub fn has_null(&self) -> bool {
        self.values.null_count() > 0
    }

    /// Returns the place of a code's value between the domain's ends, 0 to 1. NULL lies below the least value.
    #[inline]
    pub fn position(&self, code: u32) -> f32 {
        self.positions[code as usize]
    }

    /// Returns the places of all values, by code.
    pub fn positions(&self) -> &Arc<[f32]> {
        &self.positions
    }

    /// Returns the places of all values in full precision: for measuring, where positions are for choosing.
    pub(super) fn places(&self) -> Result<Vec<f64>> {
        positions(&self.values)
    }

    /// Returns the coordinates of the values in units of their own: the numbers themselves, or places between 0 and 1
    /// if some are NULL or not finite.
    pub(super) fn coordinates(&self) -> Result<Vec<f64>> {
        let numbers = as_numbers(&self.values)?;
        let widest = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
        match widest.is_finite() && numbers.iter().all(|number| number.is_finite()) {
            true => Ok(numbers),
            false => self.places(),
        }
    }

    /// Returns true if the values are measured, so that differences mean something, rather than categories.
    pub fn is_measured(&self) -> bool {
        is_measured(self.values.data_type())
    }

    /// Returns the length of the interval from code `lo` to code `hi`. It is a share of the length of the whole domain:
    /// 0 for a single value, 1 for everything (m-invariance, Section 4.3).
    ///
    /// Numbers and times are measured by their difference, categories by the number of steps in their order.
    #[inline]
    pub fn extent(&self, lo: u32, hi: u32) -> f32 {
        self.positions[hi as usize] - self.positions[lo as usize]
    }
}

/// Computes the place of each value in its domain, scaled to 0..=1. NULL lies one average gap below the least value.
fn positions(values: &ArrayRef) -> Result<Vec<f64>> {
    let n = values.len();
    let nulls = values.null_count().min(1);
    if !is_measured(values.data_type()) || n < 2 {
        return Ok(ranks(n));
    }
    let numbers = as_numbers(values)?;
    let finite = |x: &&f64| x.is_finite();
    let (Some(&min), Some(&max)) = (numbers[nulls..].iter().find(finite), numbers[nulls..].iter().rev().find(finite))
    else {
        return Ok(ranks(n));
    };
    // Halved first: the difference of the two largest doubles is not a double.
    let span = max / 2.0 - min / 2.0;
    if span <= 0.0 {
        return Ok(ranks(n));
    }
    let gap = if nulls == 0 { 0.0 } else { 1.0 / (n - 1) as f64 };
    let mut highest = 0.0_f64;
    Ok(numbers
        .iter()
        .enumerate()
        .map(|(code, &x)| {
            if code < nulls {
                return 0.0;
            }
            let share = (x / 2.0 - min / 2.0) / span;
            // Infinities and NaN sort last or, with a minus, first; they lie at that end.
            let share = match share.is_nan() {
                true if x.is_sign_negative() => 0.0,
                true => 1.0,
                false => share.clamp(0.0, 1.0),
            };
            highest = highest.max((gap + share) / (gap + 1.0));
            highest
        })
        .collect())
}

/// Returns `n` numbers in equal steps from 0 to 1.
fn ranks(n: usize) -> Vec<f64> {
    let last = n.saturating_sub(1).max(1) as f64;
    (0..n).map(|rank| rank as f64 / last).collect()
}

/// Returns true if differences of the type's values mean something.
fn is_measured(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_temporal()
}

/// Returns the values as doubles (days, ticks or numbers); NULL becomes NaN.
fn as_numbers(values: &ArrayRef) -> Result<Vec<f64>> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let values = match values.data_type() {
        DataType::Date32 | DataType::Time32(_) => cast_with_options(values, &DataType::Int32, &options)?,
        data_type if data_type.is_temporal() => cast_with_options(values, &DataType::Int64, &options)?,
        _ => ArrayRef::clone(values),
    };
    let numbers = cast_with_options(&values, &DataType::Float64, &options)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    Ok(numbers.iter().map(|x| x.unwrap_or(f64::NAN)).collect())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn numbers_are_measured_by_difference() {
        let domain = Domain::new(Arc::new(Int64Array::from(vec![10, 20, 110]))).unwrap();
        assert_eq!(domain.extent(0, 1), 0.1);
        assert_eq!(domain.extent(0, 2), 1.0);
    }

    #[test]
    fn categories_are_measured_by_rank() {
        let domain = Domain::new(Arc::new(StringArray::from(vec!["a", "b", "z"]))).unwrap();
        assert_eq!(domain.extent(0, 1), 0.5);
    }

    #[test]
    fn null_lies_below_the_least_value() {
        let domain = Domain::new(Arc::new(Int64Array::from(vec![None, Some(5), Some(6)]))).unwrap();
        assert!(domain.has_null());
        assert!(domain.extent(0, 1) > 0.0);
        assert_eq!(domain.extent(0, 2), 1.0);
    }

    #[test]
    fn extremes_stay_in_range_and_in_order() {
        let values = [-f64::NAN.abs(), f64::NEG_INFINITY, f64::MIN, 0.0, f64::MAX, f64::INFINITY, f64::NAN];
        let domain = Domain::new(Arc::new(Float64Array::from(values.to_vec()))).unwrap();
        for code in 1..7 {
            let step = domain.extent(code - 1, code);
            assert!((0.0..=1.0).contains(&step), "{step}");
        }
        assert_eq!(domain.extent(0, 6), 1.0);
        assert!(domain.extent(2, 3) > 0.0, "numbers are still told apart");
    }
}
