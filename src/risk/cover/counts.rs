//! How many values each point can have, and how heavy one of them is, without lists of them.
//!
//! Where values never change, what is left of somebody's candidates after several releases is what all of them have in common, and
//! the probability of a value is its share of the products of weights. Down the tree of [`Walk`] the weights of each release's values
//! are kept up to date with each box; they stand side by side, so that a look at all of them, which is only taken where points
//! are reported, is a few additions beside the boxes entered on the way. Weights are whole numbers of small shares of a row, so that nothing is left
//! of a box that was left.

use std::ops::Range;

use super::super::evidence::NONE;
use super::Boxes;
use super::walk::{Visitor, Walk};

/// Sums of weights below it are exact, and so is what [`whole`] does with numbers below half of it.
const EXACT: f64 = (1_u64 << 51) as f64;

/// Products of weights outside are moved inside, by a power of two that is kept beside them.
const SAFE: Range<f64> = 1e-120..1e120;
/// That power: products in [`SAFE`] stay there, or get there.
const POWER: f64 = f64::from_bits((1023 + 400) << 52);
/// Factors that no product in [`SAFE`] leaves the range of numbers by: a weight is a share of a group times a share of a release.
const FACTORS: usize = 8;

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
        let k = self.releases.len();
        let apart = attributes > self.releases.first().map_or(0, |boxes| boxes.quasi);
        let units: Vec<f64> = self.releases.iter().map(|boxes| unit(boxes)).collect();
        let (mut ends, mut places) = (Vec::new(), Vec::new());
        for ((number, boxes), &unit) in (0..).zip(self.releases).zip(&units) {
            let first = if apart { number as usize * boxes.quasi } else { 0 };
            for (place, own) in boxes.ends.chunks_exact(boxes.quasi).enumerate() {
                let start = ends.len();
                ends.resize(start + attributes, [0, u32::MAX]);
                ends[start + first..][..own.len()].copy_from_slice(own);
                places.push(Place::of(boxes, number, place, unit));
            }
        }
        let points = self.points.len() / attributes.max(1);
        let mut people = vec![Vec::new(); points];
        (0..).zip(self.point).for_each(|(person, &point)| people[point as usize].push(person));
        let scale = |(boxes, unit): (&&Boxes, &f64)| self.values as f64 / (boxes.all_rows() * unit);
        let all = self.point.len() * k;
        let counter = Counter {
            asked: self,
            boxes: places.len(),
            scale: self.releases.iter().zip(&units).map(scale).collect(),
            units,
            places,
            people,
            weights: vec![0.0; self.values * k],
            sizes: vec![0; k],
            common: Vec::new(),
            found: Sizes { candidates: vec![0; all], remaining: vec![0; all], risk: vec![None; all] },
        };
        let boxes = counter.boxes;
        Walk::run(attributes, self.points, ends, boxes, counter).found
    }

    /// Bytes that this takes, about.
    pub(in crate::risk) fn bytes(releases: &[&Boxes], values: usize, attributes: usize, people: usize) -> usize {
        let boxes: usize = releases.iter().map(|boxes| boxes.group.len()).sum();
        let cells = values * (releases.len() * size_of::<f64>() + size_of::<Common>());
        let walk = boxes * (2 * attributes * size_of::<[u32; 2]>() + 9 * size_of::<u32>() + size_of::<Place>());
        cells + walk + people * (attributes * 4 + releases.len() * 40)
    }
}

/// What weights of a release are counted in: its rows together are below [`EXACT`].
fn unit(boxes: &Boxes) -> f64 {
    (EXACT / 4.0 / boxes.all_rows()).log2().floor().exp2().max(1.0)
}

/// How many of the release's units a share of a row is.
fn whole(share: f64, unit: f64) -> f64 {
    (share * unit + 3.0 * EXACT - 3.0 * EXACT).max(1.0)
}

/// A box: where the values of its group are in its release, and the weight of each of them; or that of a unit of a share, if they do not have the
/// same.
struct Place {
    release: u32,
    values: Range<u32>,
    weight: f64,
    even: bool,
}

impl Place {
    fn of(boxes: &Boxes, release: u32, place: usize, unit: f64) -> Self {
        let group = boxes.group[place];
        let range = boxes.range(group);
        let (rows, share) = (f64::from(boxes.rows[place]), boxes.packed.1[group as usize]);
        let values = range.start as u32..range.end as u32;
        let weight = rows * share.map_or(1.0, |share| whole(share, unit));
        Self { release, values, weight, even: share.is_some() }
    }

    fn range(&self) -> Range<usize> {
        self.values.start as usize..self.values.end as usize
    }
}

/// Counts on the way down.
struct Counter<'a, 'b> {
    asked: &'a Counts<'b>,
    boxes: usize,
    /// What there is to each box, side by side.
    places: Vec<Place>,
    /// KnownPeople of each point.
    people: Vec<Vec<u32>>,
    /// What weights of each release are counted in, and by what they are multiplied for products to stay near 1.
    units: Vec<f64>,
    scale: Vec<f64>,
    /// Of each release and value, the weight of the boxes that were entered.
    weights: Vec<f64>,
    /// Number of values of each release.
    sizes: Vec<u32>,
    /// Values that all releases have which cover the point at hand, ascending.
    common: Vec<Common>,
    found: Sizes,
}

/// The product of a value's weights.
#[derive(Clone, Copy)]
struct Common {
    value: u32,
    product: f64,
    /// How many times the product is to be multiplied by [`POWER`].
    power: i32,
}

impl Counter<'_, '_> {
    /// Finds out what all releases have in common that cover the point.
    fn intersect(&mut self) {
        let Self { asked, weights, scale, sizes, common, .. } = self;
        common.clear();
        let values = asked.values.max(1);
        let covering = || (0..sizes.len()).filter(|&release| sizes[release] > 0);
        let weights = |release: usize| &weights[release * values..][..values];
        let Some(fewest) = covering().min_by_key(|&release| sizes[release]) else { return };
        let own = (0..).zip(weights(fewest)).filter(|(_, weight)| **weight > 0.0);
        common.extend(own.map(|(value, _)| Common { value, product: 1.0, power: 0 }));
        for (number, release) in (1..).zip(covering()) {
            let (weights, scale) = (weights(release), scale[release]);
            common.retain_mut(|Common { value, product, .. }| {
                let weight = weights[*value as usize];
                *product *= weight * scale;
                weight > 0.0
            });
            if number % FACTORS == 0 {
                for Common { product, power, .. } in common.iter_mut().filter(|common| !SAFE.contains(&common.product))
                {
                    let small = *product < 1.0;
                    *product *= if small { POWER } else { POWER.recip() };
                    *power += if small { -1 } else { 1 };
                }
            }
        }
    }
}

impl Common {
    /// The product, if those with the greatest power are taken for what they are.
    fn relative(&self, most: i32) -> f64 {
        self.product * if self.power == most { 1.0 } else { POWER.powi(self.power - most) }
    }
}

impl Counter<'_, '_> {
    /// Calls `f` with the weight of each value of a box in its release, and what the box adds to it.
    #[inline]
    fn for_each(&mut self, place: u32, mut f: impl FnMut(&mut f64, f64)) -> usize {
        let (place, values) = (&self.places[place as usize], self.asked.values);
        let (release, range) = (place.release as usize, place.range());
        let (boxes, unit) = (self.asked.releases[release], self.units[release]);
        let weights = &mut self.weights[release * values..][..values];
        match place.even {
            true => boxes.packed.0[range].iter().for_each(|&value| f(&mut weights[value as usize], place.weight)),
            false => boxes.shares[range].iter().for_each(|&(value, share)| {
                f(&mut weights[value as usize], place.weight * whole(share, unit));
            }),
        }
        release
    }
}

impl Visitor for Counter<'_, '_> {
    fn enter(&mut self, place: u32) {
        let mut new = 0;
        let release = self.for_each(place, |weight, more| {
            new += u32::from(*weight == 0.0);
            *weight += more;
        });
        self.sizes[release] += new;
    }

    fn leave(&mut self, place: u32) {
        let mut gone = 0;
        let release = self.for_each(place, |weight, less| {
            *weight -= less;
            gone += u32::from(*weight == 0.0);
        });
        self.sizes[release] -= gone;
    }

    fn report(&mut self, points: &[u32]) {
        let k = self.scale.len();
        self.intersect();
        let Self { common, sizes, found, .. } = self;
        let most = common.iter().map(|common| common.power).max();
        let total: f64 = common.iter().map(|common| common.relative(most.unwrap_or(0))).sum();
        let share = |value: u32| {
            let own = common.binary_search_by_key(&value, |common| common.value);
            most.map(|most| own.map_or(0.0, |own| common[own].relative(most) / total))
        };
        for &person in points.iter().flat_map(|&point| &self.people[point as usize]) {
            // Values do not change, so it is the same in all releases, as a rule.
            let mut last = (NONE, None);
            for release in (0..k).filter(|&release| sizes[release] > 0) {
                let at = person as usize * k + release;
                found.candidates[at] = sizes[release];
                found.remaining[at] = common.len() as u32;
                let truth = self.asked.truth[at];
                if last.0 != truth {
                    last = (truth, share(truth));
                }
                found.risk[at] = last.1;
            }
        }
    }
}
