//! `weight(group_size, counterfeits)`: how much of a person a row of a release stands for.
//!
//! Programs that know nothing of releases count rows. With the weight as a column of the file they count people: of the rows of a group, all that stand
//! for people together weigh as much as the people. It follows from two published columns, so it tells nothing that the release does not.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::error::refusal;
use crate::release::{COUNTERFEITS, GROUP_SIZE};
use crate::scalars;

/// Name of the function.
const WEIGHT: &str = "weight";

/// Returns `weight`, for queries and files.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Weight::default()))
}

/// The share of a group's rows that stand for people: DOUBLE, NULL where a number is missing.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Weight {
    signature: Signature,
}

impl Default for Weight {
    fn default() -> Self {
        let types = TypeSignature::Exact(vec![DataType::Int64, DataType::Int64]);
        Self { signature: Signature::new(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Weight {
    scalars::declared!(self: WEIGHT => DataType::Float64);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = scalars::columns(&args.args, args.number_rows)?;
        let [sizes, counterfeits] = columns.as_slice() else {
            return Err(refusal!(WEIGHT, "it takes two columns of a release: {WEIGHT}({GROUP_SIZE}, {COUNTERFEITS})"));
        };
        let whole = |column: &ArrayRef| cast(column, &DataType::Int64);
        let (sizes, counterfeits) = (whole(sizes)?, whole(counterfeits)?);
        let pairs = sizes.as_primitive::<Int64Type>().iter().zip(counterfeits.as_primitive::<Int64Type>());
        let weights = pairs.map(|pair| match pair {
            (Some(size), Some(counterfeits)) if (0..=size).contains(&counterfeits) && size > 0 => {
                Ok(Some((size - counterfeits) as f64 / size as f64))
            }
            (Some(_), Some(_)) => Err(refusal!(
                WEIGHT,
                "a row has more counterfeits than its group has rows; pass the columns of a release, in this order: \
                 {WEIGHT}({GROUP_SIZE}, {COUNTERFEITS})"
            )),
            _ => Ok(None),
        });
        Ok(ColumnarValue::Array(Arc::new(weights.collect::<Result<Float64Array>>()?)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        constants_are_columns(&function(), &[ScalarValue::from(4_i64), ScalarValue::from(1_i64)], &[]);
        constants_are_columns(&function(), &[ScalarValue::from(4_i64), ScalarValue::Int64(None)], &[]);
    }
}
