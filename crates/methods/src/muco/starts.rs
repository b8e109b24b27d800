//! Begins programs on a line at the optimum for values at equal distances.
//!
//! Which covers make a table depends on how many rows each value has, not on where it lies. Of ten people who all differ in an attribute there are as
//! many programs as there are groups, but one such set of covers. So it is looked for once, at equal distances, and from there an optimum for other
//! distances is few pivots away, often none: a tenth of those from blocks of neighbours, which leave most of a basis to covers that are not used.
//! What is not remembered is computed again, so that it makes no difference which thread came first.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::program::{Basis, Program};

/// Bytes of bases that are remembered.
pub(super) const REMEMBERED: usize = 16 << 20;

/// Bases by the rows of each value; none where a program has none.
pub(super) struct Starts {
    cover: f64,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    bases: FxHashMap<Box<[u32]>, Option<Arc<Basis>>>,
    bytes: usize,
}

impl Starts {
    pub(super) fn new(cover: f64) -> Self {
        Self { cover, known: RwLock::default() }
    }

    /// Returns the basis for these rows. The same whenever it is asked.
    pub(super) fn of(&self, weights: &[u32]) -> Option<Arc<Basis>> {
        let known = || self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(basis) = known().bases.get(weights) {
            return basis.clone();
        }
        let basis = at_equal_distances(weights, self.cover).map(Arc::new);
        let bytes = basis.as_ref().map_or(0, |basis| basis.size()) + size_of_val(weights) + size_of::<[usize; 3]>();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.bytes + bytes <= REMEMBERED && !known.bases.contains_key(weights) {
            known.bytes += bytes;
            known.bases.insert(weights.into(), basis.clone());
        }
        basis
    }
}

fn at_equal_distances(weights: &[u32], cover: f64) -> Option<Basis> {
    let d = weights.len();
    let farthest = d.saturating_sub(1).max(1) as f64;
    let distances: Vec<f64> = (0..d * d).map(|at| (at / d).abs_diff(at % d) as f64 / farthest).collect();
    Program { weights, distances: &distances, line: true, cover }.optimal()
}
