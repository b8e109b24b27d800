//! The last look at a release before a row leaves: definitions, word by word, on the tables that rows were drawn from.
//!
//! Checks a group while its tables are at hand, for they are most of the work; groups and the whole are looked at in the end.

use rayon::prelude::*;

use super::Muco;
use super::tables::{GroupTables, Source};
use crate::error::{Error, Result};
use crate::release::{Groups, Perturbed};
use crate::seen::Seen;

/// Checks the groups, and that all of what was drawn is there.
pub(super) fn check(source: &Source<'_>, groups: &Groups, perturbed: &Perturbed, params: &Muco) -> Result<()> {
    let broken = (0..groups.len())
        .into_par_iter()
        .with_min_len(64)
        .map(|group| broken_group(source, groups, group, params))
        .find_map_any(|broken| broken);
    let once = || {
        let seen = Seen::once(source.microdata.rows, groups.members.iter().copied());
        (!seen.is_some_and(|seen| seen.is_all())).then_some("a row that is not in one place")
    };
    let d = source.distances.len();
    let ends = || groups.starts.last().is_none_or(|&end| end as usize != groups.members.len());
    let whole = || (ends() || !perturbed.codes.are_of(groups.members.len(), d)).then_some("rows missing");
    passed(broken.or_else(whole).or_else(once))
}

/// Holds the draw of a group: `published` has the codes of its rows, row after row, and `tables` are those that they were drawn from.
pub(super) fn check_drawn(
    source: &Source<'_>,
    members: &[u32],
    tables: &GroupTables,
    published: &[u32],
    params: &Muco,
) -> Result<()> {
    let d = source.distances.len();
    let present =
        published.len() == members.len() * d && tables.tables.iter().all(|table| table.own.len() == members.len());
    let missing = (!present).then_some("rows missing");
    passed(
        missing
            .or_else(|| broken_tables(source, tables, published, params))
            .or_else(|| broken_rows(source, members, tables, published)),
    )
}

/// # Errors
/// Returns the first fault, if there is one.
pub(super) fn passed(broken: Option<&'static str>) -> Result<()> {
    match broken {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

/// Returns the fault of a group, if it has one.
fn broken_group(source: &Source<'_>, groups: &Groups, group: usize, params: &Muco) -> Option<&'static str> {
    let members = &groups.members[groups.range(group)];
    if members.len() < params.l {
        return Some("a group of less than l rows");
    }
    let sensitive = &groups.sensitive[groups.range(group)];
    let own = |(&row, &value): (&u32, &u32)| source.microdata.sensitive_codes.at(row) == value;
    if !members.iter().zip(sensitive).all(own) {
        return Some("a row with another's sensitive value");
    }
    let mut twice = false;
    groups.for_each_value(group, |_, count| twice |= count > 1);
    twice.then_some("a group with a sensitive value twice")
}

/// Returns the first fault of tables, and of values that were drawn from them.
fn broken_tables(source: &Source<'_>, tables: &GroupTables, published: &[u32], params: &Muco) -> Option<&'static str> {
    let d = source.distances.len();
    for table in &tables.tables {
        let codes = &table.values.codes;
        if !table.keeps(tables.whole, params.delta.get()) {
            return Some("a random output table that does not keep delta");
        }
        let in_range = |code: &u32| match source.distances[table.attribute].range(codes) {
            Some([first, last]) => (first..=last).contains(code),
            None => codes.contains(code),
        };
        if !table.columns.iter().all(in_range) {
            return Some("a value out of the range of the group");
        }
        for (published, &own) in published.chunks_exact(d).zip(&table.own) {
            let column = table.columns.binary_search(&published[table.attribute]);
            if column.map_or(0, |column| table.row(own)[column]) == 0 {
                return Some("a value that its output table does not have");
            }
        }
    }
    None
}

/// Returns the first fault of rows: some can stay as they are, or have values that nobody has.
fn broken_rows(source: &Source<'_>, members: &[u32], tables: &GroupTables, published: &[u32]) -> Option<&'static str> {
    let Source { microdata, distances, .. } = source;
    let d = distances.len();
    if tables.must_change() && !tables.always_change() {
        return Some("tables by which a row can stay as it is");
    }
    let mut constant = vec![true; d];
    tables.tables.iter().for_each(|table| constant[table.attribute] = false);
    for (&row, published) in members.iter().zip(published.chunks_exact(d)) {
        let original = || microdata.quasi_of(row);
        let kept =
            original().zip(published).zip(&constant).all(|((code, other), constant)| !constant || code == *other);
        if !kept {
            return Some("a value that no row of the group has");
        }
        if tables.must_change() && published.iter().copied().eq(original()) {
            return Some("a row that is unchanged although it could change");
        }
    }
    // Whose value is whose: places are those of the rows themselves.
    let strayed = |table: &super::tables::GroupTable| {
        let own = |(&row, &own): (&u32, &usize)| microdata.quasi_at(row, table.attribute) == table.values.codes[own];
        !members.iter().zip(&table.own).all(own)
    };
    tables.tables.iter().any(strayed).then_some("a table of other rows")
}
