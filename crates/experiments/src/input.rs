//! The microdata of an experiment.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{Field, Int64Type, Schema};
use datafusion::common::{exec_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// The column that counts rows where there is no identifier.
pub(super) const ROW: &str = "row_number";

// The microdata that the command line asks for. (Docs would become those of the whole command.)
#[derive(Debug, clap::Args)]
pub(super) struct InputArgs {
    /// Microdata in Parquet or CSV, instead of the synthetic census
    #[arg(long, value_name = "FILE", requires_all = ["quasi", "sensitive"])]
    data: Option<String>,

    /// Quasi-identifiers of --data, with commas in between
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "data")]
    quasi: Vec<String>,

    /// Sensitive attribute of --data
    #[arg(long, value_name = "COLUMN", requires = "data")]
    sensitive: Option<String>,

    /// Identifier of --data; without it, every row is a person
    #[arg(long, value_name = "COLUMN", requires = "data")]
    id: Option<String>,

    /// Time of --data, for reposition: a number, date or timestamp (of which the day is taken)
    #[arg(long, value_name = "COLUMN", requires = "data")]
    time: Option<String>,

    /// Hierarchies of --data, for sequential and muco
    #[arg(long, value_name = "FILE", requires = "data")]
    hierarchies: Option<String>,

    /// Most rows to take, at random; by default the papers' sizes
    #[arg(long, value_name = "NUMBER")]
    rows: Option<usize>,
}

/// Columns that an experiment takes of the synthetic census.
#[derive(Debug)]
pub(super) struct CensusColumns {
    pub(super) experiment: &'static str,
    pub(super) quasi: &'static [&'static str],
    pub(super) sensitive: &'static [&'static str],
    /// Rows in quick mode, and those of the paper.
    pub(super) rows: [usize; 2],
}

/// People in random order, and what their columns are.
#[derive(Debug)]
pub(super) struct Input {
    /// `synthetic census`, or the name of the file.
    pub(super) name: String,
    pub(super) quick: bool,
    pub(super) seed: u64,
    pub(super) id: String,
    pub(super) quasi: Vec<String>,
    /// Sensitive attributes: one, or several that experiments take one after the other.
    pub(super) sensitive: Vec<String>,
    pub(super) time: Option<String>,
    /// These columns, in this order.
    pub(super) people: RecordBatch,
    pub(super) hierarchies: Option<RecordBatch>,
    /// The name of their file.
    hierarchies_name: Option<String>,
    /// Of each sensitive attribute, what part of the rows its most frequent value has: one of so many.
    most: Vec<usize>,
}

impl Input {
    /// # Errors
    /// When the file cannot be read, lacks a column, or has NULL in a sensitive attribute.
    pub(super) async fn read(args: &InputArgs, census: CensusColumns, quick: bool, seed: u64) -> Result<Self> {
        let context = SessionContext::new().enable_url_table();
        datafusion_anonymize::register_all(&context)?;
        let size = census.rows[usize::from(!quick)];
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let empty = Self {
            name: String::new(),
            quick,
            seed,
            id: String::new(),
            quasi: Vec::new(),
            sensitive: Vec::new(),
            time: None,
            people: RecordBatch::new_empty(Arc::new(Schema::empty())),
            hierarchies: None,
            hierarchies_name: args.hierarchies.as_deref().map(file_name),
            most: Vec::new(),
        };
        let mut input = match (&args.data, &args.sensitive) {
            (Some(file), Some(sensitive)) => Self {
                name: file_name(file),
                id: args.id.clone().unwrap_or_else(|| ROW.to_owned()),
                quasi: args.quasi.clone(),
                sensitive: vec![sensitive.clone()],
                time: args.time.clone(),
                ..empty
            },
            _ => Self {
                name: "synthetic census".to_owned(),
                id: "person_id".to_owned(),
                quasi: owned(census.quasi),
                sensitive: owned(census.sensitive),
                ..empty
            },
        };
        // Without quasi-identifiers of its own, an experiment is about time, which the synthetic census is given.
        if census.quasi.is_empty() && args.data.is_some() && args.time.is_none() {
            return plan_err!(
                "experiment: {} of --data needs the column of the time; name it with --time",
                census.experiment
            );
        }
        let rows = args.rows.unwrap_or(size);
        let relation = match &args.data {
            Some(file) if args.id.is_none() => {
                format!("(SELECT *, row_number() OVER () AS {ROW} FROM {})", literal(file))
            }
            Some(file) => literal(file),
            None => format!("census({rows}, {seed})"),
        };
        let names = input.columns().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let table = collect(&context, &format!("SELECT {names} FROM {relation}")).await?;
        if table.num_rows() < 100 {
            return plan_err!("experiment: the table has {} rows; at least 100 are needed", table.num_rows());
        }
        let mut order: Vec<u32> = (0..table.num_rows() as u32).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        order.shuffle(&mut rng);
        order.truncate(rows);
        input.people = take_record_batch(&table, &UInt32Array::from(order))?;
        context.register_batch("people", input.people.clone())?;
        for sensitive in &input.sensitive {
            let name = quoted(sensitive);
            let counts = format!(
                "SELECT max(n), count(*) FILTER (WHERE {name} IS NULL) FROM (SELECT {name}, count(*) AS n FROM people GROUP BY {name})"
            );
            let counts = collect(&context, &counts).await?;
            let count = |column: usize| counts.column(column).as_primitive::<Int64Type>().value(0);
            if count(1) > 0 {
                return plan_err!("experiment: column {sensitive} has NULL in some rows; leave them out of the file");
            }
            input.most.push(input.people.num_rows() / count(0) as usize);
        }
        if let Some(file) = &args.hierarchies {
            input.hierarchies = Some(collect(&context, &format!("SELECT * FROM {}", literal(file))).await?);
        }
        Ok(input)
    }

    fn columns(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.id).chain(&self.quasi).chain(&self.sensitive).chain(&self.time)
    }

    /// Returns the number of people.
    pub(super) fn rows(&self) -> usize {
        self.people.num_rows()
    }

    pub(super) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Returns those of some `m` or `l` that the sensitive attribute allows: no value may have more than one of so many
    /// rows. A table that is published in parts needs some air, therefore one less.
    pub(super) fn possible(&self, sensitive: usize, diversities: &[usize]) -> Vec<usize> {
        diversities.iter().copied().filter(|&diversity| diversity < self.most[sensitive]).collect()
    }

    /// Returns some people, by their places, as a table.
    /// Fails when there is no such place.
    pub(super) fn at(&self, places: &[u32]) -> Result<RecordBatch> {
        Ok(take_record_batch(&self.people, &UInt32Array::from(places.to_vec()))?)
    }

    /// Returns a column's values as whole numbers, equal for equal ones, in their order.
    /// Fails when values cannot be compared.
    pub(super) async fn ranks(&self, name: &str) -> Result<Vec<i64>> {
        let context = SessionContext::new();
        let place: ArrayRef = Arc::new(Int64Array::from_iter_values(0..self.rows() as i64));
        let column = self.people.column_by_name(name);
        let column = column.ok_or_else(|| exec_datafusion_err!("experiment: there is no column {name}"))?;
        context
            .register_batch("people", RecordBatch::try_from_iter([("place", place), ("value", Arc::clone(column))])?)?;
        let sql = "SELECT (dense_rank() OVER (ORDER BY value) - 1)::BIGINT FROM people ORDER BY place";
        let table = collect(&context, sql).await?;
        Ok(table.column(0).as_primitive::<Int64Type>().values().to_vec())
    }

    /// Returns the settings that results depend on, beside the program.
    pub(super) fn settings(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "mode": if self.quick { "quick" } else { "full" },
            "seed": self.seed,
            "microdata": self.name,
            "rows": self.rows(),
            "id": self.id,
            "quasi": self.quasi,
            "sensitive": self.sensitive,
            "time": self.time,
            "hierarchies": self.hierarchies_name,
        })
    }
}

/// Returns the name of a file without its directory, as results have it.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns names in SQL, in parentheses.
pub(super) fn tuple(names: &[String]) -> String {
    format!("({})", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(super) async fn collect(context: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = context.sql(sql).await?;
    let fields: Vec<Arc<Field>> = frame.schema().fields().iter().cloned().collect();
    let batches = frame.collect().await?;
    let schema = batches.first().map_or_else(|| Arc::new(Schema::new(fields)), RecordBatch::schema);
    Ok(concat_batches(&schema, &batches)?)
}
