//! The session in which `advise` measures, with the functions that users call.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{Given, NAME};
use crate::error::refusal;
use crate::exec::{SEVERAL_ROWS, Seed};
use crate::microdata::{Role, Several, one_row_each};
use crate::sql::composite::COMPOSITE;
use crate::sql::register_all;

/// The column that counts rows where there is no identifier.
const ROW: &str = "anonymize_row";

/// Number of divisions of the people into those of two releases.
pub(super) const DIVISIONS: usize = 3;

/// A session with the tables of the measurements. `people` is all that is measured, in random order; and of each division, by its number,
/// there are `before0` (two thirds of them), `after0` (two thirds, half of whom are of the others) and `stayed0` (who is in both).
pub(super) struct Bench {
    context: SessionContext,
    rows: usize,
    columns: Vec<String>,
    seed: Seed,
}

impl Bench {
    pub(super) fn new(people: &RecordBatch, seed: &Seed, runtime: Arc<RuntimeEnv>) -> Result<Self> {
        let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
        register_all(&context)?;
        let rows = people.num_rows();
        if rows < 30 {
            return Err(refusal!(NAME, "the input has {rows} rows; at least 30 are needed"));
        }
        let columns = people.schema().fields().iter().map(|field| field.name().clone()).collect();
        let people = numbered(people)?;
        let third = rows / 3;
        for division in 0..DIVISIONS {
            // Another third comes first.
            let parts = [people.slice(division * third, rows - division * third), people.slice(0, division * third)];
            let turned = concat_batches(&people.schema(), &parts)?;
            context.register_batch(format!("before{division}"), turned.slice(0, 2 * third))?;
            context.register_batch(format!("after{division}"), turned.slice(third, rows - third))?;
            context.register_batch(format!("stayed{division}"), turned.slice(third, third))?;
        }
        context.register_batch("people", people)?;
        Ok(Self { context, rows, columns, seed: seed.clone() })
    }

    /// Returns the number of people.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Keeps the result of a query as a table, in place of another one.
    pub(super) async fn keep(&self, name: &str, query: &str) -> Result<()> {
        let sql = format!("CREATE OR REPLACE TABLE {name} AS SELECT * FROM {query}");
        self.context.sql(&sql).await?.collect().await?;
        Ok(())
    }

    pub(super) async fn number(&self, sql: &str) -> Result<Option<f64>> {
        let table = self.table(sql).await?;
        if table.num_rows() == 0 {
            return Ok(None);
        }
        let numbers = cast(table.column(0), &DataType::Float64)?;
        Ok(numbers.is_valid(0).then(|| numbers.as_primitive::<Float64Type>().value(0)))
    }

    async fn table(&self, sql: &str) -> Result<RecordBatch> {
        let frame = self.context.sql(sql).await?;
        let schema = Arc::clone(frame.schema().inner());
        Ok(concat_batches(&schema, &frame.collect().await?)?)
    }

    /// Returns `, seed => '..'` for one step. Nobody sees this statement.
    pub(super) fn seed(&self, occasion: u64) -> String {
        let bytes = self.seed.on_occasion(occasion).bytes();
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(", seed => '{text}'")
    }
}

fn numbered(people: &RecordBatch) -> Result<RecordBatch> {
    let numbers: ArrayRef = Arc::new((0..people.num_rows() as i64).collect::<Int64Array>());
    let schema = people.schema();
    // What the columns say of themselves is known by now, and would only come in between.
    let mut fields: Vec<Field> =
        schema.fields().iter().map(|field| Field::new(field.name(), field.data_type().clone(), true)).collect();
    fields.push(Field::new(ROW, DataType::Int64, false));
    let columns = people.columns().iter().cloned().chain([numbers]).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[derive(Debug)]
pub(super) struct TableRoles {
    /// A column of identifiers, or one that counts rows.
    pub id: String,
    /// True if it is the table's.
    pub has_id: bool,
    pub quasi: Vec<String>,
    pub sensitive: Vec<String>,
    /// Subject of the bound, if there are several sensitive columns.
    pub several: Several,
    /// Suggested quasi-identifiers of which each alone singles out most rows.
    pub exact: Vec<String>,
    /// The largest `m` or `l`: the most frequent sensitive value, of any column that is hidden by itself, has one of so many rows.
    pub largest: usize,
}

impl TableRoles {
    /// Returns the given roles, and for those that are not given what a profile suggests.
    /// Fails when there are no quasi-identifiers or no sensitive column, people have several rows, or sensitive values are NULL.
    pub(super) async fn find(bench: &Bench, given: &Given) -> Result<Self> {
        let mut given = given.clone();
        let mut exact = Vec::new();
        if given.id.is_empty() || given.quasi.is_empty() || given.sensitive.is_empty() {
            let profile = bench.table(&profile(&given)).await?;
            let [names, roles, reasons] = [0, 1, 2].map(|column| cast(profile.column(column), &DataType::Utf8));
            let shares = cast(profile.column(3), &DataType::Float64)?;
            let (names, roles, reasons) = (names?, roles?, reasons?);
            let suggested = names.as_string::<i32>().iter().zip(roles.as_string::<i32>());
            let suggested = suggested.zip(reasons.as_string::<i32>()).zip(shares.as_primitive::<Float64Type>());
            for (((name, role), reason), share) in suggested {
                let Some(name) = name.filter(|name| *name != ROW) else { continue };
                if given.id.is_empty() && reason.is_some_and(|reason| reason.contains(SEVERAL_ROWS)) {
                    return Err(several_rows(name, &bench.columns));
                }
                match role.and_then(Role::parse) {
                    Some(Role::Id) if given.id.is_empty() => given.id.push(name.to_owned()),
                    Some(Role::Sensitive) if given.sensitive.is_empty() => given.sensitive.push(name.to_owned()),
                    Some(Role::Quasi) if !given.quasi.iter().any(|known| known == name) => {
                        given.quasi.push(name.to_owned());
                        exact.extend(share.filter(|share| *share > 0.5).map(|_| name.to_owned()));
                    }
                    _ => {}
                }
            }
        }
        if given.sensitive.is_empty() {
            return Err(refusal!(
                NAME,
                "no column is known to be the sensitive attribute, nor looks like it; name it with sensitive => disease"
            ));
        }
        if given.quasi.is_empty() {
            return Err(refusal!(NAME, "no column looks like a quasi-identifier; name them with quasi => (age, zip)"));
        }
        let has_id = !given.id.is_empty();
        let id = given.id.into_iter().next().unwrap_or_else(|| ROW.to_owned());
        let repeated = format!("SELECT count(*) - count(DISTINCT {0}) FROM people", quoted(&id));
        if let Some(repeated) = bench.number(&repeated).await?.filter(|repeated| *repeated > 0.0) {
            return Err(refusal!(
                NAME,
                "{repeated} of {} rows have an identifier that another row has, or none (column {id}); a table to be published has \
                 one row per person: {}",
                bench.rows(),
                one_row(&id, &bench.columns)
            ));
        }
        let value = given.sensitive.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let none =
            given.sensitive.iter().map(|name| format!("{} IS NULL", quoted(name))).collect::<Vec<_>>().join(" OR ");
        let none = bench.number(&format!("SELECT count(*) FROM people WHERE {none}")).await?;
        if let Some(none) = none.filter(|none| *none > 0.0) {
            return Err(refusal!(
                NAME,
                "{none} of {} rows have NULL in the sensitive attribute; leave them out in a query in parentheses, or give NULL a \
                 value of its own",
                bench.rows()
            ));
        }
        let values = match given.several {
            Several::Each => given.sensitive.iter().map(|name| quoted(name)).collect(),
            Several::Together => vec![value],
        };
        let mut most = 1.0_f64;
        for value in values {
            let count = format!("SELECT max(n) FROM (SELECT count(*) AS n FROM people GROUP BY {value})");
            most = most.max(bench.number(&count).await?.unwrap_or(1.0));
        }
        let largest = (bench.rows() as f64 / most) as usize;
        let Given { quasi, sensitive, several, .. } = given;
        Ok(Self { id, has_id, quasi, sensitive, several, exact, largest })
    }

    /// Returns true if several columns are hidden each by itself.
    pub(super) fn hides_each(&self) -> bool {
        self.sensitive.len() > 1 && self.several == Several::Each
    }

    /// Returns `id => .., quasi => (..), sensitive => ..`, as calls have them.
    pub(super) fn roles(&self) -> String {
        let id = if self.has_id { format!("{}, ", self.named_id()) } else { String::new() };
        format!("{id}{}", self.others())
    }

    /// Returns the same with the numbers of rows, where there is no identifier.
    pub(super) fn all_roles(&self) -> String {
        format!("{}, {}", self.named_id(), self.others())
    }

    fn named_id(&self) -> String {
        format!("id => {}", quoted(&self.id))
    }

    fn others(&self) -> String {
        let list = |names: &[String]| match names {
            [name] => quoted(name),
            names => format!("({})", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")),
        };
        let function = if self.several == Several::Together { COMPOSITE } else { "" };
        format!("quasi => {}, sensitive => {function}{}", list(&self.quasi), list(&self.sensitive))
    }
}

fn profile(given: &Given) -> String {
    let mut call = "profile(people".to_owned();
    for (role, names) in [("id", &given.id), ("quasi", &given.quasi), ("sensitive", &given.sensitive)] {
        if !names.is_empty() {
            call += &format!(", {role} => ({})", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "));
        }
    }
    format!("SELECT columns, role, why, unique_share FROM {call}) WHERE kind = 'column'")
}

/// Returns the error about a table in which rows are not people. Nothing can be recommended for it.
fn several_rows(id: &str, columns: &[String]) -> DataFusionError {
    refusal!(
        NAME,
        "by its name column {id} identifies people, and {SEVERAL_ROWS}, so no column is their identifier and nothing can be recommended; a \
         table to be published has one row per person: {}",
        one_row(id, columns)
    )
}

/// Returns a table that has one row of each person.
fn one_row(id: &str, columns: &[String]) -> String {
    let others = columns.iter().map(String::as_str).filter(|name| *name != id && *name != ROW);
    let columns: Vec<&str> = std::iter::once(id).chain(others).collect();
    format!("group by it, or keep one row of each in the place of the table, {}", one_row_each(&columns))
}

/// Returns a name as SQL has it: in quotes where it needs them.
pub(in crate::sql) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
