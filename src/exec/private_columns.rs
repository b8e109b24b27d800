//! Columns of a plan that are of a private view, or computed from such columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;

use crate::microdata::Role;
use crate::release::{COMMITMENTS, COUNTERFEIT_MARK, LABEL, PARTNERS, RING, SIGNATURE};

/// Returns true if a column of a plan is private or computed from such. Private are identifiers, and what only the publisher may know.
pub(super) fn has_private(plan: &Arc<dyn ExecutionPlan>) -> bool {
    private_columns(plan).contains(&true)
}

/// Returns for each column whether its role says that it is private.
fn said(schema: &Schema) -> Vec<bool> {
    let private = [Role::Id.name(), COUNTERFEIT_MARK, SIGNATURE, LABEL, RING, PARTNERS, COMMITMENTS];
    let is_private = |role: &String| private.contains(&role.as_str());
    schema.fields().iter().map(|field| field.metadata().get(Role::KEY).is_some_and(is_private)).collect()
}

fn private_columns(plan: &Arc<dyn ExecutionPlan>) -> Vec<bool> {
    let mut found = said(&plan.schema());
    let inputs: Vec<(Arc<Schema>, Vec<bool>)> =
        plan.children().into_iter().map(|child| (child.schema(), private_columns(child))).collect();
    let first = inputs.first().map_or(&[] as &[bool], |(_, private)| private);
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        for (found, column) in found.iter_mut().zip(projection.expr()) {
            *found |= reads(&column.expr, first);
        }
    } else if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let files = scan.data_source().downcast_ref::<FileScanConfig>();
        let computed = files.and_then(|files| Some((files, files.file_source().projection()?)));
        if let Some((files, columns)) = computed {
            let private = said(files.file_source().table_schema().table_schema());
            for (found, expr) in found.iter_mut().zip(columns.expr_iter()) {
                *found |= reads(&expr, &private);
            }
        }
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr().expr();
        for (found, (expr, _)) in found.iter_mut().zip(groups) {
            *found |= reads(expr, first);
        }
        // Of states of aggregates that were begun below it is not looked at which is whose.
        let is_private = match aggregate.mode().input_mode() {
            AggregateInputMode::Raw => {
                aggregate.aggr_expr().iter().flat_map(|one| one.expressions()).any(|expr| reads(&expr, first))
            }
            AggregateInputMode::Partial => first.iter().skip(groups.len()).any(|private| *private),
        };
        found.iter_mut().skip(groups.len()).for_each(|found| *found |= is_private);
    } else if plan.is::<UnionExec>() {
        for (_, private) in &inputs {
            found.iter_mut().zip(private).for_each(|(found, private)| *found |= private);
        }
    } else {
        // Other operators pass columns on under their names.
        let schema = plan.schema();
        for (found, field) in found.iter_mut().zip(schema.fields()) {
            let is_private = |(input, private): &(Arc<Schema>, Vec<bool>)| {
                input.fields().iter().zip(private).any(|(other, private)| *private && other.name() == field.name())
            };
            *found |= inputs.iter().any(is_private);
        }
    }
    found
}

fn reads(expr: &Arc<dyn PhysicalExpr>, private: &[bool]) -> bool {
    collect_columns(expr).iter().any(|column| private.get(column.index()) == Some(&true))
}
