//! One HTML page of all experiments in a directory.

use std::path::{Path, PathBuf};

use datafusion::error::Result;

use super::{EXPERIMENTS, store};

/// Writes `index.html`; its place.
pub(super) fn write(out: &Path) -> Result<PathBuf> {
    for experiment in &EXPERIMENTS {
        store::report(out, experiment.name)?;
    }
    Ok(out.join("index.html"))
}
