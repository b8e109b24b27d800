//! Exact releases of many people in a row, against the definition, with their costs. People leave, return and change.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int32Type;
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::tests::{Dated, Known, Pairs, Row, encode_dated, groups};
use super::*;
use crate::microdata::census::Census;

/// Rows of the law, which sum to 1.
type Rows = BTreeMap<String, Vec<(String, f64)>>;

/// Published releases, and the memory of the publisher.
struct Chain {
    method: MDistinct,
    /// Values of a component.
    width: usize,
    law: Rows,
    known: Known,
    releases: BTreeMap<i64, u64>,
    number: u64,
}

impl Chain {
    fn new(m: usize, law: Rows) -> Self {
        Self {
            method: MDistinct::new(m).with_exact(true),
            width: WIDTH,
            law,
            known: Known::new(),
            releases: BTreeMap::new(),
            number: 1,
        }
    }

    /// Returns the next release; where it is refused, there is none.
    fn publish(&mut self, rows: &[Row], seed: u64) -> Result<Release> {
        let (pairs, probabilities): (Pairs, Vec<f64>) = self
            .law
            .iter()
            .flat_map(|(from, row)| row.iter().map(move |(to, share)| ((from.clone(), to.clone()), *share)))
            .unzip();
        let here: BTreeSet<i64> = rows.iter().map(|row| row.0).collect();
        let known: Known =
            self.known.iter().filter(|(id, _)| here.contains(id)).map(|(id, known)| (*id, known.clone())).collect();
        let dated = Dated { releases: self.releases.clone(), number: self.number, probabilities };
        let (microdata, state) = encode_dated(rows, &known, &pairs, seed, &dated)?;
        self.method.anonymize(microdata, &state, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(seed))
    }

    /// Remembers a release.
    fn add(&mut self, release: &Release) {
        for group in groups(release) {
            let values: Vec<String> = group.iter().map(|(_, value)| value.clone()).collect();
            for (label, (id, _)) in group.iter().enumerate() {
                if let Some(id) = *id {
                    self.known.insert(id, (values.clone(), label));
                    self.releases.insert(id, self.number);
                }
            }
        }
        self.number += 1;
    }

    /// Returns the distribution of a value after so many releases.
    fn after(&self, value: &str, releases: u64) -> BTreeMap<String, f64> {
        let mut shares = BTreeMap::from([(value.to_owned(), 1.0)]);
        for _ in 0..releases {
            let mut next = BTreeMap::new();
            for (value, share) in &shares {
                for (to, probability) in &self.law[value] {
                    *next.entry(to.clone()).or_insert(0.0) += share * probability;
                }
            }
            shares = next;
        }
        shares
    }

    /// Checks a release: everybody once; groups of `m` components; new people alone and without counterfeits. Those who
    /// return keep their place, and meet people whose places go on as theirs do.
    fn check(&self, release: &Release, rows: &[Row]) {
        let component = |value: &String| value[1..].parse::<usize>().unwrap() / self.width;
        let values: BTreeMap<i64, &String> = rows.iter().map(|row| (row.0, &row.2)).collect();
        let mut seen = BTreeSet::new();
        for group in groups(release) {
            let components: Vec<usize> = group.iter().map(|(_, value)| component(value)).collect();
            assert!(components.len() >= self.method.m && components.is_sorted_by(|a, b| a < b));
            let people = || group.iter().enumerate().filter_map(|(place, (id, value))| Some((place, (*id)?, value)));
            let new = people().filter(|(_, id, _)| !self.known.contains_key(id)).count();
            assert!(new == 0 || new == group.len(), "new people beside others");
            let mut kinds: Vec<Vec<BTreeMap<String, f64>>> = Vec::new();
            for (place, id, value) in people() {
                assert!(seen.insert(id) && values[&id] == value);
                let Some((before, label)) = self.known.get(&id) else { continue };
                assert_eq!((*label, before.len()), (place, group.len()));
                let steps = self.number - self.releases[&id];
                kinds.push(before.iter().map(|value| self.after(value, steps)).collect());
            }
            for kind in &kinds {
                for (laws, (_, value)) in kind.iter().zip(kinds[0].iter()).zip(&group) {
                    let (ours, theirs) = laws;
                    assert!(ours.contains_key(value));
                    assert!(
                        ours.len() == theirs.len()
                            && ours.iter().all(|(value, share)| (theirs[value] - share).abs() < 1e-9)
                    );
                }
            }
        }
        assert_eq!(seen.len(), rows.len());
    }
}

/// Values of a component, where values change.
const WIDTH: usize = 3;

/// Returns the values that stay as they are.
fn frozen(values: usize) -> Rows {
    (0..values).map(|value| format!("v{value:02}")).map(|name| (name.clone(), vec![(name, 1.0)])).collect()
}

/// Returns the components of three values each, of which none is certain to change.
fn law(components: usize, draws: &[u8]) -> Rows {
    let name = |value: usize| format!("v{value:02}");
    let row = |value: usize| {
        let draw = usize::from(draws[value % draws.len()]);
        let [goes, to] = [draw % 4 + 1, draw / 4 % 2 + 1];
        let first = value / WIDTH * WIDTH;
        let others = [(to, goes), (3 - to, draw / 8 % 3)];
        let others = others.map(|(on, tenths)| (name(first + (value - first + on) % WIDTH), tenths as f64 / 10.0));
        let rest = 1.0 - others.iter().map(|(_, share)| share).sum::<f64>();
        let row = others.into_iter().chain([(name(value), rest)]).filter(|(_, share)| *share > 0.0);
        (name(value), row.collect())
    };
    (0..components * WIDTH).map(row).collect()
}

fn draw_next(law: &Rows, value: &str, mut at: f64) -> String {
    for (to, share) in &law[value] {
        at -= share;
        if at < 0.0 {
            return to.clone();
        }
    }
    value.to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Also whatever the order of arrival and the number of threads.
    #[test]
    fn chains_of_exact_releases(
        m in 2_usize..4, draws in prop::collection::vec(any::<u8>(), 15), releases in 2_usize..7, size in 10_i64..40, stay in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let law = if stay { frozen(15) } else { law(5, &draws) };
        let mut chain = Chain::new(m, law.clone());
        chain.width = if stay { 1 } else { WIDTH };
        // Closed, so that two steps are possible if one is; the law says that they are not in one.
        chain.method.close_updates = true;
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut people: Vec<Row> = Vec::new();
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        for _ in 0..releases {
            let before = people.clone();
            for person in &mut people {
                person.2 = draw_next(&law, &person.2, rng.random());
                person.1[0] = rng.random_range(0..30);
            }
            let first = people.len() as i64;
            people.extend((first..first + size).map(|id| (id, vec![rng.random_range(0..30), 3], format!("v{:02}", rng.random_range(0..15)))));
            // People who were there may be missing.
            let here: Vec<Row> = people.iter().filter(|person| person.0 >= first || rng.random_bool(0.7)).cloned().collect();
            match chain.publish(&here, seed) {
                Ok(release) => {
                    chain.check(&release, &here);
                    let backward: Vec<Row> = here.iter().rev().cloned().collect();
                    let alone = one.install(|| chain.publish(&backward, seed)).unwrap();
                    prop_assert_eq!(groups(&release), groups(&alone));
                    chain.add(&release);
                }
                // Nobody came, and nothing has changed.
                Err(Error::Refused(_)) => people = before,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn what_exact_releases_refuse() {
    let row = |id: i64, value: &str| -> Row { (id, vec![id as i32, 1], value.to_owned()) };
    let law = law(2, &[1, 1, 1, 1, 1, 1]);
    let mut chain = Chain::new(2, law.clone());
    let refusal = |chain: &mut Chain, rows: &[Row]| chain.publish(rows, 1).unwrap_err().to_string();
    let text = refusal(&mut chain, &[row(1, "v00"), row(2, "v01"), row(3, "v03")]);
    assert!(text.contains("component of disease") && text.contains("not 2-eligible"), "{text}");
    let first = [row(1, "v00"), row(2, "v03")];
    let release = chain.publish(&first, 1).unwrap();
    chain.add(&release);
    let text = refusal(&mut chain, &[row(1, "v03"), row(2, "v03")]);
    assert!(text.contains("of 1 returning rows cannot have followed"), "{text}");
    chain.number = 20_000;
    let text = refusal(&mut chain, &first);
    assert!(text.contains("more than 10,000 periods ago"), "{text}");
    chain.number = 2;
    chain.method.disjoint = false;
    let text = refusal(&mut chain, &first);
    assert!(text.contains("exact releases have disjoint first groups"), "{text}");
    chain.method = MDistinct::new(3).with_exact(true);
    assert!(refusal(&mut chain, &first).contains("the largest m that they allow is 2"));
}

/// People of the census, fifty occupations in 25 components of two. A twentieth leave at each release, half of whom can come back later, and as many come; of
/// a twentieth the occupation changes. Prints what `docs/m_distinct.md` says.
#[test]
fn what_exact_releases_cost() {
    // Enough to see that it grows, and what it grows to if asked: ANONYMIZE_COST=50000.
    let size: usize = std::env::var("ANONYMIZE_COST").ok().and_then(|rows| rows.parse().ok()).unwrap_or(1_500);
    let releases = if size > 10_000 { 20 } else { 5 };
    let name = |value: i32| format!("v{value:02}");
    let law: Rows =
        (0..50).map(|value| (name(value), vec![(name(value), 0.95), (name((value + 25) % 50), 0.05)])).collect();
    for m in [2, 4, 6] {
        let census = Census::new(4 * size as u64, 7);
        let mut waiting: Vec<Row> = Vec::new();
        for block in 0.. {
            let batch = census.block(block).unwrap();
            let column = |place: usize| batch.column(place).as_primitive::<Int32Type>().values().clone();
            let [age, gender, education, occupation] = [1, 2, 3, 5].map(column);
            let first = waiting.len();
            waiting.extend((0..batch.num_rows()).map(|row| {
                let quasi = vec![age[row], gender[row], education[row]];
                ((first + row) as i64, quasi, name(occupation[row] - 1))
            }));
            if batch.num_rows() == 0 || waiting.len() >= 3 * size {
                break;
            }
        }
        let mut chain = Chain::new(m, law.clone());
        let mut rng = ChaCha20Rng::seed_from_u64(m as u64);
        let mut here = waiting.split_off(waiting.len() - size);
        let mut line = format!("m = {m}:");
        for number in 1..=releases {
            if number > 1 {
                here.shuffle(&mut rng);
                waiting.shuffle(&mut rng);
                let left = here.split_off(size - size / 20);
                here.extend(waiting.split_off(waiting.len() - size / 20));
                // Half of whom left come back.
                waiting.extend(left.into_iter().step_by(2));
                for person in here.iter_mut().chain(&mut waiting).filter(|_| rng.random_bool(0.05)) {
                    let value: i32 = person.2[1..].parse().unwrap();
                    person.2 = name((value + 25) % 50);
                }
            }
            let start = std::time::Instant::now();
            let release = chain.publish(&here, number).unwrap();
            let share = 100.0 * release.counterfeits() as f64 / size as f64;
            if [2, 5, 10, 20].contains(&number) {
                line += &format!(
                    " release {number}: {share:.1} % ({:.2} s, loss {:.3})",
                    start.elapsed().as_secs_f64(),
                    release.mean_extent()
                );
                // Twice as many as people are more than any kind of two people needs.
                assert!(share > 0.0 && share < 100.0 * m as f64, "{share}");
            } else if number == 1 {
                assert_eq!(release.counterfeits(), 0);
            }
            chain.add(&release);
        }
        println!("{size} people, {line}");
    }
}
