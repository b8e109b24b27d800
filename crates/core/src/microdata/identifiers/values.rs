//! Values of identifiers: whether they are equal, and their keyed hashes.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, make_comparator};
use datafusion::arrow::compute::SortOptions;
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
    let converter = RowConverter::new(vec![SortField::new(chunk.data_type().clone())])?;
    let rows = converter.convert_columns(&[chunk])?;
    rows.iter().zip(hashes).for_each(|(row, hash)| *hash = hasher.hash(row.as_ref()));
    Ok(())
}
