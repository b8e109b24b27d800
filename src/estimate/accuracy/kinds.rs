//! Groups that are alike: their share of a query's range is worked out once for all of them, for all queries of a batch side by side.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::BATCH;

/// Most kinds: their shares for a batch of queries stay in a core's cache, about.
const MOST: usize = 1 << 14;

/// A number for each query of a batch.
pub(super) type Lanes = [f64; BATCH];

/// The first group of each kind, and the kind of each group, if kinds are few; `alike` tells two kinds apart.
pub(super) fn kinds<K: Hash + Eq>(groups: usize, alike: impl Fn(usize) -> K) -> Option<(Vec<u32>, Vec<u32>)> {
    let most = MOST.min(groups / 2);
    let mut known: FxHashMap<K, u32> = FxHashMap::default();
    let (mut first, mut of) = (Vec::new(), Vec::with_capacity(groups));
    for group in 0..groups {
        let next = first.len() as u32;
        let kind = *known.entry(alike(group)).or_insert(next);
        if kind == next {
            first.push(group as u32);
        }
        if first.len() > most {
            return None;
        }
        of.push(kind);
    }
    Some((first, of))
}

/// Shares of the kinds of groups, for a batch of queries.
pub(super) struct Shares<'a> {
    pub kinds: &'a [u32],
    pub of: Vec<Lanes>,
}

impl<'a> Shares<'a> {
    /// Shares of all, until queries have [`set`](Self::set) theirs.
    pub(super) fn whole(kinds: &'a [u32], number: usize) -> Self {
        Self { kinds, of: vec![[1.0; BATCH]; number] }
    }

    /// The shares of a query.
    pub(super) fn set(&mut self, query: usize, shares: impl Iterator<Item = f64>) {
        self.of.iter_mut().zip(shares).for_each(|(lanes, share)| lanes[query] = share);
    }
}

/// Adds up the weights of groups, from this one on, each multiplied by its shares.
pub(super) fn add_up(weights: &[Lanes], first: usize, all: &[Shares<'_>], sums: &mut Lanes) {
    for (group, weights) in (first..).zip(weights) {
        let mut product = *weights;
        for shares in all {
            let of = &shares.of[shares.kinds[group] as usize];
            product.iter_mut().zip(of).for_each(|(product, share)| *product *= share);
        }
        sums.iter_mut().zip(&product).for_each(|(sum, product)| *sum += product);
    }
}
