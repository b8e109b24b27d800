//! Values of identifiers: whether they are equal, and their keyed hashes.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, make_comparator};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use siphasher::sip::SipHasher13;

use super::HashKey;
use crate::error::Result;

/// Returns a function that compares values of two columns, by their rows. It returns true if they are equal.
/// Fails when Arrow cannot compare values of the type.
pub(super) fn equality(one: &ArrayRef, other: &ArrayRef) -> Result<impl Fn(u32, u32) -> bool + Send + Sync + use<>> {
    let compare = make_comparator(one, other, SortOptions::default())?;
    Ok(move |row, of_other| compare(row as usize, of_other as usize) == Ordering::Equal)
}

/// Fills in keyed hashes of values from a row on. Row format makes this work for every type, and equal values hash alike on every platform.
pub(super) fn hash(values: &ArrayRef, start: usize, key: HashKey, hashes: &mut [u64]) -> Result<()> {
    let chunk = values.slice(start, hashes.len());
    let hasher = SipHasher13::new_with_keys(key[0], key[1]);
    if hash_numbers(&chunk, hasher, hashes) {
        return Ok(());
    }
    let converter = RowConverter::new(vec![SortField::new(chunk.data_type().clone())])?;
    let rows = converter.convert_columns(&[chunk])?;
    rows.iter().zip(hashes).for_each(|(row, hash)| *hash = hasher.hash(row.as_ref()));
    Ok(())
}

/// Fills in the same hashes for whole numbers without rows, and returns true; false for other values. A row is a byte 1 and the bytes of the number, the
/// highest first. The sign is turned round, so that the bytes of negative numbers come first.
fn hash_numbers(values: &ArrayRef, hasher: SipHasher13, hashes: &mut [u64]) -> bool {
    fn each<T: ArrowPrimitiveType, const BYTES: usize>(
        values: &ArrayRef,
        hasher: SipHasher13,
        hashes: &mut [u64],
        bytes_of: impl Fn(T::Native) -> [u8; BYTES],
    ) {
        for (hash, &value) in hashes.iter_mut().zip(values.as_primitive::<T>().values()) {
            let mut row = [1; 9];
            row[1..=BYTES].copy_from_slice(&bytes_of(value));
            *hash = hasher.hash(&row[..=BYTES]);
        }
    }
    match values.data_type() {
        _ if values.null_count() > 0 => return false,
        DataType::Int32 => each::<Int32Type, 4>(values, hasher, hashes, |value| (value ^ i32::MIN).to_be_bytes()),
        DataType::Int64 => each::<Int64Type, 8>(values, hasher, hashes, |value| (value ^ i64::MIN).to_be_bytes()),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, Int64Array};

    use super::*;

    /// Numbers hash as Arrow's rows of them do: a ledger that was written by either is read by the other.
    #[test]
    fn numbers_hash_as_their_rows() {
        let key = [3, 4];
        let columns: [ArrayRef; 3] = [
            Arc::new(Int32Array::from(vec![0, 7, -7, i32::MIN, i32::MAX])),
            Arc::new(Int64Array::from(vec![0, 7, -7, i64::MIN, i64::MAX])),
            Arc::new(Int64Array::from(vec![Some(0), None, Some(-7)])),
        ];
        for column in columns {
            let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())]).unwrap();
            let rows = converter.convert_columns(&[ArrayRef::clone(&column)]).unwrap();
            let hasher = SipHasher13::new_with_keys(key[0], key[1]);
            let expected: Vec<u64> = rows.iter().map(|row| hasher.hash(row.as_ref())).collect();
            let mut hashes = vec![0; column.len() - 1];
            hash(&column, 1, key, &mut hashes).unwrap();
            assert_eq!(hashes, expected[1..]);
        }
    }
}
