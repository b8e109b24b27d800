//! What an estimate is made from: the rows of a release.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result, ScalarValue, Spans, internal_err, plan_err};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::functions::core::expr_fn::{coalesce, named_struct};
use datafusion::functions_aggregate::expr_fn::{array_agg, min};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, cast, lit, not};

use crate::estimate::{Axis, Form, Known, OriginalColumn, Released, Scale};
use crate::release::{COUNTERFEIT_MARK, COUNTERFEITS, GROUP_SIZE, HI, LO, NULLS};

/// A release and what is known of it.
#[derive(Debug, Clone)]
pub(in crate::sql) struct Source {
    /// The rows of the release. Its fields may lack the metadata that `released` was read from.
    pub release: LogicalPlan,
    pub released: Released,
    /// Those that the release was made with: attribute, leaf and levels.
    pub hierarchies: Option<LogicalPlan>,
    /// Columns of which it is known that no interval has NULL in it.
    pub without_null: BTreeSet<String>,
    /// What must hold for the release to be there once; fails if it does not.
    pub intact: Option<Expr>,
}

impl Source {
    /// A column of the release.
    pub(super) fn released_column(&self, name: &str) -> Result<Expr> {
        match self.release.schema().qualified_field_with_unqualified_name(name) {
            Ok((qualifier, field)) => Ok(Expr::Column(Column::new(qualifier.cloned(), field.name()))),
            Err(_) => internal_err!("a release without its column {name}"),
        }
    }

    /// The probability that a row stands for a person.
    pub(super) fn is_real(&self) -> Result<Expr> {
        if self.released.marked {
            return Ok(cast(not(self.released_column(COUNTERFEIT_MARK)?), DataType::Float64));
        }
        if !self.released.groups {
            return Ok(lit(1.0));
        }
        let (size, counterfeits) = (self.released_column(GROUP_SIZE)?, self.released_column(COUNTERFEITS)?);
        let real = cast(size.clone() - counterfeits, DataType::Float64);
        Ok(real / cast(size, DataType::Float64))
    }

    /// The values of a column, for the functions of an estimate.
    pub(super) fn axis(column: &OriginalColumn) -> Arc<Axis> {
        Arc::new(Axis::new(column))
    }

    /// How a row tells of a column, and the arguments that say it.
    pub(super) fn known(&self, column: &OriginalColumn) -> Result<(Known, Vec<Expr>)> {
        let released = self.released_column(column.name())?;
        let (nodes, nulls) = match column.form {
            Form::Exact => return internal_err!("column {} is released as it is", column.name()),
            Form::Histogram => return Ok((Known::Histogram, vec![released])),
            Form::Interval { nodes, nulls } => (nodes, nulls),
        };
        let share = match nulls {
            false => lit(ScalarValue::Null),
            true => {
                let of_group = |expr: Expr| cast(expr, DataType::Float64);
                let people = self.released_column(GROUP_SIZE)? - self.released_column(COUNTERFEITS)?;
                of_group(released.clone().field(NULLS)) / of_group(people)
            }
        };
        let hierarchies = if nodes { self.hierarchies()? } else { lit(ScalarValue::Null) };
        let (lo, hi) = (released.clone().field(LO), released.field(HI));
        let values = self.values(column, &lo, &hi)?;
        Ok((Known::Interval, vec![lo, hi, values, share, hierarchies]))
    }

    /// What the values of a column are where the interval does not tell: of categories a list, of others the least.
    fn values(&self, column: &OriginalColumn, lo: &Expr, hi: &Expr) -> Result<Expr> {
        let none = lit(ScalarValue::Null);
        let unlisted = |data_type: &DataType| column.order.is_none() && *data_type != DataType::Boolean;
        let plan = match column.scale() {
            Scale::Listed if unlisted(column.field.data_type()) => {
                let ends = make_array(vec![lo.clone(), hi.clone()]).alias("ends");
                let ends = LogicalPlanBuilder::from(self.release.clone()).project(vec![ends])?.unnest_column("ends")?;
                let distinct = ends.distinct()?;
                let list = array_agg(Expr::Column(Column::from_name("ends"))).alias("values");
                distinct.aggregate(Vec::<Expr>::new(), vec![list])?.build()?
            }
            Scale::Listed => return Ok(none),
            _ if self.without_null.contains(column.name()) => return Ok(none),
            _ => {
                let least = min(coalesce(vec![lo.clone(), hi.clone()])).alias("least");
                LogicalPlanBuilder::from(self.release.clone()).aggregate(Vec::<Expr>::new(), vec![least])?.build()?
            }
        };
        Ok(subquery(plan))
    }

    /// All rows of the hierarchies as one list.
    fn hierarchies(&self) -> Result<Expr> {
        let Some(plan) = &self.hierarchies else {
            return plan_err!(
                "estimate: the release was made with hierarchies, and an estimate needs them to know what lies below a node; \
                 pass the same ones: estimated(release, hierarchies => ..)"
            );
        };
        let fields = plan.schema().columns().into_iter();
        let fields = fields.flat_map(|column| [lit(column.name.clone()), Expr::Column(column)]).collect();
        let rows = array_agg(named_struct(fields)).alias("hierarchies");
        Ok(subquery(LogicalPlanBuilder::from(plan.clone()).aggregate(Vec::<Expr>::new(), vec![rows])?.build()?))
    }
}

fn subquery(plan: LogicalPlan) -> Expr {
    Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns: Vec::new(), spans: Spans::new() })
}
