//! Numbers from 0 to 1 as parameters of methods.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Implements what parameters have, for a number in a tuple with `try_new`: compared and hashed bit by bit.
macro_rules! number {
    ($name:ident, $what:literal) => {
        impl $name {
            /// Returns the number.
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = Error;

            fn try_from(value: f64) -> Result<Self> {
                Self::try_new($what, value)
            }
        }

        impl From<$name> for f64 {
            fn from(number: $name) -> Self {
                number.0
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.to_bits() == other.0.to_bits()
            }
        }

        impl Eq for $name {}

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.to_bits().hash(state);
            }
        }
    };
}
pub(crate) use number;

number!(Share, "a share");

/// A number from 0 to 1 that can be compared and hashed bit by bit.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

impl Share {
    /// Returns the value of a parameter of this name.
    ///
    /// # Errors
    /// When it is not between 0 and 1.
    pub fn try_new(name: &str, value: f64) -> Result<Self> {
        match (0.0..=1.0).contains(&value) {
            true => Ok(Self(value)),
            false => Err(Error::refused(format!("{name} must be between 0 and 1, got {value}"))),
        }
    }
}
