//! Several columns as one value: a JSON array of their texts, such as `["flu","oseltamivir"]`. It is the same text whatever the widths of the
//! columns' types are, so that tables and releases agree, and a ledger can keep it for years.
//!
//! To methods it is a value like any other. A field that has its parts in its metadata is published as their columns.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use serde_json::{Value, json};

use super::{ORDER_KEY, held, published_type};
use crate::error::{Error, Result};

/// Metadata of a field: names, types and orders of the columns that its values were made of.
pub const PARTS_KEY: &str = "anonymize.parts";
/// Metadata of a released column: one of several sensitive columns, each of which is hidden by itself.
pub const EACH_KEY: &str = "anonymize.each";
/// Function whose values hide combinations.
const TOGETHER: &str = "composite";

/// Subject of the bound, where several columns are sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Several {
    /// Each column by itself.
    #[default]
    Each,
    /// The combination of all columns alone. A column by itself can be certain.
    Together,
}

/// Returns the name of a value of these columns: no column of a table has it by chance.
pub fn name_of_parts(columns: &[String], several: Several) -> String {
    let function = match several {
        Several::Each => "",
        Several::Together => TOGETHER,
    };
    format!("{function}({})", columns.join(", "))
}

/// Returns the columns in the name of a value; none if it is of one.
pub fn parts_of_name(name: &str) -> Vec<&str> {
    let list = name.strip_prefix(TOGETHER).unwrap_or(name);
    let inner = list.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inner.map_or_else(Vec::new, |inner| inner.split(", ").collect())
}

/// Returns the field of values that are made of these columns.
pub fn field_of_parts(parts: &[FieldRef], several: Several) -> Field {
    let noted: Vec<Value> = parts
        .iter()
        .map(|part| {
            json!({"name": part.name(), "type": part.data_type().to_string(), "order": part.metadata().get(ORDER_KEY)})
        })
        .collect();
    let names: Vec<String> = parts.iter().map(|part| part.name().clone()).collect();
    let noted = json!({"each": several == Several::Each, "parts": noted});
    let metadata = [(PARTS_KEY.to_owned(), noted.to_string())].into();
    Field::new(name_of_parts(&names, several), DataType::Utf8, true).with_metadata(metadata)
}

fn noted_in(field: &Field) -> Result<Option<Value>> {
    let noted = field.metadata().get(PARTS_KEY).map(|noted| serde_json::from_str(noted));
    noted.transpose().map_err(|_| unknown())
}

fn unknown() -> Error {
    Error::internal("parts of a value that nobody has noted")
}

/// Returns true if a field has several parts, each of which is hidden by itself.
///
/// # Errors
/// When the metadata are not ours, or are lost: a method would then take the combination for what is hidden.
pub fn is_of_each(field: &Field) -> Result<bool> {
    match noted_in(field)? {
        Some(noted) => noted["each"].as_bool().ok_or_else(unknown),
        None if parts_of_name(field.name()).len() > 1 => Err(unknown()),
        None => Ok(false),
    }
}

/// Returns the columns that values of a field were made of; none if they are values by themselves.
///
/// # Errors
/// When the metadata are not ours.
pub fn parts_of(field: &Field) -> Result<Vec<FieldRef>> {
    let Some(noted) = noted_in(field)? else { return Ok(Vec::new()) };
    let part = |noted: &Value| {
        let data_type = noted["type"].as_str()?.parse().ok()?;
        let order = noted["order"].as_str().map(|order| (ORDER_KEY.to_owned(), order.to_owned()));
        let field = Field::new(noted["name"].as_str()?, data_type, true);
        Some(Arc::new(field.with_metadata(order.into_iter().collect())))
    };
    let parts = noted["parts"].as_array().ok_or_else(unknown)?;
    parts.iter().map(|noted| part(noted).ok_or_else(unknown)).collect()
}

/// Returns true if a value can have values of this type as parts, as texts.
pub fn can_be_part(data_type: &DataType) -> bool {
    let is_binary = |published: &DataType| published.is_binary() || matches!(published, DataType::FixedSizeBinary(_));
    data_type == &DataType::Null || published_type(data_type).is_some_and(|published| !is_binary(&published))
}

/// Composes the values of each row into one; NULL where one of them is.
///
/// # Errors
/// When Arrow cannot make texts of them.
pub fn compose(columns: &[ArrayRef]) -> Result<StringArray> {
    let columns = columns.iter().map(texts).collect::<Result<Vec<_>>>()?;
    let rows = columns.first().map_or(0, Array::len);
    let mut composed = StringBuilder::new();
    for row in 0..rows {
        if columns.iter().any(|column| column.is_null(row)) {
            composed.append_null();
            continue;
        }
        let parts: Vec<&str> = columns.iter().map(|column| column.value(row)).collect();
        composed.append_value(serde_json::to_string(&parts).map_err(|_| Error::internal("texts that are no JSON"))?);
    }
    Ok(composed.finish())
}

/// Returns the values as texts; of floats, one zero and one NaN.
fn texts(values: &ArrayRef) -> Result<StringArray> {
    // What cannot be published has no values here, but for NULL.
    let published = published_type(values.data_type()).unwrap_or(DataType::Utf8);
    let values = held(&cast(values, &published)?)?;
    Ok(cast(&values, &DataType::Utf8)?.as_string::<i32>().clone())
}

/// Returns the part of each value at its place, from 0; NULL where there is none.
///
/// # Errors
/// When a value was not made by [`compose`].
pub fn part(values: &StringArray, place: impl Fn(usize) -> Option<usize>) -> Result<StringArray> {
    let mut taken = StringBuilder::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            taken.append_null();
            continue;
        }
        let Ok(parts) = serde_json::from_str::<Vec<String>>(values.value(row)) else {
            return Err(Error::refused("a value was not made by composite"));
        };
        taken.append_option(place(row).and_then(|place| parts.get(place)));
    }
    Ok(taken.finish())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int16Array, Int64Array, TimestampMicrosecondArray,
    };
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(columns: &[ArrayRef]) {
        let composed = compose(columns).unwrap();
        let fields: Vec<FieldRef> = columns
            .iter()
            .enumerate()
            .map(|(place, column)| Arc::new(Field::new(format!("c{place}"), column.data_type().clone(), true)))
            .collect();
        for several in [Several::Each, Several::Together] {
            let field = field_of_parts(&fields, several);
            assert_eq!(is_of_each(&field).unwrap(), several == Several::Each);
            assert_eq!(parts_of_name(field.name()).len(), fields.len());
        }
        let parts = parts_of(&field_of_parts(&fields, Several::Each)).unwrap();
        assert_eq!(parts, fields);
        for ((place, column), field) in columns.iter().enumerate().zip(&parts) {
            let part: ArrayRef = Arc::new(part(&composed, |_| Some(place)).unwrap());
            let part = cast(&part, field.data_type()).unwrap();
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
            Arc::new(TimestampMicrosecondArray::from(vec![1, 2, 1_700_000_000_000_001, -5])),
            Arc::new(Decimal128Array::from(vec![1, -250, 0, 99_999]).with_precision_and_scale(12, 2).unwrap()),
            Arc::new(BooleanArray::from(vec![true, false, true, true])),
        ]);
    }

    #[test]
    fn widths_do_not_matter_and_zero_is_zero() {
        let text = |column: ArrayRef| texts(&column).unwrap();
        assert_eq!(text(Arc::new(Int16Array::from(vec![-3, 9]))), text(Arc::new(Int64Array::from(vec![-3, 9]))));
        assert_eq!(text(Arc::new(Float64Array::from(vec![0.0]))), text(Arc::new(Float64Array::from(vec![-0.0]))));
    }

    #[test]
    fn values_by_themselves_have_no_parts() {
        assert!(parts_of(&Field::new("disease", DataType::Utf8, true)).unwrap().is_empty());
        assert!(!is_of_each(&Field::new("disease", DataType::Utf8, true)).unwrap());
        assert!(is_of_each(&Field::new("(disease, drug)", DataType::Utf8, true)).is_err(), "metadata that were lost");
        assert!(parts_of_name("disease").is_empty());
        assert!(part(&StringArray::from(vec!["flu"]), |_| Some(0)).is_err());
    }

    proptest! {
        /// Different parts are never one value.
        #[test]
        fn texts_there_and_back(a in prop::collection::vec(".*", 3), b in prop::collection::vec(".*", 3)) {
            there_and_back(&[Arc::new(StringArray::from(a)), Arc::new(StringArray::from(b))]);
        }
    }
}
