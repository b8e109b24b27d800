//! The guarantee over chains of releases, and the paper's example.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::error::Error;
use crate::microdata::{Layout, Several, field_of_parts};
use crate::release::{COUNTERFEIT, Description, Published, RowOrder, Shape, View, schema};
use crate::state::SnapshotBuilder;

/// Identifier, quasi-identifiers, sensitive value.
pub(super) type Row = (i64, Vec<Option<i32>>, String);
/// Identifier -> signature.
pub(super) type Known = BTreeMap<i64, BTreeSet<String>>;

fn layout(quasi: usize, within: bool) -> Layout {
    let quasi = (0..quasi).map(|j| Arc::new(Field::new(format!("q{j}"), DataType::Int32, true))).collect();
    Layout {
        identifier: Some(Arc::new(Field::new("id", DataType::Int64, true))),
        quasi,
        sensitive: Some(Arc::new(Field::new("disease", DataType::Utf8, true))),
        within: within.then(|| Arc::new(Field::new("part", DataType::Int32, true))),
        other: Vec::new(),
        insensitive: Vec::new(),
    }
}

pub(super) fn encode(rows: &[Row], known: &Known, key: u64) -> Result<(Microdata, State)> {
    encode_within(rows, None, known, key)
}

/// Encodes rows; `parts` are those in which the rows are, if there are any.
pub(super) fn encode_within(
    rows: &[Row],
    parts: Option<Vec<i32>>,
    known: &Known,
    key: u64,
) -> Result<(Microdata, State)> {
    encode_beside(
        rows,
        parts,
        &Earlier { known, release: None, ring: None, regions: false, each: false, domain: &[] },
        key,
    )
}

/// Earlier releases.
pub(super) struct Earlier<'a> {
    pub known: &'a Known,
    /// The release in which somebody came, where that counts.
    pub release: Option<&'a dyn Fn(i64) -> i64>,
    /// Ring and own value of somebody, where people stay together.
    pub ring: Option<&'a dyn Fn(i64) -> (i64, String)>,
    /// True if rings are regions.
    pub regions: bool,
    /// True if values are pairs, each of whose parts is hidden by itself.
    pub each: bool,
    /// All values, where they are declared.
    pub domain: &'a [String],
}

pub(super) fn encode_beside(
    rows: &[Row],
    parts: Option<Vec<i32>>,
    earlier: &Earlier<'_>,
    key: u64,
) -> Result<(Microdata, State)> {
    let known = earlier.known;
    let mut layout = layout(rows.first().map_or(1, |row| row.1.len()), parts.is_some());
    if earlier.each {
        let parts = ["disease", "drug"].map(|name| Arc::new(Field::new(name, DataType::Utf8, true)));
        layout.sensitive = Some(Arc::new(field_of_parts(&parts, Several::Each)));
    }
    let mut columns: Vec<ArrayRef> = vec![Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>())];
    for j in 0..layout.quasi.len() {
        columns.push(Arc::new(rows.iter().map(|row| row.1[j]).collect::<Int32Array>()));
    }
    columns.push(Arc::new(rows.iter().map(|row| Some(row.2.as_str())).collect::<StringArray>()));
    columns.extend(parts.map(|parts| Arc::new(Int32Array::from(parts)) as ArrayRef));
    let fields: Vec<_> = layout.fields().cloned().collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();

    let mut signatures = ListBuilder::new(StringBuilder::new());
    for set in known.values() {
        signatures.append_value(set.iter().map(Some));
    }
    let mut previous = vec![
        ("id", Arc::new(known.keys().copied().collect::<Int64Array>()) as ArrayRef),
        ("signature", Arc::new(signatures.finish())),
    ];
    // Everybody here keeps their value; of who is not here, it does not matter.
    let now: BTreeMap<i64, &String> = rows.iter().map(|row| (row.0, &row.2)).collect();
    let own =
        known.iter().map(|(id, set)| now.get(id).copied().filter(|value| set.contains(*value)).or_else(|| set.first()));
    let own: StringArray = match earlier.ring {
        Some(ring) => known.keys().map(|&id| Some(ring(id).1)).collect(),
        None => own.collect(),
    };
    previous.push(("disease", Arc::new(own)));
    let mut kind = StateKind::Signatures;
    if let Some(release) = earlier.release {
        kind = StateKind::NumberedSignatures;
        let releases: Int64Array = known.keys().map(|&id| release(id)).collect();
        previous.push(("release", Arc::new(releases)));
    }
    if let Some(ring) = earlier.ring {
        kind = if earlier.regions { StateKind::Regions } else { StateKind::Rings };
        let rings: Int64Array = known.keys().map(|&id| ring(id).0).collect();
        previous.push(("ring", Arc::new(rings)));
    }
    let mut builder = SnapshotBuilder::try_new(layout, Some(kind))?;
    builder.microdata.append(&batch)?;
    builder.append_previous(&RecordBatch::try_from_iter(previous).unwrap())?;
    if !earlier.domain.is_empty() {
        let values: ArrayRef = Arc::new(earlier.domain.iter().map(Some).collect::<StringArray>());
        let values = RecordBatch::try_from_iter([("from_value", Arc::clone(&values)), ("to_value", values)]);
        builder.microdata.append_updates(&values.unwrap())?;
    }
    builder.finish([key, 1])
}

/// Returns the people 0, 1, 2, .. along one quasi-identifier, with two values in turn.
pub(super) fn in_a_row(people: i64) -> Vec<Row> {
    (0..people).map(|id| (id, vec![Some(id as i32)], if id % 2 == 0 { "a" } else { "b" }.to_owned())).collect()
}

pub(super) fn publish(rows: &[Row], known: &Known, params: &MInvariance, seed: u64) -> Result<Release> {
    let (microdata, state) = encode(rows, known, seed)?;
    params.anonymize(microdata, &state, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(seed))
}

/// Returns the private view as one batch.
pub(super) fn private(release: Release, seed: u64) -> RecordBatch {
    let layout = layout(release.microdata.quasi.len(), false);
    let description = Description::new("m_invariant", "{}".into(), "x".into(), None);
    let shape = Shape {
        view: View::Private,
        form: Form::Intervals,
        signatures: true,
        labels: false,
        rings: false,
        nodes: false,
        counted: false,
    };
    let schema = Arc::new(schema(&layout, shape, &description));
    let published = Published::new(release, schema, RowOrder::Random, &mut ChaCha20Rng::seed_from_u64(seed));
    published.batch(0, published.len()).unwrap()
}

/// Checks a release by its private table, and adds it to the publisher's knowledge.
pub(super) fn verify(batch: &RecordBatch, rows: &[Row], known: &mut Known, m: usize, withheld: usize) -> usize {
    let returning: BTreeSet<i64> = known.keys().copied().collect();
    let by_id: BTreeMap<i64, &Row> = rows.iter().map(|row| (row.0, row)).collect();
    let column = |name: &str| batch.column_by_name(name).unwrap().clone();
    let ids = column("id");
    let ids = ids.as_primitive::<Int64Type>();
    let disease = column("disease");
    let group = column("group_id");
    let group = group.as_primitive::<Int64Type>();
    let mut groups: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for i in 0..batch.num_rows() {
        groups.entry(group.value(i)).or_default().push(i);
    }
    let mut seen = BTreeSet::new();
    let mut counterfeits = 0;
    for (_, members) in groups {
        let values: BTreeSet<String> =
            members.iter().map(|&i| disease.as_string::<i32>().value(i).to_owned()).collect();
        assert_eq!(values.len(), members.len(), "a value twice in a group");
        assert!(values.len() >= m);
        let fake = members.iter().filter(|&&i| ids.is_null(i)).count();
        assert!(fake < members.len());
        for &i in &members {
            let of_group = column("counterfeits");
            assert_eq!(of_group.as_primitive::<datafusion::arrow::datatypes::Int32Type>().value(i) as usize, fake);
            assert_eq!(column("counterfeit").as_boolean().value(i), ids.is_null(i));
            if ids.is_null(i) {
                counterfeits += 1;
                continue;
            }
            assert!(seen.insert(ids.value(i)), "a row twice");
            let row = by_id[&ids.value(i)];
            assert_eq!(row.2, disease.as_string::<i32>().value(i));
            for (j, value) in row.1.iter().enumerate() {
                let interval = column(&format!("q{j}"));
                let end = |name: &str| {
                    let end = interval.as_struct().column_by_name(name).unwrap().clone();
                    let end = end.as_primitive::<datafusion::arrow::datatypes::Int32Type>();
                    end.is_valid(i).then(|| end.value(i))
                };
                // None, for NULL, is below everything in both orders.
                assert!(end("lo") <= *value && *value <= end("hi"));
            }
            let before = known.insert(row.0, values.clone());
            assert!(before.is_none_or(|before| before == values), "another signature");
        }
    }
    assert_eq!(seen.len() + withheld, rows.len());
    assert!(
        rows.iter().all(|row| seen.contains(&row.0) || !returning.contains(&row.0)),
        "somebody returning was left out"
    );
    counterfeits
}

fn hospital(rows: &[(i64, i32, i32, &str)]) -> Vec<Row> {
    rows.iter().map(|&(id, age, zip, disease)| (id, vec![Some(age), Some(zip)], disease.to_owned())).collect()
}

/// Returns the paper's running example (Tables 1 to 3), as identifiers 1 to 16: the second snapshot, and what the first release
/// makes known.
pub(super) fn example() -> (Vec<Row>, Known) {
    let known_groups: [&[(i64, &str)]; 5] = [
        &[(1, "dyspepsia"), (2, "bronchitis")],
        &[(3, "flu"), (4, "gastritis")],
        &[(5, "flu"), (6, "gastritis")],
        &[(7, "dyspepsia"), (8, "flu"), (9, "gastritis")],
        &[(10, "dyspepsia"), (11, "gastritis")],
    ];
    let mut known = Known::new();
    for group in known_groups {
        for (id, _) in group {
            known.insert(*id, group.iter().map(|(_, value)| (*value).to_owned()).collect());
        }
    }
    let second = hospital(&[
        (1, 21, 12000, "dyspepsia"),
        (4, 23, 25000, "gastritis"),
        (12, 25, 21000, "flu"),
        (7, 37, 33000, "dyspepsia"),
        (9, 43, 26000, "gastritis"),
        (5, 41, 20000, "flu"),
        (13, 46, 30000, "gastritis"),
        (14, 54, 31000, "dyspepsia"),
        (11, 56, 34000, "gastritis"),
        (15, 60, 44000, "gastritis"),
        (16, 65, 36000, "flu"),
    ]);
    (second, known)
}

#[test]
fn the_hospital_needs_two_counterfeits() {
    let (second, known) = example();
    let minimal = MInvariance::of_cohort(2).with_balance(Balance::Minimal);
    for seed in 0..50 {
        let release = publish(&second, &known, &minimal, seed).unwrap();
        assert_eq!(release.counterfeits(), 2);
        assert_eq!(release.groups.members.len(), 13);
        assert_eq!(release.groups.len(), 6);
        assert_eq!(verify(&private(release, seed), &second, &mut known.clone(), 2, 0), 2);
    }
    // Blind balancing spends no new row.
    assert!(publish(&second, &known, &MInvariance::of_cohort(2), 0).unwrap().counterfeits() > 2);
}

fn refusal(rows: &[Row], known: &Known, params: &MInvariance) -> String {
    publish(rows, known, params, 0).unwrap_err().to_string()
}

#[test]
fn refusals_say_what_is_wrong_without_values() {
    let rows = hospital(&[(1, 20, 1, "flu"), (2, 30, 2, "flu"), (3, 40, 3, "cancer"), (4, 50, 4, "cold")]);
    let none = Known::new();
    let m3 = refusal(&rows, &none, &MInvariance::of_cohort(3));
    assert!(m3.contains("makes up 50.00%") && m3.contains("33.33%") && m3.contains("m => 2 would do"), "{m3}");
    let m9 = refusal(&rows, &none, &MInvariance::of_cohort(9));
    assert!(m9.contains("only 3 distinct values"), "{m9}");
    let set = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<BTreeSet<_>>();
    let updated = refusal(&rows, &Known::from([(1, set(&["cold", "cancer"]))]), &MInvariance::of_cohort(2));
    assert!(
        updated.contains("1 people have another sensitive value") && updated.contains("'method' 'dynamic'"),
        "{updated}"
    );
    let raised = refusal(&rows, &Known::from([(9, set(&["cold", "cancer"]))]), &MInvariance::of_cohort(3));
    assert!(raised.contains("largest m that they allow is 2"), "{raised}");
    for text in [m3, m9, updated, raised] {
        for value in ["flu", "cancer", "cold"] {
            assert!(!text.contains(value), "{text}");
        }
    }
}

/// Returns a chain of snapshots: each keeps some people (quasi-identifiers may change), drops some, brings back some and adds new.
pub(super) fn chains() -> impl Strategy<Value = (Vec<Vec<Row>>, usize)> {
    let quasi = 1..4_usize;
    (2..5_usize, quasi, 1..7_usize, 1..5_i32, 2..9_usize).prop_flat_map(|(m, quasi, releases, spread, values)| {
        let person = (
            prop::collection::vec(prop::option::weighted(0.9, 0..spread * 3), quasi),
            // Squared, so that some values are much more frequent.
            (0.0..1.0_f64).prop_map(move |x| format!("v{}", (x * x * values as f64) as usize)),
            prop::collection::vec(any::<bool>(), releases),
        );
        let people = prop::collection::vec(person, 0..60);
        people.prop_map(move |people| {
            let snapshot = |n: usize| {
                let here = people.iter().enumerate().filter(|(_, person)| person.2[n]);
                here.map(|(id, (quasi, value, _))| {
                    let moved = quasi.iter().map(|q| q.map(|q| (q + n as i32) % (spread * 3))).collect();
                    (id as i64 - 30, moved, value.clone())
                })
                .collect()
            };
            ((0..releases).map(snapshot).collect(), m)
        })
    })
}

/// Returns the fewest counterfeits that this snapshot needs, straight from the definition. `None` if the new rows
/// are not m-eligible whatever is moved.
fn fewest_counterfeits(rows: &[Row], known: &Known, m: usize, blind: bool) -> Option<usize> {
    let mut buckets: BTreeMap<&BTreeSet<String>, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut new: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        let counts = known.get(&row.0).map(|signature| buckets.entry(signature).or_default());
        *counts.unwrap_or(&mut new).entry(&row.2).or_default() += 1;
    }
    let mut need: BTreeMap<&str, usize> = BTreeMap::new();
    for (signature, counts) in &buckets {
        let height = counts.values().max().copied().unwrap_or(0);
        for value in *signature {
            *need.entry(value).or_default() += height - counts.get(value.as_str()).copied().unwrap_or(0);
        }
    }
    let total: usize = new.values().sum();
    let most = |value: &str| if blind { 0 } else { new[value].min(need.get(value).copied().unwrap_or(0)) };
    let moved = (0..=new.keys().map(|value| most(value)).sum::<usize>()).rev().find(|&moved| {
        let least = |value: &str| new[value].saturating_sub((total - moved) / m);
        new.keys().all(|value| least(value) <= most(value))
            && new.keys().map(|value| least(value)).sum::<usize>() <= moved
    })?;
    Some(need.values().sum::<usize>() - moved)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn chains_of_releases_are_m_invariant(
        (snapshots, m) in chains(),
        blind in any::<bool>(),
        on_ineligible in prop_oneof![Just(OnIneligible::Refuse), Just(OnIneligible::Counterfeit), Just(OnIneligible::Withhold)],
        seed in any::<u64>(),
    ) {
        let balance = if blind { Balance::Blind } else { Balance::Minimal };
        let params = MInvariance::of_cohort(m).with_balance(balance).with_on_ineligible(on_ineligible);
        let mut known = Known::new();
        for snapshot in snapshots {
            match publish(&snapshot, &known, &params, seed) {
                Ok(release) => {
                    let (withheld, counterfeits) = (release.withheld, release.counterfeits());
                    match fewest_counterfeits(&snapshot, &known, m, blind) {
                        Some(fewest) => prop_assert_eq!((withheld, counterfeits), (0, fewest)),
                        None => prop_assert_ne!(on_ineligible, OnIneligible::Refuse),
                    }
                    verify(&private(release, seed), &snapshot, &mut known, m, withheld);
                }
                Err(Error::Refused(_)) => {
                    let returns = snapshot.iter().any(|row| known.get(&row.0).is_some_and(|set| !set.contains(&row.2)));
                    prop_assert!(returns || fewest_counterfeits(&snapshot, &known, m, blind).is_none());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn nothing_depends_on_the_order_of_arrival_or_on_threads((snapshots, m) in chains(), seed in any::<u64>()) {
        let mut backward = snapshots[0].clone();
        backward.reverse();
        let params = MInvariance::of_cohort(m).with_balance(Balance::Minimal).with_on_ineligible(OnIneligible::Counterfeit);
        let Ok(release) = publish(&snapshots[0], &Known::new(), &params, seed) else { return Ok(()) };
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = one.install(|| publish(&backward, &Known::new(), &params, seed)).unwrap();
        prop_assert_eq!(private(release, seed), private(alone, seed));
    }

    #[test]
    fn withheld_rows_are_counted_and_stay_new((snapshots, m) in chains(), seed in any::<u64>()) {
        let params = MInvariance::of_cohort(m).with_balance(Balance::Minimal).with_on_ineligible(OnIneligible::Withhold);
        let Ok(release) = publish(&snapshots[0], &Known::new(), &params, seed) else { return Ok(()) };
        let published: BTreeSet<u32> =
            release.groups.members.iter().copied().filter(|&row| row != COUNTERFEIT).collect();
        prop_assert_eq!(published.len() + release.withheld, snapshots[0].len());
    }
}

/// Counterfeits stand anywhere among groups and rows, with NULL only where rows have it.
#[test]
fn counterfeits_look_like_any_row() {
    let values = ["a", "b", "c", "d"];
    let first: Vec<Row> = (0..400)
        .map(|id| (id, vec![Some((id % 37) as i32), Some((id % 11) as i32)], values[id as usize % 4].to_owned()))
        .collect();
    let mut known = Known::new();
    verify(&private(publish(&first, &known, &MInvariance::of_cohort(2), 5).unwrap(), 5), &first, &mut known, 2, 0);
    let second: Vec<Row> =
        first.iter().filter(|row| row.0 % 7 != 0 && (row.2 != "a" || row.0 % 3 != 1)).cloned().collect();
    let (mut place, mut total) = (0.0, 0.0);
    for seed in 0..30 {
        let batch = private(publish(&second, &known, &MInvariance::of_cohort(2), seed).unwrap(), seed);
        assert!(batch.columns()[1..].iter().all(|column| column.null_count() == 0));
        let marks = batch.column_by_name("counterfeit").unwrap().clone();
        for i in (0..batch.num_rows()).filter(|&i| marks.as_boolean().value(i)) {
            place += i as f64 / batch.num_rows() as f64;
            total += 1.0;
        }
    }
    assert!(total > 100.0, "{total} counterfeits are too few to tell");
    // The mean of n uniform places has a standard deviation of 1/sqrt(12 n).
    let deviation = (place / total - 0.5) * (12.0_f64 * total).sqrt();
    assert!(deviation.abs() < 4.5, "{deviation} standard deviations from the middle");
}

/// Tables at the edge: each is published as it must be, or refused.
#[test]
fn odd_tables() {
    let none = Known::new();
    let row = |id: i64, quasi: &[Option<i32>], value: &str| (id, quasi.to_vec(), value.to_owned());
    let lone = [row(7, &[Some(1)], "a")];
    assert!(refusal(&lone, &none, &MInvariance::of_cohort(2)).contains("only 1 distinct values"));
    let equal: Vec<Row> = (0..50).map(|id| row(id, &[Some(3), None], "a")).collect();
    assert!(refusal(&equal, &none, &MInvariance::of_cohort(2)).contains("only 1 distinct values"));
    // One value in every quasi-identifier, all NULL in another, and as many sensitive values as rows.
    let all: Vec<Row> = (0..60).map(|id| row(id, &[Some(3), None], &format!("v{id}"))).collect();
    for m in [2, 7, 30, 59, 60] {
        let release = publish(&all, &none, &MInvariance::of_cohort(m), 1).unwrap();
        assert_eq!((release.counterfeits(), release.mean_extent()), (0, 0.0));
        verify(&private(release, 1), &all, &mut Known::new(), m, 0);
    }
    for m in [61, 1_000_000, usize::MAX / 4, usize::MAX] {
        assert!(refusal(&all, &none, &MInvariance::of_cohort(m)).contains("only 60 distinct values"));
        let withhold = MInvariance { on_ineligible: OnIneligible::Withhold, ..MInvariance::of_cohort(m) };
        assert!(refusal(&all, &none, &withhold).contains("only 60 distinct values"));
    }
    // A lone row can be padded once there are other values to pad with: here, those of the ledger.
    let signature: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
    let params = MInvariance { on_ineligible: OnIneligible::Counterfeit, ..MInvariance::of_cohort(3) };
    let mut known = Known::from([(1, signature)]);
    let release = publish(&lone, &known, &params, 1).unwrap();
    assert_eq!(release.counterfeits(), 2);
    verify(&private(release, 1), &lone, &mut known, 3, 0);
}

/// Publications of builds that had one mode go on in it: neither a reader nor a ledger of theirs finds another one.
#[test]
fn releases_that_say_no_groups_are_of_the_cohort() {
    let said = r#"{"m":2,"balance":"blind","on_ineligible":"refuse"}"#;
    let former: MInvariance = serde_json::from_str(said).unwrap();
    assert_eq!(former, MInvariance::of_cohort(2));
    assert_eq!(serde_json::to_string(&former).unwrap(), said);
    let close = serde_json::to_string(&MInvariance::new(2)).unwrap();
    assert_eq!(serde_json::from_str::<MInvariance>(&close).unwrap(), MInvariance::new(2));
}
