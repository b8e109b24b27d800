//! The rows of a release, group by group, and the answers to random queries that are estimated from them.

use super::bitmaps::{self, Bitmaps};
use super::intervals::Intervals;
use super::query::Query;
use super::{Aggregate, Axis, Scratch};

/// Groups looked at by all queries of a batch before the next ones: what is known of them stays in the nearest cache.
const GROUPS: usize = 512;
/// Most bytes of the cumulative numbers of one column.
const CUMULATIVE: usize = 128 << 20;

/// How a release tells of an attribute.
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
    /// One per attribute.
    pub columns: Vec<Column>,
    /// The sensitive attribute of each row, where sums of it are asked for and the release tells it row by row.
    pub values: Vec<f64>,
    /// Of the only exact column, by value and then by group: how many rows have a lesser value.
    pub cumulative: Option<(usize, Vec<Vec<u16>>)>,
}

impl Rows {
    /// Counts ahead how many rows of each group lie below each value of a column, if that is little.
    pub(super) fn cumulative(codes: &[Option<u32>], values: usize, starts: &[u32]) -> Option<Vec<Vec<u16>>> {
        let groups = starts.len() - 1;
        let small = starts.windows(2).all(|pair| pair[1] - pair[0] < u32::from(u16::MAX));
        if groups < 2 || !small || (values + 1).saturating_mul(groups) > CUMULATIVE / size_of::<u16>() {
            return None;
        }
        let mut below = vec![vec![0; groups]; values + 1];
        for group in 0..groups {
            for code in codes[starts[group] as usize..starts[group + 1] as usize].iter().flatten() {
                below[*code as usize + 1][group] += 1;
            }
        }
        for value in 0..values {
            let (before, after) = below.split_at_mut(value + 1);
            after[0].iter_mut().zip(&before[value]).for_each(|(after, before)| *after += before);
        }
        Some(below)
    }

    /// Answers queries, one after the other.
    pub(super) fn answers(
        &self,
        queries: &[Query],
        aggregate: Aggregate,
        axes: &[Axis],
        scratch: &mut Scratch,
    ) -> Vec<f64> {
        let selected: Vec<Option<Vec<u64>>> = queries.iter().map(|query| self.selected(query, axes, scratch)).collect();
        let mut counts = vec![0.0; queries.len()];
        let mut sums = vec![0.0; queries.len()];
        for first in (0..self.real.len()).step_by(GROUPS) {
            let groups = first..(first + GROUPS).min(self.real.len());
            for (i, (query, selected)) in queries.iter().zip(&selected).enumerate() {
                let weights = &mut scratch.weights;
                self.count(query, axes, selected.as_deref(), groups.clone(), weights);
                counts[i] += weights.iter().sum::<f64>();
                if aggregate != Aggregate::Count {
                    self.value(query, axes, selected.as_deref(), groups.clone(), weights);
                    sums[i] += weights.iter().sum::<f64>();
                }
            }
        }
        let answer = |(count, sum): (f64, f64)| match aggregate {
            Aggregate::Count => count,
            Aggregate::Avg if count > 0.0 => sum / count,
            Aggregate::Sum | Aggregate::Avg => sum,
        };
        counts.into_iter().zip(sums).map(answer).collect()
    }

    /// The rows that lie in the ranges of exact columns, unless they have been counted ahead or there are no such ranges.
    fn selected(&self, query: &Query, axes: &[Axis], scratch: &mut Scratch) -> Option<Vec<u64>> {
        let counted = |attribute: usize| self.cumulative.as_ref().is_some_and(|(column, _)| *column == attribute);
        let mut selected = None;
        for &(attribute, lo, hi) in &query.ranges {
            if let Column::Exact(bitmaps) = &self.columns[attribute]
                && !counted(attribute)
            {
                let rows = self.starts.last().map_or(0, |&rows| rows as usize);
                let selected = selected.get_or_insert_with(|| {
                    let mut all = Vec::new();
                    bitmaps::all(rows, &mut all);
                    all
                });
                bitmaps.select(axes[attribute].codes(lo, hi), selected, &mut scratch.range);
            }
        }
        selected
    }

    /// Expected numbers of people in some groups.
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
        let ahead = self.cumulative.as_ref().and_then(|(column, below)| {
            let range = query.ranges.iter().find(|(attribute, ..)| attribute == column);
            range.map(|&(attribute, lo, hi)| (axes[attribute].codes(lo, hi), below))
        });
        match (selected, ahead) {
            (Some(selected), _) => weights.extend(
                bounds.zip(real).map(|((start, end), real)| real * f64::from(bitmaps::count(selected, start, end))),
            ),
            (None, Some(((first, last), below))) => {
                let (first, last) = (&below[first][groups.clone()], &below[last][groups.clone()]);
                let inside = first.iter().zip(last).map(|(first, last)| f64::from(last - first));
                weights.extend(inside.zip(real).map(|(inside, real)| inside * real));
            }
            (None, None) => weights.extend(bounds.zip(real).map(|((start, end), real)| real * (end - start) as f64)),
        }
        self.weigh(query, axes, groups, weights);
    }

    /// Expected sums of the sensitive attribute, the last one, whose ranges only counts have.
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

    /// Multiplies by the shares of the attributes that are not exact.
    fn weigh(&self, query: &Query, axes: &[Axis], groups: std::ops::Range<usize>, weights: &mut [f64]) {
        for &(attribute, from, to) in &query.ranges {
            match &self.columns[attribute] {
                Column::Exact(_) => {}
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
