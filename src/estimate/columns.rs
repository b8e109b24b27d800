//! What the columns of a release say about the original ones.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, plan_err};

use super::scale::Scale;
use crate::microdata::{ORDER_KEY, Role};
use crate::release::{COUNTERFEITS, Description, GROUP_SIZE, HI, LO, NODE, NULLS};

/// The method whose rows all stand for somebody, have no groups, and single values.
const PERTURBED: &str = "muco";
/// Methods whose rows all stand for somebody and have no groups, because they are generalized one by one.
const ROW_BY_ROW: [&str; 3] = ["sequential", "sequential_release", "non_sequential"];

/// How a column of the original table is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is (or, perturbed, as if it were).
    Exact,
    /// As an interval that holds the value.
    Interval {
        /// Whether intervals are nodes of hierarchies.
        nodes: bool,
        /// Whether there are numbers of NULLs.
        nulls: bool,
    },
    /// As the values of the row's group and how often each occurs (Anatomy).
    Histogram,
}

/// A column of the original table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginalColumn {
    /// Its name and original type; nullable.
    pub field: FieldRef,
    pub form: Form,
    /// The order of its categories, if the publisher gave one.
    pub order: Option<Vec<String>>,
}

impl OriginalColumn {
    pub(crate) fn name(&self) -> &str {
        self.field.name()
    }

    pub(crate) fn scale(&self) -> Scale {
        Scale::of(self.field.data_type())
    }
}

/// A release as far as estimates need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Released {
    /// Original columns, in the order of the release.
    pub columns: Vec<OriginalColumn>,
    /// Whether rows carry the size of their group and the number of counterfeits in it. Where they do not, every row is a
    /// person.
    pub groups: bool,
    /// The release.
    pub description: Description,
}

impl Released {
    /// Reads the metadata of a release's fields.
    ///
    /// # Errors
    /// When the table does not say that it is a release, is several, or lacks what an estimate needs.
    pub(crate) fn try_new(function: &str, schema: &Schema) -> Result<Self> {
        let described = |field: &&FieldRef| Description::from_metadata(field.metadata()).is_some();
        let Some(description) =
            schema.fields().iter().find(described).and_then(|field| Description::from_metadata(field.metadata()))
        else {
            return plan_err!(
                "{function}: the table does not say that it is a release: its columns lack the metadata that releases have. \
                 It must be a release as it was written, without other tables joined or added to it"
            );
        };
        let mut columns = Vec::new();
        for field in schema.fields() {
            let Some(other) = Description::from_metadata(field.metadata()) else { continue };
            if other.release_id != description.release_id {
                return plan_err!(
                    "{function}: the columns are of different releases; an estimate is about one release"
                );
            }
            let role = field.metadata().get(Role::KEY).and_then(|role| Role::parse(role));
            if matches!(role, Some(Role::Quasi | Role::Sensitive | Role::Within | Role::Other)) {
                columns.push(original(function, field)?);
            }
        }
        if columns.is_empty() {
            return plan_err!(
                "{function}: the table has none of the release's quasi-identifiers and sensitive values; select them, too"
            );
        }
        // What was computed under such a name is not what was released.
        let released = |field: &FieldRef| Description::from_metadata(field.metadata()).is_some();
        let has = |name: &str| schema.fields().iter().any(|field| field.name() == name && released(field));
        let groups = has(GROUP_SIZE) && has(COUNTERFEITS);
        let method = description.method.as_str();
        let perturbed = method == PERTURBED && columns.iter().all(|column| column.form == Form::Exact);
        if !groups && !perturbed && !ROW_BY_ROW.contains(&method) {
            return plan_err!(
                "{function}: the columns {GROUP_SIZE} and {COUNTERFEITS} of the release are missing; without them, \
                 counterfeits would be counted as people: select them, too"
            );
        }
        Ok(Self { columns, groups, description })
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&OriginalColumn> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// The original table's schema.
    pub(crate) fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(|column| FieldRef::clone(&column.field)).collect::<Vec<_>>())
    }
}

fn original(function: &str, field: &FieldRef) -> Result<OriginalColumn> {
    let child = |fields: &datafusion::arrow::datatypes::Fields, name: &str| {
        fields.iter().find(|field| field.name() == name).cloned()
    };
    let (data_type, form) = match field.data_type() {
        DataType::Struct(fields) => match (child(fields, LO), child(fields, HI)) {
            (Some(lo), Some(_)) => {
                let (nodes, nulls) = (child(fields, NODE).is_some(), child(fields, NULLS).is_some());
                (lo.data_type().clone(), Form::Interval { nodes, nulls })
            }
            _ => return plan_err!("{function}: column {} is a struct without {LO} and {HI}", field.name()),
        },
        DataType::List(item) | DataType::LargeList(item) => match item.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => (fields[0].data_type().clone(), Form::Histogram),
            _ => {
                return plan_err!(
                    "{function}: column {} is a list of something else than values and counts",
                    field.name()
                );
            }
        },
        data_type => (data_type.clone(), Form::Exact),
    };
    let order = match field.metadata().get(ORDER_KEY).map(|order| serde_json::from_str(order)) {
        Some(Ok(order)) => Some(order),
        Some(Err(_)) => {
            return plan_err!("{function}: the metadata {ORDER_KEY} of column {} cannot be read", field.name());
        }
        None => None,
    };
    // What the column says of the release is not true of an estimate's table.
    let role = field.metadata().get(Role::KEY).map(|role| (Role::KEY.to_owned(), role.clone()));
    let metadata: HashMap<String, String> = role.into_iter().collect();
    let field = Field::new(field.name(), data_type, true).with_metadata(metadata);
    Ok(OriginalColumn { field: FieldRef::new(field), form, order })
}
