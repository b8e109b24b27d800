//! Errors, encoded tables and releases: the core that the crates of `datafusion-anonymize` share.
//!
//! Not an API: it changes with every version. Depend on [`datafusion-anonymize`](https://crates.io/crates/datafusion-anonymize).
//!
//! | module | |
//! |---|---|
//! | [`release`] | groups, what they publish, the public and the private view |
//! | [`microdata`] | Arrow columns to dense codes and back; identifiers, hierarchies; information loss |
//! | [`error`] | refusals, conflicts and broken invariants |

#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used)]

pub mod error;
pub mod microdata;
pub mod release;
