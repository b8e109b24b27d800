//! Columns of types that no release can have: what they are, and what can be published of them.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::utils::quote_identifier;
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

/// Returns a name as SQL has it: words such as `list` and `map` begin something else before a bracket.
fn named(name: &str) -> String {
    match ALL_KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        true => format!("\"{name}\""),
        false => quote_identifier(name).into_owned(),
    }
}

/// Says why a column of this type has no role, and the expression to use.
pub(crate) fn unpublishable(field: &Field) -> String {
    let name = named(field.name());
    let instead = |what: &str, expr: &str, alias: &str| {
        format!("{what} cannot be published: put a value of it in its place, as {expr} AS {}", named(alias))
    };
    match field.data_type() {
        DataType::Null => {
            "no row that types are read from has a value: leave it out, or declare its type in CREATE EXTERNAL TABLE"
                .to_owned()
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => instead("a list", &format!("{name}[1]"), field.name()),
        DataType::Struct(fields) => match fields.first() {
            Some(first) => {
                let of = format!("{name}['{}']", first.name().replace('\'', "''"));
                instead("a struct", &of, &format!("{}_{}", field.name(), first.name()))
            }
            None => "a struct without fields: leave it out".to_owned(),
        },
        DataType::Map(..) => instead("a map", &format!("{name}['key']"), &format!("{}_key", field.name())),
        DataType::Duration(_) => instead("a duration", &format!("CAST({name} AS BIGINT)"), field.name()),
        DataType::Interval(_) => instead("an interval", &format!("date_part('epoch', {name})"), field.name()),
        _ => instead("a value of a type", &format!("CAST({name} AS VARCHAR)"), field.name()),
    }
}
