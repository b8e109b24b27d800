//! The last look at an exact release before a row leaves. Buckets are not looked at: what counts is who is in a group with whom, in the order of labels.

use super::exact::{Drawn, steps_of};
use super::law::Laws;
use crate::error::Result;
use crate::every_row::{Known, check_every_row};
use crate::microdata::Microdata;
use crate::of_group::OfGroup;
use crate::release::COUNTERFEIT;
use crate::state::Signatures;

pub(super) struct ExactPromise<'a> {
    pub microdata: &'a Microdata,
    pub known: &'a Signatures,
    pub m: usize,
}

impl ExactPromise<'_> {
    pub(super) fn check(&self, drawn: &Drawn) -> Result<()> {
        let broken_by = |of_group: &OfGroup<'_>, _: &Known<'_>| self.broken_by(drawn, of_group);
        check_every_row(self.microdata, &drawn.groups, &drawn.intervals, self.known, 0, broken_by)
    }

    /// Returns the fault of a group, if it has one.
    fn broken_by(&self, drawn: &Drawn, of_group: &OfGroup<'_>) -> Option<&'static str> {
        let &OfGroup { members, published: values, intervals, .. } = of_group;
        let component = |value: &u32| drawn.component_of[*value as usize];
        let mut components: Vec<u32> = values.iter().map(component).collect();
        // The order of a group that returns is that of its first release, in which values may have been ordered otherwise.
        components.sort_unstable();
        if values.len() < self.m || components.windows(2).any(|pair| pair[0] == pair[1]) {
            return Some("a group without values of m components");
        }
        let (mut kind, mut newcomers) = (None, 0);
        for (place, (&row, &value)) in
            members.iter().zip(values).enumerate().filter(|(_, (row, _))| **row != COUNTERFEIT)
        {
            let at = row as usize;
            if of_group.sensitive(place) != value {
                return Some("a row with another's sensitive value");
            }
            if !of_group.covers(place) {
                return Some("an interval that does not cover its row");
            }
            let Some(signature) = self.known.of(at) else {
                newcomers += 1;
                continue;
            };
            if self.known.label_of(at) != Some(place as u32) {
                return Some("a row that is not in the place of its label");
            }
            let laws = steps_of(self.known, at).ok().and_then(|steps| laws_of(&drawn.laws, signature, steps));
            let Some(laws) = laws else { return Some("a row without a law") };
            if *kind.get_or_insert_with(|| laws.clone()) != laws {
                return Some("two rows whose places go on by other laws");
            }
        }
        let whole = newcomers == members.len();
        match kind {
            Some(_) if newcomers > 0 => Some("a new row in a group of returning ones"),
            None if !whole => Some("a counterfeit beside new rows"),
            Some(laws) if laws.len() != values.len() => Some("a group of another size than its members' last one"),
            Some(laws) if laws.iter().zip(values).any(|(&law, &value)| !drawn.laws.law(law).has(value)) => {
                Some("a value that cannot have followed")
            }
            _ if !self.microdata.can_publish(intervals) => Some("an interval that is not a value of the hierarchy"),
            _ => None,
        }
    }
}

/// Returns the laws of the places of a group published so many releases ago.
fn laws_of(laws: &Laws, signature: &[u32], steps: u32) -> Option<Vec<u32>> {
    signature.iter().map(|&value| laws.asked(value, steps)).collect()
}
