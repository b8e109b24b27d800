//! The linear program of an output table, solved exactly.
//!
//! Of `d` different values with `w[i]` rows each, `p[i][j]` is the probability that a row of value `i` publishes value `j`:
//! minimize `sum w[i] dis(i, j) p[i][j]` where every row of `p` sums to one and no row contributes more than `delta` of what its
//! column sums to over all rows (MuCo, Section 4). A general solver sees `d^2` variables and `d^2 + d` constraints. But the
//! constraints of a column are those of a cone, and the rays of this cone that matter are *covers*: a value `j` and `1 / delta` rows,
//! of which one may count in part, that publish it equally often. Over covers the program has `d` constraints,
//! "every row is covered once", and as many variables as there are covers. So it is solved by the primal
//! simplex method with column generation (Dantzig and Wolfe 1960): the cover that saves most for given prices of rows is found by taking the
//! rows that gain most until there are enough, a fractional knapsack. Ties are broken lexicographically, so that it ends.
//!
//! Which covers make a table depends on the numbers of rows only; distances say which of these tables is best. So pivoting may begin with a basis that
//! is optimal for the same numbers of rows at other distances (see [`starts`](super::starts)).

use std::sync::Arc;

/// Tolerance of reduced costs and ratios, where the greatest distance is 1.
const TOLERANCE: f64 = 1e-10;
/// Pivots below this are not trusted, where the greatest entry of the column is 1.
const PIVOT: f64 = 1e-9;
/// Limit below which entries are trusted only if the inverse is new. They can be what rounding has left of nothing,
/// and the covers would be too much alike after them.
const UNSURE: f64 = 1e-6;
/// Tolerance of a row being covered once. Beyond it something went wrong.
const SLACK: f64 = 1e-9;
/// Pivots after which the inverse is computed anew.
const FRESH: usize = 64;
/// Values that are priced before the best cover so far is taken.
const PRICED: usize = 16;
/// No value is published: an artificial cover of one row.
const ARTIFICIAL: usize = usize::MAX;

/// A linear program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program<'a> {
    /// Rows of each value.
    pub weights: &'a [u32],
    /// Distance between any two values, row after row; not negative.
    pub distances: &'a [f64],
    /// True if values are in order on a line, so that neighbours are near.
    pub line: bool,
    /// Rows that must be able to publish a value: 1 / delta, at most all.
    pub cover: f64,
}

impl Program<'_> {
    fn values(&self) -> usize {
        self.weights.len()
    }

    /// Returns the expected distance of a table, over all rows.
    #[cfg(test)]
    pub(super) fn cost(&self, table: &[f64]) -> f64 {
        let d = self.values();
        let of = |at: usize| f64::from(self.weights[at / d]) * self.distances[at] * table[at];
        (0..d * d).map(of).sum()
    }

    /// Returns an optimal table, row after row. Its sums are right to rounding. `start` is asked for where to begin, if pivots are needed at all: a basis
    /// of the same rows.
    pub(super) fn solve(&self, start: impl FnOnce() -> Option<Arc<Basis>>) -> Vec<f64> {
        let d = self.values();
        let widest = self.distances.iter().copied().fold(0.0, f64::max);
        let rows: f64 = self.weights.iter().copied().map(f64::from).sum();
        let mut table = vec![0.0; d * d];
        if widest <= 0.0 {
            // All values are as good as each other.
            (0..d).for_each(|i| table[i * d] = 1.0);
            return table;
        }
        let scaled: Vec<f64> = self.distances.iter().map(|distance| distance / widest).collect();
        let program = Program { distances: &scaled, ..*self };
        if rows <= self.cover {
            let value = program.best_value(0..d).1;
            (0..d).for_each(|i| table[i * d + value] = 1.0);
            return table;
        }
        // Where nothing helps the first basis is right, if not the best.
        let optimal = start().and_then(|start| program.optimum(start.at(&program), FRESH));
        let basis = optimal.or_else(|| program.optimal()).unwrap_or_else(|| Basis::new(&program));
        for (place, &value) in basis.values.iter().enumerate().filter(|(_, value)| **value != ARTIFICIAL) {
            for i in 0..d {
                table[i * d + value] += basis.levels[place].max(0.0) * basis.shares[place * d + i];
            }
        }
        table
    }

    /// Returns an optimal basis, where the greatest distance is 1; with less and less trust in what many pivots leave of an inverse.
    pub(super) fn optimal(&self) -> Option<Basis> {
        [FRESH, 1].into_iter().find_map(|fresh| self.optimum(Basis::new(self), fresh))
    }

    /// Returns the optimal basis that pivots from this one lead to.
    fn optimum(&self, mut basis: Basis, fresh: usize) -> Option<Basis> {
        basis.optimize(self, fresh);
        basis.covers_all(self.values()).then_some(basis)
    }

    /// Returns the cost of these rows all publishing one value, and the best value.
    fn best_value(&self, rows: std::ops::Range<usize>) -> (f64, usize) {
        let d = self.values();
        let cost = |value: usize| -> f64 {
            rows.clone().map(|row| f64::from(self.weights[row]) * self.distances[row * d + value]).sum()
        };
        let first = (f64::INFINITY, 0);
        rows.clone()
            .map(|value| (cost(value), value))
            .fold(first, |best, next| if next.0 < best.0 { next } else { best })
    }

    /// Blocks of values that publish one value each, as (start, end, published value): on a line the best blocks of neighbours, which
    /// is often the optimum already; else all of them in one.
    fn blocks(&self) -> Vec<(usize, usize, usize)> {
        let d = self.values();
        if !self.line || d > 64 {
            return vec![(0, d, self.best_value(0..d).1)];
        }
        let mut best = vec![(f64::INFINITY, 0, 0); d + 1];
        best[0].0 = 0.0;
        for end in 1..=d {
            let mut rows = 0.0;
            for start in (0..end).rev() {
                rows += f64::from(self.weights[start]);
                if rows < self.cover || best[start].0.is_infinite() {
                    continue;
                }
                let (cost, value) = self.best_value(start..end);
                if best[start].0 + cost < best[end].0 {
                    best[end] = (best[start].0 + cost, start, value);
                }
                // Two blocks cost no more than one that could be cut in two.
                if rows >= 2.0 * self.cover + f64::from(self.weights[start]) {
                    break;
                }
            }
        }
        if best[d].0.is_infinite() {
            return vec![(0, d, self.best_value(0..d).1)];
        }
        let mut blocks = Vec::new();
        let mut end = d;
        while end > 0 {
            let (_, start, value) = best[end];
            blocks.push((start, end, value));
            end = start;
        }
        blocks
    }
}

/// A basis: as many covers as there are values.
#[derive(Debug, Clone)]
pub(super) struct Basis {
    /// Published value of each cover.
    values: Vec<usize>,
    /// Share of each row in each cover, 0 to 1; cover after cover.
    shares: Vec<f64>,
    costs: Vec<f64>,
    /// Level at which each cover is used.
    levels: Vec<f64>,
    /// Inverse of the matrix of the shares, a row per cover.
    inverse: Vec<f64>,
    /// Place where pricing goes on.
    next: usize,
}

/// A cover that would enter.
struct Cover {
    value: usize,
    shares: Vec<f64>,
    cost: f64,
}

impl Basis {
    /// Returns the blocks of the program; artificial covers of single rows, which are not used, make up the number.
    fn new(program: &Program<'_>) -> Self {
        let d = program.values();
        let mut basis = Self {
            values: vec![ARTIFICIAL; d],
            shares: vec![0.0; d * d],
            costs: program.weights.iter().map(|&weight| 1e4 * f64::from(weight)).collect(),
            levels: vec![0.0; d],
            inverse: vec![0.0; d * d],
            next: 0,
        };
        for (start, end, value) in program.blocks() {
            let weights = &program.weights[start..end];
            let share = program.cover / weights.iter().copied().map(f64::from).sum::<f64>();
            let last = end - 1;
            for row in start..last {
                basis.shares[row * d + row] = 1.0;
                basis.inverse[row * d + row] = 1.0;
                basis.inverse[row * d + last] = -1.0;
            }
            basis.values[last] = value;
            basis.shares[last * d + start..last * d + end].fill(share);
            basis.inverse[last * d + last] = 1.0 / share;
            basis.levels[last] = 1.0 / share;
            let cost = |row: usize| share * f64::from(program.weights[row]) * program.distances[row * d + value];
            basis.costs[last] = (start..end).map(cost).sum();
        }
        basis
    }

    /// Returns the same covers at the distances of another program of the same rows.
    fn at(&self, program: &Program<'_>) -> Self {
        let d = program.values();
        let mut basis = Self { next: 0, ..self.clone() };
        for (place, &value) in self.values.iter().enumerate().filter(|(_, value)| **value != ARTIFICIAL) {
            let of = |row: usize| self.shares[place * d + row] * program.distances[row * d + value];
            basis.costs[place] = (0..d).map(|row| f64::from(program.weights[row]) * of(row)).sum();
        }
        basis
    }

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        let d = self.values.len();
        size_of::<Self>() + d * size_of::<usize>() + 2 * d * (d + 1) * size_of::<f64>()
    }

    /// Pivots until no cover saves anything. The inverse is computed anew after so many of them.
    fn optimize(&mut self, program: &Program<'_>, every: usize) {
        let d = program.values();
        let mut order = Vec::with_capacity(d);
        let (mut prices, mut direction) = (vec![0.0; d], vec![0.0; d]);
        let mut fresh = true;
        for pivots in 1..200 + 100 * d {
            for (i, price) in prices.iter_mut().enumerate() {
                let of = |place: usize| self.costs[place] * self.inverse[place * d + i];
                *price = (0..d).map(of).sum::<f64>() / f64::from(program.weights[i]);
            }
            let Some(cover) = self.price(program, &prices, &mut order) else {
                if fresh || !self.refresh(d) {
                    return;
                }
                fresh = true;
                continue;
            };
            for (place, step) in direction.iter_mut().enumerate() {
                let inverse = &self.inverse[place * d..][..d];
                *step = inverse.iter().zip(&cover.shares).map(|(a, b)| a * b).sum();
            }
            let greatest = direction.iter().fold(1.0, |greatest: f64, step| greatest.max(step.abs()));
            let Some(leaving) = self.leaving(&direction, PIVOT * greatest) else { return };
            if !fresh && direction[leaving] < UNSURE * greatest && self.refresh(d) {
                fresh = true;
                continue;
            }
            self.pivot(leaving, &direction, &cover, d);
            fresh = pivots % every == 0 && self.refresh(d);
        }
    }

    /// Returns a cover that costs less than its rows are worth.
    fn price(&mut self, program: &Program<'_>, prices: &[f64], order: &mut Vec<(f64, usize)>) -> Option<Cover> {
        let d = program.values();
        let mut best: Option<(f64, usize)> = None;
        for looked in 0..d {
            let value = (self.next + looked) % d;
            let mut gain = 0.0;
            knapsack(program, prices, value, order, |_, rows, reduced| gain += rows * reduced);
            if gain < -TOLERANCE * program.cover && best.is_none_or(|(least, _)| gain < least) {
                best = Some((gain, value));
            }
            if best.is_some() && looked % PRICED == PRICED - 1 {
                break;
            }
        }
        let (_, value) = best?;
        self.next = (value + 1) % d;
        let mut cover = Cover { value, shares: vec![0.0; d], cost: 0.0 };
        knapsack(program, prices, value, order, |row, rows, _| {
            cover.shares[row] = rows / f64::from(program.weights[row]);
            cover.cost += rows * program.distances[row * d + value];
        });
        Some(cover)
    }

    /// Returns the cover that leaves: the first to be used up; of several, the lexicographically first.
    fn leaving(&self, direction: &[f64], least: f64) -> Option<usize> {
        let d = direction.len();
        let mut found: Option<usize> = None;
        for place in (0..d).filter(|&place| direction[place] > least) {
            let is_before = |other: usize| {
                // What the one that stays would be left with.
                let most = direction[place].max(direction[other]);
                let compare = |a: f64, b: f64| {
                    let difference = a / direction[place] - b / direction[other];
                    (difference.abs() * most > TOLERANCE).then_some(difference < 0.0)
                };
                let rows = self.inverse[place * d..][..d].iter().zip(&self.inverse[other * d..][..d]);
                let levels = compare(self.levels[place], self.levels[other]);
                levels.or_else(|| rows.into_iter().find_map(|(a, b)| compare(*a, *b))).unwrap_or(false)
            };
            if found.is_none_or(is_before) {
                found = Some(place);
            }
        }
        found
    }

    /// Returns true if every row is covered once.
    fn covers_all(&self, d: usize) -> bool {
        (0..d).all(|row| {
            let places = (0..d).filter(|&place| self.values[place] != ARTIFICIAL);
            let covered: f64 = places.map(|place| self.levels[place] * self.shares[place * d + row]).sum();
            (covered - 1.0).abs() < SLACK
        })
    }

    fn pivot(&mut self, leaving: usize, direction: &[f64], cover: &Cover, d: usize) {
        let (before, rest) = self.inverse.split_at_mut(leaving * d);
        let (row, after) = rest.split_at_mut(d);
        row.iter_mut().for_each(|entry| *entry /= direction[leaving]);
        let level = self.levels[leaving] / direction[leaving];
        let others = before.chunks_exact_mut(d).chain(std::iter::once(&mut [][..])).chain(after.chunks_exact_mut(d));
        for ((other, &step), place) in others.zip(direction).zip(0..) {
            if place != leaving && step != 0.0 {
                other.iter_mut().zip(&*row).for_each(|(other, entry)| *other -= step * entry);
                self.levels[place] = (self.levels[place] - step * level).max(0.0);
            }
        }
        self.levels[leaving] = level;
        self.values[leaving] = cover.value;
        self.costs[leaving] = cover.cost;
        self.shares[leaving * d..][..d].copy_from_slice(&cover.shares);
    }

    /// Computes the inverse and the levels from the covers, without the rounding of pivots. It is by Gauss and Jordan, with pivots
    /// from the greatest entries. Leaves them as they are, and returns false, where the covers are too much alike for that.
    fn refresh(&mut self, d: usize) -> bool {
        // Column `c` of the matrix is cover `c`: its rows are eliminated against the unit matrix.
        let width = 2 * d;
        let mut work = vec![0.0; d * width];
        for i in 0..d {
            (0..d).for_each(|cover| work[i * width + cover] = self.shares[cover * d + i]);
            work[i * width + d + i] = 1.0;
        }
        for column in 0..d {
            let size = |row: &usize| work[row * width + column].abs();
            let Some(pivot) = (column..d).max_by(|a, b| size(a).total_cmp(&size(b))) else { return false };
            if size(&pivot) < PIVOT {
                return false;
            }
            if pivot != column {
                let (above, below) = work.split_at_mut(pivot * width);
                above[column * width..][..width].swap_with_slice(&mut below[..width]);
            }
            let scale = work[column * width + column];
            work[column * width..][..width].iter_mut().for_each(|entry| *entry /= scale);
            let row = work[column * width..][..width].to_vec();
            for (other, entries) in work.chunks_exact_mut(width).enumerate() {
                let factor = entries[column];
                if other != column && factor != 0.0 {
                    entries.iter_mut().zip(&row).for_each(|(entry, row)| *entry -= factor * row);
                }
            }
        }
        for (place, row) in work.chunks_exact(width).enumerate() {
            self.inverse[place * d..][..d].copy_from_slice(&row[d..]);
            self.levels[place] = row[d..].iter().sum::<f64>().max(0.0);
        }
        true
    }
}

/// Takes rows for a value until there are enough, those first that gain most: calls `take` with each value of rows, how many rows of
/// it are taken, and their reduced cost.
#[inline]
fn knapsack(
    program: &Program<'_>,
    prices: &[f64],
    value: usize,
    order: &mut Vec<(f64, usize)>,
    mut take: impl FnMut(usize, f64, f64),
) {
    let d = program.values();
    order.clear();
    order.extend((0..d).map(|row| (program.distances[row * d + value] - prices[row], row)));
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut left = program.cover;
    for &(reduced, row) in &*order {
        let rows = left.min(f64::from(program.weights[row]));
        take(row, rows, reduced);
        left -= rows;
        if left <= 0.0 {
            return;
        }
    }
}
