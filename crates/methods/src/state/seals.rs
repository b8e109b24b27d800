//! Sealed columns of entries of the memory of worlds. They have the names of a few lists of columns, so that these
//! are kept once, and of an entry its salt and its commitments.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::microdata::{Codes, PARTNERS_NAME};

/// Commitments of entries, in their order.
#[derive(Debug, Default)]
pub(super) struct Seals {
    kinds: Vec<Kind>,
    numbers: FxHashMap<Kind, u32>,
    /// Kind of each entry.
    kind_of: Codes,
    /// Salt and commitments of one entry after the other.
    items: Vec<i64>,
}

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
        for length in lengths {
            let (entry, others) = commitments.split_at(length);
            commitments = others;
            // Most are of the kind of the one before.
            let before = kinds.last().copied().filter(|&kind: &u32| self.kinds[kind as usize].is_of(entry));
            kinds.push(before.unwrap_or_else(|| self.number(entry)));
            self.items.extend(entry.first());
            let sealed = pairs_of(entry).filter(|&pair| Seal::of(pair).has == Has::Commitment);
            self.items.extend(sealed.map(|pair| pair[1]));
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

    pub(super) fn names(&self) -> FxHashSet<i64> {
        self.kinds.iter().flat_map(|kind| &kind.seals).map(|seal| seal.name).collect()
    }

    pub(super) fn names_of_each(&self) -> impl Iterator<Item = impl Iterator<Item = i64> + '_> {
        self.kind_of.iter().map(|kind| self.kinds[kind as usize].seals.iter().map(|seal| seal.name))
    }

    /// Returns of each entry that has a salt its number, this, and what it seals.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, i64, Pairs<'_>)> {
        let items_of: Vec<usize> = self.kinds.iter().map(Kind::items).collect();
        let mut left = self.items.as_slice();
        self.kind_of.iter().enumerate().filter_map(move |(entry, kind)| {
            let (own, others) = left.split_at(items_of[kind as usize]);
            left = others;
            let [salt, commitments @ ..] = own else { return None };
            Some((entry, *salt, Pairs { seals: self.kinds[kind as usize].seals.iter(), items: commitments.iter() }))
        })
    }

    pub(super) fn size(&self) -> usize {
        let kinds = self.kinds.iter().map(|kind| kind.seals.len() * size_of::<Seal>()).sum::<usize>();
        let numbers = self.numbers.capacity() * (size_of::<(Kind, u32)>() + 1);
        2 * kinds
            + self.kinds.capacity() * size_of::<Kind>()
            + numbers
            + self.kind_of.size()
            + self.items.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of several kinds, in several batches: what is read is what was appended, but for partners.
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
        let all: Vec<Vec<i64>> = (0..5123).map(entry).collect();
        let mut seals = Seals::default();
        for batch in all.chunks(1500) {
            seals.append(&batch.concat(), batch.iter().map(Vec::len));
        }
        assert_eq!(seals.kind_of.len(), all.len());
        assert_eq!(seals.kinds.len(), 5);
        assert_eq!(seals.names(), [11, 12, 13, PARTNERS_NAME].into_iter().collect());
        let expected = all.iter().map(|entry| entry.iter().skip(1).step_by(2).copied().collect::<Vec<_>>());
        assert!(seals.names_of_each().map(|names| names.collect::<Vec<_>>()).eq(expected));
        let read = seals.iter().map(|(entry, salt, pairs)| (entry, salt, pairs.collect::<Vec<_>>()));
        let is_value = |pair: &&[i64]| pair[0] != PARTNERS_NAME;
        let expected = all.iter().enumerate().filter(|(_, entry)| !entry.is_empty()).map(|(number, entry)| {
            let pairs = entry[1..].chunks(2).filter(is_value).map(|pair| (pair[0], pair[1]));
            (number, entry[0], pairs.collect::<Vec<_>>())
        });
        assert!(read.eq(expected));
        assert!(seals.items.len() * 2 < all.concat().len());
    }
}
