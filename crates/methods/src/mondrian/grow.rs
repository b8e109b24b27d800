//! The recursion: a part of the table is cut in two, and both parts again, until no cut is left that may be made.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::axis::{Axes, are_narrow};
use super::cut::{Cut, Item, LARGEST_WITH_ROOM, around};
use super::principle::{Counts, Principle};
use super::tight::{self, Scratch};
use super::{Cuts, median};
use crate::Monitor;
use crate::error::Result;
use crate::extent::{FOUR, Position, fours, in_rare_width, in_width, rare_fours};
use crate::microdata::{Microdata, room};

/// Large parts have room for one in so many rows while they are cut.
const ROOM_IN_LARGE: usize = 8;
/// Parts with fewer rows are not worth another thread.
pub(super) const PARALLEL_FROM: usize = 1024;
/// Cuts of larger parts are chosen by a sample.
pub(super) const SAMPLED_FROM: usize = 4096;
/// Rows of a sample.
pub(super) const SAMPLE: usize = 1024;
/// Least number of rows that are looked at for one part to test cuts.
const TRIED_ROWS: usize = 1 << 16;
/// Cuts that are tried whatever that costs.
const TRIES: usize = 16;
/// Inverse share of rows on a side below which a sampled cut is uneven.
const UNEVEN: usize = 64;
/// Greatest number of uneven cuts of a large part: each costs a look at all rows.
const UNEVEN_CUTS: usize = 64;

/// Returns the groups of rows: starts and members.
pub(super) fn grow(microdata: &Microdata, principle: &Principle, monitor: &Monitor) -> Result<(Vec<u32>, Vec<u32>)> {
    if are_narrow(microdata) {
        return in_width!(microdata.quasi.len(), grow_narrow(microdata, principle, monitor));
    }
    monitor.charge(microdata.rows * more_bytes(microdata.quasi.len()) * 3 / 2)?;
    in_rare_width!(microdata.quasi.len(), grow_wide(microdata, principle, monitor))
}

/// Returns the bytes of a row on its way through the cuts.
pub(super) fn item_bytes(quasi: usize) -> usize {
    2 * size_of::<u32>() + fours(quasi) * FOUR * size_of::<i16>()
}

/// Returns the bytes beyond those of two-byte positions.
pub(super) fn more_bytes(quasi: usize) -> usize {
    FOUR * (rare_fours(quasi) * size_of::<f32>() - fours(quasi) * size_of::<i16>())
}

fn grow_narrow<const W: usize>(
    microdata: &Microdata,
    principle: &Principle,
    monitor: &Monitor,
) -> Result<(Vec<u32>, Vec<u32>)> {
    grow_by::<W, i16>(microdata, principle, monitor)
}

fn grow_wide<const W: usize>(
    microdata: &Microdata,
    principle: &Principle,
    monitor: &Monitor,
) -> Result<(Vec<u32>, Vec<u32>)> {
    grow_by::<W, f32>(microdata, principle, monitor)
}

fn grow_by<const W: usize, P: Position>(
    microdata: &Microdata,
    principle: &Principle,
    monitor: &Monitor,
) -> Result<(Vec<u32>, Vec<u32>)> {
    if microdata.rows == 0 {
        return Ok((vec![0], Vec::new()));
    }
    let axes = Axes::<P>::new(microdata)?;
    monitor.charge(axes.bytes())?;
    let rows = (0..microdata.rows as u32).into_par_iter().with_min_len(PARALLEL_FROM);
    let mut items: Vec<Item<W, P>> =
        rows.map(|row| Item::new(microdata, &axes, row, principle.value_of(row))).collect();
    let trunk = Trunk { axes: &axes, principle, monitor, charged: Mutex::new(Ok(0)) };
    let mut ends = Vec::new();
    // For a quarter of the smaller side of a cut, and so a quarter of what would do.
    let mut buffer: Vec<Item<W, P>> =
        room(if items.len() > LARGEST_WITH_ROOM { items.len() / ROOM_IN_LARGE } else { 0 });
    trunk.split(&mut items, &mut buffer, Path::default(), &mut Worker::new(principle), &mut ends);
    drop(buffer);
    monitor.check()?;
    trunk.charged.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends).collect();
    // Not in place: they take a sixth of the room.
    Ok((starts, items.par_iter().map(|item| item.row).collect()))
}

struct Trunk<'a, P> {
    axes: &'a Axes<P>,
    principle: &'a Principle,
    monitor: &'a Monitor,
    /// Bytes charged for searches of large parts, or why there are no more.
    charged: Mutex<Result<usize>>,
}

/// Place of a part in the table, and the number of uneven cuts to it.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    offset: usize,
    uneven: usize,
}

/// Memory of a thread for itself.
struct Worker<const W: usize, P: Position> {
    sample: Vec<Item<W, P>>,
    scratch: Scratch<W, P>,
    sides: [Counts; 2],
    /// Counts of values outside and inside.
    counts: Vec<u32>,
}

impl<const W: usize, P: Position> Worker<W, P> {
    fn new(principle: &Principle) -> Self {
        let sides = [principle.counts(), principle.counts()];
        Self { sample: Vec::new(), scratch: Scratch::default(), sides, counts: Vec::new() }
    }
}

impl<P: Position> Trunk<'_, P> {
    /// Cuts rows into groups, and pushes the end of each. `buffer` has room for half of them, or, of many, for one in [`ROOM_IN_LARGE`].
    fn split<const W: usize>(
        &self,
        mut items: &mut [Item<W, P>],
        mut buffer: &mut [Item<W, P>],
        mut path: Path,
        worker: &mut Worker<W, P>,
        ends: &mut Vec<u32>,
    ) {
        loop {
            if buffer.len() < items.len() / 2 && items.len() <= LARGEST_WITH_ROOM {
                return self.split(items, &mut room(items.len() / 2), path, worker, ends);
            }
            let shares = if buffer.len() < items.len() / 2 { ROOM_IN_LARGE } else { 2 };
            let cut = if self.monitor.is_cancelled() { None } else { self.best_cut(items, path.uneven, worker) };
            let Some((cut, inside)) = cut else {
                ends.push((path.offset + items.len()) as u32);
                return;
            };
            cut.apply(items, buffer, inside);
            let (a, b) = items.split_at_mut(inside);
            let (buffer_a, buffer_b) = buffer.split_at_mut(inside / shares);
            let smaller = a.len().min(b.len());
            if smaller < (a.len() + b.len()) / UNEVEN {
                path.uneven += 1;
            }
            let path_b = Path { offset: path.offset + inside, ..path };
            if smaller >= PARALLEL_FROM {
                let mut other_ends = Vec::new();
                rayon::join(
                    || self.split(a, buffer_a, path, worker, ends),
                    || self.split(b, buffer_b, path_b, &mut Worker::new(self.principle), &mut other_ends),
                );
                ends.append(&mut other_ends);
                return;
            }
            // The smaller side on the stack, the larger in the loop: the stack stays low however uneven cuts are.
            if a.len() <= b.len() {
                self.split(a, buffer_a, path, worker, ends);
                (items, buffer, path) = (b, buffer_b, path_b);
            } else {
                self.split(b, buffer_b, path_b, worker, ends);
                (items, buffer) = (a, buffer_a);
            }
        }
    }

    /// Returns the cut to be made, if there is one, and its rows inside.
    fn best_cut<const W: usize>(
        &self,
        items: &[Item<W, P>],
        uneven: usize,
        worker: &mut Worker<W, P>,
    ) -> Option<(Cut<P>, usize)> {
        let least = self.principle.least();
        if items.len() / 2 < least {
            return None;
        }
        if self.principle.params.cuts == Cuts::Median {
            let cuts = median::cuts(self.axes, items, &around(items), least);
            return self.first_allowed(items, cuts.into_iter().map(|cut| (cut, None)), worker);
        }
        self.tight(items, uneven, worker)
    }

    fn tight<const W: usize>(
        &self,
        items: &[Item<W, P>],
        uneven: usize,
        worker: &mut Worker<W, P>,
    ) -> Option<(Cut<P>, usize)> {
        let mut least = self.principle.least();
        if items.len() > SAMPLED_FROM {
            let mut sample = std::mem::take(&mut worker.sample);
            sample.clear();
            sample.extend((0..SAMPLE).map(|i| items[i * items.len() / SAMPLE]));
            let even = tight::Search { axes: self.axes, least: SAMPLE / tight::EVEN, even: true };
            let cuts = even.cuts(&sample, &around(&sample), TRIES, &mut worker.scratch);
            worker.sample = sample;
            // How many rows of the sample are inside is another number.
            let found = self.first_allowed(items, cuts.into_iter().map(|(cut, _)| (cut, None)), worker);
            if found.is_some() {
                return found;
            }
        }
        let extent = around(items);
        if extent.is_point(self.axes.all.len()) {
            return None;
        }
        if items.len() > SAMPLED_FROM {
            if !self.charge(items.len() * tight::bytes_per_row::<W, P>()) {
                return None;
            }
            if uneven >= UNEVEN_CUTS {
                least = least.max(items.len() / UNEVEN);
            }
        }
        let all = tight::Search { axes: self.axes, least, even: false };
        let tries = (TRIED_ROWS / items.len()).max(TRIES);
        let cuts = all.cuts(items, &extent, tries, &mut worker.scratch);
        self.first_allowed(items, cuts.into_iter().map(|(cut, inside)| (cut, Some(inside))), worker)
    }

    /// Charges a search that needs so many bytes, if none needed as many before.
    fn charge(&self, bytes: usize) -> bool {
        let mut charged = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(before) = *charged
            && bytes > before
        {
            *charged = self.monitor.charge(bytes - before).map(|()| bytes);
        }
        charged.is_ok()
    }

    /// Returns the first cut with sides that keep the principle, and its rows inside. Of some cuts that is known.
    fn first_allowed<const W: usize>(
        &self,
        items: &[Item<W, P>],
        mut cuts: impl Iterator<Item = (Cut<P>, Option<usize>)>,
        worker: &mut Worker<W, P>,
    ) -> Option<(Cut<P>, usize)> {
        if !self.principle.looks_at_values() {
            let least = self.principle.least();
            let allowed = least..=items.len().saturating_sub(least);
            let mut counted = cuts.map(|(cut, inside)| (cut, inside.unwrap_or_else(|| cut.inside(items))));
            return counted.find(|(_, inside)| allowed.contains(inside));
        }
        if let Some(l) = self.principle.frequency_alone()
            && self.principle.values() <= items.len()
        {
            return cuts.map(|(cut, _)| cut).find_map(|cut| self.frequent(items, cut, l, &mut worker.counts));
        }
        cuts.find_map(|(cut, _)| {
            cut.for_each(items, |item, inside| worker.sides[usize::from(inside)].add(item.sensitive));
            let inside = worker.sides[1].rows;
            let holds = worker.sides.each_mut().map(|counts| self.principle.holds(counts));
            (holds == [true; 2]).then_some((cut, inside))
        })
    }

    /// Returns a cut and its rows inside, if both sides are diverse. No value makes up more than `1/l` of the rows on
    /// either side. In large parts it is less work to look at all values than to know which occur.
    fn frequent<const W: usize>(
        &self,
        items: &[Item<W, P>],
        cut: Cut<P>,
        l: usize,
        counts: &mut Vec<u32>,
    ) -> Option<(Cut<P>, usize)> {
        let values = self.principle.values();
        counts.clear();
        counts.resize(2 * values, 0);
        cut.for_each(items, |item, inside| counts[usize::from(inside) * values + item.sensitive as usize] += 1);
        let (outside, inside) = counts.split_at(values);
        let rows = [outside, inside].map(|counts| counts.iter().map(|&count| count as usize).sum::<usize>());
        let most = [outside, inside].map(|counts| counts.iter().copied().max().unwrap_or(0) as usize);
        let holds = |side: usize| rows[side] >= self.principle.least() && most[side].saturating_mul(l) <= rows[side];
        (holds(0) && holds(1)).then_some((cut, rows[1]))
    }
}
