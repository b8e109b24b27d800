//! A method applied to each value of a column independently, in parallel.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::{Method, Monitor, State};
use crate::error::{Error, Refusal, Result, thousands};
use crate::microdata::Microdata;
use crate::release::{Body, COUNTERFEIT, Groups, Intervals, Release};

/// Anonymizes every part with its own generator, drawn in the order of the strata. So threads do not matter; and
/// every part's result has passed the method's own check.
pub(super) fn anonymize(
    method: &dyn Method,
    microdata: Microdata,
    state: &State,
    monitor: &Monitor,
    rng: &mut ChaCha20Rng,
) -> Result<Release> {
    let strata = monitor.phase("parts", || Ok(microdata.strata()))?;
    let seeds: Vec<[u8; 32]> = strata.codes.iter().map(|_| rng.random()).collect();
    let releases: Vec<Result<(Groups, Body, usize)>> = seeds
        .into_par_iter()
        .enumerate()
        .map(|(part, seed)| {
            monitor.check()?;
            let (microdata, state) = (microdata.part(strata.rows(part)), state.part(strata.rows(part)));
            let mut rng = ChaCha20Rng::from_seed(seed);
            let release = method.anonymize(microdata, &state, monitor, &mut rng)?;
            Ok((release.groups, release.body, release.withheld))
        })
        .collect();
    let refused = releases.iter().filter_map(|release| match release {
        Err(Error::Refused(refusal)) => Some(refusal),
        _ => None,
    });
    let refused: Vec<Refusal> = refused.cloned().collect();
    let name = microdata.within.as_ref().map_or("", |(attribute, _)| attribute.field.name());
    let mut groups = Groups { starts: vec![0], ..Groups::default() };
    let mut body = Body::empty(method.form());
    let mut withheld = 0;
    for (part, release) in releases.into_iter().enumerate() {
        let (of_part, body_of_part, withheld_of_part) = release.map_err(|error| match error {
            Error::Refused(first) => {
                let (failed, all) = (thousands(refused.len()), thousands(strata.codes.len()));
                let first = refused.iter().fold(first, Refusal::and);
                Error::Refused(first.within(|text| {
                    format!("{failed} of the {all} parts by {name} cannot be released; the first of them: {text}")
                }))
            }
            other => other,
        })?;
        groups.append(of_part, strata.rows(part), Some(strata.codes[part]));
        body.append(body_of_part)?;
        withheld += withheld_of_part;
    }
    check(&microdata, &groups, body.intervals(), withheld)?;
    Ok(Release { microdata, groups, body, withheld })
}

/// Checks that the strata are put together as they were. Every row is there once, with its own values, in a group
/// of its part, inside its intervals.
fn check(microdata: &Microdata, groups: &Groups, intervals: Option<&Intervals>, withheld: usize) -> Result<()> {
    let Some((_, within)) = &microdata.within else { return Ok(()) };
    let mut seen = vec![false; microdata.rows];
    for group in 0..groups.len() {
        for place in groups.range(group).filter(|&place| groups.members[place] != COUNTERFEIT) {
            let row = groups.members[place];
            let at = row as usize;
            let twice = std::mem::replace(&mut seen[at], true);
            let elsewhere = within[at] != groups.within[group];
            let another = microdata.sensitive.is_some() && groups.sensitive[place] != microdata.sensitive_codes.at(row);
            let uncovered = intervals.is_some_and(|intervals| {
                let mut codes = microdata.quasi_of(row).zip(intervals.of(group as u32));
                codes.any(|(code, [lo, hi])| !(lo..=hi).contains(&code))
            });
            if twice || elsewhere || another || uncovered {
                return Err(Error::internal("the parts of the release do not fit together; nothing was published"));
            }
        }
    }
    match seen.iter().filter(|&&seen| !seen).count() == withheld {
        true => Ok(()),
        false => Err(Error::internal("the parts of the release lack rows; nothing was published")),
    }
}
