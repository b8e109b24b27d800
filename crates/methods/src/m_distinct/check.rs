//! The last look at a release before a row leaves: does it keep what m-Distinct promises? Nothing is taken from the phases but
//! how many rows they left out on purpose; buckets and entries are not looked at. What counts is the order in which the
//! groups leave: it is that of labels, as the ledger will have it.

use super::relation::Relation;
use crate::error::Result;
use crate::every_row::{Known, check_every_row};
use crate::microdata::Microdata;
use crate::of_group::OfGroup;
use crate::release::{COUNTERFEIT, Groups, Intervals};
use crate::state::Signatures;

pub(super) struct Promise<'a> {
    pub microdata: &'a Microdata,
    pub known: &'a Signatures,
    pub relation: &'a Relation,
    pub m: usize,
    /// True if m-Distinct\* was promised.
    pub disjoint: bool,
}

impl Promise<'_> {
    pub(super) fn check(&self, groups: &Groups, intervals: &Intervals, withheld: usize) -> Result<()> {
        check_every_row(self.microdata, groups, intervals, self.known, withheld, |of_group, known| {
            self.broken_by(of_group, known)
        })
    }

    /// Returns the fault of a group, if it has one.
    fn broken_by(&self, of_group: &OfGroup<'_>, known: &Known<'_>) -> Option<&'static str> {
        let &OfGroup { members, published: values, intervals, .. } = of_group;
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        if values.len() < self.m || !sorted.windows(2).all(|pair| pair[0] < pair[1]) {
            return Some("a group without m different sensitive values");
        }
        let (mut legal_for, mut newcomers) = (None, false);
        let members = members.iter().zip(values).enumerate();
        for (place, (_, &value)) in members.filter(|(_, (row, _))| **row != COUNTERFEIT) {
            if of_group.sensitive(place) != value {
                return Some("a row with another's sensitive value");
            }
            match known.signatures[place] {
                None => newcomers = true,
                Some(_) if known.labels[place] != Some(place as u32) => {
                    return Some("a row that is not in the place of its label");
                }
                // Members of a group often come from groups with the same values.
                signature if signature == legal_for => {}
                Some(signature) => {
                    if !self.is_legal_update(&self.known.all()[signature as usize], values) {
                        return Some("a group that is no legal update of a member's most recent one");
                    }
                    legal_for = Some(signature);
                }
            }
            if !of_group.covers(place) {
                return Some("an interval that does not cover its row");
            }
        }
        if self.disjoint && newcomers && !self.is_disjoint(values) {
            return Some("a first group whose values can become alike");
        }
        (!self.microdata.can_publish(intervals)).then_some("an interval that is not a value of the hierarchy")
    }

    /// Returns true if each of `before` can have become `values` at its place.
    fn is_legal_update(&self, before: &[u32], values: &[u32]) -> bool {
        let can = |(&before, value): (&u32, &u32)| self.relation.candidates(before).binary_search(value).is_ok();
        before.len() == values.len() && before.iter().zip(values).all(can)
    }

    fn is_disjoint(&self, values: &[u32]) -> bool {
        let mut all: Vec<u32> = values.iter().flat_map(|&value| self.relation.candidates(value)).copied().collect();
        let total = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() == total
    }
}
