//! Buckets: rows that can be grouped with each other. A bucket has entries, which are sets of values, in the order of labels; a
//! group of it has one row of each entry, all values different. Whoever has been published is only ever in the entry of their
//! label.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::relation::Relation;
use super::representatives;

/// Rows of one kind: returning ones whose groups had the same candidate update sets, label by label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Cell {
    /// Their kind.
    pub kind: u32,
    /// Their value.
    pub value: u32,
    /// The entry that they are in: their label.
    pub entry: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Numbers of the entries' value sets.
    pub entries: Box<[u32]>,
    /// Rows in each entry.
    pub loads: Vec<usize>,
    /// Returning rows.
    pub cells: BTreeMap<Cell, usize>,
    frequencies: FxHashMap<u32, usize>,
    /// True if all values of entries belong to systems of distinct representatives of all entries.
    free: bool,
    /// True for each value of an entry in such a system, where unclear otherwise.
    tested: FxHashMap<(usize, u32), bool>,
    /// True if no two entries have a value in common.
    pub disjoint: bool,
}

impl Bucket {
    pub(super) fn new(entries: Box<[u32]>, relation: &Relation) -> Self {
        let set = |entry: &u32| relation.set(*entry);
        let overlaps = |a: &u32, b: &u32| set(a).iter().any(|&value| relation.has(*b, value));
        let mut sorted = entries.clone();
        sorted.sort_unstable();
        let mut pairs = entries.iter().enumerate().flat_map(|(i, a)| entries[..i].iter().map(move |b| (b, a)));
        let disjoint = relation.is_of_classes() && sorted.windows(2).all(|pair| pair[0] != pair[1])
            || pairs.all(|(a, b)| !overlaps(a, b));
        // Enough values for all entries of a class, or in every entry enough for all entries.
        let enough = |run: &[u32]| set(&run[0]).len() >= run.len();
        let free = disjoint
            || relation.is_of_classes() && sorted.chunk_by(|a, b| a == b).all(enough)
            || entries.iter().all(|entry| set(entry).len() >= entries.len());
        Self {
            loads: vec![0; entries.len()],
            cells: BTreeMap::new(),
            frequencies: FxHashMap::default(),
            free,
            tested: FxHashMap::default(),
            disjoint,
            entries,
        }
    }

    /// Returns the number of groups: as many as the fullest entry or the most frequent value needs. (So every group has a real row: the
    /// entry, or the value, is in all of them.)
    pub(super) fn height(&self) -> usize {
        self.fullest().max(self.most_frequent())
    }

    pub(super) fn fullest(&self) -> usize {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn most_frequent(&self) -> usize {
        self.frequencies.values().copied().max().unwrap_or(0)
    }

    pub(super) fn frequency(&self, value: u32) -> usize {
        self.frequencies.get(&value).copied().unwrap_or(0)
    }

    /// Returns the values that have rows, in no particular order.
    pub(super) fn frequencies(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.frequencies.iter().map(|(&value, &rows)| (value, rows))
    }

    /// Counts the places without a row.
    pub(super) fn gaps(&self) -> usize {
        self.entries.len() * self.height() - self.loads.iter().sum::<usize>()
    }

    /// Returns true if a row of this value can be in the entry: there are values for the others to go with it.
    pub(super) fn fits(&mut self, relation: &Relation, entry: usize, value: u32) -> bool {
        if !relation.has(self.entries[entry], value) {
            return false;
        }
        let entries = &self.entries;
        self.free
            || *self.tested.entry((entry, value)).or_insert_with(|| {
                let others = entries.iter().enumerate().filter(|&(other, _)| other != entry);
                let others: Vec<&[u32]> = others.map(|(_, &number)| relation.set(number)).collect();
                representatives::exists(&others, &[value])
            })
    }

    pub(super) fn add(&mut self, entry: usize, value: u32, rows: usize) {
        self.count(entry, value, |count| count + rows);
    }

    /// Takes a new row away.
    pub(super) fn remove(&mut self, entry: usize, value: u32) {
        self.count(entry, value, |count| count - 1);
    }

    fn count(&mut self, entry: usize, value: u32, change: impl Fn(usize) -> usize) {
        self.loads[entry] = change(self.loads[entry]);
        let frequency = self.frequencies.entry(value).or_insert(0);
        *frequency = change(*frequency);
    }

    /// Adds returning rows.
    pub(super) fn put(&mut self, cell: Cell, rows: usize) {
        self.count(cell.entry, cell.value, |count| count + rows);
        *self.cells.entry(cell).or_insert(0) += rows;
    }

    /// Takes returning rows away.
    pub(super) fn take(&mut self, cell: Cell, rows: usize) {
        self.count(cell.entry, cell.value, |count| count - rows);
        if let Some(left) = self.cells.get_mut(&cell) {
            *left -= rows;
            if *left == 0 {
                self.cells.remove(&cell);
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Buckets {
    pub list: Vec<Bucket>,
    numbers: FxHashMap<Box<[u32]>, usize>,
}

impl Buckets {
    /// Returns the bucket with these entries in this order, made if it is not there.
    pub(super) fn number(&mut self, entries: Box<[u32]>, relation: &Relation) -> usize {
        if let Some(&number) = self.numbers.get(&entries) {
            return number;
        }
        let number = self.list.len();
        self.numbers.insert(entries.clone(), number);
        self.list.push(Bucket::new(entries, relation));
        number
    }
}
