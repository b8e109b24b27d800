//! Secret random numbers of values and rows: whatever is decided by them is decided by lot, the same for a seed whatever order rows
//! arrive in.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use siphasher::sip::SipHasher13;

use super::ColumnEncoder;
use crate::error::{Error, Result};

/// Keyed hashes of a table's rows over all columns, and of one column's values.
pub struct RowHashes {
    encoder: ColumnEncoder,
    /// Type that the values are compared in.
    data_type: DataType,
    values: RowConverter,
    rows: RowConverter,
    known: usize,
    /// Hashes of values, and of rows.
    of_value: SipHasher13,
    of_row: SipHasher13,
    groups: Vec<usize>,
}

impl RowHashes {
    /// Makes the hashes for tables of this schema. Values are compared in the type of the column.
    ///
    /// # Errors
    /// When the rows cannot be hashed, or the values not be grouped by.
    pub fn try_new(schema: &Schema, column: usize, key: [u64; 2]) -> Result<Self> {
        let field = schema.field(column);
        let data_type = super::published_type(field.data_type()).unwrap_or_else(|| field.data_type().clone());
        // Keys of their own, so that a value and a row of it have nothing in common.
        let keyed = SipHasher13::new_with_keys(key[0], key[1]);
        let hasher = |of: u8| SipHasher13::new_with_keys(keyed.hash(&[of, 0]), keyed.hash(&[of, 1]));
        let encoded = Arc::new(Field::new(field.name(), data_type.clone(), true));
        Ok(Self {
            encoder: ColumnEncoder::try_new(encoded)?,
            values: RowConverter::new(vec![SortField::new(data_type.clone())])?,
            data_type,
            rows: RowConverter::new(
                schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect(),
            )?,
            known: 0,
            of_value: hasher(b'v'),
            of_row: hasher(b'r'),
            groups: Vec::new(),
        })
    }

    /// Returns true if rows with such columns can be hashed.
    pub fn supports(data_type: &DataType) -> bool {
        RowConverter::supports_fields(&[SortField::new(data_type.clone())])
    }

    /// Numbers values as each is first seen; appends the numbers, and the tags of those that are new in their order.
    ///
    /// # Errors
    /// When DataFusion's grouping fails, or there are more values than can be numbered.
    pub fn values(&mut self, column: &ArrayRef, numbers: &mut Vec<usize>) -> Result<Vec<u64>> {
        let column = cast(column, &self.data_type)?;
        self.encoder.intern(&column, &mut self.groups)?;
        numbers.extend_from_slice(&self.groups);
        let count = self.groups.iter().max().map_or(0, |most| most + 1);
        if count <= self.known {
            return Ok(Vec::new());
        }
        // The first row of each new value.
        let mut new = vec![u32::MAX; count - self.known];
        for (row, &group) in self.groups.iter().enumerate() {
            if let Some(first) = group.checked_sub(self.known).and_then(|at| new.get_mut(at)) {
                *first = (row as u32).min(*first);
            }
        }
        self.known = count;
        if self.known >= u32::MAX as usize {
            return Err(Error::refused("more sensitive values than can be numbered are not supported"));
        }
        let new = super::held(&take(&column, &UInt32Array::from(new), None)?)?;
        let new = cast(&new, &self.data_type)?;
        let rows = self.values.convert_columns(&[new])?;
        Ok(rows.iter().map(|row| self.of_value.hash(row.as_ref())).collect())
    }

    /// Computes tags of rows. Rows that are alike have one tag.
    ///
    /// # Errors
    /// When Arrow fails to convert them.
    pub fn rows(&self, columns: &[ArrayRef]) -> Result<Vec<u64>> {
        let rows = self.rows.convert_columns(columns)?;
        Ok(rows.iter().map(|row| self.of_row.hash(row.as_ref())).collect())
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        self.encoder.size() + self.rows.size() + self.values.size()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int16Array, RecordBatch, StringArray};
    use datafusion::arrow::buffer::NullBuffer;

    use super::*;

    /// Rows that are alike have one tag, in any batch. Values below NULLs do not matter.
    #[test]
    fn tags_tell_what_rows_are_alike() {
        let valid = NullBuffer::from(vec![true, false, false, true, true]);
        let numbers: ArrayRef = Arc::new(Int16Array::new(vec![0, 0, 5, 5, 0].into(), Some(valid)));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"; 5]));
        let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("t", texts, false)]).unwrap();
        let hashes = RowHashes::try_new(&batch.schema(), 1, [3, 4]).unwrap();
        let of = hashes.rows(batch.columns()).unwrap();
        assert!(of[1] == of[2] && of[0] == of[4]);
        assert!(of[0] != of[1] && of[3] != of[1] && of[0] != of[3]);
        assert_eq!(hashes.rows(batch.slice(2, 3).columns()).unwrap(), of[2..]);
        let other_key = RowHashes::try_new(&batch.schema(), 1, [3, 5]).unwrap();
        assert_ne!(other_key.rows(batch.columns()).unwrap(), of);
    }
}
