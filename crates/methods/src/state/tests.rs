//! Tests of memories of all kinds.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use super::*;
use crate::microdata::Roles;

/// While values are sealed, each has a hash, of eight bytes.
#[test]
fn hashes_that_values_are_sealed_by_are_counted() {
    let column = |values: i64| -> ArrayRef { Arc::new((0..300).map(|row| row % values).collect::<Int64Array>()) };
    let columns = [("id", column(300)), ("q", column(100)), ("s", column(7)), ("o", column(50)), ("p", column(300))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut roles = Roles::default();
    roles.id = Some("id".to_owned());
    roles.quasi = vec!["q".to_owned()];
    roles.sensitive = Some("s".to_owned());
    roles.other = vec!["o".to_owned(), "p".to_owned()];
    let size = |kind: Option<StateKind>| {
        let layout = Layout::try_new(&batch.schema(), &roles).unwrap();
        let mut builder = SnapshotBuilder::try_new(layout, kind).unwrap();
        builder.microdata.append(&batch).unwrap();
        builder.size()
    };
    assert_eq!(size(Some(StateKind::Worlds)), size(None) + 8 * (7 + 50 + 300));
}
