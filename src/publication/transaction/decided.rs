//! A release whose files are staged: it is decided, and made public.

use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use super::{Checked, Ended, Held, Outcome, Published, Reading};
use crate::error::thousands;
use crate::publication::entries::Compaction;
use crate::publication::period::PERIOD;
use crate::publication::periods;
use crate::publication::protocol::{self, Remembered};
use crate::publication::publish::publish;
use crate::publication::record::Record;
use crate::publication::turnover::{self, Turnover};

/// An INSERT whose snapshot was read and is another one, and whose files are staged.
#[derive(Debug)]
pub(crate) struct Staged {
    checked: Checked,
    outcome: Outcome,
}

/// An INSERT that is to be decided.
#[derive(Debug)]
pub(crate) struct Merged {
    checked: Checked,
    outcome: Outcome,
    compaction: Compaction,
}

impl Checked {
    /// Ends the staging of files.
    /// Fails when making or staging them failed, and when the snapshot, of which all rows were read now, was published before.
    pub(crate) async fn staged(self, outcome: Result<Outcome>) -> Result<Staged, Ended> {
        let ended = match outcome {
            Ok(outcome) => match self.reading.recognize().await {
                Ok(()) => return Ok(Staged { checked: self, outcome }),
                Err(ended) => ended,
            },
            Err(error) => error.into(),
        };
        self.discard().await;
        Err(ended)
    }
}

impl Staged {
    /// Makes fewer files of the ledger's earlier entries, if they are many. Charges to `memory` what it holds.
    /// Fails when the ledger cannot be read, or there is not enough memory.
    pub(crate) async fn merge(self, memory: &MemoryReservation) -> Result<Merged> {
        let Self { checked, outcome } = self;
        let compaction = match checked.reading.open.entries() {
            Some(entries) => entries.merge(checked.number(), memory).await,
            None => Ok(Compaction::default()),
        };
        match compaction {
            Ok(compaction) => Ok(Merged { checked, outcome, compaction }),
            Err(error) => {
                checked.discard().await;
                Err(error)
            }
        }
    }
}

impl Merged {
    /// Decides the release with all staged files, and makes it public.
    ///
    /// Identifiers that are written in another way than before belong to nobody known, so no bound would hold. `held` is the part of a stream that
    /// is held back.
    ///
    /// # Errors
    /// More people are missing than the publication allows; another release was decided in the meantime (a conflict); a store fails. The error says
    /// what to do.
    pub(crate) async fn publish(self, held: Option<Held>) -> Result<Published> {
        let [facts, mut notices] = match self.check_people() {
            Ok(told) => told,
            Err(error) => {
                self.checked.discard().await;
                return Err(error);
            }
        };
        notices.extend(self.checked.reading.before_this());
        notices.extend(self.checked.reading.open.clock_notice().await);
        if self.outcome.held > 0 {
            notices.push(format!(
                "publication: {} people have another value than in an earlier release of this period, or none, and are published with that one: values change from \
                 one period to the next (or say a later one with SET anonymize.{PERIOD}, if the snapshot is of that)",
                thousands(self.outcome.held)
            ));
        }
        let release = self.checked.number();
        let rows = self.decide(held).await?;
        Ok(Published { release, rows, facts, notices })
    }

    /// Returns the number of rows of the snapshot, or 0 if another INSERT reports them. That one was faster in making the release public.
    async fn decide(self, held: Option<Held>) -> Result<u64> {
        let Self { checked: Checked { reading, updates, release_id, attempt }, outcome, compaction: merged } = self;
        let number = reading.number();
        let Reading { mut open, observer, periods, .. } = reading;
        let rows = observer.rows();
        let unit = periods.as_ref().and(open.publication.period).map(|period| period.unit);
        let periods = periods.map(|(earlier, period)| earlier.into_iter().chain([period]).collect());
        let (held_back, held) = held.map_or((None, None), |held| (Some(held.record), held.file));
        let (beliefs, believed) = outcome.believed.map_or((None, None), |made| (Some(made.record), Some(made.file)));
        let record = Record {
            number,
            attempt: attempt.name,
            release_id,
            fingerprint: observer.fingerprint(),
            whole: observer.whole(),
            earlier: open.newest().map(Record::fingerprints).unwrap_or_default(),
            updates,
            snapshot_rows: rows,
            files: attempt.files,
            entries: outcome.entries.iter().map(|made| &made.file).chain(&attempt.entries).cloned().collect(),
            figures: outcome.figures,
            withheld: outcome.withheld,
            information_loss: outcome.information_loss,
            balanced: open.balanced(),
            unit,
            periods: periods.unwrap_or_default(),
            held_back,
            beliefs,
        };
        let staged = attempt.entries;
        let remembered =
            Remembered { schema: outcome.schema, entries: outcome.entries, staged, merged, held, believed };
        protocol::decide(&mut open, record, &remembered).await?;
        let announced = publish(&mut open).await?;
        Ok(if announced.is_some_and(|announced| announced.here) { rows } else { 0 })
    }

    /// Returns what there is to tell the publisher of a release that is made: who has come and left, and what is not said of its period. Ordinary facts
    /// come first.
    /// Fails when more people are missing than the publication allows.
    fn check_people(&self) -> Result<[Vec<String>; 2]> {
        let publication = self.checked.reading.publication();
        let (mut facts, mut notices) = (Vec::new(), Vec::new());
        if let Some(turnover) = self.turnover() {
            turnover.check(publication)?;
            let told = if turnover.is_suspicious(publication) { &mut notices } else { &mut facts };
            told.push(turnover.notice(publication));
        }
        let new = self.outcome.figures.rows.saturating_sub(self.outcome.figures.counterfeits);
        if publication.spec.keeps_apart() && self.checked.number() > 1 && new > 0 {
            facts.push(turnover::of_new_people(publication, self.checked.number(), new));
        }
        notices.extend(periods::unsaid(publication, self.checked.number()));
        Ok([facts, notices])
    }

    /// Returns who has returned, come and left, of a method that remembers people.
    fn turnover(&self) -> Option<Turnover> {
        let Self { checked: Checked { reading: Reading { open, observer, .. }, .. }, outcome, .. } = self;
        let spec = &open.publication.spec;
        let newest = open.newest()?;
        spec.method.state().filter(|_| spec.repositioned.is_none())?;
        let (rows, returned) = (observer.rows(), outcome.returning as u64);
        Some(Turnover {
            newest: newest.number,
            before: newest.figures.rows.saturating_sub(newest.figures.counterfeits),
            returned,
            stayed: outcome.stayed.map(|count| count as u64),
            // Everybody has one entry at least.
            known: outcome.known.map_or(u64::MAX, |count| count as u64).min(open.state.rows()),
            came: rows.saturating_sub(returned),
        })
    }
}
