//! The audit of a publication: its stored tables against its promises, each other and the ledger.

mod belief_audit;
mod columns;
mod files;
mod ledger;
mod parts;
mod single_release;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::object_store;
use datafusion::prelude::{SessionConfig, SessionContext};
use url::Url;

use self::belief_audit::BeliefAudit;
use self::columns::{columns_of, described, sensitive_value, several, some_sensitive};
use self::files::Files;
use self::ledger::{Ledger, Past};
use self::parts::Parts;
pub(crate) use self::single_release::failed_checks;
use super::blocking::blocking;
use super::buffer_bytes::Buffers;
use super::delta;
use super::format::is_unknown;
use super::reader::{Reader, ReleaseRow};
use super::record::{Announcement, Figures};
use crate::error::{Error, refusal};
use crate::methods::{Against, AnyMethod, LeftOut, Remembered};
use crate::microdata::{Role, Several, compose};
use crate::release::Promise;
use crate::risk::{Check, ReleaseFindings, ReleasedTable, TableColumns};

const FUNCTION: &str = "audit";

#[derive(Debug, Clone)]
pub(crate) struct Audit {
    pub(crate) public: Url,
    /// Location of the ledger, if this is the publisher's.
    pub(crate) private: Option<Url>,
}

impl Audit {
    /// Returns all checks, release by release, and those of the ledger. Reads all releases, one after the other. `updates` are the rows
    /// of the publisher's update relation.
    /// Fails when nothing was published yet, or a store fails. What can be read but is wrong is a failed check.
    pub(crate) async fn run(self, updates: Option<Vec<RecordBatch>>, context: &TaskContext) -> Result<Vec<Check>> {
        let runtime = context.runtime_env();
        let Some(reader) = Reader::open(&self.public, &runtime).await? else {
            return Err(refusal!(FUNCTION, "nothing has been published yet"));
        };
        // Files are read from their beginning to their end, one after the other: the order of rows is a thing to check.
        let config = SessionConfig::new().with_target_partitions(1).with_repartition_file_scans(false);
        // Of long texts, rows take much memory until those that come again are found.
        let config = config.with_batch_size(1024);
        let session = SessionContext::new_with_config_rt(config, Arc::clone(&runtime));
        let memory = MemoryConsumer::new(FUNCTION).register(context.memory_pool());
        let mut checks = Vec::new();
        let (mut ledger, mut past) = (None, None);
        if let Some(private) = &self.private {
            let changes = updates.clone().unwrap_or_default();
            let read = || async {
                let ledger = Ledger::open(private, &runtime).await?;
                let commits = ledger.commits().await;
                let past = ledger.remembers(&changes, context, &memory).await;
                if past.is_err() && !ledger.is_newest().await {
                    // An INSERT has merged files while they were read.
                    return Ok(None);
                }
                Ok::<_, DataFusionError>(Some((ledger, commits, past?)))
            };
            let opened = async {
                loop {
                    if let Some(read) = read().await? {
                        return Ok::<_, DataFusionError>(read);
                    }
                }
            };
            match opened.await {
                Ok((opened, commits, remembered)) => {
                    checks.extend([opened.knows(reader.newest()), commits]);
                    (ledger, past) = (Some(opened), Some(remembered));
                }
                Err(error) if matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) => return Err(error),
                Err(error) if is_unknown(&error) => checks.push(Check::new(
                    None,
                    "ledger: can be read",
                    false,
                    "it says more than this version of the program knows: a later version wrote it; audit with that one",
                )),
                // Errors of stores can say more than is wanted in a table of checks.
                Err(_) => checks.push(Check::new(
                    None,
                    "ledger: can be read",
                    false,
                    "it cannot, is not there, or is not as it was written",
                )),
            }
        }
        let releases = match reader.versions(self.private.as_ref(), &runtime).await {
            Err(error) if is_unknown(&error) => {
                checks.push(Check::new(
                    None,
                    "public table: can be read",
                    false,
                    "it says more than this version of the program knows: a later version wrote it; audit with that one",
                ));
                Vec::new()
            }
            releases => releases?,
        };
        if let Some(ledger) = &ledger {
            checks.extend(ledger.can_complete(&reader).await?);
        }
        if let (Some(ledger), Some(Some(first))) = (&ledger, releases.first()) {
            let said = first.record.as_ref().and_then(|record| record.updates.as_ref());
            checks.extend(ledger.agreed(said, updates.as_deref())?);
        }
        let (mut remembered, mut reached) = (Remembered::Nothing, BeliefAudit::default());
        for (number, row) in (1..).zip(releases) {
            let found = match row {
                // What is damaged at this version is not at others; a store that fails fails for all.
                Some(row) => match reader.release(Some(number)).await {
                    Ok(table) => Some((row, table)),
                    Err(error) if failed_store(&error) => return Err(error),
                    Err(_) => None,
                },
                None => None,
            };
            let Some((row, table)) = found else {
                let figures = "it is none, or it cannot be read: somebody wrote to the table, or took something away";
                checks.push(Check::new(Some(number), "the version is a release", false, figures));
                continue;
            };
            let files = Files::read(&reader, &table, row.record.as_ref()).await?;
            checks.extend(files.checks(number));
            let Some(schema) = files.schema.clone() else {
                checks.push(Check::new(Some(number), "files can be read", false, "none can"));
                continue;
            };
            let commit = delta::committed(&table, number).await?;
            let text = delta::text(&row.announcement)?;
            let no_more = commit.is_some_and(|commit| commit.says_no_more(delta::COMMIT_KEY, &text));
            let figures = if no_more { "it does" } else { "it says more of files, or of itself" };
            checks.push(Check::new(Some(number), "the commit says what it is to say, and no more", no_more, figures));
            let same = delta::has_columns(&table, &schema)?;
            let figures = if same { "the same columns" } else { "other columns, or something else of them" };
            checks.push(Check::new(Some(number), "the log says of columns what files do", same, figures));
            let method = AnyMethod::described(&row.announcement.description());
            let promises = method.as_ref().and_then(|method| method.as_method().promises());
            let (Some(method), Some(promises)) = (method, promises) else {
                let figures = "nobody here knows what it promises";
                checks.push(Check::new(Some(number), "the method is known", false, figures));
                continue;
            };
            let metadata = ledger.as_ref().map(|ledger| &ledger.metadata);
            checks.extend(described(&schema, &row.announcement, metadata, &method));
            if ledger.is_some() {
                checks.push(noted(&row));
            }
            checks.extend(held_against(&row));
            let agreed = metadata.and_then(|metadata| metadata.spec.roles.sensitive.as_ref());
            let some =
                some_sensitive(&schema, agreed).filter(|_| method.as_method().leaves_out() == LeftOut::Remembered);
            if let Some(there) = &some {
                let figures = format!("{} are, so what is looked at is sizes of groups", there.len());
                checks.push(Check::new(Some(number), "which sensitive columns are there", true, figures));
            }
            let mut looked = Looked { findings: ReleaseFindings::default(), whole: None, past };
            let Ok(mut rows) = Parts::of(&table, &session, promises.whole.is_some(), memory.new_empty()).await else {
                checks.push(Check::new(Some(number), "rows can be read", false, "they cannot"));
                past = looked.past;
                continue;
            };
            remembered = promises.memory;
            let columns = columns(&schema);
            let unreadable = loop {
                let part = match rows.next().await {
                    Ok(Some(part)) => part,
                    Ok(None) => break false,
                    Err(error) if matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) => {
                        return Err(error);
                    }
                    Err(_) => break true,
                };
                // The rows, and their codes.
                let kept = looked.past.as_ref().map_or(0, Past::size);
                memory.try_resize(3 * Buffers::default().add(&part) + kept)?;
                let groups = match &some {
                    Some(_) => promises.sizes.clone(),
                    None => promises.groups.clone(),
                };
                let (whole, columns) = (promises.whole, columns.clone());
                let compared = some.is_none();
                looked = blocking(move || looked.look(number, &part, &columns, &groups, whole, compared)).await?;
            };
            if unreadable {
                checks.push(Check::new(Some(number), "rows can be read", false, "they cannot"));
            } else {
                if let Some(record) = row.record.as_ref().filter(|_| ledger.is_some()) {
                    checks.extend(reached.check(record, promises.memory, looked.findings.largest()));
                }
                checks.extend(looked.checks(&row.announcement, !method.form().has_groups()));
            }
            past = looked.past;
        }
        if let Some(past) = past {
            checks
                .extend(blocking(move || past.checks(remembered).map_err(|error| error.in_function(FUNCTION))).await?);
        }
        checks.sort_by_key(|check| check.release.unwrap_or(u64::MAX));
        Ok(checks)
    }
}

/// Returns true if a store did not answer. This tells nothing of its contents.
fn failed_store(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ObjectStore(source) => !matches!(**source, object_store::Error::NotFound { .. }),
        _ => false,
    }
}

/// Checks that the ledger and the public table say the same of a release.
fn noted(row: &ReleaseRow) -> Check {
    let same = row.record.as_ref().is_some_and(|record| record.figures == row.announcement.figures);
    let figures = match &row.record {
        Some(_) if same => "the same rows, groups and counterfeits",
        Some(_) => "other rows, groups or counterfeits",
        None => "the ledger does not know the release",
    };
    Check::new(Some(row.announcement.number), "ledger: notes what was announced", same, figures)
}

/// Returns the check of the reader for whom the bound holds; releases say more of participants. And whether the ledger and the release say the same of it.
fn held_against(row: &ReleaseRow) -> Option<Check> {
    let against = row.against?;
    let other_period = row.announced_another_period();
    let unbalanced = row.balanced() == Some(true) && against < Against::Program;
    let agree = !other_period && !unbalanced && !row.before_earlier;
    let figures = match against {
        _ if other_period => "the ledger says that it is of another period than the release does",
        _ if row.before_earlier => "it says a period before that of an earlier release",
        _ if unbalanced => "the ledger says that all releases are balanced, and they say that they are not",
        _ if row.silent => {
            "not one who knows that values changed since the release before: not all releases say their periods"
        }
        Against::Participant => "a participant (who knows their own value and others') who knows this program",
        Against::Program => "a stranger (who knows nobody's value) who knows this program",
        Against::Law => {
            "a stranger (who knows nobody's value) who knows this program, and not how many people of each value came after the first release"
        }
        Against::People => "a stranger (who knows nobody's value) who combines people",
        Against::Paper => {
            "the stranger (who knows nobody's value) of the method's paper, not one who knows this program"
        }
    };
    let kept = if row.kept { "; not one who knows an insensitive value of somebody" } else { "" };
    let alone =
        if row.alone { "; of this release by itself: nobody checks that its people are in no other" } else { "" };
    let nameless = if row.nameless { "; if every row is another person: without an id nobody checks it" } else { "" };
    let figures = format!("{figures}{kept}{alone}{nameless}");
    Some(Check::new(Some(row.announcement.number), "the reader that the bound is for", agree, figures))
}

fn columns(schema: &SchemaRef) -> TableColumns {
    let only = |role: Role| columns_of(schema, role).into_iter().next();
    TableColumns {
        quasi: columns_of(schema, Role::Quasi),
        sensitive: sensitive_value(schema).map(|(whole, _)| whole).or_else(|| only(Role::Sensitive)),
        within: only(Role::Within),
    }
}

/// Returns the rows, and beside several sensitive columns their value.
fn with_sensitive_value(rows: &RecordBatch) -> crate::error::Result<RecordBatch> {
    let schema = rows.schema();
    let Some((whole, parts)) = sensitive_value(&schema) else { return Ok(rows.clone()) };
    let columns: Vec<ArrayRef> = parts.iter().filter_map(|name| rows.column_by_name(name).cloned()).collect();
    let field = Arc::new(Field::new(whole, DataType::Utf8, true));
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain([field]).collect();
    let value: ArrayRef = Arc::new(compose(&columns)?);
    let columns = rows.columns().iter().cloned().chain([value]).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Findings on a release so far, with the past.
struct Looked {
    findings: ReleaseFindings,
    whole: Option<Check>,
    past: Option<Past>,
}

impl Looked {
    fn look(
        mut self,
        number: u64,
        rows: &RecordBatch,
        columns: &TableColumns,
        groups: &[Promise],
        whole: Option<usize>,
        compared: bool,
    ) -> Result<Self> {
        let named = |error: Error| error.in_function(FUNCTION);
        let rows = &with_sensitive_value(rows).map_err(named)?;
        let table = ReleasedTable::try_new(rows, columns).map_err(named)?;
        self.findings.add(&table, groups);
        let schema = rows.schema();
        if several(&schema) == Several::Each {
            // Each column keeps the promise by itself.
            for column in columns_of(&schema, Role::Sensitive) {
                let by_itself = TableColumns { sensitive: Some(column.clone()), ..columns.clone() };
                let table = ReleasedTable::try_new(rows, &by_itself).map_err(named)?;
                self.findings.add_column(&table, &column, groups);
            }
        }
        self.whole = whole.and_then(|l| table.no_value_beyond(Some(number), l));
        if let Some(past) = self.past.as_mut().filter(|_| compared) {
            past.append(number, &table).map_err(named)?;
        }
        Ok(self)
    }

    fn checks(&mut self, said: &Announcement, hidden: bool) -> Vec<Check> {
        let number = Some(said.number);
        let findings = std::mem::take(&mut self.findings);
        let [rows, groups, counterfeits] = findings.figures();
        let found = Figures { rows, groups: if hidden { 0 } else { groups }, counterfeits };
        let mut checks = findings.checks(number);
        checks.extend(self.whole.take());
        let Figures { rows: all, groups, counterfeits } = &found;
        let figures = format!("{all} rows in {groups} groups, {counterfeits} of them counterfeits");
        checks.push(Check::new(number, "rows are as many as announced", found == said.figures, figures));
        checks
    }
}
