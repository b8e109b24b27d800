//! What every method with signatures checks last: each row leaves once, but for those that were withheld on purpose.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::state::Signatures;
use crate::error::{Error, Result};
use crate::release::{COUNTERFEIT, Groups};

/// Looks at the groups of a release of `rows` rows, in parallel. `broken_by` says what is wrong with a group, if anything. Afterwards every row
/// must have been seen once, but for `withheld` of those that are new.
///
/// # Errors
/// When anything is wrong: the release must not leave.
pub(super) fn check_every_row(
    rows: usize,
    groups: &Groups,
    known: &Signatures,
    withheld: usize,
    broken_by: impl Fn(usize) -> Option<&'static str> + Sync,
) -> Result<()> {
    let seen: Vec<AtomicBool> = (0..rows).map(|_| AtomicBool::new(false)).collect();
    let is_person = |row: &&u32| **row != COUNTERFEIT;
    let broken_by = |group: usize| {
        // Stored and not exchanged: an exchange makes the processor wait for the memory of one row after the other. Rows that are seen twice are
        // found by their number.
        let people = groups.members[groups.range(group)].iter().filter(is_person);
        people.for_each(|&row| seen[row as usize].store(true, Ordering::Relaxed));
        broken_by(group)
    };
    let broken = (0..groups.len()).into_par_iter().with_min_len(1024).find_map_any(broken_by).or_else(|| {
        let unseen = || (0..rows).filter(|&row| !seen[row].load(Ordering::Relaxed));
        let missing = unseen().count();
        if groups.members.iter().filter(is_person).count() != rows - missing {
            return Some("a row in two places");
        }
        let returning = unseen().any(|row| known.number_of(row).is_some());
        (returning || missing != withheld).then_some("a row missing")
    });
    match broken {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that is there twice in the place of another, which could pass for one that is withheld; and others.
    #[test]
    fn every_row_leaves_once() {
        let judged = |members: [u32; 4], withheld: usize| {
            let groups = Groups { starts: vec![0, 2, 4], members: members.to_vec(), ..Groups::default() };
            match check_every_row(4, &groups, &Signatures::default(), withheld, |_| None) {
                Ok(()) => "fine".to_owned(),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(judged([2, 0, 3, 1], 0), "fine");
        assert_eq!(judged([2, 0, COUNTERFEIT, 1], 1), "fine");
        for withheld in 0..3 {
            assert!(judged([2, 0, 2, 1], withheld).contains("a row in two places"));
            assert!(judged([2, 2, COUNTERFEIT, 1], withheld).contains("a row in two places"));
        }
        assert!(judged([2, 0, COUNTERFEIT, 1], 0).contains("a row missing"));
        assert!(judged([2, 0, 3, 1], 1).contains("a row missing"));
    }
}
