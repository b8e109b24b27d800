//! The mean of a function over an interval of a column: the expectation for a person of whom only the interval is known
//! (m-invariance, Section 5.2: values are taken as uniform).
//!
//! | column | how |
//! |---|---|
//! | whole numbers, dates | the function on every value, once per query, and prefix sums ([`table`]) |
//! | categories | the same over the values in their order ([`list`]) |
//! | measured, or very many values: comparisons with constants | lengths of the pieces, exactly ([`pieces`]) |
//! | the same, any other function | the mean over [`points::POINTS`] points ([`points`]) |
//!
//! An interval whose `lo` is NULL holds NULL and everything up to `hi`.

mod list;
mod pieces;
mod points;
mod table;

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use datafusion::arrow::array::{Array, ArrayRef, Float64Array, new_null_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};

use super::factor::{Compiled, Factor};
use super::listing::Listing;
use super::scale::{Scale, coordinates, from_coordinates, steps};
use crate::scalars::Kept;
use list::List;
use pieces::Pieces;
use table::{MOST_VALUES, Table};

/// Intervals of one column, row by row.
#[derive(Debug)]
pub(crate) struct Intervals<'a> {
    pub lo: &'a ArrayRef,
    pub hi: &'a ArrayRef,
    /// The least value of the column, one row; only needed for intervals with NULL.
    pub least: Option<&'a ArrayRef>,
    /// Of measured columns the share of NULL in each interval.
    pub nulls: Option<&'a Float64Array>,
}

/// Means of one function of one column. What is computed once per function is kept.
#[derive(Debug)]
pub(crate) struct Means {
    column: String,
    data_type: DataType,
    factor: Factor,
    compiled: OnceLock<Arc<Compiled>>,
    table: RwLock<Option<Arc<Table>>>,
    list: Kept<Arc<List>>,
    pieces: OnceLock<Option<Pieces>>,
}

impl Means {
    pub(crate) fn new(column: String, data_type: DataType, factor: Factor) -> Self {
        Self {
            column,
            data_type,
            factor,
            compiled: OnceLock::new(),
            table: RwLock::new(None),
            list: Kept::default(),
            pieces: OnceLock::new(),
        }
    }

    /// Returns the function of each of these values.
    pub(crate) fn evaluate(&self, values: &ArrayRef) -> Result<Vec<f64>> {
        self.compiled()?.evaluate(values)
    }

    /// Returns the means over intervals of categories in this order, which has no NULL.
    pub(crate) fn over_list(&self, intervals: &Intervals<'_>, listing: &Arc<Listing>) -> Result<Vec<f64>> {
        let order = listing.order();
        let made = || Ok(Arc::new(List::new(Arc::clone(listing), &self.evaluate(order)?, self.of_null()?)));
        let list = self.list.get_or_make(|list| list.is_of(order), made)?;
        list.means(intervals)
    }

    /// Returns the means over intervals of numbers, dates and times.
    pub(crate) fn over_numbers(&self, intervals: &Intervals<'_>) -> Result<Vec<f64>> {
        if Scale::of(&self.data_type) == Scale::Steps
            && let Some(means) = self.by_table(intervals)?
        {
            return Ok(means);
        }
        self.over_lengths(intervals)
    }

    fn compiled(&self) -> Result<Arc<Compiled>> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(Compiled::new(&self.factor, &self.column, &self.data_type)?);
        Ok(Arc::clone(self.compiled.get_or_init(|| compiled)))
    }

    /// Returns the function without a value.
    /// Fails when it fails.
    pub(super) fn of_null(&self) -> Result<f64> {
        Ok(self.evaluate(&new_null_array(&self.data_type, 1))?[0])
    }

    /// Computes by a table of values; `None` if there are too many.
    fn by_table(&self, intervals: &Intervals<'_>) -> Result<Option<Vec<f64>>> {
        let (lo, hi) = (steps(intervals.lo)?, steps(intervals.hi)?);
        let least = match intervals.least {
            Some(least) => steps(least)?.iter().next().flatten(),
            None => None,
        };
        let Some(last) = datafusion::arrow::compute::max(&hi) else { return Ok(Some(vec![self.of_null()?; lo.len()])) };
        let first = datafusion::arrow::compute::min(&lo).into_iter().chain(least).min();
        let Some(first) = first else { return internal_err!("intervals with NULL, but no least value of the column") };
        let fits = |first: i64, last: i64| last.checked_sub(first).is_some_and(|span| span < MOST_VALUES);
        if !fits(first, last) {
            return Ok(None);
        }
        let kept = self.table.read().unwrap_or_else(PoisonError::into_inner).clone();
        let table = match kept {
            Some(table) if table.covers(first, last) => table,
            kept => {
                // Later batches reach a little further, most likely.
                let (mut first, mut last) = (first, last);
                if let Some(table) = kept
                    && fits(first.min(table.first()), last.max(table.last()))
                {
                    (first, last) = (first.min(table.first()), last.max(table.last()));
                }
                // What fails for a value that perhaps no interval has is left to the intervals themselves.
                let table = Table::new(&*self.compiled()?, &self.data_type, first, last, self.of_null()?);
                let Some(table) = table.ok().flatten().map(Arc::new) else { return Ok(None) };
                *self.table.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&table));
                table
            }
        };
        table.means(&lo, &hi, least).map(Some)
    }

    fn over_lengths(&self, intervals: &Intervals<'_>) -> Result<Vec<f64>> {
        let (lo, hi) = (coordinates(intervals.lo)?, coordinates(intervals.hi)?);
        let least = match intervals.least {
            Some(least) => coordinates(least)?.iter().next().flatten(),
            None => None,
        };
        // A whole number takes up the length from half below to half above.
        let whole = Scale::of(&self.data_type) == Scale::Steps;
        let half = if whole { 0.5 } else { 0.0 };
        let ends: Vec<(f64, f64)> = (0..lo.len())
            .map(|i| match (lo.is_valid(i), hi.is_valid(i)) {
                (true, true) => (lo.value(i) - half, hi.value(i) + half),
                (false, true) => (least.unwrap_or_else(|| hi.value(i)).min(hi.value(i)) - half, hi.value(i) + half),
                _ => (f64::NAN, f64::NAN),
            })
            .collect();
        let compiled = self.compiled()?;
        let pieces = match self.pieces.get() {
            Some(pieces) => pieces,
            None => self.pieces.get_or_init(|| Pieces::new(&self.factor, &self.column, &self.data_type)),
        };
        let mut means = match pieces {
            Some(pieces) => pieces.means(&compiled, &self.data_type, &ends)?,
            None => points::means(&compiled, &self.data_type, &ends)?,
        };
        // Single values, and what has no length that could be measured.
        let odd = |&(a, b): &(f64, f64)| a == b || !(b - a).is_finite();
        if ends.iter().any(odd) {
            let at = |which: fn(&(f64, f64)) -> f64| -> Result<Vec<f64>> {
                self.evaluate(&from_coordinates(ends.iter().map(which).collect(), &self.data_type)?)
            };
            // The ends themselves where they are, not what is left of them as doubles.
            let (first, last) = match intervals.least {
                None => (self.evaluate(intervals.lo)?, self.evaluate(intervals.hi)?),
                Some(_) => (at(|ends| ends.0)?, at(|ends| ends.1)?),
            };
            for (i, ends) in ends.iter().enumerate().filter(|(_, ends)| odd(ends)) {
                means[i] = if ends.0 == ends.1 { last[i] } else { (first[i] + last[i]) / 2.0 };
            }
        }
        let of_null = self.of_null()?;
        for (i, mean) in means.iter_mut().enumerate() {
            if hi.is_null(i) {
                *mean = of_null;
            } else if lo.is_null(i) {
                let share = match intervals.nulls {
                    Some(nulls) if nulls.is_valid(i) => nulls.value(i),
                    // As one value of those that there are.
                    _ if whole => 1.0 / (ends[i].1 - ends[i].0 + 1.0),
                    _ => 0.0,
                };
                *mean = share * of_null + (1.0 - share) * *mean;
            }
        }
        Ok(means)
    }
}
