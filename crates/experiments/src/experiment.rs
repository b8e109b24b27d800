//! The types of an experiment: its figures, runs and findings.

use std::future::Future;
use std::sync::Arc;

use datafusion::error::Result;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::harness::Harness;
use super::input::{CensusColumns, Input};
use super::results::{Point, Results};

#[derive(Debug)]
pub(super) struct Experiment {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Paper, section and figures.
    pub(super) source: &'static str,
    /// Description of the experiment, in a paragraph.
    pub(super) about: &'static str,
    /// Columns of the synthetic census that are quasi-identifiers by default.
    pub(super) quasi: &'static [&'static str],
    /// Columns of the synthetic census that are the sensitive attribute, one after the other.
    pub(super) sensitive: &'static [&'static str],
    /// Rows of the synthetic census: in quick mode, and those of the paper.
    pub(super) rows: [usize; 2],
    pub(super) figures: &'static [Figure<'static>],
    pub(super) runs: fn(&Input) -> Vec<Run>,
    pub(super) findings: fn(&Results) -> Vec<Finding>,
}

impl Experiment {
    /// Returns the columns that it takes of the synthetic census.
    pub(super) fn census(&self) -> CensusColumns {
        let Self { name: experiment, quasi, sensitive, rows, .. } = *self;
        CensusColumns { experiment, quasi, sensitive, rows }
    }
}

/// A chart: lines of points, one for each series.
#[derive(Debug, Clone, Copy)]
pub struct Figure<'a> {
    /// Name of the figure in points and file names.
    pub id: &'a str,
    /// Title of the chart; names the figure of the paper, if it is one.
    pub title: &'a str,
    /// Title of the horizontal axis, with its unit.
    pub x: &'a str,
    /// Title of the vertical axis, with its unit.
    pub y: &'a str,
    /// True if the axis of `y` is logarithmic.
    pub logarithmic: bool,
}

impl<'a> Figure<'a> {
    /// Makes a figure with an axis of `y` that is not logarithmic.
    pub const fn new(id: &'a str, title: &'a str, x: &'a str, y: &'a str) -> Self {
        Self { id, title, x, y, logarithmic: false }
    }
}

/// Something that a paper found, and what we found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Finding {
    /// Claim in our words, with the paper's numbers.
    pub(super) claim: String,
    /// Result that came out here.
    pub(super) here: String,
    /// True if it is the same; `None` where there is nothing to compare, as with another machine's seconds.
    pub(super) holds: Option<bool>,
}

impl Finding {
    /// Makes a finding that can fail.
    pub(super) fn new(claim: impl Into<String>, here: impl Into<String>, holds: bool) -> Self {
        Self { claim: claim.into(), here: here.into(), holds: Some(holds) }
    }

    /// Puts figures side by side that need not agree.
    pub(super) fn beside(claim: impl Into<String>, here: impl Into<String>) -> Self {
        Self { claim: claim.into(), here: here.into(), holds: None }
    }
}

type Body = Box<dyn FnOnce(Arc<Harness>) -> BoxFuture<'static, Result<Vec<Point>>>>;

/// A part of an experiment that is computed and stored as a whole.
pub(super) struct Run {
    /// Its settings: names it among the runs of its experiment.
    pub(super) key: String,
    /// Number of its calls of [`Harness::step`].
    pub(super) steps: u64,
    body: Body,
}

impl Run {
    pub(super) fn new<F, Points>(key: String, steps: u64, body: F) -> Self
    where
        F: FnOnce(Arc<Harness>) -> Points + 'static,
        Points: Future<Output = Result<Vec<Point>>> + Send + 'static,
    {
        Self { key, steps, body: Box::new(move |harness| Box::pin(body(harness))) }
    }

    pub(super) async fn execute(self, harness: Arc<Harness>) -> Result<Vec<Point>> {
        (self.body)(harness).await
    }
}
