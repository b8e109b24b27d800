//! Small buckets: the paper's full search over attributes and places.
//!
//! Each list is sorted by each attribute once; splits keep the orders, so that every level of the recursion takes time
//! linear in rows (and quadratic in attributes).

use super::coarse::Node;
use super::{Item, Place, Secret, Tag, rows_among};
use crate::extent::Extent;
use crate::release::COUNTERFEIT;

/// Splits a node into groups; group `g` of `s` members goes to `members[g * s..][..s]`.
pub(super) fn split<const W: usize, T: Tag>(d: usize, node: &Node<'_, W, T>, members: &mut [u32]) {
    let mut bucket = Bucket::new(d, node);
    bucket.split(0, node.height, 0, node.secret, members);
}

/// A bucket and the part of it that is being split.
struct Bucket<const W: usize, T> {
    /// All rows, list after list.
    items: Vec<Item<W, T>>,
    /// For each attribute, the places of the rows in `items`: list after list, each sorted by the attribute. A part of the
    /// bucket is a range of each list, the same range in every order.
    orders: Vec<Vec<u32>>,
    /// Ranges of the lists for the split part and, below on this stack, its wholes.
    ranges: Vec<[u32; 2]>,
    size: usize,
    /// Scratch: which rows go left, the rows that go right, where counterfeits start, and for all places the box around their rows, and the
    /// cost of what is before them.
    goes_left: Vec<bool>,
    going_right: Vec<u32>,
    offsets: Vec<usize>,
    slices: Vec<Extent<W, Place>>,
    before: Vec<u32>,
}

impl<const W: usize, T: Tag> Bucket<W, T> {
    fn new(d: usize, node: &Node<'_, W, T>) -> Self {
        let items: Vec<Item<W, T>> = node.lists.iter().flat_map(|list| list.iter().copied()).collect();
        let mut ranges = Vec::with_capacity(node.lists.len() * 8);
        let mut end = 0;
        for list in &node.lists {
            ranges.push([end, end + list.len() as u32]);
            end += list.len() as u32;
        }
        let mut keys: Vec<u32> = Vec::new();
        let orders = (0..d).map(|attribute| {
            let mut order: Vec<u32> = Vec::with_capacity(items.len());
            for &[start, end] in &ranges {
                keys.clear();
                let list = &items[start as usize..end as usize];
                // A list has no more rows than the bucket is high, and this one is small.
                keys.extend(list.iter().zip(0..).map(|(item, number)| item.key(attribute, number)));
                keys.sort_unstable();
                order.extend(keys.iter().map(|&key| start + u32::from(key as u16)));
            }
            order
        });
        Self {
            orders: orders.collect(),
            size: node.lists.len(),
            goes_left: vec![false; items.len()],
            going_right: Vec::new(),
            offsets: Vec::new(),
            slices: Vec::new(),
            before: Vec::new(),
            ranges,
            items,
        }
    }

    /// Splits the part whose ranges stand at `base`. The order by `order` is that part's; so are all others if it is higher
    /// than two.
    fn split(&mut self, base: usize, height: usize, order: usize, secret: Secret, members: &mut [u32]) {
        match height {
            1 => return self.take(base, order, members),
            2 => return self.split_pairs(base, order, secret, members),
            _ => {}
        }
        self.offsets.clear();
        self.offsets.extend((0..self.size).map(|list| secret.of_list(list, height)));
        let (attribute, k) = self.best_cut(base, height);
        self.cut(base, height, attribute, k);
        let (members_left, members_right) = members.split_at_mut(k * self.size);
        let (left, right) = (base + self.size, base + 2 * self.size);
        let [first, second] = secret.halves();
        self.split(left, k, attribute, first, members_left);
        // The left part's parts stood where the right one's are now going to.
        self.ranges.truncate(right);
        for list in base..base + self.size {
            self.ranges.push([self.ranges[list + self.size][1], self.ranges[list][1]]);
        }
        self.split(right, height - k, attribute, second, members_right);
        self.ranges.truncate(left);
    }

    fn take(&self, base: usize, order: usize, members: &mut [u32]) {
        for (member, &[start, end]) in members.iter_mut().zip(&self.ranges[base..]) {
            *member = match start < end {
                true => self.items[self.orders[order][start as usize] as usize].row,
                false => COUNTERFEIT,
            };
        }
    }

    /// Splits two groups, as half of all splits do: each list's lower row goes left. It tries each attribute.
    fn split_pairs(&self, base: usize, order: usize, secret: Secret, members: &mut [u32]) {
        let order = &self.orders[order];
        let pair = |list: usize, attribute: usize| -> [Option<&Item<W, T>>; 2] {
            let [start, end] = self.ranges[base + list];
            let item = |place: u32| &self.items[order[place as usize] as usize];
            match end - start {
                0 => [None, None],
                1 if secret.of_list(list, 2) == 0 => [Some(item(start)), None],
                1 => [None, Some(item(start))],
                _ => {
                    let (a, b) = (item(start), item(start + 1));
                    if b.place(attribute) < a.place(attribute) { [Some(b), Some(a)] } else { [Some(a), Some(b)] }
                }
            }
        };
        let cost = |attribute: usize| {
            let mut extents = [Extent::NONE; 2];
            for list in 0..self.size {
                for (extent, item) in extents.iter_mut().zip(pair(list, attribute)) {
                    if let Some(item) = item {
                        extent.widen(&item.at);
                    }
                }
            }
            extents[0].lengths() + extents[1].lengths()
        };
        let best = (0..self.orders.len()).min_by_key(|&attribute| cost(attribute)).unwrap_or_default();
        let (left, right) = members.split_at_mut(self.size);
        for (list, members) in left.iter_mut().zip(right).enumerate() {
            let [low, high] = pair(list, best).map(|item| item.map_or(COUNTERFEIT, |item| item.row));
            (*members.0, *members.1) = (low, high);
        }
    }

    /// Counts the rows of a list among the first `k` places.
    #[inline]
    fn rows_among(&self, base: usize, height: usize, list: usize, k: usize) -> usize {
        let [start, end] = self.ranges[base + list];
        let rows = (end - start) as usize;
        if rows == height { k } else { rows_among(k, height, rows, self.offsets[list]) }
    }

    /// Returns the attribute and the number of places that cost least.
    fn best_cut(&mut self, base: usize, height: usize) -> (usize, usize) {
        let mut best = (u32::MAX, 0, height / 2);
        for attribute in 0..self.orders.len() {
            if self.is_constant(base, attribute) {
                continue;
            }
            let (cost, k) = self.best_place(base, height, attribute);
            if cost < best.0 {
                best = (cost, attribute, k);
            }
        }
        (best.1, best.2)
    }

    fn is_constant(&self, base: usize, attribute: usize) -> bool {
        let order = &self.orders[attribute];
        let at = |place: u32| self.items[order[place as usize] as usize].place(attribute);
        let (mut lo, mut hi) = (Place::MAX, Place::MIN);
        for &[start, end] in self.ranges[base..base + self.size].iter().filter(|[start, end]| start < end) {
            lo = lo.min(at(start));
            hi = hi.max(at(end - 1));
        }
        lo >= hi
    }

    fn best_place(&mut self, base: usize, height: usize, attribute: usize) -> (u32, usize) {
        let (mut slices, mut before) = (std::mem::take(&mut self.slices), std::mem::take(&mut self.before));
        slices.clear();
        slices.resize(height, Extent::NONE);
        let order = &self.orders[attribute];
        // List after list, so that no box waits for the one before.
        for (list, &[start, end]) in self.ranges[base..base + self.size].iter().enumerate() {
            let (start, rows) = (start as usize, (end - start) as usize);
            let of_list = &order[start..start + rows];
            if rows == height {
                let each = slices.iter_mut().zip(of_list);
                each.for_each(|(slice, &item)| slice.widen(&self.items[item as usize].at));
                continue;
            }
            for (k, slice) in slices.iter_mut().enumerate() {
                let range = self.rows_among(base, height, list, k)..self.rows_among(base, height, list, k + 1);
                of_list[range].iter().for_each(|&item| slice.widen(&self.items[item as usize].at));
            }
        }
        before.clear();
        let mut extent = Extent::NONE;
        for (slice, k) in slices.iter().zip(0..) {
            before.push(k * extent.lengths());
            extent = extent.with(slice);
        }
        let mut extent = Extent::NONE;
        let mut best = (u32::MAX, 1);
        for (k, (slice, before)) in slices.iter().zip(&before).enumerate().skip(1).rev() {
            extent = extent.with(slice);
            let cost = before + (height - k) as u32 * extent.lengths();
            if cost < best.0 {
                best = (cost, k);
            }
        }
        (self.slices, self.before) = (slices, before);
        best
    }

    /// Reorders the part by its first `k` places in every order, and pushes their ranges. They come first in the order
    /// by `attribute` already, which is enough for halves that are not split by search.
    fn cut(&mut self, base: usize, height: usize, attribute: usize, k: usize) {
        for list in 0..self.size {
            let [start, end] = self.ranges[base + list];
            let middle = start + self.rows_among(base, height, list, k) as u32;
            self.ranges.push([start, middle]);
            if k.max(height - k) > 2 {
                for place in start..end {
                    self.goes_left[self.orders[attribute][place as usize] as usize] = place < middle;
                }
            }
        }
        if k.max(height - k) <= 2 {
            return;
        }
        for other in (0..self.orders.len()).filter(|&other| other != attribute) {
            let order = &mut self.orders[other];
            for &[start, end] in &self.ranges[base..base + self.size] {
                let list = &mut order[start as usize..end as usize];
                if self.going_right.len() < list.len() {
                    self.going_right.resize(list.len(), 0);
                }
                let going_right = &mut self.going_right[..list.len()];
                let (mut left, mut right) = (0, 0);
                for place in 0..list.len() {
                    // Written to both sides and counted on one: sides are a coin's toss, which a branch would mispredict.
                    let item = list[place];
                    list[left] = item;
                    going_right[right] = item;
                    let goes_left = usize::from(self.goes_left[item as usize]);
                    left += goes_left;
                    right += 1 - goes_left;
                }
                list[left..].copy_from_slice(&going_right[..right]);
            }
        }
    }
}
