//! Tight cuts: of all places in all attributes, those after which what is published is shortest.
//!
//! The loss of rows is their number times the sum of the lengths of their box, over quasi-identifiers, as it would be
//! published (closed to a node where there is a hierarchy). A cut is good by the loss it saves. Sensitive values play no part
//! in this; whether the sides may be groups is tested afterwards.

use super::axis::{Axes, Axis};
use super::cut::{Cut, Item, Spare, around};
use crate::extent::{Extent, FOUR, Position};

/// Even cuts leave at least one row of so many on each side.
pub(super) const EVEN: usize = 16;

/// Selection of cuts to look at.
pub(super) struct Search<'a, P> {
    pub axes: &'a Axes<P>,
    /// Rows on each side, at least.
    pub least: usize,
    /// Only the boundary nearest to the median, no relaxed cuts: for samples.
    pub even: bool,
}

/// Returns the bytes that a search needs for each row, at most.
pub(super) fn bytes_per_row<const W: usize, P: Position>() -> usize {
    // For each value three boxes and some numbers; of each attribute, a boundary behind it and the value alone.
    3 * size_of::<Extent<W, P>>() + size_of::<(f32, usize, Cut<P>)>() * 2 * FOUR * W + 4 * size_of::<usize>()
}

/// Values of an attribute in a part: ascending, with their rows and the boxes around them, and around all of them up to each
/// and from each.
pub(super) struct Scratch<const W: usize, P: Position> {
    values: Vec<P>,
    rows: Vec<usize>,
    boxes: Vec<Extent<W, P>>,
    up_to: Vec<Extent<W, P>>,
    from: Vec<Extent<W, P>>,
    /// Rows up to each value.
    below: Vec<usize>,
    keys: Vec<u64>,
    /// Loss after a cut, rows inside, and the cut.
    found: Vec<(f32, usize, Cut<P>)>,
}

impl<P: Position> Search<'_, P> {
    /// Cuts that save something, best first, and no more than `most`; with the number of rows inside of each.
    pub(super) fn cuts<const W: usize>(
        &self,
        items: &[Item<W, P>],
        extent: &Extent<W, P>,
        most: usize,
        scratch: &mut Scratch<W, P>,
    ) -> Vec<(Cut<P>, usize)> {
        self.all(items, extent, scratch);
        let key = |cut: &Cut<P>| (cut.attribute, cut.from.key(), cut.to.key(), cut.spare.rows);
        let order = |a: &(f32, usize, Cut<P>), b: &(f32, usize, Cut<P>)| {
            a.0.total_cmp(&b.0).then_with(|| key(&a.2).cmp(&key(&b.2)))
        };
        if scratch.found.len() > most {
            scratch.found.select_nth_unstable_by(most, order);
            scratch.found.truncate(most);
        }
        scratch.found.sort_unstable_by(order);
        scratch.found.iter().map(|&(_, inside, cut)| (cut, inside)).collect()
    }

    /// Cuts that save something: the loss after each, its rows inside, and the cut.
    pub(super) fn all<'a, const W: usize>(
        &self,
        items: &[Item<W, P>],
        extent: &Extent<W, P>,
        scratch: &'a mut Scratch<W, P>,
    ) -> &'a [(f32, usize, Cut<P>)] {
        scratch.found.clear();
        let now = self.loss([(items.len(), extent)]);
        for (attribute, axis) in self.axes.all.iter().enumerate() {
            let [lo, hi] = extent.ends(attribute);
            if lo < hi {
                scratch.read(axis, attribute, items, extent);
                self.boundaries(attribute, items.len(), scratch);
                self.picks(axis, attribute, items, scratch);
                if !self.even {
                    self.relaxed(attribute, items, scratch);
                }
            }
        }
        // What rounding may feign is no saving.
        let worth = now * (1.0 - 1e-5);
        scratch.found.retain(|(loss, ..)| *loss < worth);
        &scratch.found
    }

    /// Returns the loss of so many rows in each of these boxes.
    pub(super) fn loss<const W: usize, const N: usize>(&self, sides: [(usize, &Extent<W, P>); N]) -> f32 {
        sides.iter().map(|(rows, extent)| *rows as f32 * self.axes.length(extent)).sum()
    }

    /// Cuts between two values.
    fn boundaries<const W: usize>(&self, attribute: usize, all: usize, scratch: &mut Scratch<W, P>) {
        let Scratch { values, up_to, from, below, found, .. } = scratch;
        let mut consider = |place: usize| {
            let rows = below[place];
            let loss = self.loss([(rows, &up_to[place]), (all - rows, &from[place + 1])]);
            found.push((loss, rows, Cut { attribute, from: P::ENDS[0], to: values[place], spare: Spare::NONE }));
        };
        let first = below.partition_point(|&rows| rows < self.least);
        let last = below.partition_point(|&rows| rows + self.least <= all);
        let places = first..last.min(values.len() - 1);
        if self.even {
            places.min_by_key(|&place| below[place].abs_diff(all / 2)).into_iter().for_each(consider);
        } else {
            places.for_each(&mut consider);
        }
    }

    /// Lists cuts of neighbouring values that are something together. The rest is on both sides of them.
    fn picks<const W: usize>(
        &self,
        axis: &Axis<P>,
        attribute: usize,
        items: &[Item<W, P>],
        scratch: &mut Scratch<W, P>,
    ) {
        let Scratch { values, boxes, up_to, from, below, found, .. } = scratch;
        let all = items.len();
        axis.picks(values, |first, last| {
            let before = first.checked_sub(1).map_or(0, |place| below[place]);
            let rows = below[last] - before;
            let rest = all - rows;
            let spare = self.least.saturating_sub(rest);
            if rest == 0 || rows < self.least + spare || (self.even && spare > 0) {
                return;
            }
            let mut outside = Extent::NONE;
            if first > 0 {
                outside = outside.with(&up_to[first - 1]);
            }
            if last + 1 < values.len() {
                outside = outside.with(&from[last + 1]);
            }
            let inside = boxes[first..=last].iter().fold(Extent::NONE, |extent, next| extent.with(next));
            let (lo, hi) = (values[first], values[last]);
            let spare = if spare == 0 { Spare::NONE } else { Spare { rows: spare, from: lo, to: hi } };
            if spare.rows > 0 {
                let spared = items.iter().filter(|item| (lo..=hi).contains(&item.on(attribute))).take(spare.rows);
                outside = outside.with(&around(spared));
            }
            // With spared rows the inside may be shorter than this; never longer.
            let loss = self.loss([(rows - spare.rows, &inside), (rest + spare.rows, &outside)]);
            found.push((loss, rows - spare.rows, Cut { attribute, from: lo, to: hi, spare }));
        });
    }

    /// Finds the least and the greatest rows, as few as can be a group. They count where no boundary leaves so few.
    fn relaxed<const W: usize>(&self, attribute: usize, items: &[Item<W, P>], scratch: &mut Scratch<W, P>) {
        let all = items.len();
        for low in [true, false] {
            let Scratch { values, up_to, from, below, found, rows, .. } = &mut *scratch;
            let last = values.len() - 1;
            // The value that both sides share.
            let place = match low {
                true => below.partition_point(|&rows| rows < self.least),
                false => below.partition_point(|&rows| rows <= all - self.least),
            };
            let before = below[place] - rows[place];
            let (beyond, ends) = match low {
                true => (before, [P::ENDS[0], values[place]]),
                false => (all - below[place], [values[place], P::ENDS[1]]),
            };
            let spare = (rows[place] + beyond).saturating_sub(self.least);
            if spare == 0 || spare >= rows[place] || all < 2 * self.least {
                continue;
            }
            let at = values[place];
            let of_value = || items.iter().filter(|item| item.on(attribute) == at);
            let spared = around(of_value().take(spare));
            let kept = around(of_value().skip(spare));
            let lower = place.checked_sub(1).map_or(Extent::NONE, |place| up_to[place]);
            let upper = if place < last { from[place + 1] } else { Extent::NONE };
            let (mine, others) = if low { (lower, upper) } else { (upper, lower) };
            let loss = self.loss([(self.least, &mine.with(&kept)), (all - self.least, &others.with(&spared))]);
            let spare = Spare { rows: spare, from: at, to: at };
            found.push((loss, self.least, Cut { attribute, from: ends[0], to: ends[1], spare }));
        }
    }
}

impl<const W: usize, P: Position> Default for Scratch<W, P> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            rows: Vec::new(),
            boxes: Vec::new(),
            up_to: Vec::new(),
            from: Vec::new(),
            below: Vec::new(),
            keys: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl<const W: usize, P: Position> Scratch<W, P> {
    fn read(&mut self, axis: &Axis<P>, attribute: usize, items: &[Item<W, P>], extent: &Extent<W, P>) {
        self.values.clear();
        self.rows.clear();
        self.boxes.clear();
        let [lo, hi] = extent.ends(attribute);
        // Few different positions: each has a place.
        let numbers = axis.numbers().map(|number| (number(lo), number(hi), number));
        match numbers.filter(|(first, last, _)| last - first < 4 * items.len()) {
            Some((first, last, number)) => self.count(attribute, items, last - first + 1, |at| number(at) - first),
            None => self.sort(attribute, items),
        }
        self.below.clear();
        self.up_to.clear();
        let (mut rows, mut whole) = (0, Extent::NONE);
        for (extent, count) in self.boxes.iter().zip(&self.rows) {
            rows += count;
            whole = whole.with(extent);
            self.below.push(rows);
            self.up_to.push(whole);
        }
        self.from.clear();
        self.from.resize(self.boxes.len(), Extent::NONE);
        let mut whole = Extent::NONE;
        for (from, extent) in self.from.iter_mut().zip(&self.boxes).rev() {
            whole = whole.with(extent);
            *from = whole;
        }
    }

    /// Counts items; `place` tells the place of a position, below `places`.
    fn count(&mut self, attribute: usize, items: &[Item<W, P>], places: usize, place: impl Fn(P) -> usize) {
        self.rows.resize(places, 0);
        self.boxes.resize(places, Extent::NONE);
        for item in items {
            let place = place(item.on(attribute));
            self.rows[place] += 1;
            self.boxes[place].widen(&item.at);
        }
        let mut next = 0;
        for place in 0..places {
            if self.rows[place] > 0 {
                self.rows[next] = self.rows[place];
                self.boxes[next] = self.boxes[place];
                self.values.push(self.boxes[place].ends(attribute)[0]);
                next += 1;
            }
        }
        self.rows.truncate(next);
        self.boxes.truncate(next);
    }

    fn sort(&mut self, attribute: usize, items: &[Item<W, P>]) {
        let key = |(place, item): (usize, &Item<W, P>)| u64::from(item.on(attribute).key()) << 32 | place as u64;
        self.keys.clear();
        self.keys.extend(items.iter().enumerate().map(key));
        self.keys.sort_unstable();
        for run in self.keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            let extent = around(run.iter().map(|&key| &items[key as u32 as usize]));
            self.values.push(extent.ends(attribute)[0]);
            self.rows.push(run.len());
            self.boxes.push(extent);
        }
    }
}
