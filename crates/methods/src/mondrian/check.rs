//! The last look at a release before a row leaves: definitions, word by word. Of what the cuts use, only the numbering of
//! sensitive values is taken, and the distances where the naive ones would take too long.

use super::principle::{Counts, Principle, TOLERANCE};
use super::{Diversity, Mondrian};
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::of_group::{OfGroup, any_broken};
use crate::release::{Groups, Intervals};
use crate::secrets::Secrets;
use crate::seen::Seen;

/// Work that the naive distances may take in all, in steps of a loop; beyond it, they are computed as for the cuts.
const AFFORDABLE: usize = 1 << 28;

pub(super) fn check(microdata: &Microdata, groups: &Groups, intervals: &Intervals, params: &Mondrian) -> Result<()> {
    let principle = Principle::try_new(params, microdata)?;
    let whole = params.t.map(|_| shares(principle.ranks().iter(), microdata.rows, principle.values()));
    let naive = groups.len().saturating_mul(principle.values()) <= AFFORDABLE;
    let ordered = microdata.sensitive.as_ref().is_some_and(|sensitive| sensitive.domain.is_measured());
    let too_far = |group: usize, counts: &mut Counts| {
        let (t, whole) = (params.t?, whole.as_ref()?);
        let members = groups.members[groups.range(group)].iter();
        let values: Vec<u32> = members.map(|&row| principle.value_of(row)).collect();
        let distance = match naive {
            true => distance(&shares(values.iter().copied(), values.len(), principle.values()), whole, ordered),
            false => principle.distance(&values, counts)?,
        };
        (distance > t.get() + 2.0 * TOLERANCE).then_some("a group that is not t-close")
    };
    let secrets = match (&microdata.sensitive, params.l) {
        (Some(sensitive), Some(_)) => Secrets::of(sensitive)?,
        _ => None,
    };
    let secrets = secrets.as_ref();
    let any_broken = || {
        any_broken(
            microdata,
            groups,
            intervals,
            || principle.counts(),
            |_, _| {},
            |counts, of_group| {
                broken_promise(microdata, groups, of_group, params)
                    .or_else(|| shared(secrets, of_group.published, params.l))
                    .or_else(|| too_far(of_group.group, counts))
            },
        )
    };
    if !groups.are_whole() {
        return Err(Error::internal(
            "the release failed its own check (members without a group); nothing was published",
        ));
    }
    let once = || {
        let seen = Seen::once(microdata.rows, groups.members.iter().copied());
        (!seen.is_some_and(|seen| seen.is_all())).then_some("a row that is not in one place")
    };
    let (broken, misplaced) = rayon::join(any_broken, once);
    match broken.or(misplaced) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

/// Returns the fault of a group, if it has one.
fn broken_promise(
    microdata: &Microdata,
    groups: &Groups,
    of_group: &OfGroup<'_>,
    params: &Mondrian,
) -> Option<&'static str> {
    let &OfGroup { group, members, published, intervals, .. } = of_group;
    if members.len() < params.k.max(1) {
        return Some("a group of less than k rows");
    }
    if !microdata.can_publish(intervals) {
        return Some("an interval that is not a value of the hierarchy");
    }
    for place in 0..members.len() {
        let mut codes = of_group.codes(place).iter().zip(intervals);
        if !codes.all(|(code, [lo, hi])| (lo..=hi).contains(&code)) {
            return Some("an interval that does not cover its row");
        }
    }
    let is_own = |(place, &value): (usize, &u32)| of_group.sensitive(place) == value;
    if microdata.sensitive.is_some() && (published.len() != members.len() || !published.iter().enumerate().all(is_own))
    {
        return Some("a row with another's sensitive value");
    }
    let l = params.l?;
    let histogram = groups.histogram(group);
    let rows = members.len() as f64;
    let diverse = match params.diversity.unwrap_or_default() {
        Diversity::Distinct => histogram.len() >= l,
        Diversity::Frequency => {
            histogram.iter().all(|&(_, count)| u128::from(count) * l as u128 <= members.len() as u128)
        }
        Diversity::Entropy => {
            let shares = histogram.iter().map(|&(_, count)| f64::from(count) / rows);
            -shares.map(|share| share * share.ln()).sum::<f64>() >= (l as f64).ln() - 2.0 * TOLERANCE
        }
    };
    (!diverse).then_some("a group that is not l-diverse")
}

/// Returns the fault of a group with a secret that is too frequent.
fn shared(secrets: Option<&Secrets>, values: &[u32], l: Option<usize>) -> Option<&'static str> {
    let (secrets, l) = (secrets?, l?);
    let counts = secrets.occurrences(values);
    let too_many = counts.iter().any(|count| count.saturating_mul(l) > values.len());
    too_many.then_some("a group with one value of a sensitive column too often")
}

/// Returns the share of each sensitive value.
fn shares(values: impl Iterator<Item = u32>, rows: usize, occurring: usize) -> Vec<f64> {
    let mut shares = vec![0.0; occurring];
    values.for_each(|value| shares[value as usize] += 1.0 / rows as f64);
    shares
}

/// Computes the earth mover's distance by its definition.
fn distance(part: &[f64], whole: &[f64], ordered: bool) -> f64 {
    let differences = part.iter().zip(whole).map(|(part, whole)| part - whole);
    if !ordered {
        return differences.map(f64::abs).sum::<f64>() / 2.0;
    }
    let mut carried = 0.0;
    let work = differences.map(|difference| {
        carried += difference;
        f64::abs(carried)
    });
    work.sum::<f64>() / (part.len().max(2) - 1) as f64
}
