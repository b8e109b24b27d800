//! The first release as the reference: new people of later releases draw their signature, each for themselves.
//!
//! The first release put `a_s` people of each value of signature `s` there, `n_v` people of value `v` in all. Who comes later with `v` draws
//! `s` with probability `a_s / n_v`. If values are drawn independently by the law `n_v / n`, a newcomer has `v` and draws `s` with
//! probability `a_s / n`: the same for each `v` of `s`. So no batch has to be eligible, and nothing depends on who else is in it.
//!
//! A value that the first release has not seen has no signature to draw. Values of a declared domain get some here, once and for all: as
//! if one more person of each had been in the first release. Made only when such a value has come, these signatures would tell so.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::division::{Division, NOWHERE};
use crate::assignment::Step;
use crate::error::{Error, Result, thousands};
use crate::lots::Lots;
use crate::microdata::Microdata;
use crate::state::Signatures;

/// Under which signatures new rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Assignment {
    /// All new rows of a release together, equally many of each value under every signature: they must be m-eligible, and nothing need be
    /// known of the law by which values are distributed.
    #[default]
    Eligible,
    /// The first release as in the other mode. In every later one each new row draws its signature by the shares of the first release:
    /// no batch is ineligible, but the bound is for a reader to whom values are drawn independently by these shares.
    Drawn,
}

impl Assignment {
    pub(super) fn is_eligible(&self) -> bool {
        *self == Self::Eligible
    }
}

/// The steps of the first release, and those for values that it has not seen.
#[derive(Debug)]
pub(super) struct Reference {
    steps: Vec<Step>,
    /// Steps that each value can draw, with the rows of these and all before.
    of_value: Vec<Vec<(usize, u32)>>,
}

impl Reference {
    /// Reads the people of the first release, and the domain if one was declared.
    ///
    /// # Errors
    /// When the first release is not there as a whole, or was not made with this mode in mind, and when later ones were not.
    pub(super) fn of(microdata: &Microdata, known: &Signatures, m: usize) -> Result<Self> {
        let first = known.first();
        if first.len() != known.all().len() {
            return Err(Error::internal("the first release of signatures without numbers of releases"));
        }
        let uneven = known.all().iter().zip(first).filter(|(signature, people)| **people % signature.len().max(1) > 0);
        let uneven = uneven.count();
        if uneven > 0 {
            return Err(Error::refused(format!(
                "the people of the first release in `previous` cannot be equally many for each value of {} of their {} signatures: it is \
                 not all of the first release, or that was not made with assignment => 'drawn'; pass the private releases unchanged, \
                 each with its own number in column release",
                thousands(uneven),
                thousands(first.iter().filter(|people| **people > 0).count()),
            )));
        }
        let steps: Vec<Step> = (known.all().iter().zip(first))
            .map(|(signature, people)| Step { signature: signature.clone(), rows: people / signature.len().max(1) })
            .filter(|step| step.rows > 0)
            .collect();
        let mut reference = Self { steps, of_value: vec![Vec::new(); microdata.sensitive()?.domain.len()] };
        let counts = reference.counts();
        let declared = microdata.updates.iter().flat_map(|domain| &domain.pairs).map(|&(value, _)| value);
        let mut unseen: Vec<u32> = declared.filter(|&value| counts[value as usize] == 0).collect();
        unseen.dedup();
        let foreign = known.all().iter().zip(first).filter(|(signature, people)| {
            **people == 0 && !signature.iter().any(|value| unseen.binary_search(value).is_ok())
        });
        let foreign = foreign.count();
        if foreign > 0 {
            return Err(Error::refused(format!(
                "{} signatures in `previous` are not those of the first release, nor of values that only the domain has: a later release \
                 was made with assignment => 'eligible', or with another domain. Whoever compares the two can infer more than 1/m, so \
                 the mode of the second release and the domain hold for all that follow",
                thousands(foreign)
            )));
        }
        reference.steps.extend(steps_of_unseen(&unseen, &counts, m));
        for (number, step) in reference.steps.iter().enumerate() {
            for &value in &step.signature {
                let choices = &mut reference.of_value[value as usize];
                let before = choices.last().map_or(0, |&(rows, _)| rows);
                choices.push((before + step.rows, number as u32));
            }
        }
        Ok(reference)
    }

    /// Counts the people of each value that it stands for.
    fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.of_value.len()];
        for step in &self.steps {
            step.signature.iter().for_each(|&value| counts[value as usize] += step.rows);
        }
        counts
    }

    /// Returns the signatures that it has.
    pub(super) fn signatures(&self) -> FxHashSet<&[u32]> {
        self.steps.iter().map(|step| &*step.signature).collect()
    }

    /// Puts every new row under a signature that is drawn for it alone. Buckets become as high as their most frequent value, old rows and
    /// new ones together.
    ///
    /// # Errors
    /// When a new row has a value that no signature has.
    pub(super) fn assign(&self, division: &mut Division, microdata: &Microdata, lots: &mut impl Lots) -> Result<()> {
        let lost = |value: &u32| self.of_value[*value as usize].is_empty();
        let new = (0..microdata.rows).filter(|&row| division.bucket_of[row] == NOWHERE);
        let mut lost: Vec<u32> = new.map(|row| microdata.sensitive_codes.at(row as u32)).filter(lost).collect();
        if !lost.is_empty() {
            let rows = lost.len();
            lost.sort_unstable();
            lost.dedup();
            return Err(Error::refused(format!(
                "the first release has no signature for {} of the values of {}, which {} of the new rows have; with assignment => 'drawn' \
                 every value must be in the first release or in the domain that is declared with it: begin with domain => .., a \
                 table of all values that can ever come, or publish these rows under values that are there",
                thousands(lost.len()),
                microdata.sensitive()?.field.name(),
                thousands(rows),
            )));
        }
        let mut buckets = vec![NOWHERE; self.steps.len()];
        // In the order of rows, so that the order of buckets tells nothing of values.
        for (row, value) in microdata.sensitive_codes.iter().enumerate() {
            if division.bucket_of[row] != NOWHERE {
                continue;
            }
            let choices = &self.of_value[value as usize];
            let all = choices.last().map_or(0, |&(rows, _)| rows);
            let drawn = lots.below(all);
            let (_, step) = choices[choices.partition_point(|&(rows, _)| rows <= drawn)];
            let bucket = &mut buckets[step as usize];
            if *bucket == NOWHERE {
                *bucket = division.bucket(&self.steps[step as usize].signature);
            }
            division.bucket_of[row] = *bucket;
        }
        division.measure(microdata)
    }
}

/// Steps of one person of each of these values. Those that are too few to be a signature are beside the most frequent others, whose shares
/// change least by one person more.
fn steps_of_unseen(unseen: &[u32], counts: &[usize], m: usize) -> Vec<Step> {
    let step = |values: &[u32]| {
        let mut signature = values.to_vec();
        signature.sort_unstable();
        Step { signature: signature.into(), rows: 1 }
    };
    if unseen.is_empty() {
        return Vec::new();
    }
    if unseen.len() < m {
        let mut frequent: Vec<u32> = (0..counts.len() as u32).filter(|&value| counts[value as usize] > 0).collect();
        frequent.sort_by_key(|&value| (Reverse(counts[value as usize]), value));
        frequent.truncate(m - unseen.len());
        return vec![step(&[unseen, &frequent].concat())];
    }
    let steps = unseen.len() / m;
    // Sizes differ by one at most.
    (0..steps).map(|place| step(&unseen[place * unseen.len() / steps..(place + 1) * unseen.len() / steps])).collect()
}
