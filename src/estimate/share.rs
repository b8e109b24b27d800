//! The scalar functions `share_of` and `values_of`, which estimates are made of.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, new_empty_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::ESTIMATE;
use super::axis::{Axis, with_lists_apart};
use super::factor::Factor;
use super::fitted::{Fitted, Tight};
use super::means::{Intervals, Means};
use super::scale::Scale;
use crate::error::refusal;
use crate::scalars;

/// Form in which a row tells of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    /// An interval. Arguments: `lo`, `hi`, the least value of the column or a list of its values, the share of NULL, the
    /// rows of hierarchies; the last three NULL where they are not needed. Where values are spread as the ends of intervals are, two more:
    /// how many people the group has, and a list of structs: an end, and how many rows have it.
    Interval,
    /// A list of values and how often each occurs. One argument.
    Histogram,
}

/// `share_of(..)`: the mean of a function over what a row says of a column. DOUBLE, never NULL.
#[derive(Debug)]
pub(crate) struct ShareOf {
    axis: Arc<Axis>,
    factor: Factor,
    known: Known,
    means: Means,
    fitted: Fitted,
    signature: Signature,
}

impl PartialEq for ShareOf {
    fn eq(&self, other: &Self) -> bool {
        self.axis == other.axis && self.factor == other.factor && self.known == other.known
    }
}

impl Eq for ShareOf {}

impl Hash for ShareOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.axis, &self.factor, self.known).hash(state);
    }
}

impl ShareOf {
    /// Returns the function over an interval or a histogram of a column.
    pub(crate) fn function(axis: Arc<Axis>, factor: Factor, known: Known) -> ScalarUDF {
        let means = Means::new(axis.column.clone(), axis.data_type.clone(), factor.clone());
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { axis, factor, known, means, fitted: Fitted::default(), signature })
    }

    fn over_intervals(&self, args: &[ColumnarValue], rows: usize) -> Result<Vec<f64>> {
        if rows == 0 {
            // Lists that come as columns have none.
            return Ok(Vec::new());
        }
        let [lo, hi, least, nulls, hierarchies, fit @ ..] = args else {
            return internal_err!("share_of takes an interval, the values of its column, NULLs and hierarchies");
        };
        let (lo, hi) = (lo.to_array(rows)?, hi.to_array(rows)?);
        let listing = self.axis.listing(least, hierarchies)?;
        let mut means = match &listing {
            Some(listing) => {
                let intervals = Intervals { lo: &lo, hi: &hi, least: None, nulls: None };
                self.means.over_list(&intervals, listing)?
            }
            None => self.over_numbers((&lo, &hi), least, nulls, rows)?,
        };
        if let [people, ends] = fit {
            let nulls_are_told = !matches!(nulls, ColumnarValue::Scalar(ScalarValue::Null));
            let tight = Tight { lo: &lo, hi: &hi, people, ends, listing: listing.as_deref(), nulls_are_told };
            self.fitted.adjust(&self.means, &self.axis.data_type, &tight, &mut means)?;
        }
        Ok(means)
    }

    fn over_numbers(
        &self,
        (lo, hi): (&ArrayRef, &ArrayRef),
        least: &ColumnarValue,
        nulls: &ColumnarValue,
        rows: usize,
    ) -> Result<Vec<f64>> {
        let least = match least {
            ColumnarValue::Scalar(value) if value.is_null() => None,
            ColumnarValue::Scalar(value) => Some(value.to_array()?),
            ColumnarValue::Array(array) => (!array.is_empty()).then(|| array.slice(0, 1)),
        };
        let nulls = match nulls {
            ColumnarValue::Scalar(ScalarValue::Null) => None,
            nulls => Some(cast(&nulls.to_array(rows)?, &DataType::Float64)?.as_primitive::<Float64Type>().clone()),
        };
        self.means.over_numbers(&Intervals { lo, hi, least: least.as_ref(), nulls: nulls.as_ref() })
    }

    fn over_histograms(&self, args: &[ColumnarValue], rows: usize) -> Result<Vec<f64>> {
        let [list] = args else { return internal_err!("share_of takes a histogram") };
        let array = list.to_array(rows)?;
        let list = cast(&array, &as_list(array.data_type())?)?;
        let list = list.as_list::<i32>();
        let pairs = list.values().as_struct();
        let values = self.means.evaluate(&cast(pairs.column(0), &self.axis.data_type)?)?;
        let counts = cast(pairs.column(1), &DataType::Float64)?;
        let counts = counts.as_primitive::<Float64Type>();
        let shares = (0..list.len()).map(|row| {
            let range = list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize;
            let (mut sum, mut count) = (0.0, 0.0);
            for i in range {
                sum += counts.value(i) * values[i];
                count += counts.value(i);
            }
            if count > 0.0 { sum / count } else { 0.0 }
        });
        Ok(shares.collect())
    }
}

fn as_list(data_type: &DataType) -> Result<DataType> {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            Ok(DataType::List(Arc::clone(item)))
        }
        _ => internal_err!("a histogram that is not a list"),
    }
}

impl ScalarUDFImpl for ShareOf {
    scalars::declared!(self: "share_of" => DataType::Float64, never NULL);

    /// Tells functions of the same arguments apart.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let of = self.factor.expressions().map(ToString::to_string).collect::<Vec<_>>().join(" AND ");
        let first = args.first().map(ToString::to_string).unwrap_or_default();
        Ok(format!("share_of({of}; {first})"))
    }

    /// Simplifies constants such as `now()` in the conditions with those of the query.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let field = Field::new(&self.axis.column, self.axis.data_type.clone(), true);
        let schema = DFSchema::from_unqualified_fields(vec![field].into(), Default::default())?;
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(schema))
            .with_query_execution_start_time(info.query_execution_start_time())
            .with_config_options(Arc::clone(info.config_options()))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let factor = self.factor.map(|expr| simplifier.simplify(expr))?;
        if factor == self.factor {
            return Ok(ExprSimplifyResult::Original(args));
        }
        Ok(ExprSimplifyResult::Simplified(Self::function(Arc::clone(&self.axis), factor, self.known).call(args)))
    }

    with_lists_apart!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let shares = match self.known {
            Known::Interval => self.over_intervals(&args.args, args.number_rows)?,
            Known::Histogram => self.over_histograms(&args.args, args.number_rows)?,
        };
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from(shares))))
    }
}

/// `values_of(lo, hi, ..)`: all values of an interval, as a list. Takes the arguments of [`Known::Interval`] but the share of
/// NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValuesOf {
    axis: Arc<Axis>,
    signature: Signature,
}

/// Most values that one batch of rows is spread over.
const MOST_VALUES: usize = 1 << 25;

impl ValuesOf {
    /// Returns the function over intervals of a column that is not continuous.
    pub(crate) fn function(axis: Arc<Axis>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { axis, signature: Signature::variadic_any(Volatility::Immutable) })
    }

    fn item(&self) -> FieldRef {
        Arc::new(Field::new_list_field(self.axis.data_type.clone(), true))
    }

    fn too_many<T>(&self) -> Result<T> {
        Err(refusal!(
            ESTIMATE,
            "GROUP BY {} would spread the rows over too many values; count by conditions instead, for example \
             count(*) FILTER (WHERE {} < ..)",
            self.axis.column,
            self.axis.column
        ))
    }
}

impl ScalarUDFImpl for ValuesOf {
    scalars::declared!(self: "values_of" => DataType::List(self.item()));

    with_lists_apart!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [lo, hi, least, hierarchies] = args.args.as_slice() else {
            return internal_err!("values_of takes an interval, the values of its column, and hierarchies");
        };
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(new_empty_array(&DataType::List(self.item()))));
        }
        let (lo, hi) = (lo.to_array(args.number_rows)?, hi.to_array(args.number_rows)?);
        let places = match self.axis.listing(least, hierarchies)? {
            Some(listing) => super::spread::Places::listed(&listing, &lo, &hi)?,
            None if Scale::of(&self.axis.data_type) == Scale::Steps => {
                let least = match least {
                    ColumnarValue::Scalar(value) if !value.is_null() => Some(value.to_array()?),
                    ColumnarValue::Array(array) if !array.is_empty() => Some(array.slice(0, 1)),
                    _ => None,
                };
                super::spread::Places::steps(&lo, &hi, least.as_ref())?
            }
            None => return internal_err!("values of a continuous column"),
        };
        if places.total() > MOST_VALUES {
            return self.too_many();
        }
        let list: ArrayRef = Arc::new(places.values(&self.axis.data_type, self.item())?);
        Ok(ColumnarValue::Array(list))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array, StringArray};
    use datafusion::logical_expr::{col, lit};

    use super::*;
    use crate::estimate::ends::lists::{none, of_ends, of_structs, of_texts};
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let numbers = Arc::new(Axis::of_type(DataType::Int32));
        let older = Factor::condition(col("x").gt(lit(25)));
        let share = ShareOf::function(Arc::clone(&numbers), older.clone(), Known::Interval);
        let (lo, hi) = (ScalarValue::from(20_i32), ScalarValue::from(30_i32));
        let even = [lo.clone(), hi.clone(), ScalarValue::from(18_i32), none(), none()];
        constants_are_columns(&share, &even, &[3, 4]);
        let ends = of_ends(Arc::new(Int32Array::from(vec![18, 20, 25, 30])));
        let fitted = [lo.clone(), hi.clone(), none(), none(), none(), ScalarValue::from(5_i64), ends];
        constants_are_columns(&share, &fitted, &[2, 3, 4]);
        let nobody = [ScalarValue::Int32(None), hi.clone(), ScalarValue::from(18_i32), none(), none()];
        constants_are_columns(&share, &nobody, &[3, 4]);
        constants_are_columns(&ValuesOf::function(Arc::clone(&numbers)), &[lo, hi, none(), none()], &[2, 3]);

        let texts = Arc::new(Axis::of_type(DataType::Utf8));
        let share = ShareOf::function(Arc::clone(&texts), Factor::condition(col("x").eq(lit("b"))), Known::Interval);
        let (lo, hi, all) = (ScalarValue::from("a"), ScalarValue::from("c"), of_texts(&["a", "b", "c", "d"]));
        constants_are_columns(&share, &[lo.clone(), hi.clone(), all.clone(), none(), none()], &[3, 4]);
        constants_are_columns(&ValuesOf::function(texts), &[lo, hi, all, none()], &[3]);

        let share = ShareOf::function(numbers, older, Known::Histogram);
        let histogram = of_structs(&[
            ("value", Arc::new(Int32Array::from(vec![20, 30])) as ArrayRef),
            ("count", Arc::new(Int64Array::from(vec![1, 3]))),
        ]);
        constants_are_columns(&share, &[histogram], &[]);
        let texts = ShareOf::function(
            Arc::new(Axis::of_type(DataType::Utf8)),
            Factor::condition(col("x").eq(lit("flu"))),
            Known::Histogram,
        );
        let histogram = of_structs(&[
            ("value", Arc::new(StringArray::from(vec!["flu", "cold"])) as ArrayRef),
            ("count", Arc::new(Int64Array::from(vec![1, 3]))),
        ]);
        constants_are_columns(&texts, &[histogram], &[]);
    }
}
