//! Models of releases: the rows that can belong to each person.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::super::background::{ALL, Fact};
use super::super::evidence::{Evidence, distinct};
use super::model::{Model, Slot, Version};
use crate::error::{Error, Result, thousands};

/// Most pairs of people and different rows that cover them, where no groups are known.
const PAIRS: usize = 200_000_000;

/// Builds the model of a reader who knows each person's group.
pub(super) fn by_groups(evidence: &Evidence) -> Model {
    let mut model = Model::default();
    for (number, release) in (1..).zip(&evidence.releases) {
        let time = evidence.time(number);
        let groups = 0..release.boxes.starts.len() as u32 - 1;
        let slot = |(value, capacity)| Slot { value, capacity };
        let pools: Vec<u32> = groups.map(|group| model.add_pool(release.boxes.counts(group).map(slot))).collect();
        for (person, &(group, hint)) in (0..).zip(release.hosts.iter().flatten()) {
            if let Some(&pool) = pools.get(group as usize) {
                let slots = model.pools[pool as usize].slots.clone().collect();
                model.versions.push(Version { person, release: number, time, pool, slots, hint });
            }
        }
    }
    model.finish();
    tell(&mut model, &evidence.facts);
    model
}

/// Builds the model of a reader who knows everybody's quasi-identifiers: everybody has a row that covers them.
///
/// Every pair of people and boxes is looked at.
/// Fails when rows of a group have different boxes, for which values are theirs is not known here; when the pairs are too many.
pub(super) fn by_covers(evidence: &Evidence) -> Result<Model> {
    let mut model = Model::default();
    let (d, known) = (evidence.quasi, &evidence.known);
    let mut pairs = 0;
    for (number, release) in (1..).zip(&evidence.releases) {
        let time = evidence.time(number);
        let boxes = &release.boxes;
        let mut shown = vec![0_u32; boxes.starts.len() - 1];
        boxes.group.iter().for_each(|&group| shown[group as usize] += 1);
        let torn = shown.iter().filter(|&&boxes| boxes > 1).count();
        if torn > 0 {
            return Err(Error::refused(format!(
                "strength 'joint_cover' needs rows that are alike in each group, but in release {number} rows of {} groups show \
                 different ranges; leave out the column of groups if rows stand for themselves",
                thousands(torn)
            )));
        }
        // Rows with the same box and value are one slot.
        let mut place: FxHashMap<(&[[u32; 2]], u32), usize> = FxHashMap::default();
        let mut slots: Vec<(&[[u32; 2]], Slot)> = Vec::new();
        for (ends, &group) in boxes.ends.chunks_exact(d.max(1)).zip(&boxes.group) {
            for (value, capacity) in boxes.counts(group) {
                let next = slots.len();
                match *place.entry((ends, value)).or_insert(next) {
                    place if place == next => slots.push((ends, Slot { value, capacity })),
                    place => slots[place].1.capacity += capacity,
                }
            }
        }
        slots.sort_unstable_by_key(|(ends, slot)| (*ends, slot.value));
        let pool = model.add_pool(slots.iter().map(|(_, slot)| *slot));
        let first = model.pools[pool as usize].slots.start;
        let rows: Vec<usize> =
            (0..known.person.len()).filter(|&row| known.release[row] == number || known.release[row] == ALL).collect();
        let (points, numbers) = distinct(rows.iter().map(|row| &known.quasi[row * d..][..d]));
        let covers = |point: &[u32]| -> Vec<u32> {
            let holds = |ends: &[[u32; 2]]| ends.iter().zip(point).all(|([lo, hi], code)| lo <= code && code <= hi);
            let runs = slots.chunk_by(|a, b| a.0 == b.0).scan(first, |start, run| {
                *start += run.len() as u32;
                Some((*start - run.len() as u32..*start, run[0].0))
            });
            runs.filter(|(_, ends)| holds(ends)).flat_map(|(run, _)| run).collect()
        };
        let found: Vec<Vec<u32>> = points.par_chunks_exact(d.max(1)).map(covers).collect();
        pairs += numbers.iter().map(|&number| found[number as usize].len()).sum::<usize>();
        if pairs > PAIRS {
            return Err(Error::refused(format!(
                "strength 'joint_cover' takes every row that covers somebody, and here more than {} do; look at fewer people, \
                 or at private views with strength 'joint'",
                thousands(PAIRS)
            )));
        }
        for (&row, &number_of) in rows.iter().zip(&numbers) {
            let slots = found[number_of as usize].clone();
            let (person, hint) = (known.person[row], known.sensitive[row]);
            model.versions.push(Version { person, release: number, time, pool, slots, hint });
        }
    }
    model.finish();
    tell(&mut model, &evidence.facts);
    Ok(model)
}

/// Removes all other values of people of whom a value is known.
fn tell(model: &mut Model, facts: &[Fact]) {
    let mut of: FxHashMap<u32, Vec<&Fact>> = FxHashMap::default();
    facts.iter().for_each(|fact| of.entry(fact.person).or_default().push(fact));
    let Model { slots, versions, .. } = model;
    for version in versions {
        for fact in of.get(&version.person).into_iter().flatten() {
            if fact.release == version.release || fact.release == ALL {
                version.slots.retain(|&slot| slots[slot as usize].value == fact.value);
            }
        }
    }
}
