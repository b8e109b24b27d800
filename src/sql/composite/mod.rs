//! Several sensitive columns: one value to a method, and columns again in its release.
//!
//! What a method hides is the combination: of the `m` in a group nobody knows whose is which. It does not hide a column by itself, for
//! combinations that differ can share one of their parts. A projection below the method puts the columns together, and one above it takes
//! them apart; the methods know nothing of this.

mod text;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF};
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::input::{Input, InputColumn};
use crate::error::refusal;
use crate::microdata::ORDER_KEY;
use crate::release::{View, reserved_names};
use text::{COMPOSITE, Compose, Part};

/// `composite` and `composite_part`, for whoever puts values together in a query.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    [Arc::new(ScalarUDF::new_from_impl(Compose::default())), Arc::new(ScalarUDF::new_from_impl(Part::default()))]
}

/// Columns that are one value.
#[derive(Debug, Clone)]
pub(super) struct Composite {
    /// What the value is called below.
    pub name: String,
    /// The columns, with the types that they are published with.
    parts: Vec<FieldRef>,
}

impl Composite {
    /// What a value of these columns is called: no column of a table has such a name by chance.
    pub(super) fn name_of(columns: &[String]) -> String {
        format!("({})", columns.join(", "))
    }

    /// The columns of an input that are one value.
    ///
    /// # Errors
    /// When there is no such column, one is named twice, or its values have no text.
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
        Ok(Self { name: Self::name_of(columns), parts })
    }

    /// What to do where the release cannot be taken apart.
    pub(super) fn way_out(&self) -> String {
        way_out(&self.parts.iter().map(|part| part.name().clone()).collect::<Vec<_>>())
    }

    /// The metadata and types of the columns in a release, given the field of the value.
    fn released(&self, value: &Field) -> Vec<FieldRef> {
        let part = |part: &FieldRef| {
            let mut metadata = value.metadata().clone();
            metadata.remove(ORDER_KEY);
            let order = part.metadata().get(ORDER_KEY);
            metadata.extend(order.map(|order| (ORDER_KEY.to_owned(), order.clone())));
            let field = Field::new(part.name(), part.data_type().clone(), value.is_nullable());
            Arc::new(field.with_metadata(metadata))
        };
        self.parts.iter().map(part).collect()
    }

    /// A release with the columns where the value is.
    pub(super) fn apart(&self, release: &Schema) -> SchemaRef {
        let fields = release.fields().iter().flat_map(|field| match *field.name() == self.name {
            true => self.released(field),
            false => vec![Arc::clone(field)],
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Of columns of a release with the value apart: where each comes from, and which part it is.
    pub(super) fn origins(&self, release: &Schema, wanted: &[usize]) -> Vec<(usize, Option<usize>)> {
        let all = release.fields().iter().enumerate().flat_map(|(at, field)| match *field.name() == self.name {
            true => (0..self.parts.len()).map(|part| (at, Some(part))).collect(),
            false => vec![(at, None)],
        });
        let all: Vec<_> = all.collect();
        wanted.iter().filter_map(|&column| all.get(column).copied()).collect()
    }

    /// Takes the value apart above a release that has the columns `origins` come from, in their order.
    pub(super) fn project(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        kept: &[usize],
        origins: &[(usize, Option<usize>)],
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = plan.schema();
        let config = Arc::new(config.clone());
        let columns = origins.iter().map(|(origin, part)| {
            let at = kept.iter().position(|column| column == origin).unwrap_or_default();
            let field = schema.field(at);
            let column: Arc<dyn PhysicalExpr> = Arc::new(ColumnExpr::new(field.name(), at));
            let Some(part) = *part else { return (column, field.name().clone()) };
            let released = Arc::clone(&self.released(field)[part]);
            let name = released.name().clone();
            let function = ScalarUDF::new_from_impl(Part::of(part, released.data_type().clone()));
            let arguments = vec![column];
            let expr = ScalarFunctionExpr::new(
                function.name(),
                Arc::new(function.clone()),
                arguments,
                released,
                Arc::clone(&config),
            );
            (Arc::new(expr) as Arc<dyn PhysicalExpr>, name)
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
    }
}

impl Input {
    /// The same relation with one value of several of its columns as a further column.
    ///
    /// # Errors
    /// When there is no such column.
    pub(super) fn composed(self, columns: &[String]) -> Result<Self> {
        let parts = columns.iter().map(|name| self.column(name).map(|InputColumn { column, .. }| Expr::Column(column)));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let value = ScalarUDF::new_from_impl(Compose::default()).call(parts).alias(Composite::name_of(columns));
        let plan = with_column(self.plan, value)?;
        Ok(Self { plan, ..self })
    }
}

fn with_column(plan: LogicalPlan, value: Expr) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().map(|field| Expr::Column(Column::from(field)));
    let columns: Vec<Expr> = columns.chain([value]).collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// What to do where only one sensitive column can be.
pub(super) fn way_out(columns: &[String]) -> String {
    let (all, name) = (columns.join(", "), columns.join("_"));
    format!("choose one, or make one of them: (SELECT *, {COMPOSITE}({all}) AS {name} FROM ..), sensitive => {name}")
}
