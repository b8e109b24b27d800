//! Sealed columns of entries of the memory of worlds. They have the names of a few lists of columns, so that these
//! are kept once, and of an entry its salt and its commitments.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::microdata::{Codes, PARTNERS_NAME};

/// Entries of a piece, which is looked at on one core.
const PIECE: usize = 1 << 10;

/// Commitments of entries, in their order.
#[derive(Debug, Default)]
pub(super) struct Seals {
    kinds: Vec<Kind>,
    numbers: FxHashMap<Kind, u32>,
    /// Kind of each entry.
    kind_of: Codes,
    /// Salt and commitments of one entry after the other, piece by piece: what was appended is not copied again.
    pieces: Vec<Vec<i64>>,
    /// Number of entries.
    items: usize,
}

/// A list of columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Kind {
    /// True if there is anything, a salt at least.
    is_any: bool,
    seals: Vec<Seal>,
}

/// A column that an entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Seal {
    name: i64,
    has: Has,
}

/// Presence of a column in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Has {
    /// A commitment.
    Commitment,
    /// Zero: it is named, and nothing is sealed.
    Zero,
    /// Of partners, which are looked at when they are read.
    Partners,
}

impl Seal {
    fn of(pair: [i64; 2]) -> Self {
        let has = match pair {
            [PARTNERS_NAME, _] => Has::Partners,
            [_, 0] => Has::Zero,
            _ => Has::Commitment,
        };
        Self { name: pair[0], has }
    }
}

impl Kind {
    fn of(entry: &[i64]) -> Self {
        Self { is_any: !entry.is_empty(), seals: pairs_of(entry).map(Seal::of).collect() }
    }

    fn is_of(&self, entry: &[i64]) -> bool {
        self.is_any != entry.is_empty() && self.seals.iter().copied().eq(pairs_of(entry).map(Seal::of))
    }

    /// Returns the numbers that an entry has.
    fn items(&self) -> usize {
        usize::from(self.is_any) + self.seals.iter().filter(|seal| seal.has == Has::Commitment).count()
    }
}

fn pairs_of(entry: &[i64]) -> impl Iterator<Item = [i64; 2]> + '_ {
    entry.get(1..).unwrap_or_default().as_chunks().0.iter().copied()
}

/// Names of columns that an entry seals, and its commitments.
pub(super) struct Pairs<'a> {
    seals: std::slice::Iter<'a, Seal>,
    items: std::slice::Iter<'a, i64>,
}

impl Iterator for Pairs<'_> {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<Self::Item> {
        let seal = self.seals.find(|seal| seal.has != Has::Partners)?;
        let commitment = if seal.has == Has::Zero { 0 } else { *self.items.next()? };
        Some((seal.name, commitment))
    }
}

impl Seals {
    /// Appends entries: so many numbers each, a salt, and names of columns with commitments.
    pub(super) fn append(&mut self, mut commitments: &[i64], lengths: impl Iterator<Item = usize>) {
        let mut kinds = Vec::new();
        let first = self.len();
        for (number, length) in (first..).zip(lengths) {
            let (entry, others) = commitments.split_at(length);
            commitments = others;
            // Most are of the kind of the one before.
            let before = kinds.last().copied().filter(|&kind: &u32| self.kinds[kind as usize].is_of(entry));
            kinds.push(before.unwrap_or_else(|| self.number(entry)));
            if number % PIECE == 0 {
                // Most likely it has as many items as the one before.
                let items = self.pieces.last_mut().map_or(0, |before| {
                    before.shrink_to_fit();
                    before.len()
                });
                self.pieces.push(Vec::with_capacity(items));
            }
            let piece = &mut self.pieces[number / PIECE];
            let before = piece.len();
            piece.extend(entry.first());
            let sealed = pairs_of(entry).filter(|&pair| Seal::of(pair).has == Has::Commitment);
            piece.extend(sealed.map(|pair| pair[1]));
            self.items += piece.len() - before;
        }
        self.kind_of.extend(&kinds);
    }

    fn number(&mut self, entry: &[i64]) -> u32 {
        let kind = Kind::of(entry);
        *self.numbers.entry(kind).or_insert_with_key(|kind| {
            self.kinds.push(kind.clone());
            self.kinds.len() as u32 - 1
        })
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.kind_of.len()
    }

    /// Returns all names.
    pub(super) fn names(&self) -> FxHashSet<i64> {
        self.kinds.iter().flat_map(|kind| &kind.seals).map(|seal| seal.name).collect()
    }

    /// Returns the names of each entry.
    pub(super) fn names_of_each(&self) -> impl Iterator<Item = impl Iterator<Item = i64> + '_> {
        self.kind_of.iter().map(|kind| self.kinds[kind as usize].seals.iter().map(|seal| seal.name))
    }

    /// Calls `of_piece` with the numbers of some entries, and those with a salt. With the number come this, and what
    /// they seal. On all cores, and in the order of entries for each of what is returned, one after the other.
    pub(super) fn in_pieces<R: Send>(
        &self,
        of_piece: impl Fn(Range<usize>, &mut dyn Iterator<Item = (usize, i64, Pairs<'_>)>) -> R + Sync,
    ) -> Vec<R> {
        let items_of: Vec<usize> = self.kinds.iter().map(Kind::items).collect();
        let entries = |piece: usize| piece * PIECE..self.len().min((piece + 1) * PIECE);
        let pieces = self.pieces.par_iter().enumerate().map(|(piece, items)| {
            let mut left = items.as_slice();
            let mut sealed = entries(piece).zip(self.kind_of.part(entries(piece))).filter_map(|(entry, kind)| {
                let (own, others) = left.split_at(items_of[kind as usize]);
                left = others;
                let [salt, commitments @ ..] = own else { return None };
                let pairs = Pairs { seals: self.kinds[kind as usize].seals.iter(), items: commitments.iter() };
                Some((entry, *salt, pairs))
            });
            of_piece(entries(piece), &mut sealed)
        });
        pieces.collect()
    }

    /// Returns the bytes held.
    pub(super) fn size(&self) -> usize {
        let kinds = self.kinds.iter().map(|kind| kind.seals.len() * size_of::<Seal>()).sum::<usize>();
        let numbers = self.numbers.capacity() * (size_of::<(Kind, u32)>() + 1);
        2 * kinds
            + self.kinds.capacity() * size_of::<Kind>()
            + numbers
            + self.kind_of.size()
            + self.pieces.capacity() * size_of::<Vec<i64>>()
            + self.items * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of several kinds, in several batches and pieces: what is read is what was appended, but for partners.
    #[test]
    fn entries_are_what_they_were() {
        let entry = |number: usize| -> Vec<i64> {
            let n = number as i64;
            match number / 700 % 4 {
                0 => vec![n, 11, n + 1, 12, 0, PARTNERS_NAME, n + 2],
                1 => vec![],
                2 => vec![n],
                _ => vec![-n, 12, 0, 13, if number.is_multiple_of(5) { 0 } else { n }, PARTNERS_NAME, 5, 11, 3],
            }
        };
        let all: Vec<Vec<i64>> = (0..5 * PIECE + 3).map(entry).collect();
        let mut seals = Seals::default();
        for batch in all.chunks(1500) {
            seals.append(&batch.concat(), batch.iter().map(Vec::len));
        }
        assert_eq!(seals.len(), all.len());
        assert_eq!(seals.kinds.len(), 5);
        assert_eq!(seals.names(), [11, 12, 13, PARTNERS_NAME].into_iter().collect());
        let expected = all.iter().map(|entry| entry.iter().skip(1).step_by(2).copied().collect::<Vec<_>>());
        assert!(seals.names_of_each().map(|names| names.collect::<Vec<_>>()).eq(expected));
        let read = seals.in_pieces(|numbers, entries| {
            let read: Vec<_> = entries.map(|(entry, salt, pairs)| (entry, salt, pairs.collect::<Vec<_>>())).collect();
            assert!(read.iter().all(|(entry, ..)| numbers.contains(entry)));
            read
        });
        let is_value = |pair: &&[i64]| pair[0] != PARTNERS_NAME;
        let expected = all.iter().enumerate().filter(|(_, entry)| !entry.is_empty()).map(|(number, entry)| {
            let pairs = entry[1..].chunks(2).filter(is_value).map(|pair| (pair[0], pair[1]));
            (number, entry[0], pairs.collect::<Vec<_>>())
        });
        assert!(read.into_iter().flatten().eq(expected));
        assert!(seals.size() < 8 * all.concat().len());
    }
}
