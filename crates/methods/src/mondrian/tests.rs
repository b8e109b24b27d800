//! The guarantees, against definitions computed naively from released tables.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::release::{Intervals, View};
use crate::sample::{NUMBER, Table, bands};
use crate::{AnyMethod, Share};

type Interval = (Option<i32>, Option<i32>);

/// A group as it is published: its intervals and its sensitive values.
#[derive(Debug, Default, Clone)]
struct Group {
    intervals: Vec<Interval>,
    values: Vec<i32>,
    rows: usize,
}

fn groups(batch: &RecordBatch, quasi: usize) -> Vec<Group> {
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    let numbers = batch.column_by_name("group_id").unwrap().as_primitive::<Int64Type>().clone();
    let sizes = batch.column_by_name("group_size").unwrap().as_primitive::<Int32Type>().clone();
    let values = batch.column_by_name("s").map(|column| cast(column, &NUMBER).unwrap());
    for row in 0..batch.num_rows() {
        let group = groups.entry(numbers.value(row)).or_default();
        let intervals = (0..quasi).map(|j| {
            let interval = batch.column_by_name(&format!("q{j}")).unwrap().as_struct();
            let end = |name: &str| {
                let end = interval.column_by_name(name).unwrap().as_primitive::<Int32Type>();
                end.is_valid(row).then(|| end.value(row))
            };
            (end("lo"), end("hi"))
        });
        let intervals: Vec<Interval> = intervals.collect();
        assert!(group.rows == 0 || group.intervals == intervals, "one group, one set of intervals");
        group.intervals = intervals;
        group.rows += 1;
        group.values.extend(values.as_ref().map(|values| values.as_primitive::<Int32Type>().value(row)));
    }
    for row in 0..batch.num_rows() {
        assert_eq!(groups[&numbers.value(row)].rows, sizes.value(row) as usize);
    }
    groups.into_values().collect()
}

fn counts(values: &[i32]) -> BTreeMap<i32, f64> {
    let mut counts = BTreeMap::new();
    values.iter().for_each(|&value| *counts.entry(value).or_default() += 1.0);
    counts
}

/// Computes the earth mover's distance by its definitions.
fn distance(part: &[i32], whole: &[i32], ordered: bool) -> f64 {
    let (p, q) = (counts(part), counts(whole));
    let share = |of: &BTreeMap<i32, f64>, value: &i32, all: usize| of.get(value).copied().unwrap_or(0.0) / all as f64;
    let differences: Vec<f64> =
        q.keys().map(|value| share(&p, value, part.len()) - share(&q, value, whole.len())).collect();
    if !ordered {
        return differences.iter().map(|difference| difference.abs()).sum::<f64>() / 2.0;
    }
    let carried = (0..differences.len()).map(|i| differences[..=i].iter().sum::<f64>().abs());
    carried.sum::<f64>() / (q.len().max(2) - 1) as f64
}

/// Returns true if rows with these sensitive values may be a group.
fn keeps(params: &Mondrian, values: &[i32], rows: usize, whole: &[i32], ordered: bool) -> bool {
    let counts = counts(values);
    let n = values.len() as f64;
    let diverse = params.l.is_none_or(|l| match params.diversity.unwrap_or_default() {
        Diversity::Distinct => counts.len() >= l,
        Diversity::Frequency => counts.values().all(|count| count * l as f64 <= n),
        Diversity::Entropy => -counts.values().map(|c| c / n * (c / n).ln()).sum::<f64>() >= (l as f64).ln() - 1e-6,
    });
    rows >= params.k && diverse && params.t.is_none_or(|t| distance(values, whole, ordered) <= t.get() + 1e-6)
}

fn params() -> impl Strategy<Value = Mondrian> {
    let diversity = prop_oneof![Just(Diversity::Frequency), Just(Diversity::Distinct), Just(Diversity::Entropy)];
    let cuts = prop_oneof![Just(Cuts::Tight), Just(Cuts::Median)];
    let fair = prop_oneof![3 => Just(false), 2 => Just(true)];
    (1_usize..7, prop::option::of(2_usize..4), diversity, prop::option::of(0.0..0.6_f64), cuts, fair).prop_map(
        |(k, l, diversity, t, cuts, fair)| Mondrian {
            k,
            l: if fair { l.or(Some(2)) } else { l },
            diversity: Some(if fair { Diversity::Frequency } else { diversity }),
            t: t.filter(|_| !fair).map(|t| Share::try_new("t", t).unwrap()),
            cuts,
            fair,
        },
    )
}

prop_compose! {
    /// Generates skewed values, ties, NULLs, one-value columns, single rows, all-equal rows.
    fn table()(
        rows in prop_oneof![Just(0_usize), Just(1), 2..90_usize],
        domains in prop::collection::vec(prop_oneof![Just(1), 2..4_i32, Just(40)], 1..4),
        values in 1..6_i32,
        nulls in any::<bool>(),
        categories in any::<bool>(),
        tree in any::<bool>(),
        ids in any::<bool>(),
        seed in any::<u64>(),
    ) -> Table {
        use rand::{Rng, SeedableRng};
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let quasi = domains.iter().map(|&domain| (0..rows).map(|_| {
            let value = rng.random_range(0..domain);
            (!nulls || rng.random_range(0..8) > 0).then_some(if rng.random_bool(0.5) { value / 2 } else { value })
        }).collect()).collect();
        let sensitive = (0..rows).map(|_| rng.random_range(0..values).min(rng.random_range(0..values))).collect();
        Table {
            quasi, sensitive: Some(sensitive), categories, within: None, ids,
            hierarchies: if tree { bands("q0", 40, 4) } else { Vec::new() },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_group_keeps_what_was_promised(table in table(), params in params(), seed in 0_u64..9) {
        let whole = table.sensitive.clone().unwrap();
        let ordered = !table.categories;
        let batch = match table.publish(&AnyMethod::Mondrian(params.clone()), View::Public, seed) {
            Ok(batch) => batch,
            Err(Error::Refused(message)) => {
                prop_assert!(!keeps(&params, &whole, table.rows(), &whole, ordered), "{message}");
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(table.rows() == 0 || keeps(&params, &whole, table.rows(), &whole, ordered));
        // Every row once: of each combination of values, a release has as many rows, and covers them.
        prop_assert_eq!(batch.num_rows(), table.rows());
        let groups = groups(&batch, table.quasi.len());
        prop_assert_eq!(counts(&groups.iter().flat_map(|group| group.values.clone()).collect::<Vec<_>>()), counts(&whole));
        for group in &groups {
            prop_assert!(keeps(&params, &group.values, group.rows, &whole, ordered), "{group:?}");
        }
        for row in 0..table.rows() {
            let covers = |group: &&Group| {
                let columns = group.intervals.iter().zip(&table.quasi);
                group.values.contains(&whole[row]) && columns.clone().all(|(&(lo, hi), column)| lo <= column[row] && column[row] <= hi)
            };
            prop_assert!(groups.iter().any(|group| covers(&group)));
        }
    }

    /// Nothing depends on the order of arrival, nor on the number of threads.
    #[test]
    fn the_order_of_arrival_does_not_matter(table in table(), params in params(), seed in any::<u64>()) {
        use rand::seq::SliceRandom;
        use rand::SeedableRng;
        let table = Table { ids: false, ..table };
        let mut order: Vec<usize> = (0..table.rows()).collect();
        order.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
        let method = AnyMethod::Mondrian(params);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let a = one.install(|| table.publish(&method, View::Public, seed));
        let b = table.permuted(&order).publish(&method, View::Public, seed);
        match (a, b) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert_eq!(a.unwrap_err().to_string(), b.unwrap_err().to_string()),
        }
    }

    /// No allowed boundary between two values is left that makes the release tighter.
    #[test]
    fn no_better_cut_is_left(table in table(), params in params(), seed in 0_u64..9) {
        let table = Table { hierarchies: Vec::new(), ..table };
        let params = Mondrian { cuts: Cuts::Tight, fair: false, ..params };
        let Ok((release, _)) = table.anonymize(&AnyMethod::Mondrian(params.clone()), seed) else { return Ok(()) };
        let (microdata, groups) = (&release.microdata, &release.groups);
        let whole: Vec<i32> = microdata.sensitive_codes.iter().map(|code| code as i32).collect();
        let d = microdata.quasi.len();
        let loss = |rows: &[u32]| -> f32 {
            let extent = |j: usize| {
                let codes = rows.iter().map(|&row| microdata.quasi_at(row, j));
                let (lo, hi) = (codes.clone().min().unwrap(), codes.max().unwrap());
                let domain = &microdata.quasi[j].domain;
                (domain.extent(lo, hi) + (hi - lo) as f32 / (domain.len().max(2) - 1) as f32) / 2.0
            };
            rows.len() as f32 * (0..d).map(extent).sum::<f32>()
        };
        for group in 0..groups.len() {
            let members = &groups.members[groups.range(group)];
            for j in 0..d {
                let boundaries: BTreeSet<u32> = members.iter().map(|&row| microdata.quasi_at(row, j)).collect();
                for boundary in boundaries {
                    let (low, high): (Vec<u32>, Vec<u32>) =
                        members.iter().partition(|&&row| microdata.quasi_at(row, j) <= boundary);
                    let allowed = [&low, &high].into_iter().all(|side| {
                        let values: Vec<i32> = side.iter().map(|&row| whole[row as usize]).collect();
                        !side.is_empty() && keeps(&params, &values, side.len(), &whole, !table.categories)
                            // Where the two definitions of "at most t" differ by rounding, both answers are right.
                            && params.t.is_none_or(|t| distance(&values, &whole, !table.categories) < t.get() - 1e-6)
                            && (params.diversity != Some(Diversity::Entropy) || params.l.is_none())
                    });
                    if allowed {
                        prop_assert!(loss(&low) + loss(&high) > loss(members) * (1.0 - 1e-4) - 1e-6);
                    }
                }
            }
        }
    }
}

proptest! {
    /// With k alone, who is with whom says nothing about sensitive values: with other values, groups are the same.
    #[test]
    fn sensitive_values_play_no_part_in_k_anonymity(table in table(), k in 2_usize..6, seed in 0_u64..9) {
        let table = Table { ids: true, ..table };
        let mut other = table.clone();
        other.sensitive.iter_mut().for_each(|values| values.reverse());
        let method = AnyMethod::Mondrian(mondrian(k));
        let groups = |table: &Table| table.anonymize(&method, seed).map(|(release, _)| {
            (release.groups.members, release.groups.starts, release.body.intervals().unwrap().to_vec())
        });
        match (groups(&table), groups(&other)) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert!(a.is_err() && b.is_err()),
        }
    }
}

fn mondrian(k: usize) -> Mondrian {
    Mondrian::new(k)
}

fn some(values: &[i32]) -> Vec<Option<i32>> {
    values.iter().copied().map(Some).collect()
}

/// The six patients of LeFevre et al., Figure 3: age, sex (0 male, 1 female), zip, with k = 2, give the table of Figure 4.
#[test]
fn the_patients_of_the_paper() {
    let table = Table {
        quasi: vec![
            some(&[25, 25, 26, 27, 27, 28]),
            some(&[0, 1, 0, 0, 1, 0]),
            some(&[53711, 53712, 53711, 53710, 53712, 53711]),
        ],
        ..Table::default()
    };
    let batch = table.publish(&AnyMethod::Mondrian(mondrian(2)), View::Public, 1).unwrap();
    let mut intervals: Vec<_> = groups(&batch, 3).into_iter().map(|group| (group.intervals, group.rows)).collect();
    intervals.sort();
    let exactly = |value: i32| (Some(value), Some(value));
    let between = |lo: i32, hi: i32| (Some(lo), Some(hi));
    assert_eq!(
        intervals,
        [
            (vec![between(25, 26), exactly(0), exactly(53711)], 2),
            (vec![between(25, 27), exactly(1), exactly(53712)], 2),
            (vec![between(27, 28), exactly(0), between(53710, 53711)], 2),
        ]
    );
    // The median cut of the attribute that comes first among equal spreads leaves two groups of three.
    let median = Mondrian { cuts: Cuts::Median, ..mondrian(2) };
    let batch = table.publish(&AnyMethod::Mondrian(median), View::Public, 1).unwrap();
    let sizes: Vec<_> = groups(&batch, 3).iter().map(|group| (group.intervals[0], group.rows)).collect();
    assert!(sizes.contains(&((Some(25), Some(26)), 3)) && sizes.contains(&((Some(27), Some(28)), 3)), "{sizes:?}");
}

/// Seven rows share a value and one has another: no boundary allows k = 2, a relaxed cut leaves six rows as they are.
#[test]
fn a_relaxed_cut_saves_what_it_can() {
    let table = Table { quasi: vec![some(&[1, 1, 1, 1, 1, 1, 1, 2])], ..Table::default() };
    // The median cut leaves four rows, and then two more.
    for (cuts, exact) in [(Cuts::Tight, vec![6]), (Cuts::Median, vec![2, 4])] {
        let batch = table.publish(&AnyMethod::Mondrian(Mondrian { cuts, ..mondrian(2) }), View::Public, 3).unwrap();
        let mut sizes: Vec<_> = groups(&batch, 1).iter().map(|group| (group.intervals[0], group.rows)).collect();
        sizes.sort_unstable();
        let exact = exact.into_iter().map(|rows| ((Some(1), Some(1)), rows));
        assert_eq!(sizes, exact.chain([((Some(1), Some(2)), 2)]).collect::<Vec<_>>(), "{cuts:?}");
    }
}

/// A hierarchy in bands of 4 and 16: rows 3 and 4 are neighbours, but together they are published as 0 to 15.
#[test]
fn nodes_are_released() {
    let table = Table { quasi: vec![some(&[0, 3, 4, 7, 20, 21])], hierarchies: bands("q0", 64, 4), ..Table::default() };
    let batch = table.publish(&AnyMethod::Mondrian(mondrian(2)), View::Public, 1).unwrap();
    let column = batch.column_by_name("q0").unwrap().as_struct();
    let nodes = column.column_by_name("node").unwrap().as_string::<i32>().clone();
    let mut found: Vec<_> = groups(&batch, 1).iter().map(|group| group.intervals[0]).collect();
    found.sort_unstable();
    assert_eq!(found, [(Some(0), Some(3)), (Some(4), Some(7)), (Some(20), Some(23))]);
    let names: BTreeSet<_> = nodes.iter().flatten().collect();
    assert_eq!(names, BTreeSet::from(["0+4", "4+4", "20+4"]));
    // One row of three bands each cannot be told apart below the next level.
    let spread = Table { quasi: vec![some(&[0, 4, 8, 12, 16, 20])], ..table };
    let batch = spread.publish(&AnyMethod::Mondrian(mondrian(4)), View::Public, 1).unwrap();
    assert_eq!(groups(&batch, 1)[0].intervals, [(Some(0), Some(63))]);
}

/// More leaves than there are positions of two bytes: groups are the same beside them, and nodes of theirs are released.
#[test]
fn hierarchies_of_very_many_leaves() {
    const LEAVES: i32 = 70_000;
    let rows = 0..1200;
    let ages: Vec<i32> = rows.clone().map(|row| row * 7919 % 97).collect();
    let codes: Vec<i32> = rows.clone().map(|row| row * 7919 % LEAVES).collect();
    let sensitive = Some(rows.map(|row| row * 31 % 7).collect());
    let hierarchies = bands("q1", LEAVES, 300);
    let fair = Mondrian { l: Some(2), fair: true, ..mondrian(5) };
    for params in [mondrian(5), Mondrian { cuts: Cuts::Median, ..mondrian(5) }, fair] {
        let method = AnyMethod::Mondrian(params);
        let found = |quasi: Vec<Vec<Option<i32>>>, hierarchies: &[Vec<String>]| {
            let d = quasi.len();
            let table = Table {
                quasi,
                sensitive: sensitive.clone(),
                hierarchies: hierarchies.to_vec(),
                ids: true,
                ..Table::default()
            };
            let batch = table.publish(&method, View::Public, 1).unwrap();
            let mut groups: Vec<_> = groups(&batch, d).into_iter().map(|group| (group.intervals, group.rows)).collect();
            groups.sort();
            assert!(groups.len() > 10 && groups.iter().all(|(_, rows)| *rows >= 5));
            groups
        };
        let alone = found(vec![some(&ages)], &[]);
        let beside = found(vec![some(&ages), some(&vec![LEAVES - 1; ages.len()])], &hierarchies);
        let last = (Some(LEAVES - 1), Some(LEAVES - 1));
        let expected = alone.into_iter().map(|(intervals, rows)| ([intervals, vec![last]].concat(), rows));
        assert!(beside.into_iter().eq(expected));
        for (intervals, _) in found(vec![some(&ages), some(&codes)], &hierarchies) {
            let (Some(lo), Some(hi)) = intervals[1] else { panic!("an interval without ends") };
            let is_band =
                lo == hi || (lo % 300 == 0 && hi == (lo + 299).min(LEAVES - 1)) || (lo, hi) == (0, LEAVES - 1);
            assert!(is_band, "{lo} {hi}");
        }
    }
}

/// Every value can be cut from the next, beyond what two bytes tell apart. One is far from all others.
#[test]
fn every_value_can_be_cut_from_the_next() {
    for (values, cuts) in [(45_000, Cuts::Tight), (60_000, Cuts::Median), (61_000, Cuts::Tight)] {
        let value = |place: i32| if place == values - 1 { i32::MAX } else { place };
        let quasi = vec![(0..2 * values).map(|row| Some(value(row % values))).collect()];
        let table = Table { quasi, ..Table::default() };
        let params = Mondrian { cuts, ..mondrian(2) };
        let batch = table.publish(&AnyMethod::Mondrian(params), View::Public, 1).unwrap();
        let found = groups(&batch, 1);
        assert!(found.iter().all(|group| group.intervals[0].0 == group.intervals[0].1));
        assert_eq!(found.len(), values as usize);
    }
}

#[test]
fn malformed_hierarchies_are_refused_by_name_without_values() {
    type Change<'a> = &'a dyn Fn(&mut Vec<Vec<String>>);
    let base = |change: Change<'_>| {
        let mut hierarchies = bands("q0", 16, 2);
        change(&mut hierarchies);
        let table = Table { quasi: vec![some(&[5, 9, 11, 5])], hierarchies, ..Table::default() };
        table.publish(&AnyMethod::Mondrian(mondrian(2)), View::Public, 1).unwrap_err().to_string()
    };
    let cases: [(Change<'_>, &str); 7] = [
        (&|rows| rows.push(rows[3].clone()), "the hierarchy of q0 has 1 leaves twice"),
        (
            &|rows| rows[3][2] = rows[9][2].clone(),
            "the hierarchy of q0 does not nest: 1 values of level1 stand under several",
        ),
        (&|rows| drop(rows.remove(11)), "the hierarchy of q0 has no leaf for 1 of the column's values"),
        (
            &|rows| rows[4][1] = "eleven".into(),
            "the hierarchy of q0 has 1 of 16 leaves that are not of the column's type",
        ),
        (&|rows| rows[4][3] = String::new(), "the hierarchy of q0 skips a level in 1 rows"),
        (&|rows| rows[4][4] = String::new(), "the hierarchy of q0 has different numbers of levels: 1 of 16"),
        (
            &|rows| rows.iter_mut().for_each(|row| row[0] = "other".into()),
            "hierarchies has no rows for any quasi-identifier (q0)",
        ),
    ];
    for (change, expected) in cases {
        let message = base(change);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn refusals_say_what_would_do() {
    let table = Table { quasi: vec![some(&[1, 2, 3, 4, 5])], sensitive: Some(vec![1, 1, 1, 2, 2]), ..Table::default() };
    let error =
        |params: Mondrian| table.publish(&AnyMethod::Mondrian(params), View::Public, 1).unwrap_err().to_string();
    assert_eq!(error(mondrian(6)), "k = 6 but there are only 5 rows; lower k (k => 5 would do), or add rows");
    let l = |l: usize, diversity: Diversity| Mondrian { l: Some(l), diversity: Some(diversity), ..mondrian(1) };
    assert!(error(l(2, Diversity::Frequency)).contains("makes up 60.00% of them and at most 1/l = 50.00% is allowed"));
    assert!(error(l(3, Diversity::Distinct)).contains("has only 2 distinct values, so l can be at most 2"));
    assert!(error(l(2, Diversity::Entropy)).contains("too unevenly distributed for l = 2"));
}

/// Each part by itself, and its column published as it is.
#[test]
fn within_each_part() {
    let table = Table {
        quasi: vec![some(&[1, 2, 1, 2, 7, 8, 7, 8])],
        within: Some(vec![10, 10, 20, 20, 10, 10, 20, 20]),
        ..Table::default()
    };
    let batch = table.publish(&AnyMethod::Mondrian(mondrian(2)), View::Public, 1).unwrap();
    let parts = batch.column_by_name("w").unwrap().as_primitive::<Int32Type>();
    let numbers = batch.column_by_name("group_id").unwrap().as_primitive::<Int64Type>();
    let pairs: BTreeSet<_> = (0..8).map(|row| (numbers.value(row), parts.value(row))).collect();
    assert_eq!(pairs.len(), 4, "no group in two parts: {pairs:?}");
    assert_eq!(groups(&batch, 1).iter().filter(|group| group.intervals == [(Some(7), Some(8))]).count(), 2);
    let uneven = Table { within: Some(vec![10, 10, 10, 10, 10, 10, 10, 20]), ..table };
    let error = uneven.publish(&AnyMethod::Mondrian(mondrian(2)), View::Public, 1).unwrap_err().to_string();
    assert_eq!(
        error,
        "1 of the 2 parts by w cannot be released; the first of them: k = 2 but there are only 1 rows; add rows"
    );
}

proptest! {
    /// A release within parts keeps what releases of the parts would: distances are those to the part, by its own values.
    #[test]
    fn parts_keep_their_own_promises(table in table(), params in params(), seed in 0_u64..9) {
        let within: Vec<i32> = (0..table.rows()).map(|row| row as i32 % 3).collect();
        // The values of a part are its own, so that ranks among all values are not those in the part.
        let sensitive = table.sensitive.as_ref().unwrap().iter().zip(&within).map(|(value, part)| value + 100 * part);
        let table = Table { sensitive: Some(sensitive.collect()), within: Some(within.clone()), ids: true, ..table };
        let Ok((release, _)) = table.anonymize(&AnyMethod::Mondrian(params.clone()), seed) else { return Ok(()) };
        let people = release.microdata.people.as_ref().unwrap();
        let person = |row: u32| people.arrival[row as usize] as usize;
        let values = table.sensitive.as_ref().unwrap();
        for group in 0..release.groups.len() {
            let members: Vec<usize> =
                release.groups.members[release.groups.range(group)].iter().map(|&row| person(row)).collect();
            let part = within[members[0]];
            let whole: Vec<i32> = (0..values.len()).filter(|&row| within[row] == part).map(|row| values[row]).collect();
            let found: Vec<i32> = members.iter().map(|&row| values[row]).collect();
            prop_assert!(members.iter().all(|&row| within[row] == part));
            // Three-digit texts of one part stand in the order of their numbers, as one-digit ones do.
            prop_assert!(keeps(&params, &found, found.len(), &whole, !table.categories), "{found:?} of {whole:?}");
        }
    }
}

/// Large parts are cut by samples, whose ends are not those of the part: rows beyond them must stay on their side.
#[test]
fn large_parts_are_cut_as_well_as_small_ones() {
    use rand::{Rng, SeedableRng};
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut column = || (0..60_000).map(|_| Some(rng.random_range(0..1_000_000))).collect::<Vec<_>>();
    let table = Table { quasi: vec![column(), column()], ..Table::default() };
    let loss = |cuts: Cuts| {
        let (release, _) = table.anonymize(&AnyMethod::Mondrian(Mondrian { cuts, ..mondrian(10) }), 1).unwrap();
        release.mean_extent()
    };
    let (tight, median) = (loss(Cuts::Tight), loss(Cuts::Median));
    assert!(tight < 1.02 * median, "{tight} {median}");
    // Squares of ten rows would have sides of sqrt(10 / 60,000).
    assert!(tight < 2.0 * (10.0_f64 / 60_000.0).sqrt(), "{tight}");
}

/// A value far away from all others does not hide them behind itself.
#[test]
fn a_sentinel_does_not_stop_cuts() {
    let values = std::iter::once(-1_000_000_000).chain(0..30_000).map(Some).collect();
    let table = Table { quasi: vec![values], ..Table::default() };
    for cuts in [Cuts::Tight, Cuts::Median] {
        let (release, _) = table.anonymize(&AnyMethod::Mondrian(Mondrian { cuts, ..mondrian(5) }), 1).unwrap();
        assert!(release.groups.len() > 3000, "{cuts:?}: {}", release.groups.len());
    }
}

/// Every promise broken on purpose is found.
#[test]
fn broken_releases_are_caught() {
    let table = Table {
        quasi: vec![some(&[1, 2, 3, 4, 5, 6, 7, 8])],
        sensitive: Some(vec![1, 2, 1, 2, 1, 2, 1, 2]),
        ..Table::default()
    };
    let params = Mondrian { l: Some(2), t: Some(Share::try_new("t", 0.1).unwrap()), ..mondrian(2) };
    let judged = |params: &Mondrian, change: &dyn Fn(&mut Groups), first: Option<[u32; 2]>| {
        let (mut release, _) = table.anonymize(&AnyMethod::Mondrian(Mondrian { t: None, ..mondrian(2) }), 1).unwrap();
        release.groups.sensitive =
            release.groups.members.iter().map(|&row| release.microdata.sensitive_codes.at(row)).collect();
        change(&mut release.groups);
        let mut intervals = release.body.intervals().unwrap().to_vec();
        intervals[0] = first.unwrap_or(intervals[0]);
        let intervals = Intervals::of_groups(release.microdata.quasi.len(), &intervals);
        check::check(&release.microdata, &release.groups, &intervals, params)
            .map_or_else(|error| error.to_string(), |()| "fine".into())
    };
    let verdict = |params: &Mondrian, change: &dyn Fn(&mut Groups)| judged(params, change, None);
    assert_eq!(verdict(&params, &|_| {}), "fine");
    assert!(verdict(&mondrian(3), &|_| {}).contains("less than k rows"));
    assert!(verdict(&params, &|groups| groups.sensitive[0] ^= 1).contains("another's sensitive value"));
    assert!(judged(&params, &|_| {}, Some([7, 7])).contains("does not cover"));
    assert_ne!(verdict(&params, &|groups| groups.members[0] = groups.members[7]), "fine");
    // Two neighbours of one value in one group, and two of the other in another.
    let same = |groups: &mut Groups| {
        groups.members = vec![0; 8];
        groups.starts = vec![0, 4, 8];
    };
    let swapped = |params: &Mondrian| {
        let (release, _) = table.anonymize(&AnyMethod::Mondrian(mondrian(2)), 1).unwrap();
        let mut rows: Vec<u32> = (0..8).collect();
        rows.sort_by_key(|&row| release.microdata.sensitive_codes.at(row));
        let mut groups = Groups::default();
        same(&mut groups);
        groups.sensitive = rows.iter().map(|&row| release.microdata.sensitive_codes.at(row)).collect();
        groups.members = rows;
        check::check(&release.microdata, &groups, &Intervals::of_groups(1, &[[0, 7]; 2]), params)
            .unwrap_err()
            .to_string()
    };
    assert!(swapped(&params).contains("not l-diverse"));
    assert!(swapped(&Mondrian { l: None, ..params }).contains("not t-close"));
}

/// An interval tighter than the node it stands for says more than was promised.
#[test]
fn intervals_that_are_no_nodes_are_caught() {
    let table = Table { quasi: vec![some(&[0, 1, 2, 0])], hierarchies: bands("q0", 16, 4), ..Table::default() };
    let (release, _) = table.anonymize(&AnyMethod::Mondrian(mondrian(4)), 1).unwrap();
    assert_eq!(release.body.intervals().unwrap().to_vec(), [[0, 3]]);
    let error = check::check(&release.microdata, &release.groups, &Intervals::of_groups(1, &[[0, 2]]), &mondrian(4))
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a value of the hierarchy"), "{error}");
}

#[test]
fn distances_are_those_of_the_definition() {
    let whole = vec![0, 0, 0, 1, 2, 2, 5, 5, 5, 9];
    for part in [vec![0], vec![9, 9], vec![0, 1, 2], vec![5, 2, 5, 0], whole.clone()] {
        for categories in [false, true] {
            let table = Table {
                quasi: vec![vec![Some(1); whole.len()]],
                sensitive: Some(whole.clone()),
                categories,
                ..Table::default()
            };
            let (microdata, _) = table.encode([1, 2]).unwrap();
            let params = Mondrian { t: Some(Share::try_new("t", 1.0).unwrap()), ..mondrian(1) };
            let principle = principle::Principle::try_new(&params, &microdata).unwrap();
            // Codes are ranks, of numbers and of one-digit texts alike.
            let distinct: Vec<i32> = counts(&whole).into_keys().collect();
            let codes: Vec<u32> = part.iter().map(|value| distinct.binary_search(value).unwrap() as u32).collect();
            let found = principle.distance(&codes, &mut principle.counts()).unwrap();
            assert!((found - distance(&part, &whole, !categories)).abs() < 1e-12, "{part:?} {categories}: {found}");
        }
    }
}

#[test]
fn more_values_than_are_counted_in_arrays() {
    let n = 70_000;
    let table = Table {
        quasi: vec![(0..n).map(|i| Some(i % 1000)).collect(), (0..n).map(Some).collect()],
        sensitive: Some((0..n).map(|i| if i % 4 == 0 { 0 } else { i }).collect()),
        ..Table::default()
    };
    let params = Mondrian { l: Some(3), t: Some(Share::try_new("t", 0.4).unwrap()), ..mondrian(5) };
    let batch = table.publish(&AnyMethod::Mondrian(params.clone()), View::Private, 1);
    assert!(batch.is_ok(), "{:?}", batch.err());
    let (release, _) = table.anonymize(&AnyMethod::Mondrian(params), 1).unwrap();
    assert!(release.groups.len() > 3000, "{}", release.groups.len());
    assert_eq!(release.microdata.quasi[0].field.data_type(), &DataType::Int32);
}
