//! `composite` and `composite_part`: one value of several, and parts of it, as functions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::error::refusal;
use crate::microdata::{Several, can_be_part, compose, field_of_parts, part};
use crate::scalars;

/// The function that makes a value of several.
pub(in crate::sql) const COMPOSITE: &str = "composite";
/// The function that takes a part of it.
const COMPOSITE_PART: &str = "composite_part";

/// `composite(a, b, ..)`: NULL where one of them is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Compose {
    signature: Signature,
    /// Description of the value by its parts, if it is published as that.
    field: Option<FieldRef>,
}

impl Default for Compose {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable), field: None }
    }
}

impl Compose {
    /// Composes columns that are published as these.
    pub(super) fn of(parts: &[FieldRef], several: Several) -> Self {
        Self { field: Some(Arc::new(field_of_parts(parts, several))), ..Self::default() }
    }
}

impl ScalarUDFImpl for Compose {
    fn name(&self) -> &str {
        COMPOSITE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if types.len() < 2 {
            return Err(refusal!(COMPOSITE, "it takes two columns or more, for example {COMPOSITE}(disease, drug)"));
        }
        for data_type in types {
            if !can_be_part(data_type) {
                return Err(refusal!(COMPOSITE, "values of type {data_type} have no text; cast them"));
            }
        }
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let composed = self.return_type(&types)?;
        Ok(self.field.clone().unwrap_or_else(|| Arc::new(Field::new(COMPOSITE, composed, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = scalars::columns(&args.args, args.number_rows)?;
        let values = compose(&columns).map_err(|error| error.in_function(COMPOSITE))?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}

/// `composite_part(value, 1)`: a part as a text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    signature: Signature,
}

impl Default for Part {
    fn default() -> Self {
        let types = TypeSignature::Exact(vec![DataType::Utf8, DataType::Int64]);
        Self { signature: Signature::new(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Part {
    scalars::declared!(self: COMPOSITE_PART => DataType::Utf8);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = scalars::columns(&args.args, args.number_rows)?;
        let [values, places] = columns.as_slice() else {
            return Err(refusal!(COMPOSITE_PART, "it takes a value and the number of a part, from 1"));
        };
        let values = cast(values, &DataType::Utf8)?;
        let places = places.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
        let place =
            |row| places.is_valid(row).then(|| places.value(row) - 1).and_then(|place| usize::try_from(place).ok());
        let parts = part(values.as_string::<i32>(), place).map_err(|error| error.in_function(COMPOSITE_PART))?;
        Ok(ColumnarValue::Array(Arc::new(parts)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::ScalarUDF;

    use super::*;
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
        let compose = ScalarUDF::new_from_impl(Compose::default());
        constants_are_columns(&compose, &[text("flu"), ScalarValue::from(7_i64)], &[]);
        constants_are_columns(&compose, &[text("flu"), ScalarValue::Utf8(None)], &[]);
        let part = ScalarUDF::new_from_impl(Part::default());
        constants_are_columns(&part, &[text(r#"["flu","7"]"#), ScalarValue::from(2_i64)], &[]);
    }
}
