//! `cells`: in how many parts a release is made, one after the other.

use std::fmt;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_plan::ExecutionPlan;

use super::arguments::Arguments;
use super::signature::Parameter;
use crate::error::refusal;
use crate::exec::{bytes_of_release, expected_rows};
use crate::methods::AnyMethod;
use crate::microdata::{Layout, MOST_CELLS};

/// Fewer rows in a cell cost much: ranges are wider, and there are more counterfeits.
const LEAST_ROWS: usize = 1_000_000;

const CELLS: Parameter = Parameter::CELLS.at_least(1).at_most(MOST_CELLS as i64);

/// Number of cells that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedCells {
    /// A single cell while the table should fit the memory limit, else enough.
    Auto,
    /// So many cells.
    Number(u32),
}

/// Number of cells of a release, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChosenCells {
    pub cells: u32,
    pub rows: Option<usize>,
    /// Reason for the number, if nobody has said it.
    pub reason: Option<String>,
}

impl WantedCells {
    /// Reads the number of a call; for a function that knows no cells, 1.
    /// Fails when the number is out of range.
    pub(super) fn of(arguments: &Arguments) -> Result<Self> {
        let name = Parameter::CELLS.name;
        if arguments.word(name).is_some() {
            return Ok(Self::Auto);
        }
        Ok(arguments.integer(&CELLS)?.map_or(Self::Auto, |cells| Self::Number(cells as u32)))
    }

    /// Converts the number into a term of a publication: 0 lets the first release decide.
    /// Fails when its releases cannot be made in so many.
    pub(super) fn of_publication(self, method: &AnyMethod, layout: &Layout, stream: bool) -> Result<u32> {
        match self {
            Self::Number(1) => Ok(1),
            Self::Number(_) if stream => Err(refusal!(
                "publication",
                argument Parameter::CELLS.name,
                "releases of a stream that is repositioned cannot be made in cells: a record is published late because of all others that \
                 arrive with it; leave option cells out"
            )),
            Self::Number(cells) => method.cells_by(layout, true).map(|_| cells),
            Self::Auto if stream || !method.has_cells(layout, true) => Ok(1),
            Self::Auto => Ok(0),
        }
    }

    /// Decides on the number of cells. It depends on numbers of rows, types of columns and the memory limit, and on nothing in the data.
    pub(super) fn choose(
        self,
        method: &AnyMethod,
        layout: &Layout,
        remembered: bool,
        microdata: &Arc<dyn ExecutionPlan>,
        session: &dyn Session,
    ) -> ChosenCells {
        let rows = expected_rows(microdata);
        if let Self::Number(cells) = self {
            return ChosenCells { cells, rows, reason: None };
        }
        let limit = match session.runtime_env().memory_pool.memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit),
            _ => None,
        };
        let one = ChosenCells { cells: 1, rows, reason: None };
        let (Some(known), Some(limit)) = (rows, limit) else { return one };
        let needed = bytes_of_release(method, layout, known);
        if needed <= limit / 4 * 3 || !method.has_cells(layout, remembered) {
            return one;
        }
        // A quarter of the limit for a cell: the sorts below have as much again, and cells are not of one size.
        let cells = needed.div_ceil((limit / 4).max(1)).min(known / LEAST_ROWS).clamp(1, MOST_CELLS as usize);
        let reason = format!("about {} in one, limit {}", Bytes(needed), Bytes(limit));
        ChosenCells { cells: cells as u32, rows, reason: (cells > 1).then_some(reason) }
    }
}

struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mega = self.0 as f64 / f64::from(1 << 20);
        if mega < 1024.0 { write!(f, "{mega:.0} MiB") } else { write!(f, "{:.1} GiB", mega / 1024.0) }
    }
}
