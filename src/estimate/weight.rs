//! The scalar function `weight_of`: the share of one of an interval's values.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Float64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::axis::{Axis, only_list, with_lists_apart};
use super::ends::{Ends, places, with_ends};
use super::fitted::numbers;
use crate::scalars::{self, Kept};

/// `weight_of(value, even, lo, hi, values, hierarchies, people, ends)`: the share of a value among those of the interval that it was
/// listed from by [`ValuesOf`](super::ValuesOf), where `even` is the share if all have the same. DOUBLE, never NULL; the shares of the values of
/// an interval add up to 1. The other arguments are those of [`Known::Interval`](super::Known::Interval) and
/// [`ShareOf`](super::ShareOf).
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WeightOf {
    axis: Arc<Axis>,
    ends: Kept<Arc<Ends>>,
    signature: Signature,
}

impl WeightOf {
    /// Returns the function over intervals of a column that is not continuous.
    pub(crate) fn function(axis: Arc<Axis>) -> ScalarUDF {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { axis, ends: Kept::default(), signature })
    }
}

impl ScalarUDFImpl for WeightOf {
    scalars::declared!(self: "weight_of" => DataType::Float64, never NULL);

    with_lists_apart!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, even, lo, hi, values, hierarchies, people, ends] = args.args.as_slice() else {
            return internal_err!(
                "weight_of takes a value, its even share, an interval, its column's values, people and ends"
            );
        };
        let rows = args.number_rows;
        if rows == 0 {
            // Lists that come as columns have none.
            return Ok(ColumnarValue::Array(Arc::new(Float64Array::from(Vec::<f64>::new()))));
        }
        let (even, people) = (numbers(even, rows)?, numbers(people, rows)?);
        let listing = self.axis.listing(values, hierarchies)?;
        let listing = listing.as_deref();
        let made = |list: ArrayRef| {
            let made = || Ends::new(&list, &self.axis.data_type, listing).map(Arc::new);
            self.ends.get_or_make(|ends| ends.is_of(&list), made)
        };
        let ends = only_list(ends)?.map(made).transpose()?;
        let located = |value: &ColumnarValue| places(&value.to_array(rows)?, listing);
        let (value, lo, hi) = (located(value)?, located(lo)?, located(hi)?);
        let weights = (0..rows).map(|i| {
            let span = ends.as_ref().and_then(|ends| Some((ends, ends.span(lo[i], hi[i])?)));
            let rest = span.map_or_else(|| even.value(i), |(ends, span)| ends.share(&span, value[i]));
            // No value is no number, which is equal to none.
            let is = |end: f64| f64::from(u8::from(value[i] == end || value[i].is_nan() && end.is_nan()));
            // An interval with NULL has somebody without a value, and somebody at its other end.
            let has_ends = span.is_some() || lo[i].is_nan() && !hi[i].is_nan();
            match has_ends && people.is_valid(i) {
                true => with_ends(people.value(i), is(lo[i]), is(hi[i]), rest),
                false => rest,
            }
        });
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from_iter_values(weights))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, StringArray};
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::estimate::ends::lists::{none, of_ends, of_texts};
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let (even, people) = (ScalarValue::from(0.25), ScalarValue::from(5_i64));
        let number = |number: i32| ScalarValue::from(number);
        let ends = of_ends(Arc::new(Int32Array::from(vec![18, 20, 25, 30])));
        let numbers = [number(25), even.clone(), number(20), number(30), none(), none(), people.clone(), ends];
        constants_are_columns(&WeightOf::function(Arc::new(Axis::of_type(DataType::Int32))), &numbers, &[4, 5]);
        let text = |text: &str| ScalarValue::from(text);
        let ends = of_ends(Arc::new(StringArray::from(vec!["a", "c"])));
        let texts = [text("b"), even, text("a"), text("c"), of_texts(&["a", "b", "c"]), none(), people, ends];
        constants_are_columns(&WeightOf::function(Arc::new(Axis::of_type(DataType::Utf8))), &texts, &[5]);
    }
}
