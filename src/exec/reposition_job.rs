//! Job of repositioning, the columns of its result, and its description.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::Seed;
use super::notices::Notices;
use crate::error::{Asked, thousands};
use crate::methods::reposition::{Clock, Late, Reposition};
use crate::release::View;

pub(crate) const REPOSITION: &str = "reposition";
/// Column of the private view: the time that the input has.
pub(crate) const ORIGINAL_TIME: &str = "original_time";
/// Column of the private view: what became of a row, one of [`STATUSES`].
pub(crate) const STATUS: &str = "status";
/// States that a row can come to.
pub(crate) const STATUSES: [&str; 3] = ["published", "suppressed", "pending"];

/// Job of the operator: plain data, so that a distributed engine can ship it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RepositionJob {
    /// The method's parameters.
    pub params: Reposition,
    /// Column of the time.
    pub time: String,
    /// Clock that cuts times into snapshots.
    pub clock: Clock,
    /// Column of the sensitive value.
    pub sensitive: String,
    /// Rows of snapshots that were closed.
    pub late: Late,
    /// True if the last window is published at the end of the input.
    pub finish: bool,
    /// Audience of the rows.
    pub view: View,
    /// The randomness of this execution.
    pub seed: Seed,
}

/// Returns the columns of the result: those of the input, with the published time in place of the original one; in the private view also the
/// original time, and what became of the row.
pub(crate) fn repositioned_schema(input: &Schema, time: &str, view: View) -> SchemaRef {
    let private = view == View::Private;
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in input.fields() {
        match field.name() == time {
            true => fields.push(Arc::new(field.as_ref().clone().with_nullable(private))),
            false => fields.push(Arc::clone(field)),
        }
    }
    if let Ok(field) = input.field_with_name(time)
        && private
    {
        fields.push(Arc::new(Field::new(ORIGINAL_TIME, field.data_type().clone(), false)));
        fields.push(Arc::new(Field::new(STATUS, DataType::Utf8, false)));
    }
    Arc::new(Schema::new(fields))
}

/// Says so when less is published than suppressed: data that are skewed as a whole cannot be made eligible by waiting.
pub(super) fn tell_if_most_is_suppressed(
    notices: &Notices,
    published: usize,
    suppressed: usize,
    l: usize,
    asked: Asked,
) {
    if suppressed <= published {
        return;
    }
    let what = if published == 0 { "all" } else { "most" };
    let cure = match asked {
        Asked::Call => "take a smaller l or a longer window, or merge values",
        Asked::First | Asked::Later => {
            "merge values in the INSERT, or begin another publication with a smaller l or a longer window, at another LOCATION"
        }
    };
    notices.tell(&format!(
        "{REPOSITION}: {what} rows are suppressed ({} of {}): in their windows one value has more than 1/{l} of the rows; {cure}",
        thousands(suppressed),
        thousands(published.saturating_add(suppressed))
    ));
}
