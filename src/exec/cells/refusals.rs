//! Cells that cannot be released: all of them are looked for, so that the publisher knows whether it was one or most.

use datafusion::common::Result;

use crate::error::{Asked, Error, Refusal, thousands};

/// The cells of a release that were refused so far.
pub(in crate::exec) struct Refusals {
    of: u32,
    refused: usize,
    first: Option<(Refusal, usize)>,
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
            Tried::Refused(refusal) => {
                self.refused += 1;
                self.first = Some(match self.first.take() {
                    Some((first, rows)) => (first.and(&refusal), rows),
                    None => (refusal, rows),
                });
                None
            }
        }
    }

    /// When all cells were looked at. A release that is made as a whole has one, whose refusal is said as it is.
    ///
    /// # Errors
    /// When some were refused; nothing may be published then.
    pub(in crate::exec) fn check(self, function: &str, asked: Asked) -> Result<()> {
        let Some((first, rows)) = self.first else { return Ok(()) };
        if self.of == 1 {
            return Err(Error::Refused(first).said(asked).in_function(function));
        }
        let (refused, of, rows) = (thousands(self.refused), thousands(self.of as usize), thousands(rows));
        let whole = match asked {
            Asked::Call => " (cells => 1 makes the release as a whole)",
            Asked::First => " (the option 'cells' '1' makes releases as a whole)",
            Asked::Later => "",
        };
        let all = first.within(|text| {
            format!("{refused} of the {of} cells cannot be released; the first of them, of {rows} rows{whole}: {text}")
        });
        Err(Error::Refused(all).said(asked).in_function(function))
    }
}

/// What making a cell came to.
pub(in crate::exec) enum Tried<T> {
    Released(T),
    Refused(Refusal),
}

impl<T> Tried<T> {
    /// Refusals of the data are counted. All else ends a release at once.
    ///
    /// # Errors
    /// Those that are no refusals.
    pub(in crate::exec) fn of(made: crate::error::Result<T>) -> crate::error::Result<Self> {
        match made {
            Ok(made) => Ok(Self::Released(made)),
            Err(Error::Refused(refusal)) => Ok(Self::Refused(refusal)),
            Err(other) => Err(other),
        }
    }
}
