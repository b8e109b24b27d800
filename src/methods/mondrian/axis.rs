//! How far apart the values of an attribute are, and which of them can be told from the rest.

use std::sync::Arc;

use crate::error::{Error, Result, thousands};
use crate::microdata::{Attribute, Hierarchy, Microdata};

/// Codes up to this are whole numbers as `f32`.
const EXACT: usize = 1 << 24;
/// Attributes with more values than this are measured by positions themselves: places of so many values do not stay in the
/// cache. From some millions of values on, neighbours may share a position; they are cut like equal values.
const FEW: usize = 1 << 14;
/// Hierarchies with up to so many leaves have a table of the extents between any two.
const TABLED: usize = 128;

/// A quasi-identifier as cuts see it. Rows have a position on it, an `f32` from 0 that ascends with the codes.
#[derive(Debug)]
pub(super) enum Axis {
    /// Few values: positions are codes; each has a place in the domain, 0 to 1.
    Points { places: Arc<[f32]> },
    /// Many values: positions are places.
    Line { places: Arc<[f32]> },
    /// Leaves of a hierarchy: positions are codes.
    Tree { hierarchy: Arc<Hierarchy>, leaves: usize, extents: Vec<f32> },
}

impl Axis {
    pub(super) fn all(microdata: &Microdata) -> Result<Vec<Self>> {
        microdata.quasi.iter().map(|attribute| Self::try_new(attribute, microdata.rows)).collect()
    }

    /// That of one of so many rows.
    ///
    /// # Errors
    /// When a hierarchy has too many leaves.
    pub(super) fn try_new(attribute: &Attribute, rows: usize) -> Result<Self> {
        let leaves = attribute.domain.len();
        let Some(hierarchy) = &attribute.hierarchy else {
            let places = places(attribute.domain.positions());
            return Ok(if leaves <= FEW { Self::Points { places } } else { Self::Line { places } });
        };
        if leaves > EXACT {
            return Err(Error::refused(format!(
                "the hierarchy of {} has more than {} leaves, which is not supported",
                attribute.field.name(),
                thousands(EXACT)
            )));
        }
        // Not for a handful of rows, of which there may be many when a table is anonymized part by part.
        let known = if leaves <= TABLED && leaves * leaves <= rows { leaves as u32 } else { 0 };
        let pairs = (0..known).flat_map(|lo| (0..known).map(move |hi| (lo.min(hi), lo.max(hi))));
        let extents = pairs.map(|(lo, hi)| tree_extent(hierarchy, leaves, lo, hi)).collect();
        Ok(Self::Tree { hierarchy: Arc::clone(hierarchy), leaves, extents })
    }

    /// Position of a code.
    #[inline]
    pub(super) fn at(&self, code: u32) -> f32 {
        match self {
            Self::Line { places } => places[code as usize],
            Self::Points { .. } | Self::Tree { .. } => code as f32,
        }
    }

    /// Length of what would be published for the positions from `lo` to `hi`, as a share of the whole domain.
    #[inline]
    pub(super) fn extent(&self, lo: f32, hi: f32) -> f32 {
        match self {
            Self::Line { .. } => hi - lo,
            Self::Points { places } => places[hi as usize] - places[lo as usize],
            Self::Tree { hierarchy, leaves, extents } => match extents.get(lo as usize * leaves + hi as usize) {
                Some(extent) => *extent,
                None => tree_extent(hierarchy, *leaves, lo as u32, hi as u32),
            },
        }
    }

    /// Whether positions are the codes themselves.
    pub(super) fn is_exact(&self) -> bool {
        !matches!(self, Self::Line { .. })
    }

    /// Calls `pick` with every run of neighbouring values, out of some, that can be told from the rest: single values, and
    /// nodes of the hierarchy below the one that holds all. Runs are ranges of places in `values`, which ascend.
    pub(super) fn picks(&self, values: &[f32], mut pick: impl FnMut(usize, usize)) {
        (0..values.len()).for_each(|place| pick(place, place));
        let Self::Tree { hierarchy, .. } = self else { return };
        let node = |level: usize, place: usize| hierarchy.node(level, values[place] as u32);
        for level in 0..hierarchy.levels() {
            if node(level, 0) == node(level, values.len() - 1) {
                return;
            }
            let mut first = 0;
            while first < values.len() {
                let mut last = first;
                while last + 1 < values.len() && node(level, last + 1) == node(level, first) {
                    last += 1;
                }
                // Of a node with one child that occurs, the child was there before.
                let lower = level.checked_sub(1).is_none_or(|below| node(below, first) != node(below, last));
                if first < last && lower {
                    pick(first, last);
                }
                first = last + 1;
            }
        }
    }

    /// Where cuts in the middle may be, as the last positions below them, out of `lo..=hi`: `None` for anywhere.
    pub(super) fn boundaries(&self, lo: f32, hi: f32) -> Option<Vec<f32>> {
        match self {
            Self::Tree { hierarchy, .. } => {
                let children = hierarchy.children(lo as u32, hi as u32);
                Some(children.into_iter().map(|[_, last]| last as f32).filter(|last| (lo..hi).contains(last)).collect())
            }
            Self::Points { .. } | Self::Line { .. } => None,
        }
    }
}

/// Half by value, half by rank. By value alone, one wrong date or one very rich person would leave everybody else in a corner
/// that is not worth a cut; by rank alone, the distance between the few who are far apart would not count.
fn places(by_value: &[f32]) -> Arc<[f32]> {
    let steps = (by_value.len().max(2) - 1) as f32;
    by_value.iter().enumerate().map(|(rank, place)| (place + rank as f32 / steps) / 2.0).collect()
}

fn tree_extent(hierarchy: &Hierarchy, leaves: usize, lo: u32, hi: u32) -> f32 {
    let [first, last] = hierarchy.closure(lo, hi);
    (last - first) as f32 / (leaves.max(2) - 1) as f32
}
