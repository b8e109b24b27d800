//! Buckets in which a value occurs in several entries: every group takes one row of each entry, all values different.
//!
//! Entries and values are the two sides of a bipartite multigraph whose edges are the rows. No vertex has more edges than the
//! bucket is high, so by König's theorem it is the union of as many matchings, which are the groups. The paper searches for
//! them, at exponential cost; here the bucket is halved until it is one group high, and of no vertex more edges go to a half
//! than that is high. A half begins as a cut along a quasi-identifier, as in [`methods::split`](crate::methods::split); where a
//! value has too many rows on one side, rows change sides along the shortest alternating path, which König's theorem says is
//! there. Parts in which no value occurs in two entries are left to the sorted split.

use crate::methods::Monitor;
use crate::methods::extent::Extent;
use crate::methods::split::{Item, Node, PARALLEL_FROM, Sorted, Splitter, best_attribute, rows_among};
use crate::microdata::Microdata;

/// Up to this height all places to cut are tried, above it the middle.
const SEARCH_HEIGHT: usize = 16;
/// Above this height the attribute is chosen by a sample.
const SAMPLE_HEIGHT: usize = 256;

/// Splits buckets so that the values of a group are different.
pub(super) struct Decompose;

impl Splitter for Decompose {
    fn split<const W: usize>(
        &self,
        microdata: &Microdata,
        bucket: usize,
        mut node: Node<'_, W>,
        members: &mut [u32],
        monitor: &Monitor,
    ) {
        if monitor.is_cancelled() {
            return;
        }
        if node.height <= 1 || !shares_values(microdata, &node) {
            return Sorted.split(microdata, bucket, node, members, monitor);
        }
        let (attribute, k) = best_cut(microdata.quasi.len(), &mut node);
        let cuts = cut(microdata, &mut node, attribute, k);
        let size = node.lists.len();
        let (mut left, mut right) = (Vec::with_capacity(size), Vec::with_capacity(size));
        for (list, cut) in node.lists.into_iter().zip(cuts) {
            let (low, high) = list.split_at_mut(cut);
            left.push(low);
            right.push(high);
        }
        let [first, second] = node.secret.halves();
        let left = Node { lists: left, height: k, secret: first };
        let right = Node { lists: right, height: node.height - k, secret: second };
        let (members_left, members_right) = members.split_at_mut(k * size);
        if members_left.len() >= PARALLEL_FROM {
            rayon::join(
                || self.split(microdata, bucket, left, members_left, monitor),
                || self.split(microdata, bucket, right, members_right, monitor),
            );
        } else {
            self.split(microdata, bucket, left, members_left, monitor);
            self.split(microdata, bucket, right, members_right, monitor);
        }
    }
}

/// Whether a value occurs in two lists.
fn shares_values<const W: usize>(microdata: &Microdata, node: &Node<'_, W>) -> bool {
    let lists = node.lists.iter().enumerate();
    let mut values: Vec<(u32, u32)> = lists
        .flat_map(|(list, items)| {
            items.iter().map(move |item| (microdata.sensitive_codes[item.row as usize], list as u32))
        })
        .collect();
    values.sort_unstable();
    values.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1)
}

/// How many rows of a list are to go left.
fn share<const W: usize>(node: &Node<'_, W>, list: usize, k: usize) -> usize {
    rows_among(k, node.height, node.lists[list].len(), node.secret.of_list(list, node.height))
}

fn sort<const W: usize>(list: &mut [Item<W>], attribute: usize) {
    list.sort_unstable_by(|a, b| a.at[attribute].total_cmp(&b.at[attribute]).then(a.row.cmp(&b.row)));
}

/// The attribute and the number of groups on the left that cost least, as if all rows went together.
fn best_cut<const W: usize>(d: usize, node: &mut Node<'_, W>) -> (usize, usize) {
    let h = node.height;
    if h > SAMPLE_HEIGHT {
        return (best_attribute(d, node), h / 2);
    }
    let mut best = (f32::INFINITY, 0, h / 2);
    for attribute in 0..d {
        node.lists.iter_mut().for_each(|list| sort(list, attribute));
        let places = if h <= SEARCH_HEIGHT { 1..h } else { h / 2..h / 2 + 1 };
        let mut before = vec![0.0; places.end];
        let around = |extent: &mut Extent<W>, from: usize, to: usize| {
            for list in 0..node.lists.len() {
                let range = share(node, list, from)..share(node, list, to);
                node.lists[list][range].iter().for_each(|item| extent.widen(&item.at));
            }
        };
        let mut extent = Extent::NONE;
        let mut done = 0;
        for k in places.clone() {
            around(&mut extent, done, k);
            before[k] = k as f32 * extent.lengths();
            done = k;
        }
        let mut extent = Extent::NONE;
        let mut done = h;
        for k in places.rev() {
            around(&mut extent, k, done);
            done = k;
            let cost = before[k] + (h - k) as f32 * extent.lengths();
            if cost < best.0 {
                best = (cost, attribute, k);
            }
        }
    }
    (best.1, best.2)
}

/// Reorders the lists so that the first so many rows of each are the left half, of which every value has at most `k`, and at
/// most as many as there are groups in the right one.
fn cut<const W: usize>(microdata: &Microdata, node: &mut Node<'_, W>, attribute: usize, k: usize) -> Vec<usize> {
    let cuts: Vec<usize> = (0..node.lists.len()).map(|list| share(node, list, k)).collect();
    node.lists.iter_mut().for_each(|list| sort(list, attribute));
    let mut halves = Halves::new(microdata, node, &cuts, k);
    if halves.is_balanced() {
        return cuts;
    }
    let before = halves.left.clone();
    halves.balance();
    let mut moved = Vec::with_capacity(cuts.len());
    for ((list, cut), (was, is)) in node.lists.iter_mut().zip(cuts).zip(before.iter().zip(&halves.left)) {
        moved.push(if was == is { cut } else { halves.reorder(microdata, list, cut, was, is) });
    }
    moved
}

/// Rows by entry and value on the two sides of a cut.
struct Halves {
    /// The values, ascending.
    values: Vec<u32>,
    /// `left[e][v]` rows of the entry with the value.
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    /// Groups on either side.
    heights: [usize; 2],
}

impl Halves {
    fn new<const W: usize>(microdata: &Microdata, node: &Node<'_, W>, cuts: &[usize], k: usize) -> Self {
        let code = |item: &Item<W>| microdata.sensitive_codes[item.row as usize];
        let mut values: Vec<u32> = node.lists.iter().flat_map(|list| list.iter().map(code)).collect();
        values.sort_unstable();
        values.dedup();
        let count = |items: &[Item<W>]| {
            let mut counts = vec![0; values.len()];
            items.iter().for_each(|item| counts[values.partition_point(|&value| value < code(item))] += 1);
            counts
        };
        let left = node.lists.iter().zip(cuts).map(|(list, &cut)| count(&list[..cut])).collect();
        let right = node.lists.iter().zip(cuts).map(|(list, &cut)| count(&list[cut..])).collect();
        Self { heights: [k, node.height - k], left, right, values }
    }

    fn is_balanced(&self) -> bool {
        let within = |side: &[Vec<usize>], height: usize| (0..self.values.len()).all(|v| degree(side, v) <= height);
        within(&self.left, self.heights[0]) && within(&self.right, self.heights[1])
    }

    fn balance(&mut self) {
        let [left, right] = self.heights;
        relieve(&mut self.left, &mut self.right, left, right);
        relieve(&mut self.right, &mut self.left, right, left);
    }

    /// Moves rows of a sorted list across the cut, those nearest to it, until its left side has as many of each value as `is`
    /// says. Returns where the cut is then.
    fn reorder<const W: usize>(
        &self,
        microdata: &Microdata,
        list: &mut [Item<W>],
        cut: usize,
        was: &[usize],
        is: &[usize],
    ) -> usize {
        let place =
            |item: &Item<W>| self.values.partition_point(|&value| value < microdata.sensitive_codes[item.row as usize]);
        let mut leaving: Vec<usize> = was.iter().zip(is).map(|(was, is)| was.saturating_sub(*is)).collect();
        let mut coming: Vec<usize> = was.iter().zip(is).map(|(was, is)| is.saturating_sub(*was)).collect();
        let mut goes_left: Vec<bool> = (0..list.len()).map(|i| i < cut).collect();
        for i in (0..cut).rev() {
            let leaves = &mut leaving[place(&list[i])];
            if *leaves > 0 {
                *leaves -= 1;
                goes_left[i] = false;
            }
        }
        for i in cut..list.len() {
            let comes = &mut coming[place(&list[i])];
            if *comes > 0 {
                *comes -= 1;
                goes_left[i] = true;
            }
        }
        let side =
            |left: bool| list.iter().zip(&goes_left).filter(move |(_, goes)| **goes == left).map(|(item, _)| *item);
        let reordered: Vec<Item<W>> = side(true).chain(side(false)).collect();
        list.copy_from_slice(&reordered);
        is.iter().sum()
    }
}

/// Rows of a value.
fn degree(side: &[Vec<usize>], value: usize) -> usize {
    side.iter().map(|of_entry| of_entry[value]).sum()
}

/// Moves rows from one side to the other until no value has more than `height` of them on the first; on the other none may
/// have more than `other`, nor any entry.
fn relieve(from: &mut [Vec<usize>], to: &mut [Vec<usize>], height: usize, other: usize) {
    let values = from.first().map_or(0, Vec::len);
    for value in 0..values {
        loop {
            let excess = degree(from, value).saturating_sub(height);
            if excess == 0 || !relieve_value(from, to, value, excess, height, other) {
                break;
            }
        }
    }
}

/// Where an alternating path came from: to an entry from a value, whose row leaves it; to a value from an entry, which takes
/// a row of it instead.
type Came = Option<usize>;

/// Moves up to `excess` rows of a value along a shortest alternating path. `false` if there is none.
fn relieve_value(
    from: &mut [Vec<usize>],
    to: &mut [Vec<usize>],
    value: usize,
    excess: usize,
    height: usize,
    other: usize,
) -> bool {
    let entries = from.len();
    let mut entry_came: Vec<Came> = vec![None; entries];
    let mut value_came: Vec<Came> = vec![None; from[0].len()];
    let mut queue = std::collections::VecDeque::from([value]);
    while let Some(v) = queue.pop_front() {
        for e in 0..entries {
            if from[e][v] == 0 || entry_came[e].is_some() {
                continue;
            }
            entry_came[e] = Some(v);
            let room = other.saturating_sub(to[e].iter().sum());
            if room > 0 {
                apply(from, to, (value, excess.min(room)), (e, None), &entry_came, &value_came);
                return true;
            }
            for w in 0..value_came.len() {
                if to[e][w] == 0 || value_came[w].is_some() || w == value {
                    continue;
                }
                value_came[w] = Some(e);
                let room = height.saturating_sub(degree(from, w));
                if room > 0 {
                    apply(from, to, (value, excess.min(room)), (e, Some(w)), &entry_came, &value_came);
                    return true;
                }
                queue.push_back(w);
            }
        }
    }
    false
}

/// Moves rows along the path that ends at an entry, or at a value that the entry gives back.
fn apply(
    from: &mut [Vec<usize>],
    to: &mut [Vec<usize>],
    (start, most): (usize, usize),
    (end, given_back): (usize, Option<usize>),
    entry_came: &[Came],
    value_came: &[Came],
) {
    // Entry, value that leaves it for the other side, value that comes back to it.
    let mut path = Vec::new();
    let (mut entry, mut back) = (end, given_back);
    while let Some(value) = entry_came[entry] {
        path.push((entry, value, back));
        let Some(before) = value_came[value].filter(|_| value != start) else { break };
        (entry, back) = (before, Some(value));
    }
    let rows = path.iter().map(|&(e, out, back)| from[e][out].min(back.map_or(usize::MAX, |back| to[e][back])));
    let rows = rows.min().unwrap_or(0).min(most);
    for (e, out, back) in path {
        from[e][out] -= rows;
        to[e][out] += rows;
        if let Some(back) = back {
            to[e][back] -= rows;
            from[e][back] += rows;
        }
    }
}
