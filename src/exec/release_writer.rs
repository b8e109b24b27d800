//! The writer of the files of a release: everything about publishing that computes.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use rayon::prelude::*;
use tokio::sync::mpsc::Sender;

use super::Seed;
use super::work::{Made, Work};
use crate::error::{Error, Result};
use crate::methods::{Monitor, SnapshotBuilder, StateKind};
use crate::microdata::Attribute;
use crate::publication::{Figures, MadeFile, Outcome, make, numbered, random_name};
use crate::release::{Form, Published, Release};

/// Rows of a file: enough for good compression, few enough that files are made in parallel.
const FILE_ROWS: usize = 1 << 18;

/// Writes a release and its entries of the ledger.
pub(super) struct ReleaseWriter {
    /// Schema of the release.
    pub public: SchemaRef,
    /// Schema of the ledger.
    pub private: SchemaRef,
    /// What the release leaves to the next one.
    pub state: Option<StateKind>,
    /// Number of the release.
    pub number: u64,
    pub batch_size: usize,
    /// Where the files of the release go, each with the number of rows of the whole release.
    pub files: Sender<(MadeFile, usize)>,
}

/// A file to be made.
enum Piece<'a> {
    /// Rows of the release, from the first to before the last.
    Rows(usize, usize),
    /// Members that are to be remembered.
    Entries(&'a [u32]),
}

impl ReleaseWriter {
    pub(super) fn run(
        self,
        work: &Work,
        mut snapshot: SnapshotBuilder,
        seed: &Seed,
        monitor: &Monitor,
    ) -> Result<Outcome> {
        // Every INSERT may name other columns; those that it does not name are NULL.
        let any_columns = work.method.as_method().columns_may_differ();
        if any_columns {
            snapshot.microdata.leave_out_empty();
        }
        let timer = work.metrics.baseline.elapsed_compute().timer();
        let Made { release, state, mut rng } = work.make(snapshot, seed, monitor)?;
        refuse_missing(&release)?;
        let withheld = release.withheld as u64;
        let figures = Figures {
            rows: release.groups.members.len() as u64,
            // Those of perturbed rows are hidden, and rows that are generalized one by one have none.
            groups: match release.body.form() {
                Form::Intervals | Form::Anatomy => release.groups.len() as u64,
                Form::Perturbed | Form::Rows | Form::Worlds => 0,
            },
            counterfeits: release.counterfeits() as u64,
        };
        let information_loss = release.mean_extent();
        let public = match any_columns {
            true => present(&self.public, &release),
            false => SchemaRef::clone(&self.public),
        };
        let published = monitor.phase("shuffle", || Ok(Published::new(release, public, &mut rng)))?;
        let members = match self.state {
            Some(kind) => kind.members(&published, &state)?,
            None => Vec::new(),
        };
        drop(state);
        let entries = monitor.phase("writing", || self.write(work, &published, &members, monitor))?;
        work.note_phases(monitor);
        drop(timer);
        Ok(Outcome { figures, withheld, information_loss, entries, schema: self.private })
    }

    /// Makes all files, a few at a time. Those of the release are handed over, those of the ledger returned.
    fn write(&self, work: &Work, published: &Published, members: &[u32], monitor: &Monitor) -> Result<Vec<MadeFile>> {
        // A release of no rows (all are withheld) has a file, too: its schema describes it.
        let starts = (0..published.len().max(1)).step_by(FILE_ROWS);
        let rows = starts.map(|start| Piece::Rows(start, published.len().min(start + FILE_ROWS)));
        let pieces: Vec<Piece<'_>> = members.chunks(FILE_ROWS).map(Piece::Entries).chain(rows).collect();
        let mut entries = Vec::new();
        for round in pieces.chunks(rayon::current_num_threads()) {
            let made =
                round.par_iter().map(|piece| self.make(piece, published, monitor)).collect::<Result<Vec<_>>>()?;
            for (piece, file) in round.iter().zip(made) {
                let bytes = file.contents.len();
                work.charge(bytes)?;
                if let Piece::Entries(_) = piece {
                    entries.push(file);
                    continue;
                }
                if self.files.blocking_send((file, published.len())).is_err() {
                    return Err(Error::Cancelled);
                }
                work.release(bytes);
            }
        }
        Ok(entries)
    }

    fn make(&self, piece: &Piece<'_>, published: &Published, monitor: &Monitor) -> Result<MadeFile> {
        match *piece {
            Piece::Rows(start, end) => {
                let batch_size = published.batch_rows(self.batch_size);
                let batches = (start..end).step_by(batch_size).map(|first| {
                    monitor.check()?;
                    published.batch(first, batch_size.min(end - first))
                });
                make(random_name()? + ".parquet", published.schema(), batches)
            }
            Piece::Entries(members) => {
                let Some(kind) = self.state else { return Err(Error::internal("entries of a method without state")) };
                let batches = members.chunks(self.batch_size).map(|members| {
                    monitor.check()?;
                    kind.entries(published, members, self.number, &self.private)
                });
                make(numbered(self.number)? + ".parquet", &self.private, batches)
            }
        }
    }
}

/// Those columns of a release that its microdata has.
fn present(schema: &SchemaRef, release: &Release) -> SchemaRef {
    let microdata = &release.microdata;
    let attributes = microdata.quasi.iter().chain(&microdata.sensitive).chain(&microdata.other);
    let names: Vec<&String> = attributes.map(|attribute| attribute.field.name()).collect();
    let fields = schema.fields().iter().filter(|field| names.contains(&field.name()));
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}

/// A column that is NULL for everybody was left out of the INSERT, most likely, and could not be taken back.
fn refuse_missing(release: &Release) -> Result<()> {
    let missing = |attribute: &&Attribute| attribute.domain.has_null() && attribute.domain.len() == 1;
    match release.microdata.quasi.iter().find(missing) {
        Some(attribute) => Err(Error::refused(format!(
            "column {} is NULL in all rows; was it left out of the INSERT? Nothing was published",
            attribute.field.name()
        ))),
        None => Ok(()),
    }
}
