//! Codes of several columns, row after row, in as few bytes as the greatest needs. Methods look at all codes of a
//! row at once, and at rows in any order; more of what is small stays in the cache.

use rayon::prelude::*;

use super::Encoded;
use super::codes::{Code, Codes, in_same_width, of_width};

/// Rows that are put together at a time: few enough that they stay in the cache while one column after the other is written to them.
const ROWS: usize = 4096;

/// Returns the codes of encoded columns, row after row; row `i` is the one that arrived as number `arrival[i]`. There must be room for the codes of all
/// columns.
pub(super) fn put_together<C: Code>(columns: &[Encoded], arrival: &[u32]) -> Vec<C> {
    let d = columns.len().max(1);
    let mut together = vec![C::default(); arrival.len() * columns.len()];
    together.par_chunks_mut(ROWS * d).zip(arrival.par_chunks(ROWS)).for_each(|(together, arrival)| {
        for (j, column) in columns.iter().enumerate() {
            let rows = together.chunks_exact_mut(d).zip(arrival);
            of_width!(&column.codes, codes => rows.for_each(|(row, &at)| row[j] = C::of(codes[at as usize].wide())));
        }
    });
    together
}

/// Appends rows of a table, each of which has `d` items, as `of` converts these.
///
/// A copy of a length that the compiler knows is a few instructions. Any other copy is a loop with checks.
fn append_rows<T: Copy, U: Copy>(
    table: &[T],
    d: usize,
    rows: impl Iterator<Item = u32>,
    of: impl Fn(T) -> U + Copy,
    out: &mut Vec<U>,
) {
    fn append<T: Copy, U: Copy, const D: usize>(
        table: &[T],
        rows: impl Iterator<Item = u32>,
        of: impl Fn(T) -> U + Copy,
        out: &mut Vec<U>,
    ) {
        let (table, _) = table.as_chunks::<D>();
        rows.for_each(|row| out.extend_from_slice(&table[row as usize].map(of)));
    }
    out.reserve(rows.size_hint().0 * d);
    match d {
        1 => append::<_, _, 1>(table, rows, of, out),
        2 => append::<_, _, 2>(table, rows, of, out),
        3 => append::<_, _, 3>(table, rows, of, out),
        4 => append::<_, _, 4>(table, rows, of, out),
        5 => append::<_, _, 5>(table, rows, of, out),
        6 => append::<_, _, 6>(table, rows, of, out),
        8 => append::<_, _, 8>(table, rows, of, out),
        _ => rows.for_each(|row| out.extend(table[row as usize * d..][..d].iter().map(|&item| of(item)))),
    }
}

/// Returns copies of rows of a table, each of which has `d` items.
pub fn copied_rows<T: Copy>(table: &[T], d: usize, rows: &[u32]) -> Vec<T> {
    let mut copies = Vec::new();
    append_rows(table, d, rows.iter().copied(), |item| item, &mut copies);
    copies
}

/// Codes of the columns of a table.
#[derive(Debug, Clone, Default)]
pub struct RowCodes {
    columns: usize,
    codes: Codes,
}

impl RowCodes {
    /// Puts the codes of encoded columns together; row `i` is the one that arrived as number `arrival[i]`.
    pub(super) fn new(columns: &[Encoded], arrival: &[u32]) -> Self {
        let codes = match columns.iter().map(|column| column.codes.bytes()).max() {
            None => Codes::default(),
            Some(1) => Codes::Bytes(put_together(columns, arrival)),
            Some(2) => Codes::Short(put_together(columns, arrival)),
            Some(_) => Codes::Wide(put_together(columns, arrival)),
        };
        Self { columns: columns.len(), codes }
    }

    /// Returns the codes that are row after row already.
    pub fn from_codes(columns: usize, codes: Codes) -> Self {
        debug_assert!(columns == 0 || codes.len().is_multiple_of(columns));
        Self { columns, codes }
    }

    /// Stores codes in as few bytes as the greatest of them needs.
    pub fn narrowed(columns: usize, codes: Vec<u32>) -> Self {
        Self::from_codes(columns, codes.into_iter().collect())
    }

    /// Returns the number of rows; 0 without columns.
    pub fn rows(&self) -> usize {
        self.codes.len().checked_div(self.columns).unwrap_or(0)
    }

    /// Returns true if these are all codes of so many rows of so many columns.
    pub fn are_of(&self, rows: usize, columns: usize) -> bool {
        self.codes.len() == rows * columns && (self.is_empty() || self.columns == columns)
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Appends rows of as many columns; to none, of any number.
    pub fn append(&mut self, more: Self) {
        if self.is_empty() {
            *self = more;
        } else if !more.is_empty() {
            debug_assert_eq!(self.columns, more.columns);
            self.codes.append(more.codes);
        }
    }

    /// Collects the codes of rows of so many columns, one after the other.
    pub fn of_rows(columns: usize, codes: impl IntoIterator<Item = u32>) -> Self {
        Self::narrowed(columns, codes.into_iter().collect())
    }

    /// Returns the codes of a row that is there, in the order of the columns.
    #[inline]
    pub fn of(&self, row: u32) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        let first = row as usize * self.columns;
        (first..first + self.columns).map(|place| self.codes.get(place))
    }

    /// Returns the code of a row that is there, in a column.
    #[inline]
    pub fn at(&self, row: u32, column: usize) -> u32 {
        self.codes.get(row as usize * self.columns + column)
    }

    /// Returns all codes, row after row.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.codes.iter()
    }

    /// Appends the codes of some rows, row after row: quicker than one row at a time.
    pub fn append_to(&self, out: &mut Vec<u32>, rows: impl Iterator<Item = u32>) {
        of_width!(&self.codes, codes => append_rows(codes, self.columns, rows, |code| code.wide(), out));
    }

    /// Returns the codes of some rows, row after row.
    pub fn copied(&self, rows: &[u32]) -> Vec<u32> {
        let mut copies = Vec::new();
        self.append_to(&mut copies, rows.iter().copied());
        copies
    }

    /// Changes codes of so many rows at a time, on all cores. `change` is given the first of these rows and their codes, row after row; there must be room
    /// for what it makes of them. Whether there was; where there was not, codes are wrong.
    #[must_use]
    pub fn change(&mut self, rows: usize, change: impl Fn(usize, &mut [u32]) + Sync) -> bool {
        fn all<C: Code>(
            codes: &mut [C],
            columns: usize,
            rows: usize,
            change: impl Fn(usize, &mut [u32]) + Sync,
        ) -> bool {
            let pieces = codes.par_chunks_mut((rows * columns).max(1)).enumerate();
            let fits = pieces.try_for_each(|(piece, codes)| {
                let mut wide: Vec<u32> = codes.iter().map(|code| code.wide()).collect();
                change(piece * rows, &mut wide);
                codes.iter_mut().zip(&wide).for_each(|(code, &wide)| *code = C::of(wide.min(C::MOST)));
                wide.iter().all(|&wide| wide <= C::MOST).then_some(())
            });
            fits.is_some()
        }
        of_width!(&mut self.codes, codes => all(codes, self.columns, rows, change))
    }

    /// Returns the codes of some of the rows, in as many bytes.
    pub(super) fn part(&self, rows: &[u32]) -> Self {
        Self {
            columns: self.columns,
            codes: in_same_width!(&self.codes, codes => copied_rows(codes, self.columns, rows)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::microdata::{ColumnEncoder, Order};

    fn encoded(rows: i64, values: i64) -> Encoded {
        let values: ArrayRef = Arc::new((0..rows).map(|row| row * 7919 % values).collect::<Int64Array>());
        let mut encoder = ColumnEncoder::try_new(Arc::new(Field::new("x", DataType::Int64, true))).unwrap();
        encoder.append(&values).unwrap();
        encoder.finish(Order::ByValue).unwrap()
    }

    /// Of any widths, and to none.
    #[test]
    fn rows_are_appended() {
        let some = [vec![], vec![0, 9], vec![300, 1, 65_535, 255], vec![70_000, 2]];
        for (before, more) in some.iter().flat_map(|before| some.iter().map(move |more| (before, more))) {
            let mut codes = if before.is_empty() { RowCodes::default() } else { RowCodes::narrowed(2, before.clone()) };
            codes.append(RowCodes::narrowed(2, more.clone()));
            let all = [before.as_slice(), more].concat();
            assert!(codes.iter().eq(all.iter().copied()));
            assert_eq!(codes.rows(), all.len() / 2);
            assert!(codes.are_of(all.len() / 2, 2));
            assert!(!codes.are_of(all.len() / 2 + 1, 2) && (all.is_empty() || !codes.are_of(all.len(), 1)));
        }
        assert!(!RowCodes::of_rows(2, [1, 2]).are_of(2, 1));
    }

    /// Of any width, and of columns that need less of it than others.
    #[test]
    fn codes_of_rows_are_those_of_the_columns() {
        const MANY: i64 = 70_000;
        for widths in [vec![], vec![100], vec![2, 100], vec![300, 2, 5], vec![2, MANY], vec![MANY, 300, 7]] {
            let columns: Vec<Encoded> = widths.iter().map(|&values| encoded(MANY, values)).collect();
            let arrival: Vec<u32> = (0..MANY as u32).map(|row| row * 13 % MANY as u32).collect();
            let codes = RowCodes::new(&columns, &arrival);
            let expected = |row: u32| columns.iter().map(move |column| column.codes.at(row * 13 % MANY as u32));
            let rows: Vec<u32> = [0, 1, MANY as u32 - 1].into_iter().chain((0..5000).map(|row| row * 3)).collect();
            for &row in &rows {
                assert_eq!(codes.of(row).len(), widths.len());
                assert!(codes.of(row).eq(expected(row)));
                assert!((0..widths.len()).map(|j| codes.at(row, j)).eq(expected(row)));
            }
            let all: Vec<u32> = rows.iter().flat_map(|&row| expected(row)).collect();
            let mut appended = vec![7];
            codes.append_to(&mut appended, rows.iter().copied());
            assert_eq!(appended[1..], all);
            assert_eq!(codes.copied(&rows), all);
            let part = codes.part(&rows);
            assert!(part.iter().eq(all.iter().copied()));
            assert!(rows.iter().zip(0..).all(|(&row, place)| part.of(place).eq(expected(row))));
        }
    }
}
