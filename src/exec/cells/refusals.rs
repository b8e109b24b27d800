//! Cells that cannot be released: all of them are looked for, so that who made the release knows whether it was one or most.

use datafusion::common::Result;

use crate::error::{Error, thousands};

/// The cells of a release that were refused so far.
pub(in crate::exec) struct Refusals {
    of: u32,
    refused: usize,
    first: Option<(String, usize)>,
}

impl Refusals {
    pub(in crate::exec) fn of(cells: u32) -> Self {
        Self { of: cells, refused: 0, first: None }
    }

    /// Whether a cell was refused: then nothing is released any more.
    pub(in crate::exec) fn any(&self) -> bool {
        self.refused > 0
    }

    /// What making a cell of so many rows came to; `None` if it was refused.
    pub(in crate::exec) fn take<T>(&mut self, made: Tried<T>, rows: usize) -> Option<T> {
        match made {
            Tried::Released(made) => Some(made),
            Tried::Refused(message) => {
                self.refused += 1;
                self.first.get_or_insert((message, rows));
                None
            }
        }
    }

    /// When all cells were looked at.
    ///
    /// # Errors
    /// When some were refused; nothing may be published then.
    pub(in crate::exec) fn check(self, function: &str) -> Result<()> {
        let Some((message, rows)) = self.first else { return Ok(()) };
        let text = format!(
            "{} of the {} cells cannot be released; the first of them, of {} rows: {message}. In fewer cells (cells => ..) it may be possible",
            thousands(self.refused),
            thousands(self.of as usize),
            thousands(rows)
        );
        Err(Error::refused(text).in_function(function))
    }
}

/// What making a cell came to.
pub(in crate::exec) enum Tried<T> {
    Released(T),
    Refused(String),
}

impl<T> Tried<T> {
    /// Refusals of the data are counted. All else ends a release at once.
    ///
    /// # Errors
    /// Those that are no refusals.
    pub(in crate::exec) fn of(made: crate::error::Result<T>) -> crate::error::Result<Self> {
        match made {
            Ok(made) => Ok(Self::Released(made)),
            Err(Error::Refused(message)) => Ok(Self::Refused(message)),
            Err(other) => Err(other),
        }
    }
}
