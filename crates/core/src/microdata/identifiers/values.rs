//! Values of identifiers: whether they are equal, and their keyed hashes.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, DynComparator, make_comparator};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, Int32Type, Int64Type, UInt32Type, UInt64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use siphasher::sip::SipHasher13;

use super::HashKey;
use crate::error::Result;

/// Values that are looked at together.
const NEAR: usize = 64;

/// Comparison of values of one column with those of another.
pub(super) enum Equality {
    /// Numbers of one width, as they are in memory.
    Bits32(ScalarBuffer<u32>, ScalarBuffer<u32>),
    Bits64(ScalarBuffer<u64>, ScalarBuffer<u64>),
    Any(DynComparator),
}

impl Equality {
    pub(super) fn between(one: &ArrayRef, other: &ArrayRef) -> Result<Self> {
        if one.data_type() == other.data_type() {
            let both = match one.data_type().primitive_width() {
                Some(4) => numbers_of(one).zip(numbers_of(other)).map(|(one, other)| Self::Bits32(one, other)),
                Some(8) => numbers_of(one).zip(numbers_of(other)).map(|(one, other)| Self::Bits64(one, other)),
                _ => None,
            };
            if let Some(both) = both {
                return Ok(both);
            }
        }
        Ok(Self::Any(make_comparator(one, other, SortOptions::default())?))
    }

    /// Appends for each of these pairs whether they are equal. Values are all over the memory, and the fewer instructions there are
    /// between a look and the next, the more of them a processor asks for at once: what is to be compared is put side by side first.
    pub(super) fn append(&self, pairs: impl Iterator<Item = (u32, u32)>, all: &mut Vec<bool>) {
        fn of<T: Copy + Default + PartialEq>(
            one: &[T],
            other: &[T],
            mut pairs: impl Iterator<Item = (u32, u32)>,
            all: &mut Vec<bool>,
        ) {
            let (mut rows, mut near) = ([(0, 0); NEAR], [[T::default(); 2]; NEAR]);
            loop {
                let mut count = 0;
                for (place, pair) in rows.iter_mut().zip(&mut pairs) {
                    *place = pair;
                    count += 1;
                }
                for ([near, _], &(row, _)) in near.iter_mut().zip(&rows[..count]) {
                    *near = one[row as usize];
                }
                for ([_, near], &(_, row)) in near.iter_mut().zip(&rows[..count]) {
                    *near = other[row as usize];
                }
                all.extend(near[..count].iter().map(|[one, other]| one == other));
                if count < NEAR {
                    return;
                }
            }
        }
        match self {
            Self::Bits32(one, other) => of(one, other, pairs, all),
            Self::Bits64(one, other) => of(one, other, pairs, all),
            Self::Any(compare) => {
                all.extend(pairs.map(|(row, of_other)| compare(row as usize, of_other as usize) == Ordering::Equal));
            }
        }
    }

    #[inline]
    pub(super) fn holds(&self, row: u32, of_other: u32) -> bool {
        let (row, of_other) = (row as usize, of_other as usize);
        match self {
            Self::Bits32(one, other) => one[row] == other[of_other],
            Self::Bits64(one, other) => one[row] == other[of_other],
            Self::Any(compare) => compare(row, of_other) == Ordering::Equal,
        }
    }
}

/// Returns the numbers of an array as they are in memory, of this width; `None` if some are NULL.
pub(super) fn numbers_of<T: ArrowNativeType>(column: &ArrayRef) -> Option<ScalarBuffer<T>> {
    let data = column.to_data();
    let numbers = |buffer: &Buffer| ScalarBuffer::new(buffer.clone(), data.offset(), data.len());
    if column.null_count() > 0 { None } else { data.buffers().first().map(numbers) }
}

/// Computes keyed hashes of the values from a row on. Row format makes this work for every type, and equal values
/// hash alike on every platform.
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

/// Returns the same hashes of whole numbers, as most identifiers are, without the rows: one byte that says that there is a number, and its bytes in their
/// order. Whether they are numbers.
fn hash_numbers(values: &ArrayRef, hasher: SipHasher13, hashes: &mut [u64]) -> bool {
    fn each<T: ArrowPrimitiveType>(values: &ArrayRef, hashes: &mut [u64], hash: impl Fn(T::Native) -> u64) {
        let values = values.as_primitive::<T>().values();
        hashes.iter_mut().zip(values).for_each(|(place, &value)| *place = hash(value));
    }
    if values.null_count() > 0 {
        return false;
    }
    let of_four = |bytes: u32| {
        let [a, b, c, d] = bytes.to_be_bytes();
        hasher.hash(&[1, a, b, c, d])
    };
    let of_eight = |bytes: u64| {
        let [a, b, c, d, e, f, g, h] = bytes.to_be_bytes();
        hasher.hash(&[1, a, b, c, d, e, f, g, h])
    };
    // With the sign turned round, the bytes of negative numbers come first.
    match values.data_type() {
        DataType::Int32 => each::<Int32Type>(values, hashes, |value| of_four(value as u32 ^ 1 << 31)),
        DataType::UInt32 => each::<UInt32Type>(values, hashes, of_four),
        DataType::Int64 => each::<Int64Type>(values, hashes, |value| of_eight(value as u64 ^ 1 << 63)),
        DataType::UInt64 => each::<UInt64Type>(values, hashes, of_eight),
        _ => return false,
    }
    true
}
