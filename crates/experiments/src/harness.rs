//! The session that one run of an experiment takes place in: SQL in, numbers out.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use indicatif::ProgressBar;

use super::input::{Input, collect, quoted, tuple};

/// A session with our functions, and the tables `people` and, if there are some, `hierarchies`.
pub(super) struct Harness {
    context: SessionContext,
    pub(super) input: Arc<Input>,
    seed: String,
    bar: ProgressBar,
}

impl Harness {
    pub(super) fn new(input: Arc<Input>, seed: String, bar: ProgressBar) -> Result<Self> {
        let mut config = SessionConfig::new();
        // As in the shell.
        config.options_mut().optimizer.enable_leaf_expression_pushdown = false;
        let context = SessionContext::new_with_config(config);
        datafusion_anonymize::register_all(&context)?;
        context.register_batch("people", input.people.clone())?;
        if let Some(hierarchies) = &input.hierarchies {
            context.register_batch("hierarchies", hierarchies.clone())?;
        }
        Ok(Self { context, input, seed, bar })
    }

    pub(super) fn step(&self) {
        self.bar.inc(1);
    }

    /// Registers a table of this name, in place of another one.
    pub(super) fn table(&self, name: &str, rows: RecordBatch) -> Result<()> {
        self.context.deregister_table(name)?;
        self.context.register_batch(name, rows)?;
        Ok(())
    }

    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.context.sql(sql).await?.collect().await?;
        Ok(())
    }

    /// Keeps the result of a query as a table, in place of another one; seconds.
    pub(super) async fn keep(&self, name: &str, sql: &str) -> Result<f64> {
        let begin = Instant::now();
        self.run(&format!("CREATE OR REPLACE TABLE {name} AS {sql}")).await?;
        let took = begin.elapsed().as_secs_f64();
        self.forget_followed(name).await?;
        Ok(took)
    }

    /// Removes from a table which releases it followed: where nobody returns, the last one knows everybody who must be known.
    async fn forget_followed(&self, name: &str) -> Result<()> {
        let frame = self.context.table(name).await?;
        let strip = |field: &Arc<datafusion::arrow::datatypes::Field>| {
            let mut metadata = field.metadata().clone();
            metadata.retain(|key, _| !key.starts_with("anonymize.follows."));
            field.as_ref().clone().with_metadata(metadata)
        };
        let fields: Vec<_> = frame.schema().inner().fields().iter().map(strip).collect();
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::new(fields));
        let batches = frame.collect().await?;
        let stripped =
            batches.into_iter().map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()));
        let stripped = stripped.collect::<std::result::Result<Vec<_>, _>>()?;
        let table = datafusion::datasource::MemTable::try_new(schema, vec![stripped])?;
        self.context.deregister_table(name)?;
        self.context.register_table(name, Arc::new(table))?;
        Ok(())
    }

    /// Returns a query's columns as numbers, which must not be NULL.
    pub(super) async fn columns(&self, sql: &str) -> Result<Vec<Vec<f64>>> {
        let table = collect(&self.context, sql).await?;
        let column = |column: &Arc<dyn Array>| {
            let numbers = cast(column, &DataType::Float64)?;
            if numbers.null_count() > 0 {
                return Err(exec_datafusion_err!("experiment: a result is NULL"));
            }
            Ok(numbers.as_primitive::<Float64Type>().values().to_vec())
        };
        table.columns().iter().map(column).collect()
    }

    /// Returns a query's only row.
    pub(super) async fn row(&self, sql: &str) -> Result<Vec<f64>> {
        let row: Option<Vec<f64>> = self.columns(sql).await?.iter().map(|column| column.first().copied()).collect();
        row.ok_or_else(|| exec_datafusion_err!("experiment: a result is empty"))
    }

    /// Returns a query's only number.
    pub(super) async fn number(&self, sql: &str) -> Result<f64> {
        self.row(sql).await?.first().copied().ok_or_else(|| exec_datafusion_err!("experiment: a result is empty"))
    }

    /// Returns `id => .., quasi => (..), sensitive => ..` with the identifier, all quasi-identifiers and a sensitive attribute.
    pub(super) fn roles(&self, sensitive: usize) -> String {
        self.roles_of(&self.input.quasi, sensitive)
    }

    /// Returns the same, with some quasi-identifiers.
    pub(super) fn roles_of(&self, quasi: &[String], sensitive: usize) -> String {
        self.roles_with(quasi, &quoted(&self.input.sensitive[sensitive]))
    }

    /// Returns the same, with a sensitive attribute in SQL.
    pub(super) fn roles_with(&self, quasi: &[String], sensitive: &str) -> String {
        format!("id => {}, quasi => {}, sensitive => {sensitive}", quoted(&self.input.id), tuple(quasi))
    }

    /// Returns the end of a call with memory, after its own arguments. The balance is that of the papers.
    pub(super) fn minimal(&self, previous: &str, roles: &str, release: impl Display) -> String {
        let previous = if previous.is_empty() { String::new() } else { format!("previous => {previous}, ") };
        let seed = self.seed(release);
        format!("{previous}balance => 'minimal', on_ineligible => 'counterfeit', private => true, {roles}, {seed}")
    }

    /// Returns `, hierarchies => hierarchies`, if there are some.
    pub(super) fn hierarchies(&self) -> &'static str {
        if self.input.hierarchies.is_some() { ", hierarchies => hierarchies" } else { "" }
    }

    /// Returns `seed => '..'` for a step of the run.
    pub(super) fn seed(&self, what: impl Display) -> String {
        format!("seed => '{} {what}'", self.seed.replace('\'', ""))
    }
}
