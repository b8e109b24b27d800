//! Describes what an INSERT reads beside its rows: its rows again, where it is made in cells that do not follow from the identifier, and where nobody may be in
//! two releases.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use futures::FutureExt;
use futures::future::ready;

use super::left_out::SNAPSHOT;
use crate::exec::{Inputs, PlanFuture, Survey};
use crate::methods::{AnyMethod, CellsBy};
use crate::microdata::Layout;
use crate::sql::computed::project;
use crate::sql::identifiers;
use crate::sql::input_plans::{planned, planned_if_given};
use crate::sql::opaque::{OpaqueTable, Relation, Wanted};

/// Adds to the inputs of a release in cells facts about the whole table. The plan of the rows is copied: a plan runs once.
/// Fails with the errors of planning.
pub(super) async fn survey(
    session: &dyn Session,
    inputs: &mut Inputs,
    method: &AnyMethod,
    layout: &Layout,
    hierarchies: Option<&LogicalPlan>,
) -> Result<()> {
    let name = method.name();
    let by = method.cells_by(layout, true)?;
    if by == CellsBy::Place {
        let mut surveys = Vec::new();
        for _ in 0..2 {
            let trees = planned_if_given(session, hierarchies, name, "hierarchies").await?;
            surveys.push(Survey::new(reset_plan_states(Arc::clone(&inputs.microdata))?, trees));
        }
        inputs.survey = surveys.try_into().ok();
    }
    if layout.identifier.is_some() && by != CellsBy::Column(0) && inputs.identifiers.is_none() {
        count_people(session, inputs, name, None).await?;
    }
    Ok(())
}

/// Adds to the inputs the people who are in the rows twice. It adds those who are people of `earlier` releases, if there are any.
/// Fails with the errors of planning.
pub(super) async fn count_people(
    session: &dyn Session,
    inputs: &mut Inputs,
    function: &str,
    earlier: Option<Arc<dyn ExecutionPlan>>,
) -> Result<()> {
    let relation = |name: &str, plan| -> Result<LogicalPlan> {
        LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(OpaqueTable(Again { plan }))), None)?.build()
    };
    let rows = relation("snapshot", reset_plan_states(Arc::clone(&inputs.microdata))?)?;
    let earlier = earlier.map(|plan| relation("ledger", plan)).transpose()?;
    let counted = identifiers::counted(&rows, earlier.as_ref())?;
    inputs.identifiers = Some(planned(session, &counted, function, SNAPSHOT).await?);
    Ok(())
}

/// Rows that were planned before.
struct Again {
    plan: Arc<dyn ExecutionPlan>,
}

impl Relation for Again {
    fn function(&self) -> &str {
        "publication"
    }

    fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    fn plan<'a>(&'a self, _session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        ready(project(Arc::clone(&self.plan), wanted.projection)).boxed()
    }
}
