//! `reposition(input, l, time, window, ..)`: eligible snapshots from a skewed stream.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, try_cast};

use super::arguments::{Arguments, Length};
use super::choice::Choice;
use super::computed::project;
use super::input::{Input, InputColumn, common_type};
use super::input_plans::{planned, planned_if_given};
use super::opaque::{OpaqueTable, Relation, Wanted};
use super::options::AnonymizeOptions;
use super::query_start::QueryStart;
use super::roles;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::exec::{
    ORIGINAL_TIME, PlanFuture, REPOSITION, RepositionExec, RepositionJob, STATUS, Seed, repositioned_schema,
};
use crate::methods::reposition::{Clock, Cost, Late, MoveCost, Reposition};
use crate::microdata::{RowHashes, published_type};
use crate::release::View;

/// Different sensitive values of a snapshot.
const L: Parameter = Parameter::required("l", Kind::Integer, "4")
    .at_least(2)
    .says("no sensitive value makes up more than 1/l of a snapshot");
const TIME: Parameter =
    Parameter::required("time", Kind::Column, "day").says("a date, a timestamp or a number: what snapshots are cut by");
const WINDOW: Parameter =
    Parameter::required("window", Kind::Integer, "7").at_least(1).says("snapshots that are held back");
const EVERY: Parameter = Parameter::optional("every", Kind::Length, "INTERVAL '1 day'")
    .otherwise("1 day, or 1")
    .says("length of a snapshot");
/// Growth of the cost of a move with its length.
static MOVE_COST: Choice<MoveCost, 2> =
    Choice::new("move_cost", [("linear", MoveCost::Linear), ("quadratic", MoveCost::Quadratic)], "'quadratic'");
const MOVE_FACTOR: Parameter =
    Parameter::optional("move_factor", Kind::Number, "1.0").otherwise("1").says("times this");
pub(super) static LATE: Choice<Late, 2> =
    Choice::new("late", [("refuse", Late::Refuse), ("suppress", Late::Suppress)], "'suppress'");
const MOVE: Parameter = MOVE_COST.parameter().says("what publishing snapshots late costs");
const COST: Parameter = Parameter::optional("suppress_cost", Kind::NumberOrRelation, "10")
    .otherwise("as moving it by window")
    .says("what not publishing a record costs: a number, or value and cost");
const LATE_ROWS: Parameter = LATE.parameter().says("what becomes of rows of a closed snapshot");
const FINISH: Parameter = Parameter::flag("finish").says("true publishes the last window, too");

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: REPOSITION,
    about: "a stream of small skewed snapshots made eligible, by publishing some records late",
    refused: &[(
        Parameter::CELLS.name,
        "a record is published late because of all others that arrive with it, so no part of a stream can be looked at alone",
    )],
    parameters: &[
        Parameter::INPUT,
        L,
        TIME,
        WINDOW,
        Parameter::SENSITIVE,
        EVERY,
        MOVE,
        MOVE_FACTOR,
        COST,
        LATE_ROWS,
        FINISH,
        Parameter::SEED,
        Parameter::PRIVATE.says("true adds the original time and the status"),
    ],
};

/// Option of a publication: the method that makes groups.
#[cfg(feature = "publication")]
pub(super) const INNER: &str = "inner";

/// Signature of the arguments that a publication takes. It knows the window, and draws its own randomness.
#[cfg(feature = "publication")]
pub(super) static PUBLISHED: FunctionSignature = FunctionSignature {
    name: REPOSITION,
    about: "a stream of small skewed snapshots made eligible, by publishing some records late",
    refused: &[],
    parameters: &[
        L,
        TIME,
        WINDOW,
        EVERY,
        MOVE,
        MOVE_FACTOR,
        Parameter { kind: Kind::Number, ..COST }.says("what not publishing a record costs"),
        LATE_ROWS,
        FINISH,
        Parameter::required(INNER, Kind::Word(&["anatomy", "mondrian", "m_invariant"]), "'anatomy'")
            .says("the method that makes groups of a snapshot"),
    ],
};

pub(super) fn table(mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let params = parameters(&arguments)?;
    let costs = arguments.relation_if_given("suppress_cost");
    let view = if arguments.boolean("private") { View::Private } else { View::Public };
    let input = Input { function, argument: "the input", plan: arguments.relation("input")? };
    let sensitive = roles::sensitive(&arguments, options, input.plan.schema())?;
    let time = arguments.columns("time").unwrap_or_default().concat();
    check_columns(&input, &time, &sensitive, view)?;

    let clock = clock(&arguments, &time, input.column(&time)?.field.data_type())?;
    let costs = match costs {
        Some(plan) => {
            let mut column = input.column(&sensitive)?;
            column.publish(function)?;
            Some(suppress_costs(Input { function, argument: "suppress_cost", plan }, column)?)
        }
        None => None,
    };
    let names: Vec<String> = input.plan.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = names.iter().map(|name| input.column(name)).collect::<Result<Vec<_>>>()?;
    let plan = input.project(columns)?;
    let late = LATE.of(&arguments);
    let schema = repositioned_schema(plan.schema().as_arrow(), &time, view);
    let given = arguments.seed("seed");
    let fixed = given.is_some();
    let secret = given.map_or_else(Seed::from_entropy, Ok)?;
    let finish = arguments.boolean("finish");
    let job = RepositionJob { params, time, clock, sensitive, late, finish, view, seed: secret };
    Ok(Arc::new(OpaqueTable(RepositionedTable { input: plan, costs, job, fixed, schema })))
}

pub(super) fn parameters(arguments: &Arguments) -> Result<Reposition> {
    let function = SIGNATURE.name;
    let named = |error: crate::error::Error| error.in_function(function);
    let mut params = Reposition::try_new(arguments.integer_or_default(&L)?, arguments.integer_or_default(&WINDOW)?)
        .map_err(named)?;
    params.move_cost = MOVE_COST.of(arguments);
    let cost = |name: &str| arguments.number(name).map(|number| Cost::try_new(name, number)).transpose();
    if let Some(factor) = cost("move_factor").map_err(named)? {
        params.move_factor = factor;
    }
    params.suppress_cost = cost("suppress_cost").map_err(named)?;
    Ok(params)
}

fn check_columns(input: &Input, time: &str, sensitive: &str, view: View) -> Result<()> {
    let function = SIGNATURE.name;
    let column = input.column(sensitive)?;
    if time == sensitive {
        return Err(refusal!(function, "column {time} has two roles; time and sensitive need columns of their own"));
    }
    if published_type(column.field.data_type()).is_none() {
        return Err(refusal!(
            function,
            "column {sensitive} has type {}, whose values cannot be compared; cast it in a query in parentheses",
            column.field.data_type()
        ));
    }
    for field in input.plan.schema().fields() {
        input.column(field.name())?;
        if view == View::Private && [ORIGINAL_TIME, STATUS].contains(&field.name().as_str()) {
            return Err(refusal!(
                function,
                "the private view has a column {} of its own; rename yours in a query in parentheses",
                field.name()
            ));
        }
        if !RowHashes::supports(field.data_type()) {
            return Err(refusal!(
                function,
                "column {} has type {}, which is not supported here; leave it out, or select its parts, in a query in \
                 parentheses",
                field.name(),
                field.data_type()
            ));
        }
    }
    Ok(())
}

/// Returns the clock that cuts the times of a column.
pub(super) fn clock(arguments: &Arguments, name: &str, data_type: &DataType) -> Result<Clock> {
    let function = SIGNATURE.name;
    let every = arguments.length("every");
    let write = |example: &str| arguments.style().write("every", example);
    let day = match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => None,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => None,
        DataType::Date32 => Some(1),
        DataType::Timestamp(unit, _) => Some(86_400 * per_second(*unit)),
        other => {
            return Err(refusal!(
                function,
                "column {name} has type {other}, but the time must be a date, a timestamp or a whole number; cast it in \
                 a query in parentheses"
            ));
        }
    };
    match (every, day) {
        (None, None | Some(1)) => Ok(Clock::Units(1)),
        (None, Some(_)) => Err(refusal!(
            function,
            "column {name} is a timestamp; say how long a snapshot is, for example {}",
            write("INTERVAL '1 day'")
        )),
        (Some(Length::Number(number)), None) if number > 0 => Ok(Clock::Units(number)),
        (Some(Length::Interval(interval)), Some(day)) => cut(interval, day).ok_or_else(|| {
            refusal!(
                function,
                argument "every",
                "argument every must be an interval of whole {}, or of whole months, for example {}",
                if day == 1 { "days" } else { "units of the timestamp" },
                write("INTERVAL '1 day'")
            )
        }),
        (Some(_), None) => Err(refusal!(
            function,
            "column {name} is a number, so argument every must be a whole number of at least 1, for example {}",
            write("7")
        )),
        (Some(_), Some(_)) => Err(refusal!(
            function,
            "column {name} is a time, so argument every must be an interval, for example {}",
            write("INTERVAL '1 day'")
        )),
    }
}

/// Returns the snapshots of this length, of times with so many units a day.
fn cut(interval: IntervalMonthDayNano, day: i64) -> Option<Clock> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    if months > 0 && days == 0 && nanoseconds == 0 {
        return Some(Clock::Months { months: i64::from(months), day });
    }
    const NANOSECONDS: i128 = 86_400_000_000_000;
    let units = (i128::from(days) * NANOSECONDS + i128::from(nanoseconds)) * i128::from(day);
    let whole = months == 0 && units > 0 && units % NANOSECONDS == 0;
    whole.then(|| i64::try_from(units / NANOSECONDS).ok()).flatten().map(Clock::Units)
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Returns the values of the sensitive column and what suppressing them costs. Values that are not of the column's type are none of its values.
fn suppress_costs(relation: Input, mut sensitive: InputColumn) -> Result<LogicalPlan> {
    let function = relation.function;
    let (Ok(value), Ok(cost)) = (relation.column("value"), relation.column("cost")) else {
        return Err(refusal!(
            function,
            "suppress_cost must be a number, or have the columns value and cost: what suppressing a row of each value of {} \
             costs; it has {}",
            sensitive.column.name,
            relation.names().join(", ")
        ));
    };
    if !cost.field.data_type().is_numeric() {
        return Err(refusal!(
            function,
            "column cost of suppress_cost must be a number; it is {}",
            cost.field.data_type()
        ));
    }
    let data_type = sensitive.field.data_type().clone();
    common_type(function, &mut sensitive, &value, relation.argument)?;
    let given = Expr::Column(value.column);
    let typed = try_cast(given.clone(), data_type);
    LogicalPlanBuilder::from(relation.plan)
        .filter(given.is_null().or(typed.clone().is_not_null()))?
        .project([typed.alias("value"), cast(Expr::Column(cost.column), DataType::Float64).alias("cost")])?
        .build()
}

/// Repositioned anew by every query.
struct RepositionedTable {
    input: LogicalPlan,
    costs: Option<LogicalPlan>,
    /// With the secret in place of an execution's seed.
    job: RepositionJob,
    /// An explicit seed makes every execution the same.
    fixed: bool,
    schema: SchemaRef,
}

impl RepositionedTable {
    /// Returns the seed of a query: all uses of the table in it see one draw, another query draws anew.
    fn seed(&self, session: &dyn Session) -> Result<Seed> {
        match self.fixed {
            true => Ok(self.job.seed.clone()),
            false => QueryStart::seed_of(QueryStart::of(session), &self.job.seed),
        }
    }
}

impl Relation for RepositionedTable {
    fn function(&self) -> &str {
        REPOSITION
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let input = planned(session, &self.input, REPOSITION, "the input").await?;
            let costs = planned_if_given(session, self.costs.as_ref(), REPOSITION, "suppress_cost").await?;
            let job = RepositionJob { seed: self.seed(session)?, ..self.job.clone() };
            project(Arc::new(RepositionExec::try_new(input, costs, job)?), wanted.projection)
        })
    }
}
