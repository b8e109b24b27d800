//! m-invariant releases of a series of snapshots, for the experiments of Section 5.2.

use std::sync::Arc;

use datafusion::error::Result;

use super::experiment::Run;
use super::harness::Harness;
use super::input::Input;
use super::results::Point;
use super::series::Series;

/// Parameters of a run. `most` is the greatest `m` of the sensitive attribute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) sensitive: usize,
    pub(super) volume: f64,
    pub(super) m: usize,
    pub(super) most: usize,
}

/// Returns runs for each sensitive attribute: with all volumes and the greatest `m`, and with the first volume and other ones.
pub(super) fn runs<Points>(
    input: &Input,
    volumes: &[f64],
    steps: impl Fn(f64) -> u64,
    chain: fn(Arc<Harness>, Setting) -> Points,
) -> Vec<Run>
where
    Points: Future<Output = Result<Vec<Point>>> + Send + 'static,
{
    let mut runs = Vec::new();
    for sensitive in 0..input.sensitive.len() {
        let all = input.possible(sensitive, &[2, 4, 6, 8, 10]);
        let Some((&most, fewer)) = all.split_last() else { continue };
        let fewer = fewer.iter().map(|&m| (volumes[0], m));
        for (volume, m) in volumes.iter().map(|&volume| (volume, most)).chain(fewer) {
            let key = format!("{}, r = {volume}, m = {m}", input.sensitive[sensitive]);
            let setting = Setting { sensitive, volume, m, most };
            runs.push(Run::new(key, steps(volume), move |harness| chain(harness, setting)));
        }
    }
    runs
}

pub(super) struct Publisher<'a> {
    harness: &'a Harness,
    sensitive: usize,
    m: usize,
    series: Series,
    number: usize,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(harness: &'a Harness, setting: Setting) -> Self {
        let Setting { sensitive, volume, m, .. } = setting;
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
        let previous = if self.number > 1 { "published" } else { "" };
        let end = self.harness.minimal(previous, &self.harness.roles(self.sensitive), self.number);
        let sql = format!("SELECT * FROM m_invariant(snapshot, {}, {end})", self.m);
        self.harness.keep("published", &sql).await.map(Some)
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) async fn counterfeits(&self) -> Result<f64> {
        self.harness.number("SELECT count(*) FILTER (WHERE counterfeit) FROM published").await
    }
}
