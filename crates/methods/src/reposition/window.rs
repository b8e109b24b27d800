//! The window: the snapshots that are held back, and the algorithm *OptimalReposition* on them (Section V of the paper).

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::cost::Costs;
use super::line::{Homes, Line, Slot};

/// A sensitive value, by number.
pub(crate) type Value = u32;

#[derive(Debug, Clone)]
pub(super) struct Window {
    l: usize,
    costs: Costs,
    lines: Vec<Line>,
    /// Cost of suppressing a record of each value, and a secret number to break ties.
    values: Vec<(f64, u64)>,
    /// Values that have suppressed records.
    waiting: Vec<Value>,
    is_waiting: Vec<bool>,
    snapshots: VecDeque<Snapshot>,
}

/// A snapshot in the window: which values have records in `P_i` or `S_i`, or had them in `S_i`.
#[derive(Debug, Clone)]
struct Snapshot {
    time: i64,
    values: Vec<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub time: i64,
    /// Values, and the original times of the records that are published.
    pub published: Vec<(Value, Homes)>,
    /// Values, and how many records of this time are not published.
    pub suppressed: Vec<(Value, u32)>,
}

/// The set `P` at the end of the window while records are relayed to it.
#[derive(Debug, Clone, Copy)]
struct Ending {
    time: i64,
    total: usize,
    /// Most records of a value.
    level: usize,
}

/// A suppressed record that could be relayed, the latest one of its value.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    gain: f64,
    /// Random: between values that gain alike nothing else may decide.
    tie: u64,
    value: Value,
}

impl Window {
    pub(super) fn new(l: usize, costs: Costs) -> Self {
        Self {
            l,
            costs,
            lines: Vec::new(),
            values: Vec::new(),
            waiting: Vec::new(),
            is_waiting: Vec::new(),
            snapshots: VecDeque::new(),
        }
    }

    /// Adds the next value's cost of suppression, and its random number.
    pub(super) fn add_value(&mut self, suppress_cost: f64, tie: u64) {
        self.values.push((suppress_cost, tie));
        self.lines.push(Line::default());
        self.is_waiting.push(false);
    }

    pub(super) fn values(&self) -> usize {
        self.values.len()
    }

    pub(super) fn first(&self) -> Option<i64> {
        self.snapshots.front().map(|snapshot| snapshot.time)
    }

    /// Returns true if a suppressed record could still be published. A snapshot without records of its own may get some.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets the snapshots, none of which has records any more.
    pub(super) fn clear(&mut self) {
        self.snapshots.clear();
    }

    /// Returns all records, by value.
    #[cfg(test)]
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(super) fn size(&self) -> usize {
        let slots: usize = self.lines.iter().map(|line| line.slots.len()).sum();
        let listed: usize = self.snapshots.iter().map(|snapshot| snapshot.values.len()).sum();
        self.lines.len() * (size_of::<Line>() + 64) + slots * (size_of::<Slot>() + 64) + listed * size_of::<Value>()
    }

    /// Takes in a snapshot: numbers of records of each value, each value once. First those that have left must have been taken out.
    pub(super) fn arrive(&mut self, time: i64, counts: &[(Value, u32)]) {
        let level = self.initial_level(counts);
        let mut end = Ending { time, total: 0, level: 0 };
        let mut values = Vec::with_capacity(counts.len());
        for &(value, count) in counts {
            let published = count.min(level);
            end.total += published as usize;
            end.level = end.level.max(published as usize);
            self.lines[value as usize].arrive(time, published, count - published);
            if count > published {
                self.wait(value);
            }
            values.push(value);
        }
        self.snapshots.push_back(Snapshot { time, values });
        self.optimize(end);
        self.wait_no_more();
    }

    /// Puts back a snapshot as an earlier window had it: the original times of records to be published, and the numbers of those
    /// that are suppressed. Snapshots come in order.
    pub(super) fn restore(&mut self, time: i64, published: Vec<(Value, Homes)>, suppressed: &[(Value, u32)]) {
        let mut values: Vec<Value> = Vec::new();
        for (value, homes) in published {
            values.push(value);
            self.lines[value as usize].slots.push_back(Slot { time, homes });
        }
        for &(value, count) in suppressed {
            values.push(value);
            self.lines[value as usize].suppressed.add(time, count);
            self.wait(value);
        }
        values.sort_unstable();
        values.dedup();
        self.snapshots.push_back(Snapshot { time, values });
    }

    /// Takes out the first snapshot.
    pub(super) fn leave(&mut self) -> Option<Left> {
        let Snapshot { time, values } = self.snapshots.pop_front()?;
        let mut left = Left { time, ..Left::default() };
        for value in values {
            let line = &mut self.lines[value as usize];
            let homes = line.leave(time);
            if !homes.is_empty() {
                left.published.push((value, homes));
            }
            let suppressed = line.suppressed.take_first(time);
            if suppressed > 0 {
                left.suppressed.push((value, suppressed));
            }
        }
        self.wait_no_more();
        Some(left)
    }

    /// Forgets that values wait that have nothing suppressed any more.
    fn wait_no_more(&mut self) {
        let (lines, is_waiting) = (&self.lines, &mut self.is_waiting);
        self.waiting.retain(|&value| {
            is_waiting[value as usize] = !lines[value as usize].suppressed.is_empty();
            is_waiting[value as usize]
        });
    }

    fn wait(&mut self, value: Value) {
        if !std::mem::replace(&mut self.is_waiting[value as usize], true) {
            self.waiting.push(value);
        }
    }

    /// Returns the number of records of each value that the initial solution keeps: the greatest number with which the
    /// rest is l-eligible. Dropping a record of the most frequent value until it is comes to the same.
    fn initial_level(&self, counts: &[(Value, u32)]) -> u32 {
        let mut sizes: Vec<u32> = counts.iter().map(|&(_, count)| count).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let mut rest: usize = sizes.iter().map(|&size| size as usize).sum();
        // With the k most frequent values cut to a level, `k * level + rest` records are left.
        for (k, &size) in sizes.iter().enumerate() {
            if size as usize * self.l <= k * size as usize + rest {
                return size;
            }
            rest -= size as usize;
            let next = sizes.get(k + 1).copied().unwrap_or(0);
            // level * l <= (k + 1) * level + rest
            let cut = k + 1;
            let most = match self.l.checked_sub(cut) {
                Some(short) if short > 0 => (rest / short).min(size as usize),
                _ => size as usize,
            };
            if most as u32 >= next {
                return most as u32;
            }
        }
        0
    }

    fn optimize(&mut self, mut end: Ending) {
        let mut candidates: BinaryHeap<Candidate> =
            self.waiting.iter().filter_map(|&value| self.candidate(value, end.time)).collect();
        loop {
            self.keep_level(&mut end, &mut candidates);
            if !self.lift_level(&mut end, &mut candidates) {
                return;
            }
        }
    }

    fn candidate(&self, value: Value, end: i64) -> Option<Candidate> {
        let price = self.lines[value as usize].price(end, &self.costs)?;
        let (suppress_cost, tie) = self.values[value as usize];
        Some(Candidate { gain: suppress_cost - price, tie: mix(tie ^ mix(end as u64)), value })
    }

    /// Returns the number of records of a value at the end of the window.
    fn at_end(&self, value: Value, end: i64) -> usize {
        match self.lines[value as usize].slots.back() {
            Some(slot) if slot.time == end => slot.homes.len(),
            _ => 0,
        }
    }

    /// Relays records that gain while the rest stays l-eligible (LP-Reposition).
    fn keep_level(&mut self, end: &mut Ending, candidates: &mut BinaryHeap<Candidate>) {
        let mut full = Vec::new();
        while let Some(best) = candidates.pop() {
            if best.gain <= 0.0 {
                candidates.push(best);
                break;
            }
            let cap = end.level.max((end.total + 1) / self.l);
            if self.at_end(best.value, end.time) >= cap {
                full.push(best);
                continue;
            }
            self.relay(best.value, end);
            candidates.extend(self.candidate(best.value, end.time));
            if end.level.max((end.total + 1) / self.l) > cap {
                candidates.extend(full.drain(..));
            }
        }
        candidates.extend(full);
    }

    /// Relays just as many records as the next level needs, if that gains (LL-Reposition). `false`, and nothing has changed, if not.
    fn lift_level(&mut self, end: &mut Ending, candidates: &mut BinaryHeap<Candidate>) -> bool {
        let before = *end;
        let cap = end.level.max(end.total / self.l) + 1;
        let needed = (cap * self.l).saturating_sub(end.total).max(1);
        let (mut full, mut relayed, mut gain) = (Vec::new(), Vec::with_capacity(needed.min(1024)), 0.0);
        while relayed.len() < needed
            && let Some(best) = candidates.pop()
        {
            if self.at_end(best.value, end.time) >= cap {
                full.push(best);
                continue;
            }
            let home = self.relay(best.value, end);
            gain += best.gain;
            relayed.push((best.value, home));
            candidates.extend(self.candidate(best.value, end.time));
        }
        candidates.extend(full);
        if relayed.len() == needed && gain > 0.0 {
            return true;
        }
        for (value, home) in relayed.into_iter().rev() {
            if let Some(home) = home {
                self.lines[value as usize].undo(home, end.time);
            }
        }
        *end = before;
        false
    }

    fn relay(&mut self, value: Value, end: &mut Ending) -> Option<i64> {
        let home = self.lines[value as usize].relay(end.time)?;
        let there = self.at_end(value, end.time);
        if there == 1
            && let Some(snapshot) = self.snapshots.back_mut()
            && home != end.time
        {
            // Named twice at worst: the second time, nothing is left to take.
            snapshot.values.push(value);
        }
        end.total += 1;
        end.level = end.level.max(there);
        Some(home)
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(self.tie.cmp(&other.tie)).then(self.value.cmp(&other.value))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// Mixes a random number into another one (the finalizer of SplitMix64).
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
