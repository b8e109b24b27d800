use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::arrow::compute::cast;

use super::*;

/// Returns a column that arrives in batches of so many rows.
fn batches(column: &ArrayRef, rows: usize) -> IdentifierBuilder {
    let mut builder = IdentifierBuilder::new(column.data_type().clone());
    for first in (0..column.len()).step_by(rows) {
        builder.append(&column.slice(first, rows.min(column.len() - first))).unwrap();
    }
    builder
}

fn identifiers(ids: impl Array + 'static) -> Identifiers {
    let ids: ArrayRef = Arc::new(ids);
    let mut builder = IdentifierBuilder::new(ids.data_type().clone());
    builder.append(&ids).unwrap();
    builder.finish([1, 2]).unwrap()
}

#[test]
fn the_order_ignores_the_order_of_arrival() {
    let forward: Vec<i64> = (0..1000).collect();
    let backward: Vec<i64> = (0..1000).rev().collect();
    let ordered = |ids: &[i64]| -> Vec<i64> {
        let sorted = identifiers(Int64Array::from(ids.to_vec()));
        sorted.order().map(|row| ids[row as usize]).collect()
    };
    assert_eq!(ordered(&forward), ordered(&backward));
    assert_ne!(ordered(&forward), forward);
}

#[test]
fn repeated_identifiers_are_counted() {
    let ids = identifiers(StringArray::from(vec!["a", "b", "a", "c", "a"]));
    assert_eq!(ids.repeated().unwrap(), 2);
}

#[test]
fn finds_equal_identifiers_elsewhere() {
    let now = identifiers(StringArray::from(vec!["x", "a", "y", "b"]));
    let before = identifiers(StringArray::from(vec!["b", "c", "a"]));
    let found = now.find_in(&before).unwrap();
    let of = |row: u32| found.at(now.order().position(|r| r == row).unwrap());
    assert_eq!([of(0), of(1), of(2), of(3)], [None, Some(2), None, Some(0)]);
}

/// Of so many, some have a hash that begins like that of another one; whom the shorter look finds is somebody else then.
#[test]
fn hashes_that_begin_alike_are_no_equality() {
    let now: Vec<i64> = (0..300_000).collect();
    let before: Vec<i64> = (299_990..600_000).collect();
    for wide in [true, false] {
        let column = |numbers: &[i64]| match wide {
            true => identifiers(Int64Array::from(numbers.to_vec())),
            false => identifiers(numbers.iter().map(|number| Some(format!("{number}"))).collect::<StringArray>()),
        };
        let (now, before) = (column(&now), column(&before));
        let beginnings: HashSet<u32> = before.order.iter().map(|entry| entry.beginning()).collect();
        assert!(now.order.iter().filter(|entry| beginnings.contains(&entry.beginning())).count() > 15);
        let found = now.find_in(&before).unwrap();
        let expected = |row: u32| row.checked_sub(299_990);
        assert!(now.order().zip(found.iter()).all(|(row, found)| found == expected(row)));
        let ranks = before.ranks_of(&batches(&now.values, 100_000).in_one_piece().unwrap(), [1, 2]).unwrap();
        let arrived: Vec<u32> = before.order().collect();
        let place = |rank: Option<u32>| rank.map(|rank| arrived[rank as usize]);
        assert!(ranks.iter().map(place).eq((0..300_000).map(expected)));
        assert!(now.ranks_in(&before).unwrap().iter().map(place).eq(found.iter()));
        // Fewer identifiers than values.
        let few = batches(&now.values.slice(200_000, 100), 100).finish([1, 2]).unwrap();
        let ranks = few.ranks_of(&batches(&now.values, 100_000).in_one_piece().unwrap(), [1, 2]).unwrap();
        let arrived: Vec<u32> = few.order().collect();
        let expected = |row: u32| (200_000..200_100).contains(&row).then(|| row - 200_000);
        assert!(ranks.iter().map(|rank| rank.map(|rank| arrived[rank as usize])).eq((0..300_000).map(expected)));
        let among = now.among(&batches(&before.values, 100_000).in_one_piece().unwrap(), [1, 2]).unwrap();
        assert!(among.first.iter().eq(found.iter()));
        assert!(among.elsewhere.iter().copied().eq(10..300_010) && among.again.is_empty());
    }
}

/// Of every way to compare, in one order and in any.
#[test]
fn values_are_found() {
    let before: Vec<i64> = (0..20_000).map(|number| number * 3).collect();
    let now: Vec<i64> = (0..30_000).rev().chain([3, 3]).collect();
    let texts = |numbers: &[i64]| -> ArrayRef {
        Arc::new(
            numbers.iter().map(|number| Some(format!("somebody with the number {number}"))).collect::<StringArray>(),
        )
    };
    let numbers = |numbers: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(numbers.to_vec())) };
    let small = |numbers: &[i64]| cast(&Int64Array::from(numbers.to_vec()), &DataType::Int32).unwrap();
    let with_null = |numbers: &[i64]| -> ArrayRef {
        Arc::new(numbers.iter().map(|&number| (number != 3).then_some(number)).collect::<Int64Array>())
    };
    let ways: [&dyn Fn(&[i64]) -> ArrayRef; 4] = [&texts, &numbers, &small, &with_null];
    for column in ways {
        let (before_column, now_column) =
            (column(&before).slice(1, before.len() - 1), column(&now).slice(2, now.len() - 2));
        let known = batches(&before_column, 30_000).finish([1, 2]).unwrap();
        let expected = |&number: &i64| {
            let place = number / 3 - 1;
            (number % 3 == 0 && (0..19_999).contains(&place)).then_some(place as u32)
        };
        let expected: Vec<Option<u32>> = now[2..].iter().map(expected).collect();
        for rows in [7_000, 30_000] {
            let ranks = known.ranks_of(&batches(&now_column, rows).in_one_piece().unwrap(), [1, 2]).unwrap();
            let arrived: Vec<u32> = known.order().collect();
            let place = |rank: Option<u32>| rank.map(|rank| arrived[rank as usize]);
            assert!(ranks.iter().map(place).eq(expected.iter().copied()));
            let among = known.among(&batches(&now_column, rows).in_one_piece().unwrap(), [1, 2]).unwrap();
            let mut values_of = vec![Vec::new(); known.len()];
            (0..)
                .zip(&expected)
                .for_each(|(value, place)| place.iter().for_each(|&at| values_of[at as usize].push(value)));
            let of = |place: u32| values_of[place as usize].iter().copied();
            assert!(among.first.iter().eq(known.order().map(|place| of(place).next())));
            let others = |(rank, place)| of(place).skip(1).map(move |value| (rank, value));
            assert_eq!(among.again, (0..).zip(known.order()).flat_map(others).collect::<Vec<_>>());
            assert!(!among.again.is_empty());
            let nobodys = (0..).zip(&expected).filter(|(_, place)| place.is_none()).map(|(value, _)| value);
            assert!(among.elsewhere.iter().copied().eq(nobodys));
        }
        let ordered = batches(&now_column, 30_000).finish([1, 2]).unwrap();
        let found = ordered.find_in(&known).unwrap();
        assert!(ordered.order().zip(found.iter()).all(|(row, found)| found == expected[row as usize]));
    }
    let none = identifiers(Int64Array::from(Vec::<i64>::new()));
    assert!(
        none.ranks_of(&batches(&numbers(&[1, 2]), 5).in_one_piece().unwrap(), [1, 2]).unwrap().iter().eq([None, None])
    );
    assert_eq!(none.among(&batches(&numbers(&[1, 2]), 5).in_one_piece().unwrap(), [1, 2]).unwrap().elsewhere, [0, 1]);
}

#[test]
fn nothing_is_fine() {
    let none = identifiers(Int64Array::from(Vec::<i64>::new()));
    assert!(none.is_empty());
    assert_eq!(none.repeated().unwrap(), 0);
}

/// A ledger reads as one type what arrived as another one: salts are of values.
#[test]
fn salts_are_of_values() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a", "a text that is longer than twelve bytes"]));
    let expected = salts(&texts).unwrap();
    assert!(expected[0] == expected[2] && expected[0] != expected[1]);
    for data_type in [DataType::LargeUtf8, DataType::Utf8View] {
        assert_eq!(salts(&cast(&texts, &data_type).unwrap()).unwrap(), expected, "{data_type}");
    }
    let mut builder = IdentifierBuilder::new(DataType::Utf8);
    builder.append(&texts).unwrap();
    let people = builder.finish([5, 6]).unwrap();
    assert_eq!(people.salts(&[3, 0]).unwrap(), [expected[3], expected[0]]);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(-7), None]));
    assert_eq!(salts(&numbers).unwrap()[0], salts(&numbers.slice(0, 1)).unwrap()[0], "with and without NULL");
}
