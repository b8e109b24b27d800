//! Random queries against the definition, row by row.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field};
use proptest::prelude::*;

use super::*;
use crate::estimate::metadata::{ReleaseMetadata, ValueMetadata};
use crate::estimate::{Distribution, Form, OriginalColumn};

/// A released row: group, the two intervals, their NULLs, the sensitive value.
#[derive(Debug, Clone)]
struct Row {
    group: usize,
    sensitive: i32,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    a: (Option<i32>, i32),
    x: (f64, f64),
    nulls: i32,
    counterfeits: i32,
}

fn column(name: &str, data_type: DataType, form: Form) -> OriginalColumn {
    let metadata = ReleaseMetadata::known(ValueMetadata::default());
    OriginalColumn { field: Arc::new(Field::new(name, data_type, true)), form, metadata }
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let a = (prop::option::weighted(0.8, 0..10), 0..10).prop_map(|(lo, length)| (lo, lo.unwrap_or(0) + length));
    let x = (0.0..5.0_f64, prop_oneof![Just(0.0), 0.1..5.0_f64]).prop_map(|(lo, length)| (lo, lo + length));
    let group = (a, x, 0..2, 0..2);
    prop::collection::vec(group, 1..6).prop_map(|groups| {
        groups.into_iter().map(|(a, x, nulls, counterfeits)| Group { a, x, nulls, counterfeits }).collect()
    })
}

fn comparison(
    people: &[(Option<i32>, f64, i32)],
    groups: &[Group],
    rows: &[Row],
    distribution: Distribution,
    sums: bool,
) -> Comparison {
    let size = |group: usize| rows.iter().filter(|row| row.group == group).count() as i32;
    let columns = vec![
        column("a", DataType::Int32, Form::Interval { nodes: false, nulls: false }),
        column("x", DataType::Float64, Form::Interval { nodes: false, nulls: true }),
        column("s", DataType::Int32, Form::Exact),
    ];
    let mut collector = Collector::try_new(columns, true, sums, true, distribution).unwrap();
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
    let batch = ReleaseBatch {
        attributes: &attributes,
        group: Some(&number),
        counts: Some((&counts.0, &counts.1)),
        alone: false,
    };
    collector.append_released(&batch, rows.len()).unwrap();
    collector.finish(None, None).unwrap()
}

/// Returns the weight of one of the ends of all intervals: `at(end)`.
fn weight_of_ends(intervals: &[(f64, f64, f64)]) -> impl Fn(f64) -> f64 {
    let wide = intervals.iter().filter(|(lo, hi, _)| lo != hi).count() as f64;
    let single: Vec<(f64, f64)> =
        intervals.iter().filter(|(lo, hi, _)| lo == hi).map(|&(lo, _, people)| (lo, people)).collect();
    let of_single = |at: f64| single.iter().filter(|(lo, _)| *lo == at).count() as f64;
    let most = single.iter().map(|&(at, _)| of_single(at)).fold(0.0, f64::max);
    let all = single.len() as f64;
    let share = if all > 0.0 { (2.0 * most / all - 1.0).max(0.0) * (wide / (wide + all)).powi(3) } else { 0.0 };
    let weight = move |at: f64, intervals: &[(f64, f64, f64)]| {
        let of = |&(lo, hi, people): &(f64, f64, f64)| match (lo == hi, lo == at, hi == at) {
            (true, true, _) => 0.5 + share * people,
            (false, a, b) => f64::from(u8::from(a || b)),
            _ => 0.0,
        };
        intervals.iter().map(of).sum::<f64>()
    };
    let intervals = intervals.to_vec();
    let total = wide * 2.0 + single.iter().map(|(_, people)| 0.5 + share * people).sum::<f64>();
    move |at| if total > 0.0 { weight(at, &intervals) / total } else { 0.0 }
}

/// Returns the share of an interval of `people` that lies in a range: one of them at each end, the others where the ends of all intervals are, and
/// evenly to 0.3 of their weight.
fn fitted_share(interval: (f64, f64, f64), range: (f64, f64), step: f64, all: &[(f64, f64, f64)]) -> f64 {
    let ((lo, hi, people), (from, to)) = (interval, range);
    let inside = |at: f64| f64::from(u8::from((from..=to).contains(&at)));
    if lo == hi {
        return inside(lo);
    }
    let first = all.iter().map(|interval| interval.0).fold(f64::INFINITY, f64::min);
    let last = all.iter().map(|interval| interval.1).fold(f64::NEG_INFINITY, f64::max);
    let weight = weight_of_ends(all);
    let mut ends: Vec<f64> = all.iter().flat_map(|interval| [interval.0, interval.1]).collect();
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let ends: Vec<f64> = ends.into_iter().filter(|end| (lo..=hi).contains(end)).collect();
    let even = |length: f64| 0.3 * length / (last - first + step);
    let whole = ends.iter().map(|&end| weight(end)).sum::<f64>() + even(hi - lo + step);
    let (from, to) = (from.max(lo), to.min(hi));
    // Ranges of whole numbers end at whole numbers.
    let part = if from <= to { even(to - from + step) } else { 0.0 };
    let part = part + ends.iter().filter(|&&end| (from..=to).contains(&end)).map(|&end| weight(end)).sum::<f64>();
    let rest = part / whole;
    if people >= 2.0 { (inside(lo) + inside(hi) + (people - 2.0) * rest) / people } else { rest }
}

/// Computes the number and sum of the selected people, by the paper or fitted values.
fn by_definition(
    query: &Query,
    axes: &[Axis],
    groups: &[Group],
    rows: &[Row],
    distribution: Distribution,
) -> (f64, f64) {
    let people = |row: &Row| {
        let size = rows.iter().filter(|other| other.group == row.group).count() as f64;
        size - f64::from(groups[row.group].counterfeits)
    };
    let whole: Vec<(f64, f64, f64)> = rows
        .iter()
        .filter_map(|row| {
            let (lo, hi) = groups[row.group].a;
            lo.map(|lo| (f64::from(lo), f64::from(hi), people(row)))
        })
        .collect();
    let measured: Vec<(f64, f64, f64)> =
        rows.iter().map(|row| (groups[row.group].x.0, groups[row.group].x.1, people(row))).collect();
    let range = |attribute: usize| query.ranges.iter().find(|range| range.0 == attribute).map(|&(_, lo, hi)| (lo, hi));
    let least = rows.iter().map(|row| groups[row.group].a).map(|(lo, hi)| lo.unwrap_or(hi)).min().unwrap_or(0);
    let (mut count, mut sum) = (0.0, 0.0);
    for row in rows {
        let group = &groups[row.group];
        let size = rows.iter().filter(|other| other.group == row.group).count() as f64;
        let people = size - f64::from(group.counterfeits);
        let mut weight = people / size;
        let fitted = distribution == Distribution::Fitted;
        if let (Some(range), Some(lo), true) = (range(0), group.a.0, fitted) {
            weight *= fitted_share((f64::from(lo), f64::from(group.a.1), people), range, 1.0, &whole);
        } else if let Some((from, to)) = range(0) {
            let values: Vec<i32> = (group.a.0.unwrap_or_else(|| least.min(group.a.1))..=group.a.1).collect();
            let all = values.len() + usize::from(group.a.0.is_none());
            let inside = values.iter().filter(|&&value| (from..=to).contains(&f64::from(value))).count();
            let mut share = inside as f64 / all as f64;
            if group.a.0.is_none() && fitted && people >= 2.0 {
                // One has no value, and one the greatest.
                let at_hi = f64::from(u8::from((from..=to).contains(&f64::from(group.a.1))));
                share = (at_hi + (people - 2.0) * share) / people;
            }
            weight *= share;
        }
        if let (Some(range), true) = (range(1), fitted) {
            weight *= fitted_share((group.x.0, group.x.1, people), range, 0.0, &measured);
        } else if let Some((from, to)) = range(1) {
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
        sensitive in prop_oneof![prop::collection::vec(1..6, 30), prop::collection::vec(2..3, 30)],
        // Groups that are alike are looked at once.
        copies in 1..5_usize,
        seed in any::<u64>(),
        distribution in prop_oneof![Just(Distribution::Fitted), Just(Distribution::Uniform)],
    ) {
        let groups = groups.repeat(copies);
        // Every group has three rows more than it has counterfeits, and no NULLs that would be told twice.
        let rows: Vec<Row> = (0..groups.len() * 4)
            .map(|i| Row { group: i % groups.len(), sensitive: sensitive[i % 30] })
            .collect();
        let groups: Vec<Group> = groups.into_iter().map(|group| Group { nulls: 0, ..group }).collect();
        let mut scratch = Scratch::default();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        for aggregate in [Aggregate::Count, Aggregate::Sum, Aggregate::Avg] {
            let predicates = if seed.is_multiple_of(2) { None } else { Some(1) };
            let workload = Workload { queries: BATCH, selectivity: 0.3, aggregate, predicates };
            let comparison = comparison(&people, &groups, &rows, distribution, aggregate != Aggregate::Count);
            let queries: Vec<Query> =
                (0..BATCH).map(|_| Query::draw(&workload, &comparison.axes, true, &mut rng)).collect();
            let queries = &queries[..BATCH - (seed % 3) as usize];
            let estimates = comparison.rows.answers(queries, aggregate, &comparison.axes, &mut scratch);
            for (query, estimate) in queries.iter().zip(estimates) {
                let selected = people.iter().filter(|(a, x, s)| {
                    query.ranges.iter().all(|&(attribute, lo, hi)| match attribute {
                        0 => a.is_some_and(|a| (lo..=hi).contains(&f64::from(a))),
                        1 => (lo..=hi).contains(x),
                        _ => (lo..=hi).contains(&f64::from(*s)),
                    })
                });
                let (number, total) = selected.fold((0.0, 0.0), |(n, sum), person| (n + 1.0, sum + f64::from(person.2)));
                let (count, sum) = by_definition(query, &comparison.axes, &groups, &rows, distribution);
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
