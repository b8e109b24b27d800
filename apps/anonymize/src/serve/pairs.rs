//! Counts the pairs of rows that a statement compares before it runs: of a join without equal columns it is all of them.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::errors::Failure;

/// Pairs that a statement may compare. A processor takes some ten seconds for as many.
const MOST: f64 = 2e9;

/// Pairs from which on a statement is heavy.
const HEAVY: f64 = 1e7;

/// The share of rows that are taken for those that fulfil a condition.
const SELECTED: f64 = 0.2;

/// Refuses joins that would compare too many pairs of rows. Returns true if they compare many.
/// Fails when there is one.
pub(super) fn refuse_pairs(plan: &Arc<dyn ExecutionPlan>) -> Result<bool, Failure> {
    let mut pairs = 0.0;
    rows(plan, &mut pairs);
    if pairs > MOST {
        let message = format!("the statement joins tables by no equal columns: it compares {pairs:.1e} pairs of rows");
        return Err(Failure::new("54001", message).hint(format!(
            "At most {MOST:.0e} are compared; join by columns that are equal, such as a JOIN b ON a.group_id = b.group_id, or join what is grouped"
        )));
    }
    Ok(pairs > HEAVY)
}

/// Returns the greatest number of rows of a plan, as far as known. It adds the pairs that the plan compares.
fn rows(plan: &Arc<dyn ExecutionPlan>, pairs: &mut f64) -> f64 {
    let below: Vec<f64> = plan.children().into_iter().map(|child| rows(child, pairs)).collect();
    let compares = plan.is::<CrossJoinExec>() || plan.is::<NestedLoopJoinExec>();
    let made = match below.as_slice() {
        [] => known(plan).unwrap_or(1.0),
        [left, right] if compares => {
            *pairs += left * right;
            left * right
        }
        // As the engine guesses.
        [one] if plan.is::<FilterExec>() => one * SELECTED,
        [one] => match plan.downcast_ref::<AggregateExec>() {
            Some(aggregate) if aggregate.group_expr().is_empty() => 1.0,
            _ => *one,
        },
        // Of joins by equal columns nobody knows; of unions it is all.
        several => several.iter().sum(),
    };
    plan.fetch().map_or(made, |most| made.min(most as f64))
}

/// Returns the number of rows of a table.
fn known(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().map(|rows| *rows as f64)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn of(sql: &str) -> Result<bool, Failure> {
        let context = SessionContext::new();
        let numbers = Arc::new(Int64Array::from_iter_values(0..100_000));
        let batch = RecordBatch::try_from_iter([("a", numbers as _)]).expect("a batch");
        context.register_batch("t", batch).expect("a table");
        let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        refuse_pairs(&frame.create_physical_plan().await.expect("a plan"))
    }

    #[tokio::test]
    async fn products_are_seen() {
        for much in [
            "SELECT count(*) FROM t l, t r WHERE l.a < r.a",
            "SELECT sum(l.a + r.a) FROM t l CROSS JOIN t r",
            "SELECT count(*) FROM t l JOIN t r ON l.a + r.a = 7",
            "SELECT count(*) FROM t l LEFT JOIN t r ON l.a < r.a",
            "SELECT count(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) l, t r WHERE l.a < r.a",
            "SELECT count(*) FROM t WHERE a IN (SELECT l.a FROM t l, t r WHERE l.a < r.a)",
        ] {
            assert_eq!(of(much).await.expect_err(much).code(), "54001", "{much}");
        }
        for little in [
            "SELECT count(*) FROM t l, t r WHERE l.a = r.a",
            "SELECT count(*) FROM t l, (SELECT max(a) AS a FROM t) r WHERE l.a < r.a",
            "SELECT count(*) FROM t l, (VALUES (1), (2)) AS r (a) WHERE l.a < r.a",
        ] {
            assert_eq!(of(little).await, Ok(false), "{little}");
        }
        let much = "SELECT count(*) FROM t l, (SELECT a FROM t LIMIT 1000) r WHERE l.a < r.a";
        assert_eq!(of(much).await, Ok(true));
    }
}
