//! m-Invariance: re-publication when rows come and go.
//!
//! # Guarantee
//! Every group holds each sensitive value at most once and at least `m` of them (*m-unique*), and all groups that ever
//! hosted an identifier have the same set of sensitive values, its *signature* (*m-invariant*). Nobody's value can then be
//! inferred with probability above `1/m` (Lemma 3), even by a reader who knows everyone's quasi-identifiers and the days
//! on which each record was present. That reader knows the principle, not our code: see [`Balance`] for the difference.
//!
//! # Method
//! X. Xiao and Y. Tao, *m-Invariance: Towards Privacy Preserving Re-publication of Dynamic Datasets*, SIGMOD 2007. The four
//! phases of its Section 4 are the files of this module: `division`, `balance`, `choose` (with the counts of
//! `methods::assignment`), `split`. Ours
//! differ in that the number of counterfeits is minimal for the given signatures, that counterfeits have no extent, and
//! that the ledger remembers everybody ever published, so that people who come back are safe.
//!
//! # Cost
//! O(n log n) in rows and quadratic in the number of quasi-identifiers; parallel over buckets and inside large ones.

mod balance;
mod check;
mod choose;
mod division;
mod split;

#[cfg(test)]
mod attack;
#[cfg(test)]
mod tests;

use rand::Rng;
use serde::{Deserialize, Serialize};

use self::balance::Moves;
use self::division::Division;
use super::{Monitor, assignment};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Ledger, Microdata};
use crate::release::{Groups, Release};

/// How buckets of returning rows are balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// With new rows where they are to spare, else with counterfeits: as few counterfeits as possible, the paper's aim. A
    /// reader who knows that new rows are spent first can reason from what was *not* filled with one: a counterfeit
    /// beside a person hints at which value was missing, sometimes with certainty.
    #[default]
    Minimal,
    /// With counterfeits only, without a look at the new rows. Closes that channel at the price of more counterfeits.
    Blind,
}

/// What to do when the new rows are not m-eligible: their most frequent value makes up more than `1/m` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnIneligible {
    /// Publish nothing and say by how much.
    #[default]
    Refuse,
    /// Add counterfeits of other values. A reader who knows this code can tell that a real row beside such padding
    /// carries the over-represented value.
    Counterfeit,
    /// Leave the surplus rows out; they stay new for the next release. They all carry the over-represented value, so a
    /// reader who knows who was present and finds somebody uncovered learns much: outside the guarantee.
    Withhold,
}

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MInvariance {
    /// Least number of sensitive values in a group, at least 2.
    pub m: usize,
    /// How returning rows' buckets are balanced.
    #[serde(default)]
    pub balance: Balance,
    /// What to do with new rows that are not m-eligible.
    #[serde(default)]
    pub on_ineligible: OnIneligible,
}

impl MInvariance {
    /// The method with its defaults.
    pub fn new(m: usize) -> Self {
        Self { m, balance: Balance::default(), on_ineligible: OnIneligible::default() }
    }

    /// Bytes the method needs beside the microdata itself: for each row its places in lists and, in a bucket, its
    /// positions; for each member of the release its row, its value, its group and its share of the intervals.
    /// Counterfeits are charged to the monitor once their number is known.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        rows * (16 + split::item_bytes(quasi)) + self.member_bytes(rows, quasi)
    }

    fn member_bytes(&self, members: usize, quasi: usize) -> usize {
        members.saturating_mul(16 + 8 * quasi / self.m.max(1))
    }

    /// Anonymizes a snapshot so that it is safe beside all earlier releases in the ledger.
    ///
    /// # Errors
    /// [`Error::Refused`] when a returning row's sensitive value is not in its signature (an internal update), when a
    /// signature of the ledger has fewer than `m` values, when there are fewer than `m` sensitive values, and when the
    /// new rows are not m-eligible after balancing and `on_ineligible` is to refuse.
    pub fn anonymize(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        self.check_ledger(ledger)?;
        let mut division = monitor.phase("division", || Division::new(&microdata, ledger))?;
        let moves = monitor.phase("balancing", || {
            let moves = self.moves(&microdata, &division, rng)?;
            division.balance(&moves, rng);
            Ok(moves)
        })?;
        let counterfeits = division.needs_left(&moves) + moves.padding.iter().sum::<usize>();
        monitor.charge(self.member_bytes(counterfeits, microdata.quasi.len()))?;
        monitor.phase("assignment", || {
            let steps = assignment::steps(&division.new_counts(&moves), self.m, rng)?;
            choose::assign(&mut division, &steps, &moves.padding, rng);
            Ok(())
        })?;
        let groups = monitor.phase("split", || {
            let mut groups = split::split(&microdata, &division, rng.random(), monitor)?;
            Release::cover(&microdata, &mut groups)?;
            Ok(groups)
        })?;
        monitor.phase("check", || check::check(&microdata, ledger, &groups, self.m, moves.withheld.iter().sum()))?;
        Ok(Release { withheld: moves.withheld.iter().sum(), groups, microdata })
    }

    fn check_ledger(&self, ledger: &Ledger) -> Result<()> {
        let short = ledger.signatures().iter().filter(|signature| signature.len() < self.m).count();
        if short == 0 {
            return Ok(());
        }
        let most = ledger.signatures().iter().map(|signature| signature.len()).min().unwrap_or(0);
        Err(Error::refused(format!(
            "m = {} is more than the earlier releases were made with: {} of the {} signatures in `previous` have fewer \
             values; the largest m that they allow is {most}",
            self.m,
            thousands(short),
            thousands(ledger.signatures().len()),
        )))
    }

    /// How many new rows of each value balance old buckets, are padded or are withheld.
    fn moves(&self, microdata: &Microdata, division: &Division, rng: &mut impl Rng) -> Result<Moves> {
        let new = division.new_values();
        let need = division.needs();
        let moves = balance::moves(&new, &need, self, rng);
        let sensitive = microdata.sensitive()?;
        moves.ok_or_else(|| {
            let total: usize = new.iter().sum();
            let distinct = new.iter().filter(|&&count| count > 0).count();
            let values = sensitive.domain.len();
            if values < self.m {
                return Error::refused(format!(
                    "m = {} but the sensitive column {} has only {values} distinct values; every group needs m different \
                     ones, so m can be at most {values}",
                    self.m,
                    sensitive.field.name()
                ));
            }
            let most = new.iter().max().copied().unwrap_or(0);
            let few = if distinct < self.m { format!(" (they have only {distinct} different values)") } else { String::new() };
            let instead = match total / most.max(1) {
                0 | 1 => String::new(),
                m => format!("lower m (m = {m} would do), "),
            };
            Error::refused(format!(
                "the {} new rows are not {}-eligible: the most frequent value of {} makes up {:.2}% of them and at most \
                 1/m = {:.2}% is allowed, {} rows too many{few}; {instead}add rows of other values, or set on_ineligible \
                 to 'counterfeit' or 'withhold'",
                thousands(total),
                self.m,
                sensitive.field.name(),
                100.0 * most as f64 / total as f64,
                100.0 / self.m as f64,
                thousands(most - total / self.m),
            ))
        })
    }
}

/// Groups before their intervals are known.
fn groups_of(starts: Vec<u32>, members: Vec<u32>, sensitive: Vec<u32>) -> Groups {
    Groups { starts, members, sensitive, ..Groups::default() }
}
