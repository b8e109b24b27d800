//! Means over categories: prefix sums over their order.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use rustc_hash::FxHashMap;

use super::Intervals;

/// A function on categories in order.
#[derive(Debug)]
pub(super) struct List {
    order: ArrayRef,
    converter: RowConverter,
    places: FxHashMap<OwnedRow, usize>,
    /// Sum over the values before each one, and over all.
    sums: Vec<f64>,
    of_null: f64,
}

impl List {
    pub(super) fn new(order: &ArrayRef, function: &[f64], of_null: f64) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(order.data_type().clone())])?;
        let rows = converter.convert_columns(&[ArrayRef::clone(order)])?;
        let places = rows.iter().enumerate().map(|(place, row)| (row.owned(), place)).collect();
        let mut sum = 0.0;
        let mut sums = vec![sum];
        for value in function {
            sum += value;
            sums.push(sum);
        }
        Ok(Self { order: ArrayRef::clone(order), converter, places, sums, of_null })
    }

    /// Whether it is over this order, which is the same array for all rows of a query.
    pub(super) fn is_of(&self, order: &ArrayRef) -> bool {
        ArrayRef::ptr_eq(&self.order, order)
    }

    pub(super) fn means(&self, intervals: &Intervals<'_>) -> Result<Vec<f64>> {
        let (lo, hi) = (self.places_of(intervals.lo)?, self.places_of(intervals.hi)?);
        let sum = |lo: usize, hi: usize| self.sums[hi + 1] - self.sums[lo];
        let means = lo.iter().zip(&hi).map(|ends| match ends {
            (_, None) => Ok(self.of_null),
            (None, &Some(hi)) => Ok((sum(0, hi) + self.of_null) / (hi + 2) as f64),
            (&Some(lo), &Some(hi)) if lo <= hi => Ok(sum(lo, hi) / (hi - lo + 1) as f64),
            _ => internal_err!("an interval of categories against their order"),
        });
        means.collect()
    }

    /// Where values stand in the order, `None` for NULL.
    fn places_of(&self, values: &ArrayRef) -> Result<Vec<Option<usize>>> {
        let rows = self.converter.convert_columns(&[ArrayRef::clone(values)])?;
        let places = rows.iter().enumerate().map(|(i, row)| match values.is_valid(i) {
            false => Ok(None),
            true => match self.places.get(&row.owned()) {
                Some(&place) => Ok(Some(place)),
                None => internal_err!("a category that is not in the order of its column"),
            },
        });
        places.collect()
    }
}
