//! How many values each point can have, and how heavy one of them is, without lists of them.
//!
//! Where values never change, what is left of somebody's candidates after several releases is what all of them have in common, and
//! the probability of a value is its share of the products of weights. Releases are gone through one after the other: what is left of
//! one's boxes and values fits into a processor's cache, and all of them together do not. Down the tree and along the lines of [`Walk`] the weights of
//! the release's values are kept up to date with each box, and where points are reported, what they have in common so far is multiplied by them. Weights are
//! whole numbers of small shares of a row, so that nothing is left of a box that was left.

use std::ops::Range;

use super::super::evidence::NONE;
use super::Boxes;
use super::walk::{Visitor, Walk};

/// Sums of whole numbers below it are exact, and so is what [`Units::weight`] does with numbers below half of it.
const EXACT: f64 = (1_u64 << 51) as f64;

/// Products of weights outside are moved inside, by a power of two that is kept beside them.
const SAFE: Range<f64> = 1e-120..1e120;
/// That power: products in [`SAFE`], multiplied by a weight, stay there or get there.
const POWER: f64 = f64::from_bits((1023 + 400) << 52);

/// Bytes of what points have in common that are held at a time, about; and fewest points of which they are.
const HELD: usize = 64 << 20;
const FEWEST: usize = 64;

/// KnownPeople whom the same releases had, and those releases.
pub(in crate::risk) struct Counts<'a> {
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

/// What was found, of each person and release.
#[derive(Debug, Default)]
pub(in crate::risk) struct Sizes {
    /// Values that the person can have by the release alone.
    pub candidates: Vec<u32>,
    /// Values that are left in view of all.
    pub remaining: Vec<u32>,
    /// Probability of the true value in view of all.
    pub risk: Vec<Option<f64>>,
}

impl Counts<'_> {
    /// Counts. `attributes` is the number of codes of a point.
    pub(in crate::risk) fn sizes(&self, attributes: usize) -> Sizes {
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

    /// Bytes that this takes, about.
    pub(in crate::risk) fn bytes(releases: &[&Boxes], values: usize, attributes: usize, people: usize) -> usize {
        let boxes = releases.iter().map(|boxes| boxes.group.len()).max().unwrap_or(0);
        let common = (people * values * size_of::<Common>()).min(HELD.max(FEWEST * values * size_of::<Common>()));
        let walk = boxes * (2 * attributes * size_of::<[u32; 2]>() + 9 * size_of::<u32>() + size_of::<Place>());
        common + walk + people * (attributes * 8 + releases.len() * 60)
    }
}

/// A weight as a number of large units and one of small ones, both whole: sums of them are exact, whatever is added and taken back.
type Weight = [f64; 2];

/// How many large units a row is, and how many small ones a large one; all rows together are less than [`EXACT`] of either.
#[derive(Clone, Copy)]
struct Units(f64, f64);

impl Units {
    fn of(rows: f64) -> Self {
        let power = |most: f64| most.log2().floor().exp2().max(1.0);
        Self(power(EXACT / 4.0 / rows), power(EXACT / rows))
    }

    /// The weight of a share of a row; it is never nothing.
    fn weight(self, share: f64) -> Weight {
        let whole = |number: f64| number + 3.0 * EXACT - 3.0 * EXACT;
        let large = whole(share * self.0);
        let small = whole((share * self.0 - large) * self.1);
        [large, if large == 0.0 { small.max(1.0) } else { small }]
    }

    /// How many rows a weight is.
    fn rows(self, [large, small]: Weight) -> f64 {
        (large + small / self.1) / self.0
    }
}

/// A box: where the values of its group are, its rows, and the weight of each of its values, if all have the same.
struct Place {
    values: Range<u32>,
    rows: f64,
    weight: Weight,
    even: bool,
}

impl Place {
    fn of(boxes: &Boxes, place: usize, units: Units) -> Self {
        let group = boxes.group[place];
        let range = boxes.range(group);
        let (rows, share) = (f64::from(boxes.rows[place]), boxes.packed.1[group as usize]);
        let values = range.start as u32..range.end as u32;
        let weight = units.weight(share.unwrap_or(0.0)).map(|number| number * rows);
        Self { values, rows, weight, even: share.is_some() }
    }
}

/// The product of a value's weights in the releases so far.
#[derive(Debug, Clone, Copy)]
struct Common {
    value: u32,
    product: f64,
    /// How many times the product is to be multiplied by [`POWER`].
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

    /// The product, if those with the greatest power are taken for what they are.
    fn relative(&self, most: i32) -> f64 {
        self.product * if self.power == most { 1.0 } else { POWER.powi(self.power - most) }
    }
}

/// Weights of a release's values on the way.
struct Counter<'a> {
    boxes: &'a Boxes,
    places: Vec<Place>,
    units: Units,
    /// By what rows are multiplied for products to stay near 1.
    scale: f64,
    /// Of each value, the weight of the boxes that were entered.
    weights: Vec<Weight>,
    /// Number of values that have one.
    size: u32,
}

impl<'a> Counter<'a> {
    fn new(boxes: &'a Boxes, values: usize) -> Self {
        let rows = boxes.rows.iter().map(|&rows| f64::from(rows)).sum::<f64>().max(1.0);
        let units = Units::of(rows);
        let places = (0..boxes.group.len()).map(|place| Place::of(boxes, place, units)).collect();
        Self { boxes, places, units, scale: values as f64 / rows, weights: vec![[0.0; 2]; values], size: 0 }
    }

    /// Calls `f` with the weight of each value of a box, and what the box adds to it.
    #[inline]
    fn for_each(&mut self, place: u32, mut f: impl FnMut(&mut Weight, Weight)) {
        let Place { values, rows, weight, even } = &self.places[place as usize];
        let (range, weights) = (values.start as usize..values.end as usize, self.weights.as_mut_slice());
        match even {
            true => self.boxes.packed.0[range].iter().for_each(|&value| f(&mut weights[value as usize], *weight)),
            false => self.boxes.shares[range].iter().for_each(|&(value, share)| {
                f(&mut weights[value as usize], self.units.weight(share).map(|number| number * rows));
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
        self.counter.for_each(place, |[large, small], more| {
            new += u32::from(*large == 0.0 && *small == 0.0);
            *large += more[0];
            *small += more[1];
        });
        self.counter.size += new;
    }

    fn leave(&mut self, place: u32) {
        let mut gone = 0;
        self.counter.for_each(place, |[large, small], less| {
            *large -= less[0];
            *small -= less[1];
            gone += u32::from(*large == 0.0 && *small == 0.0);
        });
        self.counter.size -= gone;
    }

    fn report(&mut self, points: &[u32]) {
        let Self { counter: Counter { weights, units, scale, size, .. }, common, sizes, release: (release, k) } = self;
        // Releases that do not cover a point say nothing of it.
        for &point in points.iter().filter(|_| *size > 0) {
            let (sizes, common) = (&mut sizes[point as usize * *k..][..*k], &mut common[point as usize]);
            if sizes.iter().all(|&size| size == 0) {
                let own = (0..).zip(&*weights).filter(|(_, weight)| **weight != [0.0; 2]);
                common.reserve_exact(*size as usize);
                common.extend(own.map(|(value, weight)| Common {
                    value,
                    product: units.rows(*weight) * *scale,
                    power: 0,
                }));
            } else {
                common.retain_mut(|common| {
                    let weight = weights[common.value as usize];
                    common.multiply(units.rows(weight) * *scale);
                    weight != [0.0; 2]
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
        /// Shares of the largest groups are as precise as those of small ones, and nothing is left of what is taken back in any order.
        #[test]
        fn weights_are_precise_and_leave_nothing(
            rows in prop::sample::select(vec![1.0, 30.0, 1e4, 1e6, 1e7, 2e8]),
            sizes in prop::collection::vec(0.0..1.0_f64, 1..50),
        ) {
            let units = Units::of(rows);
            // Groups of one row to all rows, and of each one row of a value.
            let weights: Vec<Weight> = sizes.iter().map(|size| units.weight(rows.powf(-size))).collect();
            for (weight, size) in weights.iter().zip(&sizes) {
                let share = rows.powf(-size);
                let most = if rows > 1e7 { 1e-5 } else { 1e-8 };
                prop_assert!((units.rows(*weight) / share - 1.0).abs() < most, "{rows} {share}");
            }
            let sum = |[large, small]: Weight, weight: &Weight| [large + weight[0], small + weight[1]];
            let all = weights.iter().fold([0.0; 2], sum);
            prop_assert!(all != [0.0; 2]);
            let left = weights.iter().rev().fold(all, |[large, small], weight| [large - weight[0], small - weight[1]]);
            prop_assert_eq!(left, [0.0; 2]);
        }
    }
}
