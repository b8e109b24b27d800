//! Effects of changing values on data: the experiment of the m-Distinct paper (Section VI) on real people, and how
//! long a release takes. `cargo bench --bench changes`, or `-- 5` for so many releases instead of 20.
//!
//! The experiment: 20,000 working adults of the American Community Survey, published again and again. Each time 2,000 leave, 5,000
//! come, everybody gets a year older, and 5,000 change their occupation for another of its class of 10 (neighbours in the
//! official codes; the last nine are left out). Looked at with the update graph: a version of somebody's value is *vulnerable* if fewer than m values
//! stay possible, *known* if one does. `counterfeits` are per group; `exceeds` is the share of versions whose risk is above 1/m.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Int32Array, Int64Array, ListArray, ListBuilder, PrimitiveBuilder, RecordBatch,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::internals::{COUNTERFEIT, LABEL, Release};
use datafusion_anonymize::internals::{Layout, Microdata};
use datafusion_anonymize::internals::{SnapshotBuilder, State, release};
use datafusion_anonymize::risk::{Layer, Update, UpdateGraph, Updates};
use datafusion_anonymize::{AnyMethod, StateKind};
use datafusion_anonymize::{Balance, MInvariance};
use datafusion_anonymize::{Diversity, Mondrian};
use datafusion_anonymize::{MDistinct, OnIneligible};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

const QUASI: [&str; 4] = ["age", "sex", "education", "birthplace"];

fn main() {
    let releases = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match runtime.block_on(survey()) {
        Some(people) => experiment(&people, releases),
        None => println!("acs_income.parquet is not there; set ANONYMIZE_MICRODATA"),
    }
    speed();
}

/// A person: identifier, quasi-identifiers, sensitive value.
#[derive(Clone)]
struct Person {
    id: i64,
    quasi: [i32; 4],
    value: i32,
}

/// Returns the people of the survey in random order; occupations by their rank among all of them.
async fn survey() -> Option<Vec<Person>> {
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let file = format!("{directory}/acs_income.parquet");
    if !std::path::Path::new(&file).exists() {
        return None;
    }
    let context = SessionContext::new().enable_url_table();
    let sql = format!(
        "SELECT person_id, {}, dense_rank() OVER (ORDER BY occupation) - 1 AS value FROM '{file}'
         ORDER BY person_id * 7919 % 1000003 LIMIT 200000",
        QUASI.join(", ")
    );
    let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
    let table = concat_batches(&batches[0].schema(), &batches).unwrap();
    let columns: Vec<Int32Array> = table
        .columns()
        .iter()
        .map(|column| cast(column, &DataType::Int32).unwrap().as_primitive::<Int32Type>().clone())
        .collect();
    let person = |i: usize| Person {
        id: i64::from(columns[0].value(i)),
        quasi: [1, 2, 3, 4].map(|j| columns[j].value(i)),
        value: columns[5].value(i),
    };
    Some((0..table.num_rows()).map(person).collect())
}

/// Values whose numbers agree but for the last so many can become each other.
struct Classes {
    size: i32,
    values: i32,
}

impl Classes {
    fn of(&self, value: i32) -> std::ops::Range<i32> {
        let first = value / self.size * self.size;
        first..(first + self.size).min(self.values)
    }

    fn pairs(&self) -> Vec<(i32, i32)> {
        (0..self.values).flat_map(|value| self.of(value).map(move |to| (value, to))).collect()
    }
}

/// Identifier -> values of the most recent group, and the own place in them. For m-Distinct, values are in the order of labels.
type Known = BTreeMap<i64, (Arc<[i32]>, usize)>;

fn encode(
    people: &[Person],
    known: &Known,
    classes: &Classes,
    kind: Option<StateKind>,
    seed: u64,
) -> (Microdata, State) {
    let field = |name: &str, data_type: DataType| Arc::new(Field::new(name, data_type, false));
    let layout = Layout {
        identifier: Some(field("id", DataType::Int64)),
        quasi: QUASI.iter().map(|name| field(name, DataType::Int32)).collect(),
        sensitive: Some(field("occupation", DataType::Int32)),
        within: None,
        other: Vec::new(),
        insensitive: Vec::new(),
    };
    let schema = Arc::new(Schema::new(layout.fields().cloned().collect::<Vec<_>>()));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(people.iter().map(|person| person.id).collect::<Int64Array>())];
    for j in 0..QUASI.len() {
        columns.push(Arc::new(people.iter().map(|person| person.quasi[j]).collect::<Int32Array>()));
    }
    columns.push(Arc::new(people.iter().map(|person| person.value).collect::<Int32Array>()));
    let mut builder = SnapshotBuilder::try_new(layout, kind).unwrap();
    builder.microdata.append(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
    let ids: ArrayRef = Arc::new(known.keys().copied().collect::<Int64Array>());
    let signatures: ArrayRef = Arc::new(lists(known.values().map(|(values, _)| values)));
    let mut previous = vec![("id", ids), ("signature", signatures)];
    if kind == Some(StateKind::Signatures) {
        let own = known.values().map(|(values, place)| values[*place]);
        previous.push(("occupation", Arc::new(own.collect::<Int32Array>())));
    }
    if kind == Some(StateKind::LabelledSignatures) {
        let labels = known.values().map(|(_, place)| *place as i32 + 1);
        previous.push((LABEL, Arc::new(labels.collect::<Int32Array>())));
    }
    if kind.is_some() {
        builder.append_previous(&RecordBatch::try_from_iter(previous).unwrap()).unwrap();
    }
    let (from, to): (Vec<i32>, Vec<i32>) = classes.pairs().into_iter().unzip();
    let column = |values: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
    let updates = RecordBatch::try_from_iter([("from_value", column(from)), ("to_value", column(to))]);
    builder.microdata.append_updates(&updates.unwrap()).unwrap();
    builder.finish([seed, 1]).unwrap()
}

fn lists<'a>(sets: impl Iterator<Item = &'a Arc<[i32]>>) -> ListArray {
    let mut builder = ListBuilder::new(PrimitiveBuilder::<Int32Type>::new());
    sets.for_each(|set| builder.append_value(set.iter().copied().map(Some)));
    builder.finish()
}

fn publish(method: &AnyMethod, people: &[Person], known: &Known, classes: &Classes, seed: u64) -> Release {
    let (microdata, state) = encode(people, known, classes, method.state(), seed);
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    release(method, microdata, &state, &mut rng).unwrap()
}

/// Knowledge of the publications of one method.
#[derive(Default)]
struct History {
    known: Known,
    /// Per person: release, candidates with their numbers of rows in the group, own value.
    layers: BTreeMap<i64, Vec<(Layer, u32)>>,
    groups: usize,
    counterfeits: usize,
    /// Records that could not be published.
    invalid: usize,
}

impl History {
    fn add(&mut self, number: u64, release: &Release) {
        let microdata = &release.microdata;
        let people = microdata.people.as_ref().unwrap();
        let ids = people.identifiers.as_primitive::<Int64Type>();
        let domain = microdata.sensitive.as_ref().unwrap().domain.values();
        let domain = domain.as_primitive::<Int32Type>();
        for group in 0..release.groups.len() {
            let histogram = release.groups.histogram(group);
            let of = |code: u32| domain.value(code as usize);
            let range = release.groups.range(group);
            // As the method left them where no value is there twice, as of m-Distinct.
            let values: Arc<[i32]> = match histogram.len() == range.len() {
                true => release.groups.sensitive[range.clone()].iter().map(|&code| of(code)).collect(),
                false => histogram.iter().map(|&(code, _)| of(code)).collect(),
            };
            let candidates = || histogram.iter().map(|&(code, rows)| (of(code) as u32, f64::from(rows))).collect();
            for place in range.clone() {
                let row = release.groups.members[place];
                if row == COUNTERFEIT {
                    continue;
                }
                let id = ids.value(people.arrival[row as usize] as usize);
                self.known.insert(id, (Arc::clone(&values), place - range.start));
                let layer = Layer { release: number, candidates: candidates() };
                self.layers.entry(id).or_default().push((layer, of(release.groups.sensitive[place]) as u32));
            }
        }
        self.groups += release.groups.len();
        self.counterfeits += release.counterfeits();
    }

    /// Counts versions; vulnerable, known and exceeding ones.
    fn looked_at(&self, m: usize, updates: &Updates) -> [usize; 4] {
        let mut graph = UpdateGraph::new(updates);
        let mut counts = [0; 4];
        for layers in self.layers.values() {
            let given: Vec<Layer> = layers.iter().map(|(layer, _)| layer.clone()).collect();
            let versions = graph.versions(&given).expect("what happened is possible");
            for (version, (_, own)) in versions.iter().zip(layers) {
                counts[0] += 1;
                counts[1] += usize::from(version.candidates.len() < m);
                counts[2] += usize::from(version.candidates.len() == 1);
                counts[3] += usize::from(version.risk(*own) > 1.0 / m as f64 + 1e-9);
            }
        }
        counts
    }
}

fn experiment(survey: &[Person], releases: u64) {
    let classes = Classes { size: 10, values: (survey.iter().map(|person| person.value).max().unwrap() + 1) / 10 * 10 };
    // A few occupations are left over.
    let survey: Vec<Person> = survey.iter().filter(|person| person.value < classes.values).cloned().collect();
    let values = classes.values;
    let codes = classes.pairs().into_iter().map(|(from, to)| Update::possible(from as u32, to as u32));
    let updates = Updates::try_new(values as usize, &codes.collect::<Vec<_>>()).unwrap();
    println!(
        "| m | method | releases | versions | vulnerable | known | exceeds 1/m | counterfeits | not publishable |"
    );
    println!("|---:|:---|---:|---:|---:|---:|---:|---:|---:|");
    for m in [2, 4, 6, 8] {
        let diverse = Mondrian::new(1).with_l(Some(m)).with_diversity(Some(Diversity::Frequency));
        let distinct = MDistinct::new(m).with_on_ineligible(OnIneligible::Counterfeit);
        let methods = [
            ("l-diversity", AnyMethod::Mondrian(diverse)),
            ("m-invariance", AnyMethod::MInvariance(MInvariance::of_cohort(m).with_balance(Balance::Minimal))),
            ("m-Distinct", AnyMethod::MDistinct(distinct.clone())),
            ("m-Distinct\\*", AnyMethod::MDistinct(distinct.with_disjoint(true))),
        ];
        for (name, method) in methods {
            let history = chain(&survey, releases, &method, &classes);
            let [versions, vulnerable, known, exceeding] = history.looked_at(m, &updates);
            let share = |count: usize| format!("{:.1} %", 100.0 * count as f64 / versions as f64);
            println!(
                "| {m} | {name} | {releases} | {versions} | {vulnerable} ({}) | {known} | {} | {:.2} | {} |",
                share(vulnerable),
                share(exceeding),
                history.counterfeits as f64 / history.groups as f64,
                history.invalid
            );
        }
    }
}

fn chain(survey: &[Person], releases: u64, method: &AnyMethod, classes: &Classes) -> History {
    let mut history = History::default();
    // The same people and changes for all methods.
    let mut rng = ChaCha20Rng::seed_from_u64(20);
    let mut waiting = survey.to_vec();
    let mut present: Vec<Person> = waiting.split_off(waiting.len() - 20_000);
    for number in 1..=releases {
        if number > 1 {
            present.shuffle(&mut rng);
            present.truncate(present.len() - 2_000);
            for person in &mut present {
                person.quasi[0] = (person.quasi[0] + 1).min(100);
            }
            for person in &mut present[..5_000] {
                let others: Vec<i32> = classes.of(person.value).filter(|value| *value != person.value).collect();
                person.value = others[rng.random_range(0..others.len())];
            }
            present.extend(waiting.split_off(waiting.len() - 5_000));
        }
        let mut published = present.clone();
        if let AnyMethod::MInvariance(_) = method {
            let known = &history.known;
            published.retain(|person| known.get(&person.id).is_none_or(|(values, _)| values.contains(&person.value)));
            history.invalid += present.len() - published.len();
        }
        let release = publish(method, &published, &history.known, classes, number);
        history.add(number, &release);
    }
    history
}

/// Measures a release and the next one, of made-up people: 50 values in classes, a tenth goes and comes, a quarter changes.
fn speed() {
    println!();
    println!(
        "| rows | classes of | m-Distinct\\* | first release | growth | next release | growth | counterfeits | information loss |"
    );
    println!("|---:|---:|:---|---:|---:|---:|---:|---:|---:|");
    for (size, disjoint) in [(5, false), (10, false), (5, true)] {
        let mut before: Option<(f64, [f64; 2])> = None;
        for rows in [100_000_usize, 200_000, 1_000_000] {
            let classes = Classes { size, values: 50 };
            let mut rng = ChaCha20Rng::seed_from_u64(1);
            let person = |id: i64, rng: &mut ChaCha20Rng| Person {
                id,
                quasi: [
                    rng.random_range(17..97),
                    rng.random_range(1..3),
                    rng.random_range(1..25),
                    rng.random_range(0..224),
                ],
                // Squares, so that some values are more frequent.
                value: (rng.random::<f64>().powf(1.2) * 50.0) as i32,
            };
            let mut people: Vec<Person> = (0..rows as i64).map(|id| person(id, &mut rng)).collect();
            let m = 6;
            let method = MDistinct::new(m).with_disjoint(disjoint).with_on_ineligible(OnIneligible::Counterfeit);
            let method = AnyMethod::MDistinct(method);
            let mut history = History::default();
            let mut seconds = [0.0; 2];
            let mut last = None;
            for (number, seconds) in (1..).zip(&mut seconds) {
                let mut best = f64::INFINITY;
                for _ in 0..3 {
                    let (microdata, state) = encode(&people, &history.known, &classes, method.state(), number);
                    let mut rng = ChaCha20Rng::seed_from_u64(number);
                    let start = Instant::now();
                    let release = release(&method, microdata, &state, &mut rng).unwrap();
                    best = best.min(start.elapsed().as_secs_f64());
                    last = Some(release);
                }
                *seconds = best;
                history.add(number, last.as_ref().unwrap());
                people.drain(..rows / 10);
                for person in people.iter_mut().step_by(4) {
                    let class = classes.of(person.value);
                    person.value = rng.random_range(class);
                }
                people.extend((0..rows as i64 / 10).map(|id| person(rows as i64 * (number as i64 + 1) + id, &mut rng)));
            }
            let growth = |i: usize| {
                let growth = |(less, before): (f64, [f64; 2])| seconds[i] / before[i] / (rows as f64 / less);
                before.map_or_else(String::new, |before| format!("{:.2}", growth(before)))
            };
            let release = last.unwrap();
            println!(
                "| {rows} | {size} | {disjoint} | {:.3} s | {} | {:.3} s | {} | {} | {:.3} |",
                seconds[0],
                growth(0),
                seconds[1],
                growth(1),
                release.counterfeits(),
                release.mean_extent()
            );
            before = Some((rows as f64, seconds));
        }
    }
}
