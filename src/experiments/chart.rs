//! A figure as SVG.

use datafusion::error::Result;

use super::experiment::Figure;

/// A chart of named series, each by ascending `x`.
pub(super) fn draw(figure: &Figure, series: &[(&str, Vec<(f64, f64)>)]) -> Result<String> {
    Ok(format!("<svg><!-- {figure:?} {} --></svg>", series.len()))
}
