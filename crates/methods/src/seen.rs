//! Set of seen rows: a bit for each, so that looks all over the table stay in the cache.

/// Rows, none of which is there twice.
#[derive(Debug)]
pub(super) struct Seen {
    /// Of row `64 i + j` the bit `j` of word `i`.
    words: Vec<u64>,
    rows: usize,
    /// Number of seen rows.
    pub number: usize,
}

impl Seen {
    /// Marks these of `rows` rows; `None` if one of them is there twice, or is none of the table.
    pub(super) fn once(rows: usize, seen: impl IntoIterator<Item = u32>) -> Option<Self> {
        let (mut words, mut number) = (vec![0_u64; rows.div_ceil(64)], 0);
        for row in seen {
            let bit = 1 << (row % 64);
            let word = words.get_mut(row as usize / 64).filter(|word| (row as usize) < rows && **word & bit == 0)?;
            *word |= bit;
            number += 1;
        }
        Some(Self { words, rows, number })
    }

    /// Returns the rows that were not seen.
    pub(super) fn unseen(&self) -> impl Iterator<Item = usize> + '_ {
        let of_word = |(place, &word): (usize, &u64)| {
            let mut left = !word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                (left != 0).then(|| {
                    left &= left - 1;
                    64 * place + bit
                })
            })
        };
        self.words.iter().enumerate().flat_map(of_word).take_while(|&row| row < self.rows)
    }

    /// Returns true if all were seen.
    pub(super) fn is_all(&self) -> bool {
        self.number == self.rows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Words that are full, empty and in part beyond the table; rows that are there twice, and that are none of the table.
        #[test]
        fn rows_are_seen_once(rows in 0_usize..200, share in 0_u8..=4, salt in any::<u32>(), wrong in any::<prop::sample::Index>()) {
            let is_seen = |row: &u32| (row ^ salt).wrapping_mul(2_654_435_761) >> 30 < u32::from(share);
            let mut all: Vec<u32> = (0..rows as u32).rev().filter(is_seen).collect();
            let seen = Seen::once(rows, all.iter().copied()).unwrap();
            prop_assert_eq!(seen.number, all.len());
            prop_assert_eq!(seen.is_all(), all.len() == rows);
            prop_assert!(seen.unseen().eq((0..rows).filter(|&row| !is_seen(&(row as u32)))));
            let beyond = [rows as u32, rows as u32 + 64, u32::MAX];
            let wrong = wrong.index(all.len() + beyond.len());
            let added = all.get(wrong).copied().unwrap_or_else(|| beyond[wrong - all.len()]);
            all.push(added);
            prop_assert!(Seen::once(rows, all).is_none());
        }
    }
}
