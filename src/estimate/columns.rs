//! Descriptions of the original columns by those of a release.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::Result;

use super::metadata::{ReleaseMetadata, ValueMetadata};
use super::scale::Scale;
use crate::error::refusal;
use crate::methods::{AnyMethod, StateKind};
use crate::microdata::{ORDER_KEY, Role, trees_of};
use crate::release::{self, COUNTERFEIT_MARK, COUNTERFEITS, Description, GROUP_ID, GROUP_SIZE, HI, LO, NODE, NULLS};

/// Role of the number of the group.
const GROUP: &str = "group";
/// Advice about rows that were chosen by person.
pub(crate) const BY_PERSON: &str = "an estimate would take away once more the counterfeits that are gone already. Leave the \
                                    condition on the identifier or on counterfeit out, or select the column counterfeit, too, so \
                                    that what is there is counted";

/// Form in which a release has a column of the original table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// The value itself (or, perturbed, a value that looks like it).
    Exact,
    /// An interval that holds the value.
    Interval {
        /// True if intervals are nodes of a hierarchy, or can be.
        nodes: bool,
        /// True if there are numbers of NULLs.
        nulls: bool,
    },
    /// The values of the row's group and their counts (Anatomy).
    Histogram,
}

/// A column of the original table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OriginalColumn {
    /// Its name and original type; nullable.
    pub field: FieldRef,
    pub form: Form,
    /// Metadata of the release.
    pub metadata: ReleaseMetadata,
}

impl OriginalColumn {
    pub(crate) fn name(&self) -> &str {
        self.field.name()
    }

    /// Returns the order of its categories, if the publisher gave one. It must be known by now.
    pub(crate) fn order(&self) -> Option<&Vec<String>> {
        self.metadata.order(self.name())
    }

    pub(crate) fn scale(&self) -> Scale {
        Scale::of(self.field.data_type())
    }

    /// Returns true if its intervals end at values of people. Those of groups do, unless they are nodes of hierarchies.
    pub(crate) fn is_tight(&self) -> bool {
        matches!(self.form, Form::Interval { nodes: false, .. })
    }
}

/// A release as far as estimates need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Released {
    /// Original columns, in the order of the release.
    pub columns: Vec<OriginalColumn>,
    /// True if rows carry their group's size and number of counterfeits. Where they do not, every row is a
    /// person.
    pub groups: bool,
    /// True if rows are in no groups that are told: what they carry is of the whole release, and nobody need be at an end of an interval.
    pub alone: bool,
    /// True if all rows are people: counterfeits have values in lists only.
    pub listed: bool,
    /// True if rows say themselves whether they are counterfeits, as only the publisher's do.
    pub marked: bool,
    /// True if rows have single values of others than their people, and say not which.
    pub perturbed: bool,
    /// The release.
    pub description: Description,
}

impl Released {
    /// Reads the metadata of a release's fields.
    /// Fails when the table does not say that it is a release, is several, or lacks what an estimate needs.
    pub(crate) fn try_new(function: &str, schema: &Schema) -> Result<Self> {
        let described = |field: &&FieldRef| Description::from_metadata(field.metadata()).is_some();
        let Some(description) =
            schema.fields().iter().find(described).and_then(|field| Description::from_metadata(field.metadata()))
        else {
            return Err(refusal!(
                function,
                "the table does not say that it is a release: its columns lack the metadata that releases have. \
                 It must be a release as it was written, without other tables joined or added to it; CSV and JSON cannot carry them, so ask for \
                 the release's Parquet file. A copy of a Parquet file lacks it where files are read without metadata: say SET datafusion.execution.parquet.skip_metadata = \
                 false, declare the table of the file again, and copy it again"
            ));
        };
        let mut columns = Vec::new();
        let mut metadata = ValueMetadata { trees: trees_of(schema.fields()), ..ValueMetadata::default() };
        for field in schema.fields() {
            let Some(other) = Description::from_metadata(field.metadata()) else { continue };
            if other.release_id != description.release_id {
                return Err(refusal!(
                    function,
                    "the columns are of different releases; an estimate is about one release"
                ));
            }
            let role = field.metadata().get(Role::KEY).and_then(|role| Role::parse(role));
            if matches!(role, Some(Role::Quasi | Role::Sensitive | Role::Within | Role::Other | Role::Insensitive)) {
                columns.push(original(function, field)?);
                let order = order(function, field)?;
                metadata.orders.extend(order.map(|order| (field.name().clone(), order)));
            }
        }
        if let Some(trees) = &metadata.trees {
            // The others have ordinary intervals, and no names of nodes.
            for column in &mut columns {
                if let Form::Interval { nodes, .. } = &mut column.form {
                    *nodes &= trees.contains_key(column.field.name());
                }
            }
        }
        let metadata = ReleaseMetadata::known(metadata);
        for column in &mut columns {
            column.metadata = metadata.clone();
        }
        if columns.is_empty() {
            return Err(refusal!(
                function,
                "the table has none of the release's quasi-identifiers and sensitive values; select them, too"
            ));
        }
        // What was computed under such a name is not what was released.
        let released = |field: &FieldRef| Description::from_metadata(field.metadata()).is_some();
        let has = |name: &str| schema.fields().iter().any(|field| field.name() == name && released(field));
        refuse_renamed(function, schema)?;
        let groups = has(GROUP_SIZE) && has(COUNTERFEITS);
        let form = AnyMethod::described(&description).map(|method| method.form());
        // Rows that all stand for somebody have no groups.
        let perturbed = form == Some(release::Form::Perturbed);
        let alone = perturbed || form == Some(release::Form::Rows);
        let in_no_group = !says_ghosts(&description)
            && match form {
                Some(release::Form::Perturbed) => columns.iter().all(|column| column.form == Form::Exact),
                _ => alone,
            };
        if !groups && !in_no_group {
            return Err(refusal!(
                function,
                "the columns {GROUP_SIZE} and {COUNTERFEITS} of the release are missing; without them, \
                 counterfeits would be counted as people: select them, too"
            ));
        }
        let (listed, marked) = (form == Some(release::Form::Anatomy), groups && has(COUNTERFEIT_MARK));
        Ok(Self { columns, groups, alone, listed, marked, perturbed, description })
    }

    /// Returns the same columns in an unopened release of the same publication. It tells of their values by the
    /// metadata that all of them share.
    #[cfg(feature = "publication")]
    pub(crate) fn of_another(&self) -> (Self, ReleaseMetadata) {
        let metadata = ReleaseMetadata::default();
        let with = |column: &OriginalColumn| OriginalColumn { metadata: metadata.clone(), ..column.clone() };
        (Self { columns: self.columns.iter().map(with).collect(), ..self.clone() }, metadata)
    }

    /// Returns the metadata about the values of its columns.
    #[cfg(feature = "publication")]
    pub(crate) fn metadata(&self) -> Option<&ReleaseMetadata> {
        self.columns.first().map(|column| &column.metadata)
    }

    /// Returns true if a column has values that were replaced at random.
    pub(crate) fn is_replaced(&self, name: &str) -> bool {
        let role = |column: &OriginalColumn| {
            column.field.metadata().get(Role::KEY).and_then(|role| Role::parse(role)) == Some(Role::Quasi)
        };
        self.perturbed && self.column(name).is_some_and(role)
    }

    /// Refuses rows that were chosen by person, unless they say what they are.
    ///
    /// # Errors
    /// Then.
    pub(crate) fn refuse_people(&self, function: &str, by_person: bool) -> Result<()> {
        match by_person && !self.marked && !self.listed {
            true => Err(refusal!(
                function,
                argument "release",
                "argument release has rows that were chosen by person; {BY_PERSON}"
            )),
            false => Ok(()),
        }
    }

    /// Returns the column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&OriginalColumn> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// Returns the original table's schema.
    pub(crate) fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(|column| FieldRef::clone(&column.field)).collect::<Vec<_>>())
    }
}

/// Returns true if a release can have people who left, and says how many.
fn says_ghosts(description: &Description) -> bool {
    AnyMethod::described(description)
        .and_then(|method| method.state())
        // Releases of calls have all people once.
        .is_some_and(|state| state.facts().counted && (state != StateKind::Rings || description.number.is_some()))
}

/// Refuses columns of a group that go by another one's name.
fn refuse_renamed(function: &str, schema: &Schema) -> Result<()> {
    for field in schema.fields() {
        let Some(role) = field.metadata().get(Role::KEY) else { continue };
        if Description::from_metadata(field.metadata()).is_none() {
            continue;
        }
        let name = if role == GROUP { GROUP_ID } else { role.as_str() };
        let own = [GROUP_ID, GROUP_SIZE, COUNTERFEITS, COUNTERFEIT_MARK];
        if field.name() != name && (own.contains(&name) || own.contains(&field.name().as_str())) {
            return Err(refusal!(
                function,
                "column {} is the release's {} column, renamed; an estimate needs what a release says of its groups under its \
                 own name: do not rename it, and rename other columns to other names",
                field.name(),
                name
            ));
        }
    }
    Ok(())
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
            _ => return Err(refusal!(function, "column {} is a struct without {LO} and {HI}", field.name())),
        },
        DataType::List(item) | DataType::LargeList(item) => match item.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => (fields[0].data_type().clone(), Form::Histogram),
            _ => {
                return Err(refusal!(
                    function,
                    "column {} is a list of something else than values and counts",
                    field.name()
                ));
            }
        },
        data_type => (data_type.clone(), Form::Exact),
    };
    // What the column says of the release is not true of an estimate's table.
    let role = field.metadata().get(Role::KEY).map(|role| (Role::KEY.to_owned(), role.clone()));
    let metadata: HashMap<String, String> = role.into_iter().collect();
    let field = Field::new(field.name(), data_type, true).with_metadata(metadata);
    Ok(OriginalColumn { field: FieldRef::new(field), form, metadata: ReleaseMetadata::default() })
}

/// Returns the order of a column's categories, if the release says one.
fn order(function: &str, field: &FieldRef) -> Result<Option<Vec<String>>> {
    match field.metadata().get(ORDER_KEY).map(|order| serde_json::from_str(order)) {
        Some(Ok(order)) => Ok(Some(order)),
        Some(Err(_)) => Err(refusal!(function, "the metadata {ORDER_KEY} of column {} cannot be read", field.name())),
        None => Ok(None),
    }
}
