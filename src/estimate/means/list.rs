//! Means over categories: prefix sums over their order.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;

use super::Intervals;
use crate::error::refusal;
use crate::estimate::ESTIMATE;
use crate::estimate::listing::Listing;
use crate::estimate::listing::OTHER_ORDER;

/// A function on categories in order.
#[derive(Debug)]
pub(super) struct List {
    listing: Arc<Listing>,
    /// Sum over the values before each one, and over all.
    sums: Vec<f64>,
    of_null: f64,
}

impl List {
    pub(super) fn new(listing: Arc<Listing>, function: &[f64], of_null: f64) -> Self {
        let mut sum = 0.0;
        let mut sums = vec![sum];
        for value in function {
            sum += value;
            sums.push(sum);
        }
        Self { listing, sums, of_null }
    }

    /// Returns true if it is over this order: the same array for all rows.
    pub(super) fn is_of(&self, order: &ArrayRef) -> bool {
        self.listing.is_of(order)
    }

    pub(super) fn means(&self, intervals: &Intervals<'_>) -> Result<Vec<f64>> {
        let (lo, hi) = (self.listing.places(intervals.lo)?, self.listing.places(intervals.hi)?);
        let sum = |lo: usize, hi: usize| self.sums[hi + 1] - self.sums[lo];
        let means = lo.iter().zip(&hi).map(|ends| match ends {
            (_, None) => Ok(self.of_null),
            (None, &Some(hi)) => Ok((sum(0, hi) + self.of_null) / (hi + 2) as f64),
            (&Some(lo), &Some(hi)) if lo <= hi => Ok(sum(lo, hi) / (hi - lo + 1) as f64),
            _ => Err(refusal!(ESTIMATE, "{OTHER_ORDER}")),
        });
        means.collect()
    }
}
