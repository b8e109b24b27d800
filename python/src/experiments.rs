//! Draws charts as the experiments do.

use anonymize_experiments::{Figure, draw};
use pyo3::PyResult;

/// Draws a chart of named series.
pub(crate) fn svg(
    title: &str,
    x: &str,
    y: &str,
    series: &[(String, Vec<(f64, f64)>)],
    logarithmic: bool,
) -> PyResult<String> {
    let finite = |points: &[(f64, f64)]| {
        let mut points: Vec<_> = points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let series: Vec<(&str, Vec<(f64, f64)>)> =
        series.iter().map(|(name, points)| (name.as_str(), finite(points))).collect();
    draw(&Figure { id: "", title, x, y, logarithmic }, &series).map_err(crate::errors::raised)
}
