//! The analyzer rule that tells two calls of one function apart.
//!
//! DataFusion compares scans by name and schema and not by the table that is read, and computes equal subqueries once: of two
//! figures of `information_loss`, each in a subquery of its own, both would be the first's. So where a statement calls a function
//! more than once, the scans get names that differ, under aliases that do not.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::logical_plan::{SubqueryAlias, TableScan, TableScanBuilder};
use datafusion::logical_expr::{LogicalPlan, TableSource};
use datafusion::optimizer::AnalyzerRule;

/// Renames scans of these tables.
#[derive(Debug)]
pub(super) struct DistinctCalls {
    pub names: Vec<&'static str>,
}

impl DistinctCalls {
    fn scan<'a>(&self, node: &'a LogicalPlan) -> Option<(&'a TableScan, &'static str)> {
        let LogicalPlan::TableScan(scan) = node else { return None };
        let name = self.names.iter().find(|name| **name == scan.table_name.table());
        name.map(|name| (scan, *name))
    }
}

/// Scans of one name.
#[derive(Default)]
struct Seen(Vec<(&'static str, Arc<dyn TableSource>)>);

impl Seen {
    /// Counts the other tables of the name that were seen before this one.
    fn number(&mut self, name: &'static str, source: &Arc<dyn TableSource>) -> usize {
        let mut same = self.0.iter().filter(|(other, _)| *other == name);
        // Clones of a plan, as of a common table expression, share their source.
        if let Some(number) = same.clone().position(|(_, other)| Arc::ptr_eq(other, source)) {
            return number;
        }
        let number = same.by_ref().count();
        self.0.push((name, Arc::clone(source)));
        number
    }
}

impl AnalyzerRule for DistinctCalls {
    fn name(&self) -> &str {
        "anonymize_tell_apart"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut seen = Seen::default();
        let mut several = false;
        plan.apply_with_subqueries(|node| {
            if let Some((scan, name)) = self.scan(node) {
                several |= seen.number(name, &scan.source) > 0;
            }
            Ok(if several { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !several {
            return Ok(plan);
        }
        let mut seen = Seen::default();
        let renamed = plan.transform_up_with_subqueries(|node| {
            let number = self.scan(&node).map_or(0, |(scan, name)| seen.number(name, &scan.source));
            match node {
                LogicalPlan::TableScan(scan) if number > 0 => {
                    let TableScan { table_name, source, projection, filters, fetch, .. } = scan;
                    let name = TableReference::bare(format!("{}:{}", table_name.table(), number + 1));
                    let scan = TableScanBuilder::new(name, source)
                        .with_projection(projection)
                        .with_filters(filters)
                        .with_fetch(fetch)
                        .build()?;
                    let scan = Arc::new(LogicalPlan::TableScan(scan));
                    Ok(Transformed::yes(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(scan, table_name)?)))
                }
                node => Ok(Transformed::no(node)),
            }
        })?;
        Ok(renamed.data)
    }
}
