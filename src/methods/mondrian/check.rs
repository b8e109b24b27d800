//! The last look at a release before a row leaves: definitions, word by word. Nothing is taken from the cuts but the way
//! distances are computed.

use rayon::prelude::*;

use super::principle::{Principle, TOLERANCE};
use super::{Diversity, Mondrian};
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::Groups;

pub(super) fn check(microdata: &Microdata, groups: &Groups, params: &Mondrian) -> Result<()> {
    let principle = Principle::try_new(params, microdata)?;
    let broken = (0..groups.len()).into_par_iter().with_min_len(256).find_map_any(|group| {
        let broken = broken_promise(microdata, groups, group, params);
        broken.or_else(|| {
            // Distances between distributions have one definition; the tests compare it with the naive one.
            params.t?;
            let distance = principle.distance(&groups.sensitive[groups.range(group)])?;
            (distance > params.t?.get() + TOLERANCE).then_some("a group that is not t-close")
        })
    });
    let once = || {
        let mut seen = vec![false; microdata.rows];
        let twice = groups.members.iter().any(|&row| std::mem::replace(&mut seen[row as usize], true));
        (twice || seen.contains(&false)).then_some("a row that is not in one place")
    };
    match broken.or_else(once) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

/// What is wrong with a group, if anything.
fn broken_promise(microdata: &Microdata, groups: &Groups, group: usize, params: &Mondrian) -> Option<&'static str> {
    let members = &groups.members[groups.range(group)];
    if members.len() < params.k.max(1) {
        return Some("a group of less than k rows");
    }
    let d = microdata.quasi.len();
    let intervals = &groups.intervals[group * d..][..d];
    for &row in members {
        let mut codes = microdata.quasi_of(row).iter().zip(intervals);
        if !codes.all(|(code, [lo, hi])| (lo..=hi).contains(&code)) {
            return Some("an interval that does not cover its row");
        }
    }
    if microdata.sensitive.is_some() {
        let values = &groups.sensitive[groups.range(group)];
        if members.iter().zip(values).any(|(&row, &value)| microdata.sensitive_codes[row as usize] != value) {
            return Some("a row with another's sensitive value");
        }
    }
    let l = params.l?;
    let histogram = groups.histogram(group);
    let rows = members.len() as f64;
    let diverse = match params.diversity {
        Diversity::Distinct => histogram.len() >= l,
        Diversity::Frequency => {
            histogram.iter().all(|&(_, count)| f64::from(count) / rows <= 1.0 / l as f64 + TOLERANCE)
        }
        Diversity::Entropy => {
            let shares = histogram.iter().map(|&(_, count)| f64::from(count) / rows);
            -shares.map(|share| share * share.ln()).sum::<f64>() >= (l as f64).ln() - 2.0 * TOLERANCE
        }
    };
    (!diverse).then_some("a group that is not l-diverse")
}
