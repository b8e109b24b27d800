//! A cycle of sensitive values in which any `l` consecutive ones are different (Lemma 8.1).

use std::cmp::Reverse;

use rand::Rng;
use rand::seq::SliceRandom;

use crate::error::{Error, Result};

/// The sensitive values of a bucket, in a cycle. `counts` has every value that occurs with its number of rows, of which none may be above
/// `1/l` of all.
///
/// The values, by falling frequency, fill a table of `q = n / l` rows column by column; read row by row, a value comes again only in
/// another row, and never at the same or an earlier column. The paper writes `r`, the rest of the division, where it must be `q`; and the
/// number of columns is `n / q` rounded up, which can be more than `l + 1`. The order of equally frequent values, the start and the
/// direction are random: a reader who knows this code would else tell the true world by the direction of the shift.
pub(super) fn values(mut counts: Vec<(u32, usize)>, l: usize, rng: &mut impl Rng) -> Result<Vec<u32>> {
    counts.shuffle(rng);
    counts.sort_by_key(|&(_, count)| Reverse(count));
    let sorted: Vec<u32> = counts.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count)).collect();
    let n = sorted.len();
    let q = n / l;
    if q == 0 {
        return Err(Error::internal("a bucket of less than l rows"));
    }
    let mut cycle = Vec::with_capacity(n);
    for i in 0..q {
        cycle.extend(sorted.iter().skip(i).step_by(q));
    }
    cycle.rotate_left(rng.random_range(0..n));
    if rng.random() {
        cycle.reverse();
    }
    match is_diverse(&cycle, l) {
        true => Ok(cycle),
        false => Err(Error::internal("a cycle with a value twice among l; nothing was published")),
    }
}

/// Whether any `l` consecutive values of a cycle are different.
pub(super) fn is_diverse(cycle: &[u32], l: usize) -> bool {
    let n = cycle.len();
    n >= l && (0..n).all(|h| (1..l).all(|j| cycle[h] != cycle[(h + j) % n]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// All ways to write `n` as a sum of at most `most` falling parts.
    fn partitions(n: usize, most: usize, so_far: &mut Vec<usize>, f: &mut impl FnMut(&[usize])) {
        if n == 0 {
            return f(so_far);
        }
        for part in (1..=n.min(most)).rev() {
            so_far.push(part);
            partitions(n - part, part, so_far, f);
            so_far.pop();
        }
    }

    /// All count vectors of up to 24 rows that are l-diverse, for l up to 8.
    #[test]
    fn every_diverse_bucket_has_a_cycle() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for l in 2..=8 {
            for n in l..=24 {
                partitions(n, n / l, &mut Vec::new(), &mut |counts| {
                    let counts = counts.iter().enumerate().map(|(value, &count)| (value as u32, count)).collect();
                    assert_eq!(values(counts, l, &mut rng).unwrap().len(), n);
                });
            }
        }
    }

    #[test]
    fn five_values_for_four() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let cycle = values((0..5).map(|value| (value, 1)).collect(), 4, &mut rng).unwrap();
        assert_eq!(cycle.len(), 5);
        assert!(is_diverse(&cycle, 5));
    }

    proptest! {
        #[test]
        fn skewed_buckets(counts in prop::collection::vec(1_usize..50, 2..40), l in 2_usize..20) {
            let n: usize = counts.iter().sum();
            prop_assume!(counts.iter().max().unwrap() * l <= n);
            let counts = counts.into_iter().enumerate().map(|(value, count)| (value as u32, count)).collect();
            let cycle = values(counts, l, &mut ChaCha20Rng::seed_from_u64(n as u64)).unwrap();
            prop_assert_eq!(cycle.len(), n);
        }
    }
}
