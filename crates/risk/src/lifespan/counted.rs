//! Counts of people's candidates, without lists.
//!
//! The lists of everybody's candidates together are as long as people and values multiplied. Their sizes are not, nor is the
//! probability of what is true: [`Counts`] finds them for all who were in the same releases at once.

use rustc_hash::FxHashMap;

use super::super::background::{ALL, AdversaryModel};
use super::super::cover::{Boxes, Counts};
use super::super::evidence::{NONE, distinct};
use super::{Disclosure, Findings, Wanted};

/// Fewest people in the same releases whose candidates are counted together: each such count looks at all boxes of the releases.
const FEWEST: usize = 256;

impl Disclosure {
    /// Returns true if sizes are all that is needed, and can be counted: in a world where nobody's value changes.
    pub(super) fn counts(&self, wanted: Wanted) -> bool {
        let plain =
            self.strength == AdversaryModel::Cover && self.evidence.updates.is_identity() && self.evidence.quasi > 0;
        plain && wanted == Wanted::Sizes
    }

    /// Returns the releases that had a person.
    fn seen(&self, person: u32) -> Vec<u64> {
        (1..=self.evidence.releases.len() as u64).filter(|&release| self.row(person, release).is_some()).collect()
    }

    /// Puts people of the same releases side by side. The most frequent sets of releases come first.
    pub(super) fn arrange(&mut self) {
        let seen: Vec<Vec<u64>> = self.order.iter().map(|&person| self.seen(person)).collect();
        let mut frequent: FxHashMap<&[u64], usize> = FxHashMap::default();
        seen.iter().for_each(|releases| *frequent.entry(releases).or_default() += 1);
        let mut places: Vec<usize> = (0..seen.len()).collect();
        places.sort_by_key(|&place| (std::cmp::Reverse(frequent[seen[place].as_slice()]), &seen[place], place));
        self.order = places.into_iter().map(|place| self.order[place]).collect();
    }

    /// Returns the bytes of working memory for a piece, about.
    pub(super) fn counting_bytes(&self) -> usize {
        let releases: Vec<&Boxes> = self.evidence.releases.iter().map(|release| &release.boxes).collect();
        // People whose quasi-identifiers change are points with those of all releases.
        let changing = self.evidence.known.release.iter().any(|&release| release != ALL);
        let attributes = self.evidence.quasi * if changing { releases.len() } else { 1 };
        Counts::bytes(&releases, self.evidence.values().len(), attributes, self.piece)
    }

    pub(super) fn counted(&self, people: &[u32]) -> Findings {
        let mut findings = Findings::default();
        let mut others = Vec::new();
        let seen: Vec<(Vec<u64>, u32)> = people.iter().map(|&person| (self.seen(person), person)).collect();
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let people: Vec<u32> = same.iter().map(|(_, person)| *person).collect();
            match people.len() >= FEWEST {
                true => self.count(&people, &same[0].0, &mut findings),
                false => others.extend(people),
            }
        }
        for people in others.chunks(self.listed) {
            self.list(people, Wanted::Sizes, &mut findings);
        }
        findings
    }

    /// Counts for people whom these releases had.
    fn count(&self, people: &[u32], seen: &[u64], findings: &mut Findings) {
        let (d, known) = (self.evidence.quasi, &self.evidence.known);
        let rows: Vec<usize> = people
            .iter()
            .flat_map(|&person| seen.iter().filter_map(move |&release| self.row(person, release)))
            .collect();
        let codes = |row: usize| &known.quasi[row * d..][..d];
        let k = seen.len();
        let apart = rows.chunks_exact(k.max(1)).any(|rows| rows.iter().any(|&row| codes(row) != codes(rows[0])));
        let attributes = if apart { k * d } else { d };
        if k == 0 {
            return;
        }
        let whole: Vec<u32> = rows
            .chunks_exact(k)
            .flat_map(|rows| if apart { rows } else { &rows[..1] })
            .flat_map(|&row| codes(row).iter().copied())
            .collect();
        let (points, point) = distinct(whole.chunks_exact(attributes));
        let releases: Vec<&Boxes> =
            seen.iter().map(|&release| &self.evidence.releases[release as usize - 1].boxes).collect();
        let truth: Vec<u32> = rows.iter().map(|&row| known.sensitive[row]).collect();
        let values = self.evidence.values().len();
        let counts = Counts { releases: &releases, values, points: &points, point: &point, truth: &truth };
        let sizes = counts.sizes(attributes);
        for (place, &person) in people.iter().enumerate() {
            for (at, &release) in (place * k..).zip(seen) {
                findings.people.push(self.id(person));
                findings.releases.push(release);
                findings.candidates.add(sizes.candidates[at] as usize);
                findings.remaining.add(sizes.remaining[at] as usize);
                findings.undecided.add(0);
                findings.risk.push(sizes.risk[at].filter(|_| truth[at] != NONE));
            }
        }
    }
}

#[cfg(test)]
mod tests;
