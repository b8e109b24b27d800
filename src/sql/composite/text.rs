//! One value of several: a JSON array of their texts, such as `["flu","oseltamivir"]`. It is the same text whatever the widths of the
//! columns' types are, so that tables and releases agree, and a ledger can keep it for years.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::error::{Error, refusal};
use crate::microdata::{held, published_type};

/// The function that makes a value of several.
pub(super) const COMPOSITE: &str = "composite";
/// The function that takes a part of it.
const COMPOSITE_PART: &str = "composite_part";

/// `composite(a, b, ..)`: NULL where one of them is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Compose {
    signature: Signature,
}

impl Default for Compose {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
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
            let possible = published_type(data_type).is_some_and(|published| !is_binary(&published));
            if !possible && data_type != &DataType::Null {
                return Err(refusal!(COMPOSITE, "values of type {data_type} have no text; cast them"));
            }
        }
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = columns.iter().map(texts).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(Arc::new(composed(&texts)?)))
    }
}

fn is_binary(data_type: &DataType) -> bool {
    data_type.is_binary() || matches!(data_type, DataType::FixedSizeBinary(_))
}

/// The values as texts; of floats, one zero and one NaN.
fn texts(values: &ArrayRef) -> Result<StringArray> {
    // What cannot be published has no values here, but for NULL.
    let published = published_type(values.data_type()).unwrap_or(DataType::Utf8);
    let values = held(&cast(values, &published)?).map_err(|error| error.in_function(COMPOSITE))?;
    Ok(cast(&values, &DataType::Utf8)?.as_string::<i32>().clone())
}

fn composed(columns: &[StringArray]) -> Result<StringArray> {
    let rows = columns.first().map_or(0, Array::len);
    let mut composed = StringBuilder::new();
    for row in 0..rows {
        if columns.iter().any(|column| column.is_null(row)) {
            composed.append_null();
            continue;
        }
        let parts: Vec<&str> = columns.iter().map(|column| column.value(row)).collect();
        let Ok(text) = serde_json::to_string(&parts) else { return Err(refusal!(COMPOSITE, "a value has no text")) };
        composed.append_value(text);
    }
    Ok(composed.finish())
}

/// `composite_part(value, 1)`: a part as a text, or, where a release is taken apart, with the type that it had.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    signature: Signature,
    /// Of a release: which part, from 0, and its type.
    known: Option<(usize, DataType)>,
}

impl Default for Part {
    fn default() -> Self {
        let types = TypeSignature::Exact(vec![DataType::Utf8, DataType::Int64]);
        Self { signature: Signature::new(types, Volatility::Immutable), known: None }
    }
}

impl Part {
    /// The part at this place, from 0, of a value that was made of columns with such types.
    pub(super) fn of(place: usize, data_type: DataType) -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), known: Some((place, data_type)) }
    }
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        COMPOSITE_PART
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.known.as_ref().map_or(DataType::Utf8, |(_, data_type)| data_type.clone()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(values) = columns.first() else { return Err(refusal!(COMPOSITE_PART, "nothing to take a part of")) };
        let values = cast(values, &DataType::Utf8)?;
        let values = values.as_string::<i32>();
        if let Some((place, data_type)) = &self.known {
            let parts = taken(values, |_| Some(*place))?;
            return Ok(ColumnarValue::Array(cast(&(Arc::new(parts) as ArrayRef), data_type)?));
        }
        let [_, places] = columns.as_slice() else {
            return Err(refusal!(COMPOSITE_PART, "it takes a value and the number of a part, from 1"));
        };
        let places = places.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
        let place =
            |row| places.is_valid(row).then(|| places.value(row) - 1).and_then(|place| usize::try_from(place).ok());
        Ok(ColumnarValue::Array(Arc::new(taken(values, place)?)))
    }
}

/// Of each value the part at its place; NULL where there is none.
fn taken(values: &StringArray, place: impl Fn(usize) -> Option<usize>) -> Result<StringArray> {
    let mut taken = StringBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            taken.append_null();
            continue;
        }
        let Ok(parts) = serde_json::from_str::<Vec<String>>(values.value(row)) else {
            let error = Error::refused(format!("a value was not made by {COMPOSITE}"));
            return Err(error.in_function(COMPOSITE_PART));
        };
        taken.append_option(place(row).and_then(|place| parts.get(place)));
    }
    Ok(taken.finish())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Date32Array, Float64Array, Int16Array, Int64Array, TimestampMicrosecondArray};
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(columns: &[ArrayRef]) {
        let texts: Vec<StringArray> = columns.iter().map(|column| texts(column).unwrap()).collect();
        let composed = composed(&texts).unwrap();
        for (place, column) in columns.iter().enumerate() {
            let part: ArrayRef = Arc::new(taken(&composed, |_| Some(place)).unwrap());
            let part = cast(&part, column.data_type()).unwrap();
            for row in 0..column.len() {
                if columns.iter().any(|column| column.is_null(row)) {
                    assert!(composed.is_null(row));
                } else {
                    assert_eq!(&part.slice(row, 1), &column.slice(row, 1));
                }
            }
        }
    }

    #[test]
    fn types_there_and_back() {
        there_and_back(&[
            Arc::new(StringArray::from(vec![Some("a\"],[\"b"), None, Some(""), Some("ü\n\\")])),
            Arc::new(Float64Array::from(vec![0.1, f64::INFINITY, 1e300, -7.25])),
            Arc::new(Date32Array::from(vec![0, 20_000, -1, 7])),
            Arc::new(TimestampMicrosecondArray::from(vec![1, 2, 1_700_000_000_000_001, -5]).with_timezone("UTC")),
            Arc::new(datafusion::arrow::array::BooleanArray::from(vec![true, false, true, true])),
        ]);
    }

    #[test]
    fn widths_do_not_matter_and_zero_is_zero() {
        let text = |column: ArrayRef| texts(&column).unwrap();
        assert_eq!(text(Arc::new(Int16Array::from(vec![-3, 9]))), text(Arc::new(Int64Array::from(vec![-3, 9]))));
        assert_eq!(text(Arc::new(Float64Array::from(vec![0.0]))), text(Arc::new(Float64Array::from(vec![-0.0]))));
    }

    proptest! {
        /// Different parts are never one value.
        #[test]
        fn texts_there_and_back(a in prop::collection::vec(".*", 3), b in prop::collection::vec(".*", 3)) {
            there_and_back(&[Arc::new(StringArray::from(a)), Arc::new(StringArray::from(b))]);
        }
    }
}
