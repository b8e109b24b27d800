//! The scalar function `raked`: how values are spread over the intervals of a column whose margins are known.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, StructArray, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::axis::{Axis, only_list, with_lists_apart};
use super::ends::{Count, before_and_even, check_shares, places};
use super::raking::{Span, rake};
use crate::scalars;

/// `raked(intervals, margins, values, hierarchies)`: the ends of a column's intervals as [`ShareOf`](super::ShareOf) takes them, a list of
/// structs of an end, three counts, and a share. `intervals` is a list of structs: `lo`, `hi`, the people in a group (NULL where nobody
/// need be at the ends), rows, and people they stand for. `margins` is a list of structs of a value and a share, or NULL. With margins, the
/// shares are such that the people of all intervals together are spread as the margins say; without, they are 0, and the ends count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Raked {
    axis: Arc<Axis>,
    signature: Signature,
}

impl Raked {
    /// Returns the function over intervals of a column.
    pub(crate) fn function(axis: Arc<Axis>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { axis, signature: Signature::variadic_any(Volatility::Immutable) })
    }

    fn fields(&self) -> Fields {
        let number = |name: &str| Field::new(name, DataType::Float64, true);
        let end = Field::new("end", self.axis.data_type.clone(), true);
        Fields::from(vec![end, number("wide"), number("single"), number("people"), number("share")])
    }

    fn item(&self) -> FieldRef {
        Arc::new(Field::new_list_field(DataType::Struct(self.fields()), true))
    }

    fn ends(&self, intervals: &StructArray, margins: Option<&StructArray>, values: &Placed) -> Result<StructArray> {
        let number = |column: usize| -> Result<Float64Array> {
            Ok(cast(intervals.column(column), &DataType::Float64)?.as_primitive::<Float64Type>().clone())
        };
        let (people, rows, mass) = (number(2)?, number(3)?, number(4)?);
        let mut counts = vec![Count::default(); values.number];
        let mut spans = Vec::with_capacity(intervals.len());
        for i in 0..intervals.len() {
            let (first, last) = (values.lo[i], values.hi[i]);
            let tight = people.is_valid(i);
            let (rows, mass) = (rows.value(i), mass.value(i));
            let of_group = people.value(i);
            match first == last {
                _ if !tight => {}
                true => {
                    counts[first].single += rows;
                    counts[first].people += rows * of_group;
                }
                false => {
                    counts[first].wide += rows;
                    counts[last].wide += rows;
                }
            }
            let at_each_end = if tight && of_group >= 2.0 { mass / of_group } else { 0.0 };
            spans.push(Span { first, last, at_each_end, inside: mass - 2.0 * at_each_end });
        }
        let mut shares = vec![0.0; values.number];
        if let Some(margins) = margins {
            let given = cast(margins.column(1), &DataType::Float64)?;
            check_shares(given.as_primitive::<Float64Type>().iter())?;
            for (&value, share) in values.margins.iter().zip(given.as_primitive::<Float64Type>().values()) {
                shares[value] += share;
            }
            if shares.iter().sum::<f64>() > 0.0 {
                let (before, even) = before_and_even(&counts, &[]);
                let even = even / values.number.max(1) as f64;
                let from: Vec<f64> = before.windows(2).map(|pair| pair[1] - pair[0] + even).collect();
                shares = rake(&spans, &shares, &from);
            }
        }
        let column =
            |of: fn(&Count) -> f64| -> ArrayRef { Arc::new(counts.iter().map(of).map(Some).collect::<Float64Array>()) };
        let columns = vec![
            Arc::clone(&values.values),
            column(|count| count.wide),
            column(|count| count.single),
            column(|count| count.people),
            Arc::new(Float64Array::from(shares)),
        ];
        Ok(StructArray::try_new(self.fields(), columns, None)?)
    }

    /// Numbers the values of intervals and margins in their order.
    fn placed(
        &self,
        intervals: &StructArray,
        margins: Option<&StructArray>,
        listing: Option<&super::listing::Listing>,
    ) -> Result<Placed> {
        let typed = |column: &ArrayRef| cast(column, &self.axis.data_type);
        let mut columns = vec![typed(intervals.column(0))?, typed(intervals.column(1))?];
        columns.extend(margins.map(|margins| typed(margins.column(0))).transpose()?);
        let all = concat(&columns.iter().map(|column| column.as_ref()).collect::<Vec<_>>())?;
        let known = 2 * intervals.len();
        let mut located = places(&all.slice(0, known), listing)?;
        if margins.is_some() {
            located.extend(places(&all.slice(known, all.len() - known), listing).map_err(|_| super::ends::no_leaf())?);
        }
        let mut order: Vec<u64> = (0..located.len() as u64).collect();
        order.sort_unstable_by(|&a, &b| located[a as usize].total_cmp(&located[b as usize]).then(a.cmp(&b)));
        let (mut numbers, mut kept) = (vec![0; located.len()], Vec::<u64>::new());
        for i in order {
            // Values that are one as doubles are one here.
            if kept.last().is_none_or(|&last| located[last as usize] != located[i as usize]) {
                kept.push(i);
            }
            numbers[i as usize] = kept.len() - 1;
        }
        let number = kept.len();
        let values = take(&all, &UInt64Array::from(kept), None)?;
        let margins = numbers.split_off(known);
        let hi = numbers.split_off(intervals.len());
        Ok(Placed { number, values, lo: numbers, hi, margins })
    }
}

/// Numbers of values.
struct Placed {
    number: usize,
    values: ArrayRef,
    lo: Vec<usize>,
    hi: Vec<usize>,
    margins: Vec<usize>,
}

impl ScalarUDFImpl for Raked {
    scalars::declared!(self: "raked" => DataType::List(self.item()));

    with_lists_apart!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [intervals, margins, values, hierarchies] = args.args.as_slice() else {
            return internal_err!("raked takes intervals, margins, the values of a column, and hierarchies");
        };
        let (Some(intervals), margins) = (only_list(intervals)?, only_list(margins)?) else {
            // Nobody has an interval.
            let list = ListArray::new_null(self.item(), args.number_rows);
            return Ok(ColumnarValue::Array(Arc::new(list)));
        };
        let margins = margins.as_ref().map(|margins| margins.as_struct());
        let listing = self.axis.listing(values, hierarchies)?;
        let placed = self.placed(intervals.as_struct(), margins, listing.as_deref())?;
        let ends = self.ends(intervals.as_struct(), margins, &placed)?;
        let offsets = OffsetBuffer::from_lengths([ends.len()]);
        let list: ArrayRef = Arc::new(ListArray::try_new(self.item(), offsets, Arc::new(ends), None)?);
        // One list, for all rows that there may be.
        Ok(ColumnarValue::Array(take(&list, &UInt64Array::from(vec![0; args.number_rows]), None)?))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array};

    use super::*;
    use crate::estimate::ends::lists::{none, of_structs};
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let intervals = of_structs(&[
            ("lo", Arc::new(Int32Array::from(vec![18, 25])) as ArrayRef),
            ("hi", Arc::new(Int32Array::from(vec![25, 30]))),
            ("people", Arc::new(Int64Array::from(vec![4, 5]))),
            ("rows", Arc::new(Int64Array::from(vec![4, 5]))),
            ("mass", Arc::new(Float64Array::from(vec![4.0, 5.0]))),
        ]);
        let margins = of_structs(&[
            ("value", Arc::new(Int32Array::from(vec![18, 25, 30])) as ArrayRef),
            ("share", Arc::new(Float64Array::from(vec![0.2, 0.5, 0.3]))),
        ]);
        let function = Raked::function(Arc::new(Axis::of_type(DataType::Int32)));
        constants_are_columns(&function, &[intervals.clone(), margins, none(), none()], &[2, 3]);
        constants_are_columns(&function, &[intervals, none(), none(), none()], &[1, 2, 3]);
    }
}
