//! Buckets of rows that lie close together, each in a cycle in which any `l` consecutive rows have different sensitive values.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cycle;
use super::measure::Measure;
use super::worlds::Worlds;
use crate::error::{Error, Result};
use crate::methods::{Monitor, mondrian};
use crate::microdata::Microdata;

/// How rows are put into the cycle of their bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Of the rows with the value that is due, the one that adds least to the loss of the rows before it.
    #[default]
    Greedy,
    /// Any of them. Loses more, and leaves a reader who knows the code next to nothing to reason from.
    Random,
}

/// Of so many rows with the value that is due, the greedy order takes the best: a large bucket would else take quadratic time.
const CANDIDATES: usize = 64;

/// Rows, bucket after bucket, each in its cycle.
pub(super) struct Cycles {
    pub starts: Vec<u32>,
    pub rows: Vec<u32>,
}

impl Cycles {
    /// Every bucket has a stream of random numbers of its own, so that threads do not matter.
    pub(super) fn make(microdata: &Microdata, params: &Worlds, secret: [u8; 32], monitor: &Monitor) -> Result<Self> {
        let (starts, mut rows) =
            monitor.phase("buckets", || mondrian::leaves(microdata, params.l, params.cuts, monitor))?;
        let measure = Measure::new(params.loss, microdata);
        let cycle = |(number, bucket): (usize, &mut [u32])| {
            monitor.check()?;
            let mut rng = ChaCha20Rng::from_seed(secret);
            rng.set_stream(number as u64);
            arrange(microdata, &measure, params, bucket, &mut rng)
        };
        monitor.phase("cycles", || buckets(&starts, &mut rows).into_par_iter().enumerate().try_for_each(cycle))?;
        Ok(Self { starts, rows })
    }

    /// The buckets.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|ends| &self.rows[ends[0] as usize..ends[1] as usize])
    }
}

fn buckets<'a>(starts: &[u32], rows: &'a mut [u32]) -> Vec<&'a mut [u32]> {
    let mut left = rows;
    let mut buckets = Vec::with_capacity(starts.len());
    for ends in starts.windows(2) {
        let (bucket, after) = left.split_at_mut((ends[1] - ends[0]) as usize);
        buckets.push(bucket);
        left = after;
    }
    buckets
}

/// Puts the rows of a bucket into its cycle (Algorithm 1, steps 2 and 3).
fn arrange(
    microdata: &Microdata,
    measure: &Measure,
    params: &Worlds,
    bucket: &mut [u32],
    rng: &mut impl Rng,
) -> Result<()> {
    // Rows of one value, in random order, so that ties are.
    bucket.shuffle(rng);
    let value_of = |row: u32| microdata.sensitive_codes[row as usize];
    bucket.sort_by_key(|&row| value_of(row));
    let mut lines: Vec<Vec<u32>> = bucket.chunk_by(|&a, &b| value_of(a) == value_of(b)).map(<[u32]>::to_vec).collect();
    let counts = lines.iter().enumerate().map(|(line, rows)| (line as u32, rows.len())).collect();
    let cycle = cycle::values(counts, params.l, rng)?;
    let mut behind = Behind::new(params.l - 1, microdata.quasi.len());
    for (place, &due) in cycle.iter().enumerate() {
        let line = &mut lines[due as usize];
        let best = match params.order {
            Order::Greedy if line.len() > 1 => behind.best(microdata, measure, line, rng),
            Order::Greedy | Order::Random => 0,
        };
        if best >= line.len() {
            return Err(Error::internal("a cycle with other values than its bucket"));
        }
        let row = line.swap_remove(best);
        bucket[place] = row;
        if params.order == Order::Greedy {
            behind.push(microdata.quasi_of(row));
        }
    }
    Ok(())
}

/// Boxes around the last row, the last two, and so on up to `l - 1`.
struct Behind {
    boxes: Vec<Vec<[u32; 2]>>,
    most: usize,
    quasi: usize,
}

impl Behind {
    fn new(most: usize, quasi: usize) -> Self {
        Self { boxes: Vec::with_capacity(most), most, quasi }
    }

    /// Place of the row that adds least, the first of several.
    fn best(&self, microdata: &Microdata, measure: &Measure, line: &mut [u32], rng: &mut impl Rng) -> usize {
        let looked_at = line.len().min(CANDIDATES);
        if looked_at < line.len() {
            (0..looked_at).for_each(|place| line.swap(place, rng.random_range(place..line.len())));
        }
        let loss = |row: u32| -> f32 {
            let codes = microdata.quasi_of(row);
            self.boxes.iter().map(|around| measure.with(around, codes)).sum()
        };
        let mut best = (f32::INFINITY, 0);
        for (place, &row) in line[..looked_at].iter().enumerate() {
            let loss = loss(row);
            if loss < best.0 {
                best = (loss, place);
            }
        }
        best.1
    }

    fn push(&mut self, codes: &[u32]) {
        if self.boxes.len() < self.most {
            self.boxes.push(vec![[u32::MAX, 0]; self.quasi]);
        }
        // The box around j rows and this one is that around j + 1.
        self.boxes.rotate_right(1);
        if let Some(first) = self.boxes.first_mut() {
            first.fill([u32::MAX, 0]);
        }
        for around in &mut self.boxes {
            for ([lo, hi], &code) in around.iter_mut().zip(codes) {
                *lo = code.min(*lo);
                *hi = code.max(*hi);
            }
        }
    }
}
