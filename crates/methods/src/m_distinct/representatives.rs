//! Systems of distinct representatives: a value of each set, no value twice. Berge's augmenting paths, as sets are few.

use rustc_hash::{FxHashMap, FxHashSet};

/// Number of plain draws before a search.
const DRAWS: usize = 32;

/// Draws a value of each set, all different and none of `taken`. `draw(n)` is a number below `n`.
///
/// Nearly always all systems are equally likely; where a draw rarely succeeds, the search prefers none on purpose.
pub(super) fn draw(sets: &[&[u32]], taken: &[u32], mut draw: impl FnMut(usize) -> usize) -> Option<Vec<u32>> {
    if sets.iter().any(|set| set.is_empty()) {
        return None;
    }
    let mut drawn = Vec::with_capacity(sets.len());
    for _ in 0..DRAWS {
        drawn.clear();
        for set in sets {
            let value = set[draw(set.len())];
            if taken.contains(&value) || drawn.contains(&value) {
                break;
            }
            drawn.push(value);
        }
        if drawn.len() == sets.len() {
            return Some(drawn);
        }
    }
    search(sets, taken, &mut draw)
}

/// Returns true if there is such a system.
pub(super) fn exists(sets: &[&[u32]], taken: &[u32]) -> bool {
    search(sets, taken, &mut |_| 0).is_some()
}

fn search(sets: &[&[u32]], taken: &[u32], draw: &mut dyn FnMut(usize) -> usize) -> Option<Vec<u32>> {
    let mut owner_of: FxHashMap<u32, usize> = FxHashMap::default();
    for set in 0..sets.len() {
        let mut seen: FxHashSet<u32> = taken.iter().copied().collect();
        if !augment(sets, set, &mut owner_of, &mut seen, draw) {
            return None;
        }
    }
    let mut found = vec![0; sets.len()];
    owner_of.into_iter().for_each(|(value, set)| found[set] = value);
    Some(found)
}

/// Gives a set a value of its own; others move to other values if needed.
fn augment(
    sets: &[&[u32]],
    set: usize,
    owner_of: &mut FxHashMap<u32, usize>,
    seen: &mut FxHashSet<u32>,
    draw: &mut dyn FnMut(usize) -> usize,
) -> bool {
    let values = sets[set];
    let first = if values.is_empty() { 0 } else { draw(values.len()) };
    for &value in values[first..].iter().chain(&values[..first]) {
        if !seen.insert(value) {
            continue;
        }
        let free = match owner_of.get(&value).copied() {
            Some(owner) => augment(sets, owner, owner_of, seen, draw),
            None => true,
        };
        if free {
            owner_of.insert(value, set);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// Finds all systems by trying everything.
    fn systems(sets: &[Vec<u32>], taken: &[u32]) -> Vec<Vec<u32>> {
        sets.iter().fold(vec![vec![]], |systems, set| {
            let extend = |system: &Vec<u32>| {
                let free = set.iter().filter(|value| !taken.contains(value) && !system.contains(value));
                free.map(|&value| [system.as_slice(), &[value]].concat()).collect::<Vec<_>>()
            };
            systems.iter().flat_map(extend).collect()
        })
    }

    proptest! {
        #[test]
        fn found_exactly_when_there_is_one(
            sets in prop::collection::vec(prop::collection::btree_set(0_u32..6, 0..4), 0..5),
            taken in prop::collection::vec(0_u32..6, 0..3),
            seed in any::<u64>(),
        ) {
            let sets: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            let slices: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
            let all = systems(&sets, &taken);
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            prop_assert_eq!(exists(&slices, &taken), !all.is_empty());
            match draw(&slices, &taken, |n| rng.random_range(0..n)) {
                Some(found) => prop_assert!(all.contains(&found)),
                None => prop_assert!(all.is_empty()),
            }
        }
    }

    #[test]
    fn all_systems_are_drawn_equally_often() {
        let sets: [&[u32]; 2] = [&[1, 2], &[1, 2, 3]];
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let mut counts = FxHashMap::default();
        for _ in 0..8000 {
            *counts.entry(draw(&sets, &[], |n| rng.random_range(0..n)).unwrap()).or_insert(0.0) += 1.0;
        }
        // (1,2), (1,3), (2,1), (2,3).
        assert_eq!(counts.len(), 4);
        for count in counts.values() {
            let deviation: f64 = (count - 2000.0) / (8000.0 * 0.25 * 0.75_f64).sqrt();
            assert!(deviation.abs() < 4.5, "{counts:?}");
        }
    }
}
