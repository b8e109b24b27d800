//! Translation of an aggregate over the original table into one over the release's rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue, internal_err};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions::math::expr_fn::{round, sqrt};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

use super::chain::Chain;
use super::deviations::{AVG_STDDEV, COUNT_INTERVAL, COUNT_STDDEV, ERRORS, SUM_STDDEV};
use super::interval::{Bounds, confidence, interval};
use super::named_values::NamedTexts;
use crate::error::refusal;
use crate::estimate::{
    Axis, ESTIMATE, Form, Known, OriginalColumn, Polynomial, Scale, ShareOf, Term, Translator, ValuesOf, WeightOf,
};
use crate::release::GROUP_SIZE;
use crate::sql::input::with_column;

/// Query for an aggregate over the topmost node of a chain.
pub(super) struct AggregateQuery<'a> {
    pub chain: Chain,
    pub groups: &'a [Expr],
    pub aggregates: &'a [Expr],
    /// Schema of the answer: groups, then aggregates.
    pub schema: &'a DFSchemaRef,
}

/// Prefix of the columns that only the rewritten plan has.
const OWN: &str = "__estimate_";

impl AggregateQuery<'_> {
    /// Returns the plan of the answer, over the release.
    /// Fails when the release does not tell the answer: with the reason, and what could be asked instead.
    pub(super) fn answer(self) -> Result<LogicalPlan> {
        let Self { chain, groups, aggregates, schema } = self;
        if let [Expr::GroupingSet(_)] = groups {
            return Err(refusal!(
                ESTIMATE,
                "GROUPING SETS, ROLLUP and CUBE are not supported; ask for each grouping, and combine them with UNION ALL"
            ));
        }
        let groups = groups.iter().map(|group| chain.resolve(group.clone().unalias())).collect::<Result<Vec<_>>>()?;
        let none = BTreeSet::new();
        let released = &chain.source.released;
        let before = Translator { released, schema: &chain.schema, spread: &none };
        let mut spread = BTreeSet::new();
        for group in &groups {
            spread.extend(before.uncertain(group)?);
        }
        let translator = Translator { released, schema: &chain.schema, spread: &spread };
        let texts = NamedTexts::of(&chain, &groups, aggregates)?;
        let mut rows = ReleaseRows { chain: &chain, spread: &spread, named: texts, weight: chain.source.is_real()? };
        let mut plan = chain.source.release.clone();
        if let Some(intact) = &chain.source.intact {
            plan = LogicalPlanBuilder::from(plan).filter(intact.clone())?.build()?;
        }
        let (mut later, mut shared) = (Vec::new(), Polynomial::one());
        for condition in &chain.conditions {
            if before.is_exact(condition)? {
                plan = LogicalPlanBuilder::from(plan).filter(rows.exact(condition)?)?.build()?;
            } else if translator.is_exact(condition)? {
                later.push(condition);
            } else {
                shared = shared.times(&translator.truth(condition)?)?;
            }
        }
        plan = rows.spread(plan)?;
        for condition in later {
            plan = LogicalPlanBuilder::from(plan).filter(rows.exact(condition)?)?.build()?;
        }
        for group in groups.iter().filter(|group| !matches!(group, Expr::Column(_))) {
            refuse_errors_of(group, &before, aggregates)?;
        }
        let replaced = chain.conditions.iter().chain(&groups).any(|expr| translator.is_replaced(expr));
        let everybody = chain.conditions.is_empty() && groups.is_empty();
        let mut sums = Sums { rows: &rows, translator: &translator, replaced, everybody, exprs: Vec::new() };
        let aggregates = aggregates.iter().zip(schema.fields().iter().skip(groups.len()));
        let answers = aggregates.map(|(aggregate, field)| sums.answer(aggregate, &shared, field.data_type()));
        let answers = answers.collect::<Result<Vec<_>>>()?;
        // Rows that cannot be in the answer form no group, nor do values that nobody can have: of two people, one is at each end.
        let fitted =
            released.columns.iter().any(|column| spread.contains(column.name()) && chain.source.is_fitted(column));
        let possible = match groups.is_empty() || shared.is_one() && !fitted {
            true => None,
            false => Some(sums.sum(rows.expectation(&shared)?).gt(lit(0.0))),
        };
        let keys = groups.iter().enumerate().map(|(i, group)| Ok(rows.exact(group)?.alias(key(i))));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let (plan, sums) = below_sums(plan, sums.exprs)?;
        let sums = sums.into_iter().enumerate().map(|(i, expr)| expr.alias(sum_name(i)));
        let mut sums = sums.collect::<Vec<_>>();
        if keys.is_empty() && sums.is_empty() {
            // All answers are known to be NULL, but there is one row of them all the same.
            sums.push(count(lit(1)).alias(sum_name(0)));
        }
        let mut plan = LogicalPlanBuilder::from(plan).aggregate(keys, sums)?;
        if let Some(possible) = possible {
            plan = plan.filter(possible)?;
        }
        let groups = (0..groups.len()).map(|i| Expr::Column(Column::from_name(key(i))));
        let input = plan.schema().clone();
        plan.project(named(groups.chain(answers), schema, &input)?)?.build()
    }
}

/// Projects sums that ask for lists of values into columns of their own. In a cluster the lists are joined, which
/// DataFusion does below projections, and not below aggregates.
fn below_sums(plan: LogicalPlan, mut sums: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    let mut columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let there = columns.len();
    for (i, sum) in sums.iter_mut().enumerate() {
        let Expr::AggregateFunction(AggregateFunction { params, .. }) = sum else { continue };
        let Some(summed) = params.args.first_mut() else { continue };
        if summed.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))? {
            let name = format!("{OWN}of_{i}");
            columns.push(std::mem::replace(summed, Expr::Column(Column::from_name(&name))).alias(name));
        }
    }
    if columns.len() == there {
        return Ok((plan, sums));
    }
    Ok((LogicalPlanBuilder::from(plan).project(columns)?.build()?, sums))
}

fn key(i: usize) -> String {
    format!("{OWN}key_{i}")
}

fn sum_name(i: usize) -> String {
    format!("{OWN}sum_{i}")
}

fn own(what: &str, column: &str) -> String {
    format!("{OWN}{what}_{column}")
}

/// Returns the columns as the nodes above expect them.
fn named(exprs: impl Iterator<Item = Expr>, schema: &DFSchemaRef, input: &DFSchemaRef) -> Result<Vec<Expr>> {
    let exprs = exprs.zip(schema.iter()).map(|(expr, (qualifier, field))| {
        let same = expr.get_type(input.as_ref())? == *field.data_type();
        let expr = if same { expr } else { cast(expr, field.data_type().clone()) };
        Ok(expr.alias_qualified(qualifier.cloned(), field.name()))
    });
    exprs.collect()
}

/// The rows of the release, spread over the values of the grouping columns.
struct ReleaseRows<'a> {
    chain: &'a Chain,
    spread: &'a BTreeSet<String>,
    named: NamedTexts,
    /// Weight of each row, in people.
    weight: Expr,
}

impl ReleaseRows<'_> {
    /// Returns the values of a column, for the functions of an estimate.
    fn axis(&self, column: &OriginalColumn) -> Arc<Axis> {
        Arc::new(Axis::asked(column, self.named.of_column(column.name())))
    }

    fn column(&self, name: &str) -> Result<&OriginalColumn> {
        match self.chain.source.released.column(name) {
            Some(column) => Ok(column),
            None => internal_err!("an estimate about the column {name}, which is not in the release"),
        }
    }

    /// Spreads each row over the values of the grouping columns, each with its share.
    fn spread(&mut self, mut plan: LogicalPlan) -> Result<LogicalPlan> {
        let source = &self.chain.source;
        for name in self.spread {
            let column = self.column(name)?;
            let (values, share) = (own("values", name), own("share", name));
            let (known, mut arguments) = source.known(column)?;
            let mut fit = None;
            let list = match known {
                Known::Histogram => arguments.remove(0),
                Known::Interval => {
                    let nodes = matches!(column.form, Form::Interval { nodes: true, .. });
                    if column.scale() == Scale::Continuous && !nodes {
                        return Err(refusal!(
                            ESTIMATE,
                            "GROUP BY the generalized column {name} needs values that can be counted, and it has type \
                             {}; count by conditions instead, for example count(*) FILTER (WHERE {name} < ..)",
                            column.field.data_type()
                        ));
                    }
                    // The share of NULL is that of the list.
                    arguments.remove(3);
                    if source.is_fitted(column) {
                        fit = Some(arguments.clone());
                        arguments.truncate(4);
                    }
                    ValuesOf::function(self.axis(column)).call(arguments)
                }
            };
            let listed = with_column(plan, list.alias(&values))?;
            let length = cast(array_length(Expr::Column(Column::from_name(&values))), DataType::Float64);
            let listed = with_column(listed, (lit(1.0) / length).alias(&share))?;
            plan = LogicalPlanBuilder::from(listed).unnest_column(Column::from_name(&values))?.build()?;
            let of_row = match known {
                Known::Interval => {
                    let share = Expr::Column(Column::from_name(&share));
                    match fit {
                        Some(fit) => {
                            let arguments = [Expr::Column(Column::from_name(&values)), share].into_iter().chain(fit);
                            WeightOf::function(self.axis(column)).call(arguments.collect())
                        }
                        None => share,
                    }
                }
                Known::Histogram => {
                    let count = Expr::Column(Column::from_name(&values)).field("count");
                    cast(count, DataType::Float64) / cast(source.released_column(GROUP_SIZE)?, DataType::Float64)
                }
            };
            self.weight = self.weight.clone() * of_row;
        }
        Ok(plan)
    }

    /// Translates an expression over the rows. It needs no generalized column but those that were spread.
    fn exact(&self, expr: &Expr) -> Result<Expr> {
        let exact = expr.clone().transform_up(|expr| {
            let Expr::Column(Column { name, .. }) = &expr else { return Ok(Transformed::no(expr)) };
            let column = self.column(name)?;
            let found = match &column.form {
                Form::Exact => self.chain.source.released_column(name)?,
                Form::Interval { .. } => Expr::Column(Column::from_name(own("values", name))),
                Form::Histogram => Expr::Column(Column::from_name(own("values", name))).field("value"),
            };
            // What the table is declared as may be another kind of text than what is stored.
            let declared = self.chain.schema.field_with_unqualified_name(name)?.data_type();
            let same = declared == column.field.data_type();
            Ok(Transformed::yes(if same { found } else { cast(found, declared.clone()) }))
        })?;
        // The name stays, because nodes above refer to it.
        Ok(exact.data)
    }

    /// Returns the value of a sum of products for a row.
    fn expectation(&self, polynomial: &Polynomial) -> Result<Expr> {
        if polynomial.is_one() {
            return Ok(self.weight.clone());
        }
        let terms = polynomial.0.iter().map(|term| self.product(term)).collect::<Result<Vec<_>>>()?;
        Ok(match terms.into_iter().reduce(|a, b| a + b) {
            Some(sum) => self.weight.clone() * sum,
            None => lit(0.0),
        })
    }

    fn product(&self, term: &Term) -> Result<Expr> {
        let mut factors = Vec::new();
        for exact in &term.exact {
            factors.push(self.exact(exact)?);
        }
        for (name, factor) in &term.shares {
            let column = self.column(name)?;
            let (known, arguments) = self.chain.source.known(column)?;
            factors.push(ShareOf::function(self.axis(column), factor.clone(), known).call(arguments));
        }
        if term.coefficient != 1.0 || factors.is_empty() {
            factors.insert(0, lit(term.coefficient));
        }
        Ok(factors.into_iter().reduce(|a, b| a * b).unwrap_or_else(|| lit(1.0)))
    }
}

/// The sums over the rows that answers are made of.
struct Sums<'a> {
    rows: &'a ReleaseRows<'a>,
    translator: &'a Translator<'a>,
    /// True if the rows were chosen by values that a method has replaced at random.
    replaced: bool,
    /// True if the rows were chosen by nothing.
    everybody: bool,
    exprs: Vec<Expr>,
}

impl Sums<'_> {
    /// Returns the column of a sum; the same sum is computed once.
    fn sum(&mut self, expr: Expr) -> Expr {
        let place = self.exprs.iter().position(|known| same_sum(known, &expr)).unwrap_or_else(|| {
            let params = AggregateFunctionParams {
                args: vec![expr],
                distinct: false,
                filter: None,
                order_by: Vec::new(),
                null_treatment: None,
            };
            self.exprs.push(Expr::AggregateFunction(AggregateFunction { func: sum_udaf(), params }));
            self.exprs.len() - 1
        });
        Expr::Column(Column::from_name(sum_name(place)))
    }

    fn total(&mut self, polynomial: &Polynomial) -> Result<Expr> {
        let expectation = self.rows.expectation(polynomial)?;
        Ok(self.sum(expectation))
    }

    /// Returns the answer to one aggregate among the rows that `shared` holds for.
    fn answer(&mut self, aggregate: &Expr, shared: &Polynomial, data_type: &DataType) -> Result<Expr> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = aggregate.clone().unalias() else {
            return internal_err!("an aggregate that is no aggregate function");
        };
        let name = func.name();
        let known = ["count", "sum", "avg", COUNT_STDDEV, SUM_STDDEV, AVG_STDDEV, COUNT_INTERVAL];
        if !known.contains(&name) {
            return Err(refusal!(
                ESTIMATE,
                "{name} cannot be estimated from a release, only {}: rows stand for intervals and some for nobody, and \
                 single values of people are not known",
                known.map(str::to_uppercase).join(", ")
            ));
        }
        if params.distinct {
            return Err(refusal!(
                ESTIMATE,
                "{}(DISTINCT ..) cannot be estimated, for a release does not tell which values are the same person's; \
                 SELECT DISTINCT and GROUP BY work",
                name.to_uppercase()
            ));
        }
        let mut rows = shared.clone();
        let mut replaced = self.replaced;
        if let Some(filter) = &params.filter {
            let filter = self.rows.chain.resolve(filter.as_ref().clone())?;
            replaced |= self.translator.is_replaced(&filter);
            rows = rows.times(&self.translator.truth(&filter)?)?;
        }
        let mut values = Vec::new();
        for argument in &params.args {
            let argument = self.rows.chain.resolve(argument.clone())?;
            replaced |= self.translator.is_replaced(&argument);
            rows = rows.times(&self.translator.known(&argument)?)?;
            values.push(argument);
        }
        if replaced && ERRORS.contains(&name) {
            // How often values were replaced is not in the release.
            return Ok(lit(ScalarValue::try_from(data_type)?));
        }
        match (name, values.as_slice()) {
            ("count", _) => {
                let count = self.total(&rows)?;
                Ok(round(vec![coalesce(vec![count, lit(0.0)])]))
            }
            (COUNT_STDDEV, _) => {
                let variance = self.variance(&rows, &rows)?;
                Ok(sqrt(coalesce(vec![variance, lit(0.0)])))
            }
            (COUNT_INTERVAL, [_, probability]) => {
                let probability = confidence(probability)?;
                let bounds = self.bounds(&rows)?;
                interval(bounds, probability, self.everybody && rows.is_one())
            }
            (_, [value]) => {
                let value = rows.times(&self.translator.value(value)?)?;
                let (count, sum) = (self.total(&rows)?, self.total(&value)?);
                let answer = match name {
                    "sum" if data_type.is_integer() => round(vec![sum]),
                    "sum" => sum,
                    "avg" => sum / count.clone(),
                    SUM_STDDEV => sqrt(self.variance(&value, &self.square(&value)?)?),
                    _ => self.error_of_mean(&rows, &value, sum / count.clone())? / count.clone(),
                };
                when(count.gt(lit(0.0)), answer).otherwise(lit(ScalarValue::Float64(None)))
            }
            _ => internal_err!("{name} with {} arguments", values.len()),
        }
    }

    /// Returns a value times itself; 0 and 1 stay what they are, so only the value is squared.
    fn square(&self, value: &Polynomial) -> Result<Polynomial> {
        value.times(value)
    }

    /// Returns the least and the greatest value of a count.
    fn bounds(&mut self, rows: &Polynomial) -> Result<Bounds> {
        let (share, real) = (self.rows.expectation(rows)?, self.rows.chain.source.is_real()?);
        let possible = share.clone().gt(lit(0.0));
        // Not less than a person, but for rounding.
        let certain = share.clone().gt_eq(real.clone() * lit(1.0 - 1e-9)).and(possible.clone());
        let of = |condition: Expr, value: Expr| when(condition, value).otherwise(lit(0.0));
        let counterfeit = real.clone() * (lit(1.0) - real.clone());
        Ok(Bounds {
            estimate: self.sum(share.clone()),
            certain: self.sum(of(certain, real.clone())?),
            possible: self.sum(of(possible.clone(), real)?),
            variance: self.sum(share.clone() * (lit(1.0) - share)),
            of_counterfeits: self.sum(of(possible, counterfeit)?),
            by_group: self.rows.chain.source.released.columns.iter().any(|column| column.form == Form::Histogram),
        })
    }

    /// Returns the variance of a sum: each row counts independently of the others.
    fn variance(&mut self, value: &Polynomial, square: &Polynomial) -> Result<Expr> {
        let (mean, mean_of_square) = (self.rows.expectation(value)?, self.rows.expectation(square)?);
        let variance = self.sum(mean_of_square.clone() - mean.clone() * mean);
        let squares = self.sum(mean_of_square);
        significant(variance, squares)
    }

    /// Returns the standard error of a mean, times the count. To first order this is the error of the sum of the differences from the mean.
    fn error_of_mean(&mut self, rows: &Polynomial, value: &Polynomial, mean: Expr) -> Result<Expr> {
        let square = self.square(value)?;
        let [one, sum, squares] = [rows, value, &square].map(|polynomial| self.rows.expectation(polynomial));
        let (one, sum, squares) = (one?, sum?, squares?);
        let of_sum = self.sum(squares - sum.clone() * sum.clone());
        let of_both = self.sum(sum.clone() - sum * one.clone());
        let of_count = self.sum(one.clone() - one.clone() * one);
        let variance = of_sum - lit(2.0) * mean.clone() * of_both + mean.clone() * mean * of_count;
        let squares = self.total(&square)?;
        Ok(sqrt(significant(variance, squares)?))
    }
}

/// Returns a variance, or NULL if rounding loses it. It is a difference of squares.
fn significant(variance: Expr, squares: Expr) -> Result<Expr> {
    const DIGITS: f64 = 1e-11;
    when(variance.clone().gt(squares.clone() * lit(DIGITS)), variance.clone())
        .when(variance.eq(lit(0.0)).or(squares.eq(lit(0.0))), lit(0.0))
        .otherwise(lit(ScalarValue::Float64(None)))
}

/// Refuses errors of values of one row in one group: they are not independent.
fn refuse_errors_of(group: &Expr, translator: &Translator<'_>, aggregates: &[Expr]) -> Result<()> {
    let is_error = |aggregate: &Expr| match aggregate.clone().unalias() {
        Expr::AggregateFunction(function) => ERRORS.contains(&function.func.name()),
        _ => false,
    };
    if aggregates.iter().any(is_error) && !translator.is_exact(group)? {
        return Err(refusal!(
            ESTIMATE,
            "standard errors cannot be told for groups of an expression over a generalized column; group by the column \
             itself, or ask group by group, for example count_stddev(*) FILTER (WHERE age / 10 = 3)"
        ));
    }
    Ok(())
}

fn same_sum(known: &Expr, expr: &Expr) -> bool {
    matches!(known, Expr::AggregateFunction(function) if function.params.args.first() == Some(expr))
}

/// Returns an aggregate without aggregate functions: groups of equal rows.
pub(super) fn distinct(chain: Chain, schema: &DFSchema) -> Result<LogicalPlan> {
    let groups = chain.columns().to_vec();
    // In terms of the table itself.
    let chain = chain.at_table();
    AggregateQuery { chain, groups: &groups, aggregates: &[], schema: &DFSchemaRef::new(schema.clone()) }.answer()
}
