//! Scales by which values of a column are counted or measured, and their places.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::Result;

use crate::microdata::is_continuous;

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// Way to take the length of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scale {
    /// Whole numbers and dates: from `a` to `b` there are `b - a + 1` values.
    Steps,
    /// Categories: the values between two in an order.
    Listed,
    /// Everything else is measured: from `a` to `b` it is `b - a`.
    Continuous,
}

impl Scale {
    /// Returns the scale of a type.
    pub(crate) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Steps,
            DataType::Date32 | DataType::Date64 => Self::Steps,
            data_type if is_continuous(data_type) => Self::Continuous,
            _ => Self::Listed,
        }
    }
}

/// Returns the values of a [`Scale::Steps`] column as whole numbers, dates as days.
/// Fails when Arrow cannot convert them.
pub(crate) fn steps(values: &ArrayRef) -> Result<Int64Array> {
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let whole = match values.data_type() {
        DataType::Date32 => cast_with_options(values, &DataType::Int32, &safe)?,
        _ => ArrayRef::clone(values),
    };
    let whole = cast_with_options(&whole, &DataType::Int64, &safe)?.as_primitive::<Int64Type>().clone();
    Ok(match values.data_type() {
        DataType::Date64 => whole.unary(|milliseconds| milliseconds.div_euclid(MILLISECONDS_PER_DAY)),
        _ => whole,
    })
}

/// Returns the inverse of [`steps`]; NULL for numbers that the type has not.
/// Fails when Arrow cannot convert them.
pub(crate) fn from_steps(steps: Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let whole: ArrayRef = match data_type {
        DataType::Date64 => Arc::new(steps.unary_opt::<_, Int64Type>(|day| day.checked_mul(MILLISECONDS_PER_DAY))),
        _ => Arc::new(steps),
    };
    let whole = match data_type {
        DataType::Date32 => cast_with_options(&whole, &DataType::Int32, &safe)?,
        _ => whole,
    };
    Ok(cast_with_options(&whole, data_type, &safe)?)
}

/// Returns the values of a measured or counted column as doubles: numbers, days, ticks.
/// Fails when Arrow cannot convert them.
pub(crate) fn coordinates(values: &ArrayRef) -> Result<Float64Array> {
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let numbers = match values.data_type() {
        data_type if Scale::of(data_type) == Scale::Steps => Arc::new(steps(values)?) as ArrayRef,
        DataType::Time32(_) => cast_with_options(values, &DataType::Int32, &safe)?,
        data_type if data_type.is_temporal() => cast_with_options(values, &DataType::Int64, &safe)?,
        _ => ArrayRef::clone(values),
    };
    Ok(cast_with_options(&numbers, &DataType::Float64, &safe)?.as_primitive::<Float64Type>().clone())
}

/// Returns the inverse of [`coordinates`], rounded where the type is; NULL for numbers that the type has not.
/// Fails when Arrow cannot convert them.
pub(crate) fn from_coordinates(numbers: Vec<f64>, data_type: &DataType) -> Result<ArrayRef> {
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let whole = || -> Int64Array {
        // As doubles: the greatest i64 is none.
        let limits = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
        numbers.iter().map(|x| limits.contains(x).then(|| x.round() as i64)).collect()
    };
    if Scale::of(data_type) == Scale::Steps {
        return from_steps(whole(), data_type);
    }
    Ok(match data_type {
        DataType::Time32(_) => {
            let ticks = cast_with_options(&whole(), &DataType::Int32, &safe)?;
            cast_with_options(&ticks, data_type, &safe)?
        }
        data_type if data_type.is_temporal() => cast_with_options(&whole(), data_type, &safe)?,
        _ => cast_with_options(&Float64Array::from(numbers), data_type, &safe)?,
    })
}

/// Returns the values of a type that has few.
pub(crate) fn all_values(data_type: &DataType) -> Option<ArrayRef> {
    match data_type {
        DataType::Boolean => Some(Arc::new(BooleanArray::from(vec![false, true]))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Date32Array, Date64Array, Decimal128Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn values_come_back() {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(-3), None, Some(7)])),
            Arc::new(Date32Array::from(vec![Some(-3), None, Some(20_000)])),
            Arc::new(Date64Array::from(vec![Some(-3 * MILLISECONDS_PER_DAY), None, Some(MILLISECONDS_PER_DAY)])),
            Arc::new(Float64Array::from(vec![0.5, -1.25, 3.0])),
            Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_000_000, 5, -6])),
            Arc::new(Decimal128Array::from(vec![125, -250, 300]).with_precision_and_scale(9, 2).unwrap()),
        ];
        for array in arrays {
            if Scale::of(array.data_type()) == Scale::Steps {
                assert_eq!(&from_steps(steps(&array).unwrap(), array.data_type()).unwrap(), &array);
            } else {
                let numbers = coordinates(&array).unwrap().values().to_vec();
                assert_eq!(&from_coordinates(numbers, array.data_type()).unwrap(), &array);
            }
        }
    }

    #[test]
    fn what_a_type_has_not_is_null() {
        assert!(from_steps(Int64Array::from(vec![200]), &DataType::Int8).unwrap().is_null(0));
        assert!(from_coordinates(vec![f64::INFINITY], &DataType::Int32).unwrap().is_null(0));
    }
}
