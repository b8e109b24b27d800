//! Buckets that rows of two kinds can share: intersections of candidate update sets, label by label.

use rustc_hash::FxHashMap;

use super::bucket::Buckets;
use super::relation::{Relation, common};
use super::representatives;

/// Pairs of kinds that are looked at. Their number is quadratic in that of kinds, so those with the most gaps come first.
const PAIRS: usize = 4096;

/// A bucket for the rows of some kinds.
#[derive(Debug)]
pub(super) struct Shared {
    pub bucket: usize,
    pub kinds: [u32; 2],
}

/// Returns the intersection of any two kinds that can gain from one, as buckets; and how many pairs were not looked at. The bucket of
/// each kind has its number.
pub(super) fn intersections(buckets: &mut Buckets, relation: &mut Relation) -> (Vec<Shared>, usize) {
    if relation.is_of_classes() {
        // Two kinds of classes that are not the same have a label for which they have nothing in common.
        return (Vec::new(), 0);
    }
    let gaps = buckets.list.iter().map(super::bucket::Bucket::gaps).enumerate();
    let mut kinds: Vec<(usize, usize)> = gaps.filter(|&(_, gaps)| gaps > 0).map(|(kind, gaps)| (gaps, kind)).collect();
    kinds.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut found = Vec::new();
    let mut meetings = FxHashMap::default();
    let (mut pairs, mut skipped) = (0, 0);
    // In the order of the sums of places: the first with the second, the first with the third, ..
    for sum in 1..2 * kinds.len() {
        for i in sum.saturating_sub(kinds.len() - 1)..sum.div_ceil(2) {
            let [a, b] = [kinds[i].1, kinds[sum - i].1];
            if buckets.list[a].entries.len() != buckets.list[b].entries.len() {
                continue;
            }
            if pairs == PAIRS {
                skipped += 1;
                continue;
            }
            pairs += 1;
            let of = |kind: usize| buckets.list[kind].entries.clone();
            if let Some(entries) = meet(&of(a), &of(b), relation, &mut meetings) {
                found.push(Shared { bucket: buckets.number(entries, relation), kinds: [a as u32, b as u32] });
            }
        }
    }
    (found, skipped)
}

/// The number of the intersection of two sets; `None` if it is empty.
type Meeting = Option<u32>;

/// Intersects two kinds. `None` where some entry would be empty, or there is no system of distinct representatives.
fn meet(
    a: &[u32],
    b: &[u32],
    relation: &mut Relation,
    meetings: &mut FxHashMap<(u32, u32), Meeting>,
) -> Option<Box<[u32]>> {
    let mut of = |x: u32, y: u32| {
        *meetings.entry((x.min(y), x.max(y))).or_insert_with(|| {
            let both = common(relation.set(x), relation.set(y));
            (!both.is_empty()).then(|| relation.number(both))
        })
    };
    let entries = a.iter().zip(b).map(|(&x, &y)| of(x, y)).collect::<Option<Box<[u32]>>>()?;
    let sets: Vec<&[u32]> = entries.iter().map(|&number| relation.set(number)).collect();
    representatives::exists(&sets, &[]).then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Updates;

    fn relation(pairs: &[(u32, u32)]) -> Relation {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        Relation::new(Some(&Updates { pairs, ..Updates::default() }), 6, false).unwrap()
    }

    fn meeting(relation: &mut Relation, a: &[u32], b: &[u32]) -> Option<Vec<Vec<u32>>> {
        let (a, b) = (relation.kind(a), relation.kind(b));
        let entries = meet(&a, &b, relation, &mut FxHashMap::default())?;
        Some(entries.iter().map(|&number| relation.set(number).to_vec()).collect())
    }

    #[test]
    fn kinds_meet_label_by_label() {
        // 0 can become 1, 2 and 3; 4 can become 1 and 2; 5 can become 3.
        let mut relation = relation(&[(0, 1), (0, 2), (0, 3), (4, 1), (4, 2), (5, 3)]);
        assert_eq!(meeting(&mut relation, &[0], &[4]), Some(vec![vec![1, 2]]));
        assert_eq!(meeting(&mut relation, &[0, 3], &[4, 5]), Some(vec![vec![1, 2], vec![3]]));
        // The same sets in another order: 3 is not what 4 can become.
        assert_eq!(meeting(&mut relation, &[3, 0], &[4, 5]), None);
        assert_eq!(meeting(&mut relation, &[1, 2], &[1, 3]), None);
    }

    #[test]
    fn entries_without_distinct_representatives_are_discarded() {
        // {2}, {1, 2} with {0, 2}, {2} would be {2}, {2}: 0 can become 2, and 1.
        let mut relation = relation(&[(1, 2), (0, 2)]);
        assert_eq!(meeting(&mut relation, &[2, 1], &[0, 2]), None);
        assert_eq!(meeting(&mut relation, &[2, 1], &[2, 1]), Some(vec![vec![2], vec![1, 2]]));
    }
}
