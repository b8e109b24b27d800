//! Aggregate functions for the standard errors of estimates: names for the rewrite, not to be computed.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
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

/// All of them.
pub(in crate::sql) fn deviations() -> Vec<Arc<AggregateUDF>> {
    let function = |name| {
        let signature = match name {
            COUNT_STDDEV => Signature::any(1, Volatility::Immutable),
            _ => Signature::numeric(1, Volatility::Immutable),
        };
        Arc::new(AggregateUDF::new_from_impl(Deviation { name, signature }))
    };
    [COUNT_STDDEV, SUM_STDDEV, AVG_STDDEV].map(function).into()
}

/// A standard error: DOUBLE.
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
        Ok(DataType::Float64)
    }

    fn state_fields(&self, _args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(self.name, DataType::Float64, true))])
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        plan_err!(
            "{}: it is the standard error of an estimate, and this table is no release; ask for it over estimated(release) or a \
             publication",
            self.name
        )
    }
}

/// Lets `count_stddev(*)` be written.
#[derive(Debug)]
pub(in crate::sql) struct DeviationPlanner;

impl ExprPlanner for DeviationPlanner {
    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        #[expect(deprecated, reason = "what the planner makes of *")]
        let star = matches!(raw.args.as_slice(), [] | [Expr::Wildcard { .. }]);
        if !star || ![COUNT_STDDEV, SUM_STDDEV, AVG_STDDEV].contains(&raw.func.name()) {
            return Ok(PlannerResult::Original(raw));
        }
        if raw.func.name() != COUNT_STDDEV {
            return plan_err!(
                "{0}: it takes a number, for example {0}(age); only {COUNT_STDDEV} takes *",
                raw.func.name()
            );
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
