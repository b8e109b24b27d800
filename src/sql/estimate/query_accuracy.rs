//! `query_accuracy(original, release, ..)`.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};

use super::Source;
use super::estimated::source_of;
use crate::error::refusal;
use crate::estimate::{Aggregate, BY_PERSON, Form, Workload};
use crate::exec::{QueryAccuracy, Seed};
use crate::microdata::Role;
use crate::release::{COUNTERFEITS, GROUP_ID, GROUP_SIZE, HI, LO, NULLS};
use crate::sql::arguments::Arguments;
use crate::sql::choice::{Choice, DISTRIBUTION};
use crate::sql::computed::Computed;
use crate::sql::hierarchy_checks::MadeWith;
use crate::sql::input::{Input, InputColumn, common_type};
use crate::sql::numbers::Number;
use crate::sql::options::AnonymizeOptions;
use crate::sql::signature::{FunctionSignature, Kind, Parameter};

/// Number of queries.
const QUERIES: Parameter =
    Parameter::optional("queries", Kind::Integer, "10000").at_least(1).or(10_000).at_most(100_000_000).says("how many");
/// The share of the table that a query would select if values were uniform.
static SELECTIVITY: Number = Number::optional("selectivity", 0.0, "0.1").or(0.1).at_most(1.0);
/// Number of quasi-identifiers that have a range.
const PREDICATES: Parameter = Parameter::optional("predicates", Kind::Integer, "4")
    .at_least(1)
    .otherwise("all")
    .says("how many quasi-identifiers have a range");
/// Aggregate that queries ask for.
static AGGREGATE: Choice<Aggregate, 3> = Choice::new(
    "aggregate",
    [("count", Aggregate::Count), ("sum", Aggregate::Sum), ("avg", Aggregate::Avg)],
    "'count'",
);

/// Declares the function.
pub(in crate::sql) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "query_accuracy",
    about: "random queries of a table and its release, and how far estimates are off",
    refused: &[],
    parameters: &[
        Parameter::required("original", Kind::Relation, "patients").says("the table"),
        Parameter::required("release", Kind::Release, "'release.parquet'").says("a release of it"),
        QUERIES,
        SELECTIVITY.parameter().says("share of the table that a query would select if values were uniform"),
        AGGREGATE.parameter().says("what is asked; sum and avg of the sensitive attribute"),
        PREDICATES,
        Parameter::HIERARCHIES,
        DISTRIBUTION
            .parameter()
            .says("how values lie in ranges: as the ends of all ranges do, and somebody at each end, or evenly"),
        Parameter::PRIOR,
        Parameter::SEED,
    ],
};

/// Makes the table of a call.
pub(in crate::sql) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let workload = workload(&arguments)?;
    let seed = arguments.seed("seed").map_or_else(Seed::from_entropy, Ok)?;
    let original = Input { function, argument: "original", plan: arguments.relation("original")? };
    let (source, by_person) = source_of(function, &mut arguments)?;
    if by_person {
        return Err(refusal!(
            function,
            argument "release",
            "argument release has rows that were chosen by person; {BY_PERSON}"
        ));
    }
    let Source { mut release, released, hierarchies, prior, distribution, intact, .. } = source;
    if let Some(intact) = intact {
        release = LogicalPlanBuilder::from(release).filter(intact)?.build()?;
    }
    let release = Input { function, argument: "release", plan: release };
    let is = |role: Role| {
        move |field: &datafusion::arrow::datatypes::FieldRef| {
            field.metadata().get(Role::KEY).and_then(|text| Role::parse(text)) == Some(role)
        }
    };
    let of_role = |role: Role| released.columns.iter().filter(move |column| is(role)(&column.field)).cloned();
    let mut columns: Vec<_> = of_role(Role::Quasi).collect();
    if workload.predicates.is_some_and(|wanted| wanted > columns.len()) {
        return Err(refusal!(
            function,
            argument "predicates",
            "argument predicates must be at most {}, for so many quasi-identifiers are in the release",
            columns.len()
        ));
    }
    columns.extend(of_role(Role::Sensitive));
    let sensitive = of_role(Role::Sensitive).next();
    if workload.aggregate != Aggregate::Count && of_role(Role::Sensitive).count() > 1 {
        return Err(refusal!(
            function,
            "sums and means are of the sensitive attribute, but the release has several columns of it; use aggregate => \
             'count', or select one of them in a query in parentheses"
        ));
    }
    if workload.aggregate != Aggregate::Count
        && !sensitive.as_ref().is_some_and(|column| column.field.data_type().is_numeric())
    {
        return Err(refusal!(
            function,
            "sums and means are of the sensitive attribute, but the release has none that is a number; use \
             aggregate => 'count'"
        ));
    }
    let nodes = columns.iter().any(|column| matches!(column.form, Form::Interval { nodes: true, .. }));
    if nodes && hierarchies.is_none() {
        return Err(refusal!(function, "the release was made with hierarchies; pass the same ones: hierarchies => .."));
    }
    let made_with = match &hierarchies {
        Some(plan) => {
            let names: Vec<String> = of_role(Role::Quasi).map(|column| column.name().to_owned()).collect();
            MadeWith::of(function, plan, [&release.plan], &names, arguments.session()?)
        }
        None => None,
    };
    let (mut originals, mut exprs) = (Vec::new(), Vec::new());
    for column in &mut columns {
        let mut found = original.column(column.name())?;
        found.publish(function)?;
        let there = release.column(column.name())?;
        if column.form == Form::Histogram && found.field.data_type().is_string() {
            // Lists have one kind of texts only.
            found.field = Arc::clone(&column.field);
        }
        let known = InputColumn { column: there.column.clone(), field: Arc::clone(&column.field) };
        let data_type = common_type(function, &mut found, &known, "release")?;
        originals.push(found);
        let value = Expr::Column(there.column);
        let same = data_type == *column.field.data_type();
        let typed = |expr: Expr| if same { expr } else { cast(expr, data_type.clone()) };
        match &column.form {
            Form::Exact => exprs.push(typed(value)),
            Form::Histogram if same => exprs.push(value),
            Form::Histogram => {
                return Err(refusal!(
                    function,
                    "column {} is {data_type} in the original, and another type in the release; cast it in a \
                     query in parentheses",
                    column.name()
                ));
            }
            Form::Interval { nulls, .. } => {
                exprs.extend([LO, HI].map(|end| typed(value.clone().field(end))));
                exprs.extend(nulls.then(|| value.field(NULLS)));
            }
        }
        let field = column.field.as_ref().clone().with_data_type(data_type);
        column.field = Arc::new(field);
    }
    let numbers = release.has(GROUP_ID);
    let counts = released.groups && !released.listed;
    let own = [(numbers, GROUP_ID), (counts, GROUP_SIZE), (counts, COUNTERFEITS)];
    for (_, name) in own.into_iter().filter(|(there, _)| *there) {
        exprs.push(Expr::Column(release.column(name)?.column));
    }
    let exprs = exprs.into_iter().enumerate().map(|(i, expr)| expr.alias(format!("column_{i}")));
    let rows = LogicalPlanBuilder::from(release.plan).project(exprs.collect::<Vec<_>>())?.build()?;
    let given = (hierarchies.is_some(), prior.is_some());
    let inputs = [original.project(originals)?, rows].into_iter().chain(hierarchies).chain(prior).collect();
    let (hierarchies, prior) = given;
    let (sensitive, alone) = (sensitive.is_some(), released.alone);
    let computation =
        QueryAccuracy { workload, columns, sensitive, numbers, counts, alone, hierarchies, prior, distribution, seed };
    Ok(Computed::new(Arc::new(computation), inputs).made_with(made_with).table())
}

fn workload(arguments: &Arguments) -> Result<Workload> {
    let (queries, selectivity) = (arguments.integer_or_default(&QUERIES)?, SELECTIVITY.of(arguments)?);
    Ok(Workload {
        queries,
        selectivity,
        aggregate: AGGREGATE.of(arguments),
        predicates: arguments.integer(&PREDICATES)?,
    })
}
