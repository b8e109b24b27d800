//! `anonymize advise`: what each method and setting costs on a table, as a page with charts and a recommendation.
//!
//! The figures are those of the function `advise(rel, ..)`; here they are only drawn.

mod page;

use std::path::PathBuf;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;

use crate::shell;

/// Say what each method and setting costs on a table, and which to take
///
/// Measures releases of the table (of 200,000 rows drawn at random, if it has more), and writes one page with charts of loss, errors of
/// counts, counterfeits and people at risk, a recommendation in words, and the SQL that does it. Nothing is published.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The table: a file (Parquet, CSV, JSON), or a query in parentheses
    table: String,

    /// Column of the identifier, one row per person; suggested if it is left out
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,

    /// Columns that others know, such as age,zip; suggested if they are left out
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    quasi: Vec<String>,

    /// Columns that nobody should learn; suggested if they are left out
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    sensitive: Vec<String>,

    /// The median relative error of counts that is acceptable
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    error: f64,

    /// Number of rows that are measured, at most
    #[arg(long, value_name = "NUMBER", default_value_t = 200_000)]
    rows: usize,

    /// Random queries of each setting
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    queries: usize,

    /// All that is random follows from it
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// The page
    #[arg(short, long, value_name = "FILE", default_value = "advice.html")]
    out: PathBuf,
}

impl Args {
    fn call(&self) -> String {
        let table = self.table.trim();
        let table = if table.starts_with('(') { table.to_owned() } else { format!("'{}'", table.replace('\'', "''")) };
        let mut call = format!("advise({table}");
        let list = |names: &[String]| names.iter().map(|name| quoted(name.trim())).collect::<Vec<_>>().join(", ");
        if let Some(id) = &self.id {
            call += &format!(", id => {}", quoted(id));
        }
        for (name, columns) in [("quasi", &self.quasi), ("sensitive", &self.sensitive)] {
            if !columns.is_empty() {
                call += &format!(", {name} => ({})", list(columns));
            }
        }
        call += &format!(", error => {}, rows => {}, queries => {}", self.error, self.rows, self.queries);
        if let Some(seed) = self.seed {
            call += &format!(", seed => {seed}");
        }
        call + ")"
    }
}

/// Returns a column's name in SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Measures the table, writes the page and prints the recommendation.
/// Fails when the table cannot be read, its roles are not clear, or the page cannot be written.
pub(crate) async fn run(args: Args) -> Result<()> {
    let context = shell::session().await?;
    let frame = context.sql(&format!("SELECT * FROM {}", args.call())).await?;
    let schema = std::sync::Arc::clone(frame.schema().inner());
    let advice = Advice::read(&concat_batches(&schema, &frame.collect().await?)?)?;
    anonymize_experiments::write(&args.out, page::render(&args.table, &advice)?.as_bytes())?;
    for row in advice.rows.iter().filter(|row| row.recommended.is_some()) {
        let (why, sql) = (row.recommended.as_deref().unwrap_or_default(), row.sql.as_deref().unwrap_or_default());
        println!("{} with {} = {}: {why}.\n\n{sql}\n", row.method, row.parameter, row.value);
    }
    if advice.rows.iter().all(|row| row.recommended.is_none()) {
        let note = advice.rows.iter().find_map(|row| row.note.as_deref());
        println!("Nothing is recommended: {}.\n", note.unwrap_or("no setting bounds what readers of this table infer"));
    }
    println!("{}", args.out.display());
    Ok(())
}

#[derive(Debug)]
struct Advice {
    rows: Vec<Row>,
    /// Number of rows that were measured, and number of all rows.
    measured: usize,
    of: usize,
}

#[derive(Debug)]
struct Row {
    method: String,
    parameter: String,
    value: f64,
    loss: Option<f64>,
    error: Option<f64>,
    counterfeits: Option<f64>,
    at_risk: Option<f64>,
    recommended: Option<String>,
    note: Option<String>,
    sql: Option<String>,
}

impl Advice {
    fn read(table: &RecordBatch) -> Result<Self> {
        let column = |name: &str, data_type: DataType| -> Result<ArrayRef> {
            let column = table.column_by_name(name);
            let column = column.ok_or_else(|| exec_datafusion_err!("advise: the column {name} is missing"))?;
            Ok(cast(column, &data_type)?)
        };
        let text = |name: &str, row: usize| -> Result<Option<String>> {
            let column = column(name, DataType::Utf8)?;
            Ok(column.is_valid(row).then(|| column.as_string::<i32>().value(row).to_owned()))
        };
        let number = |name: &str, row: usize| -> Result<Option<f64>> {
            let column = column(name, DataType::Float64)?;
            Ok(column.is_valid(row).then(|| column.as_primitive::<Float64Type>().value(row)))
        };
        let rows = (0..table.num_rows()).map(|row| {
            Ok(Row {
                method: text("method", row)?.unwrap_or_default(),
                parameter: text("parameter", row)?.unwrap_or_default(),
                value: number("value", row)?.unwrap_or_default(),
                loss: number("loss", row)?,
                error: number("median_error", row)?,
                counterfeits: number("counterfeits", row)?,
                at_risk: number("at_risk", row)?,
                recommended: text("recommended", row)?,
                note: text("note", row)?,
                sql: text("sql", row)?,
            })
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let count =
            |name: &str| Ok::<_, datafusion::error::DataFusionError>(number(name, 0)?.unwrap_or_default() as usize);
        Ok(Self { measured: count("rows")?, of: count("of_rows")?, rows })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn arguments_become_a_call() {
        let call = |line: &[&str]| Line::parse_from([&["advise"], line].concat()).args.call();
        assert_eq!(call(&["it's.csv"]), "advise('it''s.csv', error => 0.1, rows => 200000, queries => 1000)");
        assert_eq!(
            call(&[
                "(SELECT 1)",
                "--id",
                "p",
                "--quasi",
                "a,B c",
                "--sensitive",
                "d",
                "--seed",
                "7",
                "--error",
                "0.05"
            ]),
            "advise((SELECT 1), id => \"p\", quasi => (\"a\", \"B c\"), sensitive => (\"d\"), error => 0.05, rows => 200000, queries => 1000, \
             seed => 7)"
        );
    }
}
