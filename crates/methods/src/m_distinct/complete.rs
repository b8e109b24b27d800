//! Counterfeits: values for the places of groups that no row has, at random, no value twice. Groups are left in the order of
//! labels.

use rand::Rng;

use super::bucket::Bucket;
use super::relation::Relation;
use super::representatives;
use crate::Monitor;
use crate::error::{Error, Result, thousands};
use crate::microdata::Microdata;
use crate::release::{COUNTERFEIT, Groups};

/// Makes groups of what the buckets were split into: `members` has, bucket after bucket and group after group, a row or none
/// for each entry. Intervals are not computed yet.
pub(super) fn complete(
    microdata: &Microdata,
    relation: &Relation,
    buckets: &[Bucket],
    members: &[u32],
    monitor: &Monitor,
    rng: &mut impl Rng,
) -> Result<Groups> {
    let mut groups = Groups { starts: vec![0], ..Groups::default() };
    groups.members.reserve_exact(members.len());
    groups.sensitive.reserve_exact(members.len());
    let mut rest = members;
    let mut divided = 0;
    for bucket in buckets {
        let entries: Vec<&[u32]> = bucket.entries.iter().map(|&number| relation.set(number)).collect();
        for _ in 0..bucket.height() {
            let (group, others) = rest.split_at(entries.len());
            rest = others;
            if !group.contains(&COUNTERFEIT) {
                groups.members.extend_from_slice(group);
                groups.sensitive.extend(group.iter().map(|&row| microdata.sensitive_codes.at(row)));
                groups.starts.push(groups.members.len() as u32);
                continue;
            }
            let rows: Vec<(usize, u32)> =
                group.iter().copied().enumerate().filter(|&(_, row)| row != COUNTERFEIT).collect();
            let mut pieces = vec![(rows, Vec::new())];
            if !fill(microdata, &entries, &mut pieces[0], rng) {
                let (rows, _) = pieces.swap_remove(0);
                pieces = divide(microdata, &entries, rows, rng)?;
                divided += 1;
            }
            if pieces.len() > 1 {
                // More members than were reserved for.
                monitor.charge((pieces.len() - 1) * entries.len() * size_of::<[u32; 4]>())?;
            }
            pieces.iter().for_each(|piece| push(&mut groups, microdata, piece));
        }
    }
    monitor.count("divided_groups", divided);
    if groups.members.len() >= u32::MAX as usize {
        let members = thousands(groups.members.len());
        return Err(Error::refused(format!("a release of {members} rows and counterfeits is not supported")));
    }
    Ok(groups)
}

/// Rows by entry, ascending, and values of counterfeits in the other entries, in order.
type Piece = (Vec<(usize, u32)>, Vec<u32>);

/// Draws the values of a piece's counterfeits. `false` if there are none.
fn fill(microdata: &Microdata, entries: &[&[u32]], piece: &mut Piece, rng: &mut impl Rng) -> bool {
    let (rows, counterfeits) = piece;
    if rows.len() == entries.len() {
        return true;
    }
    let taken: Vec<u32> = rows.iter().map(|&(_, row)| microdata.sensitive_codes.at(row)).collect();
    let open = (0..entries.len()).filter(|entry| rows.iter().all(|(other, _)| other != entry));
    let open: Vec<&[u32]> = open.map(|entry| entries[entry]).collect();
    let drawn = representatives::draw(&open, &taken, |n| rng.random_range(0..n));
    drawn.map(|drawn| *counterfeits = drawn).is_some()
}

/// Divides the rows of a group that cannot be completed into several that can: each row goes with the first of those before
/// it that it can go with. A row alone can always be completed, as only such rows are put into an entry.
fn divide(
    microdata: &Microdata,
    entries: &[&[u32]],
    rows: Vec<(usize, u32)>,
    rng: &mut impl Rng,
) -> Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    for row in rows {
        let joined = pieces.iter_mut().any(|piece| {
            let mut larger = (piece.0.iter().copied().chain([row]).collect(), Vec::new());
            let fits = fill(microdata, entries, &mut larger, rng);
            if fits {
                *piece = larger;
            }
            fits
        });
        if !joined {
            let mut alone = (vec![row], Vec::new());
            if !fill(microdata, entries, &mut alone, rng) {
                return Err(Error::internal("a row in an entry with which no group can be made"));
            }
            pieces.push(alone);
        }
    }
    Ok(pieces)
}

fn push(groups: &mut Groups, microdata: &Microdata, (rows, counterfeits): &Piece) {
    let (mut rows, mut counterfeits) = (rows.iter().peekable(), counterfeits.iter());
    for entry in 0..rows.len() + counterfeits.len() {
        let (row, value) = match rows.next_if(|(at, _)| *at == entry) {
            Some(&(_, row)) => (row, microdata.sensitive_codes.at(row)),
            // As many values were drawn as there are entries without a row.
            None => (COUNTERFEIT, counterfeits.next().copied().unwrap_or_default()),
        };
        groups.members.push(row);
        groups.sensitive.push(value);
    }
    groups.starts.push(groups.members.len() as u32);
}
