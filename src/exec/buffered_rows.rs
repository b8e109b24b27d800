//! A buffer of rows that have not left the window, and the batches that rows leave in.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, interleave_record_batch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::methods::reposition::Clock;

/// Batches by number. A row is the number of its batch and its place there.
#[derive(Default)]
pub(super) struct BufferedRows {
    batches: FxHashMap<u32, (RecordBatch, usize)>,
    next: u32,
    bytes: usize,
}

impl BufferedRows {
    /// Keeps a batch, and returns its first row; the others follow.
    pub(super) fn keep(&mut self, batch: RecordBatch) -> u64 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let rows = batch.num_rows();
        if rows > 0 {
            self.bytes += get_record_batch_memory_size(&batch);
            self.batches.insert(number, (batch, rows));
        }
        u64::from(number) << 32
    }

    /// Lets go of a row, and of its batch if that was the last one.
    pub(super) fn release(&mut self, row: u64) {
        let number = (row >> 32) as u32;
        if let Some((batch, rows)) = self.batches.get_mut(&number) {
            *rows -= 1;
            if *rows == 0 {
                self.bytes -= get_record_batch_memory_size(batch);
                self.batches.remove(&number);
            }
        }
    }

    /// A batch of some rows, of which there is at least one.
    ///
    /// # Errors
    /// When one is not held, which is a bug.
    pub(super) fn take(&self, rows: impl ExactSizeIterator<Item = u64>) -> Result<RecordBatch> {
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut batches: Vec<&RecordBatch> = Vec::new();
        let mut indices = Vec::with_capacity(rows.len());
        for row in rows {
            let number = (row >> 32) as u32;
            let place = match places.get(&number) {
                Some(&place) => place,
                None => {
                    let Some((batch, _)) = self.batches.get(&number) else {
                        return Err(Error::internal("a row that is to be published is gone"));
                    };
                    batches.push(batch);
                    places.insert(number, batches.len() - 1);
                    batches.len() - 1
                }
            };
            indices.push((place, row as u32 as usize));
        }
        Ok(interleave_record_batch(&batches, &indices)?)
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.bytes
    }
}

/// A column of times as numbers of its own unit.
///
/// # Errors
/// When there are NULLs.
pub(super) fn numbers_of(name: &str, column: &ArrayRef) -> Result<Int64Array> {
    if column.null_count() > 0 {
        return Err(Error::refused(format!(
            "column {name} has NULL, which is in no snapshot; leave such rows out: WHERE {name} IS NOT NULL"
        )));
    }
    let numbers = match column.data_type() {
        DataType::Date32 => cast(&cast(column, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(column, &DataType::Int64)?,
    };
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

/// When snapshots begin, as a column.
///
/// # Errors
/// When that is before the earliest time of the type.
pub(super) fn begins_of(
    snapshots: impl Iterator<Item = Option<i64>>,
    clock: Clock,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let out_of_range = || {
        Error::refused(
            "the first snapshot begins before the earliest time of the column's type; cast it to a wider one",
        )
    };
    let begin = |snapshot: i64| clock.begin(snapshot).ok_or_else(out_of_range);
    let begins = snapshots.map(|snapshot| snapshot.map(begin).transpose()).collect::<Result<Vec<_>>>()?;
    let numbers: ArrayRef = Arc::new(Int64Array::from(begins));
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let times = match data_type {
        DataType::Date32 => cast(&cast_with_options(&numbers, &DataType::Int32, &safe)?, data_type)?,
        _ => cast_with_options(&numbers, data_type, &safe)?,
    };
    match times.null_count() == numbers.null_count() {
        true => Ok(times),
        false => Err(out_of_range()),
    }
}
