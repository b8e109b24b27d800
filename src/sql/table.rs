//! The table that a call stands for. To the optimizer it is a table like any other, without a look inside: its input is
//! planned when it is scanned, so no filter, limit or projection of the query can reach what is anonymized.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::input::{Prepared, UPDATES};
use super::planned::{planned, planned_if_given};
use crate::exec::{AnonymizeExec, AnonymizeJob, Inputs, Seed};
use crate::methods::{AnyMethod, StateKind};
use crate::release::{Description, Shape, View, schema};

/// A release that is made anew by every query.
#[derive(Clone)]
pub struct AnonymizedTable {
    prepared: Prepared,
    method: AnyMethod,
    view: View,
    /// Where the randomness of every execution comes from.
    secret: Seed,
    /// An explicit seed makes every execution the same.
    fixed: bool,
    /// Where the ids of releases come from; of its own, because a seed must not show in what is published.
    names: Seed,
    /// The query that this table stands in, once that is known.
    occasion: Option<Occasion>,
    schema: SchemaRef,
    /// The same with several sensitive columns as one value, as the method makes it.
    made: SchemaRef,
}

/// A query, told from others by the nanosecond of its start.
pub(super) type Occasion = i64;

impl AnonymizedTable {
    pub(super) fn try_new(prepared: Prepared, method: AnyMethod, view: View, seed: Option<Seed>) -> Result<Self> {
        let fixed = seed.is_some();
        let secret = seed.map_or_else(Seed::from_entropy, Ok)?;
        let names = Seed::from_entropy()?;
        let made = release_schema(&prepared, &method, view, names.release_id())?;
        let schema = apart(&prepared, &made);
        Ok(Self { prepared, method, view, secret, fixed, names, occasion: None, schema, made })
    }

    /// Whether every query sees another release.
    pub(super) fn draws_anew(&self) -> bool {
        !self.fixed
    }

    /// Columns of which it is known that no interval has NULL in it.
    pub(super) fn without_null(&self) -> BTreeSet<String> {
        let certain = self.prepared.layout.quasi.iter().filter(|field| !field.is_nullable());
        certain.map(|field| field.name().clone()).collect()
    }

    /// The query this table was made for with [`on_occasion`](Self::on_occasion).
    pub(super) fn occasion(&self) -> Option<Occasion> {
        self.occasion
    }

    /// The table as one query sees it: the release has an id of its own.
    pub(super) fn on_occasion(&self, occasion: Occasion) -> Result<Self> {
        let release_id = self.names.on_occasion(occasion as u64).release_id();
        let made = release_schema(&self.prepared, &self.method, self.view, release_id)?;
        let schema = apart(&self.prepared, &made);
        Ok(Self { occasion: Some(occasion), schema, made, ..self.clone() })
    }

    /// All uses of the table in one query see one release; another query draws anew.
    fn seed(&self, session: &dyn Session) -> Result<Seed> {
        if self.fixed {
            return Ok(self.secret.clone());
        }
        let start = session.execution_props().query_execution_start_time;
        match self.occasion.or_else(|| start.and_then(|start| start.timestamp_nanos_opt())) {
            Some(occasion) => Ok(self.secret.on_occasion(occasion as u64)),
            None => Seed::from_entropy(),
        }
    }
}

fn release_schema(prepared: &Prepared, method: &AnyMethod, view: View, release_id: String) -> Result<SchemaRef> {
    let parameters = method.parameters_text().map_err(|error| error.in_function(method.name()))?;
    let description = Description { method: method.name().to_owned(), parameters, release_id, number: None };
    let nodes = prepared.hierarchies.is_some();
    let (signatures, labels) = method.state().map_or((false, false), StateKind::shown);
    let shape = Shape { view, form: method.form(), signatures, labels, nodes };
    Ok(Arc::new(schema(&prepared.layout, shape, &description)))
}

/// What is published of what the method makes.
fn apart(prepared: &Prepared, made: &SchemaRef) -> SchemaRef {
    prepared.composite.as_ref().map_or_else(|| Arc::clone(made), |composite| composite.apart(made))
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
        let name = self.method.name();
        let Prepared { microdata, previous, hierarchies, updates, .. } = &self.prepared;
        let previous = match previous {
            Some((kind, argument, plan)) => Some((*kind, planned(session, plan, name, argument).await?)),
            None => None,
        };
        let inputs = Inputs {
            microdata: planned(session, microdata, name, "the input").await?,
            previous,
            hierarchies: planned_if_given(session, hierarchies.as_ref(), name, "hierarchies").await?,
            updates: planned_if_given(session, updates.as_ref(), name, UPDATES).await?,
        };
        let roles = self.prepared.layout.roles();
        let job = AnonymizeJob { method: self.method.clone(), roles, view: self.view, seed: self.seed(session)? };
        let Some(composite) = &self.prepared.composite else {
            let schema: Schema = match projection {
                Some(columns) => self.schema.project(columns)?,
                None => self.schema.as_ref().clone(),
            };
            return Ok(Arc::new(AnonymizeExec::try_new(inputs, job, Arc::new(schema))?));
        };
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let origins = composite.origins(&self.made, &wanted);
        let mut kept: Vec<usize> = origins.iter().map(|(origin, _)| *origin).collect();
        kept.sort_unstable();
        kept.dedup();
        let release = Arc::new(AnonymizeExec::try_new(inputs, job, Arc::new(self.made.project(&kept)?))?);
        composite.project(release, &kept, &origins, session.config_options())
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
