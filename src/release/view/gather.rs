//! Columns of values that rows have codes of.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type};

use crate::error::Result;
use crate::microdata::{Code, compact_views};

/// The values at these places, with buffers of their own. A view array that is only taken from shares the buffers of the
/// whole column, and some writers (Arrow IPC) write buffers as they are: all values of the input, in order of arrival.
pub(super) fn gather(values: &ArrayRef, places: &UInt32Array, data_type: &DataType) -> Result<ArrayRef> {
    let taken = compact_views(take(values, places, None)?);
    if taken.data_type() == data_type {
        return Ok(taken);
    }
    Ok(cast(&taken, data_type)?)
}

/// The same of codes, without a list of them where the values are numbers.
pub(super) fn gather_codes(
    values: &ArrayRef,
    codes: impl ExactSizeIterator<Item = u32>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType>(values: &ArrayRef, codes: impl ExactSizeIterator<Item = u32>) -> ArrayRef {
        let values = values.as_primitive::<T>().values();
        Arc::new(PrimitiveArray::<T>::from_iter_values(codes.map(|code| values[code as usize])))
    }
    if values.null_count() == 0 && values.data_type() == data_type {
        match data_type {
            DataType::Int32 => return Ok(numbers::<Int32Type>(values, codes)),
            DataType::Int64 => return Ok(numbers::<Int64Type>(values, codes)),
            DataType::Float64 => return Ok(numbers::<Float64Type>(values, codes)),
            _ => {}
        }
    }
    gather(values, &UInt32Array::from_iter_values(codes), data_type)
}

/// Appends parts of some codes.
pub(super) fn append_parts<C: Code + Into<u32>>(codes: &[C], parts: Vec<Range<usize>>, out: &mut Vec<u32>) {
    parts.into_iter().for_each(|part| out.extend(codes[part].iter().map(|&code| code.into())));
}
