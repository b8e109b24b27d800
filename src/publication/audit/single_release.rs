//! Checks of a released table by itself, without a publication and without promises.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;

use super::{columns, with_sensitive_value};
use crate::error::Error;
use crate::risk::{Check, ReleaseFindings, ReleasedTable};

const FUNCTION: &str = "release";

/// Returns the checks that the rows of a release fail: what groups say of themselves, and whether the rows stand in random order. The
/// columns must describe themselves.
/// Fails when columns are missing that say something of groups.
pub(crate) fn failed_checks(rows: &RecordBatch) -> Result<Vec<Check>> {
    let named = |error: Error| error.in_function(FUNCTION);
    let columns = columns(&rows.schema());
    let rows = with_sensitive_value(rows).map_err(named)?;
    let mut findings = ReleaseFindings::default();
    findings.add(&ReleasedTable::try_new(&rows, &columns).map_err(named)?, &[]);
    Ok(findings.checks(None).into_iter().filter(|check| !check.passed).collect())
}
