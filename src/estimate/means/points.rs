//! Means over measured intervals by looking at points.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::estimate::factor::Compiled;
use crate::estimate::scale::from_coordinates;

/// Points per interval: the midpoints of as many equal parts.
pub(super) const POINTS: usize = 64;

/// Means over the intervals from the first to the second of each pair.
pub(super) fn means(function: &Compiled, data_type: &DataType, ends: &[(f64, f64)]) -> Result<Vec<f64>> {
    let point = |(lo, hi): (f64, f64), i: usize| lo + (hi - lo) * (i as f64 + 0.5) / POINTS as f64;
    let points = ends.iter().flat_map(|&ends| (0..POINTS).map(move |i| point(ends, i))).collect();
    let values = function.evaluate(&from_coordinates(points, data_type)?)?;
    Ok(values.chunks_exact(POINTS).map(|values| values.iter().sum::<f64>() / POINTS as f64).collect())
}
