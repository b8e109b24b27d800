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
    pub(super) fn new(microdata: &Microdata, axes: &[Axis], row: u32, sensitive: u32) -> Self {
        let mut at = [0.0; W];
        for ((at, axis), &code) in at.iter_mut().zip(axes).zip(microdata.quasi_of(row)) {
            *at = axis.at(code);
        }
        Self { row, sensitive, at }
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
    /// Tells the side of each row, in order: true for inside.
    fn judge<const W: usize>(&self) -> impl FnMut(&Item<W>) -> bool + use<W> {
        let Self { attribute, from, to, mut spare } = *self;
        move |item| {
            let at = item.at[attribute];
            let spared = (spare.rows > 0) & (spare.from <= at) & (at <= spare.to);
            spare.rows -= usize::from(spared);
            !spared & (from <= at) & (at <= to)
        }
    }

    /// The rows, each with its side.
    pub(super) fn sides<'a, const W: usize>(&self, items: &'a [Item<W>]) -> impl Iterator<Item = (&'a Item<W>, bool)> {
        let mut inside = self.judge();
        items.iter().map(move |item| (item, inside(item)))
    }

    /// Moves the rows inside to the front; returns how many there are. Both sides keep their order. `buffer` is as long as
    /// `items`, and what it holds does not matter.
    pub(super) fn apply<const W: usize>(&self, items: &mut [Item<W>], buffer: &mut [Item<W>]) -> usize {
        let mut inside = self.judge();
        let (mut next, mut outside) = (0, 0);
        for place in 0..items.len() {
            // Written to both sides and counted on one: sides are a coin's toss, which a branch would mispredict.
            let item = items[place];
            items[next] = item;
            buffer[outside] = item;
            let is_inside = usize::from(inside(&item));
            next += is_inside;
            outside += 1 - is_inside;
        }
        items[next..].copy_from_slice(&buffer[..outside]);
        next
    }
}
