//! Lists all values of intervals, for estimates by group.

use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};

use super::listing::Listing;
use super::scale::{from_steps, steps};

/// Places of the first and last value of each interval, and NULLs in it.
#[derive(Debug)]
pub(super) struct Places {
    intervals: Vec<(bool, Option<(i64, i64)>)>,
    /// The values by their places, if they are listed.
    order: Option<ArrayRef>,
}

impl Places {
    /// Returns the places of whole numbers and dates, which are places themselves.
    pub(super) fn steps(lo: &ArrayRef, hi: &ArrayRef, least: Option<&ArrayRef>) -> Result<Self> {
        let least = match least {
            Some(least) => steps(least)?.iter().next().flatten(),
            None => None,
        };
        let (lo, hi) = (steps(lo)?, steps(hi)?);
        let intervals = lo.iter().zip(hi.iter()).map(|ends| interval(ends, least)).collect::<Result<_>>()?;
        Ok(Self { intervals, order: None })
    }

    /// Returns the places of categories in an order.
    pub(super) fn listed(listing: &Listing, lo: &ArrayRef, hi: &ArrayRef) -> Result<Self> {
        let place = |place: Option<usize>| place.map(|place| place as i64);
        let ends = listing.places(lo)?.into_iter().zip(listing.places(hi)?);
        let intervals = ends.map(|(lo, hi)| interval((place(lo), place(hi)), Some(0)));
        let intervals = intervals.collect::<Result<_>>()?;
        Ok(Self { intervals, order: Some(ArrayRef::clone(listing.order())) })
    }

    /// Returns the number of values of all intervals.
    pub(super) fn total(&self) -> usize {
        let length = |&(null, ends): &(bool, Option<(i64, i64)>)| {
            let values = ends.map_or(0, |(lo, hi)| hi.saturating_sub(lo).saturating_add(1));
            usize::from(null).saturating_add(usize::try_from(values).unwrap_or(usize::MAX))
        };
        self.intervals.iter().map(length).fold(0, usize::saturating_add)
    }

    /// Returns the values, interval by interval.
    pub(super) fn values(self, data_type: &DataType, item: FieldRef) -> Result<ListArray> {
        let mut places: Vec<Option<i64>> = Vec::with_capacity(self.total());
        let mut lengths = Vec::with_capacity(self.intervals.len());
        for (null, ends) in self.intervals {
            let before = places.len();
            places.extend(null.then_some(None));
            places.extend(ends.into_iter().flat_map(|(lo, hi)| lo..=hi).map(Some));
            lengths.push(places.len() - before);
        }
        let values = match &self.order {
            None => from_steps(Int64Array::from(places), data_type)?,
            Some(order) => {
                let places: UInt64Array = places.into_iter().map(|place| place.map(|place| place as u64)).collect();
                take(order, &places, None)?
            }
        };
        Ok(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, None)?)
    }
}

fn interval(ends: (Option<i64>, Option<i64>), least: Option<i64>) -> Result<(bool, Option<(i64, i64)>)> {
    match (ends, least) {
        ((_, None), _) => Ok((true, None)),
        ((Some(lo), Some(hi)), _) => Ok((false, Some((lo, hi)))),
        ((None, Some(hi)), Some(least)) => Ok((true, Some((least.min(hi), hi)))),
        ((None, Some(_)), None) => internal_err!("intervals with NULL, but no least value of the column"),
    }
}
