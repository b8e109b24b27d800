//! The SQL surface, in tests/slt.

use std::ops::Deref;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use super::support::session;

/// The compiler does not look into it (`src/exec/boxed_futures.rs` says why).
struct Database(Arc<dyn Deref<Target = SessionContext> + Send + Sync>);

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, DataFusionError> {
        answer(&self.0, sql).await
    }

    fn engine_name(&self) -> &'static str {
        "datafusion"
    }

    async fn shutdown(&mut self) {}
}

fn answer<'a>(
    context: &'a SessionContext,
    sql: &'a str,
) -> BoxFuture<'a, Result<DBOutput<DefaultColumnType>, DataFusionError>> {
    Box::pin(async move {
        let frame = context.sql(sql).await?;
        let columns = frame.schema().fields().len();
        let batches = frame.collect().await?;
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text; columns], rows: rows(&batches)? })
    })
}

fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>, DataFusionError> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let formatters: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<_, _>>()?;
        for i in 0..batch.num_rows() {
            let cell = |formatter: &ArrayFormatter<'_>| match formatter.value(i).to_string().trim_end() {
                "" => "(empty)".to_owned(),
                text => text.to_owned(),
            };
            let cells: Vec<String> = formatters.iter().map(cell).collect();
            // A plan has several lines; in the file each is a row.
            rows.extend(cells.join(" ").lines().map(|line| vec![line.to_owned()]));
        }
    }
    Ok(rows)
}

/// A test for each file, and their names.
macro_rules! files {
    ($($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                run_file(stringify!($name)).await;
            }
        )*

        const FILES: &[&str] = &[$(stringify!($name)),*];
    };
}

files! {
    achieved
    advise
    again
    anatomy
    as_written
    audit
    calls
    cells
    census
    close
    columns
    composite
    disclosure
    drawn
    dynamic
    each_column
    errors
    estimated
    exact
    hierarchies
    information_loss
    insensitive
    m_distinct
    made_with
    mondrian
    muco
    previous
    profile
    publication
    ranges
    regions
    repeatable
    reposition
    roles
    sequential
    types
    updates
    weight
}

async fn run_file(name: &str) {
    let mut runner = Runner::new(|| async { Ok(Database(Arc::new(Arc::new(session())))) });
    runner.with_column_validator(sqllogictest::strict_column_validator);
    let mut failures = Vec::new();
    // Record by record: one run shows all that is wrong.
    for record in sqllogictest::parse_file(super::support::path(&format!("tests/slt/{name}.slt"))).unwrap() {
        if let Err(error) = runner.run_async(record).await {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_file_is_a_test() {
    let files = std::fs::read_dir(super::support::path("tests/slt")).unwrap().map(|entry| entry.unwrap().path());
    let slt = files.filter(|path| path.extension().is_some_and(|extension| extension == "slt"));
    let mut names: Vec<String> = slt.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, FILES);
}
