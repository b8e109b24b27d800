//! Column types that Delta Lake can keep.

use std::collections::HashSet;

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, TimeUnit};
use datafusion::common::Result;

use super::delta;
use crate::error::refusal;
use crate::microdata::{Layout, Several, name_of_parts, parts_of, published_type};

/// Returns the type that a publication's column has: a near one that Delta Lake can keep, `None` if there is none.
///
/// Unsigned integers become wider signed ones, other times than microseconds become microseconds, times in zones become UTC.
pub(crate) fn stored_type(data_type: &DataType) -> Option<DataType> {
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

/// Returns the names of column types in Delta Lake, which no engine changes.
/// Fails when Delta Lake cannot keep one of them.
pub(crate) fn type_names(layout: &Layout) -> Result<Vec<String>> {
    let name = |field: &FieldRef| -> Result<String> {
        let schema = Schema::new(vec![FieldRef::clone(field)]);
        Ok(delta::kernel_schema(&schema)?.fields().map(|field| field.data_type().to_string()).collect())
    };
    let names = layout.fields().map(|field| {
        let parts = parts_of(field).map_err(|error| error.in_function("publication"))?;
        match parts.is_empty() {
            true => name(field),
            false => Ok(name_of_parts(&parts.iter().map(name).collect::<Result<Vec<_>>>()?, Several::Each)),
        }
    });
    names.collect()
}

/// Fails when Delta Lake cannot keep a table with these columns.
pub(crate) fn check_schema(schema: &Schema) -> Result<()> {
    let mut names = HashSet::new();
    for field in schema.fields() {
        let name = field.name();
        if let Some(character) = name.chars().find(|character| " ,;{}()\n\t=".contains(*character)) {
            return Err(refusal!(
                "publication",
                "the name of column {name} has the character {character:?}, which Delta Lake does not allow; \
                 give it another one"
            ));
        }
        if !names.insert(name.to_lowercase()) {
            return Err(refusal!(
                "publication",
                "there would be two columns {name} in a release, for Delta Lake does not tell upper from lower case; \
                 give one another name"
            ));
        }
    }
    delta::kernel_schema(schema).map(|_| ())
}
