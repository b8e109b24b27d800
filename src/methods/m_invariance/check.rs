//! The last look at a release before a row leaves: does it keep what m-invariance promises? Linear time, and nothing is
//! taken from the phases but which rows were published at all.

use super::division::{Division, NOWHERE};
use crate::error::{Error, Result};
use crate::microdata::{Ledger, Microdata};
use crate::release::{COUNTERFEIT, Groups};

pub(super) fn check(
    microdata: &Microdata,
    division: &Division,
    ledger: &Ledger,
    groups: &Groups,
    m: usize,
) -> Result<()> {
    let fail = |what: &str| Err(Error::internal(format!("the release failed its own check ({what}); nothing was published")));
    let d = microdata.quasi.len();
    let known = ledger.signatures_of(&microdata.identifiers)?;
    let mut seen = vec![false; microdata.rows];
    for group in 0..groups.len() {
        let range = groups.range(group);
        let signature = &groups.sensitive[range.clone()];
        if signature.len() < m || !signature.windows(2).all(|pair| pair[0] < pair[1]) {
            return fail("a group without m different sensitive values");
        }
        let intervals = &groups.intervals[group * d..][..d];
        for (&row, &value) in groups.members[range].iter().zip(signature) {
            if row == COUNTERFEIT {
                continue;
            }
            let row = row as usize;
            if std::mem::replace(&mut seen[row], true) {
                return fail("a row in two places");
            }
            if microdata.sensitive.codes[row] != value {
                return fail("a row with another's sensitive value");
            }
            if known[row].is_some_and(|number| *ledger.signatures()[number as usize] != *signature) {
                return fail("a returning row under another signature");
            }
            let outside = |(attribute, [lo, hi]): (usize, &[u32; 2])| {
                let code = microdata.quasi[attribute].codes[row];
                code < *lo || code > *hi
            };
            if intervals.iter().enumerate().any(outside) {
                return fail("an interval that does not cover its row");
            }
        }
    }
    let missing = seen.iter().zip(&division.bucket_of).any(|(&seen, &bucket)| seen != (bucket != NOWHERE));
    if missing { fail("a row missing") } else { Ok(()) }
}
