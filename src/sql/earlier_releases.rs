//! Several earlier releases as one relation: `previous => ('q1_private.parquet', 'q2_private.parquet')`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::followed::Followed;
use super::input::{Input, InputColumn, with_column};
use crate::error::refusal;
use crate::methods::state::RELEASE;
use crate::methods::{Numbers, StateKind};
use crate::microdata::Roles;

/// Returns the entries of all earlier releases, which are numbered in their order. Columns of the microdata get types that hold those of all of them.
/// Fails when one has not the columns that it needs, or some say numbers and others do not.
pub(super) fn ledgers(
    earlier: Vec<Input>,
    columns: &mut [InputColumn],
    roles: &Roles,
    kind: StateKind,
) -> Result<LogicalPlan> {
    let earlier = numbered(earlier, kind)?;
    if earlier.len() > 1 {
        for one in &earlier {
            one.clone().ledger(columns, roles, kind)?;
        }
    }
    let mut all: Option<LogicalPlan> = None;
    for one in earlier {
        let entries = one.ledger(columns, roles, kind)?;
        all = Some(match all {
            Some(before) => LogicalPlanBuilder::from(before).union(entries)?.build()?,
            None => entries,
        });
    }
    all.map_or_else(|| LogicalPlanBuilder::empty(false).build(), Ok)
}

/// Checks that releases have greater numbers than those they were made with, where these count. `followed` tells which they are of.
/// Fails when one has not.
pub(super) fn check_order(
    earlier: &[Input],
    kind: StateKind,
    followed: impl Fn(&LogicalPlan) -> Result<Followed>,
) -> Result<()> {
    let Some(one) = earlier.first().filter(|_| kind.facts().numbers != Numbers::Ignored) else { return Ok(()) };
    let mut parts = Vec::new();
    for part in earlier {
        if let Some(place) = part.plan.schema().fields().iter().position(|field| field.name() == RELEASE) {
            collect_numbered(&part.plan, place, &mut parts)?;
        }
    }
    let numbers = parts.iter().map(|(number, part)| Ok((*number, followed(part)?))).collect::<Result<Vec<_>>>()?;
    if let Some((number, other)) = reversed(&numbers) {
        return Err(refusal!(
            one.function,
            argument one.argument,
            "{RELEASE} is {number} in a release that was made with one in which it is {other}; number the releases in the order in which they were \
             made: previous => (SELECT *, 1 AS {RELEASE} FROM first UNION ALL SELECT *, 2 FROM second)"
        ));
    }
    if earlier.iter().any(|one| one.has(RELEASE)) {
        return Ok(());
    }
    let places = earlier.iter().zip(1..).map(|(part, place)| Ok((place, followed(&part.plan)?)));
    let mut places = places.collect::<Result<Vec<(i64, Followed)>>>()?;
    let Some((place, other)) = reversed(&places) else { return Ok(()) };
    places.sort_by_key(|(_, part)| part.depth());
    let order: Vec<String> = places.iter().map(|(place, _)| place.to_string()).collect();
    let cure = match reversed(&places.into_iter().zip(1..).map(|((_, part), place)| (place, part)).collect::<Vec<_>>())
    {
        None => format!("pass the same ones in the order {}: previous => (first, second)", order.join(", ")),
        Some(_) => {
            "pass every release by itself, in the order in which they were made: previous => (first, second)".to_owned()
        }
    };
    let wrong = match place == other {
        true => format!("relation {place} in previous has rows of several releases"),
        false => format!(
            "the relations in previous are numbered in the order in which they are given, but number {place} was made with number {other}, \
             which is the earlier one"
        ),
    };
    Err(refusal!(one.function, argument one.argument, "{wrong}; {cure}"))
}

/// Returns the numbers of a release and its predecessor, if they are out of order.
fn reversed(parts: &[(i64, Followed)]) -> Option<(i64, i64)> {
    let pairs = parts.iter().flat_map(|later| parts.iter().map(move |earlier| (later, earlier)));
    let mut wrong = pairs.filter(|((number, later), (other, earlier))| number <= other && later.follows(earlier));
    wrong.next().map(|((number, _), (other, _))| (*number, *other))
}

/// Collects the parts of a relation in which a column is one number, as written. Numbers are read from the query.
fn collect_numbered<'a>(plan: &'a LogicalPlan, place: usize, parts: &mut Vec<(i64, &'a LogicalPlan)>) -> Result<()> {
    match plan {
        LogicalPlan::Union(union) => union.inputs.iter().try_for_each(|input| collect_numbered(input, place, parts)),
        LogicalPlan::SubqueryAlias(alias) => collect_numbered(&alias.input, place, parts),
        LogicalPlan::Projection(projection) => match uncast(&projection.expr[place]) {
            Expr::Literal(value, _) => {
                if let Ok(ScalarValue::Int64(Some(number))) = value.cast_to(&DataType::Int64) {
                    parts.push((number, plan));
                }
                Ok(())
            }
            Expr::Column(column) => {
                collect_numbered(&projection.input, projection.input.schema().index_of_column(column)?, parts)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns an expression without the name and the type that it is given.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => uncast(&alias.expr),
        Expr::Cast(cast) => uncast(&cast.expr),
        expr => expr,
    }
}

/// Adds a column of places to relations, if there are several and numbers count. None of them has one.
fn numbered(earlier: Vec<Input>, kind: StateKind) -> Result<Vec<Input>> {
    let say = earlier.iter().filter(|one| one.has(RELEASE)).count();
    if earlier.len() < 2 || say == earlier.len() || kind.facts().numbers == Numbers::Ignored {
        return Ok(earlier);
    }
    if let Some(first) = earlier.first().filter(|_| say > 0) {
        return Err(refusal!(
            first.function,
            argument first.argument,
            "some of the relations in previous have a column {RELEASE}, and others do not. Leave it out of all, and they are numbered in the order in \
             which they are given: previous => ((SELECT * EXCEPT ({RELEASE}) FROM first), second)"
        ));
    }
    let number = |(place, one): (usize, Input)| {
        let plan = with_column(one.plan, lit(place as i64 + 1).alias(RELEASE))?;
        Ok(Input { plan, ..one })
    };
    earlier.into_iter().enumerate().map(number).collect()
}
