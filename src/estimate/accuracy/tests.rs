//! Random queries against the definition, row by row.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field};
use proptest::prelude::*;

use super::*;
use crate::estimate::{Form, OriginalColumn};

/// A released row: group, the two intervals, their NULLs, the sensitive value.
#[derive(Debug, Clone)]
struct Row {
    group: usize,
    sensitive: i32,
}

#[derive(Debug, Clone)]
struct Group {
    a: (Option<i32>, i32),
    x: (f64, f64),
    nulls: i32,
    counterfeits: i32,
}

fn column(name: &str, data_type: DataType, form: Form) -> OriginalColumn {
    OriginalColumn { field: Arc::new(Field::new(name, data_type, true)), form, order: None, trees: None }
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let a = (prop::option::weighted(0.8, 0..10), 0..10).prop_map(|(lo, length)| (lo, lo.unwrap_or(0) + length));
    let x = (0.0..5.0_f64, prop_oneof![Just(0.0), 0.1..5.0_f64]).prop_map(|(lo, length)| (lo, lo + length));
    let group = (a, x, 0..2, 0..2);
    prop::collection::vec(group, 1..6).prop_map(|groups| {
        groups.into_iter().map(|(a, x, nulls, counterfeits)| Group { a, x, nulls, counterfeits }).collect()
    })
}

fn comparison(people: &[(Option<i32>, f64, i32)], groups: &[Group], rows: &[Row]) -> Comparison {
    let size = |group: usize| rows.iter().filter(|row| row.group == group).count() as i32;
    let columns = vec![
        column("a", DataType::Int32, Form::Interval { nodes: false, nulls: false }),
        column("x", DataType::Float64, Form::Interval { nodes: false, nulls: true }),
        column("s", DataType::Int32, Form::Exact),
    ];
    let mut collector = Collector::try_new(columns, true, true, true).unwrap();
    let original: Vec<ArrayRef> = vec![
        Arc::new(people.iter().map(|person| person.0).collect::<Int32Array>()),
        Arc::new(people.iter().map(|person| Some(person.1)).collect::<Float64Array>()),
        Arc::new(people.iter().map(|person| Some(person.2)).collect::<Int32Array>()),
    ];
    collector.append_original(&original).unwrap();
    let of = |f: &dyn Fn(&Row) -> Option<i32>| -> ArrayRef { Arc::new(rows.iter().map(f).collect::<Int32Array>()) };
    let float = |f: &dyn Fn(&Row) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(rows.iter().map(f))) };
    let attributes = vec![
        of(&|row| groups[row.group].a.0),
        of(&|row| Some(groups[row.group].a.1)),
        float(&|row| groups[row.group].x.0),
        float(&|row| groups[row.group].x.1),
        of(&|row| Some(groups[row.group].nulls)),
        of(&|row| Some(row.sensitive)),
    ];
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.group as i64 * 7)));
    let counts = (of(&|row| Some(size(row.group))), of(&|row| Some(groups[row.group].counterfeits)));
    let batch = ReleaseBatch { attributes: &attributes, group: Some(&number), counts: Some((&counts.0, &counts.1)) };
    collector.append_released(&batch, rows.len()).unwrap();
    collector.finish(None).unwrap()
}

/// Number and sum of the people that a query selects, as the paper defines them.
fn by_definition(query: &Query, axes: &[Axis], groups: &[Group], rows: &[Row]) -> (f64, f64) {
    let range = |attribute: usize| query.ranges.iter().find(|range| range.0 == attribute).map(|&(_, lo, hi)| (lo, hi));
    let least = rows.iter().map(|row| groups[row.group].a).map(|(lo, hi)| lo.unwrap_or(hi)).min().unwrap_or(0);
    let (mut count, mut sum) = (0.0, 0.0);
    for row in rows {
        let group = &groups[row.group];
        let size = rows.iter().filter(|other| other.group == row.group).count() as f64;
        let people = size - f64::from(group.counterfeits);
        let mut weight = people / size;
        if let Some((from, to)) = range(0) {
            let values: Vec<i32> = (group.a.0.unwrap_or_else(|| least.min(group.a.1))..=group.a.1).collect();
            let all = values.len() + usize::from(group.a.0.is_none());
            let inside = values.iter().filter(|&&value| (from..=to).contains(&f64::from(value))).count();
            weight *= inside as f64 / all as f64;
        }
        if let Some((from, to)) = range(1) {
            let (lo, hi) = group.x;
            let inside = match lo == hi {
                true => f64::from(u8::from((from..=to).contains(&lo))),
                false => (hi.min(to) - lo.max(from)).max(0.0) / (hi - lo),
            };
            weight *= inside;
        }
        if let Some((from, to)) = range(2) {
            weight *= f64::from(u8::from((from..=to).contains(&f64::from(row.sensitive))));
        }
        count += weight;
        sum += weight * f64::from(row.sensitive);
    }
    assert_eq!(axes.len(), 3);
    (count, sum)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn queries_are_answered_as_defined(
        people in prop::collection::vec((prop::option::weighted(0.9, 0..20), 0.0..10.0_f64, 1..6), 1..40),
        groups in groups(),
        sensitive in prop::collection::vec(1..6, 30),
        seed in any::<u64>(),
    ) {
        // Every group has three rows more than it has counterfeits, and no NULLs that would be told twice.
        let rows: Vec<Row> = (0..groups.len() * 4)
            .map(|i| Row { group: i % groups.len(), sensitive: sensitive[i % 30] })
            .collect();
        let groups: Vec<Group> = groups.into_iter().map(|group| Group { nulls: 0, ..group }).collect();
        let comparison = comparison(&people, &groups, &rows);
        let mut scratch = Scratch::default();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for aggregate in [Aggregate::Count, Aggregate::Sum, Aggregate::Avg] {
            let predicates = if seed.is_multiple_of(2) { None } else { Some(1) };
            let workload = Workload { queries: 20, selectivity: 0.3, aggregate, predicates };
            let queries: Vec<Query> =
                (0..20).map(|_| Query::draw(&workload, &comparison.axes, true, &mut rng)).collect();
            let estimates = comparison.rows.answers(&queries, aggregate, &comparison.axes, &mut scratch);
            for (query, estimate) in queries.iter().zip(estimates) {
                let selected = people.iter().filter(|(a, x, s)| {
                    query.ranges.iter().all(|&(attribute, lo, hi)| match attribute {
                        0 => a.is_some_and(|a| (lo..=hi).contains(&f64::from(a))),
                        1 => (lo..=hi).contains(x),
                        _ => (lo..=hi).contains(&f64::from(*s)),
                    })
                });
                let (number, total) = selected.fold((0.0, 0.0), |(n, sum), person| (n + 1.0, sum + f64::from(person.2)));
                let (count, sum) = by_definition(query, &comparison.axes, &groups, &rows);
                let of = |count: f64, sum: f64| match aggregate {
                    Aggregate::Count => count,
                    Aggregate::Avg if count > 0.0 => sum / count,
                    _ => sum,
                };
                let actual = comparison.people.answer(query, aggregate, &comparison.axes, &mut scratch);
                prop_assert!((actual - of(number, total)).abs() < 1e-9, "{query:?}: {actual}");
                prop_assert!((estimate - of(count, sum)).abs() < 1e-9, "{query:?}: {estimate} instead of {}", of(count, sum));
            }
        }
    }
}
