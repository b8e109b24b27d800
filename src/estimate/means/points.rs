//! Means over measured intervals by looking at points.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::estimate::factor::Compiled;
use crate::estimate::scale::from_coordinates;

/// Points per interval.
pub(super) const POINTS: usize = 64;
/// Number whose multiples, modulo 1, are spread evenly. Their period cannot be that of the function.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Returns the means over the intervals from the first to the second of each pair.
pub(super) fn means(function: &Compiled, data_type: &DataType, ends: &[(f64, f64)]) -> Result<Vec<f64>> {
    let place = |i: usize| (0.5 + i as f64 * GOLDEN).fract();
    let points = ends.iter().flat_map(|&(lo, hi)| (0..POINTS).map(move |i| lo + (hi - lo) * place(i))).collect();
    let values = function.evaluate(&from_coordinates(points, data_type)?)?;
    Ok(values.chunks_exact(POINTS).map(|values| values.iter().sum::<f64>() / POINTS as f64).collect())
}
