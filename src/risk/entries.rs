//! Entries of a ledger: who was published how, since which release; and whether releases agree with them.

use rustc_hash::FxHashMap;

use super::audit::Check;
use crate::error::thousands;

/// An entry of a ledger. Its *mark* is what releases show of the person: the signature of a group, or a published row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub person: u32,
    /// The first release with the mark.
    pub release: u64,
    pub mark: u32,
}

/// How often a release shows each mark: in how many groups, and in how many real rows.
pub(super) type Shown = FxHashMap<u32, (usize, u64)>;

/// Which of somebody's marks a release may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Latest,
    Any,
}

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

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// The entries of each person.
    pub(super) fn of_people(&self) -> impl Iterator<Item = &[Entry]> {
        self.0.chunk_by(|a, b| a.person == b.person)
    }

    /// Entries of one person that follow each other.
    pub(super) fn steps(&self) -> impl Iterator<Item = [&Entry; 2]> {
        let pairs = self.0.windows(2).map(|pair| [&pair[0], &pair[1]]);
        pairs.filter(|[before, after]| before.person == after.person)
    }

    /// Whether each release shows the people whom the ledger knows by then, each with the latest mark, or with any of the marks so
    /// far.
    pub(super) fn agree(&self, name: &str, which: Which, marks: usize, releases: &[(u64, Shown)]) -> Vec<Check> {
        let mut entries = self.0.clone();
        entries.sort_unstable_by_key(|entry| entry.release);
        let mut entries = entries.into_iter().peekable();
        let mut latest: FxHashMap<u32, u32> = FxHashMap::default();
        let mut people = vec![0_u64; marks];
        let mut checks = Vec::new();
        for (number, shown) in releases {
            let mut fresh: FxHashMap<u32, u64> = FxHashMap::default();
            while let Some(entry) = entries.next_if(|entry| entry.release <= *number) {
                if which == Which::Latest
                    && let Some(before) = latest.insert(entry.person, entry.mark)
                {
                    people[before as usize] -= 1;
                }
                people[entry.mark as usize] += 1;
                if entry.release == *number {
                    *fresh.entry(entry.mark).or_default() += 1;
                }
            }
            let (mut unknown, mut crowded, mut groups, mut real) = (0, 0, 0, 0);
            for (&mark, &(count, rows)) in shown {
                groups += count;
                real += rows;
                // Everybody in the release has been published by then, in this way.
                match people[mark as usize] {
                    0 => unknown += count,
                    so_far => crowded += rows.saturating_sub(so_far),
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
