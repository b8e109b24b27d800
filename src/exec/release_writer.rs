//! The writer of the files of a release: everything about publishing that computes.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use tokio::sync::mpsc::Sender;

use super::beliefs::BeliefsStep;
use super::work::{Made, Work};
use crate::error::{Error, Result};
use crate::methods::{LeftOut, Monitor, SnapshotBuilder, StateKind};
use crate::microdata::Role;
use crate::publication::{Believed, Figures, MadeFile, Outcome, make, numbered, random_name};
use crate::release::{Form, Published, Release, RowOrder};

/// Rows of a file: enough for good compression, few enough that files are made in parallel.
const FILE_ROWS: usize = 1 << 18;

/// Writes a release and its entries of the ledger, at once or cell by cell.
pub(super) struct ReleaseWriter {
    /// Schema of the release.
    pub public: SchemaRef,
    /// Schema of the ledger.
    pub private: SchemaRef,
    /// State that the release leaves to the next one.
    pub state: Option<StateKind>,
    /// Columns that the release may lack.
    pub leave_out: LeftOut,
    /// Columns that were not named.
    pub left_out: Vec<String>,
    /// Sensitive columns among these that the release lacks, because people keep their values.
    pub remembered: Vec<String>,
    /// Number of the release.
    pub number: u64,
    pub batch_size: usize,
    /// Beliefs of readers before the release, if they are looked at.
    pub beliefs: Option<BeliefsStep>,
    /// Sender of finished files.
    pub files: Sender<Finished>,
    /// Summary of the files so far.
    pub written: Written,
}

pub(super) enum Finished {
    /// File of the release, and the known number of its rows made so far.
    Rows(MadeFile, usize),
    /// File of the ledger, if there are too many entries to keep.
    Entries(MadeFile),
}

/// Summary of a release of which cells were written.
#[derive(Default)]
pub(super) struct Written {
    rows: u64,
    groups: u64,
    counterfeits: u64,
    withheld: u64,
    information_loss: f64,
    /// People who were in an earlier release.
    returning: usize,
    /// People who were in the newest release, as far as that is known.
    stayed: usize,
    /// True if it is not known of some part.
    stayed_unknown: bool,
    /// People of earlier releases, where that is known.
    known: Option<usize>,
    /// Number of people who are published with the first value in this period again.
    held: usize,
    /// Quasi-identifiers that were NULL for everybody so far.
    missing: Option<Vec<String>>,
    /// True if it is made in cells.
    in_cells: bool,
    /// Entries that are in no file yet.
    pending: Vec<RecordBatch>,
    kept: Vec<MadeFile>,
    /// Beliefs of a reader.
    believed: Option<Believed>,
}

enum Piece<'a> {
    /// Rows of the release, from the first to before the last.
    Rows(usize, usize),
    /// Members that are to be remembered.
    Entries(&'a [u32]),
}

impl ReleaseWriter {
    /// Makes a release of the snapshot, or of a cell of it, and writes it. A cell has a `tag`.
    pub(super) fn add(
        mut self,
        work: &Work,
        mut snapshot: SnapshotBuilder,
        rng: ChaCha20Rng,
        tag: Option<u32>,
        monitor: &Monitor,
    ) -> Result<Self> {
        // Every INSERT may name other columns; those that it does not name are NULL. Of what travels that is no sign of it.
        if self.leave_out != LeftOut::Nothing {
            snapshot.microdata.leave_out_empty();
        }
        if self.leave_out == LeftOut::Anything {
            snapshot.microdata.leave_out(&self.left_out);
        }
        let timer = work.metrics.baseline.elapsed_compute().timer();
        let Made { release, state, mut rng } = work.make(snapshot, rng, monitor)?;
        self.written.count(&release);
        self.written.returning += state.returning(release.microdata.rows);
        match state.staying(release.microdata.rows) {
            Some(staying) => self.written.stayed += staying,
            None => self.written.stayed_unknown = true,
        }
        // Of cells without rows nobody would be counted.
        self.written.known = state.known().filter(|_| tag.is_none());
        self.written.held += state.held();
        self.written.in_cells = tag.is_some();
        if tag.is_none() {
            self.written.refuse_missing()?;
        }
        if let Some(before) = self.beliefs.take() {
            let key = rng.random();
            self.written.believed = monitor.phase("beliefs", || before.take(&release, &state, key, monitor))?;
        }
        let public = present(&self.public, &release, self.leave_out, &self.remembered);
        let published = monitor.phase("shuffle", || Ok(Published::new(release, public, RowOrder::Random, &mut rng)))?;
        let published = match tag {
            Some(tag) => published.in_cell(tag),
            None => published,
        };
        let members = match self.state {
            Some(kind) => kind.members(&published, &state)?,
            None => Vec::new(),
        };
        drop(state);
        monitor.phase("writing", || self.write(work, &published, &members, monitor))?;
        work.note_phases(monitor);
        drop(timer);
        Ok(self)
    }

    /// Finishes once all is written.
    /// Fails when Parquet fails, or a column has no values at all.
    pub(super) fn finish(mut self) -> Result<Outcome> {
        self.written.refuse_missing()?;
        if let Some(rest) = self.pending_file()? {
            self.hand_over(Finished::Entries(rest))?;
        }
        let stayed = (!self.written.stayed_unknown).then_some(self.written.stayed);
        let Written {
            rows,
            groups,
            counterfeits,
            withheld,
            information_loss,
            returning,
            known,
            held,
            kept,
            believed,
            ..
        } = self.written;
        let figures = Figures { rows, groups, counterfeits };
        Ok(Outcome {
            figures,
            withheld,
            information_loss,
            returning,
            stayed,
            known,
            held,
            entries: kept,
            schema: self.private,
            believed,
        })
    }

    /// Makes all files, a few at a time, and hands them over. Entries of the ledger are kept instead, but for those of cells.
    fn write(&mut self, work: &Work, published: &Published, members: &[u32], monitor: &Monitor) -> Result<()> {
        let in_cells = self.written.in_cells;
        // A release of no rows (all are withheld) has a file, too: its schema describes it.
        let (of_rows, of_entries) = (published.file_rows(FILE_ROWS), published.entry_file_rows(FILE_ROWS));
        let starts = (0..published.len().max(1)).step_by(of_rows);
        let rows = starts.map(|start| Piece::Rows(start, published.len().min(start + of_rows)));
        // What does not fill a file waits for entries of other cells.
        let whole = if in_cells { members.len() / of_entries * of_entries } else { members.len() };
        let (members, rest) = members.split_at(whole);
        let pieces: Vec<Piece<'_>> = members.chunks(of_entries).map(Piece::Entries).chain(rows).collect();
        for round in pieces.chunks(rayon::current_num_threads()) {
            let made =
                round.par_iter().map(|piece| self.make(piece, published, monitor)).collect::<Result<Vec<_>>>()?;
            for (piece, file) in round.iter().zip(made) {
                let bytes = file.contents.len();
                work.charge(bytes)?;
                let finished = match piece {
                    Piece::Entries(_) if in_cells => Finished::Entries(file),
                    Piece::Entries(_) => {
                        self.written.kept.push(file);
                        continue;
                    }
                    Piece::Rows(..) => Finished::Rows(file, self.written.rows as usize),
                };
                self.hand_over(finished)?;
                work.release(bytes);
            }
        }
        let Some(kind) = self.state.filter(|_| !rest.is_empty()) else { return Ok(()) };
        for members in rest.chunks(published.entry_rows(self.batch_size)) {
            self.written.pending.push(kind.entries(published, members, self.number, &self.private)?);
        }
        if self.written.pending.iter().map(RecordBatch::num_rows).sum::<usize>() >= FILE_ROWS
            && let Some(file) = self.pending_file()?
        {
            self.hand_over(Finished::Entries(file))?;
        }
        Ok(())
    }

    fn hand_over(&self, finished: Finished) -> Result<()> {
        self.files.blocking_send(finished).map_err(|_| Error::Cancelled)
    }

    /// Returns a file of the entries that are in none yet.
    fn pending_file(&mut self) -> Result<Option<MadeFile>> {
        let pending = std::mem::take(&mut self.written.pending);
        if pending.is_empty() {
            return Ok(None);
        }
        let name = numbered(self.number)? + ".parquet";
        make(name, &self.private, pending.into_iter().map(Ok)).map(Some)
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
                let batches = members.chunks(published.entry_rows(self.batch_size)).map(|members| {
                    monitor.check()?;
                    kind.entries(published, members, self.number, &self.private)
                });
                make(numbered(self.number)? + ".parquet", &self.private, batches)
            }
        }
    }
}

impl Written {
    /// Counts a release, or one of a cell.
    fn count(&mut self, release: &Release) {
        let rows = release.groups.members.len() as u64;
        self.rows += rows;
        // Those of perturbed rows are hidden, and rows that are generalized one by one have none.
        self.groups += match release.body.form() {
            Form::Intervals | Form::Anatomy => release.groups.len() as u64,
            Form::Perturbed | Form::Rows | Form::Worlds => 0,
        };
        self.counterfeits += release.counterfeits() as u64;
        self.withheld += release.withheld as u64;
        // Every row counts alike.
        let share = if self.rows == 0 { 1.0 } else { rows as f64 / self.rows as f64 };
        self.information_loss += (release.mean_extent() - self.information_loss) * share;
        let is_missing = |name: &String| {
            let mut attributes = release.microdata.quasi.iter();
            attributes.any(|attribute| {
                attribute.field.name() == name && attribute.domain.has_null() && attribute.domain.len() == 1
            })
        };
        let names = || release.microdata.quasi.iter().map(|attribute| attribute.field.name().clone()).collect();
        let mut missing: Vec<String> = self.missing.take().unwrap_or_else(names);
        missing.retain(is_missing);
        self.missing = Some(missing);
    }

    /// Refuses a column that is NULL for everybody: most likely the INSERT left it out, and it could not be taken back.
    fn refuse_missing(&self) -> Result<()> {
        match self.missing.iter().flatten().next() {
            Some(name) => Err(Error::refused(format!(
                "column {name} is NULL in all rows; was it left out of the INSERT? Nothing was published"
            ))),
            None => Ok(()),
        }
    }
}

/// Returns the columns of a release that its microdata has, where it may lack some.
fn present(schema: &SchemaRef, release: &Release, leave_out: LeftOut, remembered: &[String]) -> SchemaRef {
    let microdata = &release.microdata;
    let attributes = microdata.quasi.iter().chain(&microdata.sensitive).chain(&microdata.other);
    let names: Vec<&String> = attributes.map(|attribute| attribute.field.name()).collect();
    let role = |field: &FieldRef| field.metadata().get(Role::KEY).and_then(|role| Role::parse(role));
    let hidden = |field: &FieldRef| role(field) == Some(Role::Sensitive) && remembered.contains(field.name());
    let may_lack = |field: &FieldRef| match role(field) {
        Some(Role::Quasi) => leave_out != LeftOut::Nothing,
        Some(Role::Sensitive | Role::Other) => leave_out == LeftOut::Anything,
        _ => false,
    };
    let there = |field: &&FieldRef| !hidden(field) && (!may_lack(field) || names.contains(&field.name()));
    let fields = schema.fields().iter().filter(there);
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}
