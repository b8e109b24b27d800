//! Sequential l-diversity: the same people, released again and again with other columns.
//!
//! # Guarantee
//! For everybody there are `l` *worlds*: the true table, and `l - 1` in which people have their own quasi-identifiers, but what is
//! sensitive, and what travels with it, of somebody near; over the worlds, everybody has `l` different sensitive values. Every release,
//! whatever its columns, is consistent with all of them: in each world there is a one-to-one assignment of people to released rows in which
//! every row has the values of its person there, quasi-identifiers generalized. So not even a reader who knows everybody's
//! quasi-identifiers and has all releases links somebody to a sensitive value with a probability above `1/l` (Theorem 4.1), **provided the
//! worlds are equally likely to that reader**. Where values are equally frequent, the worlds are drawn so that they nearly are: orders,
//! starts, directions and ties of cycles are random. The greedy order of rows ([`Order::Greedy`]) leaves a reader who knows this code, and
//! all quasi-identifiers, a small advantage; [`Order::Random`] nearly removes it, at a higher loss.
//!
//! Values that travel (sensitive, or declared as other) must not change between releases, for the worlds would contradict earlier releases;
//! changed ones are refused. Quasi-identifiers may. New people get worlds among themselves. People who leave take a row away, and with
//! them the worlds in which others carried their values (*critical absence*): a reader who knows who left learns that the others did not
//! carry the value that is gone. So that is refused unless it is allowed, and then whoever carried a value that is gone carries the next
//! one along the permutation, which may be one that they have in another world already. The paper leaves this unsolved.
//!
//! # Method
//! E. Shmueli and T. Tassa, *Privacy by Diversity in Sequential Releases of Databases*, Information Sciences 2015. Algorithm 1 is
//! `ordering` (buckets by Mondrian, a cycle in each), `cycle` (Lemma 8.1), `permutations` (drawn at random) and `worlds`; Algorithm 2 is
//! `parts` and `matching`; `baseline` is what the paper compares with. Ours differ in how a matching is cut into parts: the paper clusters
//! the released side and gives each cluster in turn the closest rows of the world, which costs time quadratic in the size of a class and
//! leaves the last cluster with what nobody wanted; here both sides are cut alike. And a row may keep who carries its own values in a
//! world, whom the baseline would give it, where that loses less.
//!
//! # Cost
//! O(n log n) for worlds. O(l n (log n + p^2)) at worst for a release, whichever it is (Theorem 4.4). Parallel over buckets and parts.

mod baseline;
mod check;
mod cycle;
mod matching;
mod measure;
mod ordering;
mod parts;
mod permutations;
mod worlds;

#[cfg(test)]
mod tests;

use rand::Rng;
use serde::{Deserialize, Serialize};

pub use self::baseline::NonSequential;
pub use self::measure::Loss;
pub use self::ordering::Order;
pub use self::worlds::Worlds;

use self::matching::Matching;
use self::measure::Measure;
use super::Monitor;
use super::mondrian::Cuts;
use crate::error::{Error, Result, thousands};
use crate::microdata::{Ledger, Microdata};
use crate::release::{self, Groups, Release};

/// Most rows that are matched at a time, if nothing else is said: the paper's sweet spot.
pub const PART: usize = 100;
/// Matching takes time quadratic in the rows of a part, at least.
pub const MOST_PART: usize = 1000;

/// A release of people whose worlds are known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SequentialRelease {
    /// Most rows that are matched at a time, up to [`MOST_PART`].
    pub p: usize,
    /// The loss to minimize.
    #[serde(default)]
    pub loss: Loss,
    /// Whether people with worlds may be missing.
    #[serde(default)]
    pub allow_removals: bool,
}

/// Worlds for new people, and a release of everybody: what a publication is made with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sequential {
    /// Number of worlds, the true one included.
    pub l: usize,
    /// Most rows that are matched at a time, up to [`MOST_PART`].
    pub p: usize,
    /// The loss to minimize.
    #[serde(default)]
    pub loss: Loss,
    /// How rows are put into cycles.
    #[serde(default)]
    pub order: Order,
    /// How new people are cut into buckets.
    #[serde(default)]
    pub cuts: Cuts,
    /// Whether people of earlier releases may be missing.
    #[serde(default)]
    pub allow_removals: bool,
}

impl SequentialRelease {
    /// Bytes needed beside the microdata: for each row its box, its class and its person in each world; and the losses of the parts that are
    /// matched at a time. `worlds` is how many there are.
    pub fn working_bytes(&self, rows: usize, quasi: usize, worlds: usize) -> usize {
        let at_a_time = self.p.min(rows).pow(2) * 2 * size_of::<f64>() * rayon::current_num_threads();
        rows * (8 * quasi + 8 * worlds + 56) + at_a_time
    }

    /// Anonymizes a table of people whose worlds the ledger has.
    ///
    /// # Errors
    /// [`Error::Refused`] when somebody has no worlds, when a value that travels has changed, and when people are missing although they may
    /// not.
    pub fn anonymize(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        let partners = ledger.partners();
        let of_row = |row| partners.of(row).unwrap_or_default();
        let new = (0..microdata.rows as u32).filter(|&row| of_row(row).is_empty()).count();
        if new > 0 {
            return Err(Error::refused(format!(
                "{} of {} rows are of people without worlds; make some with sequential_worlds(.., worlds => ..), and add them to \
                 what there is",
                thousands(new),
                thousands(microdata.rows)
            )));
        }
        let all: Vec<u32> = (0..microdata.rows as u32).flat_map(of_row).copied().collect();
        let worlds = release::Worlds { partners: all, width: partners.width(), ..release::Worlds::default() };
        monitor.charge(worlds.partners.len() * (4 + 8))?;
        self.release(microdata, ledger, worlds, monitor, rng)
    }

    /// # Errors
    /// When values that travel have changed, or people are missing.
    fn check_ledger(&self, ledger: &Ledger) -> Result<()> {
        let partners = ledger.partners();
        if partners.changed > 0 {
            return Err(Error::refused(format!(
                "{} people have other values in the sensitive column, or in one that travels with it, than when their worlds were made or \
                 in an earlier release; they cannot change, because the worlds would contradict earlier releases: pass the values as \
                 they were, or leave the column out",
                thousands(partners.changed)
            )));
        }
        if partners.missing > 0 && !self.allow_removals {
            return Err(Error::refused(format!(
                "{} people who have worlds are missing; a reader who knows who left could reason from what left with them. Pass all \
                 rows, or allow_removals, which gives that protection up",
                thousands(partners.missing)
            )));
        }
        Ok(())
    }

    fn release(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        worlds: release::Worlds,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        self.check_ledger(ledger)?;
        if microdata.quasi.is_empty() {
            return Err(Error::refused("there is no quasi-identifier in the table; a release needs one"));
        }
        if microdata.rows == 0 {
            let groups = Groups { starts: vec![0], worlds, ..Groups::default() };
            return Ok(Release { microdata, groups, withheld: 0 });
        }
        let measure = Measure::new(self.loss, &microdata);
        let (partners, width) = (&worlds.partners, worlds.width);
        let matching = Matching { microdata: &microdata, partners, width, measure: &measure, p: self.p, monitor };
        let matched = monitor.phase("matching", || matching.release(rng))?;
        // Who stands in for people who left may carry a value twice.
        let diverse = ledger.partners().missing == 0;
        monitor.phase("check", || check::check(&microdata, partners, width, &matched, diverse))?;
        let members = matched.people.into_iter().next().unwrap_or_default();
        let sensitive = match microdata.sensitive {
            Some(_) => members.iter().map(|&row| microdata.sensitive_codes[row as usize]).collect(),
            None => Vec::new(),
        };
        let starts = (0..=members.len() as u32).collect();
        let groups = Groups { starts, members, sensitive, intervals: matched.boxes, worlds, ..Groups::default() };
        Ok(Release { microdata, groups, withheld: 0 })
    }
}

impl Sequential {
    fn worlds(&self) -> Worlds {
        Worlds { l: self.l, loss: self.loss, order: self.order, cuts: self.cuts }
    }

    fn of_release(&self) -> SequentialRelease {
        SequentialRelease { p: self.p, loss: self.loss, allow_removals: self.allow_removals }
    }

    /// Bytes needed beside the microdata.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        self.worlds().working_bytes(rows, quasi).max(self.of_release().working_bytes(rows, quasi, self.l))
            + rows * (4 * self.l + 8)
    }

    /// Makes worlds for new people, and a release of everybody.
    ///
    /// # Errors
    /// Those of [`Worlds`] and [`SequentialRelease`].
    pub fn anonymize(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        let release = self.of_release();
        release.check_ledger(ledger)?;
        let worlds = self.worlds().extend(&microdata, ledger, monitor, rng)?;
        release.release(microdata, ledger, worlds, monitor, rng)
    }
}
