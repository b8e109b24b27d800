//! A random query: ranges of some attributes.

use rand::Rng;
use rand::seq::index::sample;

use super::{Aggregate, Axis, Workload};

/// Ranges of attributes, by their number: both ends included.
#[derive(Debug)]
pub(super) struct Query {
    pub ranges: Vec<(usize, f64, f64)>,
}

impl Query {
    pub(super) fn draw(workload: &Workload, axes: &[Axis], sensitive: bool, rng: &mut impl Rng) -> Self {
        let quasi = axes.len() - usize::from(sensitive);
        let wanted = workload.predicates.unwrap_or(quasi).min(quasi);
        let mut attributes = if wanted < quasi { sample(rng, quasi, wanted).into_vec() } else { (0..quasi).collect() };
        if sensitive && workload.aggregate == Aggregate::Count {
            attributes.push(quasi);
        }
        let share = workload.selectivity.powf(1.0 / attributes.len().max(1) as f64);
        let range = |attribute: usize| {
            let (lo, hi) = axes[attribute].range(share, rng);
            (attribute, lo, hi)
        };
        Self { ranges: attributes.into_iter().map(range).collect() }
    }
}

impl Axis {
    /// Returns a random part of the domain of this share of its length.
    fn range(&self, share: f64, rng: &mut impl Rng) -> (f64, f64) {
        let (Some(&first), Some(&last)) = (self.places.first(), self.places.last()) else { return (0.0, 0.0) };
        if !self.counted {
            let length = (last - first) * share;
            let lo = first + (last - first - length) * rng.random::<f64>();
            return (lo, lo + length);
        }
        // So many values that occur, one after the other.
        let all = self.places.len();
        let length = ((all as f64 * share).round() as usize).clamp(1, all);
        let lo = rng.random_range(0..=all - length);
        (self.places[lo], self.places[lo + length - 1])
    }

    /// Returns the values in a range, as the first and the one after the last.
    pub(super) fn codes(&self, lo: f64, hi: f64) -> (usize, usize) {
        let first = self.places.partition_point(|&place| place < lo);
        (first, self.places.partition_point(|&place| place <= hi).max(first))
    }
}
