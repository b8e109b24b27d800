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
//!
//! In publications rings are for ever, and so is what was dealt ([`Dealt`]): not values, but whose values each row shows. A later release shows what these
//! people have then, and in place of who has left the next person of the ring who is there. So rows are repeated where nothing has changed; where
//! something has, what they show follows from quasi-identifiers, who is there, and a draw that has nothing to do with sensitive
//! values. All rows of a ring are published as long as somebody of it is there.

use rayon::prelude::*;

use super::{check_eligible, grouping};
use crate::error::{Error, Result, thousands};
use crate::lots::Lots;
use crate::microdata::{Microdata, RowCodes};
use crate::mondrian::{Cuts, Source};
use crate::release::{Groups, Perturbed};
use crate::state::Dealt;
use crate::{Monitor, WHERE_VALUES_CHANGE};

/// Groups dealt at a time.
const CHUNK: usize = 64;

/// Makes a release of new people in groups of `l` or more, with known rings. Groups have different sensitive values.
///
/// # Errors
/// When one value makes up more than `1/l` of the new people, or somebody has another one than before.
pub(super) fn release(
    microdata: &Microdata,
    known: &Dealt,
    l: usize,
    cuts: Cuts,
    sources: [&impl Source; 2],
    monitor: &Monitor,
) -> Result<(Groups, Perturbed)> {
    let fresh = fresh(microdata, known)?;
    let (groups, perturbed) = if known.is_empty() {
        draw(microdata, "rows", l, cuts, sources, monitor)?
    } else {
        let mut groups = Groups { starts: vec![0], ..Groups::default() };
        let what = "rows of people who are new";
        let (drawn, mut perturbed) = draw(&microdata.part(&fresh), what, l, cuts, sources, monitor)?;
        groups.append(drawn, &fresh, None);
        go_on(microdata, known, &mut groups, &mut perturbed);
        (groups, perturbed)
    };
    monitor.phase("check", || check(microdata, &groups, &perturbed, l))?;
    Ok((groups, perturbed))
}

/// Returns the groups of new people, and what they publish.
fn draw(
    microdata: &Microdata,
    what: &str,
    l: usize,
    cuts: Cuts,
    [cutting, dealing]: [&impl Source; 2],
    monitor: &Monitor,
) -> Result<(Groups, Perturbed)> {
    if microdata.rows == 0 {
        return Ok((Groups { starts: vec![0], ..Groups::default() }, Perturbed::default()));
    }
    check_eligible(microdata, what, l)?;
    let groups = monitor.phase("grouping", || grouping::fair(microdata, l, cuts, cutting, monitor))?;
    let perturbed = monitor.phase("drawing", || deal(microdata, &groups, dealing, monitor))?;
    Ok((groups, perturbed))
}

/// Deals the values of every group anew. Each has a stream of its own, so threads do not matter.
fn deal(microdata: &Microdata, groups: &Groups, source: &impl Source, monitor: &Monitor) -> Result<Perturbed> {
    let d = microdata.quasi.len();
    let chunks: Vec<usize> = (0..groups.len()).step_by(CHUNK).collect();
    let deal_chunk = |first: usize| {
        monitor.check()?;
        let (mut dealt, mut codes) = (Perturbed::default(), Vec::new());
        for group in first..groups.len().min(first + CHUNK) {
            let rows = &groups.members[groups.range(group)];
            let mut lots = source.at(groups.starts[group] as usize, rows.len());
            let mut varies = false;
            let in_order: Vec<u32> = (0..rows.len() as u32).collect();
            // Of whom each row shows each quasi-identifier.
            let mut from = vec![in_order.clone(); d];
            from.iter_mut().for_each(|places| lots.arrange(places));
            // Where later releases look for somebody who is there. The order of the rows is none of chance: it has to do with their values.
            let mut places = in_order;
            lots.shuffle(&mut places);
            let start = codes.len();
            for member in 0..rows.len() {
                for (j, from) in from.iter().enumerate() {
                    let whose = from[member] as usize;
                    let code = microdata.quasi_at(rows[whose], j);
                    varies |= code != microdata.quasi_at(rows[member], j);
                    codes.push(code);
                    dealt.shown.push(places[whose]);
                }
            }
            varies |= rows.windows(2).any(|pair| microdata.quasi_of(pair[0]).ne(microdata.quasi_of(pair[1])));
            dealt.places.extend(places);
            let published = codes[start..].chunks_exact(d);
            let same =
                published.zip(rows).filter(|(codes, row)| codes.iter().copied().eq(microdata.quasi_of(**row))).count();
            dealt.unchanged += same;
            dealt.unchangeable += usize::from(!varies);
        }
        dealt.codes = RowCodes::narrowed(d, codes);
        Ok(dealt)
    };
    let dealt: Vec<Result<Perturbed>> = chunks.into_par_iter().map(deal_chunk).collect();
    let mut all = Perturbed::default();
    all.shown.reserve_exact(groups.members.len() * d);
    for dealt in dealt {
        all.append(dealt?);
    }
    Ok(all)
}

/// Returns the rows of people without known rings, which are to be drawn.
///
/// # Errors
/// When somebody has another sensitive value than the one that they are published with for ever.
fn fresh(microdata: &Microdata, known: &Dealt) -> Result<Vec<u32>> {
    if known.changed > 0 {
        return Err(Error::refused(format!(
            "{} people have another value of column {} than they were published with; with delta => 'equal' everybody's is the same in all \
             releases, or a reader would learn whose it was. Correct these rows. {WHERE_VALUES_CHANGE}",
            thousands(known.changed),
            microdata.sensitive()?.field.name()
        )));
    }
    Ok((0..microdata.rows as u32).filter(|&row| !known.is_known(row)).collect())
}

/// Adds the rings of earlier releases, behind the groups: each row shows what those have now of whom it was dealt the values.
fn go_on(microdata: &Microdata, known: &Dealt, groups: &mut Groups, perturbed: &mut Perturbed) {
    let (d, mut codes) = (microdata.quasi.len(), Vec::new());
    for (ring, shown) in known.rings() {
        for (place, (&row, shown)) in ring.iter().zip(shown.chunks_exact(d)).enumerate() {
            groups.members.push(row);
            groups.sensitive.push(microdata.sensitive_codes.at(row));
            let whose = |(j, &place): (usize, &u32)| microdata.quasi_at(ring[place as usize], j);
            codes.extend(shown.iter().enumerate().map(whose));
            perturbed.shown.extend_from_slice(shown);
            perturbed.places.push(place as u32);
        }
        groups.starts.push(groups.members.len() as u32);
        perturbed.repeated += ring.len();
    }
    perturbed.codes.append(RowCodes::narrowed(d, codes));
    perturbed.ghosts = known.ghosts;
}

/// Checks the release before a row leaves: rows are in one group with different values. It publishes its own
/// values, each as often as it has it. Those of ghosts are those of somebody who is there.
fn check(microdata: &Microdata, groups: &Groups, perturbed: &Perturbed, l: usize) -> Result<()> {
    let d = microdata.quasi.len();
    let broken = (0..groups.len()).into_par_iter().with_min_len(64).find_map_any(|group| {
        let range = groups.range(group);
        let rows = &groups.members[range.clone()];
        if rows.len() < l || groups.histogram(group).iter().any(|&(_, count)| count > 1) {
            return Some("a group without l different sensitive values");
        }
        let mut published = Vec::with_capacity(rows.len() * d);
        perturbed.codes.append_to(&mut published, range.start as u32..range.end as u32);
        let dealt = (0..d).all(|j| {
            let mut before: Vec<u32> = rows.iter().map(|&row| microdata.quasi_at(row, j)).collect();
            let mut after: Vec<u32> = published.iter().skip(j).step_by(d).copied().collect();
            before.sort_unstable();
            after.sort_unstable();
            before == after
        });
        (!dealt).then_some("a group with other values than its own")
    });
    let mut seen = vec![false; microdata.rows];
    let own = |(&row, &value): (&u32, &u32)| {
        let twice = std::mem::replace(&mut seen[row as usize], true);
        !twice && microdata.sensitive_codes.at(row) == value
    };
    let whole = groups.members.len() == microdata.rows
        && perturbed.codes.are_of(microdata.rows, d)
        && groups.members.iter().zip(&groups.sensitive).all(own);
    match broken.or_else(|| (!whole).then_some("rows missing")) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}
