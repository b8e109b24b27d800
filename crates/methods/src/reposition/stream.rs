//! The stream: records come in snapshot by snapshot, and leave when theirs leaves the window.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Reposition;
use super::check::Check;
use super::record::{Departed, Pending, Placed, Record};
use super::snapshot_records::{SnapshotRecords, reorder};
use super::window::{Left, Value, Window, mix};
use crate::error::{Error, Result};

/// Counts of all records so far, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Records that arrived.
    pub(crate) arrived: usize,
    /// Records that were published.
    pub published: usize,
    /// Records that are published late.
    pub moved: usize,
    /// Sum of the delays of these records, in snapshots.
    pub distance: usize,
    /// Records that were never published.
    pub suppressed: usize,
}

/// A stream while it is repositioned.
#[derive(Debug)]
pub struct Stream {
    window: Window,
    /// Snapshots that are held back.
    width: i64,
    /// Cost of suppression of values that have none of their own.
    suppress_cost: f64,
    /// Records by their original time.
    homes: BTreeMap<i64, SnapshotRecords>,
    /// Time of the newest snapshot.
    newest: Option<i64>,
    held: usize,
    check: Check,
    totals: Totals,
}

impl Stream {
    /// Starts a stream without records.
    ///
    /// # Errors
    /// When the costs of distances are not convex, or not finite.
    pub fn try_new(params: &Reposition) -> Result<Self> {
        Ok(Self {
            window: Window::new(params.l, params.costs()?),
            width: params.window as i64,
            suppress_cost: params.suppress_cost(),
            homes: BTreeMap::new(),
            newest: None,
            held: 0,
            check: Check::new(params.l, params.window as i64),
            totals: Totals::default(),
        })
    }

    /// Adds the next value, with its cost of suppression and a secret random number.
    pub fn add_value(&mut self, suppress_cost: Option<f64>, tie: u64) {
        self.window.add_value(suppress_cost.unwrap_or(self.suppress_cost), tie);
    }

    /// Returns the number of known values.
    pub fn values(&self) -> usize {
        self.window.values()
    }

    /// Returns the time of the newest snapshot.
    pub fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// Returns what became of all records so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        let homes = self.homes.values().map(SnapshotRecords::size).sum::<usize>();
        self.window.size() + homes + self.check.size()
    }

    /// Takes in the snapshot of a time, which is later than all before. What leaves the window is handed to `leave`.
    ///
    /// # Errors
    /// Those of `leave`; an internal one when a snapshot fails the check.
    pub fn arrive(
        &mut self,
        time: i64,
        records: Vec<Record>,
        leave: &mut impl FnMut(Departed) -> Result<()>,
    ) -> Result<()> {
        if let Some(newest) = self.newest {
            if time <= newest {
                return Err(Error::internal("a snapshot that is not later than the ones before"));
            }
            // Snapshots in between are empty, but suppressed records may be published in them.
            let mut empty = newest;
            while self.window.is_waiting() && empty + 1 < time {
                empty += 1;
                self.leave_before(empty, leave)?;
                if self.window.is_waiting() {
                    self.window.arrive(empty, &[]);
                }
            }
        }
        self.leave_before(time, leave)?;
        self.newest = Some(time);
        if records.is_empty() && !self.window.is_waiting() {
            return Ok(());
        }
        self.totals.arrived += records.len();
        self.held += records.len();
        let home = SnapshotRecords::new(records);
        self.window.arrive(time, &home.counts());
        if home.left() > 0 {
            self.homes.insert(time, home);
        }
        Ok(())
    }

    /// Ends the stream: what is held back is published where it is, which is eligible.
    ///
    /// # Errors
    /// As for [`arrive`](Self::arrive).
    pub fn finish(&mut self, leave: &mut impl FnMut(Departed) -> Result<()>) -> Result<()> {
        while let Some(left) = self.window.leave() {
            self.depart(left, leave)?;
        }
        match self.held == 0 && self.homes.is_empty() {
            true => Ok(()),
            false => Err(Error::internal("records were lost; nothing more was published")),
        }
    }

    /// Takes out all that is held back, by original time.
    ///
    /// # Errors
    /// When a record is missing, which is a bug.
    pub fn pending(&mut self) -> Result<Vec<Pending>> {
        let mut pending = Vec::with_capacity(self.held);
        while let Some(left) = self.window.leave() {
            let Departed { time, published, suppressed } = self.drawn(left)?;
            pending.extend(published.into_iter().map(|placed| Pending { placed, place: Some(time) }));
            pending.extend(suppressed.into_iter().map(|placed| Pending { placed, place: None }));
        }
        match self.held == 0 && self.homes.is_empty() {
            true => Ok(pending),
            false => Err(Error::internal("records were lost; nothing more was published")),
        }
    }

    /// Continues an earlier stream from held back records and its newest snapshot's time. All values are known.
    ///
    /// # Errors
    /// When a record is out of the window, which means that it was not held back by a stream of these parameters.
    pub fn restore(&mut self, pending: &[Pending], newest: i64) -> Result<()> {
        use super::line::Homes;
        type Sets = (BTreeMap<Value, Homes>, BTreeMap<Value, u32>);
        let mut snapshots: BTreeMap<i64, Sets> = BTreeMap::new();
        let mut homes: BTreeMap<i64, Vec<Record>> = BTreeMap::new();
        for &Pending { placed: Placed { record, home }, place } in pending {
            let time = place.unwrap_or(home);
            let fits = home <= time
                && time.saturating_sub(home) < self.width
                && time <= newest
                && time > newest.saturating_sub(self.width);
            if !fits || record.value as usize >= self.values() {
                return Err(Error::refused("what is held back is not of this stream"));
            }
            let (published, suppressed) = snapshots.entry(time).or_default();
            match place {
                Some(_) => published.entry(record.value).or_default().add(home, 1),
                None => *suppressed.entry(record.value).or_default() += 1,
            }
            homes.entry(home).or_default().push(record);
        }
        for (time, (published, suppressed)) in snapshots {
            let suppressed: Vec<(Value, u32)> = suppressed.into_iter().collect();
            self.window.restore(time, published.into_iter().collect(), &suppressed);
        }
        self.homes = homes.into_iter().map(|(time, records)| (time, SnapshotRecords::new(records))).collect();
        self.held = pending.len();
        self.totals.arrived = pending.len();
        self.newest = Some(newest);
        Ok(())
    }

    /// Releases the snapshots that leave the window when one of this time arrives.
    fn leave_before(&mut self, time: i64, leave: &mut impl FnMut(Departed) -> Result<()>) -> Result<()> {
        while self.window.first().is_some_and(|first| first <= time.saturating_sub(self.width)) {
            if let Some(left) = self.window.leave() {
                self.depart(left, leave)?;
            }
        }
        if self.held == 0 {
            self.window.clear();
        }
        Ok(())
    }

    fn depart(&mut self, left: Left, leave: &mut impl FnMut(Departed) -> Result<()>) -> Result<()> {
        let mut departed = self.drawn(left)?;
        if departed.published.is_empty() && departed.suppressed.is_empty() {
            return Ok(());
        }
        let time = departed.time;
        // Another order than the one that they were drawn in.
        let salt = mix(time as u64);
        reorder(&mut departed.published, salt);
        reorder(&mut departed.suppressed, salt);
        self.check.check(&departed)?;
        let late = departed.published.iter().filter(|placed| placed.home != time);
        self.totals.moved += late.clone().count();
        self.totals.distance += late.map(|placed| (time - placed.home) as usize).sum::<usize>();
        self.totals.published += departed.published.len();
        self.totals.suppressed += departed.suppressed.len();
        if self.totals.published + self.totals.suppressed + self.held != self.totals.arrived {
            return Err(Error::internal("records were lost or doubled; nothing more was published"));
        }
        leave(departed)
    }

    fn drawn(&mut self, left: Left) -> Result<Departed> {
        let published = left.published.iter().map(|(_, homes)| homes.len()).sum();
        let mut departed =
            Departed { time: left.time, published: Vec::with_capacity(published), suppressed: Vec::new() };
        for (value, homes) in left.published {
            for (home, count) in homes.iter() {
                self.draw(home, value, count, &mut departed.published)?;
            }
        }
        for (value, count) in left.suppressed {
            self.draw(left.time, value, count, &mut departed.suppressed)?;
        }
        Ok(departed)
    }

    /// Draws some records of a value and an original time.
    fn draw(&mut self, home: i64, value: Value, count: u32, drawn: &mut Vec<Placed>) -> Result<()> {
        let missing = || Error::internal("a record that is to be published is missing; nothing more was published");
        let Entry::Occupied(mut entry) = self.homes.entry(home) else { return Err(missing()) };
        entry.get_mut().draw(value, count as usize, home, drawn).ok_or_else(missing)?;
        if entry.get().left() == 0 {
            entry.remove();
        }
        self.held -= count as usize;
        Ok(())
    }
}
