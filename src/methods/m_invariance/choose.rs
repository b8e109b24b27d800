//! Phase 3, the rows: which rows of a value go into which bucket.
//!
//! The paper draws them at random. Here the rows of each value stand along one space-filling curve over the quasi-identifiers
//! (Morton order of quantiles), a bucket's scarcest value takes a run of rows from a random place on it, and the other
//! values take the nearest rows that are left. Rows of a bucket then lie close together, and its groups are tight. The
//! choice does not look at who a row is, so it changes nothing about the guarantee.

use rand::Rng;
use rayon::prelude::*;

use super::assign::Step;
use super::division::Division;
use crate::error::Result;
use crate::microdata::{Attribute, Microdata};
use crate::release::COUNTERFEIT;

/// Steps of fewer rows are not worth other threads.
const PARALLEL_FROM: usize = 4096;

/// Puts all new rows, and as many counterfeits of each value as `padding` says, into buckets.
pub(super) fn assign(
    microdata: &Microdata,
    division: &mut Division,
    steps: &[Step],
    padding: &[usize],
    rng: &mut impl Rng,
) -> Result<()> {
    let curve = Curve::new(&microdata.quasi);
    let padding_keys: Vec<Vec<u64>> =
        padding.iter().map(|&count| (0..count).map(|_| rng.random()).collect()).collect();
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
        for row in take_step(&mut lines, step, rng) {
            if row != COUNTERFEIT {
                division.bucket_of[row as usize] = bucket;
            }
        }
    }
    Ok(())
}

fn take_step(lines: &mut [Line], step: &Step, rng: &mut impl Rng) -> Vec<u32> {
    // The signature's values ascend, so their lines can be borrowed together.
    let mut rest = lines;
    let mut offset = 0;
    let mut chosen = Vec::with_capacity(step.signature.len());
    for &value in &step.signature {
        let (line, after) = rest[value as usize - offset..].split_first_mut().unwrap_or_else(|| unreachable!());
        chosen.push(line);
        rest = after;
        offset = value as usize + 1;
    }
    let scarcest = (0..chosen.len()).min_by_key(|&i| chosen[i].left).unwrap_or(0);
    let mut rows = Vec::with_capacity(step.rows * chosen.len());
    let anchors = chosen.swap_remove(scarcest).take_run(step.rows, rng, &mut rows);
    if step.rows < PARALLEL_FROM {
        for line in chosen {
            line.take_near(&anchors, &mut rows);
        }
    } else {
        let taken: Vec<Vec<u32>> = chosen
            .into_par_iter()
            .map(|line| {
                let mut rows = Vec::with_capacity(step.rows);
                line.take_near(&anchors, &mut rows);
                rows
            })
            .collect();
        rows.extend(taken.into_iter().flatten());
    }
    rows
}

/// Rows of one value along the curve. Taken ones are skipped through links that are shortened as they are followed, so any
/// sequence of takes costs nearly linear time.
struct Line {
    rows: Vec<(u64, u32)>,
    /// `next[i]`: some place at or after `i`, with nothing left in between; `i` itself if it is left.
    next: Vec<u32>,
    /// The same backwards, shifted by one: `before[i + 1]` for place `i`, and 0 for "nothing left before".
    before: Vec<u32>,
    left: usize,
}

impl Line {
    fn new(mut rows: Vec<(u64, u32)>) -> Self {
        // Rows that tie on the curve stay in the order of the keyed hash.
        rows.par_sort_by_key(|&(key, _)| key);
        let n = rows.len() as u32;
        Self { left: rows.len(), next: (0..=n).collect(), before: (0..=n).collect(), rows }
    }

    fn take(&mut self, place: usize) -> u32 {
        self.next[place] = place as u32 + 1;
        self.before[place + 1] = place as u32;
        self.left -= 1;
        self.rows[place].1
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

    /// The last place left before this one.
    fn before(&mut self, mut place: usize) -> Option<usize> {
        while self.before[place] as usize != place {
            let before = self.before[place] as usize;
            self.before[place] = self.before[before];
            place = before;
        }
        place.checked_sub(1)
    }

    /// Takes consecutive rows from a random place on, around the end if need be, and returns their keys in order.
    fn take_run(&mut self, count: usize, rng: &mut impl Rng, rows: &mut Vec<u32>) -> Vec<u64> {
        let mut keys = Vec::with_capacity(count);
        let mut place = if self.left == count { 0 } else { rng.random_range(0..self.rows.len()) };
        while keys.len() < count {
            place = self.at_or_after(place);
            if place == self.rows.len() {
                place = 0;
                continue;
            }
            keys.push(self.rows[place].0);
            rows.push(self.take(place));
        }
        keys.sort_unstable();
        keys
    }

    /// Takes for each key the nearest row left.
    fn take_near(&mut self, keys: &[u64], rows: &mut Vec<u32>) {
        let mut from = 0;
        for &key in keys {
            from = gallop(&self.rows, from, key);
            let after = self.at_or_after(from);
            let before = self.before(from);
            let place = match before {
                None => after,
                Some(before) if after == self.rows.len() => before,
                Some(before) if key - self.rows[before].0 <= self.rows[after].0 - key => before,
                Some(_) => after,
            };
            rows.push(self.take(place));
        }
    }
}

/// First place from `from` on whose key is not below `key`, in steps that double.
fn gallop(rows: &[(u64, u32)], from: usize, key: u64) -> usize {
    let mut step = 1;
    let mut low = from;
    while low + step < rows.len() && rows[low + step].0 < key {
        low += step;
        step *= 2;
    }
    let high = (low + step + 1).min(rows.len());
    low + rows[low..high].partition_point(|row| row.0 < key)
}

/// Morton order: the bits of the attributes' quantiles interleaved, most significant first.
struct Curve<'a> {
    attributes: &'a [Attribute],
    /// For each attribute and code, the code's quantile with its bits spread to their places in the key.
    spread: Vec<Vec<u64>>,
}

impl<'a> Curve<'a> {
    fn new(attributes: &'a [Attribute]) -> Self {
        let d = attributes.len();
        let bits = (64 / d.max(1)).min(16) as u32;
        let spread = attributes
            .par_iter()
            .enumerate()
            .map(|(j, attribute)| {
                quantiles(attribute, bits).into_iter().map(|quantile| spread_bits(quantile, bits, j, d)).collect()
            })
            .collect();
        Self { attributes, spread }
    }

    fn key(&self, row: u32) -> u64 {
        let spread = self.attributes.iter().zip(&self.spread);
        spread.fold(0, |key, (attribute, spread)| key | spread[attribute.codes[row as usize] as usize])
    }
}

/// For each code, the share of rows below its middle, in `0..2^bits`.
fn quantiles(attribute: &Attribute, bits: u32) -> Vec<u64> {
    let mut counts = vec![0_u64; attribute.domain.len()];
    for &code in &attribute.codes {
        counts[code as usize] += 1;
    }
    let rows = attribute.codes.len() as u64;
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

    fn line(keys: &[u64]) -> Line {
        Line::new(keys.iter().enumerate().map(|(row, &key)| (key, row as u32)).collect())
    }

    #[test]
    fn takes_the_nearest_row_left() {
        let mut line = line(&[10, 20, 30, 40]);
        let mut rows = Vec::new();
        line.take_near(&[19, 21, 22], &mut rows);
        assert_eq!(rows, [1, 2, 0]);
        line.take_near(&[0], &mut rows);
        assert_eq!(rows, [1, 2, 0, 3]);
        assert_eq!(line.left, 0);
    }

    #[test]
    fn takes_every_row_once() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let keys: Vec<u64> = (0..500).map(|_| rng.random_range(0..100)).collect();
        let mut line = line(&keys);
        let mut rows = Vec::new();
        for count in [1, 20, 79, 100] {
            let anchors = line.take_run(count, &mut rng, &mut rows);
            line.take_near(&anchors, &mut rows);
        }
        line.take_run(100, &mut rng, &mut rows);
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
