//! The body of a release: what its rows publish instead of their quasi-identifiers.

use super::{Form, Intervals, Perturbed, Worlds};
use crate::error::{Error, Result};

/// Data that the members of the groups publish. Which variant it is says how the method publishes ([`Form`]).
#[derive(Debug)]
pub enum Body {
    /// Each group its intervals, beside each member's sensitive value.
    Grouped {
        /// Least and greatest published code of each group and quasi-identifier.
        intervals: Intervals,
    },
    /// Quasi-identifiers of each person, beside the histogram of the group's sensitive values. Counterfeits have values, and no rows.
    Histogram,
    /// Each member values that were drawn at random, and no group.
    Perturbed(Perturbed),
    /// Each member, which is a group of its own, its own intervals.
    Rows {
        /// Intervals like those of [`Grouped`](Self::Grouped).
        intervals: Intervals,
        /// Worlds of the members to remember, if the next release is to know of them.
        worlds: Option<Worlds>,
        /// Number of members who have left and stay for the sake of others: counterfeits. Nobody may know which they are.
        ghosts: usize,
    },
    /// Nothing of the members but their worlds, for the publisher.
    Worlds(Worlds),
}

impl Body {
    /// Returns a body without members.
    pub fn empty(form: Form) -> Self {
        match form {
            Form::Intervals => Self::Grouped { intervals: Intervals::default() },
            Form::Anatomy => Self::Histogram,
            Form::Perturbed => Self::Perturbed(Perturbed::default()),
            Form::Rows => Self::Rows { intervals: Intervals::default(), worlds: None, ghosts: 0 },
            Form::Worlds => Self::Worlds(Worlds::default()),
        }
    }

    /// Returns the form in which it publishes.
    pub fn form(&self) -> Form {
        match self {
            Self::Grouped { .. } => Form::Intervals,
            Self::Histogram => Form::Anatomy,
            Self::Perturbed(_) => Form::Perturbed,
            Self::Rows { .. } => Form::Rows,
            Self::Worlds(_) => Form::Worlds,
        }
    }

    /// Returns the published intervals, if groups or members have them.
    pub fn intervals(&self) -> Option<&Intervals> {
        match self {
            Self::Grouped { intervals } | Self::Rows { intervals, .. } => Some(intervals),
            Self::Histogram | Self::Perturbed(_) | Self::Worlds(_) => None,
        }
    }

    /// Returns the members who have left and are there for the sake of others.
    pub(super) fn ghosts(&self) -> usize {
        match self {
            Self::Rows { ghosts, .. } => *ghosts,
            _ => 0,
        }
    }

    /// Returns the drawn values, if values are drawn.
    pub fn perturbed(&self) -> Option<&Perturbed> {
        match self {
            Self::Perturbed(perturbed) => Some(perturbed),
            _ => None,
        }
    }

    /// Returns the worlds to remember.
    /// Fails when the release has no worlds, which is a bug of the caller.
    pub(super) fn worlds(&self) -> Result<&Worlds> {
        match self {
            Self::Worlds(worlds) | Self::Rows { worlds: Some(worlds), .. } => Ok(worlds),
            _ => Err(Error::internal("worlds that are not to be remembered")),
        }
    }

    /// Appends what the members of a part of the microdata publish.
    ///
    /// # Errors
    /// When the part is published otherwise, or cannot be one of several, which are bugs.
    pub fn append(&mut self, part: Self) -> Result<()> {
        match (self, part) {
            (Self::Grouped { intervals }, Self::Grouped { intervals: more }) => intervals.append(more),
            (Self::Histogram, Self::Histogram) => {}
            (Self::Perturbed(perturbed), Self::Perturbed(more)) => perturbed.append(more),
            _ => return Err(Error::internal("parts of a release that do not belong together")),
        }
        Ok(())
    }
}
