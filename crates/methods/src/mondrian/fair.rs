//! Cuts decided by all worlds: leaves that tell a reader no more than their values.
//!
//! If cuts are made wherever both sides stay diverse, a reader who knows this learns something from every cut that was not made (the *minimality
//! attack*). Here each part has at most one try, at the place that looks best by quasi-identifiers, numbers of rows and counts of values alone. The method
//! draws rings in the whole part ([`rings`](super::super::rings)), and makes the cut if both sides are diverse in all `l` worlds. After a cut it forgets
//! the rings, and goes on with both sides. After a failed try the part is a leaf with these rings. A part that is not worth a try, by the same figures, is
//! a leaf with rings of people who lie close together ([`Rings::close`]).
//!
//! All this is [`Worlds::Shifts`], for readers who know nobody's value. [`Worlds::Renamings`] is the same with whole signatures in the place of rings: the
//! worlds of a leaf rename the values of each signature, so its people can be grouped anew. [`Worlds::All`] is for readers who also know values of some
//! people. It tests cuts in all rearrangements inside of rings, and draws the rings of each leaf uniformly. Rings of neighbours would depend on each other.
//!
//! A reader who knows this code, and sees all leaves and all `l` worlds, gives each world `1/l`. Suppose that another of them is the true one. The two differ
//! by exchanges inside leaves, so inside both sides of every cut that was made. Rings are drawn as uniformly, and the test looks at sides only, so the cut
//! is made with the same probability. In a leaf, rings and shifts are as likely ([`rings`](super::super::rings)). A failed test looks at all worlds, so it
//! fails whichever of them is the true one. Without a try the reader learns nothing. **A second try after a failure would break this**: the worlds of a leaf
//! need not differ by exchanges inside the sides of the failed cut.

use std::sync::{Mutex, PoisonError};

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::axis::{Axes, are_narrow};
use super::cut::{Cut, Item, LARGEST_WITH_ROOM, around};
use super::grow::{PARALLEL_FROM, SAMPLE, SAMPLED_FROM, more_bytes};
use super::tight::{self, Scratch};
use super::{Cuts, median};
use crate::Monitor;
use crate::assignment::occurrences;
use crate::error::{Error, Result};
use crate::extent::{Position, in_rare_width, in_width};
use crate::lots::Lots;
use crate::microdata::{Codes, Microdata, of_width, room};
use crate::rings::{DrawnRings, Rings, Worlds};
use crate::secrets::{self, Secrets};

/// Leaves, and rings inside them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leaves {
    /// End of each leaf in the people of the rings.
    pub ends: Vec<u32>,
    /// Rings of rows, leaf after leaf.
    pub rings: Rings,
    /// True for leaves whose cut was tried and failed.
    pub failed: Vec<bool>,
}

/// Source of the draws of parts. Each part has its own stream, so the number of threads does not matter.
pub(crate) trait Source: Sync {
    /// Returns the draws of the part with this place and so many rows.
    fn at(&self, offset: usize, rows: usize) -> impl Lots;
}

/// Streams of one generator.
pub(crate) struct Streams(pub [u8; 32]);

impl Source for Streams {
    fn at(&self, offset: usize, rows: usize) -> impl Lots {
        let mut stream = ChaCha20Rng::from_seed(self.0);
        stream.set_stream((offset as u64) << 32 | rows as u64);
        stream
    }
}

/// Table to be cut.
pub(crate) struct Fair<'a, S> {
    pub microdata: &'a Microdata,
    /// Value of each row, of which none makes up more than `1/l` of the rows.
    pub values: &'a Codes,
    /// Columns that are hidden each by itself, if they are several.
    pub secrets: Option<&'a Secrets>,
    pub l: usize,
    /// Rearrangements of values in which both sides of a cut must be diverse.
    pub worlds: Worlds,
    /// Least number of rows of a leaf; at least `l`.
    pub least: usize,
    /// Least chance of a cut to pass, by counts, for a try.
    pub sure: f32,
    /// True if the caller wants leaves only. Leaves that were not tried then have no rings.
    pub without_rings: bool,
    pub cuts: Cuts,
    pub source: &'a S,
    pub monitor: &'a Monitor,
}

impl<S: Source> Fair<'_, S> {
    /// Cuts the rows.
    ///
    /// # Errors
    /// When there are too many quasi-identifiers, or leaves of a hierarchy; when memory is short.
    pub(crate) fn leaves(&self) -> Result<Leaves> {
        let quasi = self.microdata.quasi.len();
        if self.secrets.is_some() {
            self.monitor.charge(self.microdata.rows * secrets::BYTES)?;
        }
        if are_narrow(self.microdata) {
            return in_width!(quasi, narrow(self));
        }
        self.monitor.charge(self.microdata.rows * more_bytes(quasi) * 3 / 2)?;
        in_rare_width!(quasi, wide(self))
    }
}

/// A leaf: its place, its rows, and the rings of the rows, which stand in their order.
struct Leaf {
    offset: usize,
    rows: usize,
    ends: Vec<u32>,
    shifts: Vec<u32>,
    failed: bool,
}

fn narrow<const W: usize>(fair: &Fair<'_, impl Source>) -> Result<Leaves> {
    leaves_by::<W, i16, _>(fair)
}

fn wide<const W: usize>(fair: &Fair<'_, impl Source>) -> Result<Leaves> {
    leaves_by::<W, f32, _>(fair)
}

fn leaves_by<const W: usize, P: Position, S: Source>(fair: &Fair<'_, S>) -> Result<Leaves> {
    let Fair { microdata, values, .. } = *fair;
    let mut all = Leaves { rings: Rings { width: fair.worlds.drawn(fair.l), ..Rings::default() }, ..Leaves::default() };
    if microdata.rows == 0 {
        return Ok(all);
    }
    let axes = Axes::<P>::new(microdata)?;
    fair.monitor.charge(axes.bytes())?;
    let rows = (0..microdata.rows as u32).into_par_iter().with_min_len(PARALLEL_FROM);
    let mut items: Vec<Item<W, P>> = rows.map(|row| Item::new(microdata, &axes, row, values.at(row))).collect();
    let trunk = Trunk { fair, axes: &axes, logs: LogFactorials::new(items.len()), failed: Mutex::new(Ok(0)) };
    let mut leaves = Vec::new();
    trunk.split(&mut items, &mut [], 0, &mut Scratch::default(), &mut leaves);
    fair.monitor.check()?;
    trunk.failed.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    leaves.sort_unstable_by_key(|leaf| leaf.offset);
    for leaf in leaves {
        all.ends.push((leaf.offset + leaf.rows) as u32);
        all.rings.ends.extend(leaf.ends.iter().map(|&end| leaf.offset as u32 + end));
        all.rings.shifts.extend(leaf.shifts);
        all.failed.push(leaf.failed);
    }
    all.rings.people = items.par_iter().map(|item| item.row).collect();
    Ok(all)
}

/// Logarithms of factorials: those of small numbers.
struct LogFactorials(Vec<f64>);

impl LogFactorials {
    /// At most so many are kept. Of greater numbers, what is left out of Stirling's series is less than the last bit.
    const KEPT: usize = 1 << 12;

    /// Makes room for numbers up to `n`.
    fn new(n: usize) -> Self {
        let mut sum = 0.0;
        let rest = (1..=n.min(Self::KEPT)).map(|i| {
            sum += (i as f64).ln();
            sum
        });
        Self(std::iter::once(0.0).chain(rest).collect())
    }

    fn of(&self, n: usize) -> f64 {
        self.0.get(n).copied().unwrap_or_else(|| {
            let n = n as f64;
            (n + 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + (1.0 - 1.0 / (30.0 * n * n)) / (12.0 * n)
        })
    }
}

/// Outcome of a part.
enum Attempt {
    /// So many rows stand in front now, on one side of the cut.
    Cut(usize),
    /// The rows stand in the order of these rings.
    Leaf { rings: Rings, failed: bool },
}

impl Attempt {
    /// Puts the items of a leaf into the order of its rings. Where they lie matters no more.
    fn rings_of<const W: usize, P: Position>(items: &mut [Item<W, P>], drawn: DrawnRings, failed: bool) -> Self {
        let rows: Vec<u32> = items.iter().map(|item| item.row).collect();
        items.iter_mut().zip(&drawn.rings.people).for_each(|(item, &person)| item.row = rows[person as usize]);
        Self::Leaf { rings: drawn.rings, failed }
    }
}

struct Trunk<'a, S, P> {
    fair: &'a Fair<'a, S>,
    axes: &'a Axes<P>,
    logs: LogFactorials,
    /// Bytes charged for searches of large parts, or what went wrong.
    failed: Mutex<Result<usize>>,
}

impl<S: Source, P: Position> Trunk<'_, S, P> {
    /// Cuts rows, and pushes the leaves.
    ///
    /// `buffer` has room for half of the rows, or is empty. Large parts get room for the smaller side of a cut only while they make it, not beside their
    /// rings.
    fn split<const W: usize>(
        &self,
        mut items: &mut [Item<W, P>],
        mut buffer: &mut [Item<W, P>],
        mut offset: usize,
        scratch: &mut Scratch<W, P>,
        leaves: &mut Vec<Leaf>,
    ) {
        while !self.fair.monitor.is_cancelled() {
            if buffer.len() < items.len() / 2 && items.len() <= LARGEST_WITH_ROOM {
                return self.split(items, &mut room(items.len() / 2), offset, scratch, leaves);
            }
            let Some(inside) = self.step(items, buffer, offset, scratch, leaves) else { return };
            let (a, b) = items.split_at_mut(inside);
            let (buffer_a, buffer_b) = buffer.split_at_mut((inside / 2).min(buffer.len()));
            if a.len().min(b.len()) >= PARALLEL_FROM {
                let mut others = Vec::new();
                rayon::join(
                    || self.split(a, buffer_a, offset, scratch, leaves),
                    || self.split(b, buffer_b, offset + inside, &mut Scratch::default(), &mut others),
                );
                leaves.append(&mut others);
                return;
            }
            // The smaller side on the stack, the larger in the loop: the stack stays low however uneven cuts are.
            if a.len() <= b.len() {
                self.split(a, buffer_a, offset, scratch, leaves);
                (items, buffer, offset) = (b, buffer_b, offset + inside);
            } else {
                self.split(b, buffer_b, offset + inside, scratch, leaves);
                (items, buffer) = (a, buffer_a);
            }
        }
    }

    /// Returns the single try: rows inside, which stand in front now; `None` for a leaf, and when something went wrong.
    fn step<const W: usize>(
        &self,
        items: &mut [Item<W, P>],
        buffer: &mut [Item<W, P>],
        offset: usize,
        scratch: &mut Scratch<W, P>,
        leaves: &mut Vec<Leaf>,
    ) -> Option<usize> {
        match self.attempt(items, buffer, offset, scratch) {
            Ok(Attempt::Cut(inside)) => return Some(inside),
            Ok(Attempt::Leaf { rings: Rings { ends, shifts, .. }, failed }) => {
                leaves.push(Leaf { offset, rows: items.len(), ends, shifts, failed });
            }
            Err(error) => self.fail(error),
        }
        None
    }

    fn attempt<const W: usize>(
        &self,
        items: &mut [Item<W, P>],
        buffer: &mut [Item<W, P>],
        offset: usize,
        scratch: &mut Scratch<W, P>,
    ) -> Result<Attempt> {
        let Fair { microdata, values, secrets, l, worlds, least, without_rings, monitor, .. } = *self.fair;
        let mut lots = self.fair.source.at(offset, items.len());
        let of_items: Vec<u32> = items.iter().map(|item| item.sensitive).collect();
        let counts = secrets.map_or_else(|| occurrences(&of_items), |secrets| secrets.occurrences(&of_items));
        let cut = self.best(items, &counts, scratch);
        let mut inside = Vec::with_capacity(items.len());
        cut.iter().for_each(|cut| inside.extend(cut.sides(items).map(|(_, inside)| inside)));
        let front = inside.iter().filter(|&&inside| inside).count();
        // Cuts of large parts are chosen by a sample; how many rows are on their sides has nothing to do with values.
        let Some(cut) = cut.filter(|_| front >= least && items.len() - front >= least) else {
            if without_rings {
                return Ok(Attempt::Leaf { rings: Rings::default(), failed: false });
            }
            if worlds != Worlds::Shifts {
                // Under theorem B, rings of neighbours would depend on each other, by the order of their lists. Of renamings, signatures count only.
                return Ok(Attempt::rings_of(items, DrawnRings::draw(of_items, secrets, l, worlds, &mut lots)?, false));
            }
            let mut rows: Vec<u32> = items.iter().map(|item| item.row).collect();
            let rings = of_width!(
                values,
                values => Rings::close(microdata, &mut rows, (secrets, values), l, &mut lots, monitor)
            )?;
            items.iter_mut().zip(&rings.people).for_each(|(item, &row)| item.row = row);
            return Ok(Attempt::Leaf { rings, failed: false });
        };
        let drawn = DrawnRings::draw(of_items, secrets, l, worlds, &mut lots)?;
        if drawn.are_diverse(&inside, l, worlds) {
            drop((drawn, inside));
            let smaller = front.min(items.len() - front);
            match smaller <= buffer.len() {
                true => cut.apply(items, buffer, front),
                false => cut.apply(items, &mut room(smaller), front),
            }
            return Ok(Attempt::Cut(front));
        }
        Ok(Attempt::rings_of(items, drawn, true))
    }

    fn fail(&self, error: Error) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_ok() {
            *failed = Err(error);
        }
    }

    /// Returns the cut to try, if there is one that may pass. `counts` are those of the values, or of the secrets of all columns.
    fn best<const W: usize>(
        &self,
        items: &[Item<W, P>],
        counts: &[usize],
        scratch: &mut Scratch<W, P>,
    ) -> Option<Cut<P>> {
        let Fair { l, least, .. } = *self.fair;
        if items.len() < 2 * least {
            return None;
        }
        let extent = around(items);
        if extent.is_point(self.axes.all.len()) {
            return None;
        }
        if self.fair.cuts == Cuts::Median {
            return median::cuts(self.axes, items, &extent, least).into_iter().next();
        }
        let mut odds = Odds { sure: self.fair.sure, ..Odds::new(&self.logs, l, self.fair.worlds, items.len(), counts) };
        let top = counts.iter().max().copied().unwrap_or(0);
        if items.len() > LARGE && TIGHT.1 * top * l > TIGHT.0 * items.len() {
            return None;
        }
        if items.len() > SAMPLED_FROM {
            let sample: Vec<Item<W, P>> = (0..SAMPLE).map(|i| items[i * items.len() / SAMPLE]).collect();
            let even = tight::Search { axes: self.axes, least: SAMPLE / tight::EVEN, even: true };
            if let Some(cut) = odds.best(&even, &sample, scratch) {
                return Some(cut);
            }
            let bytes = items.len() * tight::bytes_per_row::<W, P>();
            let mut charged = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(before) = *charged
                && bytes > before
            {
                *charged = self.fair.monitor.charge(bytes - before).map(|()| bytes);
            }
            if charged.is_err() {
                return None;
            }
        }
        odds.best(&tight::Search { axes: self.axes, least, even: false }, items, scratch)
    }
}

/// Number of rows above which a failed try costs a part much.
const LARGE: usize = 512;
/// Greatest share of its bound that a value may reach for a try there. Above it a weak link between values and
/// quasi-identifiers makes a cut fail. Then rings are drawn in the whole part.
const TIGHT: (usize, usize) = (2, 3);
/// Rows of a usual leaf, in multiples of `l`: smaller parts are seldom cut.
const LEAF: usize = 3;

/// Odds of cuts to pass, and their worth, by numbers of rows, counts and lengths. Counts are of values; nothing else is looked at.
struct Odds<'a> {
    logs: &'a LogFactorials,
    l: usize,
    worlds: Worlds,
    rows: usize,
    /// Counts of values, and how many values have each count.
    counts: Vec<(usize, usize)>,
    /// Chance of a cut to pass, by the rows of its smaller side; not a number where it is not known yet.
    of_side: Vec<f32>,
    /// Least chance of a cut that is tried.
    sure: f32,
}

impl<'a> Odds<'a> {
    fn new(logs: &'a LogFactorials, l: usize, worlds: Worlds, rows: usize, counts: &[usize]) -> Self {
        let mut counts = counts.to_vec();
        counts.sort_unstable();
        let counts = counts.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect();
        Self { logs, l, worlds, rows, counts, of_side: vec![f32::NAN; rows / 2 + 1], sure: 0.0 }
    }

    /// Returns the cut of these items after which the least loss is expected. Items are all rows or a sample; the loss is that in the end.
    fn best<const W: usize, P: Position>(
        &mut self,
        search: &tight::Search<'_, P>,
        items: &[Item<W, P>],
        scratch: &mut Scratch<W, P>,
    ) -> Option<Cut<P>> {
        let extent = around(items);
        let now = search.loss([(items.len(), &extent)]);
        let ends = (0..search.axes.all.len()).map(|attribute| extent.ends(attribute));
        let varying = ends.filter(|[lo, hi]| lo < hi).count().max(1);
        let all = self.rows;
        let of_items = |rows: usize| rows * all / items.len();
        let mut best: Option<(f32, Cut<P>)> = None;
        for &(after, inside, cut) in search.all(items, &extent, scratch) {
            let sides = [of_items(inside), all - of_items(inside)];
            let left: f32 = sides.iter().map(|&rows| rows as f32 * self.left(rows, varying)).sum();
            let saved = now - after * left / all as f32;
            if best.is_some_and(|(most, _)| saved <= most) {
                continue;
            }
            let passes = self.passes(sides[0].min(sides[1]));
            let expected = saved * passes;
            if passes >= self.sure && expected > best.map_or(0.0, |(most, _)| most) {
                best = Some((expected, cut));
            }
        }
        best.map(|(_, cut)| cut)
    }

    /// Returns the share of its loss that a part of so many rows may keep. A halving takes half of one of the lengths away.
    fn left(&self, rows: usize, varying: usize) -> f32 {
        let halvings = (rows as f32 / (LEAF * self.l) as f32).log2().max(0.0);
        (1.0 - 0.5 / varying as f32).powf(halvings)
    }

    /// Returns the chance that a cut with such a smaller side passes in all worlds. The estimate takes values and worlds as independent.
    fn passes(&mut self, side: usize) -> f32 {
        if self.of_side[side].is_nan() {
            let fits = |count: usize| match self.worlds {
                Worlds::Shifts | Worlds::Renamings => self.fits(side, count).powi(self.l as i32),
                Worlds::All => self.fits_in_all(side, count),
            };
            let all = self.counts.iter().map(|&(count, values)| fits(count).powi(values as i32));
            self.of_side[side] = all.product::<f64>() as f32;
        }
        self.of_side[side]
    }

    /// Returns the chance that a value keeps both sides diverse in all rearrangements.
    ///
    /// `count` rows have the value, each in a ring of its own. The smaller side has `side` rows. The function takes rings of `l` people, and both sides, as
    /// independent, and the number of rings with people on a side as normal.
    fn fits_in_all(&self, side: usize, count: usize) -> f64 {
        let of = |side: usize| {
            let touched = 1.0 - (1.0 - side as f64 / self.rows as f64).powi(self.l as i32);
            let (mean, spread) = (count as f64 * touched, (count as f64 * touched * (1.0 - touched)).sqrt());
            let room = (side / self.l) as f64 + 0.5 - mean;
            if spread < 1e-9 { f64::from(u8::from(room > 0.0)) } else { below(room / spread) }
        };
        of(side) * of(self.rows - side)
    }

    /// Returns the chance that a value of `count` rows keeps both sides diverse: hypergeometric.
    fn fits(&self, side: usize, count: usize) -> f64 {
        let other = self.rows - side;
        let least = count.saturating_sub(other / self.l);
        let most = count.min(side / self.l);
        if least > most {
            return 0.0;
        }
        if least <= count.saturating_sub(other) && most == count.min(side) {
            return 1.0;
        }
        let choose = |n: usize, k: usize| self.logs.of(n) - self.logs.of(k) - self.logs.of(n - k);
        let chance = |inside: usize| {
            (choose(count, inside) + choose(self.rows - count, side - inside) - choose(self.rows, side)).exp()
        };
        // What is farther than this from the mean does not happen.
        let mean = count as f64 * side as f64 / self.rows as f64;
        let far = 10.0 * mean.sqrt() + 10.0;
        let from = least.max((mean - far).max(0.0) as usize).max(count.saturating_sub(other));
        let to = most.min((mean + far) as usize);
        (from..=to).map(chance).sum::<f64>().min(1.0)
    }
}

/// Returns the chance that a normal variable is below so many standard deviations.
///
/// The logistic law stands for the normal one: it is within a hundredth of it.
fn below(deviations: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * deviations).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_great_factorials() {
        let few = LogFactorials::new(10_000_000);
        let mut sum = 0.0;
        for n in 1..=100_000 {
            sum += (n as f64).ln();
            assert!((few.of(n) - sum).abs() <= 1e-12 * sum, "{n}: {} {sum}", few.of(n));
        }
    }

    /// Against all ways to choose a side of eight rows.
    #[test]
    fn chances_are_those_of_all_sides() {
        let values = [0, 0, 0, 1, 1, 2, 3, 4];
        let logs = LogFactorials::new(8);
        for l in [2, 3] {
            for side in 1..=4_u32 {
                let all = || (0_u32..1 << 8).filter(|mask| mask.count_ones() == side);
                let odds = Odds::new(&logs, l, Worlds::Shifts, 8, &[3, 2, 1, 1, 1]);
                for (value, count) in [(0, 3), (1, 2), (2, 1)] {
                    let fits = |mask: &u32| {
                        let inside = (0..8).filter(|&i| mask >> i & 1 == 1 && values[i] == value).count();
                        inside * l <= side as usize && (count - inside) * l <= 8 - side as usize
                    };
                    let exact = all().filter(fits).count() as f64 / all().count() as f64;
                    assert!((odds.fits(side as usize, count) - exact).abs() < 1e-9, "{l} {side} {value}");
                }
            }
        }
    }
}
