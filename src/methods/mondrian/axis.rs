//! How far apart the values of an attribute are, and which of them can be told from the rest.

use std::sync::Arc;

use crate::error::{Error, Result, thousands};
use crate::microdata::{Attribute, Hierarchy};

/// Codes below this are whole numbers as `f32`.
const EXACT: usize = 1 << 24;
/// In attributes with more values than this, single values are not told from the rest.
const FEW: usize = 1 << 16;

/// Hierarchies with up to so many leaves have a table of the extents between any two.
const TABLED: usize = 128;

/// A quasi-identifier as cuts see it. Rows have a position on it, an `f32` that ascends with the codes.
#[derive(Debug)]
pub(super) enum Axis {
    /// Many values: positions are those of the domain, 0 to 1.
    Line { positions: Arc<[f32]> },
    /// Few values: positions are codes.
    Points { positions: Arc<[f32]> },
    /// Leaves of a hierarchy: positions are codes.
    Tree { hierarchy: Arc<Hierarchy>, nodes: Vec<[f32; 2]>, leaves: usize, extents: Vec<f32> },
}

impl Axis {
    pub(super) fn try_new(attribute: &Attribute) -> Result<Self> {
        let domain = &attribute.domain;
        let positions = Arc::clone(domain.positions());
        Ok(match &attribute.hierarchy {
            Some(_) if domain.len() > EXACT => {
                return Err(Error::refused(format!(
                    "the hierarchy of {} has more than {} leaves, which is not supported",
                    attribute.field.name(),
                    thousands(EXACT)
                )));
            }
            Some(hierarchy) => {
                let nodes = hierarchy.nodes().map(|node| node.map(|code| code as f32));
                let leaves = domain.len();
                let singles = (0..leaves).map(|code| [code as f32; 2]);
                let known = if leaves <= TABLED { leaves } else { 0 };
                let pairs = (0..known as u32).flat_map(|lo| (0..known as u32).map(move |hi| (lo.min(hi), lo.max(hi))));
                Self::Tree {
                    nodes: singles.chain(nodes).collect(),
                    extents: pairs.map(|(lo, hi)| tree_extent(hierarchy, leaves, lo, hi)).collect(),
                    hierarchy: Arc::clone(hierarchy),
                    leaves,
                }
            }
            None if domain.len() > FEW => Self::Line { positions },
            None => Self::Points { positions },
        })
    }

    /// Position of a code.
    #[inline]
    pub(super) fn at(&self, code: u32) -> f32 {
        match self {
            Self::Line { positions } => positions[code as usize],
            _ => code as f32,
        }
    }

    /// Length of what would be published for the positions from `lo` to `hi`, as a share of the whole domain.
    #[inline]
    pub(super) fn extent(&self, lo: f32, hi: f32) -> f32 {
        match self {
            Self::Line { .. } => hi - lo,
            Self::Points { positions, .. } => positions[hi as usize] - positions[lo as usize],
            Self::Tree { hierarchy, leaves, extents, .. } => match extents.get(lo as usize * leaves + hi as usize) {
                Some(extent) => *extent,
                None => tree_extent(hierarchy, *leaves, lo as u32, hi as u32),
            },
        }
    }

    /// Whether positions are whole numbers.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self, Self::Line { .. })
    }

    /// Calls `pick` with every run of neighbouring values, out of some, that can be told from the rest: nodes of the
    /// hierarchy, or single values. Runs are ranges of places in `values`, which ascend.
    pub(super) fn picks(&self, values: &[f32], mut pick: impl FnMut(usize, usize)) {
        match self {
            Self::Line { .. } => {}
            Self::Points { .. } => (0..values.len()).for_each(|place| pick(place, place)),
            Self::Tree { nodes, .. } => {
                for [first, last] in nodes {
                    let from = values.partition_point(|value| value < first);
                    let to = values.partition_point(|value| value <= last);
                    // A node of whose leaves only those of a child occur is that child.
                    if from < to && to - from < values.len() && (to - from > 1 || first == last) {
                        pick(from, to - 1);
                    }
                }
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
            _ => None,
        }
    }
}

fn tree_extent(hierarchy: &Hierarchy, leaves: usize, lo: u32, hi: u32) -> f32 {
    let [first, last] = hierarchy.closure(lo, hi);
    (last - first) as f32 / (leaves.max(2) - 1) as f32
}
