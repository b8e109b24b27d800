//! One INSERT into a publication: whether its snapshot is published at all, and the steps from staged files to a public release.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::spill::get_record_batch_memory_size;

use super::entries::Merged;
use super::failure::{overtaken, while_doing};
use super::files::MadeFile;
use super::observer::{Counted, Observer};
use super::open::OpenPublication;
use super::paths::random_name;
use super::periods::{self, PERIOD, Period};
use super::protocol::{self, Attempt, Remembered};
use super::publish::{Announced, publish};
use super::record::{Beliefs, Figures, HeldBack, Record};
use super::spec::Publication;
use super::turnover::{self, Turnover};
use super::vacuum::vacuum;
use crate::error::{refusal, thousands};
use crate::microdata::Layout;

/// The next release of a publication, from the moment that the publication is opened.
///
/// Its steps, in this order: [`begin`](Self::begin); [`observer`](Self::observer) looks at all that is read;
/// [`check_updates`](Self::check_updates), [`unchanged`](Self::unchanged), [`check_independence`](Self::check_independence);
/// [`stage`](Self::stage) the files of the release; [`merge`](Self::merge) those of the ledger; [`publish`](Self::publish). When what
/// is between staging and publishing fails, [`discard`](Self::discard) leaves no trace of it.
#[derive(Debug)]
pub(crate) struct Transaction {
    open: OpenPublication,
    /// The release that this INSERT found decided, and that is public now.
    completed: Option<Announced>,
    observer: Observer,
    release_id: String,
    attempt: Attempt,
    /// Fingerprint of the update relation, if there is one.
    updates: Option<String>,
}

/// A snapshot that is not published, because it has been.
#[derive(Debug)]
pub(crate) struct Unchanged {
    /// The release that has its rows.
    pub(crate) release: u64,
    /// Rows that this INSERT has published: those of the snapshot if it was this one that has made its release public.
    pub(crate) rows: u64,
    /// What is worth knowing about it.
    pub(crate) notice: Option<String>,
}

/// What was made of a snapshot.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) figures: Figures,
    pub(crate) withheld: u64,
    pub(crate) information_loss: f64,
    /// People who were in an earlier release.
    pub(crate) returning: usize,
    /// People who were in the newest release, where that is known.
    pub(crate) stayed: Option<usize>,
    /// People of earlier releases, where that is known.
    pub(crate) known: Option<usize>,
    /// People who are published once more with the value that they had at first in this period.
    pub(crate) held: usize,
    /// Files of the ledger that are not staged.
    pub(crate) entries: Vec<MadeFile>,
    /// Columns of the ledger.
    pub(crate) schema: SchemaRef,
    /// What a reader believes who knows how probable changes are, where that is known.
    pub(crate) believed: Option<Believed>,
}

/// What a reader believes of people's values.
#[derive(Debug)]
pub(crate) struct Believed {
    pub(crate) record: Beliefs,
    /// The probabilities.
    pub(crate) file: MadeFile,
}

/// What is held back of a stream.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) record: HeldBack,
    /// The rows, if there are any.
    pub(crate) file: Option<MadeFile>,
}

/// The release that an INSERT has completed before its own, which errors about that one must say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completed(Option<u64>);

impl Completed {
    /// The same error, after the completed release if there is one.
    pub(crate) fn before(self, error: DataFusionError) -> DataFusionError {
        match self.0 {
            Some(number) => while_doing(
                format!(
                    "release {number}, which was decided earlier, is public now; what follows is about the next one"
                ),
                error,
            ),
            None => error,
        }
    }
}

impl Transaction {
    /// Opens a publication as it was when `decided` was its newest release, and makes that public if it is not yet.
    ///
    /// # Errors
    /// A conflict when another release was decided since. When the publication cannot be opened, its ledger is damaged, or a store fails.
    pub(crate) async fn begin(publication: &Publication, decided: u64, runtime: &RuntimeEnv) -> Result<Self> {
        // What was read of the ledger is all there is.
        let open = || async {
            let open = OpenPublication::open(publication.clone(), runtime).await?;
            if open.decided().unwrap_or(0) == decided { Ok(open) } else { Err(overtaken()) }
        };
        let mut opened = open().await?;
        opened.verify_ledger().await?;
        let completed = publish(&mut opened).await?;
        if let Some(announced) = completed {
            opened = open().await.map_err(|error| Completed(Some(announced.number)).before(error))?;
        }
        Ok(Self {
            observer: Observer::new(opened.fingerprint_key()),
            open: opened,
            completed,
            release_id: random_name()?,
            attempt: Attempt::new(decided + 1)?,
            updates: None,
        })
    }

    /// The release that was completed first.
    pub(crate) fn completed(&self) -> Completed {
        Completed(self.completed.map(|announced| announced.number))
    }

    /// Number of the release that is made.
    pub(crate) fn number(&self) -> u64 {
        self.open.decided().unwrap_or(0) + 1
    }

    /// Its random name.
    pub(crate) fn release_id(&self) -> &str {
        &self.release_id
    }

    /// Returns what looks at the update relation while it is read.
    pub(crate) fn observer(&mut self) -> &mut Observer {
        &mut self.observer
    }

    /// The rows of the snapshot, looked at while they are read. `left_out` are columns that the INSERT does not name.
    ///
    /// # Errors
    /// When nobody says which period it is of.
    pub(crate) fn look_at(
        &self,
        rows: SendableRecordBatchStream,
        layout: &Layout,
        left_out: &[String],
    ) -> Result<SendableRecordBatchStream> {
        let counted = if self.periods()?.is_some() { Counted::Held } else { Counted::All };
        Ok(self.observer.snapshot(rows, layout, counted, left_out))
    }

    /// What the newest release has written down about rows that are held back, of a stream.
    pub(crate) fn held_record(&self) -> Option<&HeldBack> {
        self.open.newest()?.held_back.as_ref()
    }

    /// The rows that are held back.
    ///
    /// # Errors
    /// When their file is missing or damaged, or the store fails.
    pub(crate) async fn held_rows(&self) -> Result<Vec<RecordBatch>> {
        self.open.held_back().await
    }

    /// Whether it is known what readers believed before this release: of nobody before the first, and after it if all releases say so.
    pub(crate) fn knows_beliefs(&self) -> bool {
        self.open.newest().is_none_or(|newest| newest.beliefs.is_some())
    }

    /// What they believed. Charges to `memory` what is read.
    ///
    /// # Errors
    /// When the file is missing or damaged, the store fails, or there is not enough memory.
    pub(crate) async fn beliefs(&self, memory: &MemoryReservation) -> Result<Vec<RecordBatch>> {
        let Some(before) = self.open.newest().and_then(|newest| newest.beliefs.as_ref()) else { return Ok(Vec::new()) };
        let read = before.file.size as usize;
        memory.try_grow(read)?;
        let rows = self.open.beliefs().await?;
        memory.try_grow(rows.iter().map(get_record_batch_memory_size).sum())?;
        memory.shrink(read);
        Ok(rows)
    }

    /// Whether the rows of the snapshot are published or held back already.
    pub(crate) fn is_known(&self) -> bool {
        self.published_before().is_some()
    }

    /// Once the snapshot was read: whether nothing is to be published, because it has been. What killed attempts have left goes then.
    ///
    /// # Errors
    /// When there is nothing to be published.
    pub(crate) async fn unchanged(&self) -> Result<Option<Unchanged>> {
        let (streamed, finish) = (self.publication().spec.repositioned.is_some(), self.publication().finish);
        let held = self.held_record();
        // The last INSERT of a stream publishes what is held back, whatever comes with it.
        let finishes = streamed && finish && held.is_some_and(|held| !held.finished);
        if let Some(number) = self.published_before().filter(|_| !finishes) {
            vacuum(&self.open, self.open.published()).await;
            return Ok(Some(self.repeated(number)));
        }
        if self.observer.rows() > 0 {
            return Ok(None);
        }
        match streamed {
            false => Err(refusal!(
                "publication",
                "the snapshot has no rows; nothing was published, because a release of nobody is hardly meant and could not be \
                 taken back"
            )),
            true if finish && held.is_some_and(|held| held.rows > 0) => Ok(None),
            true => Err(refusal!(
                "publication",
                argument "finish",
                "there are no rows; nothing was published. To publish what is held back, declare the publication with 'finish' 'true'"
            )),
        }
    }

    /// Once the update relation was read.
    ///
    /// # Errors
    /// When it is not the one that the first release was made with.
    pub(crate) async fn check_updates(&mut self) -> Result<()> {
        self.updates = self.observer.updates().await?;
        if self.open.newest().is_none_or(|newest| newest.updates == self.updates) {
            return Ok(());
        }
        if self.publication().spec.has_domain() {
            return Err(refusal!(
                "publication",
                argument "domain",
                "the domain has other values than the one that the first release was made with, and it cannot change: that a value was \
                 added when somebody came who has it would tell whose it is. Nothing was published; restore the domain, or begin another \
                 publication for people who are not in this one"
            ));
        }
        Err(refusal!(
            "publication",
            argument "updates",
            "the update relation is not the one that the first release was made with, and it cannot change: what was thought \
             possible then is what earlier releases are safe by. Nothing was published; restore the relation, or begin another \
             publication, with updates that check_snapshots(..) has found to be enough"
        ))
    }

    /// # Errors
    /// When a method that does not know of earlier releases would make a second one, and nobody has said that its people are others; and when the publication
    /// was to begin with this release, but has begun before.
    pub(crate) fn check_independence(&self) -> Result<()> {
        self.open.check_begin()?;
        let spec = &self.publication().spec;
        let method = &spec.method;
        if self.number() == 1 || self.publication().independent || method.state().is_some() {
            return Ok(());
        }
        Err(refusal!(
            method.name(),
            argument "allow_independent_releases",
            "a second release would be made without knowledge of the first, and together they can give away what each of them \
             hides. If nobody of this snapshot is in an earlier release, declare the publication with 'allow_independent_releases' 'true'{}; \
             for people who return, a publication begins with 'method' 'm_invariant'",
            match spec.keeps_apart() {
                true => ", which looks for everybody by their identifier",
                false => "",
            }
        ))
    }

    /// # Errors
    /// When people of the snapshot were in an earlier release, of a method that does not know of it.
    pub(crate) fn check_new_people(&self, again: usize) -> Result<()> {
        if again == 0 {
            return Ok(());
        }
        let spec = &self.publication().spec;
        let (name, id) = (spec.method.name(), spec.roles.id.as_deref().unwrap_or_default());
        Err(refusal!(
            name,
            argument "allow_independent_releases",
            "{} people of this snapshot are in an earlier release, of which {name} knows nothing: together, two releases can give away what each of \
             them hides. Nothing was published; INSERT people who are in none yet: .. WHERE {id} NOT IN (SELECT {id} FROM what was inserted before)",
            thousands(again)
        ))
    }

    /// The periods of earlier releases, and that of this one, where values change by a law from period to period.
    ///
    /// # Errors
    /// When nobody says which it is.
    pub(crate) fn periods(&self) -> Result<Option<(Vec<u64>, u64)>> {
        periods::of_releases(&self.open, self.publication())
    }

    /// Once it is known that the snapshot was not published before.
    ///
    /// # Errors
    /// When its period is before that of an earlier release.
    pub(crate) fn check_period(&self) -> Result<()> {
        periods::check_order(&self.open, self.publication())
    }

    /// Returns what there is to tell the publisher of a release that is made: who has come and left, and what is not said of its period.
    ///
    /// # Errors
    /// When more people are missing than the publication allows.
    pub(crate) fn check_people(&self, outcome: &Outcome) -> Result<Vec<String>> {
        let publication = self.publication();
        let mut told = Vec::new();
        if let Some(turnover) = self.turnover(outcome) {
            turnover.check(publication)?;
            told.push(turnover.notice(publication));
        }
        let new = outcome.figures.rows.saturating_sub(outcome.figures.counterfeits);
        if publication.spec.keeps_apart() && self.number() > 1 && new > 0 {
            told.push(turnover::of_new_people(publication, self.number(), new));
        }
        told.extend(periods::unsaid(publication, self.number()));
        Ok(told)
    }

    /// Returns what there is to tell of the machine's clock.
    pub(crate) async fn clock_notice(&self) -> Option<String> {
        self.open.clock_notice().await
    }

    /// Returns who has returned, come and left, of a method that remembers people.
    fn turnover(&self, outcome: &Outcome) -> Option<Turnover> {
        let spec = &self.publication().spec;
        let newest = self.open.newest()?;
        spec.method.state().filter(|_| spec.repositioned.is_none())?;
        let (rows, returned) = (self.observer.rows(), outcome.returning as u64);
        Some(Turnover {
            newest: newest.number,
            before: newest.figures.rows.saturating_sub(newest.figures.counterfeits),
            returned,
            stayed: outcome.stayed.map(|count| count as u64),
            // Everybody has one entry at least.
            known: outcome.known.map_or(u64::MAX, |count| count as u64).min(self.open.state.rows()),
            came: rows.saturating_sub(returned),
        })
    }

    /// What is worth knowing where a release was completed first, or one with the same rows was published for another period.
    pub(crate) fn before_this(&self) -> Option<String> {
        let newest = self.open.newest()?;
        let fingerprint = self.observer.fingerprint();
        let same = newest.made_of(&fingerprint, self.observer.rows()).find(|release| *release == newest.number);
        let same = same.filter(|_| newest.whole == self.observer.whole());
        let again = same.and_then(|same| newest.period_of(same)).zip(self.publication().period).map(|(then, now)| {
            format!(
                "this snapshot has the rows of release {}, which is of {}, and is published again because it is said to be of {now}; if it is the same \
                 one, go on with the next period's",
                newest.number,
                Period { number: then, ..now }
            )
        });
        let completed = self.completed.map(|Announced { number, .. }| {
            format!("release {number}, which had been decided and was not public, was completed first, and this is another one")
        });
        match (completed, again) {
            (None, None) => None,
            (Some(what), None) | (None, Some(what)) => Some(format!("publication: {what}")),
            (Some(completed), Some(again)) => Some(format!("publication: {completed}; {again}")),
        }
    }

    /// Stages a file of the release.
    ///
    /// # Errors
    /// When the private store fails.
    pub(crate) async fn stage(&mut self, made: MadeFile) -> Result<()> {
        protocol::stage(&self.open, &mut self.attempt, made).await
    }

    /// Stages a file of entries of the ledger, which becomes one of its own when the release is decided.
    ///
    /// # Errors
    /// When the private store fails.
    pub(crate) async fn stage_entries(&mut self, made: MadeFile) -> Result<()> {
        protocol::stage_entries(&self.open, &mut self.attempt, made).await
    }

    /// Removes what was staged, as far as that is possible.
    pub(crate) async fn discard(&self) {
        protocol::discard(&self.open, &self.attempt).await;
    }

    /// Earlier entries of the ledger in fewer files, if they are many. Charges to `memory` what it holds.
    ///
    /// # Errors
    /// When the ledger cannot be read, or there is not enough memory.
    pub(crate) async fn merge(&self, memory: &MemoryReservation) -> Result<Merged> {
        match self.open.entries() {
            Some(entries) => entries.merge(self.number(), memory).await,
            None => Ok(Merged::default()),
        }
    }

    /// Decides the release, with all files that were staged, and makes it public. Returns the number of rows of its snapshot, or 0 if another INSERT
    /// was faster in making it public, which reports them.
    ///
    /// # Errors
    /// A conflict if another release was decided in the meantime. When a store fails; the error says what is to be done.
    pub(crate) async fn publish(mut self, outcome: Outcome, merged: Merged, held: Option<Held>) -> Result<u64> {
        let rows = self.observer.rows();
        let mut periods = Vec::new();
        if let Some((earlier, period)) = self.periods()? {
            periods = earlier;
            periods.push(period);
        }
        let unit = self.publication().period.filter(|_| !periods.is_empty()).map(|period| period.unit);
        let (held_back, held) = held.map_or((None, None), |held| (Some(held.record), held.file));
        let (beliefs, believed) = outcome.believed.map_or((None, None), |made| (Some(made.record), Some(made.file)));
        let record = Record {
            number: self.number(),
            attempt: self.attempt.name,
            release_id: self.release_id,
            fingerprint: self.observer.fingerprint(),
            whole: self.observer.whole(),
            earlier: self.open.newest().map(Record::fingerprints).unwrap_or_default(),
            updates: self.updates,
            snapshot_rows: rows,
            files: self.attempt.files,
            entries: outcome.entries.iter().map(|made| &made.file).chain(&self.attempt.entries).cloned().collect(),
            figures: outcome.figures,
            withheld: outcome.withheld,
            information_loss: outcome.information_loss,
            balanced: self.open.balanced(),
            unit,
            periods,
            held_back,
            beliefs,
        };
        let staged = self.attempt.entries;
        let remembered =
            Remembered { schema: outcome.schema, entries: outcome.entries, staged, merged, held, believed };
        protocol::decide(&mut self.open, record, &remembered).await?;
        let announced = publish(&mut self.open).await?;
        Ok(if announced.is_some_and(|announced| announced.here) { rows } else { 0 })
    }

    fn publication(&self) -> &Publication {
        &self.open.publication
    }

    /// The release that was made of this snapshot, if there is one (of the same people with the same values that can be told, where values are held within a
    /// period): a job that was killed runs again, somebody is in doubt, or a
    /// whole script runs again. Where snapshots may be repeated, only the newest release counts, as to the first two.
    /// Where periods are counted, only those of the same period: that nothing has changed since another one must be published, too, or it would
    /// be told by silence.
    fn published_before(&self) -> Option<u64> {
        let newest = self.open.newest()?;
        let (fingerprint, rows) = (self.observer.fingerprint(), self.observer.rows());
        let publication = self.publication();
        let counts = |release: u64| match publication.period {
            Some(period) => newest.period_of(release).unwrap_or(release) == period.number,
            None => true,
        };
        let found = newest.made_of(&fingerprint, rows).find(|release| counts(*release))?;
        (!publication.repeated || newest.number == found).then_some(found)
    }

    /// Returns true if the snapshot differs from that of a release, the newest one, in sensitive values, which are held within a period.
    fn has_other_values(&self, number: u64) -> bool {
        let newest = self.open.newest().filter(|newest| newest.number == number);
        newest.is_some_and(|newest| newest.whole != self.observer.whole())
    }

    /// The snapshot is that of a release.
    fn repeated(&self, number: u64) -> Unchanged {
        let rows = self.observer.rows();
        if self.completed.is_some_and(|completed| completed.number == number && completed.here) {
            return Unchanged { release: number, rows, notice: None };
        }
        let newer = match (self.publication().period, self.open.decided()) {
            (Some(period), _) => format!(
                "; both are of {period}, and values of people who were published in a period change with the next one{}: if this snapshot is of a later \
                 period, say so (SET anonymize.{PERIOD} = '{}'), for that nothing has changed is published, too",
                if self.has_other_values(number) { ", as some have here" } else { "" },
                period.next()
            ),
            (None, Some(newest)) if newest > number => format!(
                "; readers see release {newest}, which is newer: if the table has really come back to what it was then, declare \
                 the publication with 'allow_repeated_snapshots' 'true'"
            ),
            _ => String::new(),
        };
        let rows = thousands(rows as usize);
        let notice = format!(
            "publication: this snapshot of {rows} rows is that of release {number}; nothing was published{newer}"
        );
        Unchanged { release: number, rows: 0, notice: Some(notice) }
    }
}
