//! Rows as bytes to hash, of one length: rows that are alike in all columns have the same bytes, and others have others.

use datafusion::arrow::array::{Array, ArrayData, ArrayRef};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, Schema};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use siphasher::sip::SipHasher13;

use crate::error::Result;

/// Number of rows whose bytes are together at a time: they stay in the nearest cache.
const BLOCK: usize = 256;

/// Layout of a table's columns in the bytes of a row: numbers as they are, a hash of all other columns together,
/// and a bit of each number that can be NULL.
pub(super) struct RowBytes {
    numbers: Vec<Number>,
    /// The other columns, where their hash is, and how they are made to bytes.
    others: Option<(Vec<usize>, usize, RowConverter, SipHasher13)>,
    /// Length of a row, a multiple of eight.
    length: usize,
}

/// A column of numbers of up to eight bytes.
struct Number {
    column: usize,
    width: usize,
    at: usize,
    /// Byte and bit that tell NULL.
    null: Option<(usize, u8)>,
}

impl RowBytes {
    /// Makes the layout for tables of this schema. `hasher` hashes what is not numbers.
    ///
    /// # Errors
    /// When rows with such columns cannot be made to bytes.
    pub(super) fn try_new(schema: &Schema, hasher: SipHasher13) -> Result<Self> {
        let width = |column: usize| width(schema.field(column).data_type());
        let (mut numbers, others): (Vec<usize>, Vec<usize>) =
            (0..schema.fields().len()).partition(|&column| width(column).is_some());
        let mut end = 0;
        let mut room = |bytes: usize| {
            end += bytes;
            end - bytes
        };
        // The hash and wide numbers first: all of them begin where a number of their width may.
        let others = match others.is_empty() {
            true => None,
            false => {
                let fields = others.iter().map(|&column| SortField::new(schema.field(column).data_type().clone()));
                let converter = RowConverter::new(fields.collect())?;
                Some((others, room(size_of::<u64>()), converter, hasher))
            }
        };
        numbers.sort_by_key(|&column| std::cmp::Reverse(width(column)));
        let place = |column| {
            let width = width(column)?;
            Some(Number { column, width, at: room(width), null: None })
        };
        let mut numbers: Vec<Number> = numbers.into_iter().filter_map(place).collect();
        let nullable = numbers.iter_mut().filter(|number| schema.field(number.column).is_nullable());
        let mut bits = 0;
        for (bit, number) in nullable.enumerate() {
            number.null = Some((end + bit / 8, 1 << (bit % 8)));
            bits = bit + 1;
        }
        let length = (end + bits.div_ceil(8)).next_multiple_of(size_of::<u64>());
        Ok(Self { numbers, others, length })
    }

    /// Hashes each row with `hasher`.
    ///
    /// # Errors
    /// When Arrow fails to convert them.
    pub(super) fn hash(&self, columns: &[ArrayRef], hasher: SipHasher13) -> Result<Vec<u64>> {
        let rows = columns.first().map_or(0, |column| column.len());
        let others = match &self.others {
            Some((others, at, converter, hasher)) => {
                let others: Vec<ArrayRef> = others.iter().map(|&column| columns[column].clone()).collect();
                Some((*at, converter.convert_columns(&others)?, hasher))
            }
            None => None,
        };
        let numbers: Vec<_> = self.numbers.iter().map(|number| (number, columns[number.column].to_data())).collect();
        let mut hashes = Vec::with_capacity(rows);
        let mut bytes = vec![0; BLOCK * self.length];
        for start in (0..rows).step_by(BLOCK) {
            let count = BLOCK.min(rows - start);
            let bytes = &mut bytes[..count * self.length];
            bytes.fill(0);
            for (number, column) in &numbers {
                number.put(column, start, bytes, self.length);
            }
            if let Some((at, others, hasher)) = &others {
                put_hashes(others, start, hasher, *at, bytes, self.length);
            }
            hashes.extend(bytes.chunks_exact(self.length).map(|row| hasher.hash(row)));
        }
        Ok(hashes)
    }

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        self.others.as_ref().map_or(0, |(_, _, converter, _)| converter.size())
    }
}

/// Returns the bytes of a number that is put as it is.
fn width(data_type: &DataType) -> Option<usize> {
    // Pairs of numbers are not laid out as one number.
    let one = !matches!(data_type, DataType::Interval(_));
    data_type.primitive_width().filter(|&width| one && width <= size_of::<u64>())
}

impl Number {
    /// Puts the numbers of rows from `start` into zeroed bytes, until these are full.
    fn put(&self, column: &ArrayData, start: usize, bytes: &mut [u8], length: usize) {
        match self.width {
            1 => self.put_as(column, u8::to_le_bytes, start, bytes, length),
            2 => self.put_as(column, u16::to_le_bytes, start, bytes, length),
            4 => self.put_as(column, u32::to_le_bytes, start, bytes, length),
            _ => self.put_as(column, u64::to_le_bytes, start, bytes, length),
        }
    }

    fn put_as<T: ArrowNativeType, const WIDTH: usize>(
        &self,
        column: &ArrayData,
        to_bytes: impl Fn(T) -> [u8; WIDTH],
        start: usize,
        bytes: &mut [u8],
        length: usize,
    ) {
        for (row, &number) in bytes.chunks_exact_mut(length).zip(&column.buffer::<T>(0)[start..]) {
            row[self.at..self.at + WIDTH].copy_from_slice(&to_bytes(number));
        }
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some((nulls, (at, bit))) = nulls.zip(self.null) {
            let rows = bytes.chunks_exact_mut(length).enumerate();
            for (_, row) in rows.filter(|(row, _)| nulls.is_null(start + row)) {
                // What is there in place of a number may be anything.
                row[self.at..self.at + WIDTH].fill(0);
                row[at] |= bit;
            }
        }
    }
}

fn put_hashes(rows: &Rows, start: usize, hasher: &SipHasher13, at: usize, bytes: &mut [u8], length: usize) {
    for (row, bytes) in bytes.chunks_exact_mut(length).enumerate() {
        let hash = hasher.hash(rows.row(start + row).as_ref());
        bytes[at..at + size_of::<u64>()].copy_from_slice(&hash.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use datafusion::arrow::array::{Date32Array, Float64Array, Int16Array, RecordBatch, StringArray, UInt8Array};
    use datafusion::arrow::compute::concat_batches;
    use datafusion::arrow::datatypes::Field;
    use proptest::prelude::*;

    use super::*;

    type Row = (Option<u8>, Option<i16>, i32, Option<i8>, Option<&'static str>);

    fn batch(rows: &[Row]) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<UInt8Array>()),
            Arc::new(rows.iter().map(|row| row.1).collect::<Int16Array>()),
            Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Date32Array>()),
            Arc::new(rows.iter().map(|row| row.3.map(f64::from)).collect::<Float64Array>()),
            Arc::new(rows.iter().map(|row| row.4).collect::<StringArray>()),
        ];
        let field = |(at, column): (usize, &ArrayRef)| Field::new(at.to_string(), column.data_type().clone(), at != 2);
        let schema = Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>());
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    fn hashes(batch: &RecordBatch) -> Vec<u64> {
        let hasher = |key| SipHasher13::new_with_keys(key, 7);
        let bytes = RowBytes::try_new(&batch.schema(), hasher(1)).unwrap();
        bytes.hash(batch.columns(), hasher(2)).unwrap()
    }

    fn row() -> impl Strategy<Value = Row> {
        let text = prop_oneof![Just(None), Just(Some("")), Just(Some("a")), Just(Some("b"))];
        (prop::option::of(0_u8..2), prop::option::of(-1_i16..1), 0..2, prop::option::of(0_i8..2), text)
    }

    proptest! {
        /// Rows are alike if their hashes are, anywhere and with anything for NULLs.
        #[test]
        fn hashes_tell_what_rows_are_alike(
            rows in prop::collection::vec(row(), 1..(3 * BLOCK)),
            cut in any::<prop::sample::Index>(),
        ) {
            let batch = batch(&rows);
            let of_all = hashes(&batch);
            let (mut by_row, mut by_hash) = (HashMap::new(), HashMap::new());
            for (row, &hash) in rows.iter().zip(&of_all) {
                prop_assert_eq!(*by_row.entry(row).or_insert(hash), hash);
                prop_assert_eq!(*by_hash.entry(hash).or_insert(row), row);
            }
            let cut = cut.index(rows.len());
            let parts = [batch.slice(0, cut), batch.slice(cut, rows.len() - cut)];
            prop_assert_eq!(parts.iter().flat_map(hashes).collect::<Vec<_>>(), of_all.clone());
            prop_assert_eq!(hashes(&concat_batches(&batch.schema(), &parts).unwrap()), of_all);
        }
    }

    /// NULL is not 0, and the numbers of one column are not those of another.
    #[test]
    fn what_is_in_place_of_null_does_not_count() {
        use datafusion::arrow::buffer::NullBuffer;

        let table = |numbers: Vec<i16>, valid: Vec<bool>| {
            let column = Int16Array::new(numbers.into(), Some(NullBuffer::from(valid)));
            RecordBatch::try_from_iter_with_nullable([("n", Arc::new(column) as ArrayRef, true)]).unwrap()
        };
        let of = hashes(&table(vec![0, 0, 5, 5], vec![true, false, false, true]));
        assert_eq!(of[1], of[2]);
        assert!(of[0] != of[1] && of[3] != of[1] && of[0] != of[3]);
    }

    /// More columns that can be NULL than a byte has bits, and none at all.
    #[test]
    fn many_columns_and_none() {
        let column = |null: bool| Arc::new(Int16Array::from(vec![(!null).then_some(3)])) as ArrayRef;
        let of = |null: usize| {
            let columns = (0..19).map(|at| (at.to_string(), column(at == null), true));
            hashes(&RecordBatch::try_from_iter_with_nullable(columns).unwrap())[0]
        };
        let mut all: Vec<u64> = (0..20).map(of).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20);
        assert!(hashes(&RecordBatch::new_empty(Arc::new(Schema::empty()))).is_empty());
    }
}
