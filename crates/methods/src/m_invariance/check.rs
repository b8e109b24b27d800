//! The last look at a release before a row leaves: does it keep what m-invariance promises? Linear time, and nothing is
//! taken from the phases but how many rows they left out on purpose.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::close::stay_together;
use crate::error::{Error, Result};
use crate::every_row::{Known, check_every_row};
use crate::microdata::Microdata;
use crate::of_group::OfGroup;
use crate::release::{COUNTERFEIT, Groups, Intervals};
use crate::secrets::Secrets;
use crate::state::Signatures;

/// Promise to check against.
pub(super) struct Promise<'a> {
    pub microdata: &'a Microdata,
    pub known: &'a Signatures,
    pub m: usize,
    /// Columns that are hidden each by itself, if they are several.
    pub secrets: Option<Secrets>,
    /// The signatures that new rows can have, where they draw them.
    pub drawn: Option<FxHashSet<&'a [u32]>>,
    /// Numbers of new rings or regions.
    pub new: Range<i64>,
    /// True if numbers are of regions, which have several groups.
    pub regions: bool,
    /// True if new people must be balanced: under a signature of a region, equally many of each value.
    pub balanced: bool,
}

impl Promise<'_> {
    pub(super) fn check(&self, groups: &Groups, intervals: &Intervals, withheld: usize) -> Result<()> {
        if !stay_together(groups, self.known, &self.new, self.regions) {
            return Err(Error::internal(
                "the release failed its own check (rings that are torn); nothing was published",
            ));
        }
        if self.balanced && !self.are_balanced(groups) {
            return Err(Error::internal(
                "the release failed its own check (signatures with more new people of one value); nothing was published",
            ));
        }
        check_every_row(self.microdata, groups, intervals, self.known, withheld, |of_group, known| {
            self.broken_by(of_group, known)
        })
    }

    /// Returns true if new people under each signature are equally many of each value.
    fn are_balanced(&self, groups: &Groups) -> bool {
        let mut counts: FxHashMap<(i64, &[u32]), Vec<u32>> = FxHashMap::default();
        for group in 0..groups.len() {
            let (members, signature) = (&groups.members[groups.range(group)], &groups.sensitive[groups.range(group)]);
            let region = groups.rings.get(group).copied().unwrap_or_default();
            let of_signature = counts.entry((region, signature)).or_insert_with(|| vec![0; signature.len()]);
            for (count, &row) in of_signature.iter_mut().zip(members) {
                let is_new = row != COUNTERFEIT && self.known.number_of(row as usize).is_none();
                *count += u32::from(is_new);
            }
        }
        counts.values().all(|counts| counts.iter().all(|count| *count == counts[0]))
    }

    /// Returns a description of the fault of a group, or `None`.
    fn broken_by(&self, of_group: &OfGroup<'_>, known: &Known<'_>) -> Option<&'static str> {
        let &OfGroup { members, published: signature, intervals, .. } = of_group;
        if signature.len() < self.m || !signature.windows(2).all(|pair| pair[0] < pair[1]) {
            return Some("a group without m different sensitive values");
        }
        if self.secrets.as_ref().is_some_and(|secrets| !secrets.are_apart(signature)) {
            return Some("a group with two people of one value in a sensitive column");
        }
        let rows = members.iter().zip(signature).enumerate().filter(|(_, (row, _))| **row != COUNTERFEIT);
        // The number of the group's signature, once it is known.
        let mut same = None;
        for (place, (_, &value)) in rows {
            let before = known.signatures[place];
            if before.is_none() && self.drawn.as_ref().is_some_and(|drawn| !drawn.contains(signature)) {
                return Some("a new row under a signature that is not one of the first release's");
            }
            if of_group.sensitive(place) != value {
                return Some("a row with another's sensitive value");
            }
            if let Some(before) = before.filter(|_| before != same) {
                if *self.known.all()[before as usize] != *signature {
                    return Some("a returning row under another signature");
                }
                same = Some(before);
            }
            let mut codes = of_group.codes(place).iter().zip(intervals);
            if !codes.all(|(code, [lo, hi])| (lo..=hi).contains(&code)) {
                return Some("an interval that does not cover its row");
            }
        }
        // Some value must be there in all groups of a signature, or there is one group too many.
        if members.iter().all(|&row| row == COUNTERFEIT) {
            return Some("a group of nobody");
        }
        (!self.microdata.can_publish(intervals)).then_some("an interval that is not a value of the hierarchy")
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::super::tests::{Earlier, Known as OfPeople, Row, encode, encode_beside, example, in_a_row};
    use super::*;
    use crate::m_invariance::MInvariance;
    use crate::release::Release;
    use crate::{Method, Monitor};

    /// Every promise broken on purpose is found.
    #[test]
    fn broken_releases_are_caught() {
        let (rows, published) = example();
        let (microdata, state) = encode(&rows, &published, 3).unwrap();
        let known = state.signatures().unwrap();
        let (again, _) = encode(&rows, &published, 3).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let release = MInvariance::of_cohort(2).anonymize(again, &state, &Monitor::default(), &mut rng).unwrap();
        let published = release.body.intervals().unwrap();
        let balanced = std::cell::Cell::new(false);
        let judged = |change: &dyn Fn(&mut Groups),
                      intervals: &Intervals,
                      m: usize,
                      drawn: Option<FxHashSet<&[u32]>>|
         -> String {
            let mut groups = Groups {
                starts: release.groups.starts.clone(),
                members: release.groups.members.clone(),
                sensitive: release.groups.sensitive.clone(),
                ..Groups::default()
            };
            change(&mut groups);
            let (new, regions, balanced) = (0..0, false, balanced.get());
            match (Promise { microdata: &microdata, known, m, secrets: None, drawn, new, regions, balanced })
                .check(&groups, intervals, 0)
            {
                Ok(()) => "fine".to_owned(),
                Err(error) => error.to_string(),
            }
        };
        let verdict = |change: &dyn Fn(&mut Groups), m: usize| judged(change, published, m, None);
        let old = |groups: &Groups| {
            let member =
                groups.members.iter().position(|&row| row != COUNTERFEIT && known.number_of(row as usize).is_some());
            member.unwrap()
        };
        let real = |groups: &Groups| groups.members.iter().position(|&row| row != COUNTERFEIT).unwrap();
        assert_eq!(verdict(&|_| {}, 2), "fine");
        assert!(verdict(&|_| {}, 4).contains("without m different"));
        assert!(verdict(&|groups| groups.sensitive[1] = groups.sensitive[0], 2).contains("without m different"));
        let lost = |groups: &mut Groups| {
            let place = real(groups);
            groups.members[place] = COUNTERFEIT;
        };
        assert!(verdict(&lost, 2).contains("a row missing"));
        balanced.set(true);
        assert_eq!(verdict(&|_| {}, 2), "fine");
        let without_a_new_row = |groups: &mut Groups| {
            let is_new = |row: u32| row != COUNTERFEIT && known.number_of(row as usize).is_none();
            let place = groups.members.iter().position(|&row| is_new(row)).unwrap();
            groups.members[place] = COUNTERFEIT;
        };
        assert!(verdict(&without_a_new_row, 2).contains("more new people of one value"));
        balanced.set(false);
        let empty: Vec<[u32; 2]> = published.to_vec().into_iter().map(|[lo, _]| [lo, 0]).collect();
        let empty = Intervals::of_groups(microdata.quasi.len(), &empty);
        assert!(judged(&|_| {}, &empty, 2, None).contains("cover"));
        let twice = |groups: &mut Groups| {
            let first = real(groups);
            let row = groups.members[first];
            let place = groups.members.iter().rposition(|&other| other != COUNTERFEIT && other != row).unwrap();
            groups.members[place] = row;
        };
        assert_ne!(verdict(&twice, 2), "fine");
        let merged = |groups: &mut Groups| {
            // The returning row's group takes one more value at its end.
            let member = old(groups);
            let group = groups.starts.iter().rposition(|&start| start as usize <= member).unwrap();
            let end = groups.starts[group + 1] as usize;
            groups.members.insert(end, COUNTERFEIT);
            groups.sensitive.insert(end, u32::MAX);
            groups.starts[group + 1..].iter_mut().for_each(|start| *start += 1);
        };
        assert!(verdict(&merged, 2).contains("another signature"));
        let foreign = FxHashSet::default();
        assert!(judged(&|_| {}, published, 2, Some(foreign)).contains("not one of the first release's"));
        let nobody = |groups: &mut Groups| {
            let last = groups.starts[groups.len() - 1] as usize;
            groups.members[last..].fill(COUNTERFEIT);
        };
        assert!(verdict(&nobody, 2).contains("a group of nobody"));
    }

    /// Returning people keep their ring or region, and others are of new ones; new people may join regions.
    #[test]
    fn torn_rings_and_regions_are_caught() {
        let rows: Vec<Row> = in_a_row(6);
        let known: OfPeople = (0..4).map(|id| (id, ["a", "b"].map(str::to_owned).into())).collect();
        let ring = |id: i64| (7 + id / 2, rows[id as usize].2.clone());
        for regions in [false, true] {
            let earlier =
                Earlier { known: &known, release: None, ring: Some(&ring), regions, each: false, domain: &[] };
            let (microdata, state) = encode_beside(&rows, None, &earlier, 3).unwrap();
            let known = state.signatures().unwrap();
            let arrival = &microdata.people.as_ref().unwrap().arrival;
            let row_of = |person: u32| arrival.iter().position(|&arrived| arrived == person).unwrap() as u32;
            let members: Vec<u32> = (0..6).map(row_of).collect();
            let judged = |rings: [i64; 3]| {
                let sensitive = microdata.sensitive_of(&members);
                let starts = vec![0, 2, 4, 6];
                let groups =
                    Groups { starts, members: members.clone(), sensitive, rings: rings.to_vec(), ..Groups::default() };
                let intervals = Release::cover(&microdata, &groups).unwrap();
                let (new, balanced) = (20..21, true);
                let promise =
                    Promise { microdata: &microdata, known, m: 2, secrets: None, drawn: None, new, regions, balanced };
                promise.check(&groups, &intervals, 0).is_ok()
            };
            assert!(judged([7, 8, 20]));
            assert_eq!(judged([7, 8, 8]), regions);
            for torn in [[8, 7, 20], [7, 20, 20], [7, 7, 20], [20, 8, 20]] {
                assert!(!judged(torn), "{torn:?}");
            }
        }
    }
}
