//! Means of a function over intervals whose values are spread like all intervals' ends.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

use super::axis::only_list;
use super::ends::{Ends, places, with_ends};
use super::listing::Listing;
use super::means::Means;
use crate::scalars::Kept;

/// A function at the ends of a column's intervals.
#[derive(Debug)]
struct Fit {
    ends: Ends,
    at: Vec<f64>,
    sums: Vec<f64>,
}

/// The same, made once per query.
#[derive(Debug, Default)]
pub(super) struct Fitted(Kept<Arc<Fit>>);

/// Intervals, and how many people of its group each stands for; NULL where nobody need be at its ends.
#[derive(Debug)]
pub(super) struct Tight<'a> {
    pub lo: &'a ArrayRef,
    pub hi: &'a ArrayRef,
    pub people: &'a ColumnarValue,
    /// A list of structs: an end of intervals, how many rows have it, and its share if that is given; see [`Ends::new`].
    pub ends: &'a ColumnarValue,
    /// Of categories.
    pub listing: Option<&'a Listing>,
    /// True if the means know how many people have no value.
    pub nulls_are_told: bool,
}

impl Fitted {
    /// Turns means over evenly spread values into those over values spread like the ends. Intervals with NULL begin at
    /// nobody's value, so that what is in between stays even; but somebody has none there, and somebody the greatest value.
    /// Fails when the function fails at an end.
    pub(super) fn adjust(
        &self,
        means: &Means,
        data_type: &DataType,
        tight: &Tight<'_>,
        even: &mut [f64],
    ) -> Result<()> {
        if !tight.nulls_are_told {
            beside_null(means, data_type, tight, even)?;
        }
        let Some(list) = only_list(tight.ends)? else { return Ok(()) };
        let made = || {
            let ends = Ends::new(&list, data_type, tight.listing)?;
            let at = means.evaluate(ends.values())?;
            Ok(Arc::new(Fit { sums: ends.sums(&at), at, ends }))
        };
        let fit = self.0.get_or_make(|fit| fit.ends.is_of(&list), made)?;
        // One infinite value would spoil all sums.
        if !fit.sums.last().is_some_and(|sum| sum.is_finite()) {
            return Ok(());
        }
        let people = numbers(tight.people, even.len())?;
        let (lo, hi) = (places(tight.lo, tight.listing)?, places(tight.hi, tight.listing)?);
        for (i, mean) in even.iter_mut().enumerate() {
            let Some(span) = fit.ends.span(lo[i], hi[i]) else { continue };
            let ends = fit.sums[span.last + 1] - fit.sums[span.first];
            let rest = (ends + span.even * *mean) / (span.ends + span.even);
            *mean = match people.is_valid(i) {
                true => with_ends(people.value(i), fit.at[span.first], fit.at[span.last], rest),
                false => rest,
            };
        }
        Ok(())
    }
}

/// Corrects even means over intervals with NULL: one person without a value, and one with the greatest.
fn beside_null(means: &Means, data_type: &DataType, tight: &Tight<'_>, even: &mut [f64]) -> Result<()> {
    let with_null = |&row: &u32| tight.lo.is_null(row as usize) && tight.hi.is_valid(row as usize);
    let rows: UInt32Array = (0..even.len() as u32).filter(with_null).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let people = numbers(tight.people, even.len())?;
    let at_hi = means.evaluate(&cast(&take(tight.hi, &rows, None)?, data_type)?)?;
    let of_null = means.of_null()?;
    for (&row, at_hi) in rows.values().iter().zip(at_hi).filter(|(row, _)| people.is_valid(**row as usize)) {
        let mean = &mut even[row as usize];
        *mean = with_ends(people.value(row as usize), of_null, at_hi, *mean);
    }
    Ok(())
}

/// Converts a value into a number per row.
/// Fails when it is none.
pub(super) fn numbers(value: &ColumnarValue, rows: usize) -> Result<Float64Array> {
    Ok(cast(&value.to_array(rows)?, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}
