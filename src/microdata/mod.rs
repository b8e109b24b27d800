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
pub use identifiers::{HashKey, IdentifierBuilder, Identifiers};
pub use ledger::{Ledger, LedgerBuilder};
pub use roles::{Role, Roles};
pub use types::published_type;

/// One column as codes: row `i` has the value `domain.values()[codes[i]]`.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Name, type and metadata of the column.
    pub field: FieldRef,
    /// One code per row.
    pub codes: Vec<u32>,
    /// The distinct values.
    pub domain: Domain,
}

/// A table to be published, encoded. All columns have [`rows`](Self::rows) rows in the same order.
#[derive(Debug)]
pub struct Microdata {
    /// Number of rows.
    pub rows: usize,
    /// Who each row is about; `identifiers.order()` lists the places of arrival of rows 0, 1, 2, ...
    pub identifiers: Identifiers,
    /// The quasi-identifiers, in the order they were named in.
    pub quasi: Vec<Attribute>,
    /// The sensitive attribute.
    pub sensitive: Attribute,
}
