//! Random output tables that hold what they promise to the last bit.
//!
//! Solutions of linear programs are right to rounding only. A table's probabilities are whole multiples of a power of two instead, so
//! that sums of rows and columns are exact in floating point, and `delta` can be checked without a tolerance.

use super::mix;

/// Greatest losses of a row or column to make the table exact, in this order.
const SPARE: [f64; 5] =
    [0.0, 1.0 / (1u64 << 32) as f64, 1.0 / (1u64 << 24) as f64, 1.0 / (1u64 << 16) as f64, 1.0 / 256.0];

/// Probabilities of publishing another value, for the different values of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputTable {
    values: usize,
    /// The parts that make a probability of one.
    whole: u64,
    /// Parts of each published value, row after row.
    parts: Vec<u64>,
}

/// Returns true if a column with these entries keeps delta. Its greatest entry is `most`, and it sums to `sum`. Both are exact as doubles.
///
/// Sums of columns that keep delta keep it: of two fractions, their mediant lies between, and rounding does not change an order.
pub(super) fn keeps(most: u64, sum: u64, delta: f64) -> bool {
    most == 0 || most as f64 / sum as f64 <= delta
}

impl OutputTable {
    /// Returns the exact table next to a solution. `weights` are the rows of each value.
    pub(super) fn new(solution: &[f64], weights: &[u32], delta: f64) -> Self {
        let values = weights.len();
        let rows: u64 = weights.iter().copied().map(u64::from).sum();
        // Sums over all rows stay below 2^53 when tables are mixed, which makes them finer.
        let whole = 1 << (52 - mix::FINER.ilog2()).saturating_sub(rows.ilog2() + 1).min(28);
        let mass = |value: usize| -> f64 {
            weights.iter().enumerate().map(|(row, &weight)| f64::from(weight) * solution[row * values + value]).sum()
        };
        let rest = (0..values).max_by(|&a, &b| mass(a).total_cmp(&mass(b)).then(b.cmp(&a))).unwrap_or(0);
        let exact = SPARE.iter().find_map(|spare| exact(solution, weights, delta, whole, rest, *spare));
        let parts = exact.unwrap_or_else(|| {
            // Everybody publishes one value, which no one can be told by.
            (0..values * values).map(|at| if at % values == rest { whole } else { 0 }).collect()
        });
        Self { values, whole, parts }
    }

    /// Returns the parts that make a probability of one.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// Returns the parts of all probabilities, row after row.
    pub(super) fn parts(&self) -> &[u64] {
        &self.parts
    }

    /// Returns the parts of the probability that a row of one value publishes another.
    #[inline]
    pub(super) fn parts_of(&self, row: usize, value: usize) -> u64 {
        self.parts[row * self.values + value]
    }

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.parts.capacity() * size_of::<u64>()
    }
}

/// Returns the exact parts of a table whose rows give up a share of columns. The share is `spare` of every column; parts are rounded so
/// that columns keep delta, and rows publish the value `rest` with what is left to them. As everybody does, that column has room for it.
fn exact(solution: &[f64], weights: &[u32], delta: f64, whole: u64, rest: usize, spare: f64) -> Option<Vec<u64>> {
    let values = weights.len();
    let scale = whole as f64 * (1.0 - spare);
    // A hair more than the solution says, for where it is exact but for rounding.
    let part = |probability: &f64| (probability * scale + 1e-4).floor().max(0.0) as u64;
    let mut parts: Vec<u64> = solution.iter().map(part).collect();
    let sum = |parts: &[u64], value: usize| -> u64 {
        weights.iter().enumerate().map(|(row, &weight)| u64::from(weight) * parts[row * values + value]).sum()
    };
    let most = |parts: &[u64], value: usize| (0..values).map(|row| parts[row * values + value]).max().unwrap_or(0);
    for value in (0..values).filter(|&value| value != rest) {
        // Lowering the greatest entries lowers the sum a little, and so what they may be.
        loop {
            let sum = sum(&parts, value);
            if keeps(most(&parts, value), sum, delta) {
                break;
            }
            let mut limit = (sum as f64 * delta) as u64;
            while !keeps(limit, sum, delta) {
                limit -= 1;
            }
            (0..values).for_each(|row| parts[row * values + value] = parts[row * values + value].min(limit));
        }
    }
    for row in parts.chunks_exact_mut(values) {
        row[rest] = 0;
        row[rest] = whole.checked_sub(row.iter().sum())?;
    }
    keeps(most(&parts, rest), sum(&parts, rest), delta).then_some(parts)
}

#[cfg(test)]
impl OutputTable {
    /// Returns the probability that a row of one value publishes another.
    pub(super) fn probability(&self, row: usize, value: usize) -> f64 {
        self.parts_of(row, value) as f64 / self.whole as f64
    }

    /// Returns true if rows sum to one and columns keep delta: by the probabilities as they are drawn, in floating point, without a tolerance.
    pub(super) fn keeps(&self, weights: &[u32], delta: f64) -> bool {
        let d = self.values;
        let sums_to_one = |row: usize| (0..d).map(|value| self.probability(row, value)).sum::<f64>() == 1.0;
        let sum = |value: usize| -> f64 {
            weights.iter().enumerate().map(|(row, &rows)| f64::from(rows) * self.probability(row, value)).sum()
        };
        let covers = |value: usize| {
            let most = (0..d).map(|row| self.probability(row, value)).fold(0.0, f64::max);
            most == 0.0 || most / sum(value) <= delta
        };
        weights.len() == d && (0..d).all(|at| sums_to_one(at) && covers(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_taken_back() {
        // Three rows, every two of them together half of the time: delta is exactly one half.
        let noise = 1e-13;
        let solution = [0.5 + noise, 0.5, 0.0, 0.0, 0.5 + noise, 0.5, 0.5 - noise, 0.0, 0.5];
        let table = OutputTable::new(&solution, &[1, 1, 1], 0.5);
        assert!(table.keeps(&[1, 1, 1], 0.5));
        assert!((table.probability(0, 0) - 0.5).abs() < 1e-6);
        // Not a solution: the least that is exact is one value for all.
        let table = OutputTable::new(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], &[1, 1, 1], 0.4);
        assert!(table.keeps(&[1, 1, 1], 0.4));
    }

    #[test]
    fn a_clean_solution_stays_as_it_is() {
        let table = OutputTable::new(&[1.0, 0.0, 1.0, 0.0], &[2, 1], 0.34);
        assert_eq!([0, 1].map(|row| table.probability(row, 0)), [1.0, 1.0]);
        assert_eq!(table.probability(0, 1), 0.0);
    }

    #[test]
    fn tables_that_break_delta_are_told() {
        let identity = OutputTable { values: 2, whole: 4, parts: vec![4, 0, 0, 4] };
        assert!(!identity.keeps(&[2, 2], 0.4));
        assert!(identity.keeps(&[2, 2], 0.5));
        let short = OutputTable { values: 2, whole: 4, parts: vec![1, 2, 1, 2] };
        assert!(!short.keeps(&[2, 2], 0.5));
    }
}
