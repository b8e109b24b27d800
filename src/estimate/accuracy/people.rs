//! The true answers to random queries, from the original table.

use rayon::prelude::*;

use super::bitmaps::{self, Bitmaps};
use super::query::Query;
use super::{Aggregate, Axis, Scratch};

/// The original table.
#[derive(Debug)]
pub(super) struct Originals {
    rows: usize,
    /// Bitmaps of each attribute.
    columns: Vec<Bitmaps>,
    /// The sensitive attribute of each row, where sums of it are asked for.
    values: Vec<f64>,
}

impl Originals {
    /// Collects people; `columns` has the codes of each attribute.
    pub(super) fn new(columns: &[Vec<Option<u32>>], axes: &[Axis], values: Vec<f64>) -> Self {
        let rows = columns.first().map_or(0, Vec::len);
        let columns = columns.par_iter().zip(axes).map(|(codes, axis)| Bitmaps::new(codes, axis.places.len()));
        Self { rows, columns: columns.collect(), values }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) fn answer(&self, query: &Query, aggregate: Aggregate, axes: &[Axis], scratch: &mut Scratch) -> f64 {
        let Scratch { selected, range, .. } = scratch;
        bitmaps::all(self.rows, selected);
        for &(attribute, lo, hi) in &query.ranges {
            self.columns[attribute].select(axes[attribute].codes(lo, hi), selected, range);
        }
        let count = f64::from(bitmaps::count(selected, 0, self.rows));
        if aggregate == Aggregate::Count {
            return count;
        }
        let mut sum = 0.0;
        bitmaps::for_each(selected, 0, self.rows, |row| sum += self.values[row]);
        if aggregate == Aggregate::Avg && count > 0.0 { sum / count } else { sum }
    }
}
