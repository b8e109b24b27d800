//! Tests on the table alone that the rows of a release stand in random order.
//!
//! An order that has to do with groups, values or quasi-identifiers tells which rows belong together, or which came first. Each
//! test raises a false alarm with a probability of at most [`ERROR_RATE`], for rows that were really shuffled.

use std::collections::HashMap;

/// Probability that a test fails on rows in random order.
pub(super) const ERROR_RATE: f64 = 1e-6;

/// Standard deviations that a normal variable exceeds, to either side, with a probability below [`ERROR_RATE`].
const DEVIATIONS: f64 = 5.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tested {
    /// Standard deviations from what is expected, or for rare events how many times as often.
    pub score: f64,
    pub passed: bool,
}

/// Count of a test. Counts add up for rows in several parts, each of which is in an order of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Order {
    /// Sum of independent deviations, and how many there are.
    Deviations { sum: f64, count: f64 },
    /// Neighbours of one group.
    Neighbours { expected: f64, found: f64 },
    /// Pairs that ascend and that descend.
    Ascents { up: f64, down: f64 },
}

impl Order {
    /// Returns both parts.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deviations { sum, count }, Self::Deviations { sum: more, count: counted }) => {
                Self::Deviations { sum: sum + more, count: count + counted }
            }
            (Self::Neighbours { expected, found }, Self::Neighbours { expected: more, found: others }) => {
                Self::Neighbours { expected: expected + more, found: found + others }
            }
            (Self::Ascents { up, down }, Self::Ascents { up: more, down: less }) => {
                Self::Ascents { up: up + more, down: down + less }
            }
            // Counts of different tests, which nobody adds.
            (known, _) => known,
        }
    }

    /// Tests that rows in random order would count as much.
    pub(super) fn tested(self) -> Tested {
        match self {
            Self::Deviations { sum, count } => {
                let score = sum / f64::sqrt(f64::max(count, 1.0));
                Tested { score, passed: score.abs() <= DEVIATIONS }
            }
            Self::Neighbours { expected, found } => {
                // Logarithm of Chernoff's bound of the probability of as many or more. The count of a few large groups varies less than that.
                let bound = if found > expected { found - expected + found * f64::ln(expected / found) } else { 0.0 };
                let passed = expected == 0.0 || bound >= ERROR_RATE.ln();
                Tested { score: if expected > 0.0 { found / expected } else { 0.0 }, passed }
            }
            Self::Ascents { up, down } => {
                let score = if up + down > 0.0 { (up - down) / f64::sqrt(up + down) } else { 0.0 };
                Tested { score, passed: score.abs() <= DEVIATIONS }
            }
        }
    }
}

/// Returns the correlation of a column with the position of the row. Of rows in random order, its mean is 0 and its
/// variance 1 / (rows - 1), whatever the column holds.
pub(super) fn position(column: impl ExactSizeIterator<Item = f64> + Clone) -> Order {
    let n = column.len() as f64;
    let mean = column.clone().sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    let (mut product, mut square) = (0.0, 0.0);
    for (place, value) in column.enumerate() {
        product += (value - mean) * (place as f64 - middle);
        square += (value - mean).powi(2);
    }
    let places = n * (n * n - 1.0) / 12.0;
    let correlation = if square > 0.0 && places > 0.0 { product / (square * places).sqrt() } else { 0.0 };
    Order::Deviations { sum: correlation * (n - 1.0).max(0.0).sqrt(), count: 1.0 }
}

/// Returns the same test of rows in several parts.
pub(super) fn together(parts: impl Iterator<Item = Order>) -> Order {
    parts.fold(Order::Deviations { sum: 0.0, count: 0.0 }, Order::and)
}

/// Counts neighbouring rows of one group, against what is expected: a Poisson variable, nearly. Rows may be in several parts.
pub(super) fn neighbours<'a>(parts: impl Iterator<Item = &'a [u32]>) -> Order {
    let (mut expected, mut found) = (0.0, 0.0);
    for groups in parts {
        let mut sizes = HashMap::new();
        groups.iter().for_each(|group| *sizes.entry(*group).or_insert(0.0) += 1.0);
        if sizes.len() < 2 {
            continue;
        }
        let pairs: f64 = sizes.values().map(|size| size * (size - 1.0)).sum();
        expected += pairs / groups.len() as f64;
        found += groups.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64;
    }
    Order::Neighbours { expected, found }
}

/// Tests that the first two values of groups ascend as often as not.
pub(super) fn ascents(groups: &[u32], values: &[u32]) -> Order {
    let number = groups.iter().max().map_or(0, |most| *most as usize + 1);
    let mut first: Vec<Option<u32>> = vec![None; number];
    let mut done = vec![false; number];
    let (mut up, mut down) = (0.0, 0.0);
    for (&group, &value) in groups.iter().zip(values) {
        let group = group as usize;
        match first[group] {
            None => first[group] = Some(value),
            Some(before) if !done[group] => {
                done[group] = true;
                up += f64::from(u8::from(value > before));
                down += f64::from(u8::from(value < before));
            }
            Some(_) => {}
        }
    }
    Order::Ascents { up, down }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// Returns a thousand groups of five rows with values 0 to 4; and shuffled.
    fn rows(shuffled: Option<u64>) -> (Vec<u32>, Vec<u32>) {
        let mut rows: Vec<(u32, u32)> = (0..5000).map(|row| (row / 5, row % 5)).collect();
        if let Some(seed) = shuffled {
            rows.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
        }
        rows.into_iter().unzip()
    }

    #[test]
    fn shuffled_rows_pass() {
        for seed in 0..50 {
            let (groups, values) = rows(Some(seed));
            assert!(position(groups.iter().map(|&group| f64::from(group))).tested().passed);
            assert!(position(values.iter().map(|&value| f64::from(value))).tested().passed);
            assert!(neighbours([&groups[..]].into_iter()).tested().passed && ascents(&groups, &values).tested().passed);
        }
    }

    #[test]
    fn each_order_is_found_by_its_test() {
        let (groups, values) = rows(None);
        assert!(!position(groups.iter().map(|&group| f64::from(group))).tested().passed);
        assert!(!neighbours([&groups[..]].into_iter()).tested().passed);
        assert!(!ascents(&groups, &values).tested().passed);
        // Pairs side by side, in random order otherwise.
        let mut order: Vec<u32> = (0..2500).collect();
        order.shuffle(&mut ChaCha20Rng::seed_from_u64(1));
        let pairs: Vec<u32> = order.iter().flat_map(|&pair| [pair, pair]).collect();
        assert!(
            position(pairs.iter().map(|&group| f64::from(group))).tested().passed
                && !neighbours([&pairs[..]].into_iter()).tested().passed
        );
    }

    /// Order in parts is found in each of them, though the parts are in order.
    #[test]
    fn parts_are_looked_at_by_themselves() {
        let (mut numbers, mut ordered) = (Vec::new(), Vec::new());
        for part in 0..20_u64 {
            let (groups, _) = rows(Some(part));
            numbers.push(groups);
            ordered.push(rows(None).0);
        }
        let test = |parts: &[Vec<u32>]| {
            let positions = together(parts.iter().map(|part| position(part.iter().map(|&group| f64::from(group)))));
            (positions.tested().passed, neighbours(parts.iter().map(Vec::as_slice)).tested().passed)
        };
        assert_eq!(test(&numbers), (true, true));
        assert_eq!(test(&ordered), (false, false));
    }

    #[test]
    fn few_rows_tell_nothing() {
        assert!(position([1.0, 2.0, 3.0].into_iter()).tested().passed);
        assert!(position(std::iter::empty::<f64>().collect::<Vec<_>>().into_iter()).tested().passed);
        let neighbours = |groups: &[u32]| neighbours([groups].into_iter());
        assert!(
            neighbours(&[0, 0, 1, 1]).tested().passed
                && neighbours(&[]).tested().passed
                && ascents(&[0, 0], &[1, 2]).tested().passed
        );
    }
}
