//! The records of one sensitive value along the window, as counts: where they are from, and where they are to be published.
//!
//! Records of a value and a time are all alike here, so there is nothing in a record that could decide whether it moves; which of
//! them it is, is drawn when a snapshot leaves the window (`stream`).

use std::collections::VecDeque;

use super::cost::Costs;

/// Numbers of records by their original times, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Homes(VecDeque<(i64, u32)>);

impl Homes {
    pub(super) fn of(time: i64, count: u32) -> Self {
        Self(VecDeque::from([(time, count)]))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|&(_, count)| count as usize).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn latest(&self) -> Option<i64> {
        self.0.back().map(|&(home, _)| home)
    }

    /// Adds a record of an original time not later than any here.
    fn push_front(&mut self, home: i64) {
        match self.0.front_mut() {
            Some((first, count)) if *first == home => *count += 1,
            first => {
                debug_assert!(first.is_none_or(|first| first.0 > home));
                self.0.push_front((home, 1));
            }
        }
    }

    /// Adds a record of an original time not earlier than any here.
    fn push_back(&mut self, home: i64) {
        match self.0.back_mut() {
            Some((last, count)) if *last == home => *count += 1,
            last => {
                debug_assert!(last.is_none_or(|last| last.0 < home));
                self.0.push_back((home, 1));
            }
        }
    }

    fn pop_back(&mut self) -> Option<i64> {
        let (home, count) = self.0.back_mut()?;
        let home = *home;
        *count -= 1;
        if *count == 0 {
            self.0.pop_back();
        }
        Some(home)
    }

    fn pop_front(&mut self) -> Option<i64> {
        let (home, count) = self.0.front_mut()?;
        let home = *home;
        *count -= 1;
        if *count == 0 {
            self.0.pop_front();
        }
        Some(home)
    }

    /// Takes all records of a time, if it is the earliest.
    pub(super) fn take_first(&mut self, time: i64) -> u32 {
        match self.0.front() {
            Some(&(home, count)) if home == time => {
                self.0.pop_front();
                count
            }
            _ => 0,
        }
    }

    /// Adds records of any original time.
    pub(super) fn add(&mut self, home: i64, count: u32) {
        let at = self.0.partition_point(|&(other, _)| other < home);
        match self.0.get_mut(at) {
            Some((other, there)) if *other == home => *there += count,
            _ => self.0.insert(at, (home, count)),
        }
    }
}

/// `P_j[s]`: the records of a value that are to be published at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub time: i64,
    pub homes: Homes,
}

/// All records of a value `s` in the window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// `P_j[s]` as far as there are records in it, by time.
    pub slots: VecDeque<Slot>,
    /// `S_i[s]`.
    pub suppressed: Homes,
}

impl Line {
    /// Puts arrived records where the initial solution has them.
    pub(super) fn arrive(&mut self, end: i64, published: u32, suppressed: u32) {
        if published > 0 {
            self.slots.push_back(Slot { time: end, homes: Homes::of(end, published) });
        }
        if suppressed > 0 {
            self.suppressed.add(end, suppressed);
        }
    }

    /// Returns the beginnings of the slots between a time and the end of the window. The end itself is not between.
    fn between(&self, home: i64, end: i64) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let first = self.slots.partition_point(|slot| slot.time <= home);
        let last = self.slots.partition_point(|slot| slot.time < end);
        first..last
    }

    /// Returns the price of relaying the next candidate to the window's end (`psi`, Equation 6). It is the suppressed
    /// record of the latest time. `None` if nothing is suppressed.
    pub(super) fn price(&self, end: i64, costs: &Costs) -> Option<f64> {
        let home = self.suppressed.latest()?;
        // The record that moves, and where it is.
        let (mut moving, mut at, mut price) = (home, home, 0.0);
        for place in self.between(home, end) {
            let slot = &self.slots[place];
            price += costs.of(slot.time - moving) - costs.of(at - moving);
            at = slot.time;
            moving = slot.homes.latest().unwrap_or(moving).max(moving);
        }
        Some(price + costs.of(end - moving) - costs.of(at - moving))
    }

    /// Relays the next candidate: it takes the place of a record of the next slot, this one of the next, and so on; the last one
    /// goes to the end. Returns the candidate's time.
    pub(super) fn relay(&mut self, end: i64) -> Option<i64> {
        let home = self.suppressed.pop_back()?;
        let mut moving = home;
        for place in self.between(home, end) {
            let homes = &mut self.slots[place].homes;
            homes.push_front(moving);
            moving = homes.pop_back().unwrap_or(moving);
        }
        if self.slots.back().is_none_or(|slot| slot.time != end) {
            self.slots.push_back(Slot { time: end, homes: Homes::default() });
        }
        if let Some(last) = self.slots.back_mut() {
            match moving == end {
                true => last.homes.push_back(moving),
                false => last.homes.push_front(moving),
            }
        }
        Some(home)
    }

    /// Undoes the last relay, of a candidate of this time.
    pub(super) fn undo(&mut self, home: i64, end: i64) {
        let Some(last) = self.slots.back_mut().filter(|slot| slot.time == end) else { return };
        // What came from elsewhere came last and is the earliest; what is at home here is the latest.
        let moved = if home == end { last.homes.pop_back() } else { last.homes.pop_front() };
        let mut moving = moved.unwrap_or(home);
        if last.homes.is_empty() {
            self.slots.pop_back();
        }
        for place in self.between(home, end).rev() {
            let homes = &mut self.slots[place].homes;
            homes.push_back(moving);
            moving = homes.pop_front().unwrap_or(moving);
        }
        debug_assert_eq!(moving, home);
        self.suppressed.push_back(moving);
    }

    /// Takes the records to be published at a time, if it is the window's first.
    pub(super) fn leave(&mut self, time: i64) -> Homes {
        match self.slots.front() {
            Some(slot) if slot.time == time => self.slots.pop_front().map(|slot| slot.homes).unwrap_or_default(),
            _ => Homes::default(),
        }
    }
}
