//! `count_interval(*, 0.95)`: between which numbers a count lies.
//!
//! Two things make an estimate wrong. Rows are in the answer or not: each by itself, with the share that was assumed; that is what
//! `count_stddev` tells, and it is the lesser part. And the shares themselves are wrong, all in the same direction: values do not lie in
//! ranges as was assumed, and depend on each other. No release tells by how much; but it tells between which counts the truth lies
//! whatever the values are: at least the rows that fulfil the conditions wherever they lie in their ranges, at most those that can. The error
//! of shares is taken as a part of the geometric mean of the distances to both: 0 where one of them is reached, as it must be.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::core::expr_fn::{coalesce, greatest, least, named_struct};
use datafusion::functions::math::expr_fn::{ceil, floor, round, sqrt};
use datafusion::logical_expr::{Expr, cast, lit};

use super::deviations::COUNT_INTERVAL;
use crate::error::refusal;

/// Part of the mean distance to certain and possible counts, for a probability of 0.95. With it, the truth was inside for
/// 90 % to 98 % of most random queries of ADULT, ACS, incidents of Chicago and the synthetic census; see docs/estimates.md.
const OF_SHARES: f64 = 0.33;
/// The same if only the assignment of values in groups is unknown (Anatomy). All of the error is then that values
/// go with quasi-identifiers, which ranges blur elsewhere.
const OF_VALUES: f64 = 0.6;
/// The quantile of the normal distribution that belongs to it.
const AT: f64 = 1.959_963_985;
/// Loss in rounding.
const ROUNDING: f64 = 1e-6;

/// Sums over rows.
#[derive(Debug)]
pub(super) struct Bounds {
    /// The expected count.
    pub estimate: Expr,
    /// Sums of the rows that certainly fulfil the conditions, and of those that can.
    pub certain: Expr,
    pub possible: Expr,
    /// The variance if each row is in the answer by itself.
    pub variance: Expr,
    /// The variance by which of the possible rows are counterfeits.
    pub of_counterfeits: Expr,
    /// True if quasi-identifiers are exact, and the sensitive value is one of its group's.
    pub by_group: bool,
}

/// Returns the struct. `everybody` says that nothing was asked of the rows: their number is known.
/// Fails when an expression cannot be made.
pub(super) fn interval(bounds: Bounds, probability: f64, everybody: bool) -> Result<Expr> {
    let zero = |expr: Expr| coalesce(vec![expr, lit(0.0)]);
    let whole = |expr: Expr| cast(expr, DataType::Int64);
    let Bounds { estimate, certain, possible, variance, of_counterfeits, by_group } = bounds;
    let [estimate, certain, possible, variance, of_counterfeits] =
        [estimate, certain, possible, variance, of_counterfeits].map(zero);
    if everybody {
        let count = whole(round(vec![estimate]));
        return Ok(named_struct(vec![lit("lo"), count.clone(), lit("hi"), count]));
    }
    let at = quantile(probability);
    let root = |square: Expr| sqrt(greatest(vec![square, lit(0.0)]));
    let room = (possible.clone() - estimate.clone()) * (estimate.clone() - certain.clone());
    let part = if by_group { OF_VALUES } else { OF_SHARES };
    let off = lit(at) * root(variance) + lit(part * at / AT) * root(room);
    let around = lit(at) * root(of_counterfeits);
    let lo = greatest(vec![estimate.clone() - off.clone(), certain - around.clone(), lit(0.0)]);
    let hi = least(vec![estimate + off, possible + around]);
    let (lo, hi) = (floor(lo + lit(ROUNDING)), ceil(hi - lit(ROUNDING)));
    Ok(named_struct(vec![lit("lo"), whole(lo), lit("hi"), whole(hi)]))
}

/// Returns the probability that was asked for.
/// Fails when it is no number between 0 and 1.
pub(super) fn confidence(expr: &Expr) -> Result<f64> {
    let value = match expr {
        Expr::Literal(value, _) => value.cast_to(&DataType::Float64).ok(),
        _ => None,
    };
    match value {
        Some(ScalarValue::Float64(Some(value))) if 0.0 < value && value < 1.0 => Ok(value),
        _ => Err(refusal!(
            COUNT_INTERVAL,
            "the probability that the truth is inside must be a number above 0 and below 1, for example \
             {COUNT_INTERVAL}(*, 0.95)"
        )),
    }
}

/// Returns the deviations to both sides that hold this part of a normal distribution.
fn quantile(probability: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() * (2.0 / std::f64::consts::PI).sqrt();
    // Simpson's rule.
    let inside = |x: f64| {
        const STEPS: usize = 400;
        let step = x / STEPS as f64;
        let weight = |i: usize| match i {
            0 | STEPS => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (0..=STEPS).map(|i| weight(i) * density(i as f64 * step)).sum::<f64>() * step / 3.0
    };
    let (mut lo, mut hi) = (0.0, 9.0);
    for _ in 0..60 {
        let middle = (lo + hi) / 2.0;
        if inside(middle) < probability { lo = middle } else { hi = middle }
    }
    lo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (probability, expected) in [(0.5, 0.674_489_750), (0.682_689_492, 1.0), (0.95, AT), (0.99, 2.575_829_304)] {
            assert!((quantile(probability) - expected).abs() < 1e-6, "{probability}: {}", quantile(probability));
        }
    }
}
