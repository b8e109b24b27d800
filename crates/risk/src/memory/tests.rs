//! Tests of a correct chain of releases, and of the same with one fault each.

use std::sync::Arc;

use datafusion::arrow::array::{Int32Array, Int64Array, ListArray, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::take;

use super::checks::LABELLED;
use super::*;
use crate::TableColumns;
use crate::release::Lineage;

/// Person, first release, values in the order of labels, label.
type Row = (i64, i64, [i32; 2], i64);

/// A group of two: its values, and how many of its rows are counterfeits.
type Group = ([i32; 2], i32);

/// Values 1 and 2 can become each other, 3 and 4 likewise; 5 becomes 6 and 6 becomes 7, but 5 does not become 7.
const UPDATES: [(i32, i32); 6] = [(1, 2), (2, 1), (3, 4), (4, 3), (5, 6), (6, 7)];

fn release(groups: &[Group]) -> ReleasedTable {
    let rows = || groups.iter().zip(1..).flat_map(|(group, number)| [(group, number, 0), (group, number, 1)]);
    let integers =
        |of: fn((&Group, i32, usize)) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(rows().map(of))) };
    let batch = RecordBatch::try_from_iter([
        ("place", Arc::new(StringArray::from_iter_values(rows().map(|_| "x"))) as ArrayRef),
        ("disease", integers(|(group, _, place)| group.0[place])),
        ("group_id", integers(|(_, number, _)| number)),
        ("group_size", integers(|_| 2)),
        ("counterfeits", integers(|(group, ..)| group.1)),
    ]);
    let columns = TableColumns { quasi: vec!["place".to_owned()], sensitive: Some("disease".to_owned()), within: None };
    ReleasedTable::try_new(&batch.unwrap(), &columns).unwrap()
}

/// Returns the checks that fail.
fn failing(entries: &[Row], releases: &[&[Group]], updates: &[(i32, i32)], lineage: Lineage) -> Vec<String> {
    let mut histories = Histories::try_new(&DataType::Int64, &DataType::Int32).unwrap();
    let numbers = |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(entries.iter().map(of))) };
    let lists = entries.iter().map(|row| Some(row.2.map(Some)));
    let lists: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int32Type, _, _>(lists));
    let labels = numbers(|row| row.3);
    let labels =
        (matches!(lineage, Lineage::Distinct { .. }) && entries.iter().any(|row| row.3 != NONE)).then_some(&labels);
    histories.append_entries(&numbers(|row| row.0), &lists, labels, &numbers(|row| row.1)).unwrap();
    for (number, groups) in (1..).zip(releases) {
        histories.append_release(number, &release(groups)).unwrap();
    }
    let side =
        |of: fn(&(i32, i32)) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(updates.iter().map(of))) };
    histories.append_updates(&side(|pair| pair.0), &side(|pair| pair.1)).unwrap();
    // A part of the people at a time, nothing is found that is not found of all of them together.
    let mut in_parts = Histories::try_new(&DataType::Int64, &DataType::Int32).unwrap();
    for person in entries.iter().map(|row| row.0).collect::<std::collections::BTreeSet<_>>() {
        let own: Vec<u32> = (0..).zip(entries).filter(|(_, row)| row.0 == person).map(|(place, _)| place).collect();
        let own = UInt32Array::from(own);
        let of = |column: &ArrayRef| take(column, &own, None).unwrap();
        let labels = labels.map(of);
        let (ids, releases) = (of(&numbers(|row| row.0)), of(&numbers(|row| row.1)));
        in_parts.append_entries(&ids, &of(&lists), labels.as_ref(), &releases).unwrap();
        in_parts.close_people().unwrap();
    }
    for (number, groups) in (1..).zip(releases) {
        in_parts.append_release(number, &release(groups)).unwrap();
    }
    in_parts.append_updates(&side(|pair| pair.0), &side(|pair| pair.1)).unwrap();
    let in_parts = in_parts.checks(2, lineage).unwrap();
    let checks = histories.checks(2, lineage).unwrap();
    assert_eq!(checks, in_parts);
    checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
}

/// Instead of a label: a ledger without any.
const NONE: i64 = -1;
const DISTINCT: Lineage = Lineage::Distinct { close: false, disjoint: false };
const LEGAL: &str = "m-distinct: groups are legal updates of the last ones";
const APART: &str = "m-distinct: people of one label are in different groups";
const HOSTS: &str = "m-distinct: groups are of the ledger's people";

/// Person 1 and 2 in a group of values 1 and 3; then 1 in one of 2 and 3 with a counterfeit, while 2 is away; then both again.
const ENTRIES: [Row; 4] = [(1, 1, [1, 3], 1), (2, 1, [1, 3], 2), (1, 2, [2, 3], 1), (2, 3, [2, 3], 2)];
const RELEASES: [&[Group]; 3] = [&[([1, 3], 0)], &[([2, 3], 1)], &[([2, 3], 0)]];

#[test]
fn a_chain_of_legal_updates_passes() {
    assert!(failing(&ENTRIES, &RELEASES, &UPDATES[..4], DISTINCT).is_empty());
    let disjoint = Lineage::Distinct { close: true, disjoint: true };
    assert!(failing(&ENTRIES, &RELEASES, &UPDATES, disjoint).is_empty());
}

/// Each broken promise alone fails its check.
#[test]
fn each_broken_promise_is_found() {
    assert_eq!(failing(&ENTRIES, &RELEASES, &[], DISTINCT), [LEGAL, LEGAL], "nothing can change");
    assert_eq!(failing(&ENTRIES, &RELEASES, &UPDATES, DISTINCT), ["update relation: transitive"]);
    let overlapping = [(1, 1, [1, 2], 1)];
    let disjoint = Lineage::Distinct { close: false, disjoint: true };
    assert_eq!(
        failing(&overlapping, &[&[([1, 2], 1)]], &UPDATES[..4], disjoint),
        ["m-distinct: first groups of values with nothing in common"]
    );
    let elsewhere: [&[Group]; 3] = [RELEASES[0], &[([2, 4], 1)], RELEASES[2]];
    assert_eq!(failing(&ENTRIES, &elsewhere, &UPDATES[..4], DISTINCT), [HOSTS]);
    let crowded: [&[Group]; 3] = [RELEASES[0], &[([2, 3], 0)], RELEASES[2]];
    assert_eq!(failing(&ENTRIES, &crowded, &UPDATES[..4], DISTINCT), [HOSTS], "two rows for one person");
    let twice = [ENTRIES[0], ENTRIES[1], ENTRIES[2], ENTRIES[2], ENTRIES[3]];
    let found = failing(&twice, &RELEASES, &UPDATES[..4], DISTINCT);
    assert_eq!(found, ["ledger: one signature for everybody in a release", APART, HOSTS], "and one of them has no row");
}

/// A first release of two signatures; then one of these, and one with a value that came later, or with none.
#[test]
fn signatures_that_could_not_be_drawn_are_found() {
    let first = [(1, 1, [1, 3], NONE), (2, 1, [1, 3], NONE), (3, 1, [2, 4], NONE), (4, 1, [2, 4], NONE)];
    let of_first: &[Group] = &[([1, 3], 0), ([2, 4], 0)];
    let with = |signature: [i32; 2]| [&first[..], &[(5, 2, [1, 3], NONE), (6, 2, signature, NONE)]].concat();
    assert!(failing(&with([1, 5]), &[of_first, &[([1, 3], 1), ([1, 5], 1)]], &[], Lineage::Drawn).is_empty());
    let foreign: [&[Group]; 2] = [of_first, &[([1, 3], 1), ([1, 4], 1)]];
    let name = "drawn: signatures are those of the first release";
    assert_eq!(failing(&with([1, 4]), &foreign, &[], Lineage::Drawn), [name]);
    assert!(failing(&with([1, 4]), &foreign, &[], Lineage::Invariant).is_empty());
    let lost: [&[Group]; 1] = [&[([1, 3], 1), ([2, 4], 0)]];
    assert_eq!(failing(&first[1..], &lost, &[], Lineage::Drawn), ["drawn: the first release is balanced"]);
}

/// Each broken label fails its check: labels that change, a place twice, values legal in another order only.
#[test]
fn each_broken_label_is_found() {
    let with = |row: usize, change: fn(&mut Row)| {
        let mut entries = ENTRIES;
        change(&mut entries[row]);
        failing(&entries, &RELEASES, &UPDATES[..4], DISTINCT)
    };
    assert_eq!(with(1, |row| row.3 = 1), [LABELLED, APART], "and it changes later");
    assert_eq!(with(3, |row| row.3 = 1), [LABELLED]);
    assert_eq!(with(0, |row| row.3 = 3), [LABELLED]);
    assert_eq!(with(2, |row| row.2 = [3, 2]), [LEGAL], "1 does not become 3, nor 3 become 2");
    assert_eq!(with(0, |row| row.2 = [3, 1]), [APART, LEGAL], "two orders in one group");
    let mut alone = ENTRIES;
    alone[1].3 = 1;
    alone[3].3 = 1;
    assert_eq!(failing(&alone, &RELEASES, &UPDATES[..4], DISTINCT), [APART]);
    let unlabelled = ENTRIES.map(|row| (row.0, row.1, row.2, NONE));
    assert!(failing(&unlabelled, &RELEASES, &UPDATES[..4], DISTINCT).contains(&LABELLED.to_owned()));
}

/// Of m-invariant releases, nobody's signature may change, whatever can become what.
#[test]
fn of_invariant_releases_everybody_has_one_signature() {
    let invariant = [ENTRIES[0], ENTRIES[1]];
    let releases: [&[Group]; 2] = [&[([1, 3], 0)], &[([1, 3], 1)]];
    assert!(failing(&invariant, &releases, &[], Lineage::Invariant).is_empty());
    assert_eq!(
        failing(&ENTRIES, &RELEASES, &UPDATES[..4], Lineage::Invariant),
        ["ledger: one signature for everybody"]
    );
    let foreign: [&[Group]; 2] = [&[([1, 3], 0)], &[([1, 4], 1)]];
    assert_eq!(
        failing(&invariant, &foreign, &[], Lineage::Invariant),
        ["m-invariant: groups are of the ledger's people"]
    );
}
