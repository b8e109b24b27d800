//! Which types Delta Lake can keep.

use datafusion::arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::common::Result;

use super::delta;
use crate::microdata::published_type;

/// The type that a publication's column has: a near one that Delta Lake can keep, `None` if there is none.
///
/// Unsigned integers become wider signed ones, other times than microseconds become microseconds, times in zones become UTC.
pub fn stored_type(data_type: &DataType) -> Option<DataType> {
    Some(match published_type(data_type)? {
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(precision, scale)
        }
        DataType::LargeUtf8 => DataType::Utf8,
        DataType::LargeBinary | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Decimal256(..) => return None,
        other => other,
    })
}

/// # Errors
/// When Delta Lake cannot keep a table with these columns.
pub fn check_schema(schema: &Schema) -> Result<()> {
    delta::kernel_schema(schema).map(|_| ())
}
