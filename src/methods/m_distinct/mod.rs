//! m-Distinct: re-publication when rows come and go and values change.
//!
//! # Guarantee
//! The publisher declares which sensitive values can become which; `CUS(a)`, the *candidate update set* of a value, is what it
//! can become. Every group holds each sensitive value at most once and at least `m` of them (*m-unique*). Whoever returns meets
//! a group whose values are a *legal update* of those of the group that they were in most recently: a one-to-one map takes
//! each value of that group to one of this group in its candidate update set. In everybody's update graph no candidate is
//! then ever ruled out: at each release at least `m` values stay possible (the paper's Lemma 3), even for a reader who knows
//! everyone's quasi-identifiers, the days on which each record was present, and the update relation.
//!
//! *Possible* is not *equally likely*: with classes {x1, x2}, {y1, y2} and groups of two values of the first and one of the
//! second, there are ever more ways through the first, and the probability of each of its values tends to 1/2. **m-Distinct\*** ([`disjoint`](MDistinct::disjoint)) in addition begins with
//! groups whose candidate update sets have nothing in common, which gives `m` parallel paths. They weigh the same, so that
//! nobody's value is likelier than `1/m`, if the reader knows only which updates are possible, or if all
//! candidate update sets are classes of one size with equal probabilities. Otherwise they do not: `a` that never changes beside `b`
//! that can become any of ten has probability 10/11 after one re-publication.
//!
//! # Method
//! F. Li and S. Zhou, *Challenging More Updates: Towards Anonymous Re-publication of Fully Dynamic Datasets*, 2008; its
//! Definition 14 in the strict form, one to one, because the paper's form (cover in both directions) lets a reader who combines
//! the members of a group become certain. Phases of its Section V and files of this module:
//!
//! | phase | file | against the paper |
//! |---|---|---|
//! | relation | `relation` | closed or checked for transitivity |
//! | buckets | `bucket`, `intersect` | intersections have distinct representatives; pairs are bounded |
//! | assignment of returning rows | `spread`, `relocate` | the least height instead of a greedy one; counts only |
//! | of new rows | `newcomers` | into gaps only, the rest by m-invariance's assignment |
//! | split | `decompose` | polynomial |
//! | counterfeits | `complete`, `representatives` | random, never a value twice |
//! | | `check` | |
//!
//! The paper's score for putting a row into a bucket also looks at how much the bucket's box grows. Ours does not: a choice
//! that depends on where the rows of a value lie tells who has it (see `methods::deal`). Boxes are kept small by
//! the split alone, as in m-invariance.
//!
//! # Limits
//! The ledger knows everybody's group, not their own value in it. So a change that the relation does not allow is refused
//! only if the new value follows from no value of the group; else it is published, and is safe, because the
//! candidates are as many as without it. What [`Balance`] and [`OnIneligible`] say about readers who know this code holds
//! here as well; [`Balance::Blind`] also leaves returning rows in their own buckets.
//!
//! # Cost
//! O(n log n) in rows for the split; the phases before work on counts.

mod bucket;
mod check;
mod complete;
mod decompose;
mod intersect;
mod newcomers;
mod relation;
mod relocate;
mod representatives;
mod spread;

#[cfg(test)]
mod attack;
#[cfg(test)]
mod greedy;
#[cfg(test)]
mod tests;

use rand::Rng;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use self::bucket::Buckets;
use self::check::Promise;
use self::newcomers::{NOWHERE, Places};
use self::relation::Relation;
use super::Monitor;
use super::balance::Policy;
pub use super::balance::{Balance, OnIneligible};
use super::split::{self, Lists};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Ledger, Microdata};
use crate::release::Release;

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MDistinct {
    /// Least number of sensitive values in a group, at least 2.
    pub m: usize,
    /// Whether first groups have candidate update sets with nothing in common (m-Distinct\*).
    #[serde(default)]
    pub disjoint: bool,
    /// Whether pairs that the update relation lacks to be transitive are added; else they are refused.
    #[serde(default)]
    pub close_updates: bool,
    /// How returning rows' buckets are balanced.
    #[serde(default)]
    pub balance: Balance,
    /// What to do with new rows that are not m-eligible.
    #[serde(default)]
    pub on_ineligible: OnIneligible,
}

impl MDistinct {
    /// The method with its defaults.
    pub fn new(m: usize) -> Self {
        Self {
            m,
            disjoint: false,
            close_updates: false,
            balance: Balance::default(),
            on_ineligible: OnIneligible::default(),
        }
    }

    /// Bytes the method needs beside the microdata itself: for each row its places in lists and, in a bucket and in what
    /// halves of it are sorted in, its positions; for each member of the release its row, its value, its group and its share
    /// of the intervals. Counterfeits are charged to the monitor once their number is known.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        rows * (28 + 2 * split::item_bytes(quasi)) + self.member_bytes(rows, quasi)
    }

    fn member_bytes(&self, members: usize, quasi: usize) -> usize {
        members.saturating_mul(20 + 8 * quasi / self.m.max(1))
    }

    /// Anonymizes a snapshot so that it is safe beside all earlier releases. The ledger must know everybody's *most recent*
    /// group; the microdata have the update relation (without one, no value can change).
    ///
    /// # Errors
    /// [`Error::Refused`] when the relation is not transitive, when a returning row's sensitive value cannot have followed
    /// from those of its group, when a signature of the ledger has fewer than `m` values, when there are fewer than `m`
    /// sensitive values (or components of them), and when the new rows are not m-eligible after balancing and `on_ineligible`
    /// is to refuse.
    pub fn anonymize(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        self.policy().check_ledger(ledger)?;
        let values = microdata.sensitive()?.domain.len();
        let mut relation =
            monitor.phase("relation", || Relation::new(microdata.updates.as_deref(), values, self.close_updates))?;
        let (mut buckets, mut places) =
            (Buckets::default(), Places { bucket: vec![NOWHERE; microdata.rows], entry: vec![0; microdata.rows] });
        let new = monitor.phase("division", || {
            self.place_returning(&microdata, ledger, &mut relation, &mut buckets, &mut places, monitor)
        })?;
        let withheld = monitor.phase("assignment", || {
            let how = (self.policy(), self.disjoint);
            newcomers::settle(&microdata, &mut buckets, &mut relation, &mut places, new, how, rng)
        })?;
        let gaps = buckets.list.iter().map(bucket::Bucket::gaps).sum();
        monitor.charge(self.member_bytes(gaps, microdata.quasi.len()))?;
        let groups = monitor.phase("split", || {
            let heights: Vec<usize> = buckets.list.iter().map(bucket::Bucket::height).collect();
            let lists = lists(&buckets, &places)?;
            let members = split::split(&microdata, &lists, &heights, rng.random(), &decompose::Decompose, monitor)?;
            drop(lists);
            let mut groups = complete::complete(&microdata, &relation, &buckets.list, &members, monitor, rng)?;
            Release::cover(&microdata, &mut groups)?;
            Ok(groups)
        })?;
        let promise =
            Promise { microdata: &microdata, ledger, relation: &relation, m: self.m, disjoint: self.disjoint };
        monitor.phase("check", || promise.check(&groups, withheld))?;
        Ok(Release { withheld, groups, microdata })
    }

    fn policy(&self) -> Policy {
        Policy { m: self.m, balance: self.balance, on_ineligible: self.on_ineligible }
    }

    /// Returning rows into buckets; returns the new ones by value, which stand in random order.
    fn place_returning(
        &self,
        microdata: &Microdata,
        ledger: &Ledger,
        relation: &mut Relation,
        buckets: &mut Buckets,
        places: &mut Places,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<u32>>> {
        const NONE: u32 = u32::MAX;
        let mut new = vec![Vec::new(); relation.values()];
        let mut kind_of_signature = vec![NONE; ledger.signatures().len()];
        let mut rows_of: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
        for (row, &value) in microdata.sensitive_codes.iter().enumerate() {
            let Some(signature) = ledger.signature_of(row) else {
                new[value as usize].push(row as u32);
                continue;
            };
            let kind = &mut kind_of_signature[signature as usize];
            if *kind == NONE {
                let entries = relation.signature(&ledger.signatures()[signature as usize]);
                *kind = buckets.number(entries, relation) as u32;
            }
            rows_of.entry((*kind, value)).or_default().push(row as u32);
        }
        let mut counts: Vec<(u32, u32, usize)> =
            rows_of.iter().map(|(&(kind, value), rows)| (kind, value, rows.len())).collect();
        counts.sort_unstable();
        let mut illegal = 0;
        for of_kind in counts.chunk_by(|a, b| a.0 == b.0) {
            let kind = of_kind[0].0;
            let counts: Vec<(u32, usize)> = of_kind.iter().map(|&(_, value, rows)| (value, rows)).collect();
            illegal += spread::spread(&mut buckets.list[kind as usize], relation, kind, &counts);
        }
        if illegal > 0 {
            return Err(Error::refused(format!(
                "the sensitive value of {} returning rows cannot have followed from any of the values that they were published \
                 with; add what can happen to `updates`, or correct these rows",
                thousands(illegal)
            )));
        }
        if self.balance == Balance::Minimal {
            let (shared, skipped) = intersect::intersections(buckets, relation);
            monitor.count("skipped_intersections", skipped);
            relocate::relocate(buckets, &shared, relation);
        }
        // Rows of a kind and value are alike so far, and in random order.
        for (number, bucket) in buckets.list.iter().enumerate() {
            for (cell, &rows) in &bucket.cells {
                let Some(stock) = rows_of.get_mut(&(cell.kind, cell.value)).filter(|stock| stock.len() >= rows) else {
                    return Err(Error::internal("more rows in buckets than there are"));
                };
                stock.drain(stock.len() - rows..).for_each(|row| places.put(row, number, cell.entry));
            }
        }
        Ok(new)
    }
}

/// The rows of all buckets, one list per entry.
fn lists(buckets: &Buckets, places: &Places) -> Result<Lists> {
    let mut starts = vec![0];
    for bucket in &buckets.list {
        starts.push(starts[starts.len() - 1] + bucket.entries.len());
    }
    Lists::new(starts.clone(), |put| {
        for (row, (&bucket, &entry)) in places.bucket.iter().zip(&places.entry).enumerate() {
            if bucket != NOWHERE {
                put(row as u32, starts[bucket as usize] + entry as usize);
            }
        }
    })
}
