//! Errors of everything below the SQL layer.
//!
//! Messages carry names of columns, counts and limits, never values or identifiers of the microdata:
//! they end up in logs that more people read than may read the data.

mod values;

use std::fmt;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

pub(crate) use values::{planning_without_values, unreadable, without_values};

/// Result with the crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not published.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The data or the parameters do not allow a safe release. The text says what is wrong and what would do.
    Refused(String),
    /// A release failed the check of its own guarantee, or another invariant broke. A bug; nothing was released.
    Internal(String),
    /// The query was cancelled.
    Cancelled,
    /// Arrow or DataFusion failed underneath.
    Engine(Box<DataFusionError>),
}

impl Error {
    /// A refusal with a message for the user.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// A broken invariant.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    /// As DataFusion's error, naming the function that was called. What the engine says about values stays out of it.
    pub fn in_function(self, function: &str) -> DataFusionError {
        let failure = |kind, message: String| DataFusionError::from(Failure::new(function, kind, message));
        match self {
            Self::Refused(message) => failure(FailureKind::Refused, message),
            Self::Internal(message) => failure(FailureKind::Internal, message),
            Self::Cancelled => failure(FailureKind::Cancelled, "cancelled".to_owned()),
            Self::Engine(error) => without_values(*error, function, "what it was asked to compute", None),
        }
    }
}

/// Why a function failed, on its way through DataFusion: a [`DataFusionError::External`]. Its text has names of columns and files,
/// counts and limits, and no values of the data; that is why operators that read from others let it pass, and hide what other
/// errors say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    function: String,
    kind: FailureKind,
    message: String,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The data or the parameters do not allow a safe result.
    Refused,
    /// A broken invariant: a bug. Nothing was released.
    Internal,
    /// The query was cancelled.
    Cancelled,
    /// What is read failed: a cast, a file. The values it failed on are left out.
    Input,
}

impl Failure {
    pub(crate) fn new(function: &str, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { function: function.to_owned(), kind, message: message.into() }
    }

    /// The failure that an error of DataFusion is about, however often it was wrapped.
    pub fn of(error: &DataFusionError) -> Option<&Self> {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(failure) = error.downcast_ref::<Self>() {
                return Some(failure);
            }
            next = error.source();
        }
        None
    }

    /// Name of the function that was called.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// What is wrong, and what would do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.function, self.message)?;
        match self.kind {
            FailureKind::Internal => {
                f.write_str(" (a bug of datafusion-anonymize; no row has left it. Please report it)")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for DataFusionError {
    fn from(failure: Failure) -> Self {
        Self::External(Box::new(failure))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(message) | Self::Internal(message) => f.write_str(message),
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

/// `12,345` instead of `12345`, for the counts in messages.
pub(crate) fn thousands(n: usize) -> String {
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
