//! The table that a call stands for. To the optimizer it is a table like any other, without a look inside: its input is
//! planned when it is scanned, so no filter, limit or projection of the query can reach what is anonymized.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::input::Prepared;
use crate::exec::{AnonymizeExec, Job, Seed};
use crate::methods::Method;
use crate::release::{Description, View, schema};

/// A release that is made anew by every query.
pub struct AnonymizedTable {
    microdata: LogicalPlan,
    previous: Option<LogicalPlan>,
    method: Method,
    view: View,
    secret: Seed,
    /// An explicit seed makes every execution the same.
    fixed: bool,
    schema: SchemaRef,
}

impl AnonymizedTable {
    pub(super) fn try_new(prepared: Prepared, method: Method, view: View, seed: Option<u64>) -> Result<Self> {
        let secret = seed.map_or_else(Seed::from_entropy, |seed| Ok(Seed::from_number(seed)))?;
        let parameters = method.parameters().map_err(|error| error.in_function(method.name()))?;
        let description = Description {
            method: method.name().to_owned(),
            parameters: serde_json::Value::Object(parameters).to_string(),
            // From entropy of its own: a seed must not show in what is published.
            release_id: Seed::from_entropy()?.release_id(),
        };
        let schema = Arc::new(schema(&prepared.layout, view, &description));
        let Prepared { microdata, previous, .. } = prepared;
        Ok(Self { microdata, previous, method, view, secret, fixed: seed.is_some(), schema })
    }

    /// All uses of the table in one query see one release; another query draws anew.
    fn seed(&self, session: &dyn Session) -> Result<Seed> {
        if self.fixed {
            return Ok(self.secret.clone());
        }
        match session.execution_props().query_execution_start_time {
            Some(start) => Ok(self.secret.on_occasion(start.timestamp_nanos_opt().unwrap_or_default() as u64)),
            None => Seed::from_entropy(),
        }
    }
}

impl fmt::Debug for AnonymizedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnonymizedTable")
            .field("method", &self.method)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for AnonymizedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let microdata = session.create_physical_plan(&self.microdata).await?;
        let previous = match &self.previous {
            Some(plan) => Some(session.create_physical_plan(plan).await?),
            None => None,
        };
        let schema: Schema = match projection {
            Some(columns) => self.schema.project(columns)?,
            None => self.schema.as_ref().clone(),
        };
        let job = Job { method: self.method.clone(), view: self.view, seed: self.seed(session)? };
        Ok(Arc::new(AnonymizeExec::try_new(microdata, previous, job, Arc::new(schema))?))
    }

    async fn insert_into(
        &self,
        _session: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("{}: a release cannot be written to", self.method.name())
    }

    async fn delete_from(&self, _session: &dyn Session, _filters: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("{}: rows of a release cannot be deleted", self.method.name())
    }

    async fn update(
        &self,
        _session: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("{}: rows of a release cannot be updated", self.method.name())
    }
}
