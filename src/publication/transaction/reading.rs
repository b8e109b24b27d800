//! Reading of an INSERT, and the decision whether a release is made of it.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::{Completed, Ended, Published};
use crate::error::{refusal, thousands};
use crate::microdata::Layout;
use crate::publication::failure::overtaken;
use crate::publication::observer::{Counted, Observer};
use crate::publication::open::{BEGIN, OpenPublication};
use crate::publication::period::{PERIOD, Period};
use crate::publication::periods;
use crate::publication::publish::{Announced, publish};
use crate::publication::record::HeldBack;
use crate::publication::spec::Publication;
use crate::publication::vacuum::vacuum;

/// An INSERT whose rows are read: nothing was written for it.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(super) open: OpenPublication,
    /// The release that this INSERT found decided, and that is public now.
    pub(super) completed: Option<Announced>,
    pub(super) observer: Observer,
    /// Periods of earlier releases, and of this one, if values change by a law.
    pub(super) periods: Option<(Vec<u64>, u64)>,
}

impl Reading {
    /// Opens a publication at its newest release `decided`, and makes that public if needed.
    /// Fails with a conflict when another release was decided since, and when the publication cannot be opened, its ledger is damaged, or a
    /// store fails. It fails when nobody says of which period the snapshot is, and somebody must.
    pub(crate) async fn begin(publication: &Publication, decided: u64, runtime: &RuntimeEnv) -> Result<Self> {
        // What was read of the ledger is all there is.
        let open = || async {
            let open = OpenPublication::open(publication.clone(), runtime).await?;
            if open.decided().unwrap_or(0) == decided { Ok(open) } else { Err(overtaken()) }
        };
        let mut opened = open().await?;
        opened.verify_ledger().await?;
        let completed = publish(&mut opened).await?;
        if completed.is_some() {
            opened = open().await.map_err(|error| Completed::of(completed).before(error))?;
        }
        let periods = periods::of_releases(&opened, &opened.publication);
        let periods = periods.map_err(|error| Completed::of(completed).before(error))?;
        Ok(Self { observer: Observer::new(opened.fingerprint_key()), open: opened, completed, periods })
    }

    /// Returns the release that was completed first.
    pub(crate) fn completed(&self) -> Completed {
        Completed::of(self.completed)
    }

    pub(crate) fn number(&self) -> u64 {
        self.open.decided().unwrap_or(0) + 1
    }

    /// Returns the periods of earlier releases and of this one, by a law of changes.
    pub(crate) fn periods(&self) -> Option<&(Vec<u64>, u64)> {
        self.periods.as_ref()
    }

    /// Passes the rows of the snapshot, and looks at them while they are read. `left_out` are columns that the INSERT does not name.
    pub(crate) fn snapshot(
        &self,
        rows: SendableRecordBatchStream,
        layout: &Layout,
        left_out: &[String],
    ) -> SendableRecordBatchStream {
        let counted = if self.periods.is_some() { Counted::Held } else { Counted::All };
        self.observer.snapshot(rows, layout, counted, left_out)
    }

    /// Passes the rows of the update relation or domain, and looks at them.
    pub(crate) fn update_relation(&mut self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let domain = self.publication().spec.has_domain();
        self.observer.update_relation(rows, domain)
    }

    /// Returns the newest release's record of the rows of a stream that are held back.
    pub(crate) fn held_record(&self) -> Option<&HeldBack> {
        self.open.newest()?.held_back.as_ref()
    }

    /// Returns the rows that are held back.
    /// Fails when their file is missing or damaged, or the store fails.
    pub(crate) async fn held_rows(&self) -> Result<Vec<RecordBatch>> {
        self.open.held_back().await
    }

    /// Returns true if the rows of the snapshot are published or held back already.
    pub(crate) fn is_known(&self) -> bool {
        self.published_before().is_some()
    }

    /// Ends the INSERT if its snapshot, of which all rows were read, was published before. What killed attempts have left goes then.
    /// Fails also when there is nothing to be published.
    pub(crate) async fn recognize(&self) -> Result<(), Ended> {
        let (streamed, finish) = (self.publication().spec.repositioned.is_some(), self.publication().finish);
        let held = self.held_record();
        // The last INSERT of a stream publishes what is held back, whatever comes with it.
        let finishes = streamed && finish && held.is_some_and(|held| !held.finished);
        if let Some(number) = self.published_before().filter(|_| !finishes) {
            vacuum(&self.open, self.open.published()).await;
            return Err(Ended::Repeated(self.repeated(number)));
        }
        if self.observer.rows() > 0 {
            return Ok(());
        }
        let holds = finish && held.is_some_and(|held| held.rows > 0);
        let error = match streamed {
            true if holds => return Ok(()),
            true => refusal!(
                "publication",
                argument "finish",
                "there are no rows; nothing was published. To publish what is held back, declare the publication with 'finish' 'true'"
            ),
            false => refusal!(
                "publication",
                "the snapshot has no rows; nothing was published, because a release of nobody is hardly meant and could not be \
                 taken back"
            ),
        };
        Err(error.into())
    }

    pub(super) fn publication(&self) -> &Publication {
        &self.open.publication
    }

    /// Returns the release that was made of this snapshot, if any.
    ///
    /// A killed job, a user in doubt, or a whole script inserts a snapshot again. The release has the same people with the same values, as far as
    /// values that are held within a period can be told. Publications that allow repeated snapshots look at the newest release only. Publications that
    /// count periods look at releases of the same period only: silence about another period would tell that nothing has changed.
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

    /// Returns true if the newest release had other sensitive values than the snapshot. Values are held within a period.
    fn has_other_values(&self, number: u64) -> bool {
        let newest = self.open.newest().filter(|newest| newest.number == number);
        newest.is_some_and(|newest| newest.whole != self.observer.whole())
    }

    fn repeated(&self, number: u64) -> Published {
        let rows = self.observer.rows();
        if self.completed.is_some_and(|completed| completed.number == number && completed.here) {
            return Published { release: number, rows, facts: Vec::new(), notices: Vec::new() };
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
        // The next snapshot will be refused.
        let begin = match self.publication().begin {
            true => format!(
                "; take '{BEGIN}' 'true' out of the declaration for good: with it, a job whose storage is not mounted would begin a second publication \
                 of the same people"
            ),
            false => String::new(),
        };
        let notice = format!(
            "publication: this snapshot of {rows} rows is that of release {number}; nothing was published{newer}{begin}"
        );
        Published { release: number, rows: 0, facts: Vec::new(), notices: vec![notice] }
    }

    /// Reports a release that was completed first, or that repeats rows for another period.
    pub(super) fn before_this(&self) -> Option<String> {
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
}
