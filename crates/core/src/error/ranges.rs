//! Describes what is said where a query takes a range for a value.

use datafusion::common::Diagnostic;
use datafusion::common::utils::quote_identifier;
use datafusion::error::DataFusionError;

use super::{AnonymizeError, ErrorKind};

/// Returns the refusal of an operator or a function on a range; of which column, if that is known.
pub fn range_refused(operation: &str, column: Option<&str>) -> AnonymizeError {
    let (subject, name) = match column {
        Some(column) => (format!("column {column} is a range"), quote_identifier(column)),
        None => ("a column is a range".to_owned(), "age".into()),
    };
    let message = format!(
        "{subject}, from lo to hi, and not a value; ask the release as if it were the original table: SELECT .. FROM estimated(release) \
         WHERE {name} > 60; or take an end of the range: {name}.lo, {name}.hi"
    );
    AnonymizeError::new(operation, ErrorKind::Refused, message)
}

/// Returns the same for an error of the engine's planner about a range. Its text has the type. Texts of other errors can have values in them.
pub fn about_range(error: &DataFusionError) -> Option<AnonymizeError> {
    if !matches!(error.find_root(), DataFusionError::Plan(_) | DataFusionError::NotImplemented(_)) {
        return None;
    }
    if let Some(said) = error.diagnostic().and_then(of_operator) {
        return Some(said);
    }
    let text = error.strip_backtrace();
    Some(range_refused(&name_in(before_range(&text)?, &text), None))
}

/// Returns the same for an operator with one operand: its type and the column are said beside the error.
fn of_operator(diagnostic: &Diagnostic) -> Option<AnonymizeError> {
    let (operator, data_type) = diagnostic.message.split_once(" cannot be used with ")?;
    before_range(data_type)?;
    let operand = diagnostic.helps.first().and_then(|help| help.message.strip_prefix("perhaps you need to cast "));
    let column = operand.and_then(|operand| operand.rsplit('.').next());
    let is_name = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    Some(range_refused(operator, column.filter(is_name)))
}

/// Returns the text before the type of a range.
fn before_range(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once("Struct(")?;
    let parts: Vec<&str> =
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).take(16).collect();
    (parts.first() == Some(&"lo") && parts.contains(&"hi")).then_some(before)
}

/// Returns the function that an error is about, as far as its text says.
fn name_in(before: &str, text: &str) -> String {
    let is_name = |word: &&str| {
        !word.is_empty() && word.len() < 64 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    // "No function matches the given name and argument types 'avg(..)'", or "Function 'avg' ..".
    let called = text.split_once("argument types '").and_then(|(_, rest)| rest.split('(').next()).filter(is_name);
    let quoted = called.or_else(|| before.split('\'').skip(1).find(is_name));
    // "The LENGTH function can only ..".
    let named = || before.split(" function").next().filter(|named| named.len() < before.len());
    let named = || named().and_then(|named| named.rsplit(' ').next()).filter(is_name);
    quoted.or_else(named).map_or_else(|| "query".to_owned(), str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use datafusion::common::{exec_datafusion_err, plan_datafusion_err};

    use super::*;

    #[test]
    fn errors_of_ranges_are_told_by_their_types() {
        const TYPE: &str = "Struct(\"lo\": Int64, \"hi\": Int64)";
        for (text, function) in [
            (
                format!("Internal error: Function 'avg' requires Decimal, but received {TYPE}. This was likely a bug"),
                "avg",
            ),
            (format!("No function matches the given name and argument types 'corr({TYPE}, {TYPE})'"), "corr"),
            (format!("The LENGTH function can only accept strings, but got {TYPE}"), "length"),
            (
                format!(
                    "Internal error: no cast from {TYPE}: a bug in DataFusion's code. No function matches the given name and argument \
                     types 'upper({TYPE})'"
                ),
                "upper",
            ),
            (format!("Cannot automatically convert {TYPE} to LargeUtf8"), "query"),
        ] {
            let said = about_range(&plan_datafusion_err!("{text}").context("type_coercion")).unwrap();
            assert_eq!(said.function(), function);
            assert!(said.is_refusal() && said.message().contains("FROM estimated(release)"), "{said}");
        }
        assert!(about_range(&plan_datafusion_err!("Cannot convert Struct(\"a\": Int64) to Utf8, lo, hi")).is_none());
        assert!(about_range(&exec_datafusion_err!("Cannot cast 'flu' to {TYPE}")).is_none());
        assert!(about_range(&range_refused("+", Some("age")).into()).is_none());
    }

    #[tokio::test]
    async fn an_operator_with_one_operand_names_its_column() {
        let context = datafusion::prelude::SessionContext::new();
        context.sql("CREATE TABLE release AS SELECT named_struct('lo', 1, 'hi', 2) AS age, 'x' AS t").await.unwrap();
        for (query, operator) in [("SELECT -age FROM release", "-"), ("SELECT +release.age FROM release", "+")] {
            let said = about_range(&context.sql(query).await.unwrap_err()).unwrap();
            assert_eq!(said.function(), operator);
            assert!(said.message().starts_with("column age is a range") && said.message().contains("age.lo"), "{said}");
        }
        assert!(about_range(&context.sql("SELECT -t FROM release").await.unwrap_err()).is_none());
    }

    #[test]
    fn columns_are_quoted_where_they_must_be() {
        assert!(range_refused("+", Some("Age")).message().contains("\"Age\".lo, \"Age\".hi"));
    }
}
