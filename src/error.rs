//! Errors of everything below the SQL layer.
//!
//! Messages carry names of columns, counts and limits, never values or identifiers of the microdata:
//! they end up in logs that more people read than may read the data.

use std::fmt;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

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

    /// As DataFusion's error, naming the function that was called.
    pub fn in_function(self, function: &str) -> DataFusionError {
        match self {
            Self::Refused(message) => DataFusionError::Execution(format!("{function}: {message}")),
            Self::Internal(message) => DataFusionError::Internal(format!("{function}: {message}")),
            Self::Cancelled => DataFusionError::Execution(format!("{function}: cancelled")),
            Self::Engine(error) => error.context(function.to_owned()),
        }
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
