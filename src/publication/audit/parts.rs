//! The rows of a release in parts that fit memory: cell by cell, as they were made.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use deltalake_core::DeltaTable;
use futures::StreamExt;

use crate::publication::buffer_bytes::Buffers;
use crate::publication::reader::{introduce, provider};
use crate::publication::text_views::{each_once, in_views};
use crate::release::GROUP_ID;
use crate::risk::part_of;

/// Rows of a release, part by part: those of several cells together while they are few.
pub(super) struct Parts {
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    /// The whole release is one part.
    whole: bool,
    held: Vec<RecordBatch>,
    held_rows: usize,
    /// The cell that the last of them is in.
    cell: i64,
    /// Batch that was read and is not held yet.
    next: Option<RecordBatch>,
    /// True if there was a part.
    taken: bool,
    memory: MemoryReservation,
    buffers: Buffers,
}

/// Least number of rows in a part but the last; a part ends with a cell.
const PART: usize = 1 << 16;
/// Greatest number of rows in a part if groups are hidden, with the cells' ends.
const HIDDEN_PART: usize = 1 << 22;

impl Parts {
    pub(super) async fn of(
        table: &DeltaTable,
        session: &SessionContext,
        whole: bool,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let state = session.state();
        introduce(table, &state)?;
        let plan = provider(table).await?.scan(&state, None, &[], None).await?;
        let (schema, rows) = (Arc::new(in_views(&plan.schema())), execute_stream(plan, session.task_ctx())?);
        let held = Vec::new();
        let buffers = Buffers::default();
        Ok(Self { rows, schema, whole, held, held_rows: 0, cell: 0, next: None, taken: false, memory, buffers })
    }

    /// Returns the next part. There is one at least, if only without rows.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let batch = match self.next.take() {
                Some(batch) => batch,
                None => match self.rows.next().await.transpose()? {
                    Some(batch) => batch,
                    None => break,
                },
            };
            let Some(end) = self.end_of_part(&batch)? else {
                self.hold(&batch)?;
                continue;
            };
            self.hold(&batch.slice(0, end))?;
            self.next = Some(batch.slice(end, batch.num_rows() - end));
            return self.take().map(Some);
        }
        if self.held.is_empty() && self.taken { Ok(None) } else { self.take().map(Some) }
    }

    fn hold(&mut self, batch: &RecordBatch) -> Result<()> {
        // Of long texts, which come again, many rows take a few bytes.
        let batch = each_once(batch, &self.schema)?;
        self.memory.try_grow(self.buffers.add(&batch))?;
        self.held_rows += batch.num_rows();
        self.held.push(batch);
        Ok(())
    }

    /// Takes the rows that are held, which the caller charges from here on.
    fn take(&mut self) -> Result<RecordBatch> {
        self.taken = true;
        self.held_rows = 0;
        self.memory.free();
        self.buffers = Buffers::default();
        Ok(concat_batches(&self.schema, &std::mem::take(&mut self.held))?)
    }

    /// Counts the rows of a batch that end the held part, if it ends here.
    fn end_of_part(&mut self, batch: &RecordBatch) -> Result<Option<usize>> {
        if self.whole || batch.num_rows() == 0 {
            return Ok(None);
        }
        let Some(groups) = batch.column_by_name(GROUP_ID) else {
            return Ok((self.held_rows + batch.num_rows() > HIDDEN_PART && self.held_rows > 0).then_some(0));
        };
        let groups = cast(groups, &DataType::Int64)?;
        for (row, &group) in groups.as_primitive::<Int64Type>().values().iter().enumerate() {
            let cell = part_of(group);
            let is_next = std::mem::replace(&mut self.cell, cell) != cell;
            if is_next && self.held_rows + row >= PART {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::*;

    /// Splits a release with these numbers of groups into parts. Each is given as first and last numbers and rows.
    async fn parts(numbers: Vec<i64>, size: usize, whole: bool) -> Vec<(i64, i64, usize)> {
        let batch = |numbers: &[i64]| {
            let column: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
            RecordBatch::try_from_iter([(GROUP_ID, column)]).unwrap()
        };
        let schema = batch(&[]).schema();
        let batches: Vec<_> = numbers.chunks(size).map(|numbers| Ok(batch(numbers))).collect();
        let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), futures::stream::iter(batches)));
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let memory = MemoryConsumer::new("test").register(&pool);
        let held = Vec::new();
        let buffers = Buffers::default();
        let mut parts =
            Parts { rows, schema, whole, held, held_rows: 0, cell: 0, next: None, taken: false, memory, buffers };
        let mut found = Vec::new();
        while let Some(part) = parts.next().await.unwrap() {
            let numbers = part.column(0).as_primitive::<Int64Type>().values();
            let ends = (numbers.first().copied().unwrap_or(-1), numbers.last().copied().unwrap_or(-1));
            found.push((ends.0 >> 32, ends.1 >> 32, numbers.len()));
        }
        assert_eq!(pool.reserved(), 0);
        found
    }

    fn cell(cell: i64, rows: usize) -> Vec<i64> {
        (0..rows as i64).map(|row| (cell << 32) + row).collect()
    }

    /// Cells are not torn, wherever batches end; small ones come together.
    #[tokio::test]
    async fn parts_are_whole_cells() {
        let numbers = [cell(7, PART + 5), cell(2, 10), cell(9, PART), cell(0, 3)].concat();
        for size in [1000, PART + 5, 1 << 20] {
            let expected = [(7, 7, PART + 5), (2, 9, PART + 10), (0, 0, 3)];
            assert_eq!(parts(numbers.clone(), size, false).await, expected, "{size}");
        }
        assert_eq!(parts(numbers, 777, true).await, [(7, 0, 2 * PART + 18)]);
        assert_eq!(parts(cell(0, 3 * PART), 5000, false).await, [(0, 0, 3 * PART)], "a release in one cell");
        assert_eq!(parts(Vec::new(), 10, false).await, [(-1, -1, 0)], "a release without rows");
    }
}
