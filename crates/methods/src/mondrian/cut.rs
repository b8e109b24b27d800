//! Cuts, and rows on either side of them.

use super::axis::Axes;
use crate::extent::{Extent, FOUR, Position};
use crate::microdata::Microdata;

/// A row, where it lies, and its sensitive value (0 without one).
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<const W: usize, P> {
    pub row: u32,
    pub sensitive: u32,
    pub at: [[P; FOUR]; W],
}

impl<const W: usize, P: Position> Default for Item<W, P> {
    fn default() -> Self {
        Self { row: 0, sensitive: 0, at: [[P::default(); FOUR]; W] }
    }
}

impl<const W: usize, P: Position> Item<W, P> {
    pub(super) fn new(microdata: &Microdata, axes: &Axes<P>, row: u32, sensitive: u32) -> Self {
        let mut at = [[P::default(); FOUR]; W];
        for ((at, axis), code) in at.as_flattened_mut().iter_mut().zip(&axes.all).zip(microdata.quasi_of(row)) {
            *at = axis.at(code);
        }
        Self { row, sensitive, at }
    }

    /// Returns its position on an attribute's axis.
    #[inline]
    pub(super) fn on(&self, attribute: usize) -> P {
        self.at[attribute / FOUR][attribute % FOUR]
    }
}

/// Returns the smallest box around rows.
pub(super) fn around<'a, const W: usize, P: Position>(items: impl IntoIterator<Item = &'a Item<W, P>>) -> Extent<W, P> {
    let mut extent = Extent::NONE;
    items.into_iter().for_each(|item| extent.widen(&item.at));
    extent
}

/// Two sides: the rows from one position of an attribute to another, and the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut<P> {
    pub attribute: usize,
    pub from: P,
    pub to: P,
    pub spare: Spare<P>,
}

/// Relaxed cuts: the first so many rows with positions from `from` to `to` go to the other side. Which rows are first is
/// random (rows stand in the order of a keyed hash) and has nothing to do with their sensitive values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spare<P> {
    pub rows: usize,
    pub from: P,
    pub to: P,
}

impl<P: Position> Spare<P> {
    pub(super) const NONE: Self = Self { rows: 0, from: P::ENDS[1], to: P::ENDS[0] };
}

impl<P: Position> Cut<P> {
    /// Tells the side of each row, in order: true for inside.
    fn judge<const W: usize>(&self) -> impl FnMut(&Item<W, P>) -> bool + Clone + use<W, P> {
        let Self { attribute, from, to, mut spare } = *self;
        move |item| {
            let at = item.on(attribute);
            let spared = (spare.rows > 0) & (spare.from <= at) & (at <= spare.to);
            spare.rows -= usize::from(spared);
            !spared & (from <= at) & (at <= to)
        }
    }

    /// Returns the rows, each with its side.
    pub(super) fn sides<'a, const W: usize>(
        &self,
        items: &'a [Item<W, P>],
    ) -> impl Iterator<Item = (&'a Item<W, P>, bool)> {
        let mut inside = self.judge();
        items.iter().map(move |item| (item, inside(item)))
    }

    /// Calls `each` with all rows, and whether they are inside. As [`sides`](Self::sides), but faster, where no row is spared.
    #[inline]
    pub(super) fn for_each<const W: usize>(&self, items: &[Item<W, P>], mut each: impl FnMut(&Item<W, P>, bool)) {
        match self.spare.rows {
            0 => items.iter().for_each(|item| each(item, self.is_between(item))),
            _ => self.sides(items).for_each(|(item, inside)| each(item, inside)),
        }
    }

    /// Counts the rows inside.
    pub(super) fn inside<const W: usize>(&self, items: &[Item<W, P>]) -> usize {
        let mut count = 0;
        self.for_each(items, |_, inside| count += usize::from(inside));
        count
    }

    /// Moves the rows inside to the front, of which there are `inside`. Both sides keep their order. `buffer` has room for some rows, and what it
    /// holds does not matter: the less there is, the longer it takes.
    pub(super) fn apply<const W: usize>(&self, items: &mut [Item<W, P>], buffer: &mut [Item<W, P>], inside: usize) {
        match self.spare.rows {
            0 => part(items, buffer, inside, |item| self.is_between(item)),
            _ => part(items, buffer, inside, self.judge()),
        }
    }

    #[inline]
    fn is_between<const W: usize>(&self, item: &Item<W, P>) -> bool {
        let at = item.on(self.attribute);
        (self.from <= at) & (at <= self.to)
    }
}

/// Greatest part with room for the smaller side of a cut, which may be half.
pub(super) const LARGEST_WITH_ROOM: usize = 1 << 18;

/// Moves those to the front that are inside, which are so many.
fn part<const W: usize, P: Position>(
    items: &mut [Item<W, P>],
    buffer: &mut [Item<W, P>],
    inside: usize,
    mut is_inside: impl FnMut(&Item<W, P>) -> bool + Clone,
) {
    let outside = items.len() - inside;
    if inside == 0 || outside == 0 {
        return;
    }
    if outside <= buffer.len() {
        compact(items, buffer, is_inside);
        items[inside..].copy_from_slice(&buffer[..outside]);
    } else if inside <= buffer.len() {
        compact(items, buffer, |item| !is_inside(item));
        items.copy_within(..outside, inside);
        items[..inside].copy_from_slice(&buffer[..inside]);
    } else {
        // Both halves by themselves; then those of the first one that are outside and those of the second one that are inside change places.
        let half = items.len() / 2;
        let (first, second) = items.split_at_mut(half);
        let of_first = is_inside.clone();
        let in_first = first.iter().filter(|item| is_inside(item)).count();
        part(first, buffer, in_first, of_first);
        part(second, buffer, inside - in_first, is_inside);
        items[in_first..half + inside - in_first].rotate_left(half - in_first);
    }
}

/// Moves those to the front that stay, and the others to the buffer.
fn compact<const W: usize, P: Position>(
    items: &mut [Item<W, P>],
    buffer: &mut [Item<W, P>],
    mut stays: impl FnMut(&Item<W, P>) -> bool,
) {
    let (mut next, mut left) = (0, 0);
    for place in 0..items.len() {
        // Written to both sides and counted on one: sides are a coin's toss, which a branch would mispredict.
        let item = items[place];
        items[next] = item;
        if let Some(room) = buffer.get_mut(left) {
            *room = item;
        }
        let stays = usize::from(stays(&item));
        next += stays;
        left += 1 - stays;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With room for all rows, for some and for none of them; with spared rows, and without.
    #[test]
    fn both_sides_keep_their_order() {
        for rows in [1_u32, 2, 3, 10, 501] {
            let items: Vec<Item<1, i16>> =
                (0..rows).map(|row| Item { row, sensitive: 0, at: [[(row * 7 % 10) as i16, 0, 0, 0]] }).collect();
            for to in [-1, 0, 2, 4, 8, 9] {
                for spare in [Spare::NONE, Spare { rows: 2, from: 1, to: 2 }] {
                    let cut = Cut { attribute: 0, from: 0, to, spare };
                    let (mut front, mut back) = (Vec::new(), Vec::new());
                    cut.sides(&items)
                        .for_each(|(item, inside)| if inside { &mut front } else { &mut back }.push(item.row));
                    assert_eq!(cut.inside(&items), front.len());
                    let expected = [front.as_slice(), &back].concat();
                    for room in [items.len(), items.len() / 2, items.len() / 8, 1, 0] {
                        let (mut cut_items, mut buffer) = (items.clone(), vec![items[0]; room]);
                        cut.apply(&mut cut_items, &mut buffer, front.len());
                        assert!(cut_items.iter().map(|item| item.row).eq(expected.iter().copied()));
                    }
                }
            }
        }
    }
}
