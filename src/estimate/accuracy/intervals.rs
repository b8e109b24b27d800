//! The intervals of an attribute, group by group. Their values are spread evenly, or as the ends of all intervals
//! are; see [`ends`](crate::estimate::ends).
//!
//! In the latter case a value is measured by the ends before it and, for the even part, by where it lies; so an interval is as long as what is spread
//! over it, and a query's part of it is an overlap of lengths here, too.

use rustc_hash::FxHashMap;

use super::Axis;
use super::kinds::kinds;
use crate::estimate::ends::{Count, before_and_even};
use crate::estimate::raking::{Span, rake};

/// Intervals of one attribute: one for each group, or for each kind of group.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    /// Kind of each group's interval; without, every group has its own.
    pub kinds: Option<Vec<u32>>,
    pub lo: Vec<f64>,
    /// The last value; of values that are counted, one more.
    pub end: Vec<f64>,
    /// The share of people who have a value.
    pub whole: Vec<f64>,
    /// Its part per unit of length, or per value; 0 for an interval without length.
    pub per_length: Vec<f64>,
    /// True if there are intervals without length: single values of a measured attribute.
    pub points: bool,
    /// Of categories whose values are known only as far as they are ends of intervals: how many of those come before each.
    /// Intervals and ranges are then counted in these.
    pub known: Option<Vec<u32>>,
    /// Distribution of values, unless they are spread evenly.
    pub tight: Option<Tight>,
}

/// The measures of one attribute's intervals, group by group.
#[derive(Debug)]
pub(super) struct Tight {
    /// Share of the ends before each value of the domain.
    before: Vec<f64>,
    /// Even part per unit of length, or per value.
    per_length: f64,
    /// 1 for values that are counted.
    step: f64,
    lo: Vec<f64>,
    end: Vec<f64>,
    /// Share of the group's people, per unit of measure, who are not at the ends.
    per_measure: Vec<f64>,
    /// Share of one person in the group.
    at_end: Vec<f64>,
    /// Groups with NULL, taken as even but for one person at the given greatest value.
    even: Vec<(u32, Option<u32>)>,
}

/// Sizes of groups.
#[derive(Debug)]
pub(super) struct Sizes {
    /// People of each; not a number where it is not told.
    pub people: Vec<f64>,
    /// Rows of each that are there.
    pub rows: Vec<f64>,
    /// The people these stand for.
    pub mass: Vec<f64>,
}

impl Sizes {
    /// Returns true if it is told of all groups how many people they have.
    pub(super) fn are_told(&self, groups: usize) -> bool {
        self.people.len() == groups && !self.people.iter().any(|people| people.is_nan())
    }
}

/// The values of an attribute.
#[derive(Debug)]
pub(super) struct Values {
    pub number: usize,
    /// True if they are counted rather than measured.
    pub counted: bool,
    /// True if they are categories.
    pub listed: bool,
    /// Their shares, if these are known from elsewhere.
    pub given: Option<Vec<f64>>,
}

/// A range of a query, in the units of intervals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub from: f64,
    pub to: f64,
    /// The values in it, as the first and the one after the last.
    pub codes: (usize, usize),
}

impl Intervals {
    /// Keeps one of all intervals that are alike, if that are few: groups have an interval, and people, in common with many others.
    pub(super) fn merge(&mut self) {
        let even: FxHashMap<u32, Option<u32>> = self.tight.iter().flat_map(|tight| &tight.even).copied().collect();
        let alike = |group: usize| {
            let own = [&self.lo, &self.end, &self.whole, &self.per_length].map(|of| of[group].to_bits());
            let of_tight = |tight: &Tight| {
                [&tight.lo, &tight.end, &tight.per_measure, &tight.at_end].map(|of| of[group].to_bits())
            };
            (own, self.tight.as_ref().map(of_tight), even.get(&(group as u32)))
        };
        let Some((first, kinds)) = kinds(self.lo.len(), alike) else { return };
        let keep = |of: &mut Vec<f64>| *of = first.iter().map(|&group| of[group as usize]).collect();
        [&mut self.lo, &mut self.end, &mut self.whole, &mut self.per_length].into_iter().for_each(keep);
        if let Some(tight) = &mut self.tight {
            [&mut tight.lo, &mut tight.end, &mut tight.per_measure, &mut tight.at_end].into_iter().for_each(keep);
            tight.even = (0..).zip(&first).filter_map(|(kind, group)| Some((kind, *even.get(group)?))).collect();
        }
        self.kinds = Some(kinds);
    }

    /// Multiplies weights by the share of each interval that lies between two values.
    pub(super) fn weigh(&self, from: f64, to: f64, axis: &Axis, groups: std::ops::Range<usize>, weights: &mut [f64]) {
        let codes = axis.codes(from, to);
        let (from, to) = match &self.known {
            Some(known) => (f64::from(known[from as usize]), f64::from(known[to as usize + 1]) - 1.0),
            None => (from, to),
        };
        match &self.tight {
            Some(tight) => tight.weigh(self, Range { from, to, codes }, groups, weights),
            None => self.weigh_evenly((from, to), f64::from(u8::from(axis.counted)), groups, weights),
        }
    }

    /// Weighs groups where values are spread evenly; `step` is 1 for values that are counted.
    fn weigh_evenly(&self, (from, to): (f64, f64), step: f64, groups: std::ops::Range<usize>, weights: &mut [f64]) {
        let end = to + step;
        // Comparisons, for they become one instruction each; there is no NaN.
        let (least, most) = (|a: f64, b: f64| if a < b { a } else { b }, |a: f64, b: f64| if a > b { a } else { b });
        let ends = self.lo[groups.clone()].iter().zip(&self.end[groups.clone()]);
        let shares = self.whole[groups.clone()].iter().zip(&self.per_length[groups]);
        if self.points {
            for ((weight, (&lo, &hi)), (whole, per_length)) in weights.iter_mut().zip(ends).zip(shares) {
                let both = most(least(hi, end) - most(lo, from), 0.0) * per_length;
                *weight *= if lo >= from && hi <= end { *whole } else { both };
            }
        } else {
            for ((weight, (&lo, &hi)), (_, per_length)) in weights.iter_mut().zip(ends).zip(shares) {
                *weight *= most(least(hi, end) - most(lo, from), 0.0) * per_length;
            }
        }
    }
}

impl Tight {
    /// Makes intervals between these values; `intervals` has where they lie. Unless they are `tight`, nobody need be at
    /// an end, and only shares that are given say how values are spread.
    pub(super) fn new(
        ends: &[(Option<u32>, Option<u32>)],
        intervals: &Intervals,
        sizes: &Sizes,
        is_tight: bool,
        values: Values,
    ) -> Self {
        let Values { number: values, counted, listed, given } = values;
        let step = f64::from(u8::from(counted));
        let mut counts = vec![Count::default(); values];
        let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
        for (group, &(lo, hi)) in ends.iter().enumerate() {
            let (Some(lo), Some(hi)) = (lo, hi) else { continue };
            first = first.min(intervals.lo[group]);
            last = last.max(intervals.end[group]);
            let (rows, people) = (sizes.rows[group], sizes.people[group]);
            if !is_tight {
                continue;
            }
            if lo == hi {
                counts[lo as usize].single += rows;
                counts[lo as usize].people += rows * people;
            } else {
                counts[lo as usize].wide += rows;
                counts[hi as usize].wide += rows;
            }
        }
        let whole = match (&intervals.known, listed) {
            (Some(known), _) => known.last().map_or(0.0, |&known| f64::from(known)),
            (None, true) => values as f64,
            (None, false) => last - first,
        };
        let at_each_end = |group: usize| {
            let people = sizes.people[group];
            if is_tight && people >= 2.0 { 1.0 / people } else { 0.0 }
        };
        let shares = given.map(|margins| {
            let (before, even) = before_and_even(&counts, &[]);
            let even = even / values.max(1) as f64;
            let from: Vec<f64> = before.windows(2).map(|pair| pair[1] - pair[0] + even).collect();
            let span = |(group, &(lo, hi)): (usize, &(Option<u32>, Option<u32>))| {
                let (at_each_end, mass) = (at_each_end(group) * sizes.mass[group], sizes.mass[group]);
                let (first, last) = (lo? as usize, hi? as usize);
                Some(Span { first, last, at_each_end, inside: mass - 2.0 * at_each_end })
            };
            rake(&ends.iter().enumerate().filter_map(span).collect::<Vec<_>>(), &margins, &from)
        });
        let (before, even) = before_and_even(&counts, shares.as_deref().unwrap_or_default());
        let per_length = if whole > 0.0 && whole.is_finite() { even / whole } else { 0.0 };
        let mut tight = Self {
            before,
            per_length,
            step,
            lo: Vec::with_capacity(ends.len()),
            end: Vec::with_capacity(ends.len()),
            per_measure: Vec::with_capacity(ends.len()),
            at_end: Vec::with_capacity(ends.len()),
            even: Vec::new(),
        };
        for (group, &interval) in ends.iter().enumerate() {
            let (mut measures, mut per_measure, mut at_one) = ((0.0, 0.0), 0.0, 0.5);
            if let (Some(lo), Some(hi)) = interval {
                let start = tight.before[lo as usize] + per_length * intervals.lo[group];
                let stop = tight.before[hi as usize + 1] + per_length * intervals.end[group];
                measures = (start, stop);
                if lo != hi {
                    at_one = at_each_end(group);
                    per_measure = (1.0 - 2.0 * at_one) / (stop - start);
                }
            } else {
                tight.even.push((group as u32, interval.1));
                // Where values are measured, it is told how many people have none.
                at_one = if counted && interval.1.is_some() { at_each_end(group) } else { 0.0 };
            }
            tight.lo.push(measures.0);
            tight.end.push(measures.1);
            tight.per_measure.push(per_measure);
            tight.at_end.push(at_one);
        }
        tight
    }

    /// Multiplies the weights of some groups by their shares of a range.
    pub(super) fn weigh(
        &self,
        intervals: &Intervals,
        range: Range,
        groups: std::ops::Range<usize>,
        weights: &mut [f64],
    ) {
        let Range { from, to, codes } = range;
        let start_of_groups = groups.start;
        let start = self.before[codes.0] + self.per_length * from;
        let stop = self.before[codes.1.max(codes.0)] + self.per_length * (to + self.step);
        let first = self.even.partition_point(|&(group, _)| (group as usize) < groups.start);
        let even = self.even[first..].iter().map(|&(group, hi)| (group as usize, hi));
        let even = even.take_while(|(group, _)| *group < groups.end);
        let even: Vec<(usize, f64)> = even
            .map(|(group, hi)| {
                let weight = weights[group - groups.start];
                let mut evenly = [weight];
                intervals.weigh_evenly((from, to), self.step, group..group + 1, &mut evenly);
                // Somebody has no value, and somebody the greatest.
                let at_end = self.at_end[group];
                let is_in = hi.is_some_and(|hi| (codes.0..codes.1).contains(&(hi as usize)));
                let at_hi = if is_in { at_end } else { 0.0 };
                (group, (1.0 - 2.0 * at_end) * evenly[0] + at_hi * weight)
            })
            .collect();
        // Comparisons of what is read already, for they become one instruction each; there is no NaN. Values are in the order of their measures, so that
        // these tell which ends are in the range.
        let (least, most) = (|a: f64, b: f64| if a < b { a } else { b }, |a: f64, b: f64| if a > b { a } else { b });
        let measures = self.lo[groups.clone()].iter().zip(&self.end[groups.clone()]);
        let shares = self.per_measure[groups.clone()].iter().zip(&self.at_end[groups]);
        for ((weight, (&lo, &hi)), (&per_measure, &at_end)) in weights.iter_mut().zip(measures).zip(shares) {
            let both = most(least(hi, stop) - most(lo, start), 0.0) * per_measure;
            let at_lo = if (lo >= start) & (lo < stop) { at_end } else { 0.0 };
            let at_hi = if (hi > start) & (hi <= stop) { at_end } else { 0.0 };
            *weight *= both + at_lo + at_hi;
        }
        for (group, weight) in even {
            weights[group - start_of_groups] = weight;
        }
    }
}
