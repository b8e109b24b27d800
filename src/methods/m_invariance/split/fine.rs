//! Small buckets: the paper's full search over attributes and places.

use super::{Space, mix, rows_among};
use crate::release::COUNTERFEIT;

/// Splits lists of rows, `height` places each, into groups.
pub(super) fn split(space: &Space<'_>, lists: &[Vec<u32>], height: usize, secret: u64, members: &mut [u32]) {
    let bucket = Bucket::new(space, lists);
    let mut first = 0;
    let local = lists.iter().map(|list| {
        first += list.len() as u32;
        (first - list.len() as u32..first).collect()
    });
    let node = Node { lists: local.collect(), height, secret };
    bucket.split(node, members, &mut Scratch::default());
}

/// A bucket copied together: row `i` has the codes `codes[i * d..][..d]`.
struct Bucket<'a> {
    space: &'a Space<'a>,
    d: usize,
    rows: Vec<u32>,
    codes: Vec<u32>,
}

/// Part of a bucket: local numbers of rows by value.
struct Node {
    lists: Vec<Vec<u32>>,
    height: usize,
    secret: u64,
}

/// A way to cut a node: the first `k` places of every list, in the order of one attribute.
struct Cut {
    cost: f32,
    k: usize,
    /// Code and local row of every list, sorted.
    sorted: Vec<Vec<u64>>,
}

#[derive(Default)]
struct Scratch {
    costs: Vec<f32>,
    intervals: Vec<[u32; 2]>,
}

impl<'a> Bucket<'a> {
    fn new(space: &'a Space<'a>, lists: &[Vec<u32>]) -> Self {
        let d = space.dimensions();
        let rows: Vec<u32> = lists.concat();
        let codes = rows.iter().flat_map(|&row| (0..d).map(move |attribute| space.code(attribute, row))).collect();
        Self { space, d, rows, codes }
    }

    fn split(&self, node: Node, members: &mut [u32], scratch: &mut Scratch) {
        let size = node.lists.len();
        if node.height == 1 {
            for (member, list) in members.iter_mut().zip(&node.lists) {
                *member = list.first().map_or(COUNTERFEIT, |&row| self.rows[row as usize]);
            }
            return;
        }
        let offsets: Vec<usize> =
            (0..size).map(|list| (mix(node.secret, list as u64) % node.height as u64) as usize).collect();
        let rows_among = |k: usize, list: usize| rows_among(k, node.height, node.lists[list].len(), offsets[list]);
        let cut = self.best_cut(&node, &rows_among, scratch);
        let side = |of: &dyn Fn(usize) -> std::ops::Range<usize>| -> Vec<Vec<u32>> {
            let lists = cut.sorted.iter().enumerate();
            lists.map(|(list, keys)| keys[of(list)].iter().map(|&key| key as u32).collect()).collect()
        };
        let left = side(&|list| 0..rows_among(cut.k, list));
        let right = side(&|list| rows_among(cut.k, list)..cut.sorted[list].len());
        let (members_left, members_right) = members.split_at_mut(cut.k * size);
        let left = Node { lists: left, height: cut.k, secret: mix(node.secret, u64::MAX) };
        let right = Node { lists: right, height: node.height - cut.k, secret: mix(node.secret, u64::MAX - 1) };
        self.split(left, members_left, scratch);
        self.split(right, members_right, scratch);
    }

    fn best_cut(&self, node: &Node, rows_among: &impl Fn(usize, usize) -> usize, scratch: &mut Scratch) -> Cut {
        let mut best: Option<Cut> = None;
        for attribute in 0..self.d {
            let sorted: Vec<Vec<u64>> = node.lists.iter().map(|list| self.sort(list, attribute)).collect();
            let constant = self.is_constant(&sorted);
            if constant && (best.is_some() || attribute + 1 < self.d) {
                continue;
            }
            let (k, cost) = self.best_place(node, &sorted, rows_among, scratch);
            if best.as_ref().is_none_or(|best| cost < best.cost) {
                best = Some(Cut { cost, k, sorted });
            }
        }
        best.unwrap_or_else(|| unreachable!("the last attribute is tried if no other was"))
    }

    fn sort(&self, list: &[u32], attribute: usize) -> Vec<u64> {
        let code = |row: u32| self.codes[row as usize * self.d + attribute];
        let mut keys: Vec<u64> = list.iter().map(|&row| u64::from(code(row)) << 32 | u64::from(row)).collect();
        keys.sort_unstable();
        keys
    }

    fn is_constant(&self, sorted: &[Vec<u64>]) -> bool {
        let ends = || sorted.iter().filter_map(|keys| Some((keys.first()? >> 32, keys.last()? >> 32)));
        ends().map(|(first, _)| first).min() == ends().map(|(_, last)| last).max()
    }

    /// The place that costs least, and what it costs.
    fn best_place(
        &self,
        node: &Node,
        sorted: &[Vec<u64>],
        rows_among: &impl Fn(usize, usize) -> usize,
        scratch: &mut Scratch,
    ) -> (usize, f32) {
        let h = node.height;
        let Scratch { costs, intervals } = scratch;
        costs.clear();
        costs.resize(h, 0.0);
        intervals.clear();
        intervals.resize(self.d, [u32::MAX, 0]);
        for k in 1..h {
            for (list, keys) in sorted.iter().enumerate() {
                for &key in &keys[rows_among(k - 1, list)..rows_among(k, list)] {
                    self.widen(intervals, key as u32);
                }
            }
            costs[k] = k as f32 * self.extents(intervals);
        }
        intervals.fill([u32::MAX, 0]);
        for k in (1..h).rev() {
            for (list, keys) in sorted.iter().enumerate() {
                for &key in &keys[rows_among(k, list)..rows_among(k + 1, list)] {
                    self.widen(intervals, key as u32);
                }
            }
            costs[k] += (h - k) as f32 * self.extents(intervals);
        }
        let best = (1..h).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(1);
        (best, costs[best])
    }

    #[inline]
    fn widen(&self, intervals: &mut [[u32; 2]], row: u32) {
        let codes = &self.codes[row as usize * self.d..][..self.d];
        for ([lo, hi], &code) in intervals.iter_mut().zip(codes) {
            *lo = code.min(*lo);
            *hi = code.max(*hi);
        }
    }

    fn extents(&self, intervals: &[[u32; 2]]) -> f32 {
        intervals.iter().enumerate().map(|(attribute, &interval)| self.space.extent(attribute, interval)).sum()
    }
}
