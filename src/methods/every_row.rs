//! What every method with signatures checks last: each row leaves once, but for those that were withheld on purpose.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::state::Signatures;
use crate::error::{Error, Result};

/// Looks at `groups` groups of a release of `rows` rows, in parallel. `broken_by` says what is wrong with a group, if anything; it
/// asks for each row of it whether that is seen for the first time. Afterwards only rows that are new, `withheld` of them, may not
/// have been seen.
///
/// # Errors
/// When anything is wrong: the release must not leave.
pub(super) fn check_every_row(
    rows: usize,
    groups: usize,
    known: &Signatures,
    withheld: usize,
    broken_by: impl Fn(usize, &dyn Fn(usize) -> bool) -> Option<&'static str> + Sync,
) -> Result<()> {
    let seen: Vec<AtomicBool> = (0..rows).map(|_| AtomicBool::new(false)).collect();
    let first_seen = |row: usize| !seen[row].swap(true, Ordering::Relaxed);
    let broken =
        (0..groups).into_par_iter().with_min_len(1024).find_map_any(|group| broken_by(group, &first_seen)).or_else(
            || {
                let unseen = || (0..rows).filter(|&row| !seen[row].load(Ordering::Relaxed));
                let returning = unseen().any(|row| known.number_of(row).is_some());
                (returning || unseen().count() != withheld).then_some("a row missing")
            },
        );
    match broken {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}
