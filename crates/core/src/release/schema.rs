//! The columns of a released table.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use serde::{Deserialize, Serialize};

use super::Description;
use crate::microdata::{EACH_KEY, Layout, ORDER_KEY, Role, TREE_KEY, is_continuous, is_of_each, parts_of};

/// Audience of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum View {
    /// The world: intervals, sensitive values, group numbers and sizes, numbers of counterfeits.
    Public,
    /// The publisher: the identifier (NULL for counterfeits) in front; the counterfeit mark behind, for m-invariance and
    /// m-Distinct the group's signature, and for the latter the place of the row in it.
    Private,
}

/// Form in which a method publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Form {
    /// Quasi-identifiers generalized to the intervals of the group, beside each row's sensitive value.
    Intervals,
    /// Quasi-identifiers as they are, beside the sensitive values of the group.
    Anatomy,
    /// Rows that look like those of the table: single values, some of them replaced at random, and no groups.
    Perturbed,
    /// Every row generalized on its own, to intervals; no groups.
    Rows,
    /// Not rows of people, but what is to be remembered of them: identifier, partners and commitments.
    Worlds,
}

impl Form {
    /// Returns true if releases have columns of groups.
    pub fn has_groups(self) -> bool {
        !matches!(self, Self::Perturbed | Self::Rows)
    }
}

/// Shape of a released table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Audience of the table.
    pub view: View,
    /// Form in which the method publishes.
    pub form: Form,
    /// True if the private view has the sensitive values of each row's group: for methods whose later releases need them.
    pub signatures: bool,
    /// True if it also has the place of each row's own value among them.
    pub labels: bool,
    /// True if it also has the number of each row's ring. A ring is the same in all releases.
    pub rings: bool,
    /// True if intervals have the names of hierarchies' nodes beside their ends.
    pub nodes: bool,
    /// True if rows without groups say the release's numbers of rows and of counterfeits.
    pub counted: bool,
}

/// Number of the group: random, without order.
pub const GROUP_ID: &str = "group_id";
/// Rows of the group, counterfeits included; where there are no groups, of the release. Beside lists of the group's values, their number:
/// counterfeits have no rows there.
pub const GROUP_SIZE: &str = "group_size";
/// Counterfeits among these.
pub const COUNTERFEITS: &str = "counterfeits";
/// Role of the number of the group.
const GROUP: &str = "group";
/// Roles of the columns that say something of a group, to the world.
pub const GROUP_ROLES: [&str; 3] = [GROUP, GROUP_SIZE, COUNTERFEITS];
/// Private view: whether the row is a counterfeit.
pub const COUNTERFEIT_MARK: &str = "counterfeit";
/// Private view: the sensitive values of the group.
pub const SIGNATURE: &str = "signature";
/// Private view, and column of ledgers: the place of somebody's own value in their signature, from 1, the same for ever.
pub const LABEL: &str = "signature_label";
/// Private view, and column of ledgers: the number of the people who stay together in all releases, the same for ever.
pub const RING: &str = "ring";
/// Worlds, and column of ledgers: the identifiers of everybody's partners, world by world; empty in entries that only add commitments.
pub const PARTNERS: &str = "partners";
/// Worlds, and column of ledgers: a salt, and then for every sealed column the hash of its name and the commitment to the value, and
/// for every quasi-identifier the hash of its name and 0.
pub const COMMITMENTS: &str = "seals";

/// Returns the names that a release adds, which a published column cannot have.
pub fn reserved_names(view: View) -> &'static [&'static str] {
    match view {
        View::Public => &[GROUP_ID, GROUP_SIZE, COUNTERFEITS],
        View::Private => &[GROUP_ID, GROUP_SIZE, COUNTERFEITS, COUNTERFEIT_MARK, SIGNATURE, LABEL, RING],
    }
}

/// Returns the schema of a release of microdata of the given layout. Every field carries the description and its role.
///
/// - [`Form::Intervals`]: quasi-identifiers as `Struct<lo, hi>` of their own type, the sensitive attribute as it is.
///   Intervals of [continuous](is_continuous) attributes have a third child `nulls`, how many of the group's people have no
///   value; with hierarchies, all have the last child `node`, a text, NULL for attributes without hierarchy, and those with one
///   carry its [fingerprint](TREE_KEY), if the layout's fields do.
/// - [`Form::Anatomy`]: quasi-identifiers as they are, and of the sensitive attribute a `List<Struct<value, count>>`: the
///   values of the row's group and how many of its rows have them. Counterfeits have values there, and no rows.
/// - [`Form::Perturbed`]: all columns as they are.
/// - [`Form::Rows`]: as [`Form::Intervals`], but for `nulls`; and the columns that travel with the sensitive attribute as they are.
/// - [`Form::Worlds`]: the identifier, a `List` of the partners' identifiers, and a `List` of commitments.
///
/// Then follow the column that the release was made within, those that are kept as they are, and those of the group; rows without groups
/// have none, or ([`Shape::counted`]) the size of the release and its number of counterfeits in their place, the same in every row.
pub fn schema(layout: &Layout, shape: Shape, description: &Description) -> Schema {
    let labelled = |field: Field, role: &str, order: Option<&String>| -> FieldRef {
        let mut metadata = description.metadata();
        metadata.insert(Role::KEY.to_owned(), role.to_owned());
        if let Some(order) = order {
            metadata.insert(ORDER_KEY.to_owned(), order.clone());
        }
        Arc::new(field.with_metadata(metadata))
    };
    let private = shape.view == View::Private;
    let mut fields = Vec::new();
    if let Some(id) = layout.identifier.as_ref().filter(|_| private) {
        fields.push(labelled(Field::new(id.name(), id.data_type().clone(), true), Role::Id.name(), None));
    }
    if shape.form == Form::Worlds {
        let ids = layout.identifier.iter().flat_map(|id| {
            let who = Field::new(id.name(), id.data_type().clone(), false);
            let partners = Field::new(PARTNERS, signature_type(id.data_type()), false);
            [labelled(who, Role::Id.name(), None), labelled(partners, PARTNERS, None)]
        });
        let commitments = labelled(Field::new(COMMITMENTS, commitments_type(), false), COMMITMENTS, None);
        return Schema::new(ids.chain([commitments]).collect::<Vec<_>>());
    }
    let alone = shape.form == Form::Rows;
    for quasi in &layout.quasi {
        let order = quasi.metadata().get(ORDER_KEY);
        let field = match shape.form {
            Form::Intervals | Form::Rows => {
                let fields = interval_fields(quasi.data_type(), shape.nodes, alone);
                Field::new(quasi.name(), DataType::Struct(fields), false)
            }
            Form::Anatomy | Form::Perturbed | Form::Worlds => Field::new(quasi.name(), quasi.data_type().clone(), true),
        };
        let field = labelled(field, Role::Quasi.name(), order);
        let generalized = shape.nodes && matches!(shape.form, Form::Intervals | Form::Rows);
        fields.push(match quasi.metadata().get(TREE_KEY).filter(|_| generalized) {
            Some(tree) => marked(&field, TREE_KEY, tree),
            None => field,
        });
    }
    let each = layout.sensitive.as_ref().is_some_and(|sensitive| is_of_each(sensitive).unwrap_or(false));
    for sensitive in layout.sensitive.iter().flat_map(apart) {
        let order = sensitive.metadata().get(ORDER_KEY);
        let data_type = match shape.form {
            Form::Intervals | Form::Perturbed | Form::Rows | Form::Worlds => sensitive.data_type().clone(),
            Form::Anatomy => DataType::List(histogram_item(sensitive.data_type())),
        };
        let field = labelled(Field::new(sensitive.name(), data_type, false), Role::Sensitive.name(), order);
        fields.push(if each { marked(&field, EACH_KEY, "true") } else { field });
    }
    if let Some(within) = &layout.within {
        fields.push(labelled(Field::new(within.name(), within.data_type().clone(), true), Role::Within.name(), None));
    }
    for other in &layout.other {
        let field = Field::new(other.name(), other.data_type().clone(), true);
        fields.push(labelled(field, Role::Other.name(), other.metadata().get(ORDER_KEY)));
    }
    for kept in &layout.insensitive {
        let field = Field::new(kept.name(), kept.data_type().clone(), true);
        fields.push(labelled(field, Role::Insensitive.name(), kept.metadata().get(ORDER_KEY)));
    }
    let in_groups = shape.form.has_groups();
    if in_groups {
        fields.push(labelled(Field::new(GROUP_ID, DataType::Int64, false), GROUP, None));
    }
    if in_groups || shape.counted {
        fields.push(labelled(Field::new(GROUP_SIZE, DataType::Int32, false), GROUP_SIZE, None));
        fields.push(labelled(Field::new(COUNTERFEITS, DataType::Int32, false), COUNTERFEITS, None));
    }
    if !in_groups {
        return Schema::new(fields);
    }
    if private {
        fields.push(labelled(Field::new(COUNTERFEIT_MARK, DataType::Boolean, false), COUNTERFEIT_MARK, None));
    }
    if let Some(sensitive) = layout.sensitive.as_ref().filter(|_| private && shape.signatures) {
        fields.push(labelled(Field::new(SIGNATURE, signature_type(sensitive.data_type()), false), SIGNATURE, None));
        if shape.labels {
            fields.push(labelled(Field::new(LABEL, DataType::Int32, false), LABEL, None));
        }
        if shape.rings {
            fields.push(labelled(Field::new(RING, DataType::Int64, false), RING, None));
        }
    }
    Schema::new(fields)
}

/// Returns a field with one more entry of metadata.
fn marked(field: &FieldRef, key: &str, value: &str) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.insert(key.to_owned(), value.to_owned());
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// Returns the columns that a sensitive value is published as: those that it was made of, or itself.
fn apart(sensitive: &FieldRef) -> Vec<FieldRef> {
    let parts = parts_of(sensitive).unwrap_or_default();
    if parts.is_empty() { vec![FieldRef::clone(sensitive)] } else { parts }
}

/// First child of an interval: its least value, included.
pub const LO: &str = "lo";
/// Second child of an interval: its greatest value, included.
pub const HI: &str = "hi";
/// Child of an interval of a continuous attribute: how many of the group's people have no value.
pub const NULLS: &str = "nulls";
/// Last child of an interval, with hierarchies: the name of the node.
pub const NODE: &str = "node";

/// Returns the fields of an interval, both of whose ends are included. Nullable whatever the column is, so that all releases have one schema.
///
/// A row that is `alone` says nothing of its person beyond the interval, which holds NULL if its least value is NULL.
fn interval_fields(data_type: &DataType, nodes: bool, alone: bool) -> Fields {
    let end = |name: &str| Field::new(name, data_type.clone(), true);
    // Where values cannot be counted, nobody could tell what part of an interval NULL is.
    let nulls = (is_continuous(data_type) && !alone).then(|| Field::new(NULLS, DataType::Int32, true));
    let node = nodes.then(|| Field::new(NODE, DataType::Utf8, true));
    [end(LO), end(HI)].into_iter().chain(nulls).chain(node).collect()
}

/// Returns the type of signatures over a sensitive attribute of this type.
pub fn signature_type(sensitive: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(listed(sensitive), true)))
}

/// Returns the type of a list of commitments.
pub fn commitments_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))
}

fn histogram_item(sensitive: &DataType) -> FieldRef {
    let fields = vec![Field::new("value", listed(sensitive), false), Field::new("count", DataType::Int32, false)];
    Arc::new(Field::new_list_field(DataType::Struct(Fields::from(fields)), false))
}

/// Returns the type inside of lists, which is no view: some readers of Parquet (pyarrow) know no lists of them.
fn listed(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}
