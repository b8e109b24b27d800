//! Several sensitive columns: one value to a method, and columns again in its release.
//!
//! [`Several`] says what the bound is of. `sensitive => (disease, drug)` hides each column by itself: the method keeps people of one disease, and those of
//! one drug, in different groups, or it refuses. `sensitive => composite(disease, drug)` hides the combination alone. Combinations that differ can share one
//! of their parts, so one column can be certain. A projection below the method puts the columns together, and the release has them again.

mod text;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::input::{Input, InputColumn, with_column};
use super::signature::Style;
use crate::error::refusal;
use crate::methods::Method;
use crate::microdata::{Role, Several, field_of_parts, name_of_parts};
use crate::release::{View, reserved_names};
pub(super) use text::COMPOSITE;
use text::{Compose, Part};

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
    several: Several,
}

impl Composite {
    /// Returns the columns of an input that are one value.
    /// Fails when there is no such column, one is named twice, or its values have no text.
    pub(super) fn try_new(input: &Input, columns: &[String], several: Several, view: View) -> Result<Self> {
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
        Ok(Self { name: name_of_parts(columns, several), parts, several })
    }

    /// Returns the advice for a release that cannot be taken apart.
    pub(super) fn way_out(&self) -> String {
        way_out(&self.parts.iter().map(|part| part.name().clone()).collect::<Vec<_>>())
    }
}

impl Input {
    /// Adds a column with one value of several columns of the relation, under this name.
    /// Fails when there is no such column.
    pub(super) fn composed(self, columns: &[String], name: &str) -> Result<Self> {
        self.with_value(columns, Compose::default(), name)
    }

    /// Returns the same for a release that has the columns again.
    /// Fails when there is no such column.
    pub(super) fn composed_of(self, composite: &Composite) -> Result<Self> {
        let columns: Vec<String> = composite.parts.iter().map(|part| part.name().clone()).collect();
        self.with_value(&columns, Compose::of(&composite.parts, composite.several), &composite.name)
    }

    fn with_value(self, columns: &[String], function: Compose, name: &str) -> Result<Self> {
        let parts = columns.iter().map(|name| self.column(name).map(|InputColumn { column, .. }| Expr::Column(column)));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let value = ScalarUDF::new_from_impl(function).call(parts).alias(name);
        let plan = with_column(self.plan, value)?;
        Ok(Self { plan, ..self })
    }
}

/// Returns the expression that makes one value of columns of a plan.
pub(super) fn composed_columns(
    (parts, several): (&[FieldRef], Several),
    columns: Vec<Arc<dyn PhysicalExpr>>,
    config: &ConfigOptions,
) -> Arc<dyn PhysicalExpr> {
    let function = Arc::new(ScalarUDF::new_from_impl(Compose::of(parts, several)));
    let (name, returned) = (function.name().to_owned(), Arc::new(field_of_parts(parts, several)));
    Arc::new(ScalarFunctionExpr::new(&name, function, columns, returned, Arc::new(config.clone())))
}

/// Refuses several columns that a method cannot hide each by itself.
/// Fails with the call that says what the bound is of.
pub(super) fn check_hidden(
    (function, style): (&str, Style),
    method: &dyn Method,
    columns: &[String],
    several: Several,
) -> Result<()> {
    if several == Several::Together || columns.len() < 2 {
        return Ok(());
    }
    let Err(why) = method.hides_each(columns.len()) else { return Ok(()) };
    let name = Role::Sensitive.name();
    let write = |value: &str| match style {
        Style::Call => format!("{name} => {value}"),
        Style::Options => format!("'{name}' '{value}'"),
    };
    Err(refusal!(
        function,
        argument Role::Sensitive.name(),
        "{why}. Write {} for a bound of the combination, of which one column can be certain, or {} and leave the others out",
        write(&format!("{COMPOSITE}({})", columns.join(", "))),
        write(&columns[0])
    ))
}

/// Returns the advice for a call that takes one sensitive column only.
pub(super) fn way_out(columns: &[String]) -> String {
    let (all, name) = (columns.join(", "), columns.join("_"));
    format!("choose one, or make one of them: (SELECT *, {COMPOSITE}({all}) AS {name} FROM ..), sensitive => {name}")
}
