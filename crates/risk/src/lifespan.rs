//! Candidates of a person that are left in view of all releases with the person.

mod counted;
mod times;

use rayon::prelude::*;

use super::background::{ALL, AdversaryModel, by_place};
use super::cover::{Candidates, join};
use super::evidence::{Evidence, NONE, ReleaseEvidence, distinct};
use super::{BUDGET, Joint, UpdateGraph, Version};
use crate::error::{Error, Result};

/// Most people looked at in one piece, and fewest.
const PIECE: [usize; 2] = [16_384, 32];

/// People by whom it is estimated how many candidates everybody has.
const SAMPLE: usize = 256;

/// Bytes of candidates that a piece should not exceed, about.
const PIECE_BYTES: usize = 256 << 20;

/// Inferences of a reader of releases about everybody.
#[derive(Debug)]
pub struct Disclosure {
    evidence: Evidence,
    strength: AdversaryModel,
    /// Findings of a reader who combines people.
    joint: Option<Joint>,
    /// People in an order in which neighbours have similar quasi-identifiers.
    order: Vec<u32>,
    wanted: Wanted,
    piece: usize,
    /// People whose candidates are listed at a time.
    listed: usize,
    /// Candidates that a person has, about: in all releases, and twice in one.
    entries: usize,
}

/// Inferences about some people: a row for every person and release that had the person.
#[derive(Debug, Default)]
pub struct Findings {
    /// Codes of the identifiers.
    pub people: Vec<u32>,
    /// Numbers of the releases, from 1.
    pub releases: Vec<u64>,
    /// Values that the person can have by the release alone.
    pub candidates: Sets,
    /// Candidates that remain in view of all releases. Empty if the release covers the person in no row, or if no
    /// history of values explains all releases: what is known, or the update relation, is wrong then.
    pub remaining: Sets,
    /// Candidates that may or may not remain: a joint inference did not get that far. Not in `remaining`.
    pub undecided: Sets,
    /// Probability of the true value in view of all releases; `None` if it is not known, or nothing remains. A joint inference finds out
    /// what is possible, not how probable it is: 1 if only the true value is, 0 if only another is, else `None`.
    pub risk: Vec<Option<f64>>,
}

/// Sets of values, one after the other, each ascending; or only how large they are.
#[derive(Debug, Default)]
pub struct Sets {
    /// End of each set in `values`.
    pub ends: Vec<usize>,
    /// Codes of values; empty if only sizes were wanted.
    pub values: Vec<u32>,
}

/// Detail in which sets are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Their values.
    Values,
    /// Numbers of their values.
    Sizes,
}

impl Sets {
    /// Returns the number of sets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no sets.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of values of one of the sets.
    pub fn size(&self, place: usize) -> usize {
        self.ends[place] - if place == 0 { 0 } else { self.ends[place - 1] }
    }

    /// Returns one of the sets, whose values were wanted.
    pub fn get(&self, place: usize) -> &[u32] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.values[start..self.ends[place]]
    }

    fn add(&mut self, size: usize) {
        self.ends.push(self.ends.last().copied().unwrap_or(0) + size);
    }

    fn push(&mut self, values: impl ExactSizeIterator<Item = u32>, wanted: Wanted) {
        let start = self.ends.last().copied().unwrap_or(0);
        let size = values.len();
        if wanted == Wanted::Values {
            self.values.extend(values);
            self.values[start..].sort_unstable();
        }
        self.ends.push(start + size);
    }
}

impl Disclosure {
    /// Prepares the inference.
    ///
    /// # Errors
    /// When the reader is to know groups and a release does not show them.
    pub fn try_new(evidence: Evidence, strength: AdversaryModel) -> Result<Self> {
        Self::within(evidence, strength, Wanted::Values, BUDGET, &|_| Ok(()))
    }

    /// Infers within limits: the detail of sets, a budget of decisions for each part of a joint inference, and a
    /// monitor. The monitor is asked whether to go on, and for bytes of memory.
    ///
    /// Sizes of what readers of public tables think possible take time in proportion to the releases, values all the more the longer
    /// their lists are.
    ///
    /// # Errors
    /// As for [`try_new`](Self::try_new), and those of `check`.
    pub fn within(
        evidence: Evidence,
        strength: AdversaryModel,
        wanted: Wanted,
        budget: u64,
        check: &(dyn Fn(usize) -> Result<()> + Sync),
    ) -> Result<Self> {
        if strength.knows_groups() && !evidence.shows_groups() {
            return Err(Error::refused(
                "strength 'group' or 'joint' is that of a reader who knows which group holds each person, so all releases must be \
                 private views with the identifier column",
            ));
        }
        let joint = strength.is_joint().then(|| Joint::of_releases(&evidence, strength, budget, check)).transpose()?;
        let order = by_place(&evidence.known, evidence.quasi);
        let mut disclosure = Self { evidence, strength, joint, order, wanted, piece: 1, listed: 1, entries: 0 };
        disclosure.entries = disclosure.sample();
        let [most, fewest] = PIECE;
        disclosure.listed = (PIECE_BYTES / disclosure.listed_bytes().max(1)).clamp(fewest, most);
        disclosure.piece = disclosure.listed;
        if disclosure.counts(wanted) {
            disclosure.piece = most;
            disclosure.arrange();
        }
        Ok(disclosure)
    }

    /// Returns the releases and what is known.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Returns the number of pieces, each of up to some thousand people.
    pub fn pieces(&self) -> usize {
        self.order.len().div_ceil(self.piece)
    }

    /// Returns the bytes that a piece needs while it is looked at, about.
    pub fn piece_bytes(&self) -> usize {
        self.listed_bytes() + if self.counts(self.wanted) { self.counting_bytes() } else { 0 }
    }

    fn listed_bytes(&self) -> usize {
        self.listed * (self.entries * size_of::<(u32, f64)>() + self.evidence.releases() * 64)
    }

    /// Estimates the number of candidates of a person: the most of some people, spread over all.
    fn sample(&self) -> usize {
        let step = self.order.len().div_ceil(SAMPLE).max(1);
        let people: Vec<u32> = self.order.iter().copied().step_by(step).collect();
        let mut most = 0;
        let mut all = 0;
        for (number, release) in (1..).zip(&self.evidence.releases) {
            let layers = self.layers(number, release, &people);
            let here = (0..people.len()).filter_map(|place| layers.of(place)).map(<[_]>::len).max().unwrap_or(0);
            most = most.max(here);
            all += here;
        }
        2 * most + if self.strength.knows_groups() { 0 } else { all }
    }

    /// Returns the findings of a piece. Pieces are independent of each other, and of the number of threads.
    pub fn piece(&self, number: usize) -> Findings {
        let end = self.order.len().min((number + 1) * self.piece);
        let people = &self.order[number * self.piece..end];
        if self.counts(self.wanted) {
            return self.counted(people);
        }
        let mut findings = Findings::default();
        self.list(people, self.wanted, &mut findings);
        findings
    }

    fn list(&self, people: &[u32], wanted: Wanted, findings: &mut Findings) {
        let layers: Vec<Layers<'_>> =
            (1..).zip(&self.evidence.releases).map(|(number, release)| self.layers(number, release, people)).collect();
        let mut graph = UpdateGraph::new(&self.evidence.updates);
        let mut before: Vec<(u64, &[(u32, f64)])> = Vec::new();
        let mut versions: Vec<Version> = Vec::new();
        for (place, &person) in people.iter().enumerate() {
            let seen = (1..).zip(&layers).filter_map(|(number, layers)| Some((number, layers.of(place)?)));
            let seen: Vec<(u64, &[(u32, f64)])> = seen.collect();
            // Neighbours often have the same quasi-identifiers and so the very same candidates.
            let same = seen.len() == before.len()
                && seen.iter().zip(&before).all(|(now, before)| now.0 == before.0 && std::ptr::eq(now.1, before.1));
            if !same && self.joint.is_none() {
                let covered = seen.iter().copied().filter(|(_, candidates)| !candidates.is_empty());
                versions = match self.evidence.times.is_empty() {
                    true => graph.versions_of(covered),
                    false => {
                        let covered: Vec<(u64, &[(u32, f64)])> = covered.collect();
                        times::versions_at(&mut graph, &covered, |release| self.evidence.time(release))
                    }
                }
                .unwrap_or_default();
            }
            let mut left = versions.iter().peekable();
            for &(release, candidates) in &seen {
                findings.people.push(self.id(person));
                findings.releases.push(release);
                let value = |candidate: &(u32, f64)| candidate.0;
                findings.candidates.push(candidates.iter().map(value), wanted);
                let truth = self.row(person, release).map(|row| self.evidence.known.sensitive[row]);
                let truth = truth.filter(|&value| value != NONE);
                if let Some(joint) = &self.joint {
                    let [possible, undecided] = joint.of(self.id(person), release).unwrap_or_default();
                    findings.remaining.push(possible.iter().copied(), wanted);
                    findings.undecided.push(undecided.iter().copied(), wanted);
                    let certain = undecided.is_empty() && possible.len() == 1;
                    let risk = truth.filter(|_| certain).map(|truth| f64::from(u8::from(possible == [truth])));
                    findings.risk.push(risk);
                    continue;
                }
                let version = left.next_if(|version| version.release == release);
                findings
                    .remaining
                    .push(version.map_or(&[][..], |version| &version.candidates).iter().map(value), wanted);
                findings.undecided.push(std::iter::empty(), wanted);
                findings.risk.push(version.and_then(|version| Some(version.risk(truth?))));
            }
            before = seen;
        }
    }

    /// Returns the findings of all pieces, in order.
    pub fn all(&self) -> Vec<Findings> {
        (0..self.pieces()).into_par_iter().map(|number| self.piece(number)).collect()
    }

    fn id(&self, person: u32) -> u32 {
        self.evidence.known.person[self.evidence.known.starts[person as usize] as usize]
    }

    /// Returns the place of the knowledge of a person at a release, if any.
    fn row(&self, person: u32, release: u64) -> Option<usize> {
        let known = &self.evidence.known;
        let mut rows = known.starts[person as usize] as usize..known.starts[person as usize + 1] as usize;
        rows.find(|&row| known.release[row] == release || known.release[row] == ALL)
    }

    fn layers<'a>(&'a self, number: u64, release: &'a ReleaseEvidence, people: &[u32]) -> Layers<'a> {
        if let (true, Some(hosts)) = (self.strength.knows_groups(), &release.hosts) {
            let group = |&person: &u32| hosts[self.id(person) as usize].0;
            return Layers::Groups { release, groups: people.iter().map(group).collect() };
        }
        let rows: Vec<Option<usize>> = people.iter().map(|&person| self.row(person, number)).collect();
        let d = self.evidence.quasi;
        let quasi = &self.evidence.known.quasi;
        let (points, numbers) = distinct(rows.iter().flatten().map(|row| &quasi[row * d..][..d]));
        let values = self.evidence.values().len();
        let found = join(&release.boxes, &points, values);
        let mut numbers = numbers.into_iter();
        let point = rows.iter().map(|row| row.and_then(|_| numbers.next())).collect();
        Layers::Covers { found, point }
    }
}

/// Candidates of the people of a piece by one release.
enum Layers<'a> {
    Groups { release: &'a ReleaseEvidence, groups: Vec<u32> },
    Covers { found: Candidates, point: Vec<Option<u32>> },
}

impl Layers<'_> {
    /// Returns the candidates of the person at a place; `None` if the release did not have the person.
    fn of(&self, place: usize) -> Option<&[(u32, f64)]> {
        match self {
            Layers::Groups { release, groups } => (groups[place] != NONE).then(|| release.boxes.group(groups[place])),
            Layers::Covers { found, point } => point[place].map(|point| found.of(point)),
        }
    }
}
