//! Phase 3, the rows: which rows of a value go into which bucket.
//!
//! The paper draws them at random. Here the rows of each value stand along one space-filling curve over the quasi-identifiers
//! (Morton order of quantiles), and a bucket takes rows of each of its values at even distances from a random place on.
//! The values of a bucket then cover the space alike, so its groups are a little tighter than with a plain draw, and no
//! bucket is left with the outliers. (To take whatever lies nearest to a bucket's scarcest value is worse: it leaves the
//! buckets that come later with rows that lie nowhere near each other.) The choice does not look at who a row is, so it
//! changes nothing about the guarantee.

use rand::Rng;
use rayon::prelude::*;

use super::assign::Step;
use super::division::Division;
use crate::error::Result;
use crate::microdata::Microdata;
use crate::release::COUNTERFEIT;

/// Puts all new rows, and as many counterfeits of each value as `padding` says, into buckets.
pub(super) fn assign(
    microdata: &Microdata,
    division: &mut Division,
    steps: &[Step],
    padding: &[usize],
    rng: &mut impl Rng,
) -> Result<()> {
    let curve = Curve::new(microdata);
    let padding_keys: Vec<Vec<u64>> = padding.iter().map(|&count| (0..count).map(|_| rng.random()).collect()).collect();
    if padding.iter().any(|&count| count > 0) {
        // Padding leaves no slack: the most frequent value is in every step, and all its rows are real. A bucket of such
        // steps has a value without counterfeits, and so a real row in every group; merged with an old bucket, whose
        // complete value may be another, it might have none.
        division.close_old_buckets();
    }
    let new = std::mem::take(&mut division.new);
    let mut lines: Vec<Line> = new
        .into_par_iter()
        .zip(padding_keys)
        .map(|(rows, padding_keys)| {
            let keyed = rows.into_iter().map(|row| (curve.key(row), row));
            Line::new(keyed.chain(padding_keys.into_iter().map(|key| (key, COUNTERFEIT))).collect())
        })
        .collect();
    for step in steps {
        let bucket = division.bucket(&step.signature);
        division.buckets[bucket as usize].height += step.rows;
        for &value in &step.signature {
            let from = rng.random();
            lines[value as usize].take(step.rows, from, |row| {
                if row != COUNTERFEIT {
                    division.bucket_of[row as usize] = bucket;
                }
            });
        }
    }
    Ok(())
}

/// Rows of one value along the curve. Taken ones are skipped through links that are shortened as they are followed, so any
/// sequence of takes costs nearly linear time.
struct Line {
    rows: Vec<(u64, u32)>,
    /// `next[i]`: some place at or after `i`, with nothing left in between; `i` itself if it is left.
    next: Vec<u32>,
}

impl Line {
    fn new(mut rows: Vec<(u64, u32)>) -> Self {
        // Rows that tie on the curve stay in the order of the keyed hash.
        rows.par_sort_by_key(|&(key, _)| key);
        Self { next: (0..=rows.len() as u32).collect(), rows }
    }

    /// The first place left at or after this one, or the number of places.
    fn at_or_after(&mut self, mut place: usize) -> usize {
        while self.next[place] as usize != place {
            let next = self.next[place] as usize;
            self.next[place] = self.next[next];
            place = next;
        }
        place
    }

    /// Takes `count` rows at even distances along the line, starting at the share `from` of it and going around the end.
    /// There must be that many left.
    fn take(&mut self, count: usize, from: f64, mut each: impl FnMut(u32)) {
        let n = self.rows.len();
        let start = ((from * n as f64) as usize).min(n.saturating_sub(1));
        for i in 0..count {
            let place = (start + i * n / count) % n;
            let mut place = self.at_or_after(place);
            if place == n {
                place = self.at_or_after(0);
            }
            self.next[place] = place as u32 + 1;
            each(self.rows[place].1);
        }
    }
}

/// Morton order: the bits of the attributes' quantiles interleaved, most significant first.
struct Curve<'a> {
    microdata: &'a Microdata,
    /// For each attribute and code, the code's quantile with its bits spread to their places in the key.
    spread: Vec<Vec<u64>>,
}

impl<'a> Curve<'a> {
    fn new(microdata: &'a Microdata) -> Self {
        let d = microdata.quasi.len();
        let bits = (64 / d.max(1)).min(16) as u32;
        let spread = (0..d).into_par_iter().map(|j| {
            quantiles(microdata, j, bits).into_iter().map(|quantile| spread_bits(quantile, bits, j, d)).collect()
        });
        Self { microdata, spread: spread.collect() }
    }

    fn key(&self, row: u32) -> u64 {
        let spread = self.microdata.quasi_of(row).iter().zip(&self.spread);
        spread.fold(0, |key, (&code, spread)| key | spread[code as usize])
    }
}

/// For each code of an attribute, the share of rows below its middle, in `0..2^bits`.
fn quantiles(microdata: &Microdata, attribute: usize, bits: u32) -> Vec<u64> {
    let d = microdata.quasi.len();
    let mut counts = vec![0_u64; microdata.quasi[attribute].domain.len()];
    for &code in microdata.quasi_codes.iter().skip(attribute).step_by(d) {
        counts[code as usize] += 1;
    }
    let rows = microdata.rows as u64;
    let mut below = 0;
    for count in &mut counts {
        let middle = 2 * below + *count;
        below += *count;
        *count = ((middle << bits) / (2 * rows).max(1)).min((1 << bits) - 1);
    }
    counts
}

fn spread_bits(quantile: u64, bits: u32, attribute: usize, attributes: usize) -> u64 {
    (0..bits).filter(|bit| quantile >> bit & 1 == 1).fold(0, |key, bit| {
        // Level 0 holds the most significant bits of all attributes.
        let level = (bits - 1 - bit) as usize;
        match 63_usize.checked_sub(level * attributes + attribute) {
            Some(place) => key | 1 << place,
            None => key,
        }
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    #[test]
    fn takes_rows_at_even_distances() {
        let mut line = Line::new((0..8).map(|row| (u64::from(7 - row), row)).collect());
        let mut rows = Vec::new();
        line.take(4, 0.25, |row| rows.push(row));
        // Along the curve the rows stand as 7, 6, .., 0; places 2, 4, 6 and 0.
        assert_eq!(rows, [5, 3, 1, 7]);
    }

    #[test]
    fn takes_every_row_once() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let mut line = Line::new((0..500).map(|row| (rng.random_range(0..100), row)).collect());
        let mut rows = Vec::new();
        for count in [1, 20, 79, 0, 300, 100] {
            line.take(count, rng.random(), |row| rows.push(row));
        }
        rows.sort_unstable();
        assert_eq!(rows, (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn bits_of_the_attributes_alternate() {
        assert_eq!(spread_bits(0b10, 2, 0, 2), 1 << 63);
        assert_eq!(spread_bits(0b10, 2, 1, 2), 1 << 62);
        assert_eq!(spread_bits(0b01, 2, 0, 2), 1 << 61);
    }
}
