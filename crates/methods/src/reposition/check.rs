//! Conditions on a snapshot when it leaves the window, however it was put together.

use super::record::{Departed, Placed};
use super::window::Value;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Check {
    l: usize,
    width: i64,
    /// Time of the snapshot that left last.
    before: Option<i64>,
    /// By the number of the value.
    values: Vec<Published>,
}

#[derive(Debug, Clone, Copy)]
struct Published {
    /// The latest original time in all snapshots before.
    latest: i64,
    /// At the time that is checked: how many records, and the earliest and latest original time of them. Nothing between checks.
    count: usize,
    first: i64,
    last: i64,
}

const NOTHING: Published = Published { latest: i64::MIN, count: 0, first: i64::MAX, last: i64::MIN };

impl Check {
    pub(super) fn new(l: usize, width: i64) -> Self {
        Self { l, width, before: None, values: Vec::new() }
    }

    /// Returns the bytes held, by a value's number.
    pub(super) fn size(&self) -> usize {
        self.values.capacity() * size_of::<Published>()
    }

    /// # Errors
    /// When the snapshot is not l-eligible, when a record is published before its time, too late or before an earlier one of its
    /// value, and when snapshots do not leave in order.
    pub(super) fn check(&mut self, departed: &Departed) -> Result<()> {
        let Departed { time, published, suppressed } = departed;
        let failed = |what: &str| {
            Err(Error::internal(format!("a snapshot failed its own check ({what}); it was not published")))
        };
        if self.before.replace(*time).is_some_and(|before| before >= *time) {
            return failed("order of snapshots");
        }
        if suppressed.iter().any(|placed| placed.home != *time) {
            return failed("suppressed records of another time");
        }
        let mut seen: Vec<Value> = Vec::new();
        for &Placed { record, home } in published {
            if home > *time || time.saturating_sub(home) >= self.width {
                return failed("distance");
            }
            let value = record.value as usize;
            if value >= self.values.len() {
                self.values.resize(value + 1, NOTHING);
            }
            let of_value = &mut self.values[value];
            if of_value.count == 0 {
                seen.push(record.value);
            }
            of_value.count += 1;
            of_value.first = home.min(of_value.first);
            of_value.last = home.max(of_value.last);
        }
        let level = seen.iter().map(|&value| self.values[value as usize].count).max().unwrap_or(0);
        if level.saturating_mul(self.l) > published.len() {
            return failed("eligibility");
        }
        for value in seen {
            let of_value = &mut self.values[value as usize];
            let Published { latest, first, last, .. } = *of_value;
            *of_value = Published { latest: last, ..NOTHING };
            if latest > first {
                return failed("order of time");
            }
        }
        Ok(())
    }
}
