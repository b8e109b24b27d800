//! Distribution of the values of a column, as the ends of its intervals tell it.
//!
//! Intervals of groups are tight: somebody is at `lo` and somebody at `hi`. So of the `n` people of a group two are known, and the
//! ends of all groups are a sample of the column's values. The other `n - 2` people are taken to be spread over the interval as
//! that sample is, together with an even part for the values that are no end. Frequent values are ends often; where all values
//! are, the column is nearly even, and this is nearly the paper's estimate (m-invariance, Section 5.2).
//!
//! A maximum-likelihood fit of interval-censored data (Turnbull) does worse the longer it is iterated: it takes intervals to be
//! drawn without regard to the values, but they are cut where groups become small, and single values are cut out first. For the
//! same reason an interval of one value tells little of what is inside wider ones, and counts for less.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result, internal_err};
use serde::{Deserialize, Serialize};

use super::ESTIMATE;
use super::listing::Listing;
use super::scale::{Scale, coordinates};
use crate::error::refusal;

/// Assumption of how values are spread over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) enum Distribution {
    /// Values are spread like the ends of the release's intervals, with somebody at each end.
    #[default]
    Fitted,
    /// Evenly (m-invariance, Section 5.2).
    Uniform,
}

/// Weight of the even part against that of all ends, which is 1.
pub(super) const EVEN: f64 = 0.3;
/// The same where shares of values are given: there for values that nobody was said to have.
pub(super) const EVEN_GIVEN: f64 = 1e-3;
/// Weight of an interval of one value; each end of a wider one has 1. With it and [`EVEN`], median errors were
/// least over all of ADULT, ACS, incidents of Chicago and the synthetic census.
const SINGLE: f64 = 0.5;

/// Released rows with an end at a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    /// Of wider intervals.
    pub wide: f64,
    /// Of intervals of this value alone.
    pub single: f64,
    /// Sum over these rows of the people in their groups.
    pub people: f64,
}

/// Computes the share of the ends before each value, and over all: 0 to 1, or 0 without ends.
///
/// Groups that are all alike say that their value is frequent in the rest, too, if hardly any other value fills a group, and if most
/// groups are not alike; then all of their people count. If two values fill groups, they were cut apart, and the groups in between
/// are about as much of the one as of the other.
pub(super) fn before(counts: &[Count]) -> Vec<f64> {
    let total = |of: fn(&Count) -> f64| counts.iter().map(of).sum::<f64>();
    let (wide, single) = (total(|count| count.wide) / 2.0, total(|count| count.single));
    let most = counts.iter().map(|count| count.single).fold(0.0, f64::max);
    let alike = match single > 0.0 {
        true => (2.0 * most / single - 1.0).max(0.0) * (wide / (wide + single)).powi(3),
        false => 0.0,
    };
    let mut sum = 0.0;
    let mut before = vec![sum];
    for count in counts {
        sum += count.wide + SINGLE * count.single + alike * count.people;
        before.push(sum);
    }
    if sum > 0.0 {
        before.iter_mut().for_each(|before| *before /= sum);
    }
    before
}

/// Returns the share of the column before each of these values, and over all; and the weight of the even part beside it. Shares that are given
/// count instead of the ends.
pub(super) fn before_and_even(counts: &[Count], shares: &[f64]) -> (Vec<f64>, f64) {
    let total: f64 = shares.iter().sum();
    if total <= 0.0 {
        return (before(counts), EVEN);
    }
    let mut sum = 0.0;
    let before = shares.iter().map(|share| {
        sum += share / total;
        sum
    });
    (std::iter::once(0.0).chain(before).collect(), EVEN_GIVEN)
}

/// Returns the refusal of margins of a column whose values are listed.
pub(super) fn no_leaf() -> DataFusionError {
    refusal!(
        ESTIMATE,
        argument "prior",
        "argument prior has a value that is not among the leaves of its attribute's hierarchy, or not in its anonymize.order"
    )
}

/// Fails when a share is not a number from 0 on.
pub(super) fn check_shares(mut shares: impl Iterator<Item = Option<f64>>) -> Result<()> {
    match shares.all(|share| share.is_some_and(|share| share >= 0.0 && share.is_finite())) {
        true => Ok(()),
        false => Err(refusal!(
            ESTIMATE,
            argument "prior",
            "the column share of argument prior must be a number of at least 0 for every value: the share, or the number, of the people \
             who have it"
        )),
    }
}

/// Places of the ends of a column's intervals, and the counts at each place.
#[derive(Debug)]
pub(super) struct Ends {
    of: ArrayRef,
    /// The values, in order.
    values: ArrayRef,
    /// Places of the ends, ascending.
    places: Vec<f64>,
    /// Share of the ends before each of them, and 1.
    before: Vec<f64>,
    /// Even part per unit of length, or per value.
    per_length: f64,
    /// 1 for values that are counted.
    step: f64,
    /// Number of each whole place from the first on, where they are not too many.
    numbers: Option<Vec<u32>>,
}

/// Position of an interval among the ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Numbers of the ends at its own ends.
    pub first: usize,
    pub last: usize,
    /// Weight of the ends in it, and of its even part.
    pub ends: f64,
    pub even: f64,
}

/// Most whole places that have a table of their own.
const MOST_PLACES: f64 = 1e6;

impl Ends {
    /// Reads a list of structs: an end, the three numbers of its [`Count`], and its share as far as that is given from
    /// elsewhere. Given shares count, and not the ends. `listing` has the places of categories.
    /// Fails when the list is not such a list, a category is not listed, or a share is not a number from 0 on.
    pub(super) fn new(of: &ArrayRef, data_type: &DataType, listing: Option<&Listing>) -> Result<Self> {
        let Some(pairs) = of.as_struct_opt().filter(|pairs| pairs.num_columns() == 5) else {
            return internal_err!("ends of intervals without their numbers");
        };
        let values = cast(pairs.column(0), data_type)?;
        let number = |column: usize| -> Result<Float64Array> {
            Ok(cast(pairs.column(column), &DataType::Float64)?.as_primitive::<Float64Type>().clone())
        };
        let (wide, single, people, given) = (number(1)?, number(2)?, number(3)?, number(4)?);
        check_shares(given.iter())?;
        let places = places(&values, listing)?;
        let mut order: Vec<usize> = (0..places.len()).filter(|&i| places[i].is_finite()).collect();
        order.sort_unstable_by(|&a, &b| places[a].total_cmp(&places[b]).then(a.cmp(&b)));
        let (mut kept, mut counts, mut shares) = (Vec::<usize>::new(), Vec::<Count>::new(), Vec::<f64>::new());
        for i in order {
            // Values that are one as doubles are one here.
            if kept.last().is_none_or(|&last| places[last] != places[i]) {
                kept.push(i);
                counts.push(Count::default());
                shares.push(0.0);
            }
            if let Some(share) = shares.last_mut() {
                *share += given.value(i);
            }
            if let Some(count) = counts.last_mut() {
                count.wide += wide.value(i);
                count.single += single.value(i);
                count.people += people.value(i);
            }
        }
        let taken = datafusion::arrow::array::UInt64Array::from_iter_values(kept.iter().map(|&i| i as u64));
        let values = datafusion::arrow::compute::take(&values, &taken, None)?;
        let places: Vec<f64> = kept.into_iter().map(|i| places[i]).collect();
        let counted = listing.is_some() || Scale::of(data_type) == Scale::Steps;
        let step = f64::from(u8::from(counted));
        let (first, last) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(0.0));
        let whole = listing.map_or(last - first + step, |listing| listing.order().len() as f64);
        let numbers = (counted && last - first < MOST_PLACES).then(|| {
            let mut numbers = vec![u32::MAX; (last - first) as usize + 1];
            places.iter().zip(0..).for_each(|(place, number)| numbers[(place - first) as usize] = number);
            numbers
        });
        let (before, even) = before_and_even(&counts, &shares);
        let per_length = if whole > 0.0 && whole.is_finite() { even / whole } else { 0.0 };
        Ok(Self { of: ArrayRef::clone(of), values, places, before, per_length, step, numbers })
    }

    /// Returns true if they are of this list: the same array for all rows.
    pub(super) fn is_of(&self, list: &ArrayRef) -> bool {
        ArrayRef::ptr_eq(&self.of, list)
    }

    /// Returns the different ends, in order.
    pub(super) fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Returns the number of the end at a place.
    fn number(&self, place: f64) -> Option<usize> {
        let first = *self.places.first()?;
        match &self.numbers {
            Some(numbers) if place >= first => {
                let number = *numbers.get((place - first) as usize)?;
                (number != u32::MAX).then_some(number as usize)
            }
            Some(_) => None,
            None => self.places.binary_search_by(|other| other.total_cmp(&place)).ok(),
        }
    }

    /// Returns the interval between two places; `None` if it is a single value, or not between ends.
    pub(super) fn span(&self, lo: f64, hi: f64) -> Option<Span> {
        let (first, last) = (self.number(lo)?, self.number(hi)?);
        let even = self.per_length * (hi - lo + self.step);
        let span = Span { first, last, ends: self.before[last + 1] - self.before[first], even };
        (first < last && span.ends + span.even > 0.0).then_some(span)
    }

    /// Returns the share of a value of an interval with it, of what is spread.
    pub(super) fn share(&self, span: &Span, place: f64) -> f64 {
        let ends = self.number(place).map_or(0.0, |number| self.before[number + 1] - self.before[number]);
        (ends + self.per_length) / (span.ends + span.even)
    }

    /// Sums a function's values at the ends, by weight, before each and over all.
    pub(super) fn sums(&self, function: &[f64]) -> Vec<f64> {
        let weights = self.before.windows(2).map(|pair| pair[1] - pair[0]);
        let mut sum = 0.0;
        let sums = function.iter().zip(weights).map(|(value, weight)| {
            sum += value * weight;
            sum
        });
        std::iter::once(0.0).chain(sums).collect()
    }
}

/// Weighs a group of `people`: one is at each end, and the others have `rest`.
pub(super) fn with_ends(people: f64, at_lo: f64, at_hi: f64, rest: f64) -> f64 {
    if people >= 2.0 { (at_lo + at_hi + (people - 2.0) * rest) / people } else { rest }
}

/// Returns the places of values; not a number where there is none.
/// Fails when a category is not listed.
pub(super) fn places(values: &ArrayRef, listing: Option<&Listing>) -> Result<Vec<f64>> {
    if let Some(listing) = listing {
        let places = listing.places(values)?;
        return Ok(places.into_iter().map(|place| place.map_or(f64::NAN, |place| place as f64)).collect());
    }
    let places: Float64Array = coordinates(values)?;
    Ok(places.iter().map(|place| place.unwrap_or(f64::NAN)).collect())
}

/// A list of ends with counts, as functions of estimates take it, and value lists.
#[cfg(test)]
pub(super) mod lists {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, StructArray};
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::common::ScalarValue;
    use datafusion::common::utils::SingleRowListArrayBuilder;

    pub(in crate::estimate) fn of_values(values: ArrayRef) -> ScalarValue {
        ScalarValue::List(Arc::new(SingleRowListArrayBuilder::new(values).build_list_array()))
    }

    /// Returns the structs of a value and numbers with these names.
    pub(in crate::estimate) fn of_structs(columns: &[(&str, ArrayRef)]) -> ScalarValue {
        let field = |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
        let columns: Vec<_> = columns.iter().map(|(name, array)| (field(name, array), Arc::clone(array))).collect();
        of_values(Arc::new(StructArray::from(columns)))
    }

    /// Ends that two rows each have, of wider intervals.
    pub(in crate::estimate) fn of_ends(ends: ArrayRef) -> ScalarValue {
        let rows = ends.len();
        let number = |number: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![number; rows])) };
        let (wide, none) = (number(2.0), number(0.0));
        of_structs(&[
            ("end", ends),
            ("wide", wide),
            ("single", Arc::clone(&none)),
            ("people", Arc::clone(&none)),
            ("share", none),
        ])
    }

    pub(in crate::estimate) fn none() -> ScalarValue {
        ScalarValue::Null
    }

    /// Returns a list of texts.
    pub(in crate::estimate) fn of_texts(texts: &[&str]) -> ScalarValue {
        let texts: Vec<ScalarValue> = texts.iter().map(|text| ScalarValue::from(*text)).collect();
        ScalarValue::List(ScalarValue::new_list_nullable(&texts, &DataType::Utf8))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, StructArray};
    use datafusion::arrow::datatypes::Field;
    use proptest::prelude::*;

    use super::*;

    fn list(counts: &[(i32, Count)]) -> ArrayRef {
        let number = |of: fn(&Count) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(counts.iter().map(|(_, count)| of(count))))
        };
        let column = |name: &str, array: ArrayRef| (Arc::new(Field::new(name, array.data_type().clone(), true)), array);
        let ends: ArrayRef = Arc::new(Int32Array::from_iter_values(counts.iter().map(|&(end, _)| end)));
        Arc::new(StructArray::from(vec![
            column("end", ends),
            column("wide", number(|count| count.wide)),
            column("single", number(|count| count.single)),
            column("people", number(|count| count.people)),
            column("share", number(|_| 0.0)),
        ]))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Shares of an interval's values add up, and two people are their group's ends.
        #[test]
        fn shares_add_up(
            counts in prop::collection::btree_map(-20_i32..20, (0_u8..9, 0_u8..9, 1_u8..9), 2..12),
            shift in 0_usize..1000,
        ) {
            let counts: Vec<(i32, Count)> = counts
                .into_iter()
                .map(|(end, (wide, single, people))| {
                    let (wide, single) = (f64::from(wide), f64::from(single));
                    (end, Count { wide, single, people: single * f64::from(people) })
                })
                .collect();
            // In any order.
            let mut shuffled = counts.clone();
            shuffled.rotate_left(shift % counts.len());
            let ends = Ends::new(&list(&shuffled), &DataType::Int32, None).unwrap();
            let (first, last) = (counts[0].0, counts[counts.len() - 1].0);
            let span = ends.span(f64::from(first), f64::from(last)).unwrap();
            let shares: Vec<f64> = (first..=last).map(|value| ends.share(&span, f64::from(value))).collect();
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(shares.iter().all(|&share| share > 0.0));
            prop_assert!(ends.span(f64::from(first), f64::from(first)).is_none(), "a single value");
            let at: Vec<f64> = counts.iter().map(|&(end, _)| f64::from(end)).collect();
            let sum = ends.sums(&at)[counts.len()] + span.even * f64::from(first + last) / 2.0;
            let mean: f64 = (first..=last).zip(&shares).map(|(value, share)| f64::from(value) * share).sum();
            prop_assert!((sum / (span.ends + span.even) - mean).abs() < 1e-6);
        }
    }

    #[test]
    fn groups_all_alike_count_where_they_are_of_one_value() {
        let count = |wide: f64, single: f64| Count { wide, single, people: 10.0 * single };
        let share = |counts: &[Count]| before(counts)[1];
        // Half of the ends.
        assert_eq!(share(&[count(8.0, 0.0), count(8.0, 0.0)]), 0.5);
        // Cut apart.
        assert_eq!(share(&[count(8.0, 2.0), count(8.0, 2.0)]), 0.5);
        // The first fills groups and the second none: 8 + 2 * (0.5 + 10 * 0.8^3) of 16 + ..
        let singles = 2.0 * (0.5 + 10.0 * 0.8_f64.powi(3));
        assert!((share(&[count(8.0, 2.0), count(8.0, 0.0)]) - (8.0 + singles) / (16.0 + singles)).abs() < 1e-12);
    }
}
