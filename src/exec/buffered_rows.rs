//! A buffer of rows in the window, and the batches that rows leave in.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, Int64Builder, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, interleave_record_batch};
use datafusion::arrow::datatypes::{DataType, Int64Type};

use crate::error::{Error, Result};
use crate::methods::reposition::Clock;

/// Batches by number. A row is the number of its batch and its place there.
#[derive(Default)]
pub(super) struct BufferedRows {
    /// Batches from the first one that is held, with how many of their rows are.
    batches: VecDeque<Option<(RecordBatch, usize)>>,
    /// Number of that one.
    first: u32,
    bytes: usize,
}

impl BufferedRows {
    /// Keeps a batch, and returns its first row; the others follow.
    pub(super) fn keep(&mut self, batch: RecordBatch) -> u64 {
        let number = self.first.wrapping_add(self.batches.len() as u32);
        let rows = batch.num_rows();
        if rows > 0 {
            self.bytes += bytes_of(&batch);
        }
        self.batches.push_back((rows > 0).then_some((batch, rows)));
        u64::from(number) << 32
    }

    fn place(&self, row: u64) -> usize {
        ((row >> 32) as u32).wrapping_sub(self.first) as usize
    }

    /// Lets go of rows, and of batches of which they were the last ones.
    pub(super) fn release(&mut self, rows: impl Iterator<Item = u64>) {
        // Those that go together are of few batches.
        let (mut last, mut count) = (0, 0);
        for row in rows {
            let place = self.place(row);
            if place != last {
                self.let_go(last, count);
                (last, count) = (place, 0);
            }
            count += 1;
        }
        self.let_go(last, count);
        while self.batches.pop_front_if(|slot| slot.is_none()).is_some() {
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Lets go of some rows of a batch.
    fn let_go(&mut self, place: usize, count: usize) {
        let Some(slot) = self.batches.get_mut(place) else { return };
        let Some((batch, rows)) = slot else { return };
        *rows -= count;
        if *rows == 0 {
            self.bytes -= bytes_of(batch);
            *slot = None;
        }
    }

    /// Returns a batch of some rows, of which there is at least one.
    /// Fails when one is not held, which is a bug.
    pub(super) fn take(&self, rows: impl ExactSizeIterator<Item = u64>) -> Result<RecordBatch> {
        const NONE: usize = usize::MAX;
        let mut taken = vec![NONE; self.batches.len()];
        let mut batches: Vec<&RecordBatch> = Vec::new();
        let mut indices = Vec::with_capacity(rows.len());
        for row in rows {
            let place = self.place(row);
            let Some(Some((batch, _))) = self.batches.get(place) else {
                return Err(Error::internal("a row that is to be published is gone"));
            };
            if taken[place] == NONE {
                taken[place] = batches.len();
                batches.push(batch);
            }
            indices.push((taken[place], row as u32 as usize));
        }
        Ok(interleave_record_batch(&batches, &indices)?)
    }

    pub(super) fn size(&self) -> usize {
        self.bytes
    }
}

/// Returns the bytes of the rows of a batch. Batches can be parts of one, and share its memory: a table that was in memory before is cut into such.
pub(super) fn bytes_of(batch: &RecordBatch) -> usize {
    let of_column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_buffer_bytes_used() + size_of::<u128>() * column.len(),
        DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used() + size_of::<u128>() * column.len(),
        // Long texts inside of others would not be counted.
        nested if nested.is_nested() => column.get_array_memory_size(),
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
    };
    batch.columns().iter().map(of_column).sum()
}

/// Returns a column of times as numbers of its own unit.
/// Fails when there are NULLs.
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

/// Makes the column of the beginnings of snapshots, from runs of rows of one snapshot.
/// Fails when that is before the earliest time of the type.
pub(super) fn begins_of(
    runs: impl Iterator<Item = (Option<i64>, usize)>,
    clock: Clock,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let out_of_range = || {
        Error::refused(
            "the first snapshot begins before the earliest time of the column's type; cast it to a wider one",
        )
    };
    let mut begins = Int64Builder::new();
    for (snapshot, rows) in runs {
        match snapshot {
            Some(snapshot) => begins.append_value_n(clock.begin(snapshot).ok_or_else(out_of_range)?, rows),
            None => begins.append_nulls(rows),
        }
    }
    let numbers: ArrayRef = Arc::new(begins.finish());
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{StringArray, StringViewArray};

    use super::*;

    #[test]
    fn parts_share_what_a_batch_takes() {
        let texts = || (0..10_000).map(|row| Some(format!("a text of some length, {row}")));
        let columns: [(&str, ArrayRef); 3] = [
            ("number", Arc::new((0..10_000).map(Some).collect::<Int64Array>())),
            ("text", Arc::new(texts().collect::<StringArray>())),
            ("view", Arc::new(texts().collect::<StringViewArray>())),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let whole = bytes_of(&batch);
        assert!(whole > 10_000 * 80, "{whole}");
        let parts: usize = (0..100).map(|part| bytes_of(&batch.slice(100 * part, 100))).sum();
        assert!((whole..whole + 100 * 100).contains(&parts), "{parts} {whole}");
        let mut rows = BufferedRows::default();
        let first: Vec<u64> = (0..100).map(|part| rows.keep(batch.slice(100 * part, 100))).collect();
        assert_eq!(rows.size(), parts);
        first.into_iter().for_each(|first| rows.release((0..100).map(|row| first + row)));
        assert_eq!(rows.size(), 0);
    }

    /// Rows of several batches that leave together, in any order; the first batch goes before the second.
    #[test]
    fn rows_of_several_batches_leave_together() {
        let batch =
            |rows: i64| RecordBatch::try_from_iter([("n", Arc::new((0..rows).collect::<Int64Array>()) as _)]).unwrap();
        let mut rows = BufferedRows::default();
        let (a, b, c) = (rows.keep(batch(2)), rows.keep(batch(3)), rows.keep(batch(1)));
        rows.release([b + 1, a, b, c].into_iter());
        assert_eq!(rows.size(), bytes_of(&batch(2)) + bytes_of(&batch(3)));
        rows.release([a + 1].into_iter());
        assert_eq!(rows.size(), bytes_of(&batch(3)));
        assert_eq!(rows.take([b + 2].into_iter()).unwrap().num_rows(), 1);
        assert!(rows.take([a].into_iter()).is_err());
        let d = rows.keep(batch(4));
        rows.release([d, b + 2, d + 1].into_iter());
        assert_eq!(rows.size(), bytes_of(&batch(4)));
        rows.release([d + 3, d + 2].into_iter());
        assert_eq!(rows.size(), 0);
    }
}
