//! Groups that are alike: their share of a query's range is worked out once for all of them, for all queries of a batch side by side.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::BATCH;

/// Most kinds: their shares for a batch of queries stay in a core's cache, about.
const MOST: usize = 1 << 14;
/// Most kinds of several columns together: their shares take an eighth of it, and are worked out in no time beside those of groups.
const FEW: usize = 1 << 11;

/// A number for each query of a batch.
pub(super) type Lanes = [f64; BATCH];

/// Returns the first group of each kind, and each group's kind, if kinds are few. `alike` tells two kinds apart.
pub(super) fn kinds<K: Hash + Eq>(groups: usize, alike: impl Fn(usize) -> K) -> Option<(Vec<u32>, Vec<u32>)> {
    kinds_up_to(MOST, groups, alike)
}

fn kinds_up_to<K: Hash + Eq>(most: usize, groups: usize, alike: impl Fn(usize) -> K) -> Option<(Vec<u32>, Vec<u32>)> {
    let most = most.min(groups / 2);
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
    /// Begins with shares of all, until queries have [`set`](Self::set) theirs.
    pub(super) fn whole(kinds: &'a [u32], number: usize) -> Self {
        Self { kinds, of: vec![[1.0; BATCH]; number] }
    }

    /// Sets the shares of a query.
    pub(super) fn set(&mut self, query: usize, shares: impl Iterator<Item = f64>) {
        self.of.iter_mut().zip(shares).for_each(|(lanes, share)| lanes[query] = share);
    }
}

/// Columns whose shares are multiplied for kinds of groups, and not for each group: groups that are alike in all of them are of one kind.
#[derive(Debug)]
pub(super) struct Joint {
    /// Columns that have kinds.
    columns: Vec<usize>,
    /// The first group of each kind, and the kind of each group; those of the column if it is alone.
    kinds: Option<(Vec<u32>, Vec<u32>)>,
}

/// Joins columns as long as they have few kinds together, those of fewest kinds first. Given are the kinds of each group by each column, and how
/// many there are.
pub(super) fn join(columns: &[(&[u32], usize)]) -> Vec<Joint> {
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|&column| columns[column].1);
    let mut joints: Vec<Joint> = Vec::new();
    for column in order {
        let of_column = columns[column].0;
        let joined = joints.last().and_then(|last| {
            let of_last = last.kinds.as_ref().map_or(columns[last.columns[0]].0, |(_, kinds)| kinds);
            kinds_up_to(FEW, of_column.len(), |group| (of_last[group], of_column[group]))
        });
        match (joined, joints.last_mut()) {
            (Some(kinds), Some(last)) => {
                last.columns.push(column);
                last.kinds = Some(kinds);
            }
            _ => joints.push(Joint { columns: vec![column], kinds: None }),
        }
    }
    joints
}

impl Joint {
    /// Returns the shares of its columns, multiplied; `all` are those of all columns.
    pub(super) fn shares<'a>(&'a self, all: &mut [Option<Shares<'a>>]) -> Option<Shares<'a>> {
        let mut shares = self.columns.iter().filter_map(|&column| all[column].take());
        let Some((first, kinds)) = &self.kinds else { return shares.next() };
        let mut joint = Shares::whole(kinds, first.len());
        for shares in shares {
            for (product, &group) in joint.of.iter_mut().zip(first) {
                multiply(product, &shares.of[shares.kinds[group as usize] as usize]);
            }
        }
        Some(joint)
    }
}

fn multiply(product: &mut Lanes, shares: &Lanes) {
    product.iter_mut().zip(shares).for_each(|(product, share)| *product *= share);
}

/// Adds up the weights of groups, from this one on, each multiplied by its shares.
pub(super) fn add_up(weights: &[Lanes], first: usize, all: &[Shares<'_>], sums: &mut Lanes) {
    for (group, weights) in (first..).zip(weights) {
        let mut product = *weights;
        all.iter().for_each(|shares| multiply(&mut product, &shares.of[shares.kinds[group] as usize]));
        sums.iter_mut().zip(&product).for_each(|(sum, product)| *sum += product);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Joined or not, products are those of all columns.
        #[test]
        fn joined_shares_are_products(
            columns in (1_usize..5, 2_usize..60).prop_flat_map(|(columns, groups)| {
                prop::collection::vec(prop::collection::vec(0_u32..4, groups), columns)
            }),
        ) {
            let number = 4;
            let shares = || columns.iter().enumerate().map(|(column, kinds)| {
                let mut shares = Shares::whole(kinds, number);
                let primes = [3.0, 5.0, 7.0, 11.0];
                shares.set(0, (0..number).map(|kind| f64::powi(primes[column], kind as i32)));
                shares
            });
            let told: Vec<(&[u32], usize)> = columns.iter().map(|kinds| (kinds.as_slice(), number)).collect();
            let joints = join(&told);
            let mut all: Vec<Option<Shares<'_>>> = shares().map(Some).collect();
            let joined: Vec<Shares<'_>> = joints.iter().filter_map(|joint| joint.shares(&mut all)).collect();
            prop_assert!(all.iter().all(Option::is_none), "a column is left out");
            let apart: Vec<Shares<'_>> = shares().collect();
            for group in 0..columns[0].len() {
                let (mut one, mut other) = ([0.0; BATCH], [0.0; BATCH]);
                add_up(&[[1.0; BATCH]], group, &joined, &mut one);
                add_up(&[[1.0; BATCH]], group, &apart, &mut other);
                prop_assert_eq!(one, other);
            }
        }
    }
}
