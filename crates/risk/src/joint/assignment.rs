//! Assignments of versions to slots, one pool at a time: whether there is one, and which pairs are in some.

use super::model::Model;

/// Place that stands for no slot.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A slot for every version, kept up to date while slots become impossible.
#[derive(Debug)]
pub(super) struct Assignment {
    /// Slot of each version.
    pub slot_of: Vec<u32>,
    /// Versions of each slot.
    pub holders: Vec<Vec<u32>>,
    /// Number of the search that reached each slot last.
    seen: Vec<u32>,
    search: u32,
    /// By which version each slot was reached.
    by: Vec<u32>,
    queue: Vec<u32>,
    components: Components,
}

impl Assignment {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            slot_of: vec![NOWHERE; model.versions.len()],
            holders: vec![Vec::new(); model.slots.len()],
            seen: vec![0; model.slots.len()],
            search: 0,
            by: vec![NOWHERE; model.slots.len()],
            queue: Vec::new(),
            components: Components::default(),
        }
    }

    /// Removes from a pool's versions all slots that are in no assignment of the pool. Adds the versions that lost some
    /// to `changed`; if there is no assignment at all, everybody loses everything.
    ///
    /// An edge is in some assignment if it is in this one, or on an alternating cycle of it, or on an even alternating path to a slot with
    /// a row to spare (C. Berge; J.-C. Régin 1994): if slots are joined to those that their holders could move to, and slots with
    /// rows to spare to a sink that leads everywhere, the edges inside strongly connected components.
    pub(super) fn filter(&mut self, model: &mut Model, pool: u32, changed: &mut Vec<u32>) {
        let versions = model.pools[pool as usize].versions.clone();
        for &version in &versions {
            let slot = self.slot_of[version as usize];
            if slot != NOWHERE && model.versions[version as usize].slots.binary_search(&slot).is_err() {
                self.leave(version);
            }
        }
        for &version in &versions {
            if self.slot_of[version as usize] == NOWHERE && !self.find(model, version) {
                for &version in &versions {
                    let slots = &mut model.versions[version as usize].slots;
                    if !slots.is_empty() {
                        slots.clear();
                        changed.push(version);
                    }
                    self.leave(version);
                }
                return;
            }
        }
        let slots = model.pools[pool as usize].slots.clone();
        self.components.find(model, &self.holders, slots.clone());
        let component = |slot: u32| self.components.number[(slot - slots.start) as usize];
        for version in versions {
            let own = component(self.slot_of[version as usize]);
            let slots = &mut model.versions[version as usize].slots;
            let before = slots.len();
            slots.retain(|&slot| component(slot) == own);
            if slots.len() < before {
                changed.push(version);
            }
        }
    }

    fn leave(&mut self, version: u32) {
        let slot = std::mem::replace(&mut self.slot_of[version as usize], NOWHERE);
        if slot != NOWHERE {
            self.holders[slot as usize].retain(|&other| other != version);
        }
    }

    /// Finds a slot for a version, moving others if need be: a shortest augmenting path.
    fn find(&mut self, model: &Model, version: u32) -> bool {
        self.search += 1;
        self.queue.clear();
        if let Some(slot) = self.reach(model, version) {
            return self.shift(slot);
        }
        let mut next = 0;
        while let Some(&slot) = self.queue.get(next) {
            next += 1;
            for place in 0..self.holders[slot as usize].len() {
                let holder = self.holders[slot as usize][place];
                if let Some(free) = self.reach(model, holder) {
                    return self.shift(free);
                }
            }
        }
        false
    }

    /// Marks the slots that a version could have, until one has a row to spare.
    fn reach(&mut self, model: &Model, version: u32) -> Option<u32> {
        for &slot in &model.versions[version as usize].slots {
            if std::mem::replace(&mut self.seen[slot as usize], self.search) != self.search {
                self.by[slot as usize] = version;
                if self.holders[slot as usize].len() < model.slots[slot as usize].capacity as usize {
                    return Some(slot);
                }
                self.queue.push(slot);
            }
        }
        None
    }

    /// Moves the versions of the path that ends in this slot.
    fn shift(&mut self, mut slot: u32) -> bool {
        while slot != NOWHERE {
            let version = self.by[slot as usize];
            let left = self.slot_of[version as usize];
            self.leave(version);
            self.slot_of[version as usize] = slot;
            self.holders[slot as usize].push(version);
            slot = left;
        }
        true
    }
}

/// Strongly connected components of the slots of a pool.
///
/// R. Tarjan 1972, without recursion, for a release can be one pool and its paths as long as the release.
#[derive(Debug, Default)]
struct Components {
    /// First arc of each slot of the pool and of the sink, and one more.
    starts: Vec<u32>,
    arcs: Vec<u32>,
    /// Number of each one's component.
    number: Vec<u32>,
    order: Vec<u32>,
    low: Vec<u32>,
    open: Vec<u32>,
    path: Vec<(u32, u32)>,
}

impl Components {
    fn find(&mut self, model: &Model, holders: &[Vec<u32>], slots: std::ops::Range<u32>) {
        let sink = slots.end - slots.start;
        self.starts.clear();
        self.arcs.clear();
        for slot in slots.clone() {
            self.starts.push(self.arcs.len() as u32);
            let holders = &holders[slot as usize];
            let moves = holders.iter().flat_map(|&holder| &model.versions[holder as usize].slots);
            self.arcs.extend(moves.filter(|&&to| to != slot).map(|to| to - slots.start));
            if holders.len() < model.slots[slot as usize].capacity as usize {
                self.arcs.push(sink);
            }
        }
        self.starts.push(self.arcs.len() as u32);
        self.arcs.extend(0..sink);
        self.starts.push(self.arcs.len() as u32);
        let nodes = sink as usize + 1;
        for (numbers, value) in [(&mut self.number, NOWHERE), (&mut self.order, 0), (&mut self.low, 0)] {
            numbers.clear();
            numbers.resize(nodes, value);
        }
        let (mut time, mut found) = (0, 0);
        for root in 0..nodes as u32 {
            if self.order[root as usize] == 0 {
                self.search(root, &mut time, &mut found);
            }
        }
    }

    fn search(&mut self, root: u32, time: &mut u32, found: &mut u32) {
        self.enter(root, time);
        while let Some((node, arc)) = self.path.last_mut() {
            let node = *node;
            if let Some(&to) = self.arcs[..self.starts[node as usize + 1] as usize].get(*arc as usize) {
                *arc += 1;
                if self.order[to as usize] == 0 {
                    self.enter(to, time);
                } else if self.number[to as usize] == NOWHERE {
                    self.low[node as usize] = self.low[node as usize].min(self.order[to as usize]);
                }
                continue;
            }
            self.path.pop();
            if let Some(&(above, _)) = self.path.last() {
                self.low[above as usize] = self.low[above as usize].min(self.low[node as usize]);
            }
            if self.low[node as usize] == self.order[node as usize] {
                while let Some(member) = self.open.pop() {
                    self.number[member as usize] = *found;
                    if member == node {
                        break;
                    }
                }
                *found += 1;
            }
        }
    }

    fn enter(&mut self, node: u32, time: &mut u32) {
        *time += 1;
        self.order[node as usize] = *time;
        self.low[node as usize] = *time;
        self.open.push(node);
        self.path.push((node, self.starts[node as usize]));
    }
}
