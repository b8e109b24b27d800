//! Charts: those of the shell's experiments, drawn by the same code.

pub(crate) mod experiment {
    /// What is around a chart.
    pub(crate) struct Figure<'a> {
        pub(crate) title: &'a str,
        pub(crate) x: &'a str,
        pub(crate) y: &'a str,
        pub(crate) logarithmic: bool,
    }
}

#[path = "../../src/experiments/chart/mod.rs"]
mod chart;

use pyo3::PyResult;

use experiment::Figure;

/// A chart of named series, each by ascending `x`.
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
    chart::draw(&Figure { title, x, y, logarithmic }, &series).map_err(crate::errors::raised)
}
