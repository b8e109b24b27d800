//! Columns of values that rows have codes of.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type};

use crate::error::Result;
use crate::microdata::compact_views;

/// Returns the values at these places, with buffers of their own. A view array that is only taken from shares the buffers of the
/// whole column, and some writers (Arrow IPC) write buffers as they are: all values of the input, in order of arrival.
pub(super) fn gather(values: &ArrayRef, places: &UInt32Array, data_type: &DataType) -> Result<ArrayRef> {
    let taken = match are_long(values) {
        true => each_once(values, places)?,
        false => compact_views(take(values, places, None)?),
    };
    if taken.data_type() == data_type {
        return Ok(taken);
    }
    Ok(cast(&taken, data_type)?)
}

/// Returns true if repeated values are worth looking for: 64 bytes or more, on average.
fn are_long(values: &ArrayRef) -> bool {
    let buffers = match values.data_type() {
        DataType::Utf8View => values.as_string_view().data_buffers(),
        DataType::BinaryView => values.as_binary_view().data_buffers(),
        _ => return false,
    };
    buffers.iter().map(|buffer| buffer.len()).sum::<usize>() / 64 >= values.len().max(1)
}

/// Returns the values at these places as views, in whose buffers each is once.
fn each_once(values: &ArrayRef, places: &UInt32Array) -> Result<ArrayRef> {
    let mut different: Vec<u32> = places.iter().flatten().collect();
    different.sort_unstable();
    different.dedup();
    let of_place = |place: u32| different.partition_point(|other| *other < place) as u32;
    let among: UInt32Array = places.iter().map(|place| place.map(of_place)).collect();
    let own = compact_views(take(values, &UInt32Array::from(different), None)?);
    Ok(take(&own, &among, None)?)
}

/// Returns the values of codes as a column of this type. Numbers need no list of codes.
pub(super) fn gather_codes(
    values: &ArrayRef,
    codes: impl Iterator<Item = u32>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType>(values: &ArrayRef, codes: impl Iterator<Item = u32>) -> ArrayRef {
        let values = values.as_primitive::<T>().values();
        Arc::new(PrimitiveArray::<T>::new(codes.map(|code| values[code as usize]).collect(), None))
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;

    use super::*;

    /// Long texts that come again share their bytes, and there are no others beside them.
    #[test]
    fn long_texts_are_there_once() {
        let texts: Vec<String> = (0..50).map(|text| format!("{text:04}").repeat(1000)).collect();
        let values: ArrayRef = Arc::new(texts.iter().map(Some).collect::<StringViewArray>());
        let places: UInt32Array = (0..2000).map(|place| (place % 7 != 3).then_some(place * 11 % 5 + 40)).collect();
        let found = gather(&values, &places, &DataType::Utf8View).unwrap();
        let expected = places.iter().map(|place| place.map(|place| texts[place as usize].as_str()));
        assert!(found.as_string_view().iter().eq(expected.clone()));
        let bytes: usize = found.as_string_view().data_buffers().iter().map(|buffer| buffer.len()).sum();
        assert_eq!(bytes, 5 * 4000);
        let plain = gather(&values, &places, &DataType::Utf8).unwrap();
        assert!(plain.as_string::<i32>().iter().eq(expected));
        assert!(!are_long(&(Arc::new(StringViewArray::from(vec!["a text of thirty or more bytes"])) as ArrayRef)));
    }
}
