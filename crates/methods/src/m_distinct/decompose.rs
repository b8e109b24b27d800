//! Buckets in which a value occurs in several entries: every group takes one row of each entry, all values different.
//!
//! Entries and values are the two sides of a bipartite multigraph whose edges are the rows. No vertex has more edges than the
//! bucket is high, so by König's theorem it is the union of as many matchings, which are the groups. The paper searches for
//! them, at exponential cost; here the bucket is halved until it is one group high, and of no vertex more edges go to a half
//! than that is high. A half begins as a cut along a quasi-identifier, as in [`methods::split`](crate::split); where a
//! value has too many rows on one side, rows change sides along the shortest alternating path, which König's theorem says is
//! there. Parts in which no value occurs in two entries are left to the sorted split.

use super::halves::{Halves, Places};
use crate::Monitor;
use crate::extent::Extent;
use crate::microdata::Microdata;
use crate::split::{Item, Node, PARALLEL_FROM, Place, Spare, Splitter, best_attribute, rows_among, sorted};

/// Up to this height all places to cut are tried, above it the middle.
const SEARCH_HEIGHT: usize = 16;
/// Above this height the attribute is chosen by a sample.
const SAMPLE_HEIGHT: usize = 256;

/// Splits buckets so that the values of a group are different.
pub(super) struct Decompose;

impl Splitter for Decompose {
    /// Code of the sensitive value.
    type Tag = u32;

    fn tag(&self, microdata: &Microdata, row: u32) -> u32 {
        microdata.sensitive_codes.at(row)
    }

    fn split<const W: usize>(
        &self,
        microdata: &Microdata,
        node: Node<'_, W, u32>,
        members: &mut [u32],
        spare: &mut Spare<W, u32>,
        monitor: &Monitor,
    ) {
        if node.height <= 1 {
            return sorted(microdata.quasi.len(), node, members, spare, monitor);
        }
        let scratch = Scratch::new(microdata, members.len());
        let bucket = Bucket { microdata, monitor };
        bucket.split(node, members, &mut Scratch { spare: std::mem::take(spare), ..scratch });
    }
}

#[derive(Clone, Copy)]
struct Bucket<'a> {
    microdata: &'a Microdata,
    monitor: &'a Monitor,
}

/// Buffers of one thread.
struct Scratch<const W: usize> {
    spare: Spare<W, u32>,
    places: Places,
    /// Rows of a list by an attribute: place, and number in the list.
    order: Vec<u32>,
    /// Number of rows of each list among the first places, from 0 to the height.
    shares: Vec<u32>,
}

impl<const W: usize> Scratch<W> {
    /// Makes buffers for so many members.
    fn new(microdata: &Microdata, members: usize) -> Self {
        let values = microdata.sensitive.as_ref().map_or(0, |sensitive| sensitive.domain.len());
        Self { spare: Spare::default(), places: Places::new(values, members), order: Vec::new(), shares: Vec::new() }
    }
}

impl Bucket<'_> {
    fn split<const W: usize>(self, mut node: Node<'_, W, u32>, members: &mut [u32], scratch: &mut Scratch<W>) {
        if self.monitor.is_cancelled() {
            return;
        }
        if node.height <= 1 || !shares_values(&node, &mut scratch.places) {
            return sorted(self.microdata.quasi.len(), node, members, &mut scratch.spare, self.monitor);
        }
        let (attribute, k) = self.best_cut(&node, scratch);
        let cuts = self.cut(&mut node, attribute, k, scratch);
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
                || self.split(left, members_left, scratch),
                || self.split(right, members_right, &mut Scratch::new(self.microdata, size * k)),
            );
        } else {
            self.split(left, members_left, scratch);
            self.split(right, members_right, scratch);
        }
    }

    /// Returns the attribute and the number of groups on the left that cost least. It is as if all rows went together.
    fn best_cut<const W: usize>(self, node: &Node<'_, W, u32>, scratch: &mut Scratch<W>) -> (usize, usize) {
        let (d, h) = (self.microdata.quasi.len(), node.height);
        if h > SAMPLE_HEIGHT {
            return (best_attribute(d, node), h / 2);
        }
        if h <= SEARCH_HEIGHT {
            scratch.shares.clear();
            scratch.shares.extend((0..node.lists.len()).flat_map(|list| shares(node, list)));
        }
        let mut best = (u32::MAX, 0, h / 2);
        for attribute in 0..d {
            let (cost, k) = match h <= SEARCH_HEIGHT {
                true => best_place(node, attribute, &scratch.shares, &mut scratch.order),
                false => (cost_of_middle(node, attribute, &mut scratch.spare), h / 2),
            };
            if cost < best.0 {
                best = (cost, attribute, k);
            }
        }
        (best.1, best.2)
    }

    /// Reorders the lists so that the first rows of each are the left half. Every value has at most `k` of these, and
    /// at most as many as there are groups in the right one.
    fn cut<const W: usize>(
        self,
        node: &mut Node<'_, W, u32>,
        attribute: usize,
        k: usize,
        scratch: &mut Scratch<W>,
    ) -> Vec<usize> {
        let mut cuts: Vec<usize> = (0..node.lists.len()).map(|list| share(node, list, k)).collect();
        for (list, &cut) in node.lists.iter_mut().zip(&cuts) {
            scratch.spare.lowest_first(list, attribute, cut);
        }
        let sides = || node.lists.iter().zip(&cuts).map(|(list, &cut)| list.split_at(cut));
        let left = || sides().flat_map(|(left, _)| left).map(|item| item.tag);
        let right = || sides().flat_map(|(_, right)| right).map(|item| item.tag);
        if scratch.places.are_at_most(k, left()) && scratch.places.are_at_most(node.height - k, right()) {
            return cuts;
        }
        let mut halves = Halves::new(sides, [k, node.height - k], &mut scratch.places);
        let before = halves.left().clone();
        halves.balance();
        for (entry, (list, cut)) in node.lists.iter_mut().zip(&mut cuts).enumerate() {
            let (was, is) = (before.of(entry), halves.left().of(entry));
            if was != is {
                let (low, high) = list.split_at_mut(*cut);
                sort(low, attribute);
                sort(high, attribute);
                *cut = reorder(list, *cut, was, is, |item| scratch.places.of(item.tag));
            }
        }
        cuts
    }
}

fn shares_values<const W: usize>(node: &Node<'_, W, u32>, places: &mut Places) -> bool {
    places.forget();
    // The first rows of all lists, the second ones, and so on: where values are shared, that is soon seen.
    let longest = node.lists.iter().map(|list| list.len()).max().unwrap_or(0);
    (0..longest).any(|place| {
        node.lists.iter().zip(0..).any(|(list, number)| {
            let Some(item) = list.get(place) else { return false };
            places.get_or_insert(item.tag, number) != number
        })
    })
}

/// Returns the number of rows of a list that are to go left.
fn share<const W: usize>(node: &Node<'_, W, u32>, list: usize, k: usize) -> usize {
    rows_among(k, node.height, node.lists[list].len(), node.secret.of_list(list, node.height))
}

/// Returns the same for every `k` from 0 to the height.
fn shares<const W: usize>(node: &Node<'_, W, u32>, list: usize) -> impl Iterator<Item = u32> + use<W> {
    let (h, rows, offset) = (node.height, node.lists[list].len(), node.secret.of_list(list, node.height));
    (0..=h).map(move |k| if rows == h { k as u32 } else { rows_among(k, h, rows, offset) as u32 })
}

fn sort<const W: usize>(list: &mut [Item<W, u32>], attribute: usize) {
    list.sort_unstable_by(|a, b| a.place(attribute).cmp(&b.place(attribute)).then(a.row.cmp(&b.row)));
}

fn cost_of_middle<const W: usize>(node: &Node<'_, W, u32>, attribute: usize, spare: &mut Spare<W, u32>) -> u32 {
    let k = node.height / 2;
    let mut halves = [Extent::<W, Place>::NONE; 2];
    for (number, list) in node.lists.iter().enumerate() {
        let mut is_low = spare.lowest(list, attribute, share(node, number, k));
        list.iter().for_each(|item| halves[usize::from(!is_low(item))].widen(&item.at));
    }
    k as u32 * halves[0].lengths() + (node.height - k) as u32 * halves[1].lengths()
}

/// Returns the least cost of a cut along an attribute, and its left groups. `shares` are those of the node's lists, and `order` is scratch.
fn best_place<const W: usize>(
    node: &Node<'_, W, u32>,
    attribute: usize,
    shares: &[u32],
    order: &mut Vec<u32>,
) -> (u32, usize) {
    let h = node.height;
    order.clear();
    for list in &node.lists {
        let start = order.len();
        order.extend(list.iter().zip(0..).map(|(item, place)| item.key(attribute, place)));
        order[start..].sort_unstable();
    }
    // The box around the rows at each place of all lists, which both sides need.
    let mut slices = [Extent::NONE; SEARCH_HEIGHT];
    let mut start = 0;
    for (list, shares) in node.lists.iter().zip(shares.chunks_exact(h + 1)) {
        for (slice, share) in slices.iter_mut().zip(shares.windows(2)) {
            let range = start + share[0] as usize..start + share[1] as usize;
            order[range].iter().for_each(|&key| slice.widen(&list[usize::from(key as u16)].at));
        }
        start += list.len();
    }
    let mut before = [0; SEARCH_HEIGHT];
    let mut extent = Extent::NONE;
    for (k, before) in before.iter_mut().enumerate().take(h).skip(1) {
        extent = extent.with(&slices[k - 1]);
        *before = k as u32 * extent.lengths();
    }
    let mut extent = Extent::NONE;
    let mut best = (u32::MAX, h / 2);
    for k in (1..h).rev() {
        extent = extent.with(&slices[k]);
        let cost = before[k] + (h - k) as u32 * extent.lengths();
        if cost < best.0 {
            best = (cost, k);
        }
    }
    best
}

/// Moves a list's nearest rows across the cut, until `is` holds on its left. Both sides are sorted; `is` tells the
/// number of each value. `place` tells the place of a row's value in `was` and `is`. Returns where the cut is then.
fn reorder<const W: usize>(
    list: &mut [Item<W, u32>],
    cut: usize,
    was: &[usize],
    is: &[usize],
    place: impl Fn(&Item<W, u32>) -> usize,
) -> usize {
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
    let side = |left: bool| list.iter().zip(&goes_left).filter(move |(_, goes)| **goes == left).map(|(item, _)| *item);
    let reordered: Vec<Item<W, u32>> = side(true).chain(side(false)).collect();
    list.copy_from_slice(&reordered);
    is.iter().sum()
}
