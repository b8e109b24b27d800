//! How far apart the values of an attribute are, and which of them can be told from the rest.

use std::sync::Arc;

use crate::error::{Error, Result, thousands};
use crate::microdata::{Attribute, Hierarchy, Microdata};

/// Codes up to this are whole numbers as `f32`. Of attributes with more values, neighbours may share a position: they are
/// cut like equal values.
const EXACT: usize = 1 << 24;
/// Hierarchies with up to so many leaves have a table of the extents between any two.
const TABLED: usize = 128;

/// A quasi-identifier as cuts see it. A row's position on it is its code.
#[derive(Debug)]
pub(super) enum Axis {
    /// Values in order, with the place of each in the domain, 0 to 1.
    Points { places: Arc<[f32]> },
    /// Leaves of a hierarchy.
    Tree { hierarchy: Arc<Hierarchy>, leaves: usize, extents: Vec<f32> },
}

impl Axis {
    pub(super) fn all(microdata: &Microdata) -> Result<Vec<Self>> {
        microdata.quasi.iter().map(|attribute| Self::try_new(attribute, microdata.rows)).collect()
    }

    fn try_new(attribute: &Attribute, rows: usize) -> Result<Self> {
        let leaves = attribute.domain.len();
        let Some(hierarchy) = &attribute.hierarchy else {
            return Ok(Self::Points { places: places(attribute.domain.positions()) });
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

    /// Length of what would be published for the positions from `lo` to `hi`, as a share of the whole domain.
    #[inline]
    pub(super) fn extent(&self, lo: f32, hi: f32) -> f32 {
        match self {
            Self::Points { places } => {
                let last = places.len() - 1;
                places[(hi as usize).min(last)] - places[(lo as usize).min(last)]
            }
            Self::Tree { hierarchy, leaves, extents } => match extents.get(lo as usize * leaves + hi as usize) {
                Some(extent) => *extent,
                None => tree_extent(hierarchy, *leaves, lo as u32, hi as u32),
            },
        }
    }

    /// Whether positions are the codes themselves.
    pub(super) fn is_exact(&self) -> bool {
        match self {
            Self::Points { places } => places.len() <= EXACT,
            Self::Tree { .. } => true,
        }
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
            Self::Points { .. } => None,
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
