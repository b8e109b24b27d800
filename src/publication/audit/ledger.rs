//! Checks of the ledger, and of releases against it.

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path;
use deltalake_core::DeltaTable;
use url::Url;

use super::FUNCTION;
use super::promises::Remembered;
use crate::error::{Error, refusal};
use crate::methods::m_distinct::Possible;
use crate::methods::state::{IDENTIFIER, RELEASE, former_worlds, original_column, published_column};
use crate::methods::{AnyMethod, StateKind};
use crate::publication::delta;
use crate::publication::entries::Entries;
use crate::publication::files::intact;
use crate::publication::fingerprint::RelationFingerprint;
use crate::publication::ledger_metadata::LedgerMetadata;
use crate::publication::ledger_state::{self, LedgerState};
use crate::publication::place::{Access, Place};
use crate::publication::record::Record;
use crate::release::{COMMITMENTS, LABEL, PARTNERS, SIGNATURE};
use crate::risk::{Check, Histories, Partnerships, ReleasedTable, Repeats};

fn named(error: Error) -> DataFusionError {
    error.in_function(FUNCTION)
}

/// The ledger of a publication.
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
        let (newest, state) = ledger_state::newest(&table).await?;
        Ok(Self { metadata: LedgerMetadata::of(&table, private)?, place, table, newest, state })
    }

    /// Whether nobody has added to it since.
    pub(super) async fn is_newest(&self) -> bool {
        delta::is_newest(&self.table).await.unwrap_or(true)
    }

    /// Whether the commits of all releases are those that were written. What an INSERT needs is in the newest; the older ones tell
    /// what was published when.
    pub(super) async fn commits(&self) -> Check {
        let (damaged, all) = ledger_state::damaged_commits(&self.table).await;
        Check::none(None, "ledger: commits are those that were written", damaged, all, "are missing or not")
    }

    /// It is at the newest release, or one ahead: decided, to be completed by the next INSERT.
    pub(super) fn knows(&self, newest: u64) -> Check {
        let decided = delta::version(&self.table);
        let figures = format!("{decided} releases decided, {newest} public");
        Check::new(None, "ledger: knows all releases", decided == newest || decided == newest + 1, figures)
    }

    /// Whether the update relation is the one that a release was made with; `None` if releases have none.
    pub(super) fn agreed(&self, said: Option<&String>, updates: Option<&[RecordBatch]>) -> Result<Option<Check>> {
        let Some(said) = said else { return Ok(None) };
        let mut fingerprint = RelationFingerprint::new(self.metadata.key);
        updates.unwrap_or_default().iter().try_for_each(|batch| fingerprint.add(batch))?;
        let same = fingerprint.finish() == *said;
        let figures = if same { "the same updates" } else { "other updates" };
        Ok(Some(Check::new(None, "update relation: that of the first release", same, figures)))
    }

    /// Whether every value can become every other.
    pub(super) fn any_update(&self) -> bool {
        matches!(&self.metadata.spec.method, AnyMethod::MDistinct(params) if params.updates == Possible::Any)
    }

    /// All of its entries, if all of its files are as they were written: what an INSERT compares before it goes on.
    pub(super) async fn entries(&self) -> Result<RecordBatch> {
        if let Some(held) = self.newest.as_ref().and_then(|newest| newest.held_back.as_ref()?.file.as_ref())
            && intact(self.place.store().as_ref(), &Path::from(held.name.as_str()), held).await?.is_none()
        {
            return Err(refusal!(FUNCTION, "the rows that are held back are not as they were written"));
        }
        let entries =
            Entries { place: self.place.clone(), ledger: self.table.clone(), files: self.state.entries.clone() };
        let batches = entries.rows().await?;
        let schema = match batches.first() {
            Some(batch) => batch.schema(),
            None => delta::columns(&self.table)?,
        };
        Ok(concat_batches(&schema, &batches)?)
    }
}

/// What a ledger remembers of people, and the releases that were looked at so far.
pub(super) enum Past {
    Nothing,
    Signatures(Histories),
    Rows(Repeats),
    Worlds(Partnerships),
}

impl Past {
    /// What a ledger's entries, which are state of this kind, remember of people, whose values change as a relation says, or in any
    /// way. Nothing where columns are missing. Computes.
    pub(super) fn of(
        kind: Option<StateKind>,
        entries: &RecordBatch,
        updates: &[RecordBatch],
        any_update: bool,
    ) -> Result<Self> {
        let column = |name: &str| entries.column_by_name(name);
        let (Some(kind), Some(ids), Some(releases)) = (kind, column(IDENTIFIER), column(RELEASE)) else {
            return Ok(Self::Nothing);
        };
        match kind {
            StateKind::Signatures | StateKind::LabelledSignatures => {
                let Some(signatures) = column(SIGNATURE) else { return Ok(Self::Nothing) };
                let DataType::List(item) = signatures.data_type() else {
                    return Err(refusal!(FUNCTION, "the signatures of the ledger are not lists"));
                };
                let mut histories = Histories::try_new(ids.data_type(), item.data_type()).map_err(named)?;
                histories.append_entries(ids, signatures, column(LABEL), releases).map_err(named)?;
                for batch in updates {
                    histories.append_updates(batch.column(0), batch.column(1)).map_err(named)?;
                }
                if any_update {
                    histories.allow_any_update();
                }
                Ok(Self::Signatures(histories))
            }
            StateKind::Worlds => {
                let Some(partners) = column(PARTNERS) else { return Ok(Self::Nothing) };
                let mut partnerships = Partnerships::try_new(ids.data_type()).map_err(named)?;
                partnerships.append_entries(ids, partners, releases).map_err(named)?;
                if let Some(commitments) = column(COMMITMENTS) {
                    partnerships.append_former(former_worlds(commitments).map_err(named)?);
                }
                Ok(Self::Worlds(partnerships))
            }
            StateKind::Perturbations => {
                let all = |name: fn(usize) -> String| -> Vec<ArrayRef> {
                    (0..).map_while(|j| column(&name(j)).map(ArrayRef::clone)).collect()
                };
                let (originals, published) = (all(original_column), all(published_column));
                let types: Vec<DataType> = published.iter().map(|column| column.data_type().clone()).collect();
                let mut repeats = Repeats::try_new(ids.data_type(), &types).map_err(named)?;
                repeats.append_entries(ids, &originals, &published, releases).map_err(named)?;
                Ok(Self::Rows(repeats))
            }
        }
    }

    /// Bytes held, roughly.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Signatures(histories) => histories.size(),
            Self::Rows(repeats) => repeats.size(),
            Self::Worlds(partnerships) => partnerships.size(),
        }
    }

    /// Appends a release with its quasi-identifiers.
    pub(super) fn append(
        &mut self,
        number: u64,
        table: &ReleasedTable,
        rows: &RecordBatch,
        quasi: &[String],
    ) -> crate::error::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Signatures(histories) => histories.append_release(number, table),
            Self::Worlds(partnerships) => {
                partnerships.append_release(number, table.rows() as u64);
                Ok(())
            }
            Self::Rows(repeats) => {
                let columns = quasi.iter().filter_map(|name| rows.column_by_name(name)).map(ArrayRef::clone);
                repeats.append_release(number, &columns.collect::<Vec<_>>())
            }
        }
    }

    /// Whether ledger and releases agree and keep what the method promises.
    pub(super) fn checks(self, promised: Remembered) -> crate::error::Result<Vec<Check>> {
        match (self, promised) {
            (Self::Signatures(histories), Remembered::Signatures(m, lineage)) => histories.checks(m, lineage),
            (Self::Rows(repeats), Remembered::Rows) => Ok(repeats.checks()),
            (Self::Worlds(partnerships), Remembered::Worlds(l, removals)) => Ok(partnerships.checks(l, removals)),
            (Self::Nothing, Remembered::Nothing) => Ok(Vec::new()),
            _ => {
                let figures = "it remembers something else, or nothing";
                Ok(vec![Check::new(None, "ledger: remembers what the method needs", false, figures)])
            }
        }
    }
}
