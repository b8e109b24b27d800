//! The analyzer rule for INSERTs into publications: they are checked as the input of a function is, and read without showing the data.

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::logical_plan::{DmlStatement, WriteOp};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use super::left_out::{SNAPSHOT, left_out, marked, marked_columns};
use super::newest::typed;
use super::positions::check_positions;
use super::table::PublicationTable;
use crate::exec::{Origin, PlanFuture, hide};
use crate::sql::computed::project;
use crate::sql::input_plans::planned;
use crate::sql::opaque::{OpaqueTable, Relation, Wanted};
use crate::sql::repeatable::{check_choices, check_volatile};

/// Puts the rows of an INSERT into a publication behind a scan. So they are planned like the input of a function.
#[derive(Debug)]
pub(in crate::sql) struct CheckInserts;

impl AnalyzerRule for CheckInserts {
    fn name(&self) -> &str {
        "anonymize_check_inserts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let checked = plan.transform_down(|node| match node {
            LogicalPlan::Dml(insert) => match snapshot(&insert)? {
                Some(input) => {
                    Ok(Transformed::yes(LogicalPlan::Dml(DmlStatement { input: Arc::new(input), ..insert })))
                }
                None => Ok(Transformed::no(LogicalPlan::Dml(insert))),
            },
            node => Ok(Transformed::no(node)),
        })?;
        Ok(checked.data)
    }
}

/// Returns the rows of an INSERT into a publication that was not seen yet.
fn snapshot(insert: &DmlStatement) -> Result<Option<LogicalPlan>> {
    let target = source_as_provider(&insert.target).ok();
    let publishes = target.is_some_and(|table| table.downcast_ref::<PublicationTable>().is_some());
    if !publishes || !matches!(insert.op, WriteOp::Insert(_)) {
        return Ok(None);
    }
    if let LogicalPlan::TableScan(scan) = insert.input.as_ref()
        && source_as_provider(&scan.source).is_ok_and(|table| table.is::<OpaqueTable<Snapshot>>())
    {
        return Ok(None);
    }
    let unique = PublicationTable::identifier(&insert.target);
    check_positions(&insert.input, &unique)?;
    check_volatile("publication", SNAPSHOT, &insert.input)?;
    check_choices("publication", SNAPSHOT, &insert.input, &unique)?;
    let left_out = left_out(&insert.input);
    let schema = insert.input.schema().inner();
    let field = |field: &FieldRef| match left_out.contains(field.name()) {
        true => marked(field),
        false => FieldRef::clone(field),
    };
    let schema = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
    let rows = OpaqueTable(Snapshot { plan: LogicalPlan::clone(&insert.input), schema });
    Ok(Some(LogicalPlanBuilder::scan("snapshot", provider_as_source(Arc::new(rows)), None)?.build()?))
}

struct Snapshot {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl Relation for Snapshot {
    fn function(&self) -> &str {
        "publication"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let mut rows = planned(session, &self.plan, "publication", SNAPSHOT).await?;
            let origin = Arc::new(Origin {
                function: "publication".to_owned(),
                argument: SNAPSHOT.to_owned(),
                names: Vec::new(),
            });
            if !marked_columns(&self.schema).is_empty() {
                rows = hide(&typed(rows, &self.schema)?, &origin)?;
            }
            let all = wanted.projection.is_none_or(|columns| columns.iter().copied().eq(0..self.schema.fields().len()));
            if all {
                return Ok(rows);
            }
            hide(&project(rows, wanted.projection)?, &origin)
        })
    }
}
