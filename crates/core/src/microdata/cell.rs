//! Cells: a table in parts that are anonymized one after the other, so that none is larger than memory.
//!
//! The cell of a value is a hash of it with a key that everybody has. It must never change: people who came to another cell than
//! before would need partners of their signature there.

use std::hash::Hasher;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::arrow::row::{RowConverter, SortField};
use siphasher::sip::SipHasher13;

use super::held;
use crate::error::Result;

/// Most cells of a release.
pub const MOST_CELLS: u32 = 65_536;

/// No secret: what cells promise holds for a reader who knows everybody's.
const KEY: [u64; 2] = [u64::from_le_bytes(*b"anonymiz"), u64::from_le_bytes(*b"e: cells")];

/// Returns the cell of each value, from 0 to before `cells`. Equal whole numbers have one cell whatever their types are, and so have equal
/// texts; NULLs share a cell.
///
/// # Errors
/// When Arrow cannot compare values of the type.
pub fn cells_of(values: &ArrayRef, cells: u32) -> Result<UInt32Array> {
    let values = match values.data_type() {
        DataType::Dictionary(_, of) => cast(values, of)?,
        _ => ArrayRef::clone(values),
    };
    let cells = u64::from(cells.max(1));
    let cell = |kind: u8, bytes: &[u8]| {
        let mut hasher = SipHasher13::new_with_keys(KEY[0], KEY[1]);
        hasher.write_u8(kind);
        hasher.write(bytes);
        (hasher.finish() % cells) as u32
    };
    let nothing = cell(0, &[]);
    let found = if values.data_type().is_integer() {
        // Wide enough for all of them.
        let wide = cast(&values, &DataType::Decimal128(20, 0))?;
        let numbers = wide.as_primitive::<Decimal128Type>().iter();
        numbers.map(|number| number.map_or(nothing, |number| cell(1, &number.to_le_bytes()))).collect::<Vec<_>>()
    } else if values.data_type().is_string() {
        let texts = cast(&held(&values)?, &DataType::Utf8View)?;
        texts.as_string_view().iter().map(|text| text.map_or(nothing, |text| cell(2, text.as_bytes()))).collect()
    } else {
        let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(&values))?;
        let is_null = |row: usize| values.is_null(row);
        let cells = rows.iter().enumerate();
        cells.map(|(place, row)| if is_null(place) { nothing } else { cell(3, row.as_ref()) }).collect()
    };
    Ok(UInt32Array::from(found))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array, StringArray,
        StringViewArray, UInt64Array,
    };

    use super::*;

    fn of(values: impl Array + 'static) -> Vec<u32> {
        let values: ArrayRef = Arc::new(values);
        cells_of(&values, 1000).unwrap().values().to_vec()
    }

    /// A publication is continued for years, by other versions.
    #[test]
    fn cells_never_change() {
        assert_eq!(of(Int64Array::from(vec![Some(1), Some(-7), None])), GOLDEN_INTEGERS);
        assert_eq!(of(StringArray::from(vec!["", "p-0001", "Ω"])), GOLDEN_TEXTS);
        assert_eq!(of(Float64Array::from(vec![1.5])), GOLDEN_OTHERS[..1]);
        assert_eq!(of(Date32Array::from(vec![19_000])), GOLDEN_OTHERS[1..2]);
        let uuid = FixedSizeBinaryArray::try_from_iter([[7_u8; 16]].into_iter()).unwrap();
        assert_eq!(of(uuid), GOLDEN_OTHERS[2..3]);
        let decimal = Decimal128Array::from(vec![150]).with_precision_and_scale(5, 2).unwrap();
        assert_eq!(of(decimal), GOLDEN_OTHERS[3..4]);
    }

    const GOLDEN_INTEGERS: [u32; 3] = [186, 362, 148];
    const GOLDEN_TEXTS: [u32; 3] = [84, 664, 945];
    const GOLDEN_OTHERS: [u32; 4] = [442, 395, 91, 859];

    /// A column that became wider does not move anybody.
    #[test]
    fn types_of_numbers_and_texts_do_not_matter() {
        let wide = of(Int64Array::from(vec![0, 1, 2, 77]));
        assert_eq!(wide, of(Int32Array::from(vec![0, 1, 2, 77])));
        assert_eq!(wide, of(UInt64Array::from(vec![0, 1, 2, 77])));
        assert_eq!(of(StringArray::from(vec!["a", "b"])), of(StringViewArray::from(vec!["a", "b"])));
        assert_eq!(of(UInt64Array::from(vec![u64::MAX])).len(), 1);
    }

    #[test]
    fn cells_are_of_one_size() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        let mut rows = [0_u32; 10];
        for &cell in cells_of(&values, 10).unwrap().values() {
            rows[cell as usize] += 1;
        }
        // Four standard deviations of 95.
        assert!(rows.iter().all(|rows| rows.abs_diff(10_000) < 400), "{rows:?}");
    }
}
