//! Errors of the engine as exceptions of the package, without values of the data.

use datafusion::error::DataFusionError;
use datafusion_anonymize::{AnonymizeError, ErrorKind, hide_values};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Module of the classes.
const MODULE: &str = "datafusion_anonymize._errors";

/// Returns the exception for an error.
pub(crate) fn raised(error: DataFusionError) -> PyErr {
    let error = hide_values(error);
    let Some(own) = AnonymizeError::of(&error) else {
        return exception("AnonymizeError", &error.strip_backtrace(), None, None);
    };
    let class = match own.kind() {
        ErrorKind::Refused => "Refused",
        ErrorKind::Conflict => "Conflict",
        ErrorKind::Breach => "Breach",
        _ => "AnonymizeError",
    };
    exception(class, &own.to_string(), Some(own.function()), own.argument())
}

/// Returns a refusal by this package itself.
pub(crate) fn refused(text: &str) -> PyErr {
    exception("Refused", text, None, None)
}

/// Returns an error of the base class.
pub(crate) fn failed(text: &str) -> PyErr {
    exception("AnonymizeError", text, None, None)
}

fn exception(class: &str, text: &str, function: Option<&str>, argument: Option<&str>) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<PyErr> {
            let named = PyDict::new(py);
            named.set_item("function", function)?;
            named.set_item("argument", argument)?;
            let value = py.import(MODULE)?.getattr(class)?.call((text,), Some(&named))?;
            Ok(PyErr::from_value(value))
        };
        made().unwrap_or_else(|error| error)
    })
}
