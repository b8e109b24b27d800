//! The same snapshot again is recognized without keeping it.

use std::hash::Hasher;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use siphasher::sip128::{Hasher128, SipHasher13};

/// Sum of keyed hashes of all rows: the same for any order of rows, and meaningless without the key.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    key: [u64; 2],
    sum: u128,
    converter: Option<RowConverter>,
}

impl Fingerprint {
    /// Of no rows.
    pub(crate) fn new(key: [u64; 2]) -> Self {
        Self { key, sum: 0, converter: None }
    }

    /// Adds the rows of a batch; all batches must have the same types.
    ///
    /// # Errors
    /// When Arrow cannot encode a type as rows.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => {
                let fields = batch.columns().iter().map(|column| SortField::new(column.data_type().clone()));
                none.insert(RowConverter::new(fields.collect())?)
            }
        };
        let rows = converter.convert_columns(batch.columns())?;
        for row in &rows {
            let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
            hasher.write(row.as_ref());
            self.sum = self.sum.wrapping_add(hasher.finish128().as_u128());
        }
        Ok(())
    }

    /// The fingerprint in hexadecimal digits.
    pub(crate) fn finish(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};

    use super::*;

    fn batch(ages: Vec<Option<i32>>, names: Vec<&str>) -> RecordBatch {
        let columns: [(&str, ArrayRef); 2] =
            [("age", Arc::new(Int32Array::from(ages))), ("name", Arc::new(StringArray::from(names)))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn of(key: [u64; 2], batches: &[RecordBatch]) -> String {
        let mut fingerprint = Fingerprint::new(key);
        batches.iter().for_each(|batch| fingerprint.add(batch).unwrap());
        fingerprint.finish()
    }

    #[test]
    fn order_and_batches_do_not_matter_but_rows_and_key_do() {
        let whole = of([1, 2], &[batch(vec![Some(1), None, Some(3)], vec!["a", "b", "c"])]);
        let parts = [batch(vec![Some(3)], vec!["c"]), batch(vec![None, Some(1)], vec!["b", "a"])];
        assert_eq!(of([1, 2], &parts), whole);
        assert_ne!(of([1, 3], &parts), whole);
        for other in [
            batch(vec![Some(1), None, Some(3)], vec!["a", "b", "d"]),
            batch(vec![Some(3), None, Some(1)], vec!["a", "b", "c"]),
            batch(vec![Some(1), None], vec!["a", "b"]),
            batch(vec![Some(1), None, Some(3), Some(3)], vec!["a", "b", "c", "c"]),
        ] {
            assert_ne!(of([1, 2], &[other]), whole);
        }
    }
}
