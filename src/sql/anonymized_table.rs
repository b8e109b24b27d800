//! The release that a call of a method stands for.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use super::cells::{ChosenCells, WantedCells};
use super::composite::Composite;
use super::followed::Followed;
use super::identifiers;
use super::input::PREVIOUS;
use super::input_plans::{planned, planned_if_given};
use super::opaque::{Relation, Wanted};
use super::query_start::QueryStart;
use crate::exec::{AnonymizeExec, AnonymizeJob, CellCount, CellsExec, Inputs, Notices, PlanFuture, Seed, Survey};
use crate::methods::{AnyMethod, CellsBy, StateKind};
use crate::microdata::Layout;
use crate::release::{Description, View, schema};

/// The relations of a call, ready to be planned.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub microdata: LogicalPlan,
    /// State of earlier releases, and the argument that has it.
    pub previous: Option<(StateKind, &'static str, LogicalPlan)>,
    /// The releases that it is of.
    pub followed: Followed,
    pub hierarchies: Option<LogicalPlan>,
    pub updates: Option<LogicalPlan>,
    pub layout: Layout,
    /// The sensitive attribute, if it is a value of several columns.
    pub composite: Option<Composite>,
}

/// A release that is made anew by every query.
#[derive(Clone)]
pub(super) struct AnonymizedTable {
    prepared: Prepared,
    method: AnyMethod,
    view: View,
    /// Source of the randomness of every execution.
    secret: Seed,
    /// An explicit seed makes every execution the same.
    fixed: bool,
    /// Number of cells in which it is made.
    cells: WantedCells,
    /// Source of the ids of releases; of its own, because a seed must not show in what is published.
    names: Seed,
    /// The query that this table stands in, once that is known.
    start: Option<QueryStart>,
    schema: SchemaRef,
}

impl AnonymizedTable {
    pub(super) fn try_new(
        prepared: Prepared,
        method: AnyMethod,
        view: View,
        seed: Option<Seed>,
        cells: WantedCells,
    ) -> Result<Self> {
        if let WantedCells::Number(2..) = cells {
            method.cells_by(&prepared.layout, false)?;
        }
        let fixed = seed.is_some();
        let secret = seed.map_or_else(Seed::from_entropy, Ok)?;
        let names = Seed::from_entropy()?;
        let schema = release_schema(&prepared, &method, view, &names.release_id())?;
        Ok(Self { prepared, method, view, secret, fixed, cells, names, start: None, schema })
    }

    pub(super) fn draws_anew(&self) -> bool {
        !self.fixed
    }

    /// Returns the columns of which it is known that no interval has NULL in it.
    pub(super) fn without_null(&self) -> BTreeSet<String> {
        let certain = self.prepared.layout.quasi.iter().filter(|field| !field.is_nullable());
        certain.map(|field| field.name().clone()).collect()
    }

    /// Returns the start of the query that this table was made for with [`started`](Self::started).
    pub(super) fn start(&self) -> Option<QueryStart> {
        self.start
    }

    /// Returns the table as one query sees it: the release has an id of its own.
    pub(super) fn started(&self, start: QueryStart) -> Result<Self> {
        let release_id = start.seed(&self.names).release_id();
        let schema = release_schema(&self.prepared, &self.method, self.view, &release_id)?;
        Ok(Self { start: Some(start), schema, ..self.clone() })
    }

    /// Returns the seed of a query: all uses of the table in it see one release, another query draws anew.
    fn seed(&self, session: &dyn Session) -> Result<Seed> {
        match self.fixed {
            true => Ok(self.secret.clone()),
            false => QueryStart::seed_of(self.start.or_else(|| QueryStart::of(session)), &self.secret),
        }
    }
}

fn release_schema(prepared: &Prepared, method: &AnyMethod, view: View, release_id: &str) -> Result<SchemaRef> {
    let parameters = method.parameters_text().map_err(|error| error.in_function(method.name()))?;
    let description = Description::new(method.name(), parameters, release_id.to_owned(), None);
    let nodes = prepared.hierarchies.is_some();
    let shape = StateKind::shape(method.state(), view, method.form(), nodes);
    Ok(prepared.followed.noted(Arc::new(schema(&prepared.layout, shape, &description)), release_id))
}

impl Relation for AnonymizedTable {
    const NOUN: &'static str = "a release";

    fn function(&self) -> &str {
        self.method.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let name = self.method.name();
            if self.prepared.followed.is_unknown() {
                let argument = self.prepared.previous.as_ref().map_or(PREVIOUS, |(_, argument, _)| *argument);
                Notices::of_config(session.config()).tell(&format!(
                    "{name}: not all rows of {argument} say which release they are of (what was computed, a table that was made of several, a file that is \
                     not Parquet), or rows of one are left out (WHERE, LIMIT, JOIN), so that people who are missing are not noticed; pass the private views \
                     as they were written"
                ));
            }
            if self.prepared.followed.is_forked() {
                Notices::of_config(session.config()).tell(&format!(
                    "{name}: two of the earlier releases were made without each other, so that together they can give away whoever is in both: \
                     disclosure((first, second), ..) of these says whom. Make each release with all before it"
                ));
            }
            let Prepared { microdata, previous, hierarchies, updates, .. } = &self.prepared;
            let previous = match previous {
                Some((kind, argument, plan)) => Some((*kind, planned(session, plan, name, argument).await?)),
                None => None,
            };
            let mut inputs = Inputs {
                previous,
                hierarchies: planned_if_given(session, hierarchies.as_ref(), name, "hierarchies").await?,
                updates: planned_if_given(session, updates.as_ref(), name, self.method.values_argument()).await?,
                ..Inputs::new(planned(session, microdata, name, "the input").await?)
            };
            let layout = &self.prepared.layout;
            let roles = layout.roles();
            let chosen = self.cells.choose(&self.method, layout, false, &inputs.microdata, session);
            if chosen.cells > 1 {
                let by = self.method.cells_by(layout, false)?;
                if by == CellsBy::Place {
                    // Plans are for one execution: what may be read again is planned again.
                    let mut surveys = Vec::new();
                    for _ in 0..2 {
                        let again = planned(session, microdata, name, "the input").await?;
                        let trees = planned_if_given(session, hierarchies.as_ref(), name, "hierarchies").await?;
                        surveys.push(Survey::new(again, trees));
                    }
                    inputs.survey = surveys.try_into().ok();
                }
                if layout.identifier.is_some() && by != CellsBy::Column(0) {
                    inputs.identifiers =
                        Some(planned(session, &identifiers::counted(microdata, None)?, name, "the input").await?);
                }
            }
            let job = AnonymizeJob::new(self.method.clone(), roles, self.view, self.seed(session)?);
            operator(inputs, job, chosen, wanted.of(&self.schema)?)
        })
    }
}

/// Returns the operator that makes a release with these columns.
fn operator(
    inputs: Inputs,
    job: AnonymizeJob,
    chosen: ChosenCells,
    schema: SchemaRef,
) -> Result<Arc<dyn ExecutionPlan>> {
    let ChosenCells { cells, rows, reason } = chosen;
    if cells == 1 {
        return Ok(Arc::new(AnonymizeExec::try_new(inputs, job, schema)?));
    }
    let count = CellCount::new(cells, rows).because(reason);
    Ok(Arc::new(CellsExec::try_new(inputs, job, count, schema)?))
}
