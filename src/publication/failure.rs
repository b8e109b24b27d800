//! Errors of publications: what was being done and why it failed, in one sentence.

use std::error::Error;
use std::fmt::Display;

use datafusion::common::DataFusionError;

use crate::error::{AnonymizeError, ErrorKind, told};

/// Function that errors name.
const FUNCTION: &str = "publication";

/// Returns the error of an INSERT that another one has overtaken.
pub(super) fn overtaken() -> DataFusionError {
    conflict(
        "another INSERT decided a release of this publication since this one was planned; nothing was published: run it again",
    )
}

/// Returns the error of an INSERT during which somebody else has published.
pub(super) fn conflict(message: impl Into<String>) -> DataFusionError {
    AnonymizeError::new(FUNCTION, ErrorKind::Conflict, message).into()
}

pub(super) fn breach(message: impl Into<String>) -> DataFusionError {
    AnonymizeError::new(FUNCTION, ErrorKind::Breach, message).into()
}

/// Converts errors of Delta Lake and the like: they are of files, not of values.
pub(super) fn input_error(error: impl Display) -> DataFusionError {
    AnonymizeError::new(FUNCTION, ErrorKind::Input, error.to_string()).into()
}

/// Returns the error of an ended runtime or a dropped query.
pub(super) fn cancelled() -> DataFusionError {
    AnonymizeError::new(FUNCTION, ErrorKind::Cancelled, "cancelled").into()
}

/// Returns an error that came up while something was done: one sentence that says so, and then why. It is of the kind that the error is of, and
/// that of a store, which speaks of files, is about input and stays with it. What the engine says may name values, and is left out.
pub(super) fn while_doing(doing: impl Display, error: impl Into<DataFusionError>) -> DataFusionError {
    let error = error.into();
    if let Some(own) = AnonymizeError::of(&error) {
        let why = if own.function() == FUNCTION {
            own.message().to_owned()
        } else {
            format!("{}: {}", own.function(), own.message())
        };
        let whole = AnonymizeError::new(FUNCTION, own.kind(), format!("{doing}: {why}"));
        let whole = own.argument().into_iter().fold(whole, AnonymizeError::about);
        return whole.caused_by(own.clone()).into();
    }
    match error.find_root() {
        // Whoever looks for lack of memory finds it.
        DataFusionError::ResourcesExhausted(_) => error.context(format!("{FUNCTION}: {doing}")),
        _ => {
            let whole = AnonymizeError::new(FUNCTION, ErrorKind::Input, format!("{doing}: {}", told(&error)));
            match error {
                DataFusionError::ObjectStore(store) => whole.caused_by(*store).into(),
                _ => whole.into(),
            }
        }
    }
}

/// Returns true if the account that runs this may not do what was tried.
pub(super) fn is_denied(error: &DataFusionError) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        // Delta Lake keeps the words of what was wrong, and drops the rest.
        if kind == Some(std::io::ErrorKind::PermissionDenied) || cause.to_string().contains("Permission denied") {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::error::ArrowError;
    use datafusion::object_store::Error;

    use super::*;
    use crate::error::refusal;

    #[test]
    fn that_an_account_may_not_read_is_told_from_damage() {
        let of =
            |kind: std::io::ErrorKind| Error::Generic { store: "Disk", source: Box::new(std::io::Error::from(kind)) };
        assert!(is_denied(&of(std::io::ErrorKind::PermissionDenied).into()));
        assert!(is_denied(&input_error("no such luck: Permission denied (os error 13)")));
        assert!(!is_denied(&of(std::io::ErrorKind::InvalidData).into()));
    }

    #[test]
    fn one_sentence_says_what_was_done_and_why_it_failed() {
        let store = Error::Generic { store: "Disk", source: "no space left".into() };
        let inner = while_doing("x cannot be written", store);
        let outer = while_doing("nothing was published", inner);
        let own = AnonymizeError::of(&outer).unwrap();
        assert_eq!(
            own.to_string(),
            "publication: nothing was published: x cannot be written: Generic Disk error: no space left"
        );
        assert_eq!(own.kind(), ErrorKind::Input);
        let mut causes = std::iter::successors(std::error::Error::source(&outer), |error| error.source());
        assert!(causes.any(|error| error.is::<Error>()), "the store's error is lost");
        let refused = while_doing("release 1 is public", refusal!("m_invariant", argument "m", "m = 9 is too much"));
        let own = AnonymizeError::of(&refused).unwrap();
        assert!(own.is_refusal() && own.argument() == Some("m"));
        assert_eq!(own.to_string(), "publication: release 1 is public: m_invariant: m = 9 is too much");
        let cast = DataFusionError::from(ArrowError::CastError("Cannot cast string '4711-secret'".to_owned()));
        let hidden = while_doing("release 1 is public", cast);
        assert_eq!(
            AnonymizeError::of(&hidden).unwrap().to_string(),
            "publication: release 1 is public: a cast failed (what it failed on is data, and not shown)"
        );
        assert!(!format!("{hidden:?}").contains("4711"), "{hidden:?}");
        let memory = while_doing("release 1 is public", DataFusionError::ResourcesExhausted("none left".to_owned()));
        assert!(matches!(memory.find_root(), DataFusionError::ResourcesExhausted(_)));
    }
}
