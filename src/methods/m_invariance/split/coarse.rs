//! Large buckets: halved at the medians.

use super::{Space, fine, mix, rows_among};
use crate::methods::Monitor;

/// Buckets up to this height are split by the paper's full search.
const FINE_HEIGHT: usize = 64;
/// Buckets with fewer members are not worth another thread.
const PARALLEL_FROM: usize = 4096;

/// A bucket, or a part of one, on its way to groups.
pub(super) struct Node {
    /// Rows of each value.
    lists: Vec<Vec<u32>>,
    /// Rows and counterfeits of each value.
    height: usize,
    /// Decides where counterfeits stand.
    secret: u64,
}

impl Node {
    pub(super) fn new<'a>(lists: impl Iterator<Item = &'a [u32]>, height: usize, secret: u64) -> Self {
        Self { lists: lists.map(<[u32]>::to_vec).collect(), height, secret }
    }

    /// How many rows of each list fall to the first `k` groups.
    fn rows_among_first(&self, k: usize) -> Vec<usize> {
        let offset = |list: usize| (mix(self.secret, list as u64) % self.height as u64) as usize;
        let lists = self.lists.iter().enumerate();
        lists.map(|(list, rows)| rows_among(k, self.height, rows.len(), offset(list))).collect()
    }
}

/// Splits a node into groups; group `g` of `s` members goes to `members[g * s..][..s]`.
pub(super) fn split(space: &Space<'_>, node: Node, members: &mut [u32], monitor: &Monitor) {
    if monitor.is_cancelled() {
        return;
    }
    if node.height <= FINE_HEIGHT {
        fine::split(space, &node.lists, node.height, node.secret, members);
        return;
    }
    let size = node.lists.len();
    let k = node.height / 2;
    let (left, right) = halve(space, node, k);
    let (members_left, members_right) = members.split_at_mut(k * size);
    if members_left.len() >= PARALLEL_FROM {
        rayon::join(
            || split(space, left, members_left, monitor),
            || split(space, right, members_right, monitor),
        );
    } else {
        split(space, left, members_left, monitor);
        split(space, right, members_right, monitor);
    }
}

/// Cuts every list at its median of the attribute whose interval shrinks most by it.
fn halve(space: &Space<'_>, node: Node, k: usize) -> (Node, Node) {
    let cuts = node.rows_among_first(k);
    let mut keys: Vec<Vec<u64>> = node.lists.iter().map(|list| Vec::with_capacity(list.len())).collect();
    let mut best: Option<(f32, usize, Vec<Vec<u64>>)> = None;
    for attribute in 0..space.dimensions() {
        // Code and row in one number: rows with equal codes are told apart the same way every time.
        for (keys, list) in keys.iter_mut().zip(&node.lists) {
            keys.clear();
            keys.extend(list.iter().map(|&row| u64::from(space.code(attribute, row)) << 32 | u64::from(row)));
        }
        let ([mut low_min, mut low_max], [mut high_min, mut high_max]) = ([u32::MAX, 0], [u32::MAX, 0]);
        for (keys, &cut) in keys.iter_mut().zip(&cuts) {
            if 0 < cut && cut < keys.len() {
                keys.select_nth_unstable(cut);
            }
            let (low, high) = keys.split_at(cut);
            for code in low.iter().map(|key| (key >> 32) as u32) {
                (low_min, low_max) = (low_min.min(code), low_max.max(code));
            }
            for code in high.iter().map(|key| (key >> 32) as u32) {
                (high_min, high_max) = (high_min.min(code), high_max.max(code));
            }
        }
        let whole = space.extent(attribute, [low_min.min(high_min), low_max.max(high_max)]);
        let share = k as f32 / node.height as f32;
        let low = space.extent(attribute, [low_min, low_max]);
        let high = space.extent(attribute, [high_min, high_max]);
        let gain = whole - share * low - (1.0 - share) * high;
        match &mut best {
            Some((best_gain, best_attribute, best_keys)) if gain > *best_gain => {
                (*best_gain, *best_attribute) = (gain, attribute);
                std::mem::swap(best_keys, &mut keys);
            }
            Some(_) => {}
            None => {
                let empty = node.lists.iter().map(|list| Vec::with_capacity(list.len())).collect();
                best = Some((gain, attribute, std::mem::replace(&mut keys, empty)));
            }
        }
    }
    let keys = best.map(|(_, _, keys)| keys).unwrap_or_default();
    let side = |of: &dyn Fn(usize) -> std::ops::Range<usize>| -> Vec<Vec<u32>> {
        keys.iter().enumerate().map(|(list, keys)| keys[of(list)].iter().map(|&key| key as u32).collect()).collect()
    };
    let left = side(&|list| 0..cuts[list]);
    let right = side(&|list| cuts[list]..keys[list].len());
    (
        Node { lists: left, height: k, secret: mix(node.secret, u64::MAX) },
        Node { lists: right, height: node.height - k, secret: mix(node.secret, u64::MAX - 1) },
    )
}
