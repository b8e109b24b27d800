//! Answers from a release: what an aggregate over the original table would be, as far as the release tells.
//!
//! A released row stands for a person who is real with probability `(|g| - c) / |g|` (`c` of the `|g|` rows of its group are
//! counterfeits) and whose quasi-identifiers lie in its intervals, independently of each other: evenly, or as the ends of all
//! intervals do ([`Distribution`]). So the expectation
//! of a sum is a sum over rows of products of shares, one per column (m-invariance, Section 5.2; m-Distinct, Section VI-C1;
//! MuCo, Section 5.3).
//!
//! [`Polynomial`] turns a condition or a value into such products, [`ShareOf`] is the scalar function that gives one share,
//! [`Released`] says what a release's columns are. [`Workload`] measures how accurate the answers are.

mod accuracy;
mod axis;
mod columns;
mod ends;
mod factor;
mod fitted;
mod listing;
mod means;
mod metadata;
mod number;
mod polynomial;
mod prior;
mod raked;
mod raking;
mod scale;
mod share;
mod spread;
mod weight;

pub(crate) use accuracy::{Aggregate, Answer, Collector, ReleaseBatch, Workload};
pub(crate) use axis::Axis;
pub(crate) use columns::{BY_PERSON, Form, OriginalColumn, Released};
pub(crate) use ends::Distribution;
#[cfg(feature = "publication")]
pub(crate) use metadata::ReleaseMetadata;
pub(crate) use polynomial::{Polynomial, Term, Translator};
pub(crate) use prior::Prior;
pub(crate) use raked::Raked;
pub(crate) use scale::Scale;
pub(crate) use share::{Known, ShareOf, ValuesOf};
pub(crate) use weight::WeightOf;

/// Name in errors of estimates.
pub(crate) const ESTIMATE: &str = "estimate";
