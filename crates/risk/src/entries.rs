//! Entries of a ledger: who was published how, since which release; and whether releases agree with them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::audit::Check;
use crate::error::thousands;

/// An entry of a ledger. Its *mark* is what releases show of the person: the signature of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub person: u32,
    /// The first release with the mark.
    pub release: u64,
    pub mark: u32,
}

/// Numbers of groups and of real rows in which a release shows each mark.
pub(super) type Shown = FxHashMap<u32, (usize, u64)>;

/// Entries in order of people and releases.
#[derive(Debug)]
pub(super) struct Entries(Vec<Entry>);

impl Entries {
    pub(super) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable();
        Self(entries)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_inner(self) -> Vec<Entry> {
        self.0
    }

    pub(super) fn of_people(&self) -> impl Iterator<Item = &[Entry]> {
        self.0.chunk_by(|a, b| a.person == b.person)
    }

    /// Returns the entries of one person that follow each other.
    pub(super) fn steps(&self) -> impl Iterator<Item = [&Entry; 2]> {
        let pairs = self.0.windows(2).map(|pair| [&pair[0], &pair[1]]);
        pairs.filter(|[before, after]| before.person == after.person)
    }
}

/// Numbers of people with each mark from each release on, to compare ledgers with releases. People may be added a
/// part of them at a time.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// By release and mark: by how much the number of people with the mark changes there, and how many entries begin there.
    changes: BTreeMap<u64, FxHashMap<u32, (i64, u64)>>,
}

impl Agreement {
    /// Adds all entries of some people, each with the latest mark.
    pub(super) fn add(&mut self, entries: &Entries) {
        for own in entries.of_people() {
            let mut before = None;
            for entry in own {
                let changes = self.changes.entry(entry.release).or_default();
                let change = changes.entry(entry.mark).or_default();
                change.0 += 1;
                change.1 += 1;
                if let Some(before) = before.replace(entry.mark) {
                    changes.entry(before).or_default().0 -= 1;
                }
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        self.changes.values().map(|changes| changes.capacity() * size_of::<(u32, i64, u64)>()).sum()
    }

    /// Checks that each of these ascending releases shows the people of the ledger by then.
    pub(super) fn checks(mut self, name: &str, releases: &[(u64, Shown)]) -> Vec<Check> {
        let mut people: FxHashMap<u32, i64> = FxHashMap::default();
        let mut checks = Vec::new();
        for (number, shown) in releases {
            let later = self.changes.split_off(&(number + 1));
            let mut fresh: FxHashMap<u32, u64> = FxHashMap::default();
            for (release, changes) in std::mem::replace(&mut self.changes, later) {
                for (mark, (change, begun)) in changes {
                    *people.entry(mark).or_default() += change;
                    if release == *number && begun > 0 {
                        fresh.insert(mark, begun);
                    }
                }
            }
            let (mut unknown, mut crowded, mut groups, mut real) = (0, 0, 0, 0);
            for (mark, &(count, rows)) in shown {
                groups += count;
                real += rows;
                // Everybody in the release has been published by then, in this way.
                match people.get(mark).copied().unwrap_or_default() {
                    ..=0 => unknown += count,
                    so_far => crowded += rows.saturating_sub(so_far as u64),
                }
            }
            let absent =
                |(mark, &fresh): (&u32, &u64)| fresh.saturating_sub(shown.get(mark).map_or(0, |shown| shown.1));
            let missing: u64 = fresh.iter().map(absent).sum();
            let new: u64 = fresh.values().sum();
            let figures = format!(
                "{} of {} are of nobody, {} of {} real rows are more than there are people, {} of {} new entries have no row",
                thousands(unknown),
                thousands(groups),
                thousands(crowded as usize),
                thousands(real as usize),
                thousands(missing as usize),
                thousands(new as usize)
            );
            checks.push(Check::new(Some(*number), name, unknown == 0 && crowded == 0 && missing == 0, figures));
        }
        checks
    }
}
