//! Source of an estimate: the rows of a release.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result, ScalarValue, Spans, internal_err};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::functions::core::expr_fn::{coalesce, named_struct};
use datafusion::functions_aggregate::expr_fn::{array_agg, count, min, sum};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, cast, lit, not, when};

use crate::error::refusal;
use crate::estimate::{Axis, Distribution, ESTIMATE, Form, Known, OriginalColumn, Raked, Released, Scale};
use crate::release::{COUNTERFEIT_MARK, COUNTERFEITS, GROUP_SIZE, HI, LO, NULLS};

/// A release and what is known of it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The rows of the release. Its fields may lack the metadata that `released` was read from.
    pub release: LogicalPlan,
    pub released: Released,
    /// Hierarchies that the release was made with: attribute, leaf and levels.
    pub hierarchies: Option<LogicalPlan>,
    /// Columns of which it is known that no interval has NULL in it.
    pub without_null: BTreeSet<String>,
    /// Shares of the values of attributes, from elsewhere: attribute, value, share.
    pub prior: Option<LogicalPlan>,
    /// Distribution of values over intervals.
    pub distribution: Distribution,
    /// Condition that the table is one release; fails if it is not.
    pub intact: Option<Expr>,
}

impl Source {
    /// Returns a column of the release.
    pub(super) fn released_column(&self, name: &str) -> Result<Expr> {
        match self.release.schema().qualified_field_with_unqualified_name(name) {
            Ok((qualifier, field)) => Ok(Expr::Column(Column::new(qualifier.cloned(), field.name()))),
            Err(_) => internal_err!("a release without its column {name}"),
        }
    }

    /// Returns the probability that a row stands for a person.
    pub(super) fn is_real(&self) -> Result<Expr> {
        if self.released.marked {
            return Ok(cast(not(self.released_column(COUNTERFEIT_MARK)?), DataType::Float64));
        }
        if !self.released.groups || self.released.listed {
            return Ok(lit(1.0));
        }
        let (size, counterfeits) = (self.released_column(GROUP_SIZE)?, self.released_column(COUNTERFEITS)?);
        let real = cast(size.clone() - counterfeits, DataType::Float64);
        Ok(real / cast(size, DataType::Float64))
    }

    /// Returns the values of a column, for the functions of an estimate.
    pub(super) fn axis(column: &OriginalColumn) -> Arc<Axis> {
        Arc::new(Axis::new(column))
    }

    /// Returns a row's form of telling a column, and the arguments that say it.
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
        let mut arguments = vec![lo, hi, values, share, hierarchies];
        if self.is_fitted(column) {
            let people = match self.has_people_at_ends(column) {
                true => {
                    cast(self.released_column(GROUP_SIZE)? - self.released_column(COUNTERFEITS)?, DataType::Float64)
                }
                false => lit(ScalarValue::Float64(None)),
            };
            let ends = self.ends(column, &arguments[0], &arguments[1], &people)?;
            arguments.extend([people, ends]);
        }
        Ok((Known::Interval, arguments))
    }

    /// Returns true if somebody of each group is at each end of its intervals.
    fn has_people_at_ends(&self, column: &OriginalColumn) -> bool {
        self.released.groups && !self.released.alone && column.is_tight()
    }

    /// Returns true if values are spread like the ends of intervals, or by margins.
    pub(super) fn is_fitted(&self, column: &OriginalColumn) -> bool {
        self.distribution == Distribution::Fitted
            && matches!(column.form, Form::Interval { .. })
            && (self.has_people_at_ends(column) || self.prior.is_some())
    }

    /// Returns the ends of all intervals as a list: each with the number of rows that have it as one of two ends, of those
    /// that have it as both, the sum of the people in the groups of the latter, and its share if that is said elsewhere.
    fn ends(&self, of: &OriginalColumn, lo: &Expr, hi: &Expr, people: &Expr) -> Result<Expr> {
        let column = |name: &str| Expr::Column(Column::from_name(name));
        if self.prior.is_some() {
            return self.raked(of, lo, hi, people);
        }
        let counts = vec![count(lit(1)).alias("rows"), sum(people.clone()).alias("people")];
        let intervals = LogicalPlanBuilder::from(self.release.clone())
            .filter(lo.clone().is_not_null())?
            .aggregate(vec![lo.clone().alias("lo"), hi.clone().alias("hi")], counts)?;
        let rows = || cast(column("rows"), DataType::Float64);
        let single = || column("lo").eq(column("hi"));
        let of_these = |which: Expr, number: Expr| when(which, number).otherwise(lit(0.0));
        let none = |name: &str| lit(0.0).alias(name);
        let at_lo = vec![
            column("lo").alias("end"),
            of_these(single().is_not_true(), rows())?.alias("wide"),
            of_these(single(), rows())?.alias("single"),
            of_these(single(), column("people"))?.alias("people"),
            none("share"),
        ];
        let at_hi =
            vec![column("hi").alias("end"), rows().alias("wide"), none("single"), none("people"), none("share")];
        let wide = intervals.clone().filter(single().is_not_true())?.project(at_hi)?.build()?;
        let names = ["wide", "single", "people", "share"];
        let sums = intervals
            .project(at_lo)?
            .union(wide)?
            .aggregate(vec![column("end")], names.map(|name| sum(column(name)).alias(name)))?;
        let fields = ["end"].into_iter().chain(names).flat_map(|name| [lit(name), column(name)]).collect();
        let ends = array_agg(named_struct(fields)).alias("ends");
        Ok(subquery(sums.aggregate(Vec::<Expr>::new(), vec![ends])?.build()?))
    }

    /// Returns the same, with shares that fit what is said elsewhere.
    fn raked(&self, of: &OriginalColumn, lo: &Expr, hi: &Expr, people: &Expr) -> Result<Expr> {
        let column = |name: &str| Expr::Column(Column::from_name(name));
        let list = |plan: LogicalPlanBuilder, names: &[&str]| {
            let fields = names.iter().flat_map(|name| [lit(*name), column(name)]).collect();
            plan.aggregate(Vec::<Expr>::new(), vec![array_agg(named_struct(fields)).alias("list")])
        };
        let keys = vec![lo.clone().alias("lo"), hi.clone().alias("hi"), people.clone().alias("people")];
        let counts = vec![count(lit(1)).alias("rows"), sum(self.is_real()?).alias("mass")];
        let intervals =
            LogicalPlanBuilder::from(self.release.clone()).filter(lo.clone().is_not_null())?.aggregate(keys, counts)?;
        let intervals = list(intervals, &["lo", "hi", "people", "rows", "mass"])?;
        let margins = match self.given(of, |value| vec![value.alias("value"), column("share")])? {
            Some(given) => subquery(list(LogicalPlanBuilder::from(given), &["value", "share"])?.build()?),
            None => lit(ScalarValue::Null),
        };
        let values = self.values(of, lo, hi)?;
        let nodes = matches!(of.form, Form::Interval { nodes: true, .. });
        let hierarchies = if nodes { self.hierarchies()? } else { lit(ScalarValue::Null) };
        let raked = Raked::function(Self::axis(of)).call(vec![column("list"), margins, values, hierarchies]);
        Ok(subquery(intervals.project(vec![raked.alias("ends")])?.build()?))
    }

    /// Returns the values of a column with given shares, and other wanted columns.
    fn given(&self, of: &OriginalColumn, columns: impl FnOnce(Expr) -> Vec<Expr>) -> Result<Option<LogicalPlan>> {
        let Some(prior) = &self.prior else { return Ok(None) };
        let column = |name: &str| Expr::Column(Column::from_name(name));
        let of_column = column("attribute")
            .eq(lit(ScalarValue::Utf8View(Some(of.name().to_owned()))))
            .and(column("value").is_not_null());
        let value = cast(column("value"), of.field.data_type().clone());
        let given = LogicalPlanBuilder::from(prior.clone()).filter(of_column)?.project(columns(value))?;
        given.build().map(Some)
    }

    /// Returns the values of a column that the interval does not tell: a list of categories, else the least.
    fn values(&self, column: &OriginalColumn, lo: &Expr, hi: &Expr) -> Result<Expr> {
        let none = lit(ScalarValue::Null);
        let unlisted = |data_type: &DataType| column.order().is_none() && *data_type != DataType::Boolean;
        let plan = match column.scale() {
            Scale::Listed if unlisted(column.field.data_type()) => {
                let ends = make_array(vec![lo.clone(), hi.clone()]).alias("ends");
                let mut ends =
                    LogicalPlanBuilder::from(self.release.clone()).project(vec![ends])?.unnest_column("ends")?;
                if let Some(given) = self.given(column, |value| vec![value.alias("ends")])? {
                    ends = ends.union(given)?;
                }
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

    /// Returns all rows of the hierarchies as one list.
    fn hierarchies(&self) -> Result<Expr> {
        let Some(plan) = &self.hierarchies else {
            return Err(refusal!(
                ESTIMATE,
                "the release was made with hierarchies, and an estimate needs them to know what lies below a node; \
                 pass the same ones: estimated(release, hierarchies => ..)"
            ));
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
