//! Checks of the ledger, and of releases against it.

use std::pin::pin;

use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use deltalake_core::DeltaTable;
use futures::StreamExt;
use url::Url;

use super::FUNCTION;
use crate::error::{Error, refusal};
use crate::methods::state::{IDENTIFIER, RELEASE, SEAL};
use crate::methods::{Remembered, ValueChanges};
use crate::microdata::cells_of;
use crate::publication::blocking::blocking;
use crate::publication::delta;
use crate::publication::entries::{Entries, reader};
use crate::publication::files::intact;
use crate::publication::fingerprint::RelationFingerprint;
use crate::publication::ledger_metadata::LedgerMetadata;
use crate::publication::ledger_state::{self, LedgerState};
use crate::publication::paths::staged;
use crate::publication::place::{Access, Place};
use crate::publication::reader::Reader;
use crate::publication::record::Record;
use crate::release::{LABEL, Lineage, PARTNERS, SIGNATURE};
use crate::risk::{Appearances, Check, Histories, Partnerships, ReleasedTable};

fn named(error: Error) -> DataFusionError {
    error.in_function(FUNCTION)
}

pub(super) struct Ledger {
    place: Place,
    table: DeltaTable,
    newest: Option<Record>,
    state: LedgerState,
    pub(super) metadata: LedgerMetadata,
}

impl Ledger {
    pub(super) async fn open(private: &Url, runtime: &RuntimeEnv) -> Result<Self> {
        let place = Place::open(private, Access::Private, runtime)?;
        let Some(table) = delta::newest(place.log_store()).await? else {
            return Err(refusal!(FUNCTION, "there is no ledger"));
        };
        LedgerMetadata::check_format(&table, private)?;
        let (newest, state) = ledger_state::newest(&table).await?;
        Ok(Self { metadata: LedgerMetadata::of(&table, private)?, place, table, newest, state })
    }

    /// Returns true if nobody has added to it since.
    pub(super) async fn is_newest(&self) -> bool {
        delta::is_newest(&self.table).await.unwrap_or(true)
    }

    /// Checks that the commits of all releases are those that were written. What an INSERT needs is in the newest; the
    /// older ones tell what was published when.
    pub(super) async fn commits(&self) -> Check {
        let (damaged, all) = ledger_state::damaged_commits(&self.table).await;
        Check::none(None, "ledger: commits are those that were written", damaged, all, "are missing or not")
    }

    /// Checks that the ledger is at the newest release, or one ahead. The next INSERT completes that one.
    pub(super) fn knows(&self, newest: u64) -> Check {
        let decided = delta::version(&self.table);
        let figures = format!("{decided} releases decided, {newest} public");
        Check::new(None, "ledger: knows all releases", decided == newest || decided == newest + 1, figures)
    }

    /// Checks that a release can be completed which is decided and not public yet. All of its files must be staged until it is public.
    pub(super) async fn can_complete(&self, public: &Reader) -> Result<Option<Check>> {
        let Some(newest) = self.newest.as_ref().filter(|newest| newest.number == public.newest() + 1) else {
            return Ok(None);
        };
        let (mut gone, mut copied) = (0, 0);
        for file in &newest.files {
            let (here, there) = (staged(&newest.attempt, file), Path::from(file.name.as_str()));
            if intact(self.place.store().as_ref(), &here, file).await?.is_none() {
                gone += 1;
                copied += usize::from(intact(public.store().as_ref(), &there, file).await?.is_some());
            }
        }
        let number = Some(newest.number);
        if copied > 0 && copied == gone {
            let figures = "it was public, and its commit is lost; the next INSERT commits the same files again";
            return Ok(Some(Check::new(number, "the release that was decided can be made public", false, figures)));
        }
        Ok(Some(Check::none(
            number,
            "the release that was decided can be made public",
            gone,
            newest.files.len(),
            "files are gone",
        )))
    }

    /// Checks that the update relation is a release's; `None` if releases have none.
    pub(super) fn agreed(&self, said: Option<&String>, updates: Option<&[RecordBatch]>) -> Result<Option<Check>> {
        let Some(said) = said else { return Ok(None) };
        let domain = self.metadata.spec.has_domain();
        let mut fingerprint = RelationFingerprint::new(self.metadata.key, domain);
        updates.unwrap_or_default().iter().try_for_each(|batch| fingerprint.add(batch))?;
        let same = fingerprint.finish() == *said;
        let (check, figures) = match (domain, same) {
            (true, true) => ("domain: that of the first release", "the same values"),
            (true, false) => ("domain: that of the first release", "other values"),
            (false, true) => ("update relation: that of the first release", "the same updates"),
            (false, false) => ("update relation: that of the first release", "other updates"),
        };
        Ok(Some(Check::new(None, check, same, figures)))
    }

    /// Returns true if every value can become every other.
    pub(super) fn any_update(&self) -> bool {
        self.metadata.spec.method.as_method().changes() == ValueChanges::Any
    }

    /// Reads the entries of people, if all files of the ledger are unchanged.
    ///
    /// An INSERT compares the same before it goes on. Entries that do not fit a quarter of the memory limit are read in several passes, each for other
    /// people.
    pub(super) async fn remembers(
        &self,
        updates: &[RecordBatch],
        context: &TaskContext,
        memory: &MemoryReservation,
    ) -> Result<Past> {
        if let Some(held) = self.newest.as_ref().and_then(|newest| newest.held_back.as_ref()?.file.as_ref())
            && intact(self.place.store().as_ref(), &Path::from(held.name.as_str()), held).await?.is_none()
        {
            return Err(refusal!(FUNCTION, "the rows that are held back are not as they were written"));
        }
        if let Some(believed) =
            self.newest.as_ref().and_then(|newest| newest.beliefs.as_ref()).map(|beliefs| &beliefs.file)
        {
            memory.try_resize(believed.size as usize)?;
            if intact(self.place.store().as_ref(), &Path::from(believed.name.as_str()), believed).await?.is_none() {
                return Err(refusal!(FUNCTION, "the probabilities of people's values are not as they were written"));
            }
        }
        let kind = self.metadata.spec.promises_of_memory();
        let rows: u64 = self.state.entries.iter().map(|kept| kept.file.rows).sum();
        let passes = match (kind, context.memory_pool().memory_limit()) {
            (Remembered::Signatures(..), MemoryLimit::Finite(limit)) => {
                (rows as usize * ENTRY_BYTES).div_ceil((limit / 4).max(1)).clamp(1, MOST_PASSES)
            }
            _ => 1,
        } as u32;
        let entries =
            Entries { place: self.place.clone(), ledger: self.table.clone(), files: self.state.entries.clone() };
        let mut past = Past::Unknown(kind);
        for pass in 0..passes {
            let mut files = pin!(entries.contents());
            while let Some(contents) = files.next().await.transpose()? {
                let held = contents.len();
                let mut batches = blocking(move || reader(contents)).await?;
                loop {
                    let (rest, batch) = blocking(move || {
                        let batch = batches.next().transpose()?;
                        Ok::<_, DataFusionError>((batches, batch))
                    })
                    .await?;
                    batches = rest;
                    let Some(batch) = batch else { break };
                    // The file, some of its rows, and their codes.
                    memory.try_resize(past.size() + held + 2 * get_record_batch_memory_size(&batch))?;
                    let (changes, any_update) = (updates.to_vec(), self.any_update());
                    past = blocking(move || {
                        let mut past = past;
                        past.append_people(&some_people(&batch, passes, pass)?, &changes, any_update)?;
                        Ok::<_, DataFusionError>(past)
                    })
                    .await?;
                }
                memory.try_resize(past.size())?;
            }
            past = blocking(move || {
                let mut past = past;
                past.close_people()?;
                Ok(past)
            })
            .await?;
        }
        if let Past::Unknown(_) = past {
            // Nobody has been published yet.
            let nobody = RecordBatch::new_empty(delta::columns(&self.table)?);
            past.append_people(&nobody, updates, self.any_update())?;
        }
        memory.try_resize(past.size())?;
        Ok(past)
    }
}

/// Bytes that an entry takes while all of a person's are looked at, roughly.
const ENTRY_BYTES: usize = 256;
/// Most times that a ledger is read.
const MOST_PASSES: usize = 4096;

/// Returns the entries of those people whose turn it is.
fn some_people(batch: &RecordBatch, passes: u32, pass: u32) -> Result<RecordBatch> {
    let Some(ids) = batch.column_by_name(IDENTIFIER).filter(|_| passes > 1) else { return Ok(batch.clone()) };
    let turns = cells_of(ids, passes).map_err(named)?;
    let now: BooleanArray = turns.values().iter().map(|turn| Some(*turn == pass)).collect();
    Ok(filter_record_batch(batch, &now)?)
}

/// Past of an audit: a ledger's entries of people, and the releases that were looked at so far.
pub(super) enum Past {
    /// No entry was seen yet of what is remembered.
    Unknown(Remembered),
    Nothing,
    Signatures(Box<Histories>),
    People(Appearances),
    Worlds(Partnerships),
}

impl Past {
    /// Collects entries with these columns, of people whose values change so. Nothing where columns are missing.
    fn of(kind: Remembered, entries: &RecordBatch, updates: &[RecordBatch], any_update: bool) -> Result<Self> {
        let column = |name: &str| entries.column_by_name(name);
        let (Some(ids), Some(_)) = (column(IDENTIFIER), column(RELEASE)) else {
            return Ok(Self::Nothing);
        };
        match kind {
            Remembered::Nothing => Ok(Self::Nothing),
            Remembered::Signatures(_, lineage) => {
                let Some(signatures) = column(SIGNATURE) else { return Ok(Self::Nothing) };
                if !matches!(lineage, Lineage::Distinct { .. }) && column(SEAL).is_none() {
                    return Ok(Self::Nothing);
                }
                let DataType::List(item) = signatures.data_type() else {
                    return Err(refusal!(FUNCTION, "the signatures of the ledger are not lists"));
                };
                let mut histories = Histories::try_new(ids.data_type(), item.data_type()).map_err(named)?;
                for batch in updates {
                    histories.append_updates(batch.column(0), batch.column(1)).map_err(named)?;
                }
                if any_update {
                    histories.allow_any_update();
                }
                Ok(Self::Signatures(Box::new(histories)))
            }
            Remembered::Worlds(..) if column(PARTNERS).is_none() => Ok(Self::Nothing),
            Remembered::Worlds(..) => Ok(Self::Worlds(Partnerships::try_new(ids.data_type()).map_err(named)?)),
            Remembered::People => Ok(Self::People(Appearances::try_new(ids.data_type()).map_err(named)?)),
        }
    }

    /// Appends entries of the ledger. Computes.
    fn append_people(&mut self, entries: &RecordBatch, updates: &[RecordBatch], any_update: bool) -> Result<()> {
        if let Self::Unknown(kind) = self {
            *self = Self::of(*kind, entries, updates, any_update)?;
        }
        let column = |name: &str| {
            let column = entries.column_by_name(name);
            column.ok_or_else(|| refusal!(FUNCTION, "the entries of the ledger do not have the same columns"))
        };
        match self {
            Self::Unknown(_) | Self::Nothing => Ok(()),
            Self::Signatures(histories) => {
                let labels = entries.column_by_name(LABEL);
                histories
                    .append_entries(column(IDENTIFIER)?, column(SIGNATURE)?, labels, column(RELEASE)?)
                    .map_err(named)
            }
            Self::Worlds(partnerships) => {
                partnerships.append_entries(column(IDENTIFIER)?, column(PARTNERS)?, column(RELEASE)?).map_err(named)
            }
            Self::People(people) => people.append_entries(column(IDENTIFIER)?, column(RELEASE)?).map_err(named),
        }
    }

    /// Says that all entries of the people so far were appended.
    fn close_people(&mut self) -> Result<()> {
        match self {
            Self::Signatures(histories) => histories.close_people().map_err(named),
            _ => Ok(()),
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Unknown(_) | Self::Nothing => 0,
            Self::Signatures(histories) => histories.size(),
            Self::People(people) => people.size(),
            Self::Worlds(partnerships) => partnerships.size(),
        }
    }

    /// Appends a release, or a part of it.
    pub(super) fn append(&mut self, number: u64, table: &ReleasedTable) -> crate::error::Result<()> {
        match self {
            Self::Unknown(_) | Self::Nothing => Ok(()),
            Self::Signatures(histories) => histories.append_release(number, table),
            Self::Worlds(partnerships) => {
                partnerships.append_release(number, table.rows() as u64);
                Ok(())
            }
            Self::People(people) => {
                people.append_release(number, table.rows() as u64);
                Ok(())
            }
        }
    }

    /// Checks that ledger and releases agree and keep the promise of the method.
    pub(super) fn checks(self, promised: Remembered) -> crate::error::Result<Vec<Check>> {
        match (self, promised) {
            (Self::Signatures(histories), Remembered::Signatures(m, lineage)) => histories.checks(m, lineage),
            (Self::People(people), Remembered::People | Remembered::Nothing) => Ok(people.checks()),
            (Self::Worlds(partnerships), Remembered::Worlds(l)) => Ok(partnerships.checks(l)),
            (Self::Nothing, Remembered::Nothing) => Ok(Vec::new()),
            _ => {
                let figures = "it remembers something else, or nothing";
                Ok(vec![Check::new(None, "ledger: remembers what the method needs", false, figures)])
            }
        }
    }
}
