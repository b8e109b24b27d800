//! Cost of publishing a record late, or never.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::share::number;

/// Growth of the cost of publishing late with the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MoveCost {
    /// `c * d` for a distance of `d` snapshots: ten records a day late are as bad as one ten days late.
    #[default]
    Linear,
    /// `c * d^2`: rather many records a little late than a few very late.
    Quadratic,
}

impl MoveCost {
    /// Returns the cost of a distance, in units of the factor.
    pub fn of(self, distance: usize) -> f64 {
        let d = distance as f64;
        match self {
            Self::Linear => d,
            Self::Quadratic => d * d,
        }
    }
}

/// Costs of all distances in a window: zero for none, increasing, and convex (conditions C1 to C3 of the paper).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Costs(Vec<f64>);

impl Costs {
    /// Takes the costs of the distances `0, 1, ..`, one for each snapshot of the window.
    /// Fails when they do not begin with zero, do not grow, or grow more slowly with the distance.
    pub(crate) fn try_new(costs: Vec<f64>) -> Result<Self> {
        let steps: Vec<f64> = costs.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let grow = steps.iter().all(|&step| step > 0.0 && step.is_finite());
        // Rounding of large costs is no concavity.
        let convex = steps.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs());
        match costs.first() == Some(&0.0) && grow && convex {
            true => Ok(Self(costs)),
            false => Err(Error::refused(
                "costs of moving must begin with 0 and grow with the distance, by no less with each further snapshot",
            )),
        }
    }

    /// Returns the cost of a distance inside of the window.
    pub(super) fn of(&self, distance: i64) -> f64 {
        self.0.get(distance as usize).copied().unwrap_or(f64::INFINITY)
    }
}

/// An amount above 0 that can be compared and hashed bit by bit, like parameters.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Cost(f64);

impl Cost {
    /// Returns the value of a parameter of this name.
    ///
    /// # Errors
    /// When it is not above 0, or not finite.
    pub fn try_new(name: &str, value: f64) -> Result<Self> {
        match value > 0.0 && value.is_finite() {
            true => Ok(Self(value)),
            false => Err(Error::refused(format!("{name} must be above 0, for example 2.5, got {value}"))),
        }
    }
}

number!(Cost, "a cost");
