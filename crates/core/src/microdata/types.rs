//! Column types that can be published, and their published types.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};

use crate::error::Result;

/// Returns the published type of a column, or `None` without order or equality. The column is encoded with this type.
///
/// Dictionaries are published as their values and half floats as single ones. Unsigned integers become the next wider
/// signed type (`DECIMAL(20, 0)` for 64 bits), because Delta Lake has no unsigned types.
pub fn published_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Dictionary(_, values) => return published_type(values),
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..) => data_type.clone(),
        _ => return None,
    })
}

/// Returns how a type is declared in SQL, as it is published.
pub fn sql_type(data_type: &DataType) -> Option<String> {
    Some(match published_type(data_type)? {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        _ => return None,
    })
}

/// Returns true if intervals of the type are measured by length, not by values.
pub fn is_continuous(data_type: &DataType) -> bool {
    data_type.is_floating()
        || data_type.is_decimal()
        || matches!(data_type, DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_))
}

/// Returns the type that a column is held in: views for texts, because plain strings end at 2
/// GiB.
pub fn held_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    }
}

/// Copies view arrays into buffers that hold only their own values; returns other arrays as they are.
pub fn compact_views(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

/// Returns a column as it is held: texts as views; of floats, one zero and one NaN, so that equal values are one value.
pub fn held(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let one = |x: f32| if x.is_nan() { f32::NAN } else { x + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let one = |x: f64| if x.is_nan() { f64::NAN } else { x + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        data_type => match held_type(data_type) {
            held if held == *data_type => ArrayRef::clone(array),
            held => cast(array, &held)?,
        },
    })
}
