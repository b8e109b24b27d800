//! The rows of a release, group by group, and estimated answers to random queries.

use std::sync::OnceLock;

use super::bitmaps::{self, Bitmaps};
use super::intervals::Intervals;
use super::kinds::{Joint, Lanes, Shares, add_up, join, kinds};
use super::query::Query;
use super::{Aggregate, Axis, BATCH, Scratch};

/// Groups looked at by all queries of a batch before the next ones: what is known of them stays in the nearest cache.
const GROUPS: usize = 512;
/// Most bytes of the cumulative numbers of one column.
const CUMULATIVE: usize = 128 << 20;

/// Form in which a release tells of an attribute.
#[derive(Debug)]
pub(super) enum Column {
    /// Row by row, as it is.
    Exact(Bitmaps),
    /// Group by group, as an interval.
    Intervals(Box<Intervals>),
    /// Group by group, as values and how often they occur: those of group `g` are `starts[g]..starts[g + 1]`.
    Histograms { starts: Vec<u32>, places: Vec<f64>, shares: Vec<f64> },
}

/// A release. Its rows stand group after group; what stands for itself is a group.
#[derive(Debug)]
pub(super) struct Rows {
    /// First row of each group, and one more entry: the number of all rows.
    pub starts: Vec<u32>,
    /// The probability that a row of the group stands for a person.
    pub real: Vec<f64>,
    /// Form of each attribute.
    pub columns: Vec<Column>,
    /// The sensitive attribute of each row, if sums need it and the release tells it.
    pub values: Vec<f64>,
    /// Of the only exact column.
    pub cumulative: Option<Cumulative>,
    /// Columns that go together, once they are known.
    pub joints: OnceLock<Vec<Joint>>,
}

/// Numbers of rows with lesser values in each group, for each value of a column.
#[derive(Debug)]
pub(super) struct Cumulative {
    column: usize,
    /// By value, and then by group or kind of group.
    below: Vec<Vec<u16>>,
    /// Kind of each group, and numbers of rows of groups of the kind; without, every group is told of.
    kinds: Option<(Vec<u32>, Vec<f64>)>,
}

impl Cumulative {
    /// Counts ahead, if that is little; with `merge`, once for groups that are alike, which sums of the column cannot be made of.
    pub(super) fn of(column: usize, codes: &[Option<u32>], values: usize, starts: &[u32], merge: bool) -> Option<Self> {
        let groups = starts.len() - 1;
        let small = starts.windows(2).all(|pair| pair[1] - pair[0] < u32::from(u16::MAX));
        if groups < 2 || !small || (values + 1).saturating_mul(groups) > CUMULATIVE / size_of::<u16>() {
            return None;
        }
        let own = |group: usize| &codes[starts[group] as usize..starts[group + 1] as usize];
        // As many rows of each value, in any order.
        let alike = |group: usize| {
            let mut codes = own(group).to_vec();
            codes.sort_unstable();
            codes
        };
        let kinds = if merge { kinds(groups, alike) } else { None };
        let told: Vec<usize> = match &kinds {
            Some((first, _)) => first.iter().map(|&group| group as usize).collect(),
            None => (0..groups).collect(),
        };
        let mut below = vec![vec![0; told.len()]; values + 1];
        for (place, &group) in told.iter().enumerate() {
            for code in own(group).iter().flatten() {
                below[*code as usize + 1][place] += 1;
            }
        }
        for value in 0..values {
            let (before, after) = below.split_at_mut(value + 1);
            after[0].iter_mut().zip(&before[value]).for_each(|(after, before)| *after += before);
        }
        let sizes = told.iter().map(|&group| own(group).len() as f64).collect();
        Some(Self { column, below, kinds: kinds.map(|(_, kinds)| (kinds, sizes)) })
    }

    /// Counts the rows of each group or kind with these values.
    fn inside(&self, (first, last): (usize, usize), groups: std::ops::Range<usize>) -> impl Iterator<Item = f64> {
        let (first, last) = (&self.below[first][groups.clone()], &self.below[last][groups]);
        first.iter().zip(last).map(|(first, last)| f64::from(last - first))
    }
}

impl Rows {
    /// Answers queries, one after the other.
    pub(super) fn answers(
        &self,
        queries: &[Query],
        aggregate: Aggregate,
        axes: &[Axis],
        scratch: &mut Scratch,
    ) -> Vec<f64> {
        let selected: Vec<Option<Vec<u64>>> = queries.iter().map(|query| self.selected(query, axes, scratch)).collect();
        let shares = self.shares(queries, axes);
        let (mut counts, mut sums) = ([0.0; BATCH], [0.0; BATCH]);
        let [mut people, mut values] = [vec![[0.0; BATCH]; GROUPS], vec![[0.0; BATCH]; GROUPS]];
        let alike = aggregate == Aggregate::Count && self.are_told_by_kinds();
        for first in (0..self.real.len()).step_by(GROUPS) {
            let groups = first..(first + GROUPS).min(self.real.len());
            for (i, (query, selected)) in queries.iter().zip(&selected).enumerate() {
                let weights = &mut scratch.weights;
                let put = |lanes: &mut [Lanes], weights: &[f64]| {
                    lanes.iter_mut().zip(weights).for_each(|(lanes, &weight)| lanes[i] = weight);
                };
                if alike {
                    self.count(query, axes, None, groups.clone(), weights);
                    people.iter_mut().zip(&*weights).for_each(|(lanes, &weight)| *lanes = [weight; BATCH]);
                    break;
                }
                self.count(query, axes, selected.as_deref(), groups.clone(), weights);
                put(&mut people, weights);
                if aggregate != Aggregate::Count {
                    self.value(query, axes, selected.as_deref(), groups.clone(), weights);
                    put(&mut values, weights);
                }
            }
            add_up(&people[..groups.len()], first, &shares, &mut counts);
            if aggregate != Aggregate::Count {
                add_up(&values[..groups.len()], first, &shares, &mut sums);
            }
        }
        let answer = |(count, sum): (f64, f64)| match aggregate {
            Aggregate::Count => count,
            Aggregate::Avg if count > 0.0 => sum / count,
            Aggregate::Sum | Aggregate::Avg => sum,
        };
        counts.into_iter().zip(sums).map(answer).take(queries.len()).collect()
    }

    /// Returns true if queries differ in nothing but in [`shares`](Self::shares).
    fn are_told_by_kinds(&self) -> bool {
        let counted = self.cumulative.as_ref().is_some_and(|counted| counted.kinds.is_some());
        self.columns.iter().all(|column| match column {
            Column::Exact(_) => counted,
            Column::Intervals(intervals) => intervals.kinds.is_some(),
            Column::Histograms { .. } => false,
        })
    }

    /// Returns the shares that groups have of queries' ranges, as far as kinds exist. Of a cumulative column, it returns numbers of rows.
    fn shares(&self, queries: &[Query], axes: &[Axis]) -> Vec<Shares<'_>> {
        let mut all: Vec<Shares<'_>> = Vec::new();
        for (attribute, column) in self.columns.iter().enumerate() {
            let ranges = queries.iter().map(|query| query.ranges.iter().find(|range| range.0 == attribute)).enumerate();
            match (column, &self.cumulative) {
                (Column::Intervals(intervals), _) => {
                    let Some(kinds) = &intervals.kinds else { continue };
                    let number = intervals.lo.len();
                    let mut shares = Shares::whole(kinds, number);
                    for (query, range) in ranges {
                        let Some(&(_, from, to)) = range else { continue };
                        let mut weights = vec![1.0; number];
                        intervals.weigh(from, to, &axes[attribute], 0..number, &mut weights);
                        shares.set(query, weights.into_iter());
                    }
                    all.push(shares);
                }
                (Column::Exact(_), Some(Cumulative { kinds: Some((kinds, sizes)), .. })) => {
                    let mut shares = Shares::whole(kinds, sizes.len());
                    for (query, range) in ranges {
                        match (range, &self.cumulative) {
                            (Some(&(_, lo, hi)), Some(cumulative)) => {
                                shares.set(query, cumulative.inside(axes[attribute].codes(lo, hi), 0..sizes.len()));
                            }
                            _ => shares.set(query, sizes.iter().copied()),
                        }
                    }
                    all.push(shares);
                }
                _ => {}
            }
        }
        let joints = self
            .joints
            .get_or_init(|| join(&all.iter().map(|shares| (shares.kinds, shares.of.len())).collect::<Vec<_>>()));
        let mut all: Vec<_> = all.into_iter().map(Some).collect();
        joints.iter().filter_map(|joint| joint.shares(&mut all)).collect()
    }

    /// Returns the rows in the ranges of exact columns, unless counted ahead or without ranges.
    fn selected(&self, query: &Query, axes: &[Axis], scratch: &mut Scratch) -> Option<Vec<u64>> {
        let counted = |attribute: usize| self.cumulative.as_ref().is_some_and(|counted| counted.column == attribute);
        let mut selected = None;
        for &(attribute, lo, hi) in &query.ranges {
            if let Column::Exact(bitmaps) = &self.columns[attribute]
                && !counted(attribute)
            {
                let codes = axes[attribute].codes(lo, hi);
                match &mut selected {
                    None => {
                        let mut first = Vec::new();
                        bitmaps.range(codes, &mut first);
                        selected = Some(first);
                    }
                    Some(selected) => bitmaps.select(codes, selected, &mut scratch.range),
                }
            }
        }
        selected
    }

    /// Computes the expected numbers of people in some groups, but for [`shares`](Self::shares).
    fn count(
        &self,
        query: &Query,
        axes: &[Axis],
        selected: Option<&[u64]>,
        groups: std::ops::Range<usize>,
        weights: &mut Vec<f64>,
    ) {
        weights.clear();
        let real = &self.real[groups.clone()];
        let bounds = self.starts[groups.start..=groups.end].windows(2).map(|pair| (pair[0] as usize, pair[1] as usize));
        let range = self.cumulative.as_ref().and_then(|counted| {
            let range = query.ranges.iter().find(|range| range.0 == counted.column)?;
            Some((counted, axes[range.0].codes(range.1, range.2)))
        });
        let kinds = self.cumulative.as_ref().is_some_and(|counted| counted.kinds.is_some());
        match (selected, range) {
            (Some(selected), _) => weights.extend(
                bounds.zip(real).map(|((start, end), real)| real * f64::from(bitmaps::count(selected, start, end))),
            ),
            _ if kinds => weights.extend_from_slice(real),
            (None, Some((counted, codes))) => {
                weights.extend(counted.inside(codes, groups.clone()).zip(real).map(|(inside, real)| inside * real));
            }
            (None, None) => weights.extend(bounds.zip(real).map(|((start, end), real)| real * (end - start) as f64)),
        }
        self.weigh(query, axes, groups, weights);
    }

    /// Computes the expected sums of the sensitive attribute, the last one. Only counts have ranges of it.
    fn value(
        &self,
        query: &Query,
        axes: &[Axis],
        selected: Option<&[u64]>,
        groups: std::ops::Range<usize>,
        weights: &mut Vec<f64>,
    ) {
        if let Some(Column::Histograms { starts, places, shares }) = self.columns.last() {
            // The numbers of people are there already.
            for (weight, group) in weights.iter_mut().zip(groups) {
                let range = starts[group] as usize..starts[group + 1] as usize;
                *weight *=
                    places[range.clone()].iter().zip(&shares[range]).map(|(place, share)| place * share).sum::<f64>();
            }
            return;
        }
        weights.clear();
        weights.extend(groups.clone().map(|group| {
            let (start, end) = (self.starts[group] as usize, self.starts[group + 1] as usize);
            let mut sum = 0.0;
            match selected {
                Some(selected) => bitmaps::for_each(selected, start, end, |row| sum += self.values[row]),
                None => sum = self.values[start..end].iter().sum(),
            }
            self.real[group] * sum
        }));
        self.weigh(query, axes, groups, weights);
    }

    /// Multiplies by the shares of inexact attributes whose groups are of no kinds.
    fn weigh(&self, query: &Query, axes: &[Axis], groups: std::ops::Range<usize>, weights: &mut [f64]) {
        for &(attribute, from, to) in &query.ranges {
            match &self.columns[attribute] {
                Column::Exact(_) => {}
                Column::Intervals(intervals) if intervals.kinds.is_some() => {}
                Column::Intervals(intervals) => {
                    intervals.weigh(from, to, &axes[attribute], groups.clone(), weights);
                }
                Column::Histograms { starts, places, shares } => {
                    for (weight, group) in weights.iter_mut().zip(groups.clone()) {
                        let range = starts[group] as usize..starts[group + 1] as usize;
                        let inside = places[range.clone()].iter().zip(&shares[range]);
                        let inside = inside.filter(|(place, _)| (from..=to).contains(place));
                        *weight *= inside.map(|(_, share)| share).sum::<f64>();
                    }
                }
            }
        }
    }
}
