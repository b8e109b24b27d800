//! Open parts of a filtered model that do not depend on each other.

use rustc_hash::FxHashMap;

use super::assignment::Assignment;
use super::model::{Model, Sets};

/// Versions with several slots left that depend on each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// By person, and by release.
    pub versions: Vec<u32>,
    /// True for each version whose value depends on that of the one before it.
    pub linked: Vec<bool>,
    /// Slots that more versions could have than there are rows left: slot, rows left, versions.
    pub contested: Vec<(u32, u32, Vec<u32>)>,
    /// True if the pools and people of the part close a circle. Where they do not, filtering is exact: every slot that is left is
    /// in some assignment (E. Freuder 1982; constraints that form a tree).
    pub circular: bool,
}

/// Returns the parts of a model that was filtered; `changes` tells whether a value says nothing about the next one.
pub(super) fn parts(model: &Model, assignment: &Assignment, changes: bool) -> Vec<Part> {
    let open = |version: u32| model.versions[version as usize].slots.len() > 1;
    let values: Vec<usize> = (0..model.versions.len() as u32)
        .map(|version| if open(version) { model.values(version).len() } else { 1 })
        .collect();
    let (mut pools, mut all) = (Sets::new(model.versions.len()), Sets::new(model.versions.len()));
    let mut contested: Vec<(u32, u32, Vec<u32>)> = Vec::new();
    let mut in_pool = vec![false; model.versions.len()];
    for pool in &model.pools {
        let mut wanted: Vec<Vec<u32>> = vec![Vec::new(); pool.slots.len()];
        for &version in pool.versions.iter().filter(|&&version| open(version)) {
            let slots = &model.versions[version as usize].slots;
            slots.iter().for_each(|slot| wanted[(slot - pool.slots.start) as usize].push(version));
        }
        for (slot, wanted) in pool.slots.clone().zip(wanted) {
            let settled = assignment.holders[slot as usize].iter().filter(|&&version| !open(version)).count() as u32;
            let left = model.slots[slot as usize].capacity - settled;
            if wanted.len() > left as usize {
                for &version in &wanted {
                    pools.join(wanted[0], version);
                    all.join(wanted[0], version);
                    in_pool[version as usize] = true;
                }
                contested.push((slot, left, wanted));
            }
        }
    }
    let linked = |version: usize| {
        !changes
            && version > 0
            && model.versions[version].person == model.versions[version - 1].person
            && values[version] > 1
            && values[version - 1] > 1
    };
    for version in (0..model.versions.len()).filter(|&version| linked(version)) {
        all.join(version as u32 - 1, version as u32);
    }
    let mut number: FxHashMap<u32, usize> = FxHashMap::default();
    let mut made: Vec<Part> = Vec::new();
    // Of each part: people, pools, and how often they meet.
    let mut shape: Vec<[usize; 3]> = Vec::new();
    for version in (0..model.versions.len()).filter(|&version| open(version as u32)) {
        let part = *number.entry(all.find(version as u32)).or_insert_with(|| {
            made.push(Part::default());
            shape.push([0; 3]);
            made.len() - 1
        });
        made[part].versions.push(version as u32);
        made[part].linked.push(linked(version));
        let [people, groups, meetings] = &mut shape[part];
        *people += usize::from(!linked(version));
        *groups += usize::from(in_pool[version] && pools.find(version as u32) == version as u32);
        *meetings += usize::from(in_pool[version]);
    }
    for entry in contested {
        let part = number[&all.find(entry.2[0])];
        made[part].contested.push(entry);
    }
    for (part, [people, groups, meetings]) in made.iter_mut().zip(shape) {
        part.circular = meetings + 1 != people + groups;
    }
    made
}
