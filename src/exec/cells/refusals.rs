//! Cells that cannot be released: all of them are looked for, so that the publisher knows whether it was one or most.

use std::sync::Arc;

use datafusion::common::Result;
use rand_chacha::ChaCha20Rng;

use super::in_a_cell;
use crate::error::{Asked, Error, Refusal, thousands};
use crate::exec::work::Work;
use crate::methods::{Monitor, SnapshotBuilder};

/// The cells of a release that were refused so far.
pub(in crate::exec) struct Refusals {
    of: u32,
    refused: usize,
    first: Option<(Refusal, usize)>,
}

impl Refusals {
    pub(in crate::exec) fn of(cells: u32) -> Self {
        Self { of: cells, refused: 0, first: None }
    }

    /// Makes the release of a cell, or of a whole table, by `write`. Once one was refused, the others are made to see whether they are, and not written.
    /// Returns what `write` does; `None` if a cell was refused.
    /// Fails with those errors that are no refusals of the data, which are counted.
    pub(in crate::exec) async fn make<T: Send + 'static>(
        &mut self,
        work: &Arc<Work>,
        cell: SnapshotBuilder,
        rng: ChaCha20Rng,
        write: impl FnOnce(&Work, SnapshotBuilder, ChaCha20Rng, &Monitor) -> crate::error::Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let (rows, tries) = (cell.microdata.rows(), self.refused > 0);
        let made = Arc::clone(work).off_thread(move |work, monitor| {
            let made = match tries {
                true => work.make(cell, rng, monitor).map(|_| None),
                false => write(work, cell, rng, monitor).map(Some),
            };
            match made {
                Err(Error::Refused(refusal)) => Ok(Err(refusal)),
                made => made.map(Ok),
            }
        });
        match made.await.map_err(|error| in_a_cell(error, work.method.name(), self.of))? {
            Ok(made) => Ok(made),
            Err(refusal) => {
                self.refused += 1;
                self.first = Some(match self.first.take() {
                    Some((first, rows)) => (first.and(&refusal), rows),
                    None => (refusal, rows),
                });
                Ok(None)
            }
        }
    }

    /// Checks that no cell was refused, once all were looked at. A release that is made as a whole has one, whose refusal is said as it is.
    /// Fails when some were refused; nothing may be published then.
    pub(in crate::exec) fn check(self, function: &str, asked: Asked) -> Result<()> {
        let Some((first, rows)) = self.first else { return Ok(()) };
        if self.of == 1 {
            return Err(Error::Refused(first).said(asked).in_function(function));
        }
        let (refused, of, rows) = (thousands(self.refused), thousands(self.of as usize), thousands(rows));
        let whole = match asked {
            Asked::Call => " (cells => 1 makes the release as a whole)",
            Asked::First => " (the option 'cells' '1' makes releases as a whole)",
            Asked::Later => "",
        };
        let all = first.within(|text| {
            format!("{refused} of the {of} cells cannot be released; the first of them, of {rows} rows{whole}: {text}")
        });
        Err(Error::Refused(all).said(asked).in_function(function))
    }
}
