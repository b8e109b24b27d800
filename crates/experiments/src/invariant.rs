//! m-invariant releases of a series of snapshots, for the experiments of Section 5.2.

use datafusion::error::Result;

use super::harness::Harness;
use super::series::Series;

/// Publishes one snapshot after the other.
pub(super) struct Publisher<'a> {
    harness: &'a Harness,
    sensitive: usize,
    m: usize,
    series: Series,
    number: usize,
}

impl<'a> Publisher<'a> {
    /// Begins a series on a sensitive attribute, with this share of people coming and leaving.
    pub(super) fn new(harness: &'a Harness, sensitive: usize, volume: f64, m: usize) -> Self {
        // The same people come and leave whatever the method and the attribute.
        let series = Series::new(harness.input.rows(), volume, harness.input.seed);
        Self { harness, sensitive, m, series, number: 0 }
    }

    /// Publishes the next release: the tables `snapshot` and `published`, its private view; seconds. `None` when nobody is left to come.
    pub(super) async fn next(&mut self) -> Result<Option<f64>> {
        if self.number > 0 && !self.series.advance() {
            return Ok(None);
        }
        self.number += 1;
        self.harness.table("snapshot", self.harness.input.at(self.series.present())?)?;
        // As the paper balances. Nobody returns, so the last release knows everybody who must be known.
        let previous = if self.number > 1 { "previous => published, " } else { "" };
        let call = format!(
            "m_invariant(snapshot, {}, {previous}balance => 'minimal', on_ineligible => 'counterfeit', private => true, {}, {})",
            self.m,
            self.harness.roles(self.sensitive),
            self.harness.seed(self.number)
        );
        Ok(Some(self.harness.keep("published", &format!("SELECT * FROM {call}")).await?))
    }

    /// Returns the number of the last release, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Returns the counterfeits of the last release.
    pub(super) async fn counterfeits(&self) -> Result<f64> {
        self.harness.number("SELECT count(*) FILTER (WHERE counterfeit) FROM published").await
    }
}
