//! The last look at a release before a row leaves: definitions, word by word, on the tables that rows were drawn from.

use rayon::prelude::*;

use super::Muco;
use super::tables::Source;
use crate::error::{Error, Result};
use crate::methods::seen::Seen;
use crate::release::{Groups, Perturbed};

/// What is drawn: rows, their groups and their published values.
pub(super) fn check(source: &Source<'_>, groups: &Groups, perturbed: &Perturbed, params: &Muco) -> Result<()> {
    let broken = (0..groups.len())
        .into_par_iter()
        .with_min_len(64)
        .map(|group| broken_promise(source, groups, perturbed, group, params).unwrap_or(Some("tables")))
        .find_map_any(|broken| broken);
    let once = || {
        let seen = Seen::once(source.microdata.rows, groups.members.iter().copied());
        (!seen.is_some_and(|seen| seen.is_all())).then_some("a row that is not in one place")
    };
    let ends = || groups.starts.last().is_none_or(|&end| end as usize != groups.members.len());
    let d = source.distances.len();
    let whole = || (ends() || !perturbed.codes.are_of(groups.members.len(), d)).then_some("rows missing");
    match broken.or_else(whole).or_else(once) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

/// What is wrong with a group, if anything.
fn broken_promise(
    source: &Source<'_>,
    groups: &Groups,
    perturbed: &Perturbed,
    group: usize,
    params: &Muco,
) -> Result<Option<&'static str>> {
    let Source { microdata, distances, .. } = source;
    let members = &groups.members[groups.range(group)];
    if members.len() < params.l {
        return Ok(Some("a group of less than l rows"));
    }
    let sensitive = &groups.sensitive[groups.range(group)];
    if members.iter().zip(sensitive).any(|(&row, &value)| microdata.sensitive_codes.at(row) != value) {
        return Ok(Some("a row with another's sensitive value"));
    }
    if groups.histogram(group).iter().any(|&(_, count)| count > 1) {
        return Ok(Some("a group with a sensitive value twice"));
    }
    let d = distances.len();
    let mut published = Vec::with_capacity(members.len() * d);
    perturbed.codes.append_to(&mut published, groups.starts[group]..groups.starts[group + 1]);
    let tables = source.tables(members)?;
    for table in &tables.tables {
        let codes = &table.values.codes;
        if !table.keeps(tables.whole, params.delta.get()) {
            return Ok(Some("a random output table that does not keep delta"));
        }
        let in_range = |code: &u32| match distances[table.attribute].range(codes) {
            Some([first, last]) => (first..=last).contains(code),
            None => codes.contains(code),
        };
        if !table.columns.iter().all(in_range) {
            return Ok(Some("a value out of the range of the group"));
        }
        for (published, &own) in published.chunks_exact(d).zip(&table.own) {
            let column = table.columns.binary_search(&published[table.attribute]);
            if column.map_or(0, |column| table.row(own)[column]) == 0 {
                return Ok(Some("a value that its output table does not have"));
            }
        }
    }
    if tables.must_change() && !tables.always_change() {
        return Ok(Some("tables by which a row can stay as it is"));
    }
    let constant = |j: &usize| tables.tables.iter().all(|table| table.attribute != *j);
    for (&row, published) in members.iter().zip(published.chunks_exact(d)) {
        if (0..d).filter(constant).any(|j| published[j] != microdata.quasi_at(row, j)) {
            return Ok(Some("a value that no row of the group has"));
        }
        if tables.must_change() && published.iter().copied().eq(microdata.quasi_of(row)) {
            return Ok(Some("a row that is unchanged although it could change"));
        }
    }
    Ok(None)
}
