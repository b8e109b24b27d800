//! Several earlier releases as one relation: `previous => ('q1_private.parquet', 'q2_private.parquet')`.

use datafusion::common::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::input::{Input, InputColumn};
use crate::error::refusal;
use crate::methods::StateKind;
use crate::methods::state::RELEASE;
use crate::microdata::Roles;

/// The entries of all earlier releases, which are numbered in their order. Columns of the microdata get types that hold those of all of them.
///
/// # Errors
/// When one has not the columns that it needs, or some say numbers and others do not.
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

/// The relations with a column of their places, if there are several, none has one, and numbers count.
fn numbered(earlier: Vec<Input>, kind: StateKind) -> Result<Vec<Input>> {
    let has_number = |one: &Input| one.plan.schema().fields().iter().any(|field| field.name() == RELEASE);
    let say = earlier.iter().filter(|one| has_number(one)).count();
    if earlier.len() < 2 || say == earlier.len() || kind == StateKind::Signatures {
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
        let columns = one.plan.schema().columns().into_iter().map(Expr::Column);
        let columns: Vec<Expr> = columns.chain([lit(place as i64 + 1).alias(RELEASE)]).collect();
        let plan = LogicalPlanBuilder::from(one.plan).project(columns)?.build()?;
        Ok(Input { plan, ..one })
    };
    earlier.into_iter().enumerate().map(number).collect()
}
