//! Removal of the values that single pools and people rule out, until nothing changes.

use super::assignment::Assignment;
use super::model::Model;
use super::reach::Reach;

/// Removes slots in no assignment of their pool or no history of their person, repeatedly.
///
/// What stays need not be possible, for pools and people close circles; where they do not, it is.
pub(super) fn filter(model: &mut Model, reach: &mut Reach<'_>) -> Assignment {
    let mut assignment = Assignment::new(model);
    let people: Vec<std::ops::Range<usize>> = model.people().collect();
    let mut person_of = vec![0_u32; model.versions.len()];
    for (number, versions) in (0..).zip(&people) {
        person_of[versions.clone()].fill(number);
    }
    let mut changed = Vec::new();
    for versions in &people {
        history(model, versions.clone(), reach, &mut changed);
    }
    changed.clear();
    let mut waiting: Vec<u32> = (0..model.pools.len() as u32).rev().collect();
    let mut waits = vec![true; model.pools.len()];
    while let Some(pool) = waiting.pop() {
        waits[pool as usize] = false;
        assignment.filter(model, pool, &mut changed);
        let mut touched: Vec<u32> = changed.iter().map(|&version| person_of[version as usize]).collect();
        touched.sort_unstable();
        touched.dedup();
        changed.clear();
        for person in touched {
            history(model, people[person as usize].clone(), reach, &mut changed);
        }
        for version in changed.drain(..) {
            let pool = model.versions[version as usize].pool;
            if !std::mem::replace(&mut waits[pool as usize], true) {
                waiting.push(pool);
            }
        }
    }
    assignment
}

/// Filters forward and backward through the versions of a person.
fn history(model: &mut Model, versions: std::ops::Range<usize>, reach: &mut Reach<'_>, changed: &mut Vec<u32>) {
    if reach.is_any() {
        return;
    }
    let first = versions.start as u32;
    let mut values: Vec<Vec<u32>> = versions.clone().map(|version| model.values(version as u32)).collect();
    let sizes: Vec<usize> = values.iter().map(Vec::len).collect();
    let steps: Vec<u64> = model.versions[versions].windows(2).map(|pair| pair[1].time - pair[0].time).collect();
    for (place, &steps) in steps.iter().enumerate() {
        values[place].iter().for_each(|&value| reach.prepare(value, steps));
        let mut next: Vec<u32> = values[place].iter().flat_map(|value| reach.of(value, steps)).copied().collect();
        next.sort_unstable();
        values[place + 1].retain(|value| next.binary_search(value).is_ok());
    }
    for (place, &steps) in steps.iter().enumerate().rev() {
        let (before, after) = values.split_at_mut(place + 1);
        let leads = |value: &u32| reach.of(value, steps).iter().any(|to| after[0].binary_search(to).is_ok());
        before[place].retain(leads);
    }
    for ((version, values), size) in (first..).zip(&values).zip(sizes) {
        if values.len() < size {
            let Model { slots, versions, .. } = model;
            versions[version as usize].slots.retain(|&slot| values.binary_search(&slots[slot as usize].value).is_ok());
            changed.push(version);
        }
    }
}
