//! What a snapshot must be when it leaves the window, whatever put it together.

use rustc_hash::FxHashMap;

use super::stream::{Departed, Placed};
use super::window::Value;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Check {
    l: usize,
    width: i64,
    /// Time of the snapshot that left last.
    before: Option<i64>,
    /// The latest original time that was published of each value.
    latest: FxHashMap<Value, i64>,
}

impl Check {
    pub(super) fn new(l: usize, width: i64) -> Self {
        Self { l, width, before: None, latest: FxHashMap::default() }
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
        // For each value how many there are, and the earliest and latest original time.
        let mut values: FxHashMap<Value, (usize, i64, i64)> = FxHashMap::default();
        for &Placed { record, home } in published {
            if home > *time || time.saturating_sub(home) >= self.width {
                return failed("distance");
            }
            let (count, first, last) = values.entry(record.value).or_insert((0, home, home));
            *count += 1;
            *first = home.min(*first);
            *last = home.max(*last);
        }
        let level = values.values().map(|&(count, ..)| count).max().unwrap_or(0);
        if level.saturating_mul(self.l) > published.len() {
            return failed("eligibility");
        }
        for (value, (_, first, last)) in values {
            if self.latest.insert(value, last).is_some_and(|before| before > first) {
                return failed("order of time");
            }
        }
        Ok(())
    }
}
