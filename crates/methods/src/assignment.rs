//! m-Invariance's assignment, the counts: which sets of sensitive values rows are grouped under, and how many rows of each
//! value under which. [Anatomy](super::anatomy) uses it with m = l.

use std::collections::BTreeSet;

use super::lots::Lots;
use crate::error::{Cures, Error, Result, thousands};
use crate::microdata::Code;

/// `rows` rows of each of these values go to the bucket of this signature.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Codes of the values, ascending.
    pub signature: Box<[u32]>,
    /// Rows of each value, the paper's alpha.
    pub rows: usize,
}

/// Returns the paper's (alpha, beta) assignment (Section 4.2, Inequalities 5 to 7): again and again the most frequent values,
/// as few as possible and as many rows of them as leave the rest m-eligible, become a bucket. Lemma 5: there always are
/// some while the rest is m-eligible. Ties between equally frequent values are broken at random.
///
/// Every step uses up a value or reaches the bound of eligibility; only the values at the top of the order are touched, so
/// a step costs O(m log V).
pub(super) fn steps(counts: &[usize], m: usize, lots: &mut impl Lots) -> Result<Vec<Step>> {
    let mut ties: Vec<u32> = (0..counts.len() as u32).collect();
    lots.shuffle(&mut ties);
    steps_by(counts, m, &ties)
}

/// Returns the same, with ties broken by these numbers, which must be in random order.
pub(super) fn steps_by(counts: &[usize], m: usize, ties: &[u32]) -> Result<Vec<Step>> {
    let mut by_count: BTreeSet<(usize, u32, u32)> = counts
        .iter()
        .zip(ties)
        .enumerate()
        .filter(|(_, (count, _))| **count > 0)
        .map(|(value, (&count, &tie))| (count, tie, value as u32))
        .collect();
    let mut left: usize = counts.iter().sum();
    let mut steps = Vec::new();
    while left > 0 {
        let (beta, alpha) = alpha_beta(&by_count, left, m)
            .ok_or_else(|| Error::internal("no (alpha, beta) for rows that should be m-eligible"))?;
        let mut signature = Vec::with_capacity(beta);
        let mut reduced = Vec::with_capacity(beta);
        for _ in 0..beta {
            if let Some((count, tie, value)) = by_count.pop_last() {
                signature.push(value);
                reduced.push((count - alpha, tie, value));
            }
        }
        by_count.extend(reduced.into_iter().filter(|&(count, ..)| count > 0));
        left -= alpha * beta;
        signature.sort_unstable();
        steps.push(Step { signature: signature.into(), rows: alpha });
    }
    Ok(steps)
}

/// Returns the rows that go under signatures that exist, and takes them from the counts. Each signature takes as
/// many as leave the rest m-eligible.
///
/// The paper has new rows make signatures of their own, so that these become more and their buckets smaller with every release; small
/// buckets need counterfeits for most rows that leave, and have less choice of near rows. Which signatures are reused depends on counts only.
pub(super) fn reuse<'a>(counts: &mut [usize], m: usize, signatures: impl IntoIterator<Item = &'a [u32]>) -> Vec<Step> {
    let mut left: usize = counts.iter().sum();
    let mut steps = Vec::new();
    let mut by_count: BTreeSet<(usize, u32)> = counts.iter().copied().zip(0..).collect();
    for signature in signatures {
        let of = |value: u32| counts[value as usize];
        let fewest = signature.iter().map(|&value| of(value)).min().unwrap_or(0);
        if fewest == 0 || signature.len() < m {
            continue;
        }
        let most = signature.iter().map(|&value| of(value)).max().unwrap_or(0);
        let outside = by_count.iter().rev().find(|(_, value)| signature.binary_search(value).is_err());
        let outside = outside.map_or(0, |&(count, _)| count);
        // As (6) and (7) of the paper; the rest is eligible as it is.
        let room = |count: usize| left.saturating_sub(m.saturating_mul(count));
        let mut rows = fewest.min(room(outside) / signature.len());
        if signature.len() > m {
            rows = rows.min(room(most) / (signature.len() - m));
        }
        if rows > 0 {
            for &value in signature {
                let count = &mut counts[value as usize];
                by_count.remove(&(*count, value));
                *count -= rows;
                by_count.insert((*count, value));
            }
            left -= rows * signature.len();
            steps.push(Step { signature: signature.into(), rows });
        }
    }
    steps
}

/// Deals rows into groups of at least `m` different values, by the steps. It shows each group to `group`. `lines`
/// has the rows of each value that occurs, in an order that does not depend on arrival; they are shuffled.
pub(super) fn deal(
    lines: &mut [&mut [u32]],
    m: usize,
    lots: &mut impl Lots,
    mut group: impl FnMut(&[u32]),
) -> Result<()> {
    let mut left: Vec<usize> = lines.iter().map(|rows| rows.len()).collect();
    let steps = steps(&left, m, lots)?;
    lots.shuffle_each(lines);
    let mut rows = Vec::with_capacity(m);
    for step in steps {
        for _ in 0..step.rows {
            rows.clear();
            for &value in &step.signature {
                let value = value as usize;
                let next = left[value].checked_sub(1);
                left[value] = next.ok_or_else(|| Error::internal("more rows assigned than there are"))?;
                rows.push(lines[value][left[value]]);
            }
            group(&rows);
        }
    }
    Ok(())
}

/// Returns rows of each of so many values, ascending, as far as they are `wanted`.
pub(super) fn wanted_by_value<C: Code>(codes: &[C], values: usize, wanted: impl Fn(usize) -> bool) -> Vec<Vec<u32>> {
    let mut rows_of = vec![Vec::new(); values];
    for (row, value) in codes.iter().enumerate().filter(|(row, _)| wanted(*row)) {
        rows_of[value.wide() as usize].push(row as u32);
    }
    rows_of
}

/// Sorts rows by their sensitive values, and returns one piece for each value. Rows of one value keep their order.
pub(super) fn by_value<'a>(rows: &'a mut [u32], sensitive_codes: &[impl Code]) -> Vec<&'a mut [u32]> {
    let code = |row: u32| sensitive_codes[row as usize].wide() as usize;
    let values = rows.iter().map(|&row| code(row) + 1).max().unwrap_or(0);
    if values <= rows.len() {
        // Of few values, lists take fewer steps than a sort.
        let mut rows_of = vec![Vec::new(); values];
        rows.iter().for_each(|&row| rows_of[code(row)].push(row));
        rows.iter_mut().zip(rows_of.into_iter().flatten()).for_each(|(place, row)| *place = row);
    } else {
        rows.sort_by_key(|&row| sensitive_codes[row as usize]);
    }
    rows.chunk_by_mut(|&a, &b| sensitive_codes[a as usize] == sensitive_codes[b as usize]).collect()
}

pub(super) struct ByValue {
    rows: Vec<u32>,
    /// Numbers of rows of each value that occurs.
    rows_of: Vec<usize>,
}

impl ByValue {
    /// Takes rows of these values; of one value, in their order.
    pub(super) fn new(sensitive_codes: &[impl Code]) -> Self {
        let mut rows: Vec<u32> = (0..sensitive_codes.len() as u32).collect();
        let rows_of = by_value(&mut rows, sensitive_codes).iter().map(|rows| rows.len()).collect();
        Self { rows, rows_of }
    }

    /// Returns a piece for each value that occurs.
    pub(super) fn pieces(&mut self) -> Vec<&mut [u32]> {
        let mut left = self.rows.as_mut_slice();
        self.rows_of.iter().map(|&rows| left.split_off_mut(..rows).unwrap_or_default()).collect()
    }
}

/// Counts the occurrences of each value that occurs, in the order of values.
pub(super) fn occurrences(values: &[impl Code]) -> Vec<usize> {
    let most = values.iter().max().map_or(0, |&most| most.wide() as usize);
    if most < values.len() {
        let mut counts = vec![0; most + 1];
        values.iter().for_each(|&value| counts[value.wide() as usize] += 1);
        counts.retain(|&count| count > 0);
        return counts;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(<[_]>::len).collect()
}

/// Refuses rows of which one value, the most frequent one, makes up more than `1/l`; `what` is what they are called.
pub(super) fn check_eligible(what: &str, rows: usize, most: usize, l: usize, sensitive: &str) -> Result<()> {
    if is_eligible(most, rows, l) {
        return Ok(());
    }
    let text = format!(
        "the {} {what} are not {l}-eligible: the most frequent value of {sensitive} makes up {:.2}% of them and at most \
         1/l = {:.2}% is allowed",
        thousands(rows),
        100.0 * most as f64 / rows as f64,
        100.0 / l as f64,
    );
    let lower = Some(("l", rows / most)).filter(|(_, l)| *l > 1);
    Err(Error::unfit(text, Cures { lower, rows: "rows of other values", ..Cures::default() }))
}

/// Returns true if the most frequent value makes up at most `1/l` of the rows. `most` rows have it.
pub(super) fn is_eligible(most: usize, rows: usize, l: usize) -> bool {
    most.saturating_mul(l) <= rows
}

fn alpha_beta(by_count: &BTreeSet<(usize, u32, u32)>, left: usize, m: usize) -> Option<(usize, usize)> {
    let greatest = by_count.last()?.0;
    let room = left.checked_sub(m.checked_mul(greatest)?)?;
    let mut counts = by_count.iter().rev().map(|&(count, ..)| count).skip(m - 1).peekable();
    let mut beta = m;
    while let Some(n_beta) = counts.next() {
        let next = counts.peek().copied().unwrap_or(0);
        // (5) alpha <= n_beta; (6) alpha (beta - m) <= left - m n_1; (7) alpha beta <= left - m n_{beta+1}.
        let by_six = if beta == m { usize::MAX } else { room / (beta - m) };
        let by_seven = left.checked_sub(m.saturating_mul(next)).map_or(0, |room| room / beta);
        let alpha = n_beta.min(by_six).min(by_seven);
        if alpha >= 1 {
            return Some((beta, alpha));
        }
        beta += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// Rows of a value ascend, and only those are there that are wanted.
    #[test]
    fn wanted_rows_of_each_value() {
        let codes: Vec<u32> = (0..7000_u32).map(|row| row.wrapping_mul(2_654_435_761) >> 8 & 15).collect();
        let wanted = |row: usize| row % 3 != 1;
        let found = wanted_by_value(&codes, 20, wanted);
        assert_eq!(found.len(), 20);
        for (value, found) in found.iter().enumerate() {
            let rows = (0..codes.len()).filter(|&row| wanted(row) && codes[row] as usize == value);
            assert!(found.iter().copied().eq(rows.map(|row| row as u32)), "{value}");
        }
        assert!(wanted_by_value::<u8>(&[], 2, wanted).iter().all(Vec::is_empty));
    }

    proptest! {
        /// Few values and many, more of them than rows too.
        #[test]
        fn rows_of_each_value(codes in (1_u32..90).prop_flat_map(|values| proptest::collection::vec(0..values, 0..40))) {
            let mut expected: Vec<u32> = (0..codes.len() as u32).collect();
            expected.sort_by_key(|&row| codes[row as usize]);
            let mut all = ByValue::new(&codes);
            prop_assert_eq!(&all.pieces().concat(), &expected);
            let occurring = all.pieces();
            prop_assert!(occurrences(&codes).into_iter().eq(occurring.iter().map(|piece| piece.len())));
            prop_assert!(occurring.iter().all(|piece| piece.iter().all(|&row| codes[row as usize] == codes[piece[0] as usize])));
            let mut rows: Vec<u32> = (0..codes.len() as u32).rev().collect();
            let of_reversed = by_value(&mut rows, &codes).concat();
            expected.sort_by_key(|&row| (codes[row as usize], std::cmp::Reverse(row)));
            prop_assert_eq!(&of_reversed, &expected);
            let pieces = by_value(&mut rows, &codes);
            prop_assert!(occurrences(&codes).into_iter().eq(pieces.iter().map(|piece| piece.len())));
            prop_assert!(pieces.iter().all(|piece| piece.iter().all(|&row| codes[row as usize] == codes[piece[0] as usize])));
        }

        /// The rest after old signatures took their rows can be assigned: it is m-eligible.
        #[test]
        fn reused_signatures_leave_eligible_rows(
            counts in proptest::collection::vec(0_usize..60, 1..12),
            signatures in proptest::collection::vec(proptest::collection::btree_set(0_u32..12, 1..8), 0..12),
            m in 2_usize..6,
        ) {
            let total: usize = counts.iter().sum();
            prop_assume!(counts.iter().all(|count| count * m <= total));
            let values = counts.len() as u32;
            let signatures: Vec<Vec<u32>> =
                signatures.into_iter().map(|signature| signature.into_iter().filter(|&value| value < values).collect()).collect();
            let mut left = counts.clone();
            let reused = reuse(&mut left, m, signatures.iter().map(Vec::as_slice));
            let rest: usize = left.iter().sum();
            prop_assert!(left.iter().all(|count| count * m <= rest));
            let mut taken = vec![0; counts.len()];
            for step in &reused {
                prop_assert!(step.rows > 0 && step.signature.len() >= m);
                prop_assert!(signatures.iter().any(|signature| **signature == *step.signature));
                step.signature.iter().for_each(|&value| taken[value as usize] += step.rows);
            }
            for (value, count) in counts.iter().enumerate() {
                prop_assert_eq!(left[value] + taken[value], *count);
            }
            prop_assert!(steps(&left, m, &mut ChaCha20Rng::seed_from_u64(1)).is_ok());
            // Each took as much as it could: nothing more goes under the last one.
            if let Some(last) = reused.last() {
                prop_assert!(reuse(&mut left, m, [&*last.signature]).is_empty());
            }
        }
    }

    /// Rows of each value as many as of the others can all be reused: they go where rows are.
    #[test]
    fn everything_can_be_reused() {
        let mut counts = [7, 7, 7, 5, 5];
        let reused = reuse(&mut counts, 2, [&[0, 1, 2][..], &[3, 4]]);
        assert_eq!(counts, [0; 5]);
        assert_eq!(reused.iter().map(|step| step.rows).collect::<Vec<_>>(), [7, 5]);
    }

    proptest! {
        #[test]
        fn eligible_counts_are_assigned_completely(
            counts in prop::collection::vec(0_usize..40, 2..30), m in 2_usize..7,
        ) {
            prop_assume!(counts.iter().max().unwrap() * m <= counts.iter().sum());
            let mut rest = counts.clone();
            for step in steps(&counts, m, &mut ChaCha20Rng::seed_from_u64(3)).unwrap() {
                prop_assert!(step.signature.len() >= m);
                prop_assert!(step.signature.windows(2).all(|pair| pair[0] < pair[1]));
                for &value in &step.signature {
                    rest[value as usize] -= step.rows;
                }
                prop_assert!(rest.iter().max().unwrap() * m <= rest.iter().sum());
            }
            prop_assert!(rest.iter().all(|&count| count == 0));
        }
    }

    #[test]
    fn many_values_of_one_row_each() {
        let steps = steps(&vec![1; 100_003], 10, &mut ChaCha20Rng::seed_from_u64(0)).unwrap();
        assert_eq!(steps.iter().map(|step| step.rows * step.signature.len()).sum::<usize>(), 100_003);
    }
}
