//! How many values each point can have, and how heavy one of them is, without lists of them.
//!
//! Where values never change, what is left of somebody's candidates after several releases is what all of them have in common, and
//! the probability of a value is its share of the products of weights. Down the tree of [`Walk`] candidates only become more
//! and heavier, so that both are kept up to date with each box, and a point costs nothing more, however many values there are.

use std::ops::Range;

use super::super::evidence::NONE;
use super::Boxes;
use super::walk::{Visitor, Walk};

/// Products of weights outside are added up anew, by logarithms.
const SAFE: Range<f64> = 1e-200..1e200;
/// Products outside are multiplied anew when a weight changes, and not by the quotient: nothing of them may be left.
const PRECISE: Range<f64> = 1e-250..1e250;

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
        let (mut ends, mut places) = (Vec::new(), Vec::new());
        for (number, boxes) in (0..).zip(self.releases) {
            let first = if apart { number as usize * boxes.quasi } else { 0 };
            for (place, own) in boxes.ends.chunks_exact(boxes.quasi).enumerate() {
                let start = ends.len();
                ends.resize(start + attributes, [0, u32::MAX]);
                ends[start + first..][..own.len()].copy_from_slice(own);
                places.push(Place::of(boxes, number, place));
            }
        }
        let points = self.points.len() / attributes.max(1);
        let mut people = vec![Vec::new(); points];
        (0..).zip(self.point).for_each(|(person, &point)| people[point as usize].push(person));
        let scale =
            |boxes: &&Boxes| self.values as f64 / boxes.rows.iter().map(|&n| f64::from(n)).sum::<f64>().max(1.0);
        let all = self.point.len() * k;
        let counter = Counter {
            asked: self,
            boxes: places.len(),
            scale: self.releases.iter().map(scale).collect(),
            places,
            people,
            cells: vec![(0.0, 0); self.values * k],
            present: vec![0; self.values],
            products: vec![0.0; self.values],
            before: Vec::new(),
            touched: Vec::new(),
            sizes: vec![0; k],
            common: 0,
            weight: 0.0,
            found: Sizes { candidates: vec![0; all], remaining: vec![0; all], risk: vec![None; all] },
        };
        let boxes = counter.boxes;
        Walk::run(attributes, self.points, ends, boxes, counter).found
    }

    /// Bytes that this takes, about.
    pub(in crate::risk) fn bytes(releases: &[&Boxes], values: usize, attributes: usize, people: usize) -> usize {
        let boxes: usize = releases.iter().map(|boxes| boxes.group.len()).sum();
        let cells = values * (releases.len() * size_of::<(f64, u32)>() + size_of::<(f64, u32)>());
        // Of the boxes around a node.
        let before: usize = releases.iter().map(|boxes| boxes.packed.0.len()).sum::<usize>() * size_of::<(f64, f64)>();
        let walk = boxes * (2 * attributes * size_of::<[u32; 2]>() + 2 * size_of::<u32>() + size_of::<Place>());
        cells + before + walk + people * (attributes * 4 + releases.len() * 40)
    }
}

/// A box: where the values of its group are in its release, and how many rows have each of them, or all, if they do not have the same.
struct Place {
    release: u32,
    values: Range<u32>,
    rows: f64,
    even: bool,
}

impl Place {
    fn of(boxes: &Boxes, release: u32, place: usize) -> Self {
        let group = boxes.group[place];
        let range = boxes.range(group);
        let (rows, share) = (f64::from(boxes.rows[place]), boxes.packed.1[group as usize]);
        let values = range.start as u32..range.end as u32;
        Self { release, values, rows: rows * share.unwrap_or(1.0), even: share.is_some() }
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
    /// By what weights of each release are multiplied, for products to stay near 1.
    scale: Vec<f64>,
    /// Of each release and value, the rows of the boxes around the node, and how many of these boxes have it.
    cells: Vec<(f64, u32)>,
    /// Number of releases that have the value.
    present: Vec<u32>,
    /// Of values that all releases have, the product of their weights.
    products: Vec<f64>,
    /// What rows and products were before boxes were entered, value by value of each.
    before: Vec<(f64, f64)>,
    /// Values that a release has, in the order in which they were found.
    touched: Vec<u32>,
    /// Number of values of each release.
    sizes: Vec<u32>,
    /// Number of values that all releases have, and the sum of their products.
    common: u32,
    weight: f64,
    found: Sizes,
}

impl Counter<'_, '_> {
    /// What each release has of a value.
    fn of(&self, value: u32) -> impl Iterator<Item = &(f64, u32)> {
        self.cells.iter().skip(value as usize).step_by(self.asked.values.max(1))
    }

    /// The share that the product of a value's weights has in the sum of all: `total`, and the logarithm of the factor that it was
    /// divided by, if it was added up by logarithms.
    fn share(&self, value: u32, (total, factor): (f64, Option<f64>)) -> f64 {
        if let Some(factor) = factor {
            return self.logarithm(value).map_or(0.0, |logarithm| (logarithm - factor).exp() / total);
        }
        let weights = self.of(value).zip(&self.scale);
        weights.map(|((sum, _), scale)| sum * scale).product::<f64>() / total
    }

    /// Logarithm of the product of a value's weights in the releases that cover the point; `None` if one of them does not have it.
    fn logarithm(&self, value: u32) -> Option<f64> {
        let covering = self.of(value).zip(&self.sizes).filter(|(_, size)| **size > 0);
        covering.map(|((sum, boxes), _)| (*boxes > 0).then(|| sum.ln())).sum()
    }
}

impl Visitor for Counter<'_, '_> {
    /// Number of values that were touched, and the sum of products, which would not survive subtraction.
    type Mark = (usize, f64);

    fn mark(&self) -> (usize, f64) {
        (self.touched.len(), self.weight)
    }

    fn enter(&mut self, place: u32) {
        let k = self.scale.len();
        let Self { asked, places, cells, present, products, before, touched, sizes, common, weight, scale, .. } = self;
        let (place, values) = (&places[place as usize], asked.values);
        let (release, range) = (place.release as usize, place.range());
        let boxes = asked.releases[release];
        let shares = &boxes.shares[range.clone()];
        for (&value, (_, share)) in boxes.packed.0[range].iter().zip(shares) {
            let rows = if place.even { place.rows } else { place.rows * share };
            let value = value as usize;
            let (sum, boxes) = &mut cells[release * values + value];
            let (old, new) = (*sum, *boxes == 0);
            let was = products[value];
            before.push((old, was));
            *sum += rows;
            *boxes += 1;
            let sum = *sum;
            let mut completes = false;
            if new {
                let present = &mut present[value];
                *present += 1;
                sizes[release] += 1;
                completes = *present as usize == k;
                *common += u32::from(completes);
                if *present == 1 {
                    touched.push(value as u32);
                }
            }
            if present[value] as usize == k {
                let was = if completes { 0.0 } else { was };
                let product = match PRECISE.contains(&was) {
                    true => was * (sum / old),
                    false => {
                        let own = cells.iter().skip(value).step_by(values).zip(&*scale);
                        own.map(|((sum, _), scale)| sum * scale).product()
                    }
                };
                products[value] = product;
                *weight += product - was;
            }
        }
    }

    fn leave(&mut self, place: u32) {
        let k = self.scale.len();
        let Self { asked, places, cells, present, products, before, sizes, common, .. } = self;
        let place = &places[place as usize];
        let (release, range) = (place.release as usize, place.range());
        let start = before.len() - range.len();
        for (&value, &(rows, product)) in asked.releases[release].packed.0[range].iter().zip(&before[start..]) {
            let value = value as usize;
            let (sum, boxes) = &mut cells[release * asked.values + value];
            *sum = rows;
            products[value] = product;
            *boxes -= 1;
            if *boxes == 0 {
                let present = &mut present[value];
                *common -= u32::from(*present as usize == k);
                *present -= 1;
                sizes[release] -= 1;
            }
        }
        before.truncate(start);
    }

    fn restore(&mut self, (touched, weight): (usize, f64)) {
        self.touched.truncate(touched);
        self.weight = weight;
    }

    fn report(&mut self, points: &[u32]) {
        let k = self.scale.len();
        let mut remaining = self.common;
        let mut total = (self.weight, None);
        if self.sizes.contains(&0) || (remaining > 0 && !SAFE.contains(&self.weight)) {
            let logarithms: Vec<f64> = self.touched.iter().filter_map(|&value| self.logarithm(value)).collect();
            let most = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            remaining = logarithms.len() as u32;
            total = (logarithms.iter().map(|logarithm| (logarithm - most).exp()).sum(), Some(most));
        }
        for &person in points.iter().flat_map(|&point| &self.people[point as usize]) {
            // Values do not change, so it is the same in all releases, as a rule.
            let mut last = (NONE, None);
            for release in (0..k).filter(|&release| self.sizes[release] > 0) {
                let at = person as usize * k + release;
                self.found.candidates[at] = self.sizes[release];
                self.found.remaining[at] = remaining;
                let truth = self.asked.truth[at];
                if last.0 != truth {
                    last = (truth, (remaining > 0).then(|| self.share(truth, total)));
                }
                self.found.risk[at] = last.1;
            }
        }
    }
}
