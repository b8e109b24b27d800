//! Refusals: roles that changed, values that changed, damaged memories.

use datafusion::arrow::array::{ListArray, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::DataType;

use super::examples::example;
use super::*;
use crate::microdata::PARTNERS_NAME;

/// Parts of no rows: SQL refuses them, and so does whoever calls the method.
#[test]
fn parts_of_no_rows_are_refused() {
    let (people, worlds) = example();
    let both = AnyMethod::Sequential(Sequential { p: 0, ..Sequential::new(2) });
    for (method, worlds) in [(release_of(0, Loss::Lm), Some(&worlds)), (both, None)] {
        let refused = run(&method, &people, &people.all(), worlds, false, 1).unwrap_err().to_string();
        assert!(refused.contains("p must be at least 1"), "{refused}");
    }
}

/// Public values cannot travel, and worlds are of one sensitive column.
#[test]
fn roles_are_those_of_the_worlds() {
    let people = People {
        first: 0,
        quasi: vec![(0..8).map(Some).collect()],
        sensitive: vec![0, 1, 2, 3, 0, 1, 2, 3],
        other: vec![vec![1, 1, 1, 1, 2, 2, 2, 2]],
    };
    let named = Columns { quasi: vec![0], sensitive: true, other: Vec::new() };
    let worlds = run(&worlds_of(2), &people, &named, None, false, 1).unwrap();
    let refusal = |quasi: &str, sensitive: Option<&str>, other: &[&str]| {
        let (batch, _) = people.batch(&people.all());
        let mut roles = Roles::default();
        roles.id = Some("id".to_owned());
        roles.quasi = vec![quasi.to_owned()];
        roles.sensitive = sensitive.map(str::to_owned);
        roles.other = other.iter().map(|&name| name.to_owned()).collect();
        let places = roles.columns().map(|name| batch.schema().index_of(name).unwrap()).collect::<Vec<_>>();
        let batch = batch.project(&places).unwrap();
        let layout = Layout::try_new(&batch.schema(), &roles).unwrap();
        let mut builder = SnapshotBuilder::try_new(layout, Some(StateKind::Worlds)).unwrap();
        builder.microdata.append(&batch).unwrap();
        builder.append_previous(&worlds).unwrap();
        builder.finish([1, 2]).map(|_| ()).map_err(|error| error.to_string())
    };
    let text = refusal("o0", Some("s"), &["q0"]).unwrap_err();
    assert!(text.starts_with("column q0 was a quasi-identifier when the worlds were made"), "{text}");
    let text = refusal("o0", Some("q0"), &[]).unwrap_err();
    assert!(text.starts_with("column q0 was a quasi-identifier when the worlds were made"), "{text}");
    let text = refusal("q0", Some("o0"), &[]).unwrap_err();
    assert!(text.starts_with("column o0 is not the sensitive column that the worlds were made for"), "{text}");
    assert!(refusal("s", None, &[]).unwrap_err().starts_with("column s was sensitive"));
    refusal("q0", Some("s"), &["o0"]).unwrap();
    refusal("o0", None, &["s"]).unwrap();
}

#[test]
fn changed_values_are_refused() {
    let (people, worlds) = example();
    let release =
        |people: &People, columns: &Columns| run(&release_of(100, Loss::Lm), people, columns, Some(&worlds), false, 1);
    let mut changed = people.clone();
    changed.sensitive[0] = 9;
    let text = release(&changed, &people.all()).unwrap_err().to_string();
    assert!(text.starts_with("1 people have other values") && !text.contains('9'), "{text}");
    // Without the column nothing contradicts anything; and quasi-identifiers may change.
    let without = Columns { sensitive: false, ..people.all() };
    release(&changed, &without).unwrap();
    let mut moved = people.clone();
    moved.quasi[0][2] = Some(0);
    release(&moved, &people.all()).unwrap();
}

/// Returns sealed rows without partners, as of people who have worlds.
fn without_partners(worlds: &RecordBatch) -> RecordBatch {
    let DataType::List(item) = worlds.column(1).data_type() else { panic!() };
    let lengths = OffsetBuffer::from_lengths(std::iter::repeat_n(0, worlds.num_rows()));
    let nobody = ListArray::new(Arc::clone(item), lengths, new_empty_array(item.data_type()), None);
    let (mut sealed, mut lengths) = (Vec::new(), Vec::new());
    for entry in worlds.column(2).as_list::<i32>().iter() {
        let entry = entry.unwrap();
        let (salt, pairs) = entry.as_primitive::<Int64Type>().values().split_first().unwrap();
        let before = sealed.len();
        sealed.push(*salt);
        sealed.extend(pairs.chunks_exact(2).filter(|pair| pair[0] != PARTNERS_NAME).flatten());
        lengths.push(sealed.len() - before);
    }
    let DataType::List(item) = worlds.column(2).data_type() else { panic!() };
    let lengths = OffsetBuffer::from_lengths(lengths);
    let sealed = ListArray::new(Arc::clone(item), lengths, Arc::new(Int64Array::from(sealed)), None);
    let columns: Vec<ArrayRef> = vec![Arc::clone(worlds.column(0)), Arc::new(nobody), Arc::new(sealed)];
    RecordBatch::try_new(worlds.schema(), columns).unwrap()
}

/// Entries of several kinds of many people, who are looked at piece by piece: the first ones seal a column, the second ones another.
#[test]
fn changed_values_are_found_among_many() {
    const PEOPLE: i32 = 3000;
    let people = People {
        first: 0,
        quasi: vec![(0..PEOPLE).map(|person| Some(person * 7 % 100)).collect()],
        sensitive: (0..PEOPLE).map(|person| person % 10).collect(),
        other: vec![(0..PEOPLE).map(|person| person % 3).collect()],
    };
    let first = run(&worlds_of(2), &people, &Columns { other: Vec::new(), ..people.all() }, None, false, 1).unwrap();
    let second = without_partners(&run(&worlds_of(2), &people, &people.all(), None, false, 2).unwrap());
    let worlds = concat_batches(&first.schema(), [&first, &second]).unwrap();
    let release = |people: &People| run(&release_of(100, Loss::Lm), people, &people.all(), Some(&worlds), false, 1);
    assert_eq!(release(&people).unwrap().num_rows(), PEOPLE as usize);
    let mut changed = people.clone();
    changed.sensitive[2990] += 1;
    changed.other[0][1500] += 1;
    changed.other[0][2990] += 1;
    let text = release(&changed).unwrap_err().to_string();
    assert!(text.starts_with("2 people have other values"), "{text}");
}

/// Gives everybody the partners of somebody else: still one to one, but not what was drawn.
fn partners_rotated(worlds: &RecordBatch) -> RecordBatch {
    let rotated =
        concat_batches(&worlds.schema(), [&worlds.slice(1, worlds.num_rows() - 1), &worlds.slice(0, 1)]).unwrap();
    let mut columns = worlds.columns().to_vec();
    columns[1] = Arc::clone(rotated.column(1));
    RecordBatch::try_new(worlds.schema(), columns).unwrap()
}

#[test]
fn broken_memories_are_refused() {
    let (people, worlds) = example();
    let refusal = |worlds: &RecordBatch| {
        run(&release_of(100, Loss::Lm), &people, &people.all(), Some(worlds), false, 1).unwrap_err().to_string()
    };
    assert!(refusal(&worlds.slice(1, 4)).contains("not complete"), "{}", refusal(&worlds.slice(1, 4)));
    let twice = concat_batches(&worlds.schema(), [&worlds, &worlds.slice(0, 1)]).unwrap();
    assert!(refusal(&twice).contains("two entries"), "{}", refusal(&twice));
    let others = People {
        first: 100,
        quasi: vec![(0..6).map(Some).collect(); people.quasi.len()],
        sensitive: (0..6).collect(),
        other: Vec::new(),
    };
    let of_three = run(&worlds_of(3), &others, &others.all(), None, false, 1).unwrap();
    let several = refusal(&concat_batches(&worlds.schema(), [&worlds, &of_three]).unwrap());
    assert!(several.contains("different numbers of partners"), "{several}");
    let forged = partners_rotated(&worlds);
    assert!(refusal(&forged).contains("is not what sequential_worlds returned"), "{}", refusal(&forged));
    // An entry of somebody known, with the name of a column, and nothing sealed.
    let one = worlds.slice(0, 1);
    let DataType::List(item) = one.column(1).data_type() else { panic!() };
    let nobody =
        ListArray::new(Arc::clone(item), OffsetBuffer::from_lengths([0]), new_empty_array(item.data_type()), None);
    let DataType::List(item) = one.column(2).data_type() else { panic!() };
    let named = Arc::new(Int64Array::from(vec![7, 8]));
    let named = ListArray::new(Arc::clone(item), OffsetBuffer::from_lengths([2]), named, None);
    let columns: Vec<ArrayRef> = vec![Arc::clone(one.column(0)), Arc::new(nobody), Arc::new(named)];
    let unpaired = RecordBatch::try_new(worlds.schema(), columns).unwrap();
    let unpaired = refusal(&concat_batches(&worlds.schema(), [&worlds, &unpaired]).unwrap());
    assert!(unpaired.contains("without its column"), "{unpaired}");
    let other = run(&worlds_of(3), &people, &people.all(), Some(&worlds), false, 1).unwrap_err();
    assert!(other.to_string().contains("l must be 2"), "{other}");
}
