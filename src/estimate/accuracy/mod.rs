//! Accuracy of answers from a release: random queries, asked of the original table and of the release
//! (m-invariance, Section 6; m-Distinct, Section VI-C1; MuCo, Section 5.3).
//!
//! A query has one range per attribute: a random part of its domain of length `|A| * theta^(1/p)`, where `p` is the number of ranges and `theta` the
//! expected selectivity; of numbers that are counted, dates and categories so many values that occur. COUNT queries have a range of the sensitive
//! attribute as well; SUM and AVG are of the sensitive attribute. Queries that select nobody are drawn again.
//!
//! All queries are answered in one pass over columns: ranges of values that are known exactly by bitmaps, those of intervals by
//! their overlaps, group by group; or once for all groups that are alike.

mod bitmaps;
mod collect;
mod intervals;
mod kinds;
mod people;
mod query;
mod rows;
#[cfg(test)]
mod tests;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub(crate) use collect::{Collector, ReleaseBatch};
use people::Originals;
use query::Query;
use rows::Rows;

use crate::error::{Error, Result};
use crate::methods::Monitor;

/// Draws of a query that selects nobody before giving up.
const DRAWS: usize = 1000;
/// Queries answered together.
const BATCH: usize = 16;

/// Aggregate that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Aggregate {
    /// The number of people.
    Count,
    /// The sum of the sensitive attribute.
    Sum,
    /// Its mean.
    Avg,
}

/// Random queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Workload {
    /// Number of queries.
    pub queries: usize,
    /// Share of the people that a query selects by uniform, independent attributes: above 0, up to 1.
    pub selectivity: f64,
    /// Aggregate that is asked for.
    pub aggregate: Aggregate,
    /// Number of quasi-identifiers that have a range, drawn anew for every query; `None` for all.
    pub predicates: Option<usize>,
}

/// A query's true answer and the one from the release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    pub actual: f64,
    pub estimate: f64,
}

/// An attribute that queries have ranges of.
#[derive(Debug)]
pub(super) struct Axis {
    /// Place of each value, ascending; values without NULL.
    places: Vec<f64>,
    /// True if values are counted rather than measured.
    counted: bool,
}

/// The original table and its release, ready for queries.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// Quasi-identifiers, then the sensitive attribute if there is one.
    axes: Vec<Axis>,
    sensitive: bool,
    people: Originals,
    rows: Rows,
}

impl Comparison {
    /// Answers the queries of a workload, in order; the same for a seed on any number of threads.
    /// Fails when queries select nobody however often they are drawn, and when the work is cancelled.
    pub(crate) fn answers(&self, workload: &Workload, seed: [u8; 32], monitor: &Monitor) -> Result<Vec<Answer>> {
        if self.people.is_empty() {
            return Err(Error::refused("the original table has no rows"));
        }
        let batches = (0..workload.queries)
            .into_par_iter()
            .step_by(BATCH)
            .map(|first| first..(first + BATCH).min(workload.queries));
        let answers = batches.map_init(Scratch::default, |scratch, numbers| {
            monitor.check()?;
            let drawn = numbers.map(|number| self.draw(workload, seed, number, scratch)).collect::<Result<Vec<_>>>()?;
            let (queries, actual): (Vec<Query>, Vec<f64>) = drawn.into_iter().unzip();
            let estimates = self.rows.answers(&queries, workload.aggregate, &self.axes, scratch);
            Ok(actual.into_iter().zip(estimates).map(|(actual, estimate)| Answer { actual, estimate }).collect())
        });
        Ok(answers.collect::<Result<Vec<Vec<_>>>>()?.concat())
    }

    /// Returns a query that selects somebody, and its true answer.
    fn draw(&self, workload: &Workload, seed: [u8; 32], number: usize, scratch: &mut Scratch) -> Result<(Query, f64)> {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(number as u64);
        for _ in 0..DRAWS {
            let query = Query::draw(workload, &self.axes, self.sensitive, &mut rng);
            let actual = self.people.answer(&query, workload.aggregate, &self.axes, scratch);
            if actual != 0.0 {
                return Ok((query, actual));
            }
        }
        Err(Error::refused(format!(
            "a random query selected nobody (or a sum of 0) {DRAWS} times; write selectivity => 0.5, or aggregate => 'count'"
        )))
    }
}

/// Scratch of a thread for one query after the other.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    selected: Vec<u64>,
    range: Vec<u64>,
    weights: Vec<f64>,
}
