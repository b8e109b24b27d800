//! The audit of a publication: its stored tables against its promises, each other and the ledger.

mod columns;
mod files;
mod ledger;
mod promises;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use deltalake_core::DeltaTable;
use url::Url;

use self::columns::{columns_of, described};
use self::files::Files;
use self::ledger::{Ledger, Past};
use self::promises::{Promises, Remembered};
use super::blocking::blocking;
use super::reader::{Reader, ReleaseRow, introduce, provider};
use super::record::{Announcement, Figures};
use crate::error::{Error, refusal};
use crate::microdata::Role;
use crate::risk::{Check, ReleasedTable, TableColumns};

const FUNCTION: &str = "audit";

/// A publication to be audited.
#[derive(Debug, Clone)]
pub(crate) struct Audit {
    pub(crate) public: Url,
    /// Where the ledger is, if this is the publisher's.
    pub(crate) private: Option<Url>,
}

impl Audit {
    /// All checks, release by release, and those of the ledger. Reads all releases, one after the other. `updates` are the rows
    /// of the publisher's update relation.
    ///
    /// # Errors
    /// When nothing was published yet, or a store fails. What can be read but is wrong is a failed check.
    pub(crate) async fn run(self, updates: Option<Vec<RecordBatch>>, context: &TaskContext) -> Result<Vec<Check>> {
        let runtime = context.runtime_env();
        let Some(reader) = Reader::open(&self.public, &runtime).await? else {
            return Err(refusal!(FUNCTION, "nothing has been published yet"));
        };
        // Files are read from their beginning to their end, one after the other: the order of rows is a thing to check.
        let config = SessionConfig::new().with_target_partitions(1).with_repartition_file_scans(false);
        let session = SessionContext::new_with_config_rt(config, Arc::clone(&runtime));
        let memory = MemoryConsumer::new(FUNCTION).register(context.memory_pool());
        let mut checks = Vec::new();
        let (mut ledger, mut past) = (None, None);
        if let Some(private) = &self.private {
            let read = || async {
                let ledger = Ledger::open(private, &runtime).await?;
                let commits = ledger.commits().await;
                let entries = ledger.entries().await;
                if entries.is_err() && !ledger.is_newest().await {
                    // An INSERT has merged files while they were read.
                    return Ok(None);
                }
                Ok::<_, DataFusionError>(Some((ledger, commits, entries?)))
            };
            let opened = async {
                let (ledger, commits, entries) = loop {
                    if let Some(read) = read().await? {
                        break read;
                    }
                };
                // The entries, and their codes.
                memory.try_resize(2 * entries.get_array_memory_size())?;
                let changes = updates.clone().unwrap_or_default();
                let (kind, any_update) = (ledger.metadata.spec.method.state(), ledger.any_update());
                let past = blocking(move || Past::of(kind, &entries, &changes, any_update)).await?;
                Ok::<_, DataFusionError>((ledger, commits, past))
            };
            match opened.await {
                Ok((opened, commits, remembered)) => {
                    checks.extend([opened.knows(reader.newest()), commits]);
                    (ledger, past) = (Some(opened), Some(remembered));
                }
                // Errors of stores can say more than is wanted in a table of checks.
                Err(_) => checks.push(Check::new(
                    None,
                    "ledger: can be read",
                    false,
                    "it cannot, is not there, or is not as it was written",
                )),
            }
        }
        let releases = reader.releases(self.private.as_ref(), &runtime).await?;
        if let (Some(ledger), Some(first)) = (&ledger, releases.first()) {
            let said = first.record.as_ref().and_then(|record| record.updates.as_ref());
            checks.extend(ledger.agreed(said, updates.as_deref())?);
        }
        let mut remembered = Remembered::Nothing;
        for row in releases {
            let number = row.announcement.number;
            let table = reader.release(Some(number)).await?;
            let files = Files::read(&reader, &table, row.record.as_ref()).await?;
            checks.extend(files.checks(number));
            let Some(schema) = files.schema.clone() else {
                checks.push(Check::new(Some(number), "files can be read", false, "none can"));
                continue;
            };
            let parameters = serde_json::from_str(&row.announcement.parameters).unwrap_or_default();
            let Some(promises) = Promises::of(&row.announcement.method, &parameters) else {
                let figures = "nobody here knows what it promises";
                checks.push(Check::new(Some(number), "the method is known", false, figures));
                continue;
            };
            let metadata = ledger.as_ref().map(|ledger| &ledger.metadata);
            checks.extend(described(&schema, &row.announcement, metadata, &promises));
            if ledger.is_some() {
                checks.push(noted(&row));
            }
            let Ok(rows) = rows(&table, &session).await else {
                checks.push(Check::new(Some(number), "rows can be read", false, "they cannot"));
                continue;
            };
            // The rows, and their codes.
            memory.try_resize(3 * rows.get_array_memory_size() + past.as_ref().map_or(0, Past::size))?;
            remembered = promises.memory;
            let (found, kept) = blocking(move || look(&row.announcement, &promises, &schema, &rows, past)).await?;
            checks.extend(found);
            past = kept;
        }
        if let Some(past) = past {
            checks
                .extend(blocking(move || past.checks(remembered).map_err(|error| error.in_function(FUNCTION))).await?);
        }
        checks.sort_by_key(|check| check.release.unwrap_or(u64::MAX));
        Ok(checks)
    }
}

/// Whether the ledger and the public table say the same of a release.
fn noted(row: &ReleaseRow) -> Check {
    let same = row.record.as_ref().is_some_and(|record| record.figures == row.announcement.figures);
    let figures = match &row.record {
        Some(_) if same => "the same rows, groups and counterfeits",
        Some(_) => "other rows, groups or counterfeits",
        None => "the ledger does not know the release",
    };
    Check::new(Some(row.announcement.number), "ledger: notes what was announced", same, figures)
}

/// All rows of a table, in the order of its files.
async fn rows(table: &DeltaTable, session: &SessionContext) -> Result<RecordBatch> {
    let state = session.state();
    introduce(table, &state)?;
    let plan = provider(table).await?.scan(&state, None, &[], None).await?;
    let schema = plan.schema();
    Ok(concat_batches(&schema, &collect(plan, session.task_ctx()).await?)?)
}

/// Everything about a release that computes: its checks, and the past with it.
fn look(
    said: &Announcement,
    promises: &Promises,
    schema: &SchemaRef,
    rows: &RecordBatch,
    mut past: Option<Past>,
) -> Result<(Vec<Check>, Option<Past>)> {
    let named = |error: Error| error.in_function(FUNCTION);
    let number = Some(said.number);
    let only = |role: Role| columns_of(schema, role).into_iter().next();
    let columns = TableColumns {
        quasi: columns_of(schema, Role::Quasi),
        sensitive: only(Role::Sensitive),
        within: only(Role::Within),
    };
    let table = ReleasedTable::try_new(rows, &columns).map_err(named)?;
    let mut checks = table.checks(number, &promises.groups);
    checks.extend(promises.whole.and_then(|l| table.no_value_beyond(number, l)));
    let groups = if promises.hidden { 0 } else { table.groups() as u64 };
    let found = Figures { rows: table.rows() as u64, groups, counterfeits: table.counterfeits() };
    let Figures { rows: all, groups, counterfeits } = &found;
    let figures = format!("{all} rows in {groups} groups, {counterfeits} of them counterfeits");
    checks.push(Check::new(number, "rows are as many as announced", found == said.figures, figures));
    if let Some(past) = &mut past {
        past.append(said.number, &table, rows, &columns.quasi).map_err(named)?;
    }
    Ok((checks, past))
}
