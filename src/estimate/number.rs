//! Conditions and values of columns that are known exactly, as numbers.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::scalars;

/// Returns `number_of(x)`: a condition as 1 or 0, a number as DOUBLE, NULL as 0. Never NULL.
pub(crate) fn number_of(expr: Expr) -> Expr {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::new_from_impl(NumberOf { signature: Signature::any(1, Volatility::Immutable) }))
    });
    FUNCTION.call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberOf {
    signature: Signature,
}

impl ScalarUDFImpl for NumberOf {
    scalars::declared!(self: "number_of" => DataType::Float64, never NULL);

    /// Keeps the elimination of common subexpressions out of the argument: DataFusion 55 disagrees with itself on whether some
    /// CASE expressions can be NULL, and a CASE that becomes a column of its own then fails the check of schemas.
    fn short_circuits(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else { return internal_err!("number_of takes one argument") };
        let numbers = cast(&value.to_array(args.number_rows)?, &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        let numbers: ArrayRef = match numbers.null_count() {
            0 => Arc::new(numbers.clone()),
            _ => Arc::new(Float64Array::from_iter_values(numbers.iter().map(|number| number.unwrap_or(0.0)))),
        };
        Ok(ColumnarValue::Array(numbers))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let function = ScalarUDF::new_from_impl(NumberOf { signature: Signature::any(1, Volatility::Immutable) });
        for value in [ScalarValue::from(true), ScalarValue::from(7_i32), ScalarValue::Float64(None)] {
            constants_are_columns(&function, &[value], &[]);
        }
    }
}
