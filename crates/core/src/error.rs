//! Errors of everything below the SQL layer.
//!
//! Messages carry names of columns, counts and limits, never values or identifiers of the microdata:
//! they end up in logs that more people read than may read the data.

mod cures;
mod ranges;
mod statement_casts;
mod values;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use serde::{Deserialize, Serialize};

pub use cures::Refusal;
pub use cures::{Asked, Cures};
pub use ranges::{about_range, range_refused};
pub use statement_casts::with_casts_of;
pub use values::hide_values;
pub use values::{failed_cast, is_conversion, planning_without_values, spilled, told, unreadable, without_values};

/// Result with the crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of the plain functions of this crate. In SQL it becomes an [`AnonymizeError`] that names the function.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The data or the parameters do not allow a safe release. The text says what is wrong and what would do.
    Refused(Refusal),
    /// A release failed the check of its own guarantee, or another invariant broke. A bug; nothing was released.
    Internal(String),
    /// The query was cancelled.
    Cancelled,
    /// Arrow or DataFusion failed underneath.
    Engine(Box<DataFusionError>),
}

impl Error {
    /// Returns a refusal with a message for the user.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(Refusal::new(message.into()))
    }

    /// Returns a refusal whose cures depend on where the method was asked.
    #[doc(hidden)]
    pub fn unfit(message: String, cures: Cures) -> Self {
        Self::Refused(Refusal::with(message, cures))
    }

    /// Returns the error in the words of the place where the method was called.
    #[must_use]
    #[doc(hidden)]
    pub fn said(self, asked: Asked) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(refusal.said(asked)),
            other => other,
        }
    }

    /// Returns a broken invariant.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    /// Converts the error into DataFusion's, with the name of the function that was called. What the engine says about values stays out of it.
    pub fn in_function(self, function: &str) -> DataFusionError {
        let error = |kind, message: String| DataFusionError::from(AnonymizeError::new(function, kind, message));
        match self {
            Self::Refused(refusal) => error(ErrorKind::Refused, refusal.to_string()),
            Self::Internal(message) => error(ErrorKind::Breach, message),
            Self::Cancelled => error(ErrorKind::Cancelled, "cancelled".to_owned()),
            Self::Engine(error) => without_values(*error, function, "what it was asked to compute", None),
        }
    }
}

/// Failure of a function of this crate, on its way through DataFusion. It is inside a
/// [`DataFusionError::External`], and [`of`](Self::of) finds it there. Its text has names of columns and files,
/// counts and limits, and no values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnonymizeError {
    function: String,
    argument: Option<String>,
    kind: ErrorKind,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call, the data or the parameters do not allow a safe result. The same call fails again; the text says what would do.
    Refused,
    /// Somebody else has published in the meantime. Nothing was published; run the same statement again.
    Conflict,
    /// A broken invariant: a bug of this crate. No row has left it.
    Breach,
    /// The query was cancelled.
    Cancelled,
    /// A failure of the input: a cast, a file, a store. The values it failed on are left out.
    Input,
}

impl ErrorKind {
    fn remark(self) -> &'static str {
        match self {
            Self::Breach => " (a bug of datafusion-anonymize; no row has left it. Please report it)",
            _ => "",
        }
    }
}

impl AnonymizeError {
    #[doc(hidden)]
    pub fn new(function: &str, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { function: function.to_owned(), argument: None, kind, message: message.into(), source: None }
    }

    /// Returns the error about an argument of the function.
    #[must_use]
    #[doc(hidden)]
    pub fn about(mut self, argument: &str) -> Self {
        self.argument = Some(argument.to_owned());
        self
    }

    /// Returns the error with what caused it, which must be free of values.
    #[must_use]
    #[doc(hidden)]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Returns the error of this type that an error of DataFusion wraps, at any depth.
    pub fn of(error: &DataFusionError) -> Option<&Self> {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Returns the error as plain data, without what caused it: errors of workers travel so.
    #[doc(hidden)]
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&(&self.function, &self.argument, self.kind, &self.message))
    }

    /// Returns the error that was [`to_json`](Self::to_json).
    #[doc(hidden)]
    pub fn from_json(text: &str) -> Option<Self> {
        let (function, argument, kind, message) = serde_json::from_str(text).ok()?;
        Some(Self { function, argument, kind, message, source: None })
    }

    /// Returns the name of the SQL function that was called; of publications, `publication`.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Returns the argument or option that is wrong, if it is one.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message: what is wrong, and what to write instead.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns true if no safe result exists for the call, the data or the parameters. The same call fails again.
    pub fn is_refusal(&self) -> bool {
        self.kind == ErrorKind::Refused
    }

    /// Returns true if somebody else has published in the meantime. The same statement can be run again.
    pub fn is_conflict(&self) -> bool {
        self.kind == ErrorKind::Conflict
    }

    /// Returns true if an invariant of this crate is broken: a bug. No row has left it.
    pub fn is_breach(&self) -> bool {
        self.kind == ErrorKind::Breach
    }
}

impl fmt::Display for AnonymizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, kind, message, .. } = self;
        write!(f, "{function}: {message}{}", kind.remark())
    }
}

impl std::error::Error for AnonymizeError {
    /// Returns the cause itself, which a derived implementation hides: to it the `Arc` is the error.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<AnonymizeError> for DataFusionError {
    fn from(error: AnonymizeError) -> Self {
        Self::External(Box::new(error))
    }
}

/// A refusal by a function, as an error of DataFusion: `refusal!("mondrian", "k = {k} is ..")`; of an argument,
/// `refusal!("mondrian", argument "k", "..")`.
#[macro_export]
#[doc(hidden)]
macro_rules! refusal {
    ($function:expr, argument $argument:expr, $($text:tt)+) => {
        ::datafusion::error::DataFusionError::from(
            $crate::error::AnonymizeError::new(&$function, $crate::error::ErrorKind::Refused, format!($($text)+)).about(&$argument),
        )
    };
    ($function:expr, $($text:tt)+) => {
        ::datafusion::error::DataFusionError::from(
            $crate::error::AnonymizeError::new(&$function, $crate::error::ErrorKind::Refused, format!($($text)+)),
        )
    };
}
#[doc(hidden)]
pub use refusal;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Internal(message) => f.write_str(message),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Self::Engine(Box::new(error))
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::Engine(Box::new(error.into()))
    }
}

/// Formats a count for messages: `12,345` instead of `12345`.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
