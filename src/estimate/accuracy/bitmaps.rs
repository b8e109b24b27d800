//! Sets of rows as bits: which rows have a value in a range.

/// Most bytes of the bitmaps of one column.
const BYTES: usize = 64 << 20;

/// Rows in the order of a column, with bitmaps of how far a range reaches.
#[derive(Debug)]
pub(super) struct Bitmaps {
    /// Rows by value; those without a value are left out.
    order: Vec<u32>,
    /// Rows with values before each value, and all rows with values.
    starts: Vec<u32>,
    /// Of the first `stride * i` rows.
    prefixes: Vec<Vec<u64>>,
    stride: usize,
}

impl Bitmaps {
    /// Returns the bitmaps over the codes of a column's rows; `None` is NULL.
    pub(super) fn new(codes: &[Option<u32>], values: usize) -> Self {
        let words = codes.len().div_ceil(64);
        let mut starts = vec![0_u32; values + 1];
        codes.iter().flatten().for_each(|&code| starts[code as usize + 1] += 1);
        for value in 0..values {
            starts[value + 1] += starts[value];
        }
        let mut next = starts.clone();
        let mut order = vec![0; starts[values] as usize];
        for (row, code) in (0..).zip(codes) {
            if let Some(code) = code {
                let place = &mut next[*code as usize];
                order[*place as usize] = row;
                *place += 1;
            }
        }
        let most = (BYTES / (words * 8).max(1)).clamp(1, 256);
        let stride = order.len().div_ceil(most).max(1);
        let mut prefixes = vec![vec![0; words]];
        for rows in order.chunks(stride) {
            let mut prefix = prefixes.last().cloned().unwrap_or_default();
            rows.iter().for_each(|&row| flip(&mut prefix, row));
            prefixes.push(prefix);
        }
        Self { order, starts, prefixes, stride }
    }

    /// Returns the bytes that bitmaps over so many rows take, at most.
    pub(super) fn size(rows: usize) -> usize {
        let words = rows.div_ceil(64) * 8;
        rows * size_of::<u32>() + (BYTES / words.max(1)).clamp(1, 256) * words + 2 * words
    }

    /// Finds the rows whose value is one of `codes`.
    pub(super) fn range(&self, codes: (usize, usize), range: &mut Vec<u64>) {
        let ends = [codes.0, codes.1].map(|code| self.starts[code] as usize);
        // Of the prefixes next to an end that which is nearer; the rows between change sides.
        let [a, b] = ends.map(|end| ((end + self.stride / 2) / self.stride).min(self.prefixes.len() - 1));
        range.clear();
        range.extend(self.prefixes[a].iter().zip(&self.prefixes[b]).map(|(a, b)| a ^ b));
        for (end, prefix) in ends.into_iter().zip([a, b]) {
            let at = (prefix * self.stride).min(self.order.len());
            self.order[at.min(end)..at.max(end)].iter().for_each(|&row| flip(range, row));
        }
    }

    /// Leaves the rows selected whose value is one of `codes`.
    pub(super) fn select(&self, codes: (usize, usize), selected: &mut [u64], range: &mut Vec<u64>) {
        self.range(codes, range);
        selected.iter_mut().zip(&*range).for_each(|(selected, range)| *selected &= range);
    }
}

fn flip(bitmap: &mut [u64], row: u32) {
    bitmap[row as usize / 64] ^= 1 << (row % 64);
}

/// Marks all of so many rows.
pub(super) fn all(rows: usize, bitmap: &mut Vec<u64>) {
    bitmap.clear();
    bitmap.resize(rows.div_ceil(64), u64::MAX);
    if let Some(last) = bitmap.last_mut().filter(|_| !rows.is_multiple_of(64)) {
        *last = (1 << (rows % 64)) - 1;
    }
}

/// Calls `f` with each selected row from `start` to `end`.
pub(super) fn for_each(bitmap: &[u64], start: usize, end: usize, mut f: impl FnMut(usize)) {
    for word in start / 64..end.div_ceil(64) {
        let mut bits = between(bitmap, word, start, end);
        while bits != 0 {
            f(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

/// Returns the number of selected rows from `start` to `end`.
pub(super) fn count(bitmap: &[u64], start: usize, end: usize) -> u32 {
    (start / 64..end.div_ceil(64)).map(|word| between(bitmap, word, start, end).count_ones()).sum()
}

/// Returns a word without the bits of rows that are not between `start` and `end`.
#[inline]
fn between(bitmap: &[u64], word: usize, start: usize, end: usize) -> u64 {
    let mut bits = bitmap[word];
    if word == start / 64 {
        bits &= u64::MAX << (start % 64);
    }
    if word == end / 64 {
        bits &= (1 << (end % 64)) - 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_select_their_rows(
            // Many rows of each value, so that prefixes end before and after ranges do.
            codes in prop::collection::vec(prop::option::weighted(0.9, 0_u32..7), 1..3000),
            (a, b) in (0_usize..8, 0_usize..8),
            (start, end) in (0_usize..3000, 0_usize..3000),
        ) {
            let (first, last) = (a.min(b), a.max(b));
            let bitmaps = Bitmaps::new(&codes, 7);
            let (mut selected, mut range) = (Vec::new(), Vec::new());
            all(codes.len(), &mut selected);
            bitmaps.select((first, last), &mut selected, &mut range);
            let inside = |row: &usize| codes[*row].is_some_and(|code| (first..last).contains(&(code as usize)));
            let (start, end) = (start.min(end).min(codes.len()), start.max(end).min(codes.len()));
            let expected: Vec<usize> = (start..end).filter(inside).collect();
            let mut found = Vec::new();
            for_each(&selected, start, end, |row| found.push(row));
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(count(&selected, start, end) as usize, expected.len());
        }
    }
}
