//! Values that a value becomes over several releases.

use rustc_hash::FxHashMap;

use super::super::Updates;

/// The update relation, composed over the releases that a person missed. Keeps what was asked for.
#[derive(Debug)]
pub(super) struct Reach<'a> {
    updates: &'a Updates,
    identity: bool,
    rows: FxHashMap<(u32, u64), Vec<u32>>,
}

impl<'a> Reach<'a> {
    pub(super) fn new(updates: &'a Updates) -> Self {
        Self { updates, identity: updates.is_identity(), rows: FxHashMap::default() }
    }

    /// Returns true if nothing ever changes.
    pub(super) fn is_identity(&self) -> bool {
        self.identity
    }

    /// Returns true if every value can become every other, so that histories rule out nothing.
    pub(super) fn is_any(&self) -> bool {
        self.updates.is_any()
    }

    /// Makes [`of`](Self::of) know a value and a number of steps.
    pub(super) fn prepare(&mut self, value: u32, steps: u64) {
        if self.identity || self.rows.contains_key(&(value, steps)) {
            return;
        }
        let mut row = vec![value];
        for step in 1..=steps {
            let mut next: Vec<u32> = row.iter().flat_map(|&value| self.updates.cus(value).map(|(to, _)| to)).collect();
            next.sort_unstable();
            next.dedup();
            self.rows.entry((value, step)).or_insert_with(|| next.clone());
            row = next;
        }
    }

    /// Returns the values that a value can be after some steps, ascending. Prepared before.
    pub(super) fn of<'b>(&'b self, value: &'b u32, steps: u64) -> &'b [u32] {
        match self.identity || steps == 0 {
            true => std::slice::from_ref(value),
            false => self.rows.get(&(*value, steps)).map_or(&[], Vec::as_slice),
        }
    }
}
