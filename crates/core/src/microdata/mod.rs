//! Microdata: one row per person, as dense codes.
//!
//! A [`MicrodataBuilder`] turns record batches into flat arrays of codes, one for all quasi-identifiers and one for the
//! sensitive attribute. Every attribute has a sorted [`Domain`] to turn codes back into values. Rows are then put in the order of a
//! keyed hash of their identifiers (of their codes, where there are none), so that nothing a method does can depend on the
//! order of arrival.

mod builder;
mod cell;
mod codes;
mod commitments;
mod composite;
mod distance;
mod domain;
mod encoder;
mod hash_order;
mod hierarchies;
mod hierarchy;
mod identifiers;
mod layout;
mod loss;
mod near_numbers;
mod nulls;
mod order;
mod place;
mod roles;
mod row_codes;
mod row_hashes;
mod shuffle;
mod strata;
mod text_order;
mod types;
mod updates;

pub mod census;

use datafusion::arrow::datatypes::FieldRef;
use rayon::prelude::*;

pub use builder::MicrodataBuilder;
pub use builder::{EncodedColumns, OfGhosts};
pub use builder::{null_identifiers, one_row_each, repeated_identifiers};
pub use cell::{MOST_CELLS, cells_of};
pub use codes::{Code, Codes, of_width};
pub use commitments::{Commitments, PARTNERS_NAME, name_of, partners_commitment, quasi_name_of};
pub use commitments::{commitments, keyed_number};
pub use composite::{EACH_KEY, PARTS_KEY, Several, can_be_part, compose, field_of_parts, is_of_each};
pub use composite::{name_of_parts, part, parts_of, parts_of_name};
pub use distance::Distance;
pub use domain::Domain;
pub use encoder::given_order;
pub use encoder::{ColumnEncoder, Encoded, ORDER_KEY, Order};
pub use hash_order::Hashed;
pub use hierarchies::{ATTRIBUTE, Hierarchies, LEAF, LEVEL, Paths, TREE_KEY, Trees, trees_of};
pub use hierarchy::Hierarchy;
pub use identifiers::{Among, HashKey, IdentifierBuilder, Identifiers, People, salts};
pub use layout::Layout;
pub use loss::{Loss, LossBuilder};
pub use place::{PlaceCut, PlaceRouter, PlaceTree};
pub use roles::{Role, Roles};
pub use row_codes::{RowCodes, copied_rows};
pub use row_hashes::RowHashes;
pub use shuffle::{shuffle, shuffle_each};
pub use text_order::TextOrder;
pub use types::{compact_views, held, held_type};
pub use types::{is_continuous, published_type, sql_type};
pub use updates::Updates;
pub(crate) use updates::UpdatesBuilder;

use crate::error::{Error, Result};

/// A column of microdata: the value of code `c` is `domain.values()[c]`.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Name, type and metadata of the column.
    pub field: FieldRef,
    /// The distinct values, and with a hierarchy all of its leaves.
    pub domain: Domain,
    /// Hierarchy along which values generalize. Without one, to intervals.
    pub hierarchy: Option<std::sync::Arc<Hierarchy>>,
}

/// Returns so many items of no value, made on all cores: the system takes longer to give memory than a core to fill it.
pub fn room<T: Default + Send>(items: usize) -> Vec<T> {
    (0..items).into_par_iter().with_min_len(1 << 14).map(|_| T::default()).collect()
}

impl Attribute {
    /// Returns the smallest published value that holds the codes from `lo` to `hi`: a node of the hierarchy, else the interval.
    #[inline]
    pub fn closure(&self, [lo, hi]: [u32; 2]) -> [u32; 2] {
        self.hierarchy.as_ref().map_or([lo, hi], |hierarchy| hierarchy.closure(lo, hi))
    }
}

/// A table to be published, encoded.
#[derive(Debug)]
pub struct Microdata {
    /// Number of rows.
    pub rows: usize,
    /// Identifier of each row, if there is one.
    pub people: Option<People>,
    /// The quasi-identifiers, in the order they were named in.
    pub quasi: Vec<Attribute>,
    /// Codes of the quasi-identifiers.
    pub quasi_codes: RowCodes,
    /// The sensitive attribute; a method that needs none may have none.
    pub sensitive: Option<Attribute>,
    /// Code of each row's sensitive value; empty without the attribute.
    pub sensitive_codes: Codes,
    /// The column within whose values rows are anonymized alone, and each row's code.
    pub within: Option<(Attribute, Vec<u32>)>,
    /// Attributes that travel with the sensitive value.
    pub other: Vec<Attribute>,
    /// Their codes, row after row.
    pub other_codes: Vec<u32>,
    /// Update relation of the sensitive values, if the publisher gives one.
    pub updates: Option<std::sync::Arc<Updates>>,
}

impl Microdata {
    /// Returns the codes of a row's quasi-identifiers.
    #[inline]
    pub fn quasi_of(&self, row: u32) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        self.quasi_codes.of(row)
    }

    /// Returns a row's code in a quasi-identifier, by its place.
    #[inline]
    pub fn quasi_at(&self, row: u32, j: usize) -> u32 {
        self.quasi_codes.at(row, j)
    }

    /// Returns the greatest code that a quasi-identifier can have.
    pub fn greatest_code(&self) -> u32 {
        let values = self.quasi.iter().map(|attribute| attribute.domain.len()).max();
        values.map_or(0, |values| values.saturating_sub(1) as u32)
    }

    /// Returns the codes of the sensitive values of some rows; none without the attribute.
    pub fn sensitive_of(&self, rows: &[u32]) -> Vec<u32> {
        if self.sensitive_codes.is_empty() {
            return Vec::new();
        }
        rows.par_iter().map(|&row| self.sensitive_codes.at(row)).collect()
    }

    /// Returns the codes of a row's attributes that travel with the sensitive value.
    #[inline]
    pub fn other_of(&self, row: u32) -> &[u32] {
        let d = self.other.len();
        &self.other_codes[row as usize * d..][..d]
    }

    /// Returns true if these are published values of the quasi-identifiers, one each: intervals, and nodes where there is a hierarchy.
    pub fn can_publish(&self, intervals: &[[u32; 2]]) -> bool {
        let mut published = self.quasi.iter().zip(intervals);
        published.all(|(attribute, &[lo, hi])| lo <= hi && attribute.closure([lo, hi]) == [lo, hi])
    }

    /// Returns the sensitive attribute of a method that needs one.
    ///
    /// # Errors
    /// When there is none, which planning should have refused.
    pub fn sensitive(&self) -> Result<&Attribute> {
        self.sensitive.as_ref().ok_or_else(|| Error::internal("no sensitive attribute"))
    }
}
