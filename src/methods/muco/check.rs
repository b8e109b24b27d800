//! The last look at a release before a row leaves: definitions, word by word.

use rayon::prelude::*;

use super::Muco;
use super::reduced::{Memo, Values};
use crate::error::{Error, Result};
use crate::microdata::{Distance, Microdata};
use crate::release::Groups;

/// What is drawn: rows, their groups and their published values.
pub(super) fn check(
    microdata: &Microdata,
    groups: &Groups,
    distances: &[Distance],
    memo: &Memo,
    params: &Muco,
) -> Result<()> {
    let broken = (0..groups.len())
        .into_par_iter()
        .with_min_len(64)
        .map_init(Values::default, |values, group| {
            broken_promise(microdata, groups, group, distances, memo, params, values)
        })
        .find_map_any(|broken| broken);
    let once = || {
        let mut seen = vec![false; microdata.rows];
        let twice = groups.members.iter().any(|&row| std::mem::replace(&mut seen[row as usize], true));
        (twice || seen.contains(&false)).then_some("a row that is not in one place")
    };
    let ends = || groups.starts.last().is_none_or(|&end| end as usize != groups.members.len());
    let whole =
        || (ends() || groups.perturbed.codes.len() != groups.members.len() * distances.len()).then_some("rows missing");
    match broken.or_else(whole).or_else(once) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

/// What is wrong with a group, if anything.
fn broken_promise(
    microdata: &Microdata,
    groups: &Groups,
    group: usize,
    distances: &[Distance],
    memo: &Memo,
    params: &Muco,
    values: &mut Values,
) -> Option<&'static str> {
    let members = &groups.members[groups.range(group)];
    if members.len() < params.l {
        return Some("a group of less than l rows");
    }
    let sensitive = &groups.sensitive[groups.range(group)];
    if members.iter().zip(sensitive).any(|(&row, &value)| microdata.sensitive_codes[row as usize] != value) {
        return Some("a row with another's sensitive value");
    }
    if groups.histogram(group).iter().any(|&(_, count)| count > 1) {
        return Some("a group with a sensitive value twice");
    }
    let d = distances.len();
    let published = &groups.perturbed.codes[groups.starts[group] as usize * d..][..members.len() * d];
    // Of each row: values that it could only get because it was unchanged, and whether it is unchanged.
    let mut rows = vec![(0, true); members.len()];
    let mut choice = false;
    for (j, distance) in distances.iter().enumerate() {
        let original = |row: u32| microdata.quasi_of(row)[j];
        values.collect(members.iter().map(|&row| original(row)));
        let table = memo.table(j, distance, values);
        if !table.keeps(&values.weights, params.delta.get()) {
            return Some("a random output table that does not keep delta");
        }
        choice |= values.codes.len() > 1;
        for ((&row, codes), (impossible, same)) in members.iter().zip(published.chunks_exact(d)).zip(&mut rows) {
            let place = values.place(codes[j]);
            if values.codes.get(place) != Some(&codes[j]) {
                return Some("a value that does not occur in the group");
            }
            *impossible += usize::from(table.probability(values.place(original(row)), place) == 0.0);
            *same &= codes[j] == original(row);
        }
    }
    if choice && rows.iter().any(|(_, same)| *same) {
        return Some("a row that is unchanged although it could change");
    }
    rows.iter().any(|(impossible, _)| *impossible > 1).then_some("a row that its output tables do not explain")
}
