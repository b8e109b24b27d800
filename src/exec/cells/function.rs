//! `anonymize_cell(value, cells)`: the cell of a value, as a function of SQL.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::refusal;
use crate::microdata::{MOST_CELLS, cells_of};
use crate::scalars;

const NAME: &str = "anonymize_cell";

pub(crate) fn cell_function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Cell::default()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Cell {
    signature: Signature,
}

impl Default for Cell {
    fn default() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Cell {
    scalars::declared!(self: NAME => DataType::UInt32);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let number = match args.args.get(1) {
            Some(ColumnarValue::Scalar(number)) => number.cast_to(&DataType::Int64).ok(),
            _ => None,
        };
        let cells = match number {
            Some(ScalarValue::Int64(Some(cells))) => u32::try_from(cells).ok(),
            _ => None,
        };
        let Some(cells) = cells.filter(|cells| (1..=MOST_CELLS).contains(cells)) else {
            return Err(refusal!(NAME, "the number of cells must be a constant from 1 to {MOST_CELLS}"));
        };
        let found = |values: &ArrayRef| cells_of(values, cells).map_err(|error| error.in_function(NAME));
        match &args.args[0] {
            ColumnarValue::Array(values) => Ok(ColumnarValue::Array(Arc::new(found(values)?))),
            ColumnarValue::Scalar(value) => {
                let cell = found(&value.to_array()?)?.value(0);
                Ok(ColumnarValue::Scalar(ScalarValue::UInt32(Some(cell))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let cells = ScalarValue::from(4_i64);
        constants_are_columns(&cell_function(), &[ScalarValue::from(4711_i64), cells.clone()], &[1]);
        constants_are_columns(&cell_function(), &[ScalarValue::Utf8(None), cells], &[1]);
    }
}
