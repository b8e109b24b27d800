//! Model of all releases as assignment problems that share people: each person has one row of a release.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Rows that look alike to the reader: rows of one group (or with one box) and one sensitive value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// Code of the sensitive value.
    pub value: u32,
    /// Number of rows; each is at most one person's.
    pub capacity: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    /// Code of the identifier.
    pub person: u32,
    /// Number of the release.
    pub release: u64,
    /// Time of the release, in steps of the update relation.
    pub time: u64,
    /// Place among the pools.
    pub pool: u32,
    /// Slots one of which is the person's: ascending. Fewer and fewer, until none is left that is impossible.
    pub slots: Vec<u32>,
    /// A value to try first, or [`NONE`](super::super::evidence::NONE): the true one if it is there, for with everybody's it is an
    /// assignment. It decides how long an answer takes, and never what it is.
    pub hint: u32,
}

/// Verdict on a value of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Possible,
    Impossible,
    /// The budget did not suffice.
    Undecided,
}

/// Slots and the versions that share them: a group, or a whole release if the reader knows no groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pool {
    pub slots: Range<u32>,
    pub versions: Vec<u32>,
}

/// Releases as the reader sees them. Every version has exactly one row, and every row is at most one version's.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub slots: Vec<Slot>,
    pub pools: Vec<Pool>,
    /// By person, and by release.
    pub versions: Vec<Version>,
}

impl Model {
    /// Adds a pool of these slots. Its versions come with [`finish`](Self::finish).
    pub(super) fn add_pool(&mut self, slots: impl IntoIterator<Item = Slot>) -> u32 {
        let first = self.slots.len() as u32;
        self.slots.extend(slots);
        self.pools.push(Pool { slots: first..self.slots.len() as u32, versions: Vec::new() });
        self.pools.len() as u32 - 1
    }

    /// Finishes the model once all versions are added, in any order.
    pub(super) fn finish(&mut self) {
        self.versions.sort_unstable_by_key(|version| (version.person, version.release));
        self.pools.iter_mut().for_each(|pool| pool.versions.clear());
        for (place, version) in (0..).zip(&self.versions) {
            self.pools[version.pool as usize].versions.push(place);
        }
    }

    /// Returns the bytes that the model takes, about, with what is computed from it: a slot of a version is a number here, a claim, a literal and its
    /// clauses.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.versions.iter().map(|version| version.slots.len() + 2).sum();
        slots * 160 + self.slots.len() * 64
    }

    /// Returns the values that a version can have, ascending.
    pub(super) fn values(&self, version: u32) -> Vec<u32> {
        let slots = &self.versions[version as usize].slots;
        let mut values: Vec<u32> = slots.iter().map(|&slot| self.slots[slot as usize].value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    pub(super) fn people(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        self.versions.chunk_by(|a, b| a.person == b.person).map(move |versions| {
            start += versions.len();
            start - versions.len()..start
        })
    }

    /// Splits the model into its connected components: pools that share people. Each component is a model of its own, with the places of its versions here.
    pub(super) fn components(mut self) -> Vec<(Self, Vec<u32>)> {
        let mut sets = Sets::new(self.pools.len());
        for pair in self.versions.windows(2).filter(|pair| pair[0].person == pair[1].person) {
            sets.join(pair[0].pool, pair[1].pool);
        }
        // Components in the order of their first version.
        let mut number: FxHashMap<u32, usize> = FxHashMap::default();
        let mut made: Vec<(Self, Vec<u32>)> = Vec::new();
        let mut moved: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        for (place, version) in (0..).zip(std::mem::take(&mut self.versions)) {
            let component = *number.entry(sets.find(version.pool)).or_insert_with(|| {
                made.push(Default::default());
                made.len() - 1
            });
            let (model, places) = &mut made[component];
            let slots = self.pools[version.pool as usize].slots.clone();
            let (pool, first) = *moved.entry(version.pool).or_insert_with(|| {
                let first = model.slots.len() as u32;
                let own = &self.slots[slots.start as usize..slots.end as usize];
                (model.add_pool(own.iter().copied()), first)
            });
            let own = version.slots.iter().map(|slot| slot - slots.start + first).collect();
            model.versions.push(Version { pool, slots: own, ..version });
            places.push(place);
        }
        made.iter_mut().for_each(|(model, _)| model.finish());
        made
    }
}

/// Disjoint sets (union and find).
#[derive(Debug, Clone)]
pub(super) struct Sets {
    parent: Vec<u32>,
}

impl Sets {
    pub(super) fn new(number: usize) -> Self {
        Self { parent: (0..number as u32).collect() }
    }

    pub(super) fn find(&mut self, mut place: u32) -> u32 {
        while self.parent[place as usize] != place {
            let above = self.parent[self.parent[place as usize] as usize];
            self.parent[place as usize] = above;
            place = above;
        }
        place
    }

    pub(super) fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        // The lesser stands for both, so that nothing depends on the order of joins.
        self.parent[a.max(b) as usize] = a.min(b);
    }
}
