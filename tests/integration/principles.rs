//! Measures of a released table from the table alone: k-anonymity, l-diversity, t-closeness.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type};

/// The strongest principles that all groups of a release keep. Counterfeits count as rows: a reader cannot tell them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Principles {
    /// Rows of the smallest group.
    pub k: usize,
    /// Fewest different sensitive values of a group.
    pub distinct: usize,
    /// Greatest share of a group that one sensitive value makes up, 0 to 1.
    pub most_frequent: f64,
    /// Least entropy of the sensitive values of a group, in natural units: that of `exp(entropy)` equally frequent values.
    pub entropy: f64,
    /// Greatest earth mover's distance of a group from the table, with equally distant values. It is 0 to 1.
    pub distance: f64,
    /// The same with values as far apart as their ranks, if all are numbers.
    pub ranked_distance: Option<f64>,
}

/// Measures the groups of a release, by its columns `group_id` and `sensitive`; `None` if it has no rows.
pub(crate) fn principles(batches: &[RecordBatch], sensitive: &str) -> Option<Principles> {
    let whole = concat_batches(&batches.first()?.schema(), batches).unwrap();
    let numbers = whole.column_by_name("group_id").unwrap().as_primitive::<Int64Type>();
    let values = cast(whole.column_by_name(sensitive).unwrap(), &DataType::Utf8).unwrap();
    let values = values.as_string::<i32>();
    let mut groups: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for row in 0..whole.num_rows() {
        groups.entry(numbers.value(row)).or_default().push(values.value(row));
    }
    let whole: Vec<&str> = values.iter().flatten().collect();
    let whole = shares(&whole);
    let ranks = by_number(&whole);
    let measured = groups.values().map(|values| {
        let shares = shares(values);
        Principles {
            k: values.len(),
            distinct: shares.len(),
            most_frequent: shares.values().copied().fold(0.0, f64::max),
            entropy: -shares.values().map(|share| share * share.ln()).sum::<f64>(),
            distance: whole.iter().map(|(value, share)| (share - of(&shares, value)).abs()).sum::<f64>() / 2.0,
            ranked_distance: ranks.as_ref().map(|order| ranked(&shares, &whole, order)),
        }
    });
    measured.reduce(|a, b| Principles {
        k: a.k.min(b.k),
        distinct: a.distinct.min(b.distinct),
        most_frequent: a.most_frequent.max(b.most_frequent),
        entropy: a.entropy.min(b.entropy),
        distance: a.distance.max(b.distance),
        ranked_distance: a.ranked_distance.zip(b.ranked_distance).map(|(a, b)| a.max(b)),
    })
}

fn shares<'a>(values: &[&'a str]) -> BTreeMap<&'a str, f64> {
    let mut shares = BTreeMap::new();
    values.iter().for_each(|&value| *shares.entry(value).or_insert(0.0) += 1.0 / values.len() as f64);
    shares
}

fn of(shares: &BTreeMap<&str, f64>, value: &str) -> f64 {
    shares.get(value).copied().unwrap_or(0.0)
}

/// Returns the values in the order of the numbers that they are.
fn by_number<'a>(values: &BTreeMap<&'a str, f64>) -> Option<Vec<&'a str>> {
    let numbers = values.keys().map(|&value| value.parse::<f64>().ok().map(|number| (number, value)));
    let mut numbers = numbers.collect::<Option<Vec<_>>>()?;
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(numbers.into_iter().map(|(_, value)| value).collect())
}

/// Returns the work of moving a distribution to another one along the order. It is a share of the longest way.
fn ranked(part: &BTreeMap<&str, f64>, whole: &BTreeMap<&str, f64>, order: &[&str]) -> f64 {
    let mut carried = 0.0;
    let work: f64 = order
        .iter()
        .map(|value| {
            carried += of(part, value) - of(whole, value);
            f64::abs(carried)
        })
        .sum();
    work / (order.len().max(2) - 1) as f64
}

fn made_of(groups: &[i64], values: &[&str]) -> Option<Principles> {
    let batch = RecordBatch::try_from_iter([
        ("group_id", Arc::new(Int64Array::from(groups.to_vec())) as ArrayRef),
        ("s", Arc::new(StringArray::from(values.to_vec()))),
    ]);
    principles(&[batch.unwrap()], "s")
}

/// By hand: groups {1, 1, 2} and {2, 9} of a table with shares 2/5, 2/5, 1/5.
#[test]
fn two_groups_by_hand() {
    let found = made_of(&[7, 7, 7, 3, 3], &["1", "1", "2", "2", "9"]).unwrap();
    assert_eq!((found.k, found.distinct), (2, 2));
    assert!((found.most_frequent - 2.0 / 3.0).abs() < 1e-12);
    let entropy = -(2.0_f64 / 3.0) * (2.0_f64 / 3.0).ln() - (1.0_f64 / 3.0) * (1.0_f64 / 3.0).ln();
    assert!((found.entropy - entropy).abs() < 1e-12);
    // {2, 9} against the whole: 2/5, 1/10 and 3/10 differ.
    assert!((found.distance - 0.4).abs() < 1e-12);
    // Carried: 2/5 from 1 to 2, then 3/10 from 2 to 9, over two steps.
    assert!((found.ranked_distance.unwrap() - 0.35).abs() < 1e-12);
}

#[test]
fn texts_have_no_ranks_and_nothing_keeps_nothing() {
    assert_eq!(made_of(&[1, 1], &["a", "b"]).unwrap().ranked_distance, None);
    assert_eq!(made_of(&[], &[]), None);
}
