//! Tests of the guarantee over chains of releases, with the update graph of `risk`. Update relations are random.

mod examples;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::m_invariance::MInvariance;
use crate::microdata::Layout;
use crate::release::{COUNTERFEIT, Groups, LABEL};
use crate::risk::{Layer, Update, UpdateGraph, Updates};
use crate::state::SnapshotBuilder;

/// Identifier, quasi-identifiers, sensitive value.
pub(super) type Row = (i64, Vec<i32>, String);
/// Quasi-identifier that stands for NULL.
const NULL: i32 = i32::MIN;
/// Identifier -> values of the most recent group, and the own label, from 0. Values are in the order of labels.
pub(super) type Known = BTreeMap<i64, (Vec<String>, usize)>;
/// Pairs of a value and its successor.
pub(super) type Pairs = Vec<(String, String)>;

/// Dates that exact releases need beside that.
pub(super) struct Dated {
    /// Release in which everybody was last.
    pub releases: BTreeMap<i64, u64>,
    /// Number of the release that is made.
    pub number: u64,
    /// Probability of each pair.
    pub probabilities: Vec<f64>,
}

pub(super) fn encode(rows: &[Row], known: &Known, pairs: &Pairs, key: u64) -> Result<(Microdata, State)> {
    encode_with(rows, known, pairs, key, StateKind::LabelledSignatures, None)
}

/// Encodes a snapshot for exact releases.
pub(super) fn encode_dated(
    rows: &[Row],
    known: &Known,
    pairs: &Pairs,
    key: u64,
    dated: &Dated,
) -> Result<(Microdata, State)> {
    encode_with(rows, known, pairs, key, StateKind::DatedSignatures, Some(dated))
}

fn encode_with(
    rows: &[Row],
    known: &Known,
    pairs: &Pairs,
    key: u64,
    kind: StateKind,
    dated: Option<&Dated>,
) -> Result<(Microdata, State)> {
    let quasi = rows.first().map_or(1, |row| row.1.len());
    let fields = (0..quasi).map(|j| Arc::new(Field::new(format!("q{j}"), DataType::Int32, true)));
    let layout = Layout {
        identifier: Some(Arc::new(Field::new("id", DataType::Int64, true))),
        quasi: fields.collect(),
        sensitive: Some(Arc::new(Field::new("disease", DataType::Utf8, true))),
        within: None,
        other: Vec::new(),
        insensitive: Vec::new(),
    };
    let mut columns: Vec<ArrayRef> = vec![Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>())];
    for j in 0..quasi {
        columns.push(Arc::new(rows.iter().map(|row| Some(row.1[j]).filter(|&at| at != NULL)).collect::<Int32Array>()));
    }
    columns.push(Arc::new(rows.iter().map(|row| Some(row.2.as_str())).collect::<StringArray>()));
    let schema = Arc::new(Schema::new(layout.fields().cloned().collect::<Vec<_>>()));
    let mut builder = SnapshotBuilder::try_new(layout, Some(kind))?;
    builder.microdata.append(&RecordBatch::try_new(schema, columns).unwrap())?;
    let mut signatures = ListBuilder::new(StringBuilder::new());
    known.values().for_each(|(values, _)| signatures.append_value(values.iter().map(Some)));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(known.keys().copied().collect::<Int64Array>())),
        ("signature", Arc::new(signatures.finish())),
        (LABEL, Arc::new(known.values().map(|(_, label)| *label as i32 + 1).collect::<Int32Array>())),
    ];
    if let Some(dated) = dated {
        let releases = known.keys().map(|id| dated.releases[id] as i64);
        columns.push(("release", Arc::new(releases.collect::<Int64Array>())));
        builder.set_number(dated.number);
    }
    let previous = RecordBatch::try_from_iter(columns);
    builder.append_previous(&previous.unwrap())?;
    let texts = |of: fn(&(String, String)) -> &String| -> ArrayRef {
        Arc::new(pairs.iter().map(|pair| Some(of(pair))).collect::<StringArray>())
    };
    let mut columns = vec![("from", texts(|pair| &pair.0)), ("to", texts(|pair| &pair.1))];
    if let Some(dated) = dated {
        columns.push(("probability", Arc::new(dated.probabilities.iter().copied().collect::<Float64Array>())));
    }
    let updates = RecordBatch::try_from_iter(columns);
    builder.microdata.append_updates(&updates.unwrap())?;
    builder.finish([key, 1])
}

pub(super) fn publish(rows: &[Row], known: &Known, pairs: &Pairs, method: &MDistinct, seed: u64) -> Result<Release> {
    let (microdata, state) = encode(rows, known, pairs, seed)?;
    method.anonymize(microdata, &state, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(seed))
}

/// Returns the groups of a release, from what is published: identifiers (`None` for counterfeits) and values.
pub(super) fn groups(release: &Release) -> Vec<Vec<(Option<i64>, String)>> {
    let microdata = &release.microdata;
    let people = microdata.people.as_ref().unwrap();
    let ids = people.identifiers.as_primitive::<Int64Type>();
    let values = microdata.sensitive.as_ref().unwrap().domain.values();
    let of = |place: usize| {
        let row = release.groups.members[place];
        let id = (row != COUNTERFEIT).then(|| ids.value(people.arrival[row as usize] as usize));
        (id, values.as_string_view().value(release.groups.sensitive[place] as usize).to_owned())
    };
    (0..release.groups.len()).map(|group| release.groups.range(group).map(of).collect()).collect()
}

/// Returns the reflexive and transitive closure, by repeated composition.
pub(super) fn closure(pairs: &Pairs) -> BTreeSet<(String, String)> {
    let values: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    let mut closed: BTreeSet<(String, String)> = pairs.iter().cloned().collect();
    closed.extend(values.into_iter().map(|value| (value.clone(), value.clone())));
    loop {
        let step = |(a, b): &(String, String)| {
            let next = closed.range((b.clone(), String::new())..).take_while(|(from, _)| from == b).cloned();
            next.map(|(_, c)| (a.clone(), c)).collect::<Vec<_>>()
        };
        let more: Vec<_> = closed.iter().flat_map(step).filter(|pair| !closed.contains(pair)).collect();
        if more.is_empty() {
            return closed;
        }
        closed.extend(more);
    }
}

/// All releases of a publication as a reader sees them, and the publisher's memory.
pub(super) struct History {
    closed: BTreeSet<(String, String)>,
    pub known: Known,
    /// Per person: release, values of the group in the order of labels, own value.
    layers: BTreeMap<i64, Vec<(u64, Vec<String>, String)>>,
    /// The groups of each release, in no order that says anything.
    pub seen: Vec<Vec<Vec<(Option<i64>, String)>>>,
}

impl History {
    pub(super) fn new(pairs: &Pairs) -> Self {
        Self { closed: closure(pairs), known: Known::new(), layers: BTreeMap::new(), seen: Vec::new() }
    }

    /// Checks a release against the definition, and adds it.
    pub(super) fn add(&mut self, release: &Release, rows: &[Row], method: &MDistinct) {
        let by_id: BTreeMap<i64, &Row> = rows.iter().map(|row| (row.0, row)).collect();
        let becomes = |a: &String, b: &String| a == b || self.closed.contains(&(a.clone(), b.clone()));
        let number = self.seen.len() as u64 + 1;
        let mut seen = BTreeSet::new();
        for group in groups(release) {
            let now: Vec<String> = group.iter().map(|(_, value)| value.clone()).collect();
            let values: BTreeSet<&String> = now.iter().collect();
            assert_eq!(values.len(), group.len(), "a value twice in a group");
            assert!(values.len() >= method.m && group.iter().any(|(id, _)| id.is_some()));
            for (place, (id, value)) in group.iter().enumerate() {
                let Some(id) = id else { continue };
                assert!(seen.insert(*id), "a row twice");
                assert_eq!(&by_id[id].2, value);
                match self.known.insert(*id, (now.clone(), place)) {
                    Some((before, label)) => {
                        assert_eq!(label, place, "another label");
                        assert_eq!(before.len(), now.len());
                        assert!(before.iter().zip(&now).all(|(a, b)| becomes(a, b)), "no legal update");
                    }
                    None if method.disjoint => {
                        let all: BTreeSet<&String> = self.closed.iter().map(|(_, to)| to).chain(&now).collect();
                        let twice = all.iter().any(|b| now.iter().filter(|a| becomes(a, b)).count() > 1);
                        assert!(!twice, "a first group whose values can become alike");
                    }
                    None => {}
                }
                self.layers.entry(*id).or_default().push((number, now.clone(), value.clone()));
            }
        }
        self.seen.push(groups(release));
        self.seen.last_mut().unwrap().iter_mut().for_each(|group| group.sort());
        assert_eq!(seen.len() + release.withheld, rows.len());
        assert!(rows.iter().all(|row| seen.contains(&row.0) || !self.known.contains_key(&row.0)), "somebody left out");
    }

    /// Returns the joint worlds of the guarantee, one by one: whether everybody can have had, at every release, the value that is `k`
    /// places further on than their own, in groups that hang together the same `k`.
    pub(super) fn shifts_are_legal(&self) -> bool {
        self.layers.values().all(|layers| {
            let size = layers[0].1.len();
            let place =
                |layer: &(u64, Vec<String>, String)| layer.1.iter().position(|value| *value == layer.2).unwrap();
            let label = place(&layers[0]);
            (0..size).all(|k| {
                let value = |layer: &(u64, Vec<String>, String)| layer.1[(label + k) % size].clone();
                layers.windows(2).all(|pair| {
                    let (a, b) = (value(&pair[0]), value(&pair[1]));
                    pair[1].1.len() == size && place(&pair[1]) == label && (a == b || self.closed.contains(&(a, b)))
                })
            })
        })
    }

    /// Returns the greatest risk of a value by the update graph. It tells also whether a candidate was ever ruled out.
    pub(super) fn risk(&self) -> (f64, bool) {
        let texts: BTreeSet<&String> = self
            .closed
            .iter()
            .map(|(a, _)| a)
            .chain(self.layers.values().flatten().flat_map(|layer| &layer.1))
            .collect();
        let codes: BTreeMap<&String, u32> = texts.into_iter().zip(0..).collect();
        let pairs: Vec<Update> = self.closed.iter().map(|(a, b)| Update::possible(codes[a], codes[b])).collect();
        let updates = Updates::try_new(codes.len(), &pairs).unwrap();
        let mut graph = UpdateGraph::new(&updates);
        let (mut greatest, mut ruled_out) = (0.0_f64, false);
        for layers in self.layers.values() {
            let of = |(release, values, _): &(u64, Vec<String>, String)| {
                Layer::uniform(*release, values.iter().map(|value| codes[value]).collect::<Vec<_>>().into_iter())
            };
            let given: Vec<Layer> = layers.iter().map(of).collect();
            let versions = graph.versions(&given).expect("what happened is possible");
            for ((version, layer), (.., own)) in versions.iter().zip(&given).zip(layers) {
                ruled_out |= version.candidates.len() != layer.candidates.len();
                greatest = greatest.max(version.risk(codes[own]));
            }
        }
        (greatest, ruled_out)
    }
}

fn classes(classes: &[&[&str]]) -> Pairs {
    let pairs = |class: &&[&str]| -> Pairs {
        class.iter().flat_map(|a| class.iter().map(|b| ((*a).to_owned(), (*b).to_owned()))).collect()
    };
    classes.iter().flat_map(pairs).collect()
}

/// Returns a random update relation over values `v0`, `v1`, ..: none, classes of one size, classes of several sizes, or anything.
fn relations(values: usize) -> impl Strategy<Value = (Pairs, Option<usize>)> {
    let name = |value: usize| format!("v{value}");
    let of_size = move |size: usize| -> Pairs {
        let pairs = (0..values).flat_map(|a| (0..values).map(move |b| (a, b)));
        pairs.filter(|(a, b)| a / size == b / size).map(|(a, b)| (name(a), name(b))).collect()
    };
    prop_oneof![
        // A size counts as one if all classes have it.
        (1..4_usize).prop_map(move |size| (of_size(size), Some(size).filter(|size| values.is_multiple_of(*size)))),
        prop::collection::vec((0..values, 0..values), 0..3 * values)
            .prop_map(move |pairs| (pairs.into_iter().map(|(a, b)| (name(a), name(b))).collect(), None)),
    ]
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub snapshots: Vec<Vec<Row>>,
    pub pairs: Pairs,
    pub size: Option<usize>,
    pub method: MDistinct,
}

/// Returns the snapshots of at most so many people: they come, go and come back, quasi-identifiers change and can be NULL, and sensitive values
/// change along the relation.
pub(super) fn chains(most: usize) -> impl Strategy<Value = Chain> {
    let method = (
        2..4_usize,
        any::<bool>(),
        prop_oneof![Just(Balance::Minimal), Just(Balance::Blind)],
        prop_oneof![Just(OnIneligible::Refuse), Just(OnIneligible::Counterfeit), Just(OnIneligible::Withhold)],
    );
    let method = method.prop_map(|(m, disjoint, balance, on_ineligible)| MDistinct {
        disjoint,
        close_updates: true,
        updates: Possible::Listed,
        balance,
        on_ineligible,
        ..MDistinct::new(m)
    });
    (method, 4..9_usize, 1..6_usize).prop_flat_map(move |(method, values, releases)| {
        let person = (0..9_i32, 0..values, prop::collection::vec((any::<bool>(), 0..64_usize), releases));
        (Just(method), relations(values), prop::collection::vec(person, 0..most)).prop_map(
            move |(method, (pairs, size), people)| {
                let closed = closure(&pairs);
                let mut snapshots: Vec<Vec<Row>> = vec![Vec::new(); releases];
                for (id, (place, value, days)) in (0..).zip(people) {
                    let mut value = format!("v{value}");
                    for (n, (here, draw)) in days.into_iter().enumerate() {
                        let next: Vec<&String> =
                            closed.iter().filter(|(from, _)| *from == value).map(|(_, to)| to).collect();
                        if draw < 24 && !next.is_empty() {
                            value.clone_from(next[draw % next.len()]);
                        }
                        if here {
                            let second = Some((place * 3 + n as i32) % 5).filter(|&at| at < 4).unwrap_or(NULL);
                            snapshots[n].push((id, vec![place, second], value.clone()));
                        }
                    }
                }
                Chain { snapshots, pairs, size, method }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// m-unique, legal, nobody lost; no candidate is ever ruled out; and m-Distinct* keeps 1/m where it says so.
    #[test]
    fn chains_of_releases_are_m_distinct(chain in chains(40), seed in any::<u64>()) {
        let Chain { snapshots, pairs, size, method } = chain;
        let mut history = History::new(&pairs);
        for snapshot in &snapshots {
            match publish(snapshot, &history.known, &pairs, &method, seed) {
                Ok(release) => history.add(&release, snapshot, &method),
                Err(Error::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let (risk, ruled_out) = history.risk();
        prop_assert!(!ruled_out);
        prop_assert!(history.shifts_are_legal());
        if method.disjoint && size.is_some() {
            prop_assert!(risk <= 1.0 / method.m as f64 + 1e-9, "{risk}");
        }
    }

    #[test]
    fn nothing_depends_on_the_order_of_arrival_or_on_threads(chain in chains(40), seed in any::<u64>()) {
        let Chain { snapshots, pairs, method, .. } = chain;
        let method = MDistinct { on_ineligible: OnIneligible::Counterfeit, ..method };
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut known = Known::new();
        for snapshot in &snapshots {
            let Ok(release) = publish(snapshot, &known, &pairs, &method, seed) else { return Ok(()) };
            let mut backward = snapshot.clone();
            backward.reverse();
            let alone = one.install(|| publish(&backward, &known, &pairs, &method, seed)).unwrap();
            prop_assert_eq!(groups(&release), groups(&alone));
            for group in groups(&release) {
                let values: Vec<String> = group.iter().map(|(_, value)| value.clone()).collect();
                for (label, (id, _)) in group.iter().enumerate() {
                    id.iter().for_each(|&id| drop(known.insert(id, (values.clone(), label))));
                }
            }
        }
    }

    /// With the identity the result is m-invariant, with no counterfeit more than m-invariance's.
    #[test]
    fn the_identity_is_m_invariance(chain in chains(40), seed in any::<u64>()) {
        let Chain { snapshots, method, .. } = chain;
        let method = MDistinct { disjoint: false, ..method };
        let invariance =
            MInvariance::of_cohort(method.m).with_balance(method.balance).with_on_ineligible(method.on_ineligible);
        let mut known = Known::new();
        for snapshot in &snapshots {
            // People keep the value that they had first.
            let first = |id: i64| snapshots.iter().flatten().find(|row| row.0 == id).unwrap().2.clone();
            let snapshot: Vec<Row> = snapshot.iter().map(|row| (row.0, row.1.clone(), first(row.0))).collect();
            let (microdata, state) = encode(&snapshot, &known, &Pairs::new(), seed).unwrap();
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let theirs = invariance.anonymize(microdata, &state, &Monitor::default(), &mut rng);
            match (publish(&snapshot, &known, &Pairs::new(), &method, seed), theirs) {
                (Ok(ours), Ok(theirs)) => {
                    prop_assert_eq!(ours.withheld, theirs.withheld);
                    // Padding beside gaps can share groups here, where m-invariance makes new ones.
                    prop_assert!(ours.counterfeits() <= theirs.counterfeits());
                    for group in groups(&ours) {
                        let values: Vec<String> = group.iter().map(|(_, value)| value.clone()).collect();
                        for (label, (id, _)) in group.iter().enumerate() {
                            let Some(id) = *id else { continue };
                            let before = known.insert(id, (values.clone(), label));
                            prop_assert!(before.is_none_or(|before| before == (values.clone(), label)), "another signature");
                        }
                    }
                }
                (Err(Error::Refused(_)), Err(Error::Refused(_))) => {}
                (ours, theirs) => prop_assert!(false, "{:?} and {:?}", ours.err(), theirs.err()),
            }
        }
    }
}

/// Large buckets with entries of common values are cut in every way. They have thousands of rows.
#[test]
fn large_buckets_with_common_values() {
    let pairs = classes(&[&["a", "b", "c", "d", "e", "f"], &["g", "h"]]);
    let method = MDistinct { on_ineligible: OnIneligible::Counterfeit, ..MDistinct::new(4) };
    let values = ["a", "a", "a", "b", "b", "c", "d", "e", "f", "g", "h"];
    let mut people: Vec<Row> = (0..4_000_i64)
        .map(|id| (id, vec![(id * 7919 % 1009) as i32, (id % 13) as i32], values[id as usize % 11].to_owned()))
        .collect();
    let mut history = History::new(&pairs);
    for number in 0..3 {
        let release = publish(&people, &history.known, &pairs, &method, number).unwrap();
        history.add(&release, &people, &method);
        assert!(release.mean_extent() < 0.2, "{}", release.mean_extent());
        // Values change with the place, so that a cut by place has too many of one on a side.
        for person in people.iter_mut().filter(|person| person.2.as_str() < "g" && person.1[0] % 3 == 0) {
            person.2 = ["a", "b", "c", "d"][(person.1[0] / 260) as usize].to_owned();
        }
        people.drain(..200);
    }
    assert!(!history.risk().1);
}
