//! Aggregate functions for the standard errors of estimates: names for the rewrite, not to be computed.

use std::sync::Arc;

use crate::error::refusal;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr};
use datafusion::logical_expr::utils::COUNT_STAR_EXPANSION;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};

/// Standard error of an estimated COUNT.
pub(super) const COUNT_STDDEV: &str = "count_stddev";
/// Standard error of an estimated SUM.
pub(super) const SUM_STDDEV: &str = "sum_stddev";
/// Standard error of an estimated AVG.
pub(super) const AVG_STDDEV: &str = "avg_stddev";
/// Between which numbers a COUNT lies, with a probability.
pub(super) const COUNT_INTERVAL: &str = "count_interval";
/// Functions that say how far off an estimate can be.
pub(super) const ERRORS: [&str; 4] = [COUNT_STDDEV, SUM_STDDEV, AVG_STDDEV, COUNT_INTERVAL];

/// Returns all of them.
pub(in crate::sql) fn deviations() -> Vec<Arc<AggregateUDF>> {
    let function = |name| {
        let signature = match name {
            COUNT_STDDEV => Signature::any(1, Volatility::Immutable),
            COUNT_INTERVAL => Signature::any(2, Volatility::Immutable),
            _ => Signature::numeric(1, Volatility::Immutable),
        };
        Arc::new(AggregateUDF::new_from_impl(Deviation { name, signature }))
    };
    ERRORS.map(function).into()
}

/// A standard error: DOUBLE; or an interval: a struct of the BIGINTs `lo` and `hi`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Deviation {
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for Deviation {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(match self.name {
            COUNT_INTERVAL => {
                DataType::Struct(["lo", "hi"].map(|end| Field::new(end, DataType::Int64, true)).to_vec().into())
            }
            _ => DataType::Float64,
        })
    }

    fn state_fields(&self, _args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(self.name, DataType::Float64, true))])
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Err(refusal!(
            self.name,
            "it says how far off an estimate can be, and this table is no release; ask for it over estimated(release) or a \
             publication"
        ))
    }
}

/// Lets `count_stddev(*)` and `count_interval(*, 0.95)` be written.
#[derive(Debug)]
pub(in crate::sql) struct DeviationPlanner;

impl ExprPlanner for DeviationPlanner {
    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        #[expect(deprecated, reason = "what the planner makes of *")]
        let star = matches!(raw.args.as_slice(), [] | [Expr::Wildcard { .. }, ..]);
        if !star || !ERRORS.contains(&raw.func.name()) {
            return Ok(PlannerResult::Original(raw));
        }
        if raw.func.name() == COUNT_INTERVAL {
            let RawAggregateExpr { func, mut args, distinct, filter, order_by, null_treatment } = raw;
            let [star, confidence] = args.as_mut_slice() else {
                return Err(refusal!(
                    COUNT_INTERVAL,
                    "it takes what to count and a probability: {COUNT_INTERVAL}(*, 0.95)"
                ));
            };
            *star = Expr::Literal(COUNT_STAR_EXPANSION, None);
            let name = format!("{COUNT_INTERVAL}(*,{confidence})");
            let filtered = filter.is_some();
            let function = AggregateFunction::new_udf(func, args, distinct, filter, order_by, null_treatment);
            let function = Expr::AggregateFunction(function);
            return Ok(PlannerResult::Planned(if filtered { function } else { function.alias(name) }));
        }
        if raw.func.name() != COUNT_STDDEV {
            let name = raw.func.name();
            return Err(refusal!(name, "it takes a number, for example {name}(age); only {COUNT_STDDEV} takes *"));
        }
        let RawAggregateExpr { func, distinct, filter, order_by, null_treatment, .. } = raw;
        let all = vec![Expr::Literal(COUNT_STAR_EXPANSION, None)];
        let filtered = filter.is_some();
        let function = AggregateFunction::new_udf(func, all, distinct, filter, order_by, null_treatment);
        let function = Expr::AggregateFunction(function);
        // Of several, the filter tells which is which.
        Ok(PlannerResult::Planned(if filtered { function } else { function.alias(format!("{COUNT_STDDEV}(*)")) }))
    }
}
