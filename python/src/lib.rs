//! The native part of the Python package `datafusion_anonymize`: sessions, tables that cross as Arrow streams, and charts. What is
//! pleasant is written in Python, above this.

mod capsule;
mod errors;
mod experiments;
mod session;
mod table;
mod wait;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Sessions, tables and charts.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Names, arguments and texts of all relation functions, as JSON.
    #[pyfunction]
    fn signatures() -> String {
        datafusion_anonymize::internals::signatures()
    }

    /// Draws a chart of named series as SVG; each series is a list of (x, y).
    #[pyfunction]
    fn chart(
        title: &str,
        x: &str,
        y: &str,
        series: Vec<(String, Vec<(f64, f64)>)>,
        logarithmic: bool,
    ) -> PyResult<String> {
        super::experiments::svg(title, x, y, &series, logarithmic)
    }
}
