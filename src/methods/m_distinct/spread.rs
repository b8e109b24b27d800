//! Returning rows into the entries of their own bucket, so that the fullest entry is as empty as can be.
//!
//! The paper puts row after row into the emptiest entry that has its value. The optimum is as cheap on counts: as long as a
//! chain of moves leads from the fullest entry to one that is emptier by two or more, follow it (semi-matchings; Harvey,
//! Ladner, Lovasz, Tamir 2003).

use super::bucket::{Bucket, Cell};
use super::relation::Relation;

/// Puts rows of a kind into their bucket: `counts` has their values, and how many there are of each. Returns how many rows
/// have a value that no entry can take.
///
/// Values stay in one entry as far as that is possible, because rows of different values go together in any combination.
pub(super) fn spread(bucket: &mut Bucket, relation: &Relation, kind: u32, counts: &[(u32, usize)]) -> usize {
    let mut left_over = 0;
    let mut values: Vec<(u32, usize, Vec<usize>)> =
        counts.iter().map(|&(value, rows)| (value, rows, bucket.entries_for(relation, value))).collect();
    values.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    for (value, rows, entries) in &values {
        match entries.iter().min_by_key(|&&entry| bucket.loads[entry]) {
            Some(&entry) => bucket.put(Cell { kind, value: *value, entry }, *rows),
            None => left_over += rows,
        }
    }
    values.sort_by_key(|&(value, ..)| value);
    while bucket.fullest() > bucket.most_frequent() && relieve(bucket, kind, &values) {}
    left_over
}

/// Moves rows along the shortest chain from the fullest entry to an emptier one. `false` if there is none.
fn relieve(bucket: &mut Bucket, kind: u32, values: &[(u32, usize, Vec<usize>)]) -> bool {
    let fullest = (0..bucket.loads.len()).max_by_key(|&entry| bucket.loads[entry]).unwrap_or(0);
    // From which entry, and with which value, each entry is reached.
    let mut reached: Vec<Option<(usize, u32)>> = vec![None; bucket.loads.len()];
    let mut queue = std::collections::VecDeque::from([fullest]);
    while let Some(entry) = queue.pop_front() {
        if bucket.loads[entry] + 2 <= bucket.loads[fullest] {
            follow(bucket, kind, fullest, entry, &reached);
            return true;
        }
        for (value, _, entries) in values {
            if !bucket.cells.contains_key(&Cell { kind, value: *value, entry }) {
                continue;
            }
            for &next in entries {
                if next != fullest && reached[next].is_none() {
                    reached[next] = Some((entry, *value));
                    queue.push_back(next);
                }
            }
        }
    }
    false
}

fn follow(bucket: &mut Bucket, kind: u32, from: usize, to: usize, reached: &[Option<(usize, u32)>]) {
    let mut chain = Vec::new();
    let mut entry = to;
    while let Some((before, value)) = reached[entry].filter(|_| entry != from) {
        chain.push((before, entry, value));
        entry = before;
    }
    let there = |&(before, _, value): &(usize, usize, u32)| bucket.cells[&Cell { kind, value, entry: before }];
    let rows = chain.iter().map(there).min().unwrap_or(0).min((bucket.loads[from] - bucket.loads[to]) / 2);
    for (before, after, value) in chain {
        bucket.take(Cell { kind, value, entry: before }, rows);
        bucket.put(Cell { kind, value, entry: after }, rows);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::Updates;

    /// Entries over ten values whose candidate sets are given, and rows by value.
    fn case() -> impl Strategy<Value = (Relation, Box<[u32]>, Vec<(u32, usize)>)> {
        let pairs = prop::collection::vec((0_u32..6, 0_u32..6), 0..12);
        let entries = prop::collection::btree_set(0_u32..6, 2..5);
        (pairs, entries, prop::collection::vec(0_usize..5, 6)).prop_map(|(mut pairs, values, counts)| {
            pairs.sort_unstable();
            pairs.dedup();
            let relation = Relation::new(Some(&Updates { pairs, weighted: false }), 6, true).unwrap();
            let values: Vec<u32> = values.into_iter().collect();
            let entries = relation.signature(&values);
            let counts = (0..).zip(counts).filter(|&(_, rows)| rows > 0).collect();
            (relation, entries, counts)
        })
    }

    /// By Hall's condition over all sets of values: the least height at which everything fits.
    fn least(bucket: &mut Bucket, relation: &Relation, counts: &[(u32, usize)]) -> usize {
        let allowed: Vec<Vec<usize>> = counts.iter().map(|&(value, _)| bucket.entries_for(relation, value)).collect();
        let subsets = 0..1_usize << counts.len();
        let load = subsets.map(|subset| {
            let inside = || (0..counts.len()).filter(|&i| subset >> i & 1 == 1 && !allowed[i].is_empty());
            let rows: usize = inside().map(|i| counts[i].1).sum();
            let entries: std::collections::BTreeSet<usize> = inside().flat_map(|i| allowed[i].clone()).collect();
            rows.div_ceil(entries.len().max(1))
        });
        load.max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn no_spread_is_lower((relation, entries, counts) in case()) {
            let mut bucket = Bucket::new(entries, &relation);
            let left = spread(&mut bucket, &relation, 0, &counts);
            let nowhere: usize = counts.iter().filter(|c| bucket.clone().entries_for(&relation, c.0).is_empty()).map(|c| c.1).sum();
            prop_assert_eq!(left, nowhere);
            let total: usize = counts.iter().map(|&(_, rows)| rows).sum();
            prop_assert_eq!(bucket.loads.iter().sum::<usize>(), total - left);
            for (cell, _) in bucket.cells.clone() {
                prop_assert!(bucket.fits(&relation, cell.entry, cell.value));
            }
            let most = bucket.most_frequent();
            prop_assert_eq!(bucket.height(), least(&mut bucket, &relation, &counts).max(most));
        }
    }
}
