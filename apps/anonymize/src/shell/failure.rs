//! The text of an error, as the shell prints it.

use datafusion::common::DataFusionError;
use datafusion_anonymize::{AnonymizeError, function_help, internals};

/// Function of errors that are of a statement as a whole.
const QUERY: &str = "query";

/// Returns an error of ours as one sentence, after what was going on; of others what DataFusion says.
pub(crate) fn text(error: &DataFusionError) -> String {
    let Some(own) = AnonymizeError::of(error).cloned().or_else(|| internals::about_range(error)) else {
        return with_our_functions(&without_trees(&error.strip_backtrace()));
    };
    let mut text = String::new();
    let mut next = error;
    loop {
        next = match next {
            DataFusionError::Context(what, below) => {
                // The engine's own contexts are names of its rules.
                if what.contains(": ") {
                    text += &format!("{what}{}", if what.contains('\n') { "\n" } else { ": " });
                }
                below
            }
            DataFusionError::Diagnostic(_, below) => below,
            DataFusionError::Shared(below) => below,
            _ if own.function() == QUERY => return format!("{text}{}", with_cure(own.message())),
            _ => return format!("{text}{own}"),
        }
    }
}

/// Adds how to find the value that failed, which is not shown.
fn with_cure(message: &str) -> String {
    match message.starts_with("a cast failed") {
        true => format!("{message}; find the rows with WHERE column IS NOT NULL AND try_cast(column AS type) IS NULL"),
        false => message.to_owned(),
    }
}

/// Removes the tree by which DataFusion prints a setting that is an expression. An example is a day without quotes.
fn without_trees(text: &str) -> String {
    const TREE: &str = "Unsupported expr ";
    match text.split_once(TREE) {
        Some((before, _)) => {
            format!("{before}the value of a setting is a number, or a text in quotes: SET name = '..'")
        }
        None => text.to_owned(),
    }
}

/// Adds our functions, as DataFusion offers others that sound like functions that return a table.
fn with_our_functions(text: &str) -> String {
    const UNKNOWN: &str = "Invalid function '";
    let Some((before, rest)) = text.split_once(UNKNOWN) else { return text.to_owned() };
    match rest.split_once('\'') {
        Some((name, _)) if function_help(name).is_ok() => {
            let name = name.to_lowercase();
            format!("{before}{name}(..) returns a table: write SELECT * FROM {name}(..); \\h {name} explains it")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::plan_datafusion_err;
    use datafusion::prelude::SessionContext;
    use datafusion_anonymize::hide_values;

    use super::*;

    #[tokio::test]
    async fn ours_are_sentences() {
        let context = SessionContext::new();
        datafusion_anonymize::register_all(&context).unwrap();
        let error = context.sql("SELECT * FROM census(0 - 1)").await.unwrap_err();
        assert_eq!(text(&error), "census: argument rows must be at least 0, got -1");
        let error = error.context("type_coercion").context("a.sql: statement 2 (line 3)");
        assert_eq!(text(&error), "a.sql: statement 2 (line 3): census: argument rows must be at least 0, got -1");
    }

    #[tokio::test]
    async fn tables_are_no_values() {
        let context = SessionContext::new();
        datafusion_anonymize::register_all(&context).unwrap();
        let error = context.sql("SELECT Mondrian('a.parquet', 3)").await.unwrap_err();
        assert!(
            text(&error).contains("mondrian(..) returns a table: write SELECT * FROM mondrian(..)"),
            "{}",
            text(&error)
        );
        let error = context.sql("SELECT medan(3)").await.unwrap_err();
        assert!(text(&error).contains("Invalid function 'medan'"), "{}", text(&error));
    }

    #[tokio::test]
    async fn settings_are_not_printed_as_trees() {
        let context = SessionContext::new();
        let error = context.sql("SET datafusion.execution.time_zone = 2026-03-01").await.unwrap_err();
        assert!(text(&error).ends_with("a text in quotes: SET name = '..'"), "{}", text(&error));
    }

    #[tokio::test]
    async fn rows_of_files_are_not_printed() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("t.csv");
        std::fs::write(&file, "id,name\n1,Smith\nx7,Miller\n").unwrap();
        let context = SessionContext::new();
        let declared = format!(
            "CREATE EXTERNAL TABLE t (id INT, name VARCHAR) STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true')",
            file.display()
        );
        context.sql(&declared).await.unwrap().collect().await.unwrap();
        let error = context.sql("SELECT * FROM t").await.unwrap().collect().await.unwrap_err();
        assert!(error.to_string().contains("Miller"), "{error}");
        let shown = text(&hide_values(error));
        assert!(shown.contains("has a value that is not of its column's type at line 3, column 1"), "{shown}");
        assert!(!shown.contains("Miller") && !shown.contains("x7"), "{shown}");
        for (name, kind) in [("times", "TIMESTAMP"), ("amounts", "DECIMAL(5, 2)")] {
            let declared =
                declared.replace("TABLE t (id INT, name VARCHAR)", &format!("TABLE {name} (id VARCHAR, name {kind})"));
            context.sql(&declared).await.unwrap().collect().await.unwrap();
            let read = context.sql(&format!("SELECT * FROM {name}")).await.unwrap().collect().await;
            let shown = text(&hide_values(read.unwrap_err()));
            assert!(!shown.contains("Smith") && !shown.contains("x7"), "{shown}");
        }
    }

    #[test]
    fn others_are_as_the_engine_says() {
        let error = plan_datafusion_err!("no such thing").context("a.sql: statement 2 (line 3)");
        assert_eq!(text(&error), error.strip_backtrace());
    }
}
