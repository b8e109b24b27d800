//! Snapshots of people who come and leave (m-invariance, Section 5): the first holds a third of all people; then, at each release, as many
//! leave as others come, until nobody is left to come.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Shares of the first snapshot that come and leave at a release: of 200,000, 5,000 to 40,000.
pub(super) const VOLUMES: [f64; 5] = [0.025, 0.05, 0.1, 0.15, 0.2];

#[derive(Debug)]
pub(super) struct Series {
    present: Vec<u32>,
    /// People who have not come yet.
    waiting: std::ops::Range<u32>,
    volume: usize,
    rng: ChaCha8Rng,
}

impl Series {
    /// Begins with so many people, in random order. `volume` is a share of the first snapshot.
    pub(super) fn new(people: usize, volume: f64, seed: u64) -> Self {
        let first = people / 3;
        let volume = size(people, volume);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut present: Vec<u32> = (0..first as u32).collect();
        present.shuffle(&mut rng);
        Self { present, waiting: first as u32..people as u32, volume, rng }
    }

    /// Places of those who are there.
    pub(super) fn present(&self) -> &[u32] {
        &self.present
    }

    /// Returns the next snapshot, if there are people for it.
    pub(super) fn advance(&mut self) -> bool {
        if self.waiting.len() < self.volume {
            return false;
        }
        // Those who leave are drawn to the end.
        self.present.partial_shuffle(&mut self.rng, self.volume);
        let staying = self.present.len() - self.volume;
        self.present.truncate(staying);
        self.present.extend(self.waiting.by_ref().take(self.volume));
        true
    }
}

/// Returns the number of people in a share of the first snapshot.
pub(super) fn size(people: usize, volume: f64) -> usize {
    ((people / 3) as f64 * volume).round().max(1.0) as usize
}

/// Returns the snapshots of a series.
pub(super) fn releases(people: usize, volume: f64) -> u64 {
    1 + ((people - people / 3) / size(people, volume)) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn as_many_come_as_leave_and_nobody_returns() {
        for volume in VOLUMES {
            let mut series = Series::new(6_000, volume, 1);
            let mut seen: BTreeSet<u32> = series.present().iter().copied().collect();
            let mut before = seen.clone();
            let mut number = 1;
            while series.advance() {
                let now: BTreeSet<u32> = series.present().iter().copied().collect();
                assert_eq!(now.len(), 2_000);
                assert_eq!(before.difference(&now).count(), size(6_000, volume));
                assert!(now.difference(&before).all(|newcomer| seen.insert(*newcomer)));
                before = now;
                number += 1;
            }
            assert_eq!(number, releases(6_000, volume));
        }
        assert_eq!(VOLUMES.map(|volume| releases(600_000, volume)), [81, 41, 21, 14, 11]);
    }
}
