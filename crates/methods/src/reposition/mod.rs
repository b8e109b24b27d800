//! Reposition: eligible snapshots from a skewed stream.
//!
//! Microdata that arrive day by day make small snapshots, and small snapshots are skewed: on most days some value is too frequent
//! for l-diversity, although it is not in the long run. So some records are published a few days late, and a few not at all, and
//! every snapshot that is published can be anonymized by any other method.
//!
//! # Guarantee
//! In every snapshot that is published no sensitive value makes up more than `1/l` of the records (*l-eligible*). Records are published
//! once, never before their time, and at most `window - 1` snapshots after it; those of a value keep their order in time. The
//! result is **not anonymous yet**: identifiers and quasi-identifiers are still in it. It is what a method of groups needs, snapshot by
//! snapshot.
//!
//! What the reader must not know: when somebody's record arrived. Records are late, or missing, because their value was too frequent on their
//! day; so who knows the day of a person and finds them published on another one, or not at all, learns that they probably have one of the
//! frequent values of that day. Nothing else shows: of the records of a value and a time, those that move are drawn at random, and so is
//! which value goes first when two gain alike.
//!
//! # Method
//! K. Wang, Y. Xu, R. Wong, A. Fu: *Anonymizing Temporal Data*, ICDM 2010. The last `window` snapshots are held back. Of the
//! snapshot that arrives, as few records as possible are suppressed; then suppressed records are *relayed* into it as long as that saves
//! more than it costs (*OptimalReposition*, Section V): each takes the place of a later record of its value, which moves on, so that
//! all earlier snapshots keep their counts. So how many records of each value are published at a time follows from the records up to
//! that time, and no later one changes it. Files: `cost`; `line` (one value along the window); `window` (the algorithm, on counts);
//! `record`, `stream` and `snapshot_records` (which records it is, by lot); `check`; `clock` (times to snapshots).
//!
//! Ours differs in that a level is lifted by at least one record, without which the result is not always optimal; in that the first window grows as
//! all others do (the paper places it as a whole, by an integer program, and then what is published of a day depends on days to come); and in
//! that records are counts until they leave the window.
//!
//! # Cost
//! For each snapshot one step for each of its records and, per relayed record, at most one for each snapshot of the window (Theorem 2).
//! Memory for the records of the window, and for those that moved on from the one before it.

mod check;
mod clock;
mod cost;
mod line;
mod record;
mod snapshot_records;
mod stream;
mod window;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use clock::Clock;
pub use cost::{Cost, MoveCost};

pub(crate) use cost::Costs;
pub use record::{Departed, Pending, Placed, Record};
pub use stream::Stream;

/// Most snapshots in a window.
const LONGEST: usize = 10_000;

/// Treatment of rows of snapshots that were closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Late {
    /// Publish nothing more.
    #[default]
    Refuse,
    /// Leave them out, and count them.
    Suppress,
}

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Reposition {
    /// No value makes up more than `1/l` of a snapshot.
    pub l: usize,
    /// Snapshots that are held back: a record is published at most `window - 1` snapshots late.
    pub window: usize,
    /// Growth of the cost of publishing late.
    pub move_cost: MoveCost,
    /// The cost of one snapshot late.
    pub move_factor: Cost,
    /// The cost of not publishing a record, for values that have none of their own. By default that of moving it out of the
    /// window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppress_cost: Option<Cost>,
}

impl Reposition {
    setters! {
        /// Sets the growth of the cost of publishing late.
        with_move_cost(move_cost: MoveCost);
        /// The cost of one snapshot late.
        with_move_factor(move_factor: Cost);
        /// The cost of not publishing a record.
        with_suppress_cost(suppress_cost: Option<Cost>);
    }

    /// Makes the method with the default costs.
    ///
    /// # Errors
    /// When `l` or the window is too small, or the window too long.
    pub fn try_new(l: usize, window: usize) -> Result<Self> {
        if l < 2 {
            return Err(Error::refused(format!("l must be at least 2, got {l}")));
        }
        if !(1..=LONGEST).contains(&window) {
            return Err(Error::refused(format!(
                "window must be from 1 (nothing moves) to {LONGEST} snapshots, got {window}"
            )));
        }
        let move_factor = Cost::try_new("move_factor", 1.0)?;
        Ok(Self { l, window, move_cost: MoveCost::Linear, move_factor, suppress_cost: None })
    }

    /// Costs of all distances in the window.
    fn costs(&self) -> Result<Costs> {
        let factor = self.move_factor.get();
        Costs::try_new((0..self.window).map(|distance| factor * self.move_cost.of(distance)).collect())
    }

    fn suppress_cost(&self) -> f64 {
        let out = || self.move_factor.get() * self.move_cost.of(self.window);
        self.suppress_cost.map_or_else(out, Cost::get)
    }
}
