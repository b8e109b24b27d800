//! Microdata: one row per person, as dense codes.
//!
//! A [`MicrodataBuilder`] turns record batches into flat arrays of `u32` codes, one per quasi-identifier and one for the
//! sensitive attribute, each with a sorted [`Domain`] to turn codes back into values. Rows are then put in the order of a
//! keyed hash of their identifiers, so that nothing a method does can depend on the order of arrival.

mod builder;
mod domain;
mod encoder;
mod identifiers;
mod ledger;
mod roles;
mod types;

pub mod census;

pub use builder::{Layout, MicrodataBuilder, ORDER_KEY};
use datafusion::arrow::datatypes::FieldRef;
pub use domain::Domain;
pub use encoder::{ColumnEncoder, Encoded};
pub use identifiers::{HashKey, IdentifierBuilder, Identifiers, People};
pub use ledger::{Ledger, LedgerBuilder};
pub use roles::{Role, Roles};
pub use types::published_type;
pub(crate) use types::{compact_views, held, held_type};

/// A column of microdata: the value of code `c` is `domain.values()[c]`.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Name, type and metadata of the column.
    pub field: FieldRef,
    /// The distinct values.
    pub domain: Domain,
}

/// A table to be published, encoded.
#[derive(Debug)]
pub struct Microdata {
    /// Number of rows.
    pub rows: usize,
    /// Who each row is about.
    pub people: People,
    /// The quasi-identifiers, in the order they were named in.
    pub quasi: Vec<Attribute>,
    /// Codes of the quasi-identifiers, row after row: methods look at all codes of a row at once, and at rows in any order.
    pub quasi_codes: Vec<u32>,
    /// The sensitive attribute.
    pub sensitive: Attribute,
    /// Code of each row's sensitive value.
    pub sensitive_codes: Vec<u32>,
}

impl Microdata {
    /// Codes of a row's quasi-identifiers.
    #[inline]
    pub fn quasi_of(&self, row: u32) -> &[u32] {
        let d = self.quasi.len();
        &self.quasi_codes[row as usize * d..][..d]
    }
}
