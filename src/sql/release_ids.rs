//! The optimizer rule that gives each release in a COPY its own id.
//!
//! A view or a prepared statement is planned once and run many times, and every run draws anew; but the metadata of a
//! table is fixed when it is planned. So when a COPY is optimized, its releases are replaced by ones that know the
//! query. (Not in other statements: CREATE TABLE AS compares the rows' metadata
//! with what was planned. Tables made of one view at different times share the view's id.)

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::logical_plan::{TableScan, TableScanBuilder};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::anonymized_table::AnonymizedTable;
use super::opaque::OpaqueTable;
use super::query_start::QueryStart;

#[derive(Debug)]
pub(super) struct ReleaseIds;

impl OptimizerRule for ReleaseIds {
    fn name(&self) -> &str {
        "anonymize_stamp_releases"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let start = config.query_execution_start_time().and_then(|start| start.timestamp_nanos_opt());
        let Some(start) = start.map(QueryStart::at) else { return Ok(Transformed::no(plan)) };
        let copies = match &plan {
            LogicalPlan::Analyze(analyze) => matches!(*analyze.input, LogicalPlan::Copy(_)),
            plan => matches!(plan, LogicalPlan::Copy(_)),
        };
        if !copies {
            return Ok(Transformed::no(plan));
        }
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            found |= unstamped(node, start).is_some();
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| {
            let Some(table) = unstamped(&node, start) else { return Ok(Transformed::yes(node.recompute_schema()?)) };
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let TableScan { table_name, projection, filters, fetch, .. } = scan;
            let source = provider_as_source(Arc::new(OpaqueTable(table.started(start)?)));
            let scan = TableScanBuilder::new(table_name, source)
                .with_projection(projection)
                .with_filters(filters)
                .with_fetch(fetch)
                .build()?;
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        })
    }
}

/// Returns the release in a scan, if it does not know its query yet.
fn unstamped(node: &LogicalPlan, start: QueryStart) -> Option<AnonymizedTable> {
    let LogicalPlan::TableScan(scan) = node else { return None };
    let provider = source_as_provider(&scan.source).ok()?;
    let table = OpaqueTable::<AnonymizedTable>::relation(provider.as_ref())?;
    (table.start() != Some(start)).then(|| table.clone())
}
