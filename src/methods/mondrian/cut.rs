//! Cuts, and rows on either side of them.

use super::axis::Axis;
use crate::methods::extent::Extent;
use crate::microdata::Microdata;

/// A row, where it lies, and its sensitive value (0 without one).
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<const W: usize> {
    pub row: u32,
    pub sensitive: u32,
    pub at: [f32; W],
}

impl<const W: usize> Item<W> {
    pub(super) fn new(microdata: &Microdata, axes: &[Axis], row: u32) -> Self {
        let mut at = [0.0; W];
        for ((at, axis), &code) in at.iter_mut().zip(axes).zip(microdata.quasi_of(row)) {
            *at = axis.at(code);
        }
        Self { row, sensitive: microdata.sensitive_codes.get(row as usize).copied().unwrap_or(0), at }
    }
}

/// The smallest box around rows.
pub(super) fn around<'a, const W: usize>(items: impl IntoIterator<Item = &'a Item<W>>) -> Extent<W> {
    let mut extent = Extent::NONE;
    items.into_iter().for_each(|item| extent.widen(&item.at));
    extent
}

/// Two sides: the rows from one position of an attribute to another, and the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    pub attribute: usize,
    pub from: f32,
    pub to: f32,
    pub spare: Spare,
}

/// Relaxed cuts: the first so many rows with positions from `from` to `to` go to the other side. Which rows are first is
/// random (rows stand in the order of a keyed hash) and has nothing to do with their sensitive values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spare {
    pub rows: usize,
    pub from: f32,
    pub to: f32,
}

impl Spare {
    pub(super) const NONE: Self = Self { rows: 0, from: f32::INFINITY, to: f32::NEG_INFINITY };
}

impl Cut {
    /// The side of each row, in order: true for inside.
    pub(super) fn sides<'a, const W: usize>(&self, items: &'a [Item<W>]) -> impl Iterator<Item = (&'a Item<W>, bool)> {
        let cut = *self;
        let mut spare = cut.spare.rows;
        items.iter().map(move |item| {
            let at = item.at[cut.attribute];
            let mut inside = cut.from <= at && at <= cut.to;
            if spare > 0 && cut.spare.from <= at && at <= cut.spare.to {
                spare -= 1;
                inside = false;
            }
            (item, inside)
        })
    }

    /// Moves the rows inside to the front; returns how many there are. Both sides keep their order.
    pub(super) fn apply<const W: usize>(&self, items: &mut [Item<W>], buffer: &mut Vec<Item<W>>) -> usize {
        let mut spare = self.spare.rows;
        let mut next = 0;
        buffer.clear();
        for place in 0..items.len() {
            let item = items[place];
            let at = item.at[self.attribute];
            let spared = spare > 0 && self.spare.from <= at && at <= self.spare.to;
            spare -= usize::from(spared);
            if !spared && self.from <= at && at <= self.to {
                items[next] = item;
                next += 1;
            } else {
                buffer.push(item);
            }
        }
        items[next..].copy_from_slice(buffer);
        next
    }
}
