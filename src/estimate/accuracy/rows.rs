//! Answers from the release.

use super::bitmaps::{self, Bitmaps};
use super::query::Query;
use super::{Aggregate, Axis, Scratch};

/// How a release tells of an attribute.
#[derive(Debug)]
pub(super) enum Column {
    /// Row by row, as it is.
    Exact(Bitmaps),
    /// Group by group, as an interval.
    Intervals(Intervals),
    /// Group by group, as values and how often they occur: those of group `g` are `starts[g]..starts[g + 1]`.
    Histograms { starts: Vec<u32>, places: Vec<f64>, shares: Vec<f64> },
}

/// Intervals of one attribute.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    pub lo: Vec<f64>,
    pub hi: Vec<f64>,
    /// The share of people who have a value.
    pub whole: Vec<f64>,
    /// Its part per unit of length, or per value; 0 for an interval without length.
    pub per_length: Vec<f64>,
    /// Of categories whose values are known only as far as they are ends of intervals: how many of those come before each.
    /// Intervals and ranges are then counted in these.
    pub known: Option<Vec<u32>>,
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
}

impl Rows {
    pub(super) fn answer(&self, query: &Query, aggregate: Aggregate, axes: &[Axis], scratch: &mut Scratch) -> f64 {
        let Scratch { selected, range, weights, sums } = scratch;
        let exact = |attribute: usize| matches!(self.columns[attribute], Column::Exact(_));
        let by_row = query.ranges.iter().any(|&(attribute, ..)| exact(attribute));
        if by_row {
            bitmaps::all(self.starts.last().map_or(0, |&rows| rows as usize), selected);
            for &(attribute, lo, hi) in &query.ranges {
                if let Column::Exact(bitmaps) = &self.columns[attribute] {
                    bitmaps.select(axes[attribute].codes(lo, hi), selected, range);
                }
            }
        }
        let bounds = self.starts.windows(2).map(|pair| (pair[0] as usize, pair[1] as usize));
        weights.clear();
        weights.extend(bounds.clone().zip(&self.real).map(|((start, end), real)| match by_row {
            true => real * f64::from(bitmaps::count(selected, start, end)),
            false => real * (end - start) as f64,
        }));
        for &(attribute, lo, hi) in &query.ranges {
            self.columns[attribute].weigh(lo, hi, axes[attribute].counted, weights);
        }
        let count = weights.iter().sum();
        if aggregate == Aggregate::Count {
            return count;
        }
        // The last attribute is the sensitive one, whose ranges only counts have.
        let sum: f64 = match self.columns.last() {
            Some(Column::Histograms { starts, places, shares }) => {
                let mean = |group: usize| {
                    let range = starts[group] as usize..starts[group + 1] as usize;
                    places[range.clone()].iter().zip(&shares[range]).map(|(place, share)| place * share).sum::<f64>()
                };
                weights.iter().enumerate().map(|(group, weight)| weight * mean(group)).sum()
            }
            _ => {
                // The sum over the rows in place of their number.
                sums.clear();
                sums.extend(bounds.zip(&self.real).map(|((start, end), real)| {
                    let mut sum = 0.0;
                    match by_row {
                        true => bitmaps::for_each(selected, start, end, |row| sum += self.values[row]),
                        false => sum = self.values[start..end].iter().sum(),
                    }
                    real * sum
                }));
                for &(attribute, lo, hi) in &query.ranges {
                    self.columns[attribute].weigh(lo, hi, axes[attribute].counted, sums);
                }
                sums.iter().sum()
            }
        };
        if aggregate == Aggregate::Avg && count > 0.0 { sum / count } else { sum }
    }
}

impl Column {
    /// Multiplies the groups' weights by the share of the attribute's values that lie in the range.
    fn weigh(&self, from: f64, to: f64, counted: bool, weights: &mut [f64]) {
        match self {
            Self::Exact(_) => {}
            Self::Intervals(Intervals { lo, hi, whole, per_length, known }) => {
                let step = f64::from(u8::from(counted));
                let (from, to) = match known {
                    Some(known) => (f64::from(known[from as usize]), f64::from(known[to as usize + 1]) - 1.0),
                    None => (from, to),
                };
                let intervals = lo.iter().zip(hi).zip(whole.iter().zip(per_length));
                for (weight, ((lo, hi), (whole, per_length))) in weights.iter_mut().zip(intervals) {
                    let both = (hi.min(to) - lo.max(from) + step).max(0.0) * per_length;
                    // Also for a single value of a measured attribute, which has no length.
                    *weight *= if *lo >= from && *hi <= to { *whole } else { both };
                }
            }
            Self::Histograms { starts, places, shares } => {
                for (group, weight) in weights.iter_mut().enumerate() {
                    let range = starts[group] as usize..starts[group + 1] as usize;
                    let inside = places[range.clone()].iter().zip(&shares[range]);
                    *weight *=
                        inside.filter(|(place, _)| (from..=to).contains(place)).map(|(_, share)| share).sum::<f64>();
                }
            }
        }
    }
}
