//! Reduced problems: what the output table of a group and an attribute depends on, and no more.
//!
//! Rows with equal values share a row of the table, so only the different values count, with their numbers of rows. Of numbers, only
//! how far they lie above the least one matters. So equal problems come up again and again (gender has a handful in a
//! whole census), and each is solved once.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::program::Program;
use super::starts::Starts;
use super::table::OutputTable;
use crate::microdata::Distance;

/// Bytes of tables that are remembered.
pub(super) const REMEMBERED: usize = 64 << 20;
/// Parts of the memory, so that threads seldom wait for each other.
const SHARDS: usize = 64;

/// The values of a group in one attribute, and how many rows have each.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// Codes of the different values; numbers ascend.
    pub codes: Vec<u32>,
    /// Rows of each.
    pub weights: Vec<u32>,
}

impl Values {
    /// Collects the values of these rows.
    pub(super) fn collect(&mut self, codes: impl Iterator<Item = u32>) {
        self.codes.clear();
        self.weights.clear();
        self.codes.extend(codes);
        self.codes.sort_unstable();
        self.weights.extend(self.codes.chunk_by(|a, b| a == b).map(|run| run.len() as u32));
        self.codes.dedup();
    }

    /// Returns the place of a value that occurs.
    #[inline]
    pub(super) fn place(&self, code: u32) -> usize {
        self.codes.partition_point(|&other| other < code)
    }
}

/// A problem up to what makes no difference. Distances are bits of doubles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// Steps between neighbours on a line.
    Line { weights: Box<[u32]>, steps: Box<[u64]> },
    /// All different values are equally far apart.
    Apart { weights: Box<[u32]> },
    /// Leaves of the hierarchy of an attribute.
    Tree { attribute: usize, weights: Box<[u32]>, codes: Box<[u32]> },
}

impl Key {
    fn new(attribute: usize, distance: &Distance, values: &Values) -> Self {
        let weights = values.weights.as_slice().into();
        match distance {
            Distance::Line(places) => {
                let place = |code: u32| places[code as usize];
                let steps = values.codes.windows(2).map(|pair| (place(pair[1]) - place(pair[0])).to_bits()).collect();
                Self::Line { weights, steps }
            }
            Distance::Apart => Self::Apart { weights },
            Distance::Tree(_) => Self::Tree { attribute, weights, codes: values.codes.as_slice().into() },
        }
    }
}

/// Tables by their problems.
pub(super) struct Memo {
    delta: f64,
    starts: Starts,
    shards: Vec<Mutex<Shard>>,
}

#[derive(Default)]
struct Shard {
    tables: FxHashMap<Key, Arc<OutputTable>>,
    bytes: usize,
}

impl Memo {
    pub(super) fn new(delta: f64) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { delta, starts: Starts::new(cover(delta)), shards }
    }

    /// Returns the table for these values of an attribute. The same whoever solved it.
    pub(super) fn table(&self, attribute: usize, distance: &Distance, values: &Values) -> Arc<OutputTable> {
        let key = Key::new(attribute, distance, values);
        let shard = &self.shards[FxBuildHasher.hash_one(&key) as usize % SHARDS];
        let lock = || shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = lock().tables.get(&key) {
            return Arc::clone(table);
        }
        let table = Arc::new(self.solve(distance, values));
        let mut shard = lock();
        let bytes = table.size() + size_of::<(Key, Arc<OutputTable>)>() + values.codes.len() * 16;
        if shard.bytes + bytes <= REMEMBERED / SHARDS {
            shard.bytes += bytes;
            if let Entry::Vacant(entry) = shard.tables.entry(key) {
                entry.insert(Arc::clone(&table));
            }
        }
        table
    }

    fn solve(&self, distance: &Distance, values: &Values) -> OutputTable {
        let codes = &values.codes;
        // Of the codes, only differences may count: that is what the key has.
        let along: Option<Vec<f64>> = match distance {
            Distance::Line(places) => {
                let mut at = 0.0;
                let steps = codes.windows(2).map(|pair| places[pair[1] as usize] - places[pair[0] as usize]);
                Some(
                    std::iter::once(0.0)
                        .chain(steps)
                        .map(|step| {
                            at += step;
                            at
                        })
                        .collect(),
                )
            }
            Distance::Apart | Distance::Tree(_) => None,
        };
        let between = |i: usize, j: usize| match &along {
            Some(along) => (along[i] - along[j]).abs(),
            None => distance.between(codes[i], codes[j]),
        };
        let d = codes.len();
        let distances: Vec<f64> = (0..d * d).map(|at| between(at / d, at % d)).collect();
        let program = Program {
            weights: &values.weights,
            distances: &distances,
            line: along.is_some(),
            cover: cover(self.delta),
        };
        let start = || along.as_ref().and_then(|_| self.starts.of(&values.weights));
        OutputTable::new(&program.solve(start), &values.weights, self.delta)
    }
}

/// Returns the rows that delta asks for: 1 / delta, exact where delta is the double next to a unit fraction.
pub(super) fn cover(delta: f64) -> f64 {
    let whole = (1.0 / delta).round();
    if 1.0 / whole == delta { whole } else { 1.0 / delta }
}
