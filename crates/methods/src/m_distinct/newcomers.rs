//! New rows: into the gaps of returning ones' buckets as far as the rest stays m-eligible, and the rest into buckets by
//! m-invariance's assignment, in which [units](super::units) of values play the part of values. Their label is the entry they
//! are put into.

use rand::Rng;
use rand::seq::SliceRandom;

use super::bucket::Buckets;
use super::relation::Relation;
use super::units::{Units, What};
use crate::assignment;
use crate::balance::{Balance, Policy};
use crate::deal::deal;
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::split::Lists;

/// Bucket and entry of each row; `None` for rows that were not put anywhere.
#[derive(Debug)]
pub(super) struct Places(Vec<Option<(u32, u32)>>);

impl Places {
    /// Begins with so many rows, none of which is anywhere.
    pub(super) fn none(rows: usize) -> Self {
        Self(vec![None; rows])
    }

    pub(super) fn put(&mut self, row: u32, bucket: usize, entry: usize) {
        self.0[row as usize] = Some((bucket as u32, entry as u32));
    }

    /// Returns the bucket and the entry of a row that is somewhere.
    #[inline]
    pub(super) fn of(&self, row: u32) -> Option<(usize, usize)> {
        self.0[row as usize].map(|(bucket, entry)| (bucket as usize, entry as usize))
    }

    /// Returns the rows of all buckets, one list for each entry. `widths` are the numbers of entries of the buckets.
    /// Fails when there are too many rows.
    pub(super) fn lists(&self, widths: impl Iterator<Item = usize>) -> Result<Lists> {
        let mut starts = vec![0];
        starts.extend(widths.scan(0, |end, width| {
            *end += width;
            Some(*end)
        }));
        let list_of = |row: u32| self.of(row).map(|(bucket, entry)| starts[bucket] + entry);
        Lists::new(starts.clone(), self.0.len(), list_of)
    }

    /// Returns the rows that are somewhere, ascending, each with its bucket and its entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, (usize, usize))> + '_ {
        (0..self.0.len() as u32).filter_map(|row| Some((row, self.of(row)?)))
    }
}

/// Puts the new rows (`rows[v]` those of value `v`, in random order) into buckets. Returns how many are withheld.
pub(super) fn settle(
    microdata: &Microdata,
    buckets: &mut Buckets,
    relation: &mut Relation,
    places: &mut Places,
    mut rows: Vec<Vec<u32>>,
    (policy, disjoint): (Policy, bool),
    rng: &mut impl Rng,
) -> Result<usize> {
    let units = Units::new(relation, policy.m, disjoint);
    let new = units.sums(|value| rows[value].len());
    let mut offers = match policy.balance {
        Balance::Minimal => offers(buckets, relation, &rows, &units, disjoint, rng),
        Balance::Blind => Vec::new(),
    };
    let mut need = vec![0; new.len()];
    offers.iter().for_each(|offer| need[units.unit_of[offer.value as usize] as usize] += 1);
    let moves = policy.moves(&new, &need, rng);
    let moves = moves.map_or_else(|| Err(refusal(microdata, policy, &units, &new, &need)), Ok)?;
    // Which of the places that were found are used is drawn.
    offers.shuffle(rng);
    let mut left = moves.moved.clone();
    for Offer { bucket, entry, value } in offers {
        let left = &mut left[units.unit_of[value as usize] as usize];
        if *left > 0
            && let Some(row) = rows[value as usize].pop()
        {
            *left -= 1;
            buckets.list[bucket].add(entry, value, 1);
            places.put(row, bucket, entry);
        }
    }
    let mut lines: Vec<Vec<u32>> = vec![Vec::new(); new.len()];
    for (value, rows) in rows.into_iter().enumerate() {
        lines[units.unit_of[value] as usize].extend(rows);
    }
    for (line, &withheld) in lines.iter_mut().zip(&moves.withheld).filter(|(_, withheld)| **withheld > 0) {
        line.shuffle(rng);
        line.truncate(line.len().saturating_sub(withheld));
    }
    let counts: Vec<usize> = lines.iter().zip(&moves.padding).map(|(line, padding)| line.len() + padding).collect();
    let steps = assignment::steps(&counts, policy.m, rng)?;
    let mut homes = Vec::with_capacity(steps.len());
    for step in &steps {
        let mut entries: Vec<(u32, usize)> =
            (0..).zip(step.signature.iter()).map(|(i, &unit)| (units.entries[unit as usize], i)).collect();
        entries.sort_unstable();
        let bucket = buckets.number(entries.iter().map(|&(entry, _)| entry).collect(), relation);
        let mut entry_of = vec![0; entries.len()];
        entries.iter().enumerate().for_each(|(entry, &(_, place))| entry_of[place] = entry);
        homes.push((bucket, entry_of));
    }
    let dealt = deal(lines, &moves.padding, &steps, rng);
    for hand in dealt.hands() {
        let (bucket, entry_of) = &homes[hand.step];
        let entry = entry_of[hand.place];
        for row in hand.rows() {
            buckets.list[*bucket].add(entry, microdata.sensitive_codes.at(row), 1);
            places.put(row, *bucket, entry);
        }
    }
    Ok(moves.withheld.iter().sum())
}

/// A gap and a value that can fill it.
struct Offer {
    bucket: usize,
    entry: usize,
    value: u32,
}

/// Offers rows of new people for as many gaps as possible. Values with most rows left come first, because they
/// stand in the way of eligibility.
fn offers(
    buckets: &mut Buckets,
    relation: &Relation,
    rows: &[Vec<u32>],
    units: &Units,
    disjoint: bool,
    rng: &mut impl Rng,
) -> Vec<Offer> {
    let mut of_value: Vec<usize> = rows.iter().map(Vec::len).collect();
    let mut of_unit = units.sums(|value| of_value[value]);
    let mut gaps = Vec::new();
    for (number, bucket) in buckets.list.iter().enumerate().filter(|(_, bucket)| bucket.disjoint || !disjoint) {
        let height = bucket.height();
        let open = (0..bucket.entries.len()).filter(|&entry| bucket.loads[entry] < height);
        gaps.extend(open.map(|entry| (number, entry, height - bucket.loads[entry])));
    }
    // In random order, but those that few values can fill before those that many can.
    gaps.shuffle(rng);
    gaps.sort_by_key(|&(bucket, entry, _)| relation.set(buckets.list[bucket].entries[entry]).len());
    let mut offers: Vec<Offer> = Vec::new();
    for (number, entry, gap) in gaps {
        let bucket = &mut buckets.list[number];
        let height = bucket.height();
        let set = relation.set(bucket.entries[entry]);
        for _ in 0..gap {
            let open = set.iter().copied().filter(|&value| {
                of_value[value as usize] > 0 && bucket.frequency(value) < height && bucket.fits(relation, entry, value)
            });
            let rank = |value: &u32| (of_unit[units.unit_of[*value as usize] as usize], of_value[*value as usize]);
            let Some(value) = open.max_by_key(rank) else { break };
            of_value[value as usize] -= 1;
            of_unit[units.unit_of[value as usize] as usize] -= 1;
            // For the frequencies; taken back below.
            bucket.add(entry, value, 1);
            offers.push(Offer { bucket: number, entry, value });
        }
    }
    offers.iter().for_each(|offer| buckets.list[offer.bucket].remove(offer.entry, offer.value));
    offers
}

fn refusal(microdata: &Microdata, policy: Policy, units: &Units, new: &[usize], need: &[usize]) -> Error {
    let Ok(sensitive) = microdata.sensitive() else { return Error::internal("no sensitive attribute") };
    let name = sensitive.field.name();
    match units.what {
        What::Components => policy.refusal(
            new,
            need,
            &format!("component of {name} (values that can become alike, of which m-Distinct* allows one in a group)"),
            &format!("the values of {name} fall into {} components (values that can become alike)", new.len()),
        ),
        What::Ends => policy.refusal(
            new,
            need,
            &format!("family of {name} (values that can all end as the same few, of which a group can hold one)"),
            &format!("the values of {name} fall into {} families (values that can all end as the same few)", new.len()),
        ),
        What::Values => policy.refusal(
            new,
            need,
            &format!("value of {name}"),
            &format!("the sensitive column {name} has only {} distinct values", new.len()),
        ),
    }
}
