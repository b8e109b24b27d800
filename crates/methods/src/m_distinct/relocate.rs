//! Moves of returning rows from their own buckets into shared ones, which save
//! counterfeits.
//!
//! The paper lets every row choose by a score that depends on the rows before it, and on where rows lie; the latter would tell
//! who has which value (see `methods::deal`). Here counts alone decide: a bucket becomes a group lower when the rows
//! that make it high find places elsewhere.

use super::bucket::{Bucket, Buckets, Cell};
use super::intersect::Shared;
use super::relation::Relation;

/// Moves rows as long as the number of counterfeits falls.
pub(super) fn relocate(buckets: &mut Buckets, shared: &[Shared], relation: &Relation) {
    for Shared { bucket, kinds } in shared {
        loop {
            // As it is, then with a group more.
            let gained = [0, 1].into_iter().any(|more| gain(buckets, *bucket, kinds, more, relation));
            if !gained {
                break;
            }
        }
    }
}

/// Moves rows of the kinds' own buckets to `host`, if that saves counterfeits. Some groups may make it higher first.
fn gain(buckets: &mut Buckets, host: usize, kinds: &[u32; 2], more: usize, relation: &Relation) -> bool {
    let sources = || kinds.iter().map(|&kind| kind as usize).filter(|&kind| kind != host);
    let mut tried = buckets.list[host].clone();
    let height = tried.height() + more;
    let mut lowered: Vec<(usize, Bucket)> = sources().map(|kind| (kind, buckets.list[kind].clone())).collect();
    let gaps = |host: &Bucket, lowered: &[(usize, Bucket)]| {
        host.gaps() + lowered.iter().map(|(_, bucket)| bucket.gaps()).sum::<usize>()
    };
    let before = gaps(&tried, &lowered);
    while lowered.iter_mut().any(|(_, bucket)| lower(bucket, &mut tried, height, kinds, relation)) {}
    if gaps(&tried, &lowered) >= before {
        return false;
    }
    buckets.list[host] = tried;
    lowered.into_iter().for_each(|(kind, bucket)| buckets.list[kind] = bucket);
    true
}

/// Makes a bucket a group lower by moving rows into gaps of `host`. That is `height` groups high. Changes nothing
/// if that cannot be done.
fn lower(bucket: &mut Bucket, host: &mut Bucket, height: usize, kinds: &[u32; 2], relation: &Relation) -> bool {
    let peak = bucket.height();
    if peak == 0 {
        return false;
    }
    let (mut left, mut there) = (bucket.clone(), host.clone());
    for entry in (0..bucket.entries.len()).filter(|&entry| bucket.loads[entry] == peak) {
        // Those of a value that is too frequent first: one move for two reasons.
        let mut cells: Vec<Cell> = left.cells.keys().copied().filter(|cell| cell.entry == entry).collect();
        cells.sort_by_key(|cell| (std::cmp::Reverse(left.frequency(cell.value)), *cell));
        if !cells.into_iter().any(|cell| move_one(&mut left, &mut there, cell, height, kinds, relation)) {
            return false;
        }
    }
    let mut frequent: Vec<u32> = left.frequencies().filter(|&(_, rows)| rows == peak).map(|(value, _)| value).collect();
    frequent.sort_unstable();
    for value in frequent {
        let cells: Vec<Cell> = left.cells.keys().copied().filter(|cell| cell.value == value).collect();
        if !cells.into_iter().any(|cell| move_one(&mut left, &mut there, cell, height, kinds, relation)) {
            return false;
        }
    }
    (*bucket, *host) = (left, there);
    true
}

/// Moves a row to the entry of its label in `host`, if possible.
fn move_one(
    from: &mut Bucket,
    host: &mut Bucket,
    cell: Cell,
    height: usize,
    kinds: &[u32; 2],
    relation: &Relation,
) -> bool {
    if !kinds.contains(&cell.kind) || host.frequency(cell.value) >= height {
        return false;
    }
    if host.loads[cell.entry] >= height || !host.fits(relation, cell.entry, cell.value) {
        return false;
    }
    from.take(cell, 1);
    host.put(cell, 1);
    true
}

#[cfg(test)]
mod tests {
    use super::super::intersect::intersections;
    use super::*;
    use crate::microdata::Updates;

    /// Two kinds whose rows complete each other, but not at home: 0 and 1 can both become 2; 3 and 4 both 5.
    #[test]
    fn rows_of_two_kinds_complete_each_other() {
        let pairs = vec![(0, 2), (1, 2), (3, 5), (4, 5)];
        let mut relation = Relation::new(Some(&Updates { pairs, ..Updates::default() }), 6, false).unwrap();
        let mut buckets = Buckets::default();
        // Groups (0, 3) of which the first have 2 now, and groups (1, 4) of which the second have 5 now.
        for (entry, (values, value)) in [([0, 3], 2), ([1, 4], 5)].into_iter().enumerate() {
            let kind = buckets.number(relation.kind(&values), &relation);
            assert_eq!(kind, entry);
            buckets.list[kind].put(Cell { kind: kind as u32, value, entry }, 10);
        }
        let gaps = |buckets: &Buckets| buckets.list.iter().map(Bucket::gaps).sum::<usize>();
        assert_eq!(gaps(&buckets), 20);
        let (shared, skipped) = intersections(&mut buckets, &mut relation);
        assert_eq!((shared.len(), skipped), (1, 0));
        relocate(&mut buckets, &shared, &relation);
        assert_eq!(gaps(&buckets), 0);
        assert_eq!(buckets.list[2].loads, [10, 10]);
    }
}
