//! Columns of values that rows have codes of.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type};

use crate::error::Result;
use crate::microdata::{Code, Codes, compact_views, of_width};

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

/// Codes whose values are wanted.
pub(super) trait Wanted {
    /// Returns the results of `of_code` on each of them.
    fn each<T>(self, of_code: impl Fn(u32) -> T) -> Vec<T>;
}

impl<I: ExactSizeIterator<Item = u32>> Wanted for I {
    fn each<T>(self, of_code: impl Fn(u32) -> T) -> Vec<T> {
        self.map(of_code).collect()
    }
}

/// Codes of some members.
pub(super) struct Members<'a> {
    pub codes: &'a Codes,
    pub members: &'a [u32],
}

impl Wanted for Members<'_> {
    fn each<T>(self, of_code: impl Fn(u32) -> T) -> Vec<T> {
        of_width!(self.codes, codes => self.members.iter().map(|&member| of_code(codes[member as usize].wide())).collect())
    }
}

/// Codes in some parts, one part after the other. Where the parts are is known before they are looked at: they are
/// all over the memory, and a loop that does little waits for many at once.
pub(super) struct Parts<'a> {
    pub codes: &'a Codes,
    pub parts: &'a [Range<usize>],
}

impl Wanted for Parts<'_> {
    fn each<T>(self, of_code: impl Fn(u32) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.parts.iter().map(Range::len).sum());
        of_width!(self.codes, codes => each_part(codes, self.parts, |part| {
            all.extend(part.iter().map(|&code| of_code(code.wide())));
        }));
        all
    }
}

/// Calls `each` with the codes of each part.
fn each_part<C: Code>(codes: &[C], parts: &[Range<usize>], mut each: impl FnMut(&[C])) {
    /// Parts that are looked at together.
    const PARTS: usize = 64;
    /// Codes of a part, if there are not more.
    const FEW: usize = 16;
    let mut near = [[C::default(); FEW]; PARTS];
    for parts in parts.chunks(PARTS) {
        // As they stand first, some too many: the fewer instructions there are between one part and the next, the more of them a processor asks for at
        // once.
        for (near, part) in near.iter_mut().zip(parts) {
            if let Some(codes) = codes.get(part.start..part.start + FEW) {
                near.copy_from_slice(codes);
            }
        }
        for (near, part) in near.iter().zip(parts) {
            let is_near = part.len() <= FEW && part.start + FEW <= codes.len();
            each(if is_near { &near[..part.len()] } else { &codes[part.clone()] });
        }
    }
}

/// Returns the values of codes, without a list of these where the values are numbers.
pub(super) fn gather_codes(values: &ArrayRef, codes: impl Wanted, data_type: &DataType) -> Result<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType>(values: &ArrayRef, codes: impl Wanted) -> ArrayRef {
        let values = values.as_primitive::<T>().values();
        Arc::new(PrimitiveArray::<T>::new(codes.each(|code| values[code as usize]).into(), None))
    }
    if values.null_count() == 0 && values.data_type() == data_type {
        match data_type {
            DataType::Int32 => return Ok(numbers::<Int32Type>(values, codes)),
            DataType::Int64 => return Ok(numbers::<Int64Type>(values, codes)),
            DataType::Float64 => return Ok(numbers::<Float64Type>(values, codes)),
            _ => {}
        }
    }
    gather(values, &codes.each(|code| code).into(), data_type)
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

    /// Of none, few and many codes, in any order, and up to the last one.
    #[test]
    fn parts_are_what_they_were() {
        let codes: Vec<u16> = (0..1000).map(|code| code * 7 % 1000).collect();
        let part = |number: usize| {
            let start = number * 389 % 1001;
            start..(start + number * 13 % 40).min(1000)
        };
        for parts in [0, 1, 63, 64, 65, 300] {
            let mut parts: Vec<Range<usize>> = (0..parts).map(part).collect();
            parts.push(985..1000);
            let expected: Vec<u16> = parts.iter().flat_map(|part| codes[part.clone()].iter().copied()).collect();
            let (mut found, mut lengths) = (Vec::new(), Vec::new());
            each_part(&codes, &parts, |part| {
                found.extend_from_slice(part);
                lengths.push(part.len());
            });
            assert_eq!(found, expected);
            assert!(lengths.into_iter().eq(parts.iter().map(Range::len)));
        }
        let mut found = Vec::new();
        each_part(&[7_u8, 8], &[0..2, 1..1, 1..2], |part| found.push(part.to_vec()));
        assert_eq!(found, [vec![7, 8], vec![], vec![8]]);
    }
}
