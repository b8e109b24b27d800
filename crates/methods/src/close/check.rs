//! Last check of rings before a row leaves.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::{COUNTERFEIT, Groups};
use crate::seen::Seen;
use crate::state::Signatures;

/// Returns true if rings and regions, where there are any, are whole.
///
/// Numbers of new rings and regions are `new`. A ring is one group, with all of its people who are present and nobody else. A group of a region has people
/// of this region, and new people.
pub(crate) fn stay_together(groups: &Groups, known: &Signatures, new: &Range<i64>, regions: bool) -> bool {
    if groups.rings.is_empty() {
        return true;
    }
    let mut numbers = groups.rings.clone();
    numbers.par_sort_unstable();
    let ring_of = |row: u32| {
        let before = known.number_of(row as usize);
        before.map(|number| known.rings().get(number as usize).copied())
    };
    let is_whole = |group: usize| {
        let ring = groups.rings[group];
        let is_new = new.contains(&ring);
        let people = groups.members[groups.range(group)].iter().filter(|row| **row != COUNTERFEIT);
        people.copied().all(|row| match ring_of(row) {
            Some(before) => !is_new && before == Some(ring),
            None => is_new || regions,
        })
    };
    numbers.len() == groups.len()
        && (regions || numbers.windows(2).all(|pair| pair[0] < pair[1]))
        && (0..groups.len()).into_par_iter().with_min_len(64).all(is_whole)
}

/// Returns a description of the fault of a ring, or `None`: it has at least `least` different values, its people their own, and those of before.
fn broken_ring(
    microdata: &Microdata,
    groups: &Groups,
    known: &Signatures,
    least: usize,
    group: usize,
) -> Option<&'static str> {
    let range = groups.range(group);
    let (members, signature) = (&groups.members[range.clone()], &groups.sensitive[range]);
    let values = microdata.sensitive.as_ref().map_or(0, |sensitive| sensitive.domain.len());
    if signature.len() < least || !signature.windows(2).all(|pair| pair[0] < pair[1]) {
        return Some("a group without enough different sensitive values");
    }
    if signature.iter().any(|&value| value as usize >= values) {
        return Some("a value that is not in the domain");
    }
    let mut people = members.iter().zip(signature).filter(|(row, _)| **row != COUNTERFEIT).peekable();
    if people.peek().is_none() {
        return Some("a group of nobody");
    }
    people.find_map(|(&row, &value)| {
        if microdata.sensitive_codes.at(row) != value {
            return Some("a row with another's sensitive value");
        }
        let moved = known.of(row as usize).is_some_and(|before| before != signature);
        moved.then_some("a returning row under another signature")
    })
}

/// Checks the rings of a release, of which `new` are new: they are whole, no ring is broken, and every row is in one of them.
///
/// # Errors
/// When a ring is torn or broken, or a row is missing. The release must not leave.
pub(crate) fn check_rings(
    microdata: &Microdata,
    groups: &Groups,
    known: &Signatures,
    new: &Range<i64>,
    least: usize,
) -> Result<()> {
    let failed =
        |what: &str| Err(Error::internal(format!("the release failed its own check ({what}); nothing was published")));
    if !groups.are_whole() || groups.sensitive.len() != groups.members.len() {
        return failed("members without a group");
    }
    if groups.rings.len() != groups.len() || !stay_together(groups, known, new, false) {
        return failed("rings that are torn");
    }
    let people = groups.members.iter().copied().filter(|&row| row != COUNTERFEIT);
    match Seen::once(microdata.rows, people) {
        None => return failed("a row in two places"),
        Some(seen) if !seen.is_all() => return failed("a row missing"),
        Some(_) => {}
    }
    let broken = (0..groups.len()).into_par_iter().with_min_len(64);
    match broken.find_map_any(|group| broken_ring(microdata, groups, known, least, group)) {
        Some(what) => failed(what),
        None => Ok(()),
    }
}
