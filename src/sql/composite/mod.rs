//! Several sensitive columns: one value to a method, and columns again in its release.
//!
//! What a method hides is the combination: of the `m` in a group nobody knows whose is which. It does not hide a column by itself, for
//! combinations that differ can share one of their parts. A projection below the method puts the columns together, and the release has them
//! again; the methods know nothing of this.

mod text;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::input::{Input, InputColumn, with_column};
use crate::error::refusal;
use crate::microdata::{field_of_parts, name_of_parts};
use crate::release::{View, reserved_names};
use text::{COMPOSITE, Compose, Part};

/// Returns `composite` and `composite_part`, for queries that put values together.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    [Arc::new(ScalarUDF::new_from_impl(Compose::default())), Arc::new(ScalarUDF::new_from_impl(Part::default()))]
}

/// Columns that are one value.
#[derive(Debug, Clone)]
pub(super) struct Composite {
    /// Name of the value below.
    pub name: String,
    /// The columns, with the types that they are published with.
    parts: Vec<FieldRef>,
}

impl Composite {
    /// Returns the columns of an input that are one value.
    /// Fails when there is no such column, one is named twice, or its values have no text.
    pub(super) fn try_new(input: &Input, columns: &[String], view: View) -> Result<Self> {
        let function = input.function;
        let mut seen = HashSet::new();
        let mut parts = Vec::new();
        for name in columns {
            if !seen.insert(name) {
                return Err(refusal!(
                    function,
                    argument "sensitive",
                    "argument sensitive names column {name} twice; name it once"
                ));
            }
            if reserved_names(view).contains(&name.as_str()) {
                return Err(refusal!(
                    function,
                    "a release has a column {name} of its own; rename yours in a query in parentheses"
                ));
            }
            let mut column = input.column(name)?;
            column.publish(function)?;
            parts.push(column.field);
        }
        Ok(Self { name: name_of_parts(columns), parts })
    }

    /// Returns the advice for a release that cannot be taken apart.
    pub(super) fn way_out(&self) -> String {
        way_out(&self.parts.iter().map(|part| part.name().clone()).collect::<Vec<_>>())
    }
}

impl Input {
    /// Adds a column with one value of several columns of the relation.
    /// Fails when there is no such column.
    pub(super) fn composed(self, columns: &[String]) -> Result<Self> {
        self.with_value(columns, Compose::default())
    }

    /// Returns the same for a release that has the columns again.
    /// Fails when there is no such column.
    pub(super) fn composed_of(self, composite: &Composite) -> Result<Self> {
        let columns: Vec<String> = composite.parts.iter().map(|part| part.name().clone()).collect();
        self.with_value(&columns, Compose::of(&composite.parts))
    }

    fn with_value(self, columns: &[String], function: Compose) -> Result<Self> {
        let parts = columns.iter().map(|name| self.column(name).map(|InputColumn { column, .. }| Expr::Column(column)));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let value = ScalarUDF::new_from_impl(function).call(parts).alias(name_of_parts(columns));
        let plan = with_column(self.plan, value)?;
        Ok(Self { plan, ..self })
    }
}

/// Returns the expression that makes one value of columns of a plan.
pub(super) fn composed_columns(
    parts: &[FieldRef],
    columns: Vec<Arc<dyn PhysicalExpr>>,
    config: &ConfigOptions,
) -> Arc<dyn PhysicalExpr> {
    let function = Arc::new(ScalarUDF::new_from_impl(Compose::of(parts)));
    let (name, returned) = (function.name().to_owned(), Arc::new(field_of_parts(parts)));
    Arc::new(ScalarFunctionExpr::new(&name, function, columns, returned, Arc::new(config.clone())))
}

/// Returns the advice for a call that takes one sensitive column only.
pub(super) fn way_out(columns: &[String]) -> String {
    let (all, name) = (columns.join(", "), columns.join("_"));
    format!("choose one, or make one of them: (SELECT *, {COMPOSITE}({all}) AS {name} FROM ..), sensitive => {name}")
}
