//! Distances of an attribute's values, and values that can be told from the rest.

use std::sync::Arc;

use crate::error::{Error, Result, thousands};
use crate::extent::{Extent, FOUR, Position};
use crate::microdata::{Attribute, Hierarchy, Microdata};

/// Codes up to this are whole numbers as `f32`.
const EXACT: usize = 1 << 24;
/// Leaves of a hierarchy that have positions of two bytes.
const NARROW: usize = 1 << 16;
/// Values of other domains that do, each more than a step beyond the one before. Of more values, those that share a step could not be cut, however
/// many rows they have together.
const NARROW_VALUES: usize = 60_000;
/// The least distance from one of them to the next, in steps.
const APART: f32 = 1.05;
/// Greatest number of values with a number each, by which they are counted.
const COUNTED: usize = 1 << 14;
/// Tables of fewer rows are not worth these numbers.
const NUMBERED_FROM: usize = 1 << 10;
/// Greatest number of leaves of hierarchies with a table of extents.
const TABLED: usize = 128;

/// All quasi-identifiers as cuts see them.
#[derive(Debug)]
pub(super) struct Axes<P> {
    pub all: Vec<Axis<P>>,
    /// True if none has a hierarchy.
    lines: bool,
}

/// A quasi-identifier as cuts see it. Rows have a position on it that ascends with the codes.
#[derive(Debug)]
pub(super) enum Axis<P> {
    /// Positions are places in the domain, by code. Of millions of values, neighbours may share one; they are cut like equal values. Where values are few,
    /// each position that there is has a number, by its key.
    Line { places: Vec<P>, numbers: Vec<u16> },
    /// Leaves of a hierarchy: positions are codes.
    Tree { hierarchy: Arc<Hierarchy>, leaves: usize, extents: Vec<f32> },
}

/// Returns the bytes of the numbers of positions, in a table of so many rows.
pub(crate) fn bytes(rows: usize, quasi: usize) -> usize {
    if rows < NUMBERED_FROM { 0 } else { quasi * NARROW * size_of::<u16>() }
}

/// Returns true if two bytes are enough for a position on any of these.
pub(super) fn are_narrow(microdata: &Microdata) -> bool {
    microdata
        .quasi
        .iter()
        .all(|attribute| attribute.domain.len() <= if attribute.hierarchy.is_some() { NARROW } else { NARROW_VALUES })
}

impl<P: Position> Axes<P> {
    pub(super) fn new(microdata: &Microdata) -> Result<Self> {
        let all = microdata.quasi.iter().map(|attribute| Axis::try_new(attribute, microdata.rows));
        let all = all.collect::<Result<Vec<_>>>()?;
        let lines = all.iter().all(|axis| matches!(axis, Axis::Line { .. }));
        Ok(Self { all, lines })
    }

    /// Returns the bytes of the places of all values.
    pub(super) fn bytes(&self) -> usize {
        let places = |axis: &Axis<P>| match axis {
            Axis::Line { places, .. } => size_of_val(places.as_slice()),
            Axis::Tree { .. } => 0,
        };
        self.all.iter().map(places).sum()
    }

    /// Returns the sum of the published lengths of a box, as shares of the domains.
    #[inline]
    pub(super) fn length<const W: usize>(&self, extent: &Extent<W, P>) -> f32 {
        if self.lines {
            return extent.shares();
        }
        let length = |(attribute, axis): (usize, &Axis<P>)| axis.extent(extent.ends(attribute));
        self.all.iter().enumerate().map(length).sum()
    }
}

impl<P: Position> Axis<P> {
    /// Makes the axis of an attribute of so many rows.
    ///
    /// # Errors
    /// When a hierarchy has too many leaves.
    pub(super) fn try_new(attribute: &Attribute, rows: usize) -> Result<Self> {
        let leaves = attribute.domain.len();
        let Some(hierarchy) = &attribute.hierarchy else {
            let places: Vec<P> = places(attribute.domain.positions()).map(P::of_place).collect();
            // Not for a handful of rows, of which there may be many when a table is anonymized part by part.
            let worth_it = leaves <= COUNTED && rows >= NUMBERED_FROM;
            let greatest = places.last().map_or(0, |place| place.key() as usize);
            let mut numbers = vec![0; if worth_it && greatest < NARROW { greatest + 1 } else { 0 }];
            if !numbers.is_empty() {
                places.iter().zip(0..).for_each(|(place, number)| numbers[place.key() as usize] = number);
            }
            return Ok(Self::Line { places, numbers });
        };
        if leaves > EXACT {
            return Err(Error::refused(format!(
                "the hierarchy of {} has more than {} leaves, which is not supported",
                attribute.field.name(),
                thousands(EXACT)
            )));
        }
        let known = if leaves <= TABLED && leaves * leaves <= rows { leaves as u32 } else { 0 };
        let pairs = (0..known).flat_map(|lo| (0..known).map(move |hi| (lo.min(hi), lo.max(hi))));
        let extents = pairs.map(|(lo, hi)| tree_extent(hierarchy, leaves, lo, hi)).collect();
        Ok(Self::Tree { hierarchy: Arc::clone(hierarchy), leaves, extents })
    }

    /// Returns the position of a code.
    #[inline]
    pub(super) fn at(&self, code: u32) -> P {
        match self {
            Self::Line { places, .. } => places[code as usize],
            Self::Tree { .. } => P::of_number(code),
        }
    }

    /// Returns the published length for positions from one to another. It is a share of the whole domain.
    #[inline]
    pub(super) fn extent(&self, [lo, hi]: [P; 2]) -> f32 {
        match self {
            Self::Line { .. } => {
                let mut extent = Extent::<1, P>::NONE;
                [lo, hi].into_iter().for_each(|end| extent.widen(&[[end; FOUR]]));
                extent.shares() / FOUR as f32
            }
            Self::Tree { hierarchy, leaves, extents } => {
                let [lo, hi] = [lo, hi].map(P::number);
                match extents.get(lo as usize * leaves + hi as usize) {
                    Some(extent) => *extent,
                    None => tree_extent(hierarchy, *leaves, lo, hi),
                }
            }
        }
    }

    /// Returns the numbers of positions, by which they can be counted, if there are such.
    #[inline]
    pub(super) fn numbers(&self) -> Option<impl Fn(P) -> usize + '_> {
        let (numbers, tree): (&[u16], bool) = match self {
            Self::Line { numbers, .. } => (numbers, false),
            Self::Tree { .. } => (&[], true),
        };
        let number = move |at: P| match tree {
            true => at.number() as usize,
            false => usize::from(numbers[at.key() as usize]),
        };
        (tree || !numbers.is_empty()).then_some(number)
    }

    /// Calls `pick` with every run of neighbours that can be told from the rest. These are single values, and nodes of
    /// the hierarchy below the one that holds all. Runs are ranges of places in `values`, which ascend.
    pub(super) fn picks(&self, values: &[P], mut pick: impl FnMut(usize, usize)) {
        (0..values.len()).for_each(|place| pick(place, place));
        let Self::Tree { hierarchy, .. } = self else { return };
        let node = |level: usize, place: usize| hierarchy.node(level, values[place].number());
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

    /// Returns the boundaries in the middle, out of `lo..=hi`; `None` for anywhere. They are the last positions below cuts.
    pub(super) fn boundaries(&self, lo: P, hi: P) -> Option<Vec<P>> {
        match self {
            Self::Tree { hierarchy, .. } => {
                let children = hierarchy.children(lo.number(), hi.number());
                let lasts = children.into_iter().map(|[_, last]| P::of_number(last));
                Some(lasts.filter(|last| (lo..hi).contains(last)).collect())
            }
            Self::Line { .. } => None,
        }
    }
}

/// Returns places that are half by value, half by rank. By value alone, one wrong date or one very rich person
/// would leave everybody else in a corner that is not worth a cut; by rank alone, the distance between the few who
/// are far apart would not count. Where half of the steps are too few for that many values, more of it is by rank.
fn places(by_value: &[f32]) -> impl Iterator<Item = f32> + '_ {
    let steps = (by_value.len().max(2) - 1) as f32;
    let by_rank = if by_value.len() > NARROW_VALUES { 0.0 } else { APART * steps / f32::from(u16::MAX) }.max(0.5);
    let place = move |(rank, place)| match by_rank > 0.5 {
        true => place * (1.0 - by_rank) + rank as f32 / steps * by_rank,
        false => (place + rank as f32 / steps) / 2.0,
    };
    by_value.iter().copied().enumerate().map(place)
}

fn tree_extent(hierarchy: &Hierarchy, leaves: usize, lo: u32, hi: u32) -> f32 {
    let [first, last] = hierarchy.closure(lo, hi);
    (last - first) as f32 / (leaves.max(2) - 1) as f32
}
