//! Whether a publication is what it says: its stored tables against its promises, each other and the ledger.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use deltalake_core::DeltaTable;
use serde_json::{Map, Value};
use url::Url;

use super::charter::Charter;
use super::delta;
use super::files::intact;
use super::memory::{IDENTIFIER, RELEASE};
use super::place::{Access, Place};
use super::reader::{Reader, ReleaseRow, introduce, provider};
use super::record::{Announcement, Figures, Record};
use crate::error::Error;
use crate::microdata::Role;
use crate::release::{Description, SIGNATURE, View, reserved_names};
use crate::risk::{Check, Histories, Promise, ReleasedTable, TableColumns};

const FUNCTION: &str = "audit";

/// A publication to be audited.
#[derive(Debug, Clone)]
pub(crate) struct Audit {
    pub(crate) public: Url,
    /// Where the ledger is, if this is the publisher's.
    pub(crate) private: Option<Url>,
}

/// What a method promises: of each release, and of the ledger.
struct Promises {
    groups: Vec<Promise>,
    /// Least number of values of the signatures in the ledger, if there are signatures.
    signatures: Option<usize>,
}

/// Another method joins here.
fn promises(method: &str, parameters: &Map<String, Value>) -> Option<Promises> {
    let number = |name: &str| parameters.get(name).and_then(Value::as_u64).map(|n| n as usize);
    let word = |name: &str| parameters.get(name).and_then(Value::as_str);
    Some(match method {
        "m_invariant" => {
            let m = number("m")?;
            Promises { groups: vec![Promise::Unique { m }], signatures: Some(m) }
        }
        // That its groups are legal update instances of earlier ones is not checked here.
        "m_distinct" => Promises { groups: vec![Promise::Unique { m: number("m")? }], signatures: None },
        "mondrian" => {
            let k = number("k").map(|k| Promise::Anonymous { k });
            let l = number("l").map(|l| match word("diversity") {
                Some("distinct") => Promise::Distinct { l },
                Some("entropy") => Promise::Entropy { l },
                _ => Promise::Frequency { l },
            });
            let t = parameters.get("t").and_then(Value::as_f64).map(|t| Promise::Close { t });
            Promises { groups: k.into_iter().chain(l).chain(t).collect(), signatures: None }
        }
        "anatomy" => Promises { groups: vec![Promise::Frequency { l: number("l")? }], signatures: None },
        _ => return None,
    })
}

impl Audit {
    /// All checks, release by release, and those of the ledger. Reads all releases, one after the other.
    ///
    /// # Errors
    /// When nothing was published yet, or a store fails. What can be read but is wrong is a failed check.
    pub(crate) async fn run(self, context: &TaskContext) -> Result<Vec<Check>> {
        let runtime = context.runtime_env();
        let Some(reader) = Reader::open(&self.public, &runtime).await? else {
            return exec_err!("{FUNCTION}: nothing has been published yet");
        };
        // Files are read from their beginning to their end, one after the other: the order of rows is a thing to check.
        let config = SessionConfig::new().with_target_partitions(1).with_repartition_file_scans(false);
        let session = SessionContext::new_with_config_rt(config, Arc::clone(&runtime));
        let memory = MemoryConsumer::new(FUNCTION).register(context.memory_pool());
        let mut checks = Vec::new();
        let mut charter = None;
        let mut histories = None;
        if let Some(private) = &self.private {
            match Ledger::open(private, &runtime).await {
                Ok(ledger) => {
                    checks.push(ledger.knows(reader.newest()));
                    histories = ledger.histories(&session).await?;
                    charter = Some(ledger.charter);
                }
                // Errors of stores can say more than is wanted in a table of checks.
                Err(_) => checks.push(Check::new(None, "ledger: can be read", false, "it cannot, or is not there")),
            }
        }
        let mut signatures = None;
        for row in reader.releases(self.private.as_ref(), &runtime).await? {
            let number = row.announcement.number;
            let table = reader.release(Some(number)).await?;
            let files = Files::read(&reader, &table, row.record.as_ref()).await?;
            let Some(schema) = files.schema.clone() else {
                checks.push(Check::new(Some(number), "files can be read", false, "none can"));
                continue;
            };
            checks.extend(files.checks(number));
            checks.extend(described(&schema, &row.announcement, charter.as_ref()));
            if charter.is_some() {
                checks.push(noted(&row));
            }
            let Ok(rows) = rows(&table, &session).await else {
                checks.push(Check::new(Some(number), "rows can be read", false, "they cannot"));
                continue;
            };
            // The rows, and their codes.
            memory.try_resize(3 * rows.get_array_memory_size() + histories.as_ref().map_or(0, Histories::size))?;
            let look = move || look(&row.announcement, &schema, &rows, histories);
            let done = SpawnedTask::spawn_blocking(look).join_unwind().await;
            let (found, kept, m) = done.map_err(|error| DataFusionError::External(Box::new(error)))??;
            checks.extend(found);
            histories = kept;
            signatures = m;
        }
        if let (Some(histories), Some(m)) = (histories, signatures) {
            checks.extend(histories.checks(m));
        }
        checks.sort_by_key(|check| check.release.unwrap_or(u64::MAX));
        Ok(checks)
    }
}

/// The publisher's memory.
struct Ledger {
    table: DeltaTable,
    charter: Charter,
}

impl Ledger {
    async fn open(private: &Url, runtime: &RuntimeEnv) -> Result<Self> {
        let place = Place::open(private, Access::Private, runtime)?;
        match delta::newest(&place).await? {
            Some(table) => Ok(Self { charter: Charter::of(&table, private)?, table }),
            None => exec_err!("{FUNCTION}: there is no ledger"),
        }
    }

    /// It is at the newest release, or one ahead: decided, to be completed by the next INSERT.
    fn knows(&self, newest: u64) -> Check {
        let decided = delta::version(&self.table);
        let figures = format!("{decided} releases decided, {newest} public");
        Check::new(None, "ledger: knows all releases", decided == newest || decided == newest + 1, figures)
    }

    /// Its signatures, if it has any.
    async fn histories(&self, session: &SessionContext) -> Result<Option<Histories>> {
        let entries = rows(&self.table, session).await?;
        let column = |name: &str| entries.column_by_name(name);
        let (Some(ids), Some(signatures), Some(releases)) = (column(IDENTIFIER), column(SIGNATURE), column(RELEASE))
        else {
            return Ok(None);
        };
        let DataType::List(item) = signatures.data_type() else { return Ok(None) };
        let named = |error: Error| error.in_function(FUNCTION);
        let mut histories = Histories::try_new(ids.data_type(), item.data_type()).map_err(named)?;
        histories.append_entries(ids, signatures, releases).map_err(named)?;
        Ok(Some(histories))
    }
}

/// What is in the files of a release.
#[derive(Default)]
struct Files {
    all: usize,
    /// Files that are not those that were decided; `None` if nobody knows which were.
    foreign: Option<usize>,
    /// Files with statistics of values, or with metadata beside the schema.
    talkative: usize,
    /// Schema that the files carry.
    schema: Option<SchemaRef>,
    /// Files with another one.
    others: usize,
}

impl Files {
    async fn read(reader: &Reader, table: &DeltaTable, record: Option<&Record>) -> Result<Self> {
        let mut found = Self { foreign: record.map(|_| 0), ..Self::default() };
        let listed = delta::files(table).await?;
        if let (Some(record), Some(foreign)) = (record, &mut found.foreign) {
            *foreign += record.files.len().abs_diff(listed.len());
        }
        for (name, _) in listed {
            found.all += 1;
            let path = Path::from(name.as_str());
            let decided = record.and_then(|record| record.files.iter().find(|file| file.name == name));
            let contents = match decided {
                Some(file) => intact(reader.store().as_ref(), &path, file).await?,
                None => None,
            };
            if contents.is_none() {
                found.foreign.iter_mut().for_each(|foreign| *foreign += 1);
            }
            let contents = match contents {
                Some(contents) => contents,
                None => reader.store().get(&path).await?.bytes().await?,
            };
            let Ok(file) = ParquetRecordBatchReaderBuilder::try_new(contents) else { continue };
            let metadata = file.metadata();
            let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
            let keys = metadata.file_metadata().key_value_metadata().into_iter().flatten();
            let told = columns.filter(|column| column.statistics().is_some()).count()
                + keys.filter(|entry| entry.key != ARROW_SCHEMA_META_KEY).count();
            found.talkative += usize::from(told > 0);
            let schema = found.schema.get_or_insert_with(|| Arc::clone(file.schema()));
            found.others += usize::from(schema != file.schema());
        }
        Ok(found)
    }

    fn checks(&self, number: u64) -> Vec<Check> {
        let number = Some(number);
        let mut checks = vec![
            Check::none(
                number,
                "files tell nothing but their rows",
                self.talkative,
                self.all,
                "files have statistics or metadata",
            ),
            Check::none(number, "files have one schema", self.others, self.all, "files have another"),
        ];
        let decided = self
            .foreign
            .map(|wrong| Check::none(number, "files are those that were decided", wrong, self.all, "are not"));
        checks.extend(decided);
        checks
    }
}

/// Columns of these roles, by the metadata that they carry.
fn columns_of(schema: &SchemaRef, role: Role) -> Vec<String> {
    let has = |field: &&FieldRef| field.metadata().get(Role::KEY).and_then(|text| Role::parse(text)) == Some(role);
    schema.fields().iter().filter(has).map(|field| field.name().clone()).collect()
}

/// Whether the columns are those of a public release, and say the truth about it.
fn described(schema: &SchemaRef, said: &Announcement, charter: Option<&Charter>) -> Vec<Check> {
    let number = Some(said.number);
    let [quasi, sensitive, within] = [Role::Quasi, Role::Sensitive, Role::Within].map(|role| columns_of(schema, role));
    let roles = charter.map(|charter| &charter.terms.roles);
    let agreed = |name: &String| {
        roles.is_none_or(|roles| roles.columns().filter(|column| Some(*column) != roles.id.as_ref()).any(|c| c == name))
    };
    let expected: Vec<&String> = quasi.iter().chain(&sensitive).chain(&within).filter(|name| agreed(name)).collect();
    let own = reserved_names(View::Public);
    let foreign = |field: &&FieldRef| !own.contains(&field.name().as_str()) && !expected.contains(&field.name());
    let foreign = schema.fields().iter().filter(foreign).count();
    let missing = own.iter().filter(|name| schema.field_with_name(name).is_err()).count()
        + roles.map_or(0, |roles| {
            let public = roles.columns().filter(|column| Some(*column) != roles.id.as_ref());
            public.filter(|column| !expected.contains(column)).count()
        });
    let columns = schema.fields().len();
    let truth = Description {
        method: said.method.clone(),
        parameters: said.parameters.clone(),
        release_id: said.release_id.clone(),
        number,
    };
    let lies = |field: &&FieldRef| Description::from_metadata(field.metadata()).as_ref() != Some(&truth);
    let mut checks = vec![
        Check::none(number, "no column beyond the roles", foreign + missing, columns, "columns are foreign or missing"),
        Check::none(
            number,
            "columns say what made them",
            schema.fields().iter().filter(lies).count(),
            columns,
            "do not",
        ),
    ];
    if let Some(charter) = charter {
        let method = &charter.terms.method;
        let parameters = charter.terms.parameters_text();
        let same = method.name() == said.method && parameters.is_ok_and(|text| text == said.parameters);
        let figures = if same { "the same method and parameters" } else { "another method or other parameters" };
        checks.push(Check::new(number, "made as was agreed", same, figures));
    }
    checks
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

/// Everything about a release that computes: its checks, the histories with it, and how long its signatures must be.
fn look(
    said: &Announcement,
    schema: &SchemaRef,
    rows: &RecordBatch,
    mut histories: Option<Histories>,
) -> Result<(Vec<Check>, Option<Histories>, Option<usize>)> {
    let named = |error: Error| error.in_function(FUNCTION);
    let number = Some(said.number);
    let only = |role: Role| columns_of(schema, role).into_iter().next();
    let columns = TableColumns {
        quasi: columns_of(schema, Role::Quasi),
        sensitive: only(Role::Sensitive),
        within: only(Role::Within),
    };
    let table = ReleasedTable::try_new(rows, &columns).map_err(named)?;
    let parameters = serde_json::from_str(&said.parameters).unwrap_or_default();
    let Some(promises) = promises(&said.method, &parameters) else {
        let check = Check::new(number, "the method is known", false, "nobody here knows what it promises");
        return Ok((vec![check], histories, None));
    };
    let mut checks = table.checks(number, &promises.groups);
    let found = [table.rows() as u64, table.groups() as u64, table.counterfeits()];
    let Figures { rows, groups, counterfeits } = said.figures;
    let figures = format!("{} rows in {} groups, {} of them counterfeits", found[0], found[1], found[2]);
    checks.push(Check::new(number, "rows are as many as announced", found == [rows, groups, counterfeits], figures));
    if let Some(histories) = histories.as_mut().filter(|_| promises.signatures.is_some()) {
        histories.append_release(said.number, &table).map_err(named)?;
    }
    Ok((checks, histories, promises.signatures))
}
