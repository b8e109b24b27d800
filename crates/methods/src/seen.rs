//! Set of the rows that a check has seen.

/// Set of rows, each of which was seen once.
#[derive(Debug)]
pub(super) struct Seen {
    rows: Vec<bool>,
    /// Number of rows that were seen.
    pub number: usize,
}

impl Seen {
    /// Returns the set of `seen` among `rows` rows. `None` if a row occurs twice, or is not in the table.
    pub(super) fn once(rows: usize, seen: impl IntoIterator<Item = u32>) -> Option<Self> {
        let (mut rows, mut number) = (vec![false; rows], 0);
        for row in seen {
            if std::mem::replace(rows.get_mut(row as usize)?, true) {
                return None;
            }
            number += 1;
        }
        Some(Self { rows, number })
    }

    pub(super) fn unseen(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.iter().enumerate().filter(|(_, seen)| !**seen).map(|(row, _)| row)
    }

    pub(super) fn is_all(&self) -> bool {
        self.number == self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Rows that are there twice, and that are none of the table.
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
