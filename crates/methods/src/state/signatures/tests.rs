//! Tests of reading ledgers.

use datafusion::arrow::array::{Int32Array, Int64Array, LargeListArray, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;

use super::*;

/// Lists of values, one for each of some people; who has no identifier is nobody.
fn batch(first: i64, lists: &[Option<Vec<i32>>], values: &DataType, large: bool) -> RecordBatch {
    let ids: Int64Array = lists.iter().zip(first..).map(|(list, id)| list.as_ref().map(|_| id)).collect();
    let of = |list: &Option<Vec<i32>>| list.clone().unwrap_or_else(|| vec![9, 9]);
    let items: Int32Array = lists.iter().flat_map(of).map(Some).collect();
    let items = cast(&items, values).unwrap();
    let first: Int32Array = lists.iter().map(|list| Some(of(list)[0])).collect();
    let own = cast(&first, values).unwrap();
    let item = Arc::new(Field::new("item", values.clone(), true));
    let lengths = lists.iter().map(|list| of(list).len());
    let lists: ArrayRef = match large {
        true => Arc::new(LargeListArray::new(item, OffsetBuffer::from_lengths(lengths), items, None)),
        false => Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), items, None)),
    };
    let labels: ArrayRef = Arc::new(Int32Array::from(vec![1; ids.len()]));
    let columns: [(&str, ArrayRef); 4] = [("id", Arc::new(ids)), (SIGNATURE, lists), ("value", own), (LABEL, labels)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Repeated lists have one number, in whole batches and in slices, for every type. Signatures ignore the order of a list, labels do not.
#[test]
fn lists_that_come_again_are_known() {
    let list = |values: &[i32]| Some(values.to_vec());
    let batches: [Vec<Option<Vec<i32>>>; 3] = [
        vec![list(&[1, 2, 3]), None, list(&[3, 2, 1]), list(&[1, 2, 3]), list(&[4, 5])],
        vec![list(&[4, 5]), list(&[1, 2, 3]), list(&[4, 5])],
        vec![list(&[3, 2, 1]), list(&[5, 4]), list(&[6, 1, 2]), list(&[6, 1, 2]), None, list(&[1, 2, 3])],
    ];
    for (says, expected) in [
        (Says::Signatures, [[0, 0, 0, 1].as_slice(), &[1, 0, 1], &[0, 1, 2, 2, 0]].concat()),
        (Says::Labels, [[0, 1, 0, 2].as_slice(), &[2, 0, 2], &[1, 3, 4, 4, 0]].concat()),
    ] {
        for (values, large) in [
            (DataType::Int32, false),
            (DataType::Int64, true),
            (DataType::Decimal128(9, 2), false),
            (DataType::Float32, true),
            (DataType::Utf8, false),
            (DataType::Utf8View, true),
        ] {
            let mut reader = SignaturesReader::new(DataType::Int64, says);
            let mut sensitive = ColumnEncoder::try_new(Arc::new(Field::new("s", values.clone(), true))).unwrap();
            for (number, lists) in batches.iter().enumerate() {
                let whole = batch(100 * number as i64, lists, &values, large);
                let half = whole.num_rows() / 2;
                for part in [whole.slice(0, half), whole.slice(half, 0), whole.slice(half, whole.num_rows() - half)] {
                    reader.append(&part, &mut sensitive).unwrap();
                }
            }
            assert!(reader.signature_of.iter().eq(expected.iter().copied()), "{values}");
        }
    }
}
