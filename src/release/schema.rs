//! The columns of a released table.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use serde::{Deserialize, Serialize};

use super::Description;
use crate::microdata::{Layout, ORDER_KEY, Role};

/// Who a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum View {
    /// The world: intervals, sensitive values, group numbers and sizes, numbers of counterfeits.
    Public,
    /// The publisher: the identifier (NULL for counterfeits) in front; the counterfeit mark and the group's signature behind.
    Private,
}

/// Number of the group: random, without order.
pub const GROUP_ID: &str = "group_id";
/// Rows of the group, counterfeits included.
pub const GROUP_SIZE: &str = "group_size";
/// Counterfeits among the rows of the group.
pub const COUNTERFEITS: &str = "counterfeits";
/// Private view: whether the row is a counterfeit.
pub const COUNTERFEIT_MARK: &str = "counterfeit";
/// Private view: the sensitive values of the group.
pub const SIGNATURE: &str = "signature";

/// Names that a release adds and a published column therefore cannot have.
pub fn reserved_names(view: View) -> &'static [&'static str] {
    match view {
        View::Public => &[GROUP_ID, GROUP_SIZE, COUNTERFEITS],
        View::Private => &[GROUP_ID, GROUP_SIZE, COUNTERFEITS, COUNTERFEIT_MARK, SIGNATURE],
    }
}

/// Schema of a release of microdata of the given layout: quasi-identifiers as `Struct<lo, hi>` of their own type, the
/// sensitive attribute as it is, then the columns of the group. Every field carries the description and its role.
pub fn schema(layout: &Layout, view: View, description: &Description) -> Schema {
    let labelled = |field: Field, role: &str, order: Option<&String>| -> FieldRef {
        let mut metadata = description.metadata();
        metadata.insert(Role::KEY.to_owned(), role.to_owned());
        if let Some(order) = order {
            metadata.insert(ORDER_KEY.to_owned(), order.clone());
        }
        Arc::new(field.with_metadata(metadata))
    };
    let mut fields = Vec::new();
    if view == View::Private {
        let id = &layout.identifier;
        fields.push(labelled(Field::new(id.name(), id.data_type().clone(), true), Role::Id.name(), None));
    }
    for quasi in &layout.quasi {
        let interval = DataType::Struct(interval_fields(quasi));
        let order = quasi.metadata().get(ORDER_KEY);
        fields.push(labelled(Field::new(quasi.name(), interval, false), Role::Quasi.name(), order));
    }
    let sensitive = &layout.sensitive;
    let order = sensitive.metadata().get(ORDER_KEY);
    let published = Field::new(sensitive.name(), sensitive.data_type().clone(), false);
    fields.push(labelled(published, Role::Sensitive.name(), order));
    fields.push(labelled(Field::new(GROUP_ID, DataType::Int64, false), "group", None));
    fields.push(labelled(Field::new(GROUP_SIZE, DataType::Int32, false), GROUP_SIZE, None));
    fields.push(labelled(Field::new(COUNTERFEITS, DataType::Int32, false), COUNTERFEITS, None));
    if view == View::Private {
        fields.push(labelled(Field::new(COUNTERFEIT_MARK, DataType::Boolean, false), COUNTERFEIT_MARK, None));
        let signature = DataType::List(signature_item(sensitive));
        fields.push(labelled(Field::new(SIGNATURE, signature, false), SIGNATURE, None));
    }
    Schema::new(fields)
}

/// `lo` and `hi`, both ends included. Nullable whatever the column is, so that all releases have one schema.
pub(super) fn interval_fields(quasi: &Field) -> Fields {
    let end = |name: &str| Field::new(name, quasi.data_type().clone(), true);
    Fields::from(vec![end("lo"), end("hi")])
}

pub(super) fn signature_item(sensitive: &Field) -> FieldRef {
    // Not views: some readers of Parquet (pyarrow) know no lists of them.
    let item = match sensitive.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    };
    Arc::new(Field::new_list_field(item, true))
}
