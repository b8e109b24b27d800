//! The rows that an INSERT makes a release of: all of them, or cell by cell.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;

use super::cells::{ByCell, people_again};
use super::work::Work;
use crate::methods::SnapshotBuilder;
use crate::microdata::Layout;
use crate::publication::{self, Reading};

/// The rows, and what is said of each part of them.
pub(super) struct Snapshot {
    rows: Rows,
    number: u64,
    periods: Option<(Vec<u64>, u64)>,
    remembered: Vec<String>,
}

pub(super) enum Rows {
    /// All were read; `None` once they are taken.
    Whole(Option<Box<SnapshotBuilder>>, Box<People>),
    /// They are read cell by cell.
    InCells(Box<ByCell>),
}

pub(super) struct People {
    pub counts: Option<SendableRecordBatchStream>,
    pub layout: Layout,
    pub work: Arc<Work>,
    pub memory: MemoryReservation,
}

impl Snapshot {
    /// Returns the rows of the next release. In columns that are `remembered`, people have what they had.
    pub(super) fn new(reading: &Reading, remembered: Vec<String>, rows: Rows) -> Self {
        Self { rows, number: reading.number(), periods: reading.periods().cloned(), remembered }
    }

    /// Returns the next cell that has rows, and its number; of a whole snapshot all rows, once.
    /// Fails with the errors of the inputs, and when there is not enough memory.
    pub(super) async fn next(&mut self, work: &Work) -> Result<Option<(u32, SnapshotBuilder)>> {
        let next = match &mut self.rows {
            Rows::Whole(whole, _) => whole.take().map(|whole| (0, *whole)),
            Rows::InCells(cells) => cells.next(work).await?,
        };
        Ok(next.map(|(cell, mut rows)| {
            rows.set_number(self.number);
            rows.set_periods(self.periods.clone());
            rows.remember(&self.remembered);
            (cell, rows)
        }))
    }
}

impl publication::Snapshot for Snapshot {
    fn is_read(&self) -> bool {
        matches!(self.rows, Rows::Whole(..))
    }

    async fn pass_over(&mut self) -> Result<()> {
        match &mut self.rows {
            Rows::Whole(..) => Ok(()),
            Rows::InCells(cells) => cells.pass_over().await,
        }
    }

    async fn is_empty(&mut self) -> Result<bool> {
        match &mut self.rows {
            Rows::Whole(..) => Ok(false),
            Rows::InCells(cells) => cells.is_empty().await,
        }
    }

    async fn people_again(&mut self) -> Result<usize> {
        match &mut self.rows {
            Rows::Whole(_, people) => {
                people_again(people.counts.take(), &people.layout, &people.work, &people.memory).await
            }
            Rows::InCells(cells) => Ok(cells.again()),
        }
    }
}
