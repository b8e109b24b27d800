//! Places of values in a list of all values of their column.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;

use super::ESTIMATE;
use crate::error::refusal;

/// Message about a release that does not say which hierarchies it was made with.
pub(super) const OTHER_ORDER: &str = "an interval of the release does not fit the order of its column's values: a value is \
    missing there, or lo comes after hi; pass the hierarchies => .. that the release was made with";

/// The values of a column in their order, and how to find them. Made once per query: with a million values it takes as long as
/// thousands of rows.
#[derive(Debug)]
pub(crate) struct Listing {
    order: ArrayRef,
    converter: RowConverter,
    rows: Rows,
    /// Places in the order, by rows.
    sorted: Vec<u32>,
}

impl Listing {
    /// Makes a list of values that are all different.
    pub(super) fn new(order: &ArrayRef) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(order.data_type().clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(order))?;
        let mut sorted: Vec<u32> = (0..order.len() as u32).collect();
        let row = |place: u32| rows.row(place as usize);
        // Orders by value are sorted already.
        if !sorted.is_sorted_by(|&a, &b| row(a) <= row(b)) {
            sorted.sort_unstable_by(|&a, &b| row(a).cmp(&row(b)));
        }
        Ok(Self { order: ArrayRef::clone(order), converter, rows, sorted })
    }

    /// Returns the values in their order.
    pub(super) fn order(&self) -> &ArrayRef {
        &self.order
    }

    /// Returns true if it is of this list: the same array for all rows.
    pub(super) fn is_of(&self, order: &ArrayRef) -> bool {
        ArrayRef::ptr_eq(&self.order, order)
    }

    /// Returns the places of values in the order, `None` for NULL.
    /// Fails when a value is not in the list.
    pub(super) fn places(&self, values: &ArrayRef) -> Result<Vec<Option<usize>>> {
        let wanted = self.converter.convert_columns(std::slice::from_ref(values))?;
        let place = |(i, row)| match values.is_valid(i) {
            false => Ok(None),
            true => match self.sorted.binary_search_by(|&place| self.rows.row(place as usize).cmp(&row)) {
                Ok(found) => Ok(Some(self.sorted[found] as usize)),
                Err(_) => Err(refusal!(ESTIMATE, "{OTHER_ORDER}")),
            },
        };
        wanted.iter().enumerate().map(place).collect()
    }
}
