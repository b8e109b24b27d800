//! Roles of the columns of a batch.

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};

use super::{Roles, TREE_KEY, Trees};
use crate::error::{Error, Result};

/// Places of the roles in the batches: identifier, quasi-identifiers, sensitive attribute, `within`, others, and
/// those that are kept as they are. Roles may be missing.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Identifier column.
    pub identifier: Option<FieldRef>,
    /// Quasi-identifier columns.
    pub quasi: Vec<FieldRef>,
    /// Sensitive column.
    pub sensitive: Option<FieldRef>,
    /// Column whose values are anonymized independently of each other.
    pub within: Option<FieldRef>,
    /// Columns that travel with the sensitive value.
    pub other: Vec<FieldRef>,
    /// Columns that are kept as they are.
    pub insensitive: Vec<FieldRef>,
}

impl Layout {
    /// Returns the layout of a table with these columns and roles.
    ///
    /// # Errors
    /// When the columns are not those of the roles, in the order of [`Roles::columns`].
    pub fn try_new(schema: &Schema, roles: &Roles) -> Result<Self> {
        if roles.quasi.is_empty() || !roles.columns().eq(schema.fields().iter().map(|field| field.name())) {
            return Err(Error::internal("the columns of the microdata are not those that the roles name"));
        }
        let mut fields = schema.fields().iter().cloned();
        let mut next = |role: bool| if role { fields.next() } else { None };
        let identifier = next(roles.id.is_some());
        let quasi = roles.quasi.iter().filter_map(|_| next(true)).collect();
        let sensitive = next(roles.sensitive.is_some());
        let within = next(roles.within.is_some());
        let other = roles.other.iter().filter_map(|_| next(true)).collect();
        let insensitive = roles.insensitive.iter().filter_map(|_| next(true)).collect();
        Ok(Self { identifier, quasi, sensitive, within, other, insensitive })
    }

    /// Returns the same with the fingerprints of the hierarchies of quasi-identifiers in their metadata.
    #[must_use]
    pub fn with_trees(mut self, trees: &Trees) -> Self {
        for quasi in &mut self.quasi {
            let mut metadata = quasi.metadata().clone();
            metadata.remove(TREE_KEY);
            metadata.extend(trees.get(quasi.name()).map(|tree| (TREE_KEY.to_owned(), tree.clone())));
            *quasi = Arc::new(quasi.as_ref().clone().with_metadata(metadata));
        }
        self
    }

    /// Returns the roles by name.
    pub fn roles(&self) -> Roles {
        let name = |field: &FieldRef| field.name().clone();
        Roles {
            id: self.identifier.as_ref().map(name),
            quasi: self.quasi.iter().map(name).collect(),
            sensitive: self.sensitive.as_ref().map(name),
            within: self.within.as_ref().map(name),
            other: self.other.iter().map(name).collect(),
            insensitive: self.insensitive.iter().map(name).collect(),
        }
    }

    /// Returns the columns in order.
    pub fn fields(&self) -> impl Iterator<Item = &FieldRef> {
        self.identifier.iter().chain(&self.quasi).chain(&self.sensitive).chain(&self.within).chain(self.beside())
    }

    /// Returns the columns that go with a row: those that travel with the sensitive value, or are kept as they are.
    pub fn beside(&self) -> impl Iterator<Item = &FieldRef> {
        self.other.iter().chain(&self.insensitive)
    }
}
