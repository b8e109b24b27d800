//! Random permutations of a cycle, of which none goes farther than `l - 1` places and no two agree anywhere.

use rand::Rng;
use rand::seq::SliceRandom;

/// In place of a place: none.
const NONE: u32 = u32::MAX;

/// How far each of `l - 1` permutations goes from each place of a cycle of `n >= l` places, place after place: `sigma_i(h) = h +
/// offsets[h * (l - 1) + i]` modulo `n`.
///
/// The graph in which every place has an edge to each of the `l - 1` places behind it is regular, so that it falls apart into perfect
/// matchings. One after the other is drawn at random from what is left, by random walks (A. Goel, M. Kapralov and S. Khanna, *Perfect
/// Matchings in O(n log n) Time in Regular Bipartite Graphs*, STOC 2010): a place takes one of its edges, and whoever had the other end
/// takes another of its own. Which of the matchings is which permutation is drawn at the end, so that for every place every distance
/// is equally likely in every permutation. O(l n log n).
pub(super) fn draw(n: usize, l: usize, rng: &mut impl Rng) -> Vec<u32> {
    let k = l - 1;
    // The edges of a place, those that are left in front; in the end, the permutations from the last to the first.
    let mut offsets: Vec<u32> = (0..n).flat_map(|_| 1..=k as u32).collect();
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut edge = vec![NONE; n];
    let mut taken_by = vec![NONE; n];
    for degree in (2..=k).rev() {
        order.shuffle(rng);
        edge.fill(NONE);
        taken_by.fill(NONE);
        for &first in &order {
            let mut place = first as usize;
            loop {
                // Not the one that was just lost.
                let before = edge[place];
                let choices = if before == NONE { degree } else { degree - 1 };
                let mut choice = rng.random_range(0..choices) as u32;
                choice += u32::from(before != NONE && choice >= before);
                edge[place] = choice;
                let end = (place + offsets[place * k + choice as usize] as usize) % n;
                match std::mem::replace(&mut taken_by[end], place as u32) {
                    NONE => break,
                    loser => place = loser as usize,
                }
            }
        }
        for (place, &edge) in edge.iter().enumerate() {
            offsets.swap(place * k + edge as usize, place * k + degree - 1);
        }
    }
    let mut names: Vec<usize> = (0..k).collect();
    names.shuffle(rng);
    let mut drawn = vec![0; n * k];
    for (drawn, offsets) in drawn.chunks_exact_mut(k).zip(offsets.chunks_exact(k)) {
        for (&name, &offset) in names.iter().zip(offsets) {
            drawn[name] = offset;
        }
    }
    drawn
}

/// Whether these are such permutations.
pub(super) fn is_valid(offsets: &[u32], n: usize, l: usize) -> bool {
    let k = l - 1;
    let mut seen = vec![false; n * k];
    let apart = offsets.chunks_exact(k).all(|of_place| {
        of_place
            .iter()
            .enumerate()
            .all(|(i, offset)| (1..l as u32).contains(offset) && of_place[i + 1..].iter().all(|other| other != offset))
    });
    let mut ends = offsets.iter().enumerate().map(|(at, &offset)| (at / k + offset as usize) % n * k + at % k);
    n >= l && offsets.len() == n * k && apart && ends.all(|end| !std::mem::replace(&mut seen[end], true))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    proptest! {
        #[test]
        fn both_conditions_hold(l in 2_usize..12, more in 0_usize..200, seed in any::<u64>()) {
            let n = l + more;
            prop_assert!(is_valid(&draw(n, l, &mut ChaCha20Rng::seed_from_u64(seed)), n, l));
        }
    }

    /// Example 4.1: five rows, l = 4.
    #[test]
    fn the_papers_draw_is_one() {
        let sigma: [[u32; 5]; 3] = [[1, 3, 4, 0, 2], [3, 2, 0, 4, 1], [2, 4, 3, 1, 0]];
        let offsets: Vec<u32> = (0..5).flat_map(|h| sigma.map(|sigma| (sigma[h] + 5 - h as u32) % 5)).collect();
        assert!(is_valid(&offsets, 5, 4));
    }

    /// Every distance at every place in every permutation, as often as any other; and far more draws than one per shift.
    #[test]
    fn no_distance_is_favoured() {
        const DRAWS: usize = 30_000;
        for (n, l) in [(4, 4), (5, 4), (7, 4), (12, 5)] {
            let k = l - 1;
            let mut rng = ChaCha20Rng::seed_from_u64(5);
            let mut counts = vec![0_usize; n * k * k];
            let mut neighbours: HashMap<(u32, u32), usize> = HashMap::new();
            for _ in 0..DRAWS {
                let offsets = draw(n, l, &mut rng);
                for (at, &offset) in offsets.iter().enumerate() {
                    counts[at * k + offset as usize - 1] += 1;
                }
                *neighbours.entry((offsets[0], offsets[k])).or_default() += 1;
            }
            let expected = DRAWS as f64 / k as f64;
            // Five standard deviations.
            let slack = 5.0 * (expected * (1.0 - 1.0 / k as f64)).sqrt();
            assert!(counts.iter().all(|&count| (count as f64 - expected).abs() < slack), "{n} {l}: {counts:?}");
            assert!(neighbours.len() > k, "{neighbours:?}");
        }
    }

    /// Of the two ways to permute a cycle of three for l = 3, each is drawn as often, and of the draws for four rows none is left out.
    #[test]
    fn every_draw_can_happen() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let mut seen: HashMap<Vec<u32>, usize> = HashMap::new();
        (0..20_000).for_each(|_| *seen.entry(draw(4, 4, &mut rng)).or_default() += 1);
        // Latin squares of order four without the identity: 4! * 4 reduced ones by symbols, first row fixed.
        assert_eq!(seen.len(), 24);
        let expected = 20_000.0 / 24.0;
        assert!(
            seen.values().all(|&count| (count as f64) > 0.5 * expected && (count as f64) < 2.0 * expected),
            "{seen:?}"
        );
    }
}
