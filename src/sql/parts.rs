//! The analyzer rule that marks queries which leave out people of a private view. So a copy of the result does not pass for the whole release.
//!
//! A stored copy keeps the metadata of the columns. Without the mark a copy that was filtered would be taken for all of the release, and `previous` would
//! take the people who are missing for new ones. The mark stands beside the keys that name the release ([`followed`](super::followed)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use super::followed::keeps_everybody;
use crate::microdata::Role;
use crate::release::{OWN, PART};

/// Marks results that lack people of a release.
#[derive(Debug)]
pub(super) struct MarkParts;

impl AnalyzerRule for MarkParts {
    fn name(&self) -> &'static str {
        "anonymize_mark_parts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        marked(plan)
    }
}

fn marked(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Copy(CopyTo { input, output_url, partition_by, file_type, options, .. }) => {
            let input = Arc::new(marked(Arc::unwrap_or_clone(input))?);
            Ok(LogicalPlan::Copy(CopyTo::new(input, output_url, partition_by, file_type, options)))
        }
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(marked(Arc::unwrap_or_clone(analyze.input))?);
            Ok(LogicalPlan::Analyze(analyze))
        }
        plan @ (LogicalPlan::Ddl(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::DescribeTable(_)) => Ok(plan),
        plan if !names_a_release(plan.schema()) => Ok(plan),
        plan => {
            let partial = partial(&plan);
            mark(plan, &partial)
        }
    }
}

/// Returns true if a column names a private view.
fn names_a_release(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| releases(field).next().is_some())
}

/// Returns the ids of the releases that a column is of.
fn releases(field: &Field) -> impl Iterator<Item = &str> {
    field.metadata().keys().filter_map(|key| key.strip_prefix(OWN))
}

/// Returns the ids of releases of which a query can leave out people.
fn partial(plan: &LogicalPlan) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = plan.inputs().into_iter().flat_map(partial).collect();
    let of = |input: &LogicalPlan| -> Vec<String> {
        input.schema().fields().iter().flat_map(|field| releases(field)).map(str::to_owned).collect()
    };
    match plan {
        LogicalPlan::Join(join) => {
            let (left, right) = match join.join_type {
                JoinType::Full => (true, true),
                JoinType::Left | JoinType::LeftMark => (true, false),
                JoinType::Right | JoinType::RightMark => (false, true),
                _ => (false, false),
            };
            for (input, is_kept) in [(&join.left, left), (&join.right, right)] {
                if !is_kept {
                    found.extend(of(input));
                }
            }
        }
        LogicalPlan::TableScan(scan) if !keeps_everybody(plan, identifier(&scan.projected_schema)) => {
            found.extend(of(plan));
        }
        LogicalPlan::TableScan(_) => {}
        plan => {
            for input in plan.inputs() {
                // A computed identifier leaves nobody out by itself.
                let is_kept =
                    matches!(plan, LogicalPlan::Projection(_)) || keeps_everybody(plan, identifier(input.schema()));
                if !is_kept {
                    found.extend(of(input));
                }
            }
        }
    }
    found
}

fn identifier(schema: &DFSchema) -> Option<&str> {
    let is_id = |field: &&Arc<Field>| field.metadata().get(Role::KEY).map(String::as_str) == Some(Role::Id.name());
    schema.fields().iter().find(is_id).map(|field| field.name().as_str())
}

/// Adds the mark to the columns that name these releases.
fn mark(plan: LogicalPlan, partial: &BTreeSet<String>) -> Result<LogicalPlan> {
    let new_marks = |field: &Field| -> BTreeMap<String, String> {
        let partial = releases(field).filter(|id| partial.contains(*id)).map(|id| format!("{PART}{id}"));
        partial.filter(|key| !field.metadata().contains_key(key)).map(|key| (key, String::new())).collect()
    };
    if plan.schema().fields().iter().all(|field| new_marks(field).is_empty()) {
        return Ok(plan);
    }
    let columns: Vec<Expr> = plan
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let column = Expr::Column(Column::from((qualifier, field)));
            let marks = new_marks(field);
            if marks.is_empty() {
                return column;
            }
            let named = Alias::new(column, qualifier.cloned(), field.name());
            Expr::Alias(named.with_metadata(Some(FieldMetadata::from(marks))))
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
