//! Large buckets: halved at the medians.

use super::{Item, Place, Secret, Spare, Tag, fine, rows_among};
use crate::Monitor;

/// Buckets up to this height are split by the paper's full search.
const FINE_HEIGHT: usize = 64;
/// The same for buckets of few values, where larger heights gain nothing. It is measured by the mean length of
/// intervals, at 200,000 rows and m = 2.
const FINE_HEIGHT_OF_FEW: usize = 16;
const FEW: usize = 4;
/// Buckets with fewer members are not worth another thread.
pub(crate) const PARALLEL_FROM: usize = 4096;
/// Rows of each value that are looked at to choose the attribute. Four times as many do not choose better ones.
const SAMPLE: usize = 64;

/// A bucket, or a part of one, on its way to groups.
pub(crate) struct Node<'a, const W: usize, T> {
    /// Rows of each value.
    pub lists: Vec<&'a mut [Item<W, T>]>,
    /// Rows and counterfeits of each value.
    pub height: usize,
    /// Decides where counterfeits stand.
    pub secret: Secret,
}

impl<const W: usize, T: Tag> Node<'_, W, T> {
    /// Counts the rows of each list that fall to the first `k` groups.
    fn rows_among_first(&self, k: usize) -> Vec<usize> {
        let offset = |list: usize| self.secret.of_list(list, self.height);
        let lists = self.lists.iter().enumerate();
        lists.map(|(list, rows)| rows_among(k, self.height, rows.len(), offset(list))).collect()
    }
}

/// Splits a node into groups; group `g` of `s` members goes to `members[g * s..][..s]`.
pub(crate) fn split<const W: usize, T: Tag>(
    d: usize,
    node: Node<'_, W, T>,
    members: &mut [u32],
    spare: &mut Spare<W, T>,
    monitor: &Monitor,
) {
    if monitor.is_cancelled() {
        return;
    }
    let fine_height = if node.lists.len() <= FEW { FINE_HEIGHT_OF_FEW } else { FINE_HEIGHT };
    if node.height <= fine_height {
        fine::split(d, &node, members);
        return;
    }
    let size = node.lists.len();
    let k = node.height / 2;
    let [left, right] = halve(d, node, k, spare);
    let (members_left, members_right) = members.split_at_mut(k * size);
    if members_left.len() >= PARALLEL_FROM {
        rayon::join(
            || split(d, left, members_left, spare, monitor),
            || split(d, right, members_right, &mut Spare::default(), monitor),
        );
    } else {
        split(d, left, members_left, spare, monitor);
        split(d, right, members_right, spare, monitor);
    }
}

/// Cuts every list at its median of the attribute whose interval shrinks most by it.
fn halve<'a, const W: usize, T: Tag>(
    d: usize,
    node: Node<'a, W, T>,
    k: usize,
    spare: &mut Spare<W, T>,
) -> [Node<'a, W, T>; 2] {
    let attribute = best_attribute(d, &node);
    let cuts = node.rows_among_first(k);
    let (mut left, mut right) = (Vec::with_capacity(cuts.len()), Vec::with_capacity(cuts.len()));
    for (list, &cut) in node.lists.into_iter().zip(&cuts) {
        spare.lowest_first(list, attribute, cut);
        let (low, high) = list.split_at_mut(cut);
        left.push(low);
        right.push(high);
    }
    let [first, second] = node.secret.halves();
    [Node { lists: left, height: k, secret: first }, Node { lists: right, height: node.height - k, secret: second }]
}

/// Returns the attribute with the shortest halves against the whole, by samples of lists.
pub(crate) fn best_attribute<const W: usize, T: Tag>(d: usize, node: &Node<'_, W, T>) -> usize {
    let mut sample: Vec<Place> = Vec::with_capacity(SAMPLE);
    let mut gain = |attribute: usize| {
        let [least, greatest] = [Place::MIN, Place::MAX];
        let (mut whole, mut low_max, mut high_min) = ((greatest, least), least, greatest);
        for list in node.lists.iter().filter(|list| !list.is_empty()) {
            sample.clear();
            sample.extend(list.iter().step_by(list.len().div_ceil(SAMPLE)).map(|item| item.place(attribute)));
            let middle = sample.len() / 2;
            let (low, &mut median, high) = sample.select_nth_unstable(middle);
            low_max = low.iter().copied().fold(low_max, Place::max);
            high_min = high_min.min(median);
            let ends = low.iter().chain(high.iter()).copied().chain([median]);
            whole = ends.fold(whole, |(lo, hi), at| (lo.min(at), hi.max(at)));
        }
        // Twice the length of the whole less both halves'.
        let [lo, hi, low_max, high_min] = [whole.0, whole.1, low_max, high_min].map(i32::from);
        2 * (hi - lo) - ((low_max - lo) + (hi - high_min))
    };
    let gains: Vec<i32> = (0..d).map(&mut gain).collect();
    (0..d).max_by_key(|&attribute| gains[attribute]).unwrap_or(0)
}
