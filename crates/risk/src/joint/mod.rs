//! The *joint* reader, who looks at everybody together.
//!
//! A reader who looks at one person at a time keeps every value that the person's groups have. One who combines people
//! knows more: a row is at most one person's, so who has this value in one release leaves another to somebody else, in all releases
//! of both. A value of a person in a release is *possible* here if there is an assignment of everybody in all releases at once
//!
//! - in which everybody has one row of the own group, no row is two people's, and rows that are nobody's are counterfeits,
//! - in which every person's values follow from each other: they stay, or change by the update relation, in as many steps as
//!   releases lie between.
//!
//! That is decided exactly, component by component (groups that share people). First every pool of rows and every history rules
//! out what it can alone, over and over ([`filter`]): matchings and their strongly connected components. Where people and pools
//! form a tree (one release alone does), that is all. Where they close circles, a SAT solver looks for assignments ([`prove`]),
//! with a budget of decisions per part, so that the same question has the same answer on any machine. What it does not reach
//! is *undecided*.
//!
//! | file | |
//! |---|---|
//! | `model` | who can have which row |
//! | `evidence` | models of releases: by groups, or by what covers whom |
//! | `assignment`, `filter` | what pools and people rule out by themselves |
//! | `reach` | what values become in several steps |
//! | `parts` | what is still open, in parts |
//! | `prove`, `exchange` | which of it is possible |

mod assignment;
mod evidence;
mod exchange;
mod filter;
mod model;
mod parts;
mod prove;
mod reach;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use self::model::{Model, Verdict};
use self::prove::{Effort, Limits, prove};
use self::reach::Reach;
use super::background::AdversaryModel;
use super::{Evidence, Updates};
use crate::error::Result;

/// Decisions of the solver for each part of people who depend on each other.
pub const BUDGET: u64 = 20_000_000;

/// Possible values of everybody in every release.
#[derive(Debug, Default)]
pub struct Joint {
    /// Person and release, ascending.
    versions: Vec<(u32, u64)>,
    /// Ends of each version's values in `values`: of the possible ones, then of the undecided ones.
    ends: Vec<[usize; 2]>,
    values: Vec<u32>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at the effort"))]
    tally: Tally,
}

/// Work that an inference took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Components: groups that share people.
    pub components: usize,
    /// Parts that were given to the solver, and people times releases in the largest.
    pub proven: [usize; 2],
    /// Parts that were not decided within the budget.
    pub undecided: usize,
    /// Questions to the solver, and its decisions.
    pub questions: u64,
    /// Decisions of the solver.
    pub decisions: u64,
}

impl Tally {
    fn and(self, other: Self) -> Self {
        Self {
            components: self.components + other.components,
            proven: [self.proven[0] + other.proven[0], self.proven[1].max(other.proven[1])],
            undecided: self.undecided + other.undecided,
            questions: self.questions + other.questions,
            decisions: self.decisions + other.decisions,
        }
    }
}

impl Joint {
    /// Infers the possible values by releases, for a reader who knows groups or not.
    pub(super) fn of_releases(
        evidence: &Evidence,
        strength: AdversaryModel,
        budget: u64,
        check: &(dyn Fn(usize) -> Result<()> + Sync),
    ) -> Result<Self> {
        let model = match strength.knows_groups() {
            true => evidence::by_groups(evidence),
            false => evidence::by_covers(evidence)?,
        };
        check(model.bytes())?;
        Self::infer(model, &evidence.updates, Limits { budget, check })
    }

    /// Infers what is possible.
    fn infer(model: Model, updates: &Updates, limits: Limits<'_>) -> Result<Self> {
        let versions: Vec<(u32, u64)> =
            model.versions.iter().map(|version| (version.person, version.release)).collect();
        let components = model.components();
        let number = components.len();
        let found = components.into_par_iter().map(|(model, places)| Ok((component(model, updates, limits)?, places)));
        let found = found.collect::<Result<Vec<_>>>()?;
        let mut tally = Tally { components: number, ..Tally::default() };
        let mut of: Vec<Vec<(u32, Verdict)>> = vec![Vec::new(); versions.len()];
        for ((verdicts, effort), places) in found {
            tally = tally.and(effort);
            for (place, verdict) in places.into_iter().zip(verdicts) {
                of[place as usize] = verdict;
            }
        }
        let mut joint = Self { versions, tally, ..Self::default() };
        for verdicts in of {
            let ends = [Verdict::Possible, Verdict::Undecided].map(|wanted| {
                joint.values.extend(verdicts.iter().filter(|(_, verdict)| *verdict == wanted).map(|(value, _)| *value));
                joint.values.len()
            });
            joint.ends.push(ends);
        }
        Ok(joint)
    }

    /// Returns the possible and the undecided values of a person in a release, ascending. `None` if the person is not
    /// in it.
    pub(super) fn of(&self, person: u32, release: u64) -> Option<[&[u32]; 2]> {
        let place = self.versions.binary_search(&(person, release)).ok()?;
        let start = if place == 0 { 0 } else { self.ends[place - 1][1] };
        let [possible, undecided] = self.ends[place];
        Some([&self.values[start..possible], &self.values[possible..undecided]])
    }

    /// Returns the work that it took.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}

/// Returns the verdicts on the values of each version of a component.
fn component(mut model: Model, updates: &Updates, limits: Limits<'_>) -> Result<(Vec<Vec<(u32, Verdict)>>, Tally)> {
    (limits.check)(0)?;
    let mut reach = Reach::new(updates);
    let assignment = filter::filter(&mut model, &mut reach);
    let possible = |version: u32| model.values(version).into_iter().map(|value| (value, Verdict::Possible)).collect();
    let mut verdicts: Vec<Vec<(u32, Verdict)>> = (0..model.versions.len() as u32).map(possible).collect();
    let parts = parts::parts(&model, &assignment, reach.is_any());
    let open: Vec<&parts::Part> = parts.iter().filter(|part| part.circular).collect();
    let proofs = open.par_iter().map(|part| prove(&model, part, &reach, limits)).collect::<Result<Vec<_>>>()?;
    let mut tally = Tally::default();
    for (part, (found, effort)) in open.into_iter().zip(proofs) {
        let Effort { questions, decisions } = effort;
        let undecided = found.iter().flatten().any(|(_, verdict)| *verdict == Verdict::Undecided);
        let proven = [1, part.versions.len()];
        tally = tally.and(Tally { proven, undecided: usize::from(undecided), questions, decisions, components: 0 });
        for (&version, found) in part.versions.iter().zip(found) {
            verdicts[version as usize] = found;
        }
    }
    // Nothing explains all of it: nothing of it is possible.
    let none = |values: &Vec<(u32, Verdict)>| values.iter().all(|(_, verdict)| *verdict == Verdict::Impossible);
    if verdicts.iter().any(none) {
        verdicts.iter_mut().for_each(Vec::clear);
    }
    Ok((verdicts, tally))
}
