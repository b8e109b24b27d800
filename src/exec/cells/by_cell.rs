//! Inputs that stand in the order of their cells, read cell by cell.

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, UInt32Type};
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::StreamExt;

use super::in_a_cell;
use super::places::values_of;
use crate::error::Error;
use crate::exec::inputs::{Streams, read_all};
use crate::exec::whole_input::tasks;
use crate::exec::work::Work;
use crate::methods::SnapshotBuilder;
use crate::microdata::{Layout, null_identifiers, repeated_identifiers};

/// Rows in the order of their cells, which their last column says.
pub(super) struct InCells {
    rows: SendableRecordBatchStream,
    cells: u32,
    /// Rows that were read and belong to a later cell: their cell, and their columns with and without it.
    next: Option<(u32, RecordBatch, RecordBatch)>,
    last: u32,
}

impl InCells {
    pub(super) fn new(rows: SendableRecordBatchStream, cells: u32) -> Self {
        Self { rows, cells, next: None, last: 0 }
    }

    /// Returns the cell of the next row, if there is one.
    /// Fails with the errors of the input; when cells are not in order, which is a bug and would be a breach.
    pub(super) async fn cell(&mut self) -> Result<Option<u32>> {
        while self.next.is_none() {
            let Some(batch) = self.rows.next().await else { return Ok(None) };
            self.put(&batch?)?;
        }
        Ok(self.next.as_ref().map(|(cell, ..)| *cell))
    }

    fn put(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let Some(column) = batch.columns().last().and_then(|column| column.as_primitive_opt::<UInt32Type>()) else {
            return internal_err!("rows without a cell");
        };
        let cells = column.values();
        let (first, greatest) = (cells[0], cells[cells.len() - 1]);
        if first < self.last || greatest >= self.cells || cells.windows(2).any(|pair| pair[0] > pair[1]) {
            return internal_err!("rows that are not in the order of their cells");
        }
        let end = cells.partition_point(|cell| *cell == first);
        self.last = first;
        let rows = end.min(batch.num_rows());
        let of_cell = batch.slice(0, rows);
        let columns: Vec<usize> = (0..batch.num_columns() - 1).collect();
        self.next = Some((first, of_cell.project(&columns)?, batch.slice(rows, batch.num_rows() - rows)));
        Ok(())
    }

    /// Returns some rows of a cell, `None` if there are no more. Those of earlier cells are passed over.
    /// Fails as [`cell`](Self::cell) does.
    pub(super) async fn rows_of(&mut self, cell: u32) -> Result<Option<RecordBatch>> {
        while let Some(of) = self.cell().await? {
            if of > cell {
                return Ok(None);
            }
            let Some((_, rows, rest)) = self.next.take() else { return Ok(None) };
            self.put(&rest)?;
            if of == cell {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }
}

/// All inputs of an operator, cell by cell.
pub(in crate::exec) struct ByCell {
    layout: Layout,
    microdata: InCells,
    previous: Option<InCells>,
    hierarchies: Option<Vec<RecordBatch>>,
    updates: Option<Vec<RecordBatch>>,
    /// Values of the quasi-identifiers in the whole table: lengths of ranges are measured by these, also in cells where few of them are.
    values: Vec<ArrayRef>,
    /// People who were in an earlier release, where nobody may be in two.
    again: usize,
    /// True if a cell was read, or none need be.
    begun: bool,
    /// For what all cells need.
    _held: MemoryReservation,
}

impl ByCell {
    /// Reads what all cells need.
    /// Fails with the errors of the inputs, and when there is not enough memory beside a cell's.
    pub(in crate::exec) async fn try_new(
        inputs: Streams,
        cells: u32,
        work: &Work,
        context: &TaskContext,
    ) -> Result<Self> {
        let read = Self::read(inputs, cells, work, context).await;
        read.map_err(|error| in_a_cell(error, work.method.name(), cells))
    }

    async fn read(inputs: Streams, cells: u32, work: &Work, context: &TaskContext) -> Result<Self> {
        let held = MemoryConsumer::new("CellsExec: hierarchies and updates").register(context.memory_pool());
        let previous = match inputs.previous {
            Some((kind, rows)) => {
                work.check_kind(kind)?;
                Some(InCells::new(rows, cells))
            }
            None => None,
        };
        let again = people_again(inputs.identifiers, &inputs.layout, work, &held).await?;
        let hierarchies = whole(inputs.hierarchies, &held).await?;
        let updates = whole(inputs.updates, &held).await?;
        let values = match whole(inputs.places, &held).await? {
            Some(places) => values_of(&places, inputs.layout.quasi.len())?,
            None => Vec::new(),
        };
        let microdata = InCells::new(inputs.microdata, cells);
        let layout = inputs.layout;
        // A table without rows has one cell. A task to which none of a table's cells come has none.
        let begun = tasks(context) > 1;
        Ok(Self { layout, microdata, previous, hierarchies, updates, values, again, begun, _held: held })
    }

    /// Returns the people who were in an earlier release, where nobody may be in two.
    pub(in crate::exec) fn again(&self) -> usize {
        self.again
    }

    /// Returns true if there are no rows.
    /// Fails with the errors of the input.
    pub(in crate::exec) async fn is_empty(&mut self) -> Result<bool> {
        Ok(!self.begun && self.microdata.cell().await?.is_none())
    }

    /// Reads all rows and leaves them.
    /// Fails with the errors of the input.
    pub(in crate::exec) async fn pass_over(&mut self) -> Result<()> {
        while let Some(cell) = self.microdata.cell().await? {
            self.microdata.rows_of(cell).await?;
        }
        Ok(())
    }

    /// Encodes the next cell that has rows; of a table without rows, one cell. What earlier releases say of cells without rows is passed
    /// over, as what they say of people who are not there is by methods.
    /// Fails with the errors of the inputs, and when there is not enough memory.
    pub(in crate::exec) async fn next(&mut self, work: &Work) -> Result<Option<(u32, SnapshotBuilder)>> {
        let cell = match self.microdata.cell().await? {
            Some(cell) => cell,
            None if self.begun => return Ok(None),
            None => 0,
        };
        self.begun = true;
        work.begin_again()?;
        let mut builder = work.builder(&self.layout)?;
        while let Some(rows) = self.microdata.rows_of(cell).await? {
            work.take_rows(&mut builder, &rows)?;
        }
        if let Some(previous) = &mut self.previous {
            while let Some(entries) = previous.rows_of(cell).await? {
                work.take_previous(&mut builder, &entries)?;
            }
        }
        let named = |error: Error| error.in_function(work.method.name());
        let mut numbers = Vec::new();
        for (encoder, values) in builder.microdata.encoders().0.iter_mut().zip(&self.values) {
            encoder.intern(values, &mut numbers).map_err(named)?;
        }
        if let Some(hierarchies) = &self.hierarchies {
            builder.microdata.expect_hierarchies();
            for batch in hierarchies {
                builder.microdata.append_hierarchies(batch).map_err(named)?;
            }
        }
        for batch in self.updates.iter().flatten() {
            builder.microdata.append_updates(batch).map_err(named)?;
        }
        Ok(Some((cell, builder)))
    }
}

/// Checks identifiers as far as they were counted. It returns how many of the people were in an earlier release.
/// People who are in several cells are not met in any of them.
/// Fails when identifiers are NULL or repeated, and those of the input.
pub(in crate::exec) async fn people_again(
    counts: Option<SendableRecordBatchStream>,
    layout: &Layout,
    work: &Work,
    held: &MemoryReservation,
) -> Result<usize> {
    let Some(counts) = whole(counts, held).await? else { return Ok(0) };
    check_identifiers(&counts, layout).map_err(|error| error.in_function(work.method.name()))
}

/// Checks the counts in one row: rows, NULLs and repeated identifiers; returns the people of earlier releases.
fn check_identifiers(counts: &[RecordBatch], layout: &Layout) -> crate::error::Result<usize> {
    let mut rows_of_counts = counts.iter().filter(|batch| batch.num_rows() > 0);
    let row = match (rows_of_counts.next(), rows_of_counts.next()) {
        (Some(row), None) if row.num_rows() == 1 => Some(row),
        // Counts of parts of the table.
        _ => None,
    };
    let counted = |place: usize| {
        let column = row.and_then(|row| row.columns().get(place));
        let count = column.and_then(|column| column.as_primitive_opt::<Int64Type>().map(|count| count.value(0)));
        count
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| Error::internal("identifiers that nobody has counted"))
    };
    let (rows, nulls, repeated) = (counted(0)?, counted(1)?, counted(2)?);
    match (nulls, repeated) {
        (0, 0) if row.is_some_and(|row| row.num_columns() > 3) => counted(3),
        (0, 0) => Ok(0),
        (0, _) => Err(repeated_identifiers(repeated, rows, layout)),
        _ => Err(null_identifiers(nulls, rows, layout)),
    }
}

async fn whole(rows: Option<SendableRecordBatchStream>, held: &MemoryReservation) -> Result<Option<Vec<RecordBatch>>> {
    match rows {
        Some(mut rows) => read_all(&mut rows, held).await.map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, UInt32Array};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::*;

    fn stream(batches: Vec<Vec<u32>>) -> SendableRecordBatchStream {
        let batch = |cells: Vec<u32>| {
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values(cells.iter().map(|cell| i64::from(*cell))));
            let cells: ArrayRef = Arc::new(UInt32Array::from(cells));
            RecordBatch::try_from_iter([("value", values), ("cell", cells)]).unwrap()
        };
        let batches: Vec<RecordBatch> = batches.into_iter().map(batch).collect();
        let schema = batches[0].schema();
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches.into_iter().map(Ok))))
    }

    async fn rows(of: &mut InCells, cell: u32) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        while let Some(batch) = of.rows_of(cell).await? {
            assert_eq!(batch.num_columns(), 1);
            found.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        }
        Ok(found)
    }

    #[tokio::test]
    async fn every_cell_gets_its_rows() {
        let mut input = InCells::new(stream(vec![vec![0, 0, 1], vec![], vec![1, 1, 3], vec![3], vec![6, 7]]), 8);
        assert_eq!(input.cell().await.unwrap(), Some(0));
        assert_eq!(rows(&mut input, 0).await.unwrap(), [0, 0]);
        assert_eq!(rows(&mut input, 1).await.unwrap(), [1, 1, 1]);
        assert!(rows(&mut input, 2).await.unwrap().is_empty());
        // Cell 3 is not asked for.
        assert_eq!(rows(&mut input, 6).await.unwrap(), [6]);
        assert_eq!(rows(&mut input, 7).await.unwrap(), [7]);
        assert_eq!(input.cell().await.unwrap(), None);
    }

    /// A cell that comes twice would be released in two halves.
    #[tokio::test]
    async fn rows_in_another_order_are_an_error() {
        for wrong in [vec![vec![1, 0]], vec![vec![1], vec![0]], vec![vec![0, 8]]] {
            let mut input = InCells::new(stream(wrong), 8);
            let mut failed = false;
            for cell in 0..8 {
                failed |= rows(&mut input, cell).await.is_err();
            }
            assert!(failed);
        }
    }
}
