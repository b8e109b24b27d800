//! Sessions and tables for tests.

use std::path::Path;
use std::process::{Command, Output};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::program::program;

/// Returns a session with our functions.
pub(super) fn session() -> SessionContext {
    let config = SessionConfig::new().with_information_schema(true).with_target_partitions(4);
    let context = SessionContext::new_with_config(config).enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

/// Runs statements and returns the rows of the last. A publication that is not there begins.
pub(super) async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    match run_as_it_is(context, sql).await {
        Err(error) if sql.contains("STORED AS PUBLICATION") && error.to_string().contains("('begin' 'true'") => {
            run_as_it_is(context, &begun(sql)).await
        }
        result => result,
    }
}

/// Returns the same, where no publication begins that does not say so.
pub(super) async fn run_as_it_is(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// Returns the declaration of a publication that begins.
pub(super) fn begun(declaration: &str) -> String {
    let place = declaration.find("OPTIONS").and_then(|start| Some(start + declaration[start..].find('(')? + 1));
    let mut text = declaration.to_owned();
    text.insert_str(place.expect("options"), "'begin' 'true', ");
    text
}

/// Returns the single number that a query returns.
pub(super) async fn number(context: &SessionContext, sql: &str) -> i64 {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::compute::cast;
    use datafusion::arrow::datatypes::{DataType, Int64Type};

    let batches = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let column = batches.iter().find(|batch| batch.num_rows() > 0).expect("a row").column(0).clone();
    cast(&column, &DataType::Int64).unwrap().as_primitive::<Int64Type>().value(0)
}

/// Returns the rows as text, as the shell prints them.
pub(super) async fn table(context: &SessionContext, sql: &str) -> String {
    let batches = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let options = FormatOptions::new().with_null("NULL");
    pretty_format_batches_with_options(&batches, &options).unwrap().to_string()
}

/// Returns the message of a query that must fail.
pub(super) async fn error(context: &SessionContext, sql: &str) -> String {
    match run(context, sql).await {
        Ok(_) => panic!("{sql} should fail"),
        Err(error) => error.strip_backtrace(),
    }
}

/// Runs the shell in a directory.
pub(super) fn shell(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .current_dir(directory)
        .env_remove("RUST_BACKTRACE")
        .env_remove("RUST_LIB_BACKTRACE")
        .args(arguments)
        .output()
        .expect("the shell starts")
}

/// Returns the output of a process.
pub(super) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the complaints of a process.
pub(super) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the path of a file of the repository.
pub(super) fn path(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of the real microdata, if it is there. It is not part of the repository. It must be where `ANONYMIZE_MICRODATA` says.
pub(super) fn microdata(name: &str) -> Option<String> {
    let named = std::env::var("ANONYMIZE_MICRODATA").ok();
    let file = format!("{}/{name}", named.clone().unwrap_or_else(|| path("../shared/data")));
    if Path::new(&file).exists() {
        return Some(file);
    }
    assert!(named.is_none(), "{name} is not where ANONYMIZE_MICRODATA says");
    println!("{name} is not there; set ANONYMIZE_MICRODATA to run this test on it");
    None
}
