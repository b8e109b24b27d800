//! Records: as they arrive, placed, departed and held back.

use super::window::Value;

/// A record of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its sensitive value.
    pub value: Value,
    /// A secret random number, by which records are drawn.
    pub priority: u64,
    /// Number that the caller gave the record.
    pub row: u64,
}

/// A record that was given a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The record.
    pub record: Record,
    /// Its original time.
    pub home: i64,
}

/// A snapshot that has left the window: both sets are final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departed {
    /// Time of the snapshot.
    pub time: i64,
    /// Published at this time, in random order.
    pub published: Vec<Placed>,
    /// Of this time, and never published.
    pub suppressed: Vec<Placed>,
}

/// A record that is held back, with its place so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// The record and its original time.
    pub placed: Placed,
    /// Time of the snapshot that would publish it now; `None` if it would be suppressed.
    pub place: Option<i64>,
}
