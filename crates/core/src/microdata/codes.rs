//! The codes of a column, in as few bytes as the greatest of them needs: most columns have fewer than 256 values, and what is small stays in
//! the cache when rows are put in order.

use std::ops::Range;

use rayon::prelude::*;

/// A number that holds codes.
pub trait Code: Copy + Default + Ord + Send + Sync + 'static {
    /// The greatest code that it has room for.
    const MOST: u32;

    /// Converts a code that fits.
    fn of(code: u32) -> Self;

    /// Returns the code.
    fn wide(self) -> u32;
}

macro_rules! implement_code {
    ($($number:ty)*) => {$(
        impl Code for $number {
            const MOST: u32 = Self::MAX as u32;

            #[inline]
            fn of(code: u32) -> Self {
                debug_assert!(code <= Self::MOST);
                code as Self
            }

            #[inline]
            fn wide(self) -> u32 {
                self.into()
            }
        }
    )*};
}

implement_code!(u8 u16 u32);

/// The same of codes of any width: a loop for each.
#[macro_export]
#[doc(hidden)]
macro_rules! of_width {
    ($codes:expr, $slice:ident => $result:expr) => {
        match $codes {
            $crate::microdata::Codes::Bytes($slice) => $result,
            $crate::microdata::Codes::Short($slice) => $result,
            $crate::microdata::Codes::Wide($slice) => $result,
        }
    };
}
#[doc(hidden)]
pub use of_width;

/// Makes codes of the same width of codes of any.
macro_rules! in_same_width {
    ($codes:expr, $slice:ident => $result:expr) => {
        match $codes {
            Codes::Bytes($slice) => Codes::Bytes($result),
            Codes::Short($slice) => Codes::Short($result),
            Codes::Wide($slice) => Codes::Wide($result),
        }
    };
}
pub(super) use in_same_width;

/// Codes of rows.
#[derive(Debug, Clone)]
pub enum Codes {
    /// All below 2^8.
    Bytes(Vec<u8>),
    /// All below 2^16.
    Short(Vec<u16>),
    /// Any.
    Wide(Vec<u32>),
}

impl Default for Codes {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl Codes {
    /// Returns the codes of so many rows, none of them above `most`; on all cores.
    pub fn collected(most: u32, rows: usize, code_of: impl Fn(u32) -> u32 + Sync + Send) -> Self {
        fn all<C: Code>(rows: usize, code_of: impl Fn(u32) -> u32 + Sync + Send) -> Vec<C> {
            (0..rows as u32).into_par_iter().with_min_len(1024).map(|row| C::of(code_of(row))).collect()
        }
        match Self::bytes_of(most as usize + 1) {
            1 => Self::Bytes(all(rows, code_of)),
            2 => Self::Short(all(rows, code_of)),
            _ => Self::Wide(all(rows, code_of)),
        }
    }

    /// Stores codes in as few bytes as the greatest of them needs; on all cores.
    pub fn narrowed(codes: Vec<u32>) -> Self {
        let most = codes.par_iter().copied().max().unwrap_or(0);
        match Self::bytes_of(most as usize + 1) {
            1 | 2 => Self::collected(most, codes.len(), |row| codes[row as usize]),
            _ => Self::Wide(codes),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        of_width!(self, codes => codes.len())
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the code of a row that is there.
    #[inline]
    pub fn at(&self, row: u32) -> u32 {
        self.get(row as usize)
    }

    /// Returns the code at a place. There may be more places than rows have numbers: see [`RowCodes`](super::RowCodes).
    #[inline]
    pub(super) fn get(&self, place: usize) -> u32 {
        of_width!(self, codes => codes[place].wide())
    }

    /// Returns all codes, row by row.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.part(0..self.len())
    }

    /// Returns the codes of rows that are there, from one to before another.
    pub fn part(&self, rows: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        // Of one width, and none of the others: a loop over a list is a few instructions a code, a look at the width for each code many.
        let (bytes, short, wide): (&[u8], &[u16], &[u32]) = match self {
            Self::Bytes(codes) => (&codes[rows], &[], &[]),
            Self::Short(codes) => (&[], &codes[rows], &[]),
            Self::Wide(codes) => (&[], &[], &codes[rows]),
        };
        let narrow = bytes.iter().map(|code| code.wide()).chain(short.iter().map(|code| code.wide()));
        narrow.chain(wide.iter().copied())
    }

    /// Appends the codes of a range of rows to `out`.
    #[inline]
    pub fn append_part(&self, rows: Range<usize>, out: &mut Vec<u32>) {
        of_width!(self, codes => out.extend(codes[rows].iter().map(|code| code.wide())));
    }

    /// Returns the codes of these rows, which are there; on all cores.
    pub fn of_rows(&self, rows: &[u32]) -> Self {
        in_same_width!(self, codes => rows.par_iter().with_min_len(1024).map(|&row| codes[row as usize]).collect())
    }

    /// Returns the bytes that a code of so many values needs.
    pub fn bytes_of(values: usize) -> usize {
        match values.saturating_sub(1) {
            0..=0xff => size_of::<u8>(),
            0x100..=0xffff => size_of::<u16>(),
            _ => size_of::<u32>(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        fn of<C>(_: &[C]) -> usize {
            size_of::<C>()
        }
        of_width!(self, codes => of(codes))
    }

    /// Appends codes.
    pub fn extend(&mut self, more: &[u32]) {
        self.widen(more.iter().copied().max().unwrap_or(0));
        fn all<C: Code>(codes: &mut Vec<C>, more: &[u32]) {
            codes.extend(more.iter().map(|&code| C::of(code)));
        }
        of_width!(self, codes => all(codes, more));
    }

    pub(super) fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Bytes(codes), Self::Bytes(more)) => codes.extend(more),
            (Self::Short(codes), Self::Short(more)) => codes.extend(more),
            (Self::Wide(codes), Self::Wide(more)) => codes.extend(more),
            (codes, more) => codes.extend(&more.iter().collect::<Vec<_>>()),
        }
    }

    /// Replaces each code by its rank.
    pub fn rank(&mut self, ranks: &[u32]) {
        self.widen((ranks.len() as u32).saturating_sub(1));
        of_width!(self, codes => codes.par_iter_mut().for_each(|code| *code = Code::of(ranks[code.wide() as usize])));
    }

    /// Gives a row that is there the code of another one.
    pub fn copy(&mut self, from: u32, to: u32) {
        let (from, to) = (from as usize, to as usize);
        of_width!(self, codes => codes[to] = codes[from]);
    }

    fn widen(&mut self, greatest: u32) {
        match Self::bytes_of(greatest as usize + 1) {
            bytes if bytes <= self.bytes() => {}
            2 => *self = Self::Short(self.iter().map(Code::of).collect()),
            _ => *self = Self::Wide(self.iter().collect()),
        }
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        of_width!(self, codes => codes.capacity()) * self.bytes()
    }
}

impl FromIterator<u32> for Codes {
    fn from_iter<I: IntoIterator<Item = u32>>(codes: I) -> Self {
        let mut all = Self::default();
        all.extend(&codes.into_iter().collect::<Vec<_>>());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_widen_as_they_come() {
        let mut codes = Codes::default();
        let mut expected = Vec::new();
        for more in [vec![], vec![0, 255], vec![256], vec![3, 65_535], vec![65_536, 1], vec![u32::MAX - 2]] {
            codes.extend(&more);
            expected.extend(more);
            assert_eq!(codes.iter().collect::<Vec<_>>(), expected);
        }
        assert_eq!(codes.part(1..4).collect::<Vec<_>>(), [255, 256, 3]);
        let at_once: Codes = [7, 1 << 20].into_iter().collect();
        assert_eq!(at_once.iter().collect::<Vec<_>>(), [7, 1 << 20]);
    }

    #[test]
    fn collected_codes_are_those_of_the_rows() {
        for most in [0, 255, 256, 65_535, 65_536, u32::MAX] {
            let code_of = |row: u32| row.wrapping_mul(2_654_435_761).min(most);
            let codes = Codes::collected(most, 3000, code_of);
            assert!(codes.iter().eq((0..3000).map(code_of)), "{most}");
            let (some, rows) = ((2000..2900).map(code_of), (2000..2900).collect::<Vec<_>>());
            let mut appended = vec![7];
            codes.append_part(2000..2900, &mut appended);
            assert!(appended[1..].iter().copied().eq(some.clone()));
            assert!(codes.part(2000..2900).eq(some.clone()) && codes.of_rows(&rows).iter().eq(some));
            assert_eq!(codes.of_rows(&rows).bytes(), codes.bytes());
            assert!(rows.iter().all(|&row| codes.at(row) == code_of(row)));
            assert_eq!(codes.bytes(), Codes::bytes_of(most as usize + 1));
            let narrowed = Codes::narrowed(codes.iter().collect());
            assert!(narrowed.iter().eq(codes.iter()));
            assert_eq!(narrowed.bytes(), codes.bytes());
        }
    }

    #[test]
    fn ranks_may_be_greater_than_codes() {
        let mut codes: Codes = [0, 1, 0].into_iter().collect();
        let ranks: Vec<u32> = (0..300).rev().collect();
        codes.rank(&ranks);
        assert_eq!(codes.iter().collect::<Vec<_>>(), [299, 298, 299]);
    }
}
