//! What is remembered, whatever it is.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use super::*;
use crate::microdata::Roles;
use crate::release::SIGNATURE;

/// What a ledger without labels is of can have given people away, so nothing is published beside it.
#[test]
fn a_ledger_without_labels_is_not_continued() {
    let column = |name: &str| Field::new(name, DataType::Int64, false);
    let now = Schema::new([IDENTIFIER, SIGNATURE, LABEL, RELEASE].map(column).to_vec());
    let then = Schema::new([IDENTIFIER, SIGNATURE, RELEASE].map(column).to_vec());
    assert!(StateKind::LabelledSignatures.check_ledger(&now).is_ok());
    let sealed = Schema::new([IDENTIFIER, SIGNATURE, SEAL, RELEASE].map(column).to_vec());
    assert!(StateKind::Signatures.check_ledger(&sealed).is_ok());
    let text = StateKind::Signatures.check_ledger(&then).unwrap_err().to_string();
    assert!(text.contains("does not say with which value") && text.contains("new publication"), "{text}");
    let text = StateKind::LabelledSignatures.check_ledger(&then).unwrap_err().to_string();
    assert!(text.contains("does not say whose value is whose") && text.contains("new publication"), "{text}");
}

/// While values are sealed, each has a hash, of eight bytes.
#[test]
fn hashes_that_values_are_sealed_by_are_counted() {
    let column = |values: i64| -> ArrayRef { Arc::new((0..300).map(|row| row % values).collect::<Int64Array>()) };
    let columns = [("id", column(300)), ("q", column(100)), ("s", column(7)), ("o", column(50)), ("p", column(300))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let roles = Roles {
        id: Some("id".to_owned()),
        quasi: vec!["q".to_owned()],
        sensitive: Some("s".to_owned()),
        other: vec!["o".to_owned(), "p".to_owned()],
        ..Roles::default()
    };
    let size = |kind: Option<StateKind>| {
        let layout = Layout::try_new(&batch.schema(), &roles).unwrap();
        let mut builder = SnapshotBuilder::try_new(layout, kind).unwrap();
        builder.microdata.append(&batch).unwrap();
        builder.size()
    };
    assert_eq!(size(Some(StateKind::Worlds)), size(None) + 8 * (7 + 50 + 300));
}
