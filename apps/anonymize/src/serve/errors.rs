//! Errors as PostgreSQL's: a code, a sentence and a hint; and what nobody elsewhere should read left out of them.

use std::borrow::Cow;
use std::time::Duration;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion_anonymize::{AnonymizeError, ErrorKind, hide_values};
use pgwire::error::{ErrorInfo, PgWireError};
use serde::{Deserialize, Serialize};

/// An error on its way to a reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    code: Cow<'static, str>,
    message: String,
    hint: Option<String>,
    fatal: bool,
}

impl Failure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), message: message.into(), hint: None, fatal: false }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes the error one that ends the session.
    pub(super) fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// Returns the error of a timeout; `own` if it was the reader who allowed so little time.
    pub(super) fn timeout(allowed: Duration, own: bool) -> Self {
        let failure = Self::new("57014", format!("the statement took longer than {allowed:?}"));
        failure.hint(match own {
            true => "Ask for less, or SET statement_timeout to more",
            false => "Ask for less, or whoever runs the server gives statements more time with --statement-timeout",
        })
    }

    pub(super) fn memory() -> Self {
        Self::new("53200", "the statement needs more memory than it may use")
            .hint("Group by fewer values or ask for fewer columns; --statement-memory gives it more")
    }

    pub(super) fn cancelled() -> Self {
        Self::new("57014", "the statement was cancelled")
    }

    pub(super) fn shutdown() -> Self {
        Self::new("57P01", "the server is being stopped").fatal()
    }

    pub(super) fn internal() -> Self {
        Self::new("XX000", "the statement failed in a way that was not foreseen (a bug; please report the statement)")
    }
}

impl From<Failure> for ErrorInfo {
    fn from(failure: Failure) -> Self {
        let severity = if failure.fatal { "FATAL" } else { "ERROR" };
        let mut info = Self::new(severity.to_owned(), failure.code.into_owned(), failure.message);
        info.severity_nonlocalized = Some(severity.to_owned());
        info.hint = failure.hint;
        info
    }
}

impl From<Failure> for PgWireError {
    fn from(failure: Failure) -> Self {
        Self::UserError(Box::new(failure.into()))
    }
}

/// Sets what stands in the place of a path.
const PATH: &str = "..";

/// Returns the text without paths and URLs. Also those that the reader has written are left out: an error that shows some of them, or
/// shows them in another way, tells which of them are right.
fn without_paths(text: &str) -> String {
    let ends = |letter: char| letter.is_whitespace() || "'\"`(),;".contains(letter);
    let pieces = text.split_inclusive(ends).map(|piece| {
        let end =
            piece.char_indices().next_back().filter(|(_, letter)| ends(*letter)).map_or(piece.len(), |(end, _)| end);
        let (word, end) = piece.split_at(end);
        if word.len() > 1 && word.contains(['/', '\\']) { format!("{PATH}{end}") } else { piece.to_owned() }
    });
    pieces.collect()
}

pub(super) fn failure(error: DataFusionError) -> Failure {
    let failure = match AnonymizeError::of(&error) {
        Some(own) => of_ours(own),
        None => of_the_engine(error),
    };
    Failure { message: without_paths(&failure.message), hint: failure.hint.map(|hint| without_paths(&hint)), ..failure }
}

/// Converts an error of ours: the message, and behind a semicolon the hint.
fn of_ours(error: &AnonymizeError) -> Failure {
    let code = match error.kind() {
        ErrorKind::Cancelled => return Failure::cancelled(),
        ErrorKind::Input => {
            // What a store says has names of files; whoever runs the server finds it in the log.
            return Failure::new("58030", format!("{}: what was released cannot be read", error.function()));
        }
        ErrorKind::Breach => "XX000",
        _ if error.argument().is_some() => "22023",
        _ => "0A000",
    };
    let (message, hint) = match error.message().split_once("; ") {
        Some((message, hint)) => (message, Some(capitalized(hint))),
        None => (error.message(), None),
    };
    Failure { hint, ..Failure::new(code, format!("{}: {message}", error.function())) }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

fn of_the_engine(error: DataFusionError) -> Failure {
    let code = match error.find_root() {
        DataFusionError::SQL(..) => "42601",
        DataFusionError::SchemaError(kind, _) => match kind.as_ref() {
            SchemaError::AmbiguousReference { .. } => "42702",
            _ => "42703",
        },
        DataFusionError::Plan(text) if text.starts_with("table '") => "42P01",
        DataFusionError::Plan(text) if text.contains("nvalid function '") => "42883",
        DataFusionError::Plan(_) => "42000",
        DataFusionError::NotImplemented(_) => "0A000",
        DataFusionError::ResourcesExhausted(_) => return Failure::memory(),
        DataFusionError::Execution(text) if text.starts_with("Scalar subquery returned more than one row") => {
            return Failure::new("21000", "a subquery that stands for a value returned more than one row")
                .hint("Aggregate it, as (SELECT max(a) FROM ..), or compare with IN (SELECT ..)");
        }
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::DivideByZero => "22012",
            ArrowError::ArithmeticOverflow(_) => "22003",
            ArrowError::CastError(_) | ArrowError::ParseError(_) => "22P02",
            _ => "XX000",
        },
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) | DataFusionError::ParquetError(_) => {
            return Failure::new("58030", "what was released cannot be read");
        }
        _ => "XX000",
    };
    let told = hide_values(error);
    let message = match AnonymizeError::of(&told) {
        Some(own) => own.message().to_owned(),
        None => told.strip_backtrace(),
    };
    in_our_words(Failure::new(code, ""), &message)
}

/// Shortens a message of the engine: its beginning goes, and its suggestion becomes a hint.
fn in_our_words(failure: Failure, text: &str) -> Failure {
    let mut text = text.rsplit("\ncaused by\n").next().unwrap_or_default();
    for before in ["Error during planning: ", "Schema error: ", "SQL error: ", "This feature is not implemented: "] {
        text = text.strip_prefix(before).unwrap_or(text);
    }
    let text = text.replace("publications.public.", "");
    let places = ["\nDid you mean", " Did you mean", ". No function matches", "\nValid fields", "\n"];
    let Some(place) = places.iter().filter_map(|words| text.find(words)).min() else {
        return Failure { message: text, ..failure };
    };
    // All columns of all tables are of no help.
    let suggested = text[place..].split("Valid fields").next().unwrap_or_default();
    let hint: Vec<&str> = suggested.trim_start_matches('.').split_whitespace().collect();
    let message = text[..place].trim_end_matches('.').to_owned();
    Failure { message, hint: (!hint.is_empty()).then(|| hint.join(" ")), ..failure }
}

#[cfg(test)]
mod tests {
    use datafusion::common::{exec_datafusion_err, plan_datafusion_err};

    use super::*;

    #[test]
    fn places_are_not_told() {
        let error =
            plan_datafusion_err!("no file:///srv/lake/hospital/_delta_log, no '/srv/my lake/x', no srv/lake/y; a / b");
        let failed = failure(error);
        assert_eq!(failed.message, "no .., no '.. ..', no ..; a / b");
        assert_eq!(failed.code, "42000");
    }

    #[test]
    fn the_engines_words() {
        let of = |text: &str| failure(DataFusionError::Plan(text.to_owned()));
        let missing = of("table 'publications.public.a' not found");
        assert_eq!((missing.code(), missing.message.as_str()), ("42P01", "table 'a' not found"));
        let function = of("Invalid function 'summ'.\nDid you mean 'sum'?");
        assert_eq!((function.code(), function.message.as_str()), ("42883", "Invalid function 'summ'"));
        assert_eq!(function.hint.as_deref(), Some("Did you mean 'sum'?"));
    }

    #[test]
    fn a_value_of_several_rows() {
        let failed = failure(exec_datafusion_err!("Scalar subquery returned more than one row"));
        assert_eq!(failed.code(), "21000");
        assert!(failed.message.contains("more than one row"), "{}", failed.message);
    }

    #[test]
    fn values_are_not_told() {
        let failed = failure(exec_datafusion_err!("cannot cast 'dyspepsia'"));
        assert!(!failed.message.contains("dyspepsia"), "{}", failed.message);
        let error = DataFusionError::ArrowError(Box::new(ArrowError::CastError("'dyspepsia'".to_owned())), None);
        let failed = failure(error);
        assert!(!failed.message.contains("dyspepsia"), "{}", failed.message);
        assert_eq!(failed.code, "22P02");
    }
}
