//! Counts of each point's possible values, with the weight of one, without lists of them.
//!
//! Where values never change, what is left of somebody's candidates after several releases is what all of them have in common, and
//! the probability of a value is its share of the products of weights. Releases are gone through one after the other: what is left of
//! one's boxes and values fits into a processor's cache, and all of them together do not. Down the tree and along the lines of [`Walk`] the weights of
//! the release's values are kept up to date with each box, and where points are reported, what they have in common so far is multiplied by them. Weights are
//! whole numbers of small shares of a row, so that nothing is left of a box that was left.

use std::num::NonZeroU64;
use std::ops::Range;

use super::super::evidence::NONE;
use super::Boxes;
use super::walk::{Visitor, Walk};

/// Greatest number of units of all rows together, with room for what is rounded up. The weight of a share of a row is off
/// by half a unit: in a release of ten million rows, by a hundred-millionth of what a row of a group of a thousand weighs.
const MOST_UNITS: f64 = (1_u64 << 61) as f64;

/// Range of products: those outside are moved inside, by a power of two kept beside them.
const SAFE: Range<f64> = 1e-120..1e120;
/// The power by which products move: in [`SAFE`] and multiplied by a weight, they stay or return there.
const POWER: f64 = f64::from_bits((1023 + 400) << 52);

/// Bytes of what points have in common that are held at a time, about; and fewest points of which they are.
const HELD: usize = 64 << 20;
const FEWEST: usize = 64;

/// People whom the same releases had, and those releases.
pub(crate) struct Counts<'a> {
    /// Boxes of each release.
    pub releases: &'a [&'a Boxes],
    /// Number of sensitive values.
    pub values: usize,
    /// Points, each with the codes of all releases one after the other; or with one release's, if all are alike.
    pub points: &'a [u32],
    /// Number of each person's point.
    pub point: &'a [u32],
    /// Of each person and release, the true value or [`NONE`].
    pub truth: &'a [u32],
}

#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// Values that the person can have by the release alone.
    pub candidates: Vec<u32>,
    /// Values that are left in view of all.
    pub remaining: Vec<u32>,
    /// Probability of the true value in view of all.
    pub risk: Vec<Option<f64>>,
}

impl Counts<'_> {
    /// Returns the findings on all people. `attributes` is the number of codes of a point.
    pub(crate) fn sizes(&self, attributes: usize) -> Sizes {
        let all = self.point.len() * self.releases.len();
        let mut found = Sizes { candidates: vec![0; all], remaining: vec![0; all], risk: vec![None; all] };
        let points = self.points.len() / attributes.max(1);
        let mut people = vec![Vec::new(); points];
        (0..).zip(self.point).for_each(|(person, &point)| people[point as usize].push(person));
        let most = (HELD / (self.values * size_of::<Common>()).max(1)).max(FEWEST);
        let chunks = self.points.chunks(most * attributes.max(1)).zip(people.chunks(most));
        for (points, people) in chunks {
            self.of_points(attributes, points, people, &mut found);
        }
        found
    }

    /// Counts for some points, and the people at each of them.
    fn of_points(&self, attributes: usize, points: &[u32], people: &[Vec<u32>], found: &mut Sizes) {
        let k = self.releases.len();
        let mut common = vec![Vec::new(); people.len()];
        let mut sizes = vec![0; people.len() * k];
        for (release, boxes) in self.releases.iter().enumerate() {
            let d = boxes.quasi;
            let first = if attributes > d { release * d } else { 0 };
            let points: Vec<u32> =
                points.chunks_exact(attributes).flat_map(|point| &point[first..first + d]).copied().collect();
            let counter = Counter::new(boxes, self.values);
            let counting = Counting { counter, common: &mut common, sizes: &mut sizes, release: (release, k) };
            Walk::run(d, &points, boxes.ends.clone(), boxes.group.len(), counting);
        }
        for ((people, common), sizes) in people.iter().zip(&common).zip(sizes.chunks_exact(k)) {
            let most = common.iter().map(|common| common.power).max();
            let total: f64 = common.iter().map(|common| common.relative(most.unwrap_or(0))).sum();
            let share = |value: u32| {
                let own = common.binary_search_by_key(&value, |common| common.value);
                most.map(|most| own.map_or(0.0, |own| common[own].relative(most) / total))
            };
            for &person in people {
                // Values do not change, so it is the same in all releases, as a rule.
                let mut last = (NONE, None);
                for release in (0..k).filter(|&release| sizes[release] > 0) {
                    let at = person as usize * k + release;
                    found.candidates[at] = sizes[release];
                    found.remaining[at] = common.len() as u32;
                    let truth = self.truth[at];
                    if last.0 != truth {
                        last = (truth, share(truth));
                    }
                    found.risk[at] = last.1;
                }
            }
        }
    }

    pub(crate) fn bytes(releases: &[&Boxes], values: usize, attributes: usize, people: usize) -> usize {
        let boxes = releases.iter().map(|boxes| boxes.group.len()).max().unwrap_or(0);
        let common = (people * values * size_of::<Common>()).min(HELD.max(FEWEST * values * size_of::<Common>()));
        let walk = boxes * (2 * attributes * size_of::<[u32; 2]>() + 20 * size_of::<u32>() + size_of::<Place>());
        common + walk + people * (attributes * 8 + releases.len() * 60 + size_of::<u32>())
    }
}

/// Number of units of a row: a power of two. A weight is a whole number of them, so that sums are exact, whatever is added and taken back.
#[derive(Clone, Copy)]
struct Units(f64);

impl Units {
    /// Chooses the units for so many rows.
    fn of(rows: f64) -> Self {
        Self((MOST_UNITS / rows).log2().floor().exp2().max(1.0))
    }

    /// Returns the weight of a share of a row; it is never nothing.
    fn weight(self, share: f64) -> u64 {
        (share * self.0).round().max(1.0) as u64
    }
}

/// A box: where the values of its group are, its rows, and the weight of each of its values, if all have the same.
struct Place {
    values: Range<u32>,
    rows: u32,
    weight: Option<NonZeroU64>,
}

impl Place {
    fn of(boxes: &Boxes, place: usize, units: Units) -> Self {
        let group = boxes.group[place];
        let (range, rows) = (boxes.range(group), boxes.rows[place]);
        let weight = boxes.packed.1[group as usize].map(|share| units.weight(share) * u64::from(rows));
        Self { values: range.start as u32..range.end as u32, rows, weight: weight.and_then(NonZeroU64::new) }
    }
}

/// The product of a value's weights in the releases so far.
#[derive(Debug, Clone, Copy)]
struct Common {
    value: u32,
    product: f64,
    /// Number of times that the product is to be multiplied by [`POWER`].
    power: i32,
}

impl Common {
    fn multiply(&mut self, weight: f64) {
        self.product *= weight;
        if !SAFE.contains(&self.product) {
            let small = self.product < 1.0;
            self.product *= if small { POWER } else { POWER.recip() };
            self.power += if small { -1 } else { 1 };
        }
    }

    /// Returns the product, if those with the greatest power are taken for what they are.
    fn relative(&self, most: i32) -> f64 {
        self.product * if self.power == most { 1.0 } else { POWER.powi(self.power - most) }
    }
}

/// Weights of a release's values on the way.
struct Counter<'a> {
    boxes: &'a Boxes,
    places: Vec<Place>,
    units: Units,
    /// By what weights are multiplied for products to stay near 1.
    scale: f64,
    /// Of each value, the weight of the boxes that were entered.
    weights: Vec<u64>,
    /// Number of values that have one.
    size: u32,
}

impl<'a> Counter<'a> {
    fn new(boxes: &'a Boxes, values: usize) -> Self {
        let rows = boxes.rows.iter().map(|&rows| f64::from(rows)).sum::<f64>().max(1.0);
        let units = Units::of(rows);
        let places = (0..boxes.group.len()).map(|place| Place::of(boxes, place, units)).collect();
        let scale = values as f64 / rows / units.0;
        Self { boxes, places, units, scale, weights: vec![0; values], size: 0 }
    }

    /// Calls `f` with the weight of each value of a box, and the box's addition.
    #[inline]
    fn for_each(&mut self, place: u32, mut f: impl FnMut(&mut u64, u64)) {
        let Place { values, rows, weight } = &self.places[place as usize];
        let (range, weights) = (values.start as usize..values.end as usize, self.weights.as_mut_slice());
        match weight {
            Some(weight) => {
                self.boxes.packed.0[range].iter().for_each(|&value| f(&mut weights[value as usize], weight.get()));
            }
            None => self.boxes.shares[range].iter().for_each(|&(value, share)| {
                f(&mut weights[value as usize], self.units.weight(share) * u64::from(*rows));
            }),
        }
    }
}

/// Counts for points: of each, what it has in common so far, and of each of them and release the number of values.
struct Counting<'a, 'b> {
    counter: Counter<'a>,
    common: &'b mut [Vec<Common>],
    sizes: &'b mut [u32],
    /// Number of the release, and how many there are.
    release: (usize, usize),
}

impl Visitor for Counting<'_, '_> {
    fn enter(&mut self, place: u32) {
        let mut new = 0;
        self.counter.for_each(place, |weight, more| {
            new += u32::from(*weight == 0);
            *weight += more;
        });
        self.counter.size += new;
    }

    fn leave(&mut self, place: u32) {
        let mut gone = 0;
        self.counter.for_each(place, |weight, less| {
            *weight -= less;
            gone += u32::from(*weight == 0);
        });
        self.counter.size -= gone;
    }

    fn report(&mut self, points: &[u32]) {
        let Self { counter: Counter { weights, scale, size, .. }, common, sizes, release: (release, k) } = self;
        // Weights fit into a signed number, which a processor turns into a float in one step.
        let scaled = |weight: u64| weight as i64 as f64 * *scale;
        // Releases that do not cover a point say nothing of it.
        for &point in points.iter().filter(|_| *size > 0) {
            let (sizes, common) = (&mut sizes[point as usize * *k..][..*k], &mut common[point as usize]);
            if sizes.iter().all(|&size| size == 0) {
                let own = (0..).zip(&*weights).filter(|(_, weight)| **weight != 0);
                common.reserve_exact(*size as usize);
                common.extend(own.map(|(value, weight)| Common { value, product: scaled(*weight), power: 0 }));
            } else {
                common.retain_mut(|common| {
                    let weight = weights[common.value as usize];
                    common.multiply(scaled(weight));
                    weight != 0
                });
            }
            sizes[*release] = *size;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Shares are off by half a unit at most, and nothing taken back remains. That is little but in groups of millions; the order does not matter.
        #[test]
        fn weights_are_precise_and_leave_nothing(
            rows in prop::sample::select(vec![1.0, 30.0, 1e4, 1e6, 1e7, 2e8]),
            sizes in prop::collection::vec(0.0..1.0_f64, 1..50),
        ) {
            let units = Units::of(rows);
            // Groups of one row to all rows, and of each one row of a value.
            let weights: Vec<u64> = sizes.iter().map(|size| units.weight(rows.powf(-size))).collect();
            for (&weight, size) in weights.iter().zip(&sizes) {
                let share = rows.powf(-size);
                // Half a unit.
                let most = 1e-15 + rows / share / MOST_UNITS;
                prop_assert!(most < 0.02 && (rows > 1e7 || most < 1e-4) && (rows > 1e6 || most < 1e-6));
                prop_assert!((weight as f64 / units.0 / share - 1.0).abs() <= most, "{rows} {share}");
            }
            // There are no more groups than rows.
            let groups = || weights.iter().take(rows as usize);
            let all: u64 = groups().sum();
            prop_assert!(all > 0);
            prop_assert_eq!(groups().rev().fold(all, |sum, weight| sum - weight), 0);
        }
    }
}
