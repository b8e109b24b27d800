//! Groups in which every row is as likely to be anybody's as the others: `delta => 'equal'`.
//!
//! In a group all rows draw from one distribution: every quasi-identifier of the group is dealt anew, uniformly and independently of the others. So
//! the rows that are published are as likely whoever of the group has which sensitive value, also to a reader who knows the group, all
//! quasi-identifiers of its people, and this code, and combines all columns; what is left to reason from is how the groups came about. They are
//! rings of leaves that are cut by all worlds ([`rings`](super::super::rings), [`fair`](super::super::mondrian)): shown all of them, nobody's value is
//! likelier than `1/l`, and a world is a way to give out the values inside of groups. Values keep their counts in every group, so that
//! sums and means of one column are those of the table; what columns have to do with each other is left between groups only.
//!
//! Nothing is replaced after the draw: a row that comes out as it was, by chance, is as likely to be another's, and one that must not would be
//! of whoever it does not look like.

use rayon::prelude::*;

use super::grouping;
use crate::error::{Error, Result};
use crate::methods::Monitor;
use crate::methods::lots::Lots;
use crate::methods::mondrian::{Cuts, Source};
use crate::microdata::Microdata;
use crate::release::{Groups, Perturbed};

/// Groups dealt at a time.
const CHUNK: usize = 64;

/// Groups of at least `l` rows with different sensitive values, and what their rows publish. No value may make up more than `1/l` of the
/// rows.
pub(super) fn release(
    microdata: &Microdata,
    l: usize,
    cuts: Cuts,
    [cutting, dealing]: [&impl Source; 2],
    monitor: &Monitor,
) -> Result<(Groups, Perturbed)> {
    let groups = monitor.phase("grouping", || grouping::fair(microdata, l, cuts, cutting, monitor))?;
    let perturbed = monitor.phase("drawing", || deal(microdata, &groups, dealing, monitor))?;
    monitor.phase("check", || check(microdata, &groups, &perturbed, l))?;
    Ok((groups, perturbed))
}

/// Deals the values of every group anew. Each has a stream of its own, so threads do not matter.
fn deal(microdata: &Microdata, groups: &Groups, source: &impl Source, monitor: &Monitor) -> Result<Perturbed> {
    let d = microdata.quasi.len();
    let chunks: Vec<usize> = (0..groups.len()).step_by(CHUNK).collect();
    let deal_chunk = |first: usize| {
        monitor.check()?;
        let mut dealt = Perturbed::default();
        for group in first..groups.len().min(first + CHUNK) {
            let rows = &groups.members[groups.range(group)];
            let mut lots = source.at(groups.starts[group] as usize, rows.len());
            let start = dealt.codes.len();
            dealt.codes.resize(start + rows.len() * d, 0);
            let mut varies = false;
            for j in 0..d {
                let mut column: Vec<u32> = rows.iter().map(|&row| microdata.quasi_of(row)[j]).collect();
                varies |= column.windows(2).any(|pair| pair[0] != pair[1]);
                lots.arrange(&mut column);
                column.iter().enumerate().for_each(|(place, &code)| dealt.codes[start + place * d + j] = code);
            }
            let published = dealt.codes[start..].chunks_exact(d);
            let same = published.zip(rows).filter(|(codes, row)| **codes == *microdata.quasi_of(**row)).count();
            dealt.unchanged += same;
            dealt.unchangeable += usize::from(!varies);
        }
        Ok(dealt)
    };
    let dealt: Vec<Result<Perturbed>> = chunks.into_par_iter().map(deal_chunk).collect();
    let mut all = Perturbed::default();
    all.codes.reserve_exact(groups.members.len() * d);
    for dealt in dealt {
        all.append(dealt?);
    }
    Ok(all)
}

/// The last look at a release before a row leaves: every row is in one group, which has different sensitive values and publishes its own
/// values, each as often as it has it.
fn check(microdata: &Microdata, groups: &Groups, perturbed: &Perturbed, l: usize) -> Result<()> {
    let d = microdata.quasi.len();
    let broken = (0..groups.len()).into_par_iter().with_min_len(64).find_map_any(|group| {
        let range = groups.range(group);
        let rows = &groups.members[range.clone()];
        if rows.len() < l || groups.histogram(group).iter().any(|&(_, count)| count > 1) {
            return Some("a group without l different sensitive values");
        }
        let published = &perturbed.codes[range.start * d..range.end * d];
        let dealt = (0..d).all(|j| {
            let mut before: Vec<u32> = rows.iter().map(|&row| microdata.quasi_of(row)[j]).collect();
            let mut after: Vec<u32> = published.iter().skip(j).step_by(d).copied().collect();
            before.sort_unstable();
            after.sort_unstable();
            before == after
        });
        (!dealt).then_some("a group with other values than its own")
    });
    let whole = groups.members.len() == microdata.rows && perturbed.codes.len() == microdata.rows * d;
    match broken.or_else(|| (!whole).then_some("rows missing")) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}
