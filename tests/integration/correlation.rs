//! Inferences from correlations: quasi-identifiers and values hang together, and a reader who learns that from all groups
//! guesses better in each. No bound of any method is about that; `docs/threats.md` gives the figures printed here.

use std::collections::BTreeMap;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::prelude::SessionContext;

use super::support::{microdata, number, run, session};

/// People of the ACS, the largest of the tables.
const PEOPLE: usize = 50_000;
/// Number of the surest guesses that are looked at.
const SUREST: usize = 1000;
/// Sets how often the reader learns from what the last round believes.
const ROUNDS: usize = 8;
/// Sets how often shares are scaled, to one per person and to the group's values.
const SCALINGS: usize = 25;

/// Returns the columns of whole numbers that a query returns.
async fn columns(context: &SessionContext, sql: &str) -> Vec<Vec<i64>> {
    let batches = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = concat_batches(&batches[0].schema(), &batches).unwrap();
    let column = |j: usize| -> Vec<i64> {
        let numbers = cast(rows.column(j), &DataType::Int64).unwrap();
        numbers.as_primitive::<Int64Type>().iter().map(|x| x.unwrap_or(-1)).collect()
    };
    (0..rows.num_columns()).map(column).collect()
}

/// Numbers of different values, in their order.
#[derive(Debug, Default)]
struct Codes(BTreeMap<i64, usize>);

impl Codes {
    fn of(values: impl IntoIterator<Item = i64>) -> Self {
        let mut codes: BTreeMap<i64, usize> = values.into_iter().map(|value| (value, 0)).collect();
        codes.values_mut().enumerate().for_each(|(number, code)| *code = number);
        Self(codes)
    }
}

/// Naive Bayes: how many people are expected to have each value, and each value with each quasi-identifier.
struct Bayes {
    of_value: Vec<f64>,
    /// By quasi-identifier, value and code.
    with: Vec<Vec<f64>>,
    sizes: Vec<usize>,
}

impl Bayes {
    fn new(values: usize, sizes: &[usize]) -> Self {
        let with = sizes.iter().map(|size| vec![0.0; values * size]).collect();
        Self { of_value: vec![0.0; values], with, sizes: sizes.to_vec() }
    }

    fn learn(&mut self, known: &[usize], value: usize, share: f64) {
        self.of_value[value] += share;
        for ((with, size), code) in self.with.iter_mut().zip(&self.sizes).zip(known) {
            with[value * size + code] += share;
        }
    }

    /// Returns the probability of quasi-identifiers given a value, smoothed.
    fn likelihood(&self, known: &[usize], value: usize) -> f64 {
        let columns = self.with.iter().zip(&self.sizes).zip(known);
        columns
            .map(|((with, size), code)| (with[value * size + code] + 1.0) / (self.of_value[value] + *size as f64))
            .product()
    }
}

/// Holds what the reader has: everybody's quasi-identifiers, and values as codes to compare guesses with.
struct People {
    known: Vec<Vec<usize>>,
    sizes: Vec<usize>,
    truth: Vec<usize>,
    values: usize,
}

impl People {
    /// Makes people of a table: identifier, value, quasi-identifiers, in the order of identifiers.
    fn new(columns: &[Vec<i64>]) -> (Self, Vec<Codes>) {
        let codes: Vec<Codes> = columns[1..].iter().map(|column| Codes::of(column.iter().copied())).collect();
        let coded = |j: usize, row: usize| codes[j].0[&columns[j + 1][row]];
        let people = Self {
            known: (0..columns[0].len()).map(|row| (1..codes.len()).map(|j| coded(j, row)).collect()).collect(),
            sizes: codes[1..].iter().map(|codes| codes.0.len()).collect(),
            truth: (0..columns[0].len()).map(|row| coded(0, row)).collect(),
            values: codes[0].0.len(),
        };
        (people, codes)
    }
}

/// A group as the reader of `docs/threats.md` knows it: who is in it, and how often each value is.
#[derive(Default)]
struct Group {
    members: Vec<usize>,
    values: BTreeMap<usize, f64>,
    /// Believed share of each value, member after member.
    shares: Vec<f64>,
}

impl Group {
    /// Believes what is likely, under two conditions: everybody has one value, and the group has as many of each as it says.
    fn balance(&mut self, likelihood: impl Fn(usize, usize) -> f64) {
        let width = self.values.len();
        self.shares.clear();
        for &member in &self.members {
            self.shares.extend(self.values.iter().map(|(&value, count)| likelihood(member, value) * count));
        }
        for _ in 0..SCALINGS {
            for (column, count) in self.values.values().enumerate() {
                let sum: f64 = self.shares.iter().skip(column).step_by(width).sum();
                self.shares
                    .iter_mut()
                    .skip(column)
                    .step_by(width)
                    .for_each(|share| *share *= count / sum.max(f64::MIN_POSITIVE));
            }
            for row in self.shares.chunks_exact_mut(width) {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|share| *share /= sum.max(f64::MIN_POSITIVE));
            }
        }
    }
}

/// Returns the shares of right guesses: of the surest, and of all.
fn right(mut guesses: Vec<(f64, bool)>) -> [f64; 2] {
    guesses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = |of: &[(f64, bool)]| of.iter().filter(|(_, right)| *right).count() as f64 / of.len() as f64;
    [share(&guesses[..SUREST]), share(&guesses)]
}

/// Returns the most likely of some values.
fn best(shares: impl Iterator<Item = (usize, f64)>) -> (usize, f64) {
    shares.fold((0, -1.0), |best, next| if next.1 > best.1 { next } else { best })
}

/// Guesses inside of groups by learning from the round before. It learns which values go with which
/// quasi-identifiers. At first everybody of a group has each of its values in equal parts.
fn by_groups(people: &People, mut groups: Vec<Group>) -> [f64; 2] {
    groups.iter_mut().for_each(|group| group.balance(|_, _| 1.0));
    for _ in 0..ROUNDS {
        let mut bayes = Bayes::new(people.values, &people.sizes);
        for group in &groups {
            for (&member, shares) in group.members.iter().zip(group.shares.chunks_exact(group.values.len())) {
                group
                    .values
                    .keys()
                    .zip(shares)
                    .for_each(|(&value, &share)| bayes.learn(&people.known[member], value, share));
            }
        }
        groups
            .iter_mut()
            .for_each(|group| group.balance(|member, value| bayes.likelihood(&people.known[member], value)));
    }
    let of_group = |group: &Group| -> Vec<(f64, bool)> {
        let of_member = |(&member, shares): (&usize, &[f64])| {
            let (value, share) = best(group.values.keys().copied().zip(shares.iter().copied()));
            (share, value == people.truth[member])
        };
        group.members.iter().zip(group.shares.chunks_exact(group.values.len())).map(of_member).collect()
    };
    right(groups.iter().flat_map(of_group).collect())
}

/// Guesses from rows without groups. It learns from the rows as they are published (of a range from both of its
/// ends), for everybody among all values.
fn by_rows(people: &People, rows: &[(Vec<usize>, usize)]) -> [f64; 2] {
    let mut bayes = Bayes::new(people.values, &people.sizes);
    rows.iter().for_each(|(known, value)| bayes.learn(known, *value, 1.0));
    let guess = |(known, &truth): (&Vec<usize>, &usize)| {
        let likely = |value: usize| (value, bayes.likelihood(known, value) * bayes.of_value[value]);
        let all: Vec<(usize, f64)> = (0..people.values).map(likely).collect();
        let (value, share) = best(all.iter().copied());
        (share / all.iter().map(|(_, share)| share).sum::<f64>(), value == truth)
    };
    right(people.known.iter().zip(&people.truth).map(guess).collect())
}

/// A table of people in the session: `person`, quasi-identifiers, `value`.
struct Data<'a> {
    name: &'a str,
    quasi: &'a [&'a str],
    /// Of groups, and the bound is one of that many.
    m: usize,
}

impl Data<'_> {
    async fn people(&self, context: &SessionContext) -> (People, Vec<Codes>) {
        let sql = format!("SELECT person, value, {} FROM people ORDER BY person", self.quasi.join(", "));
        People::new(&columns(context, &sql).await)
    }

    fn call(&self, method: &str, more: &str) -> String {
        let quasi = self.quasi.join(", ");
        format!("{method}, id => person, quasi => ({quasi}), sensitive => value, seed => 1{more})")
    }

    /// Returns what is right about guesses from a release in groups.
    async fn groups(&self, context: &SessionContext, method: &str) -> [f64; 2] {
        let (people, codes) = self.people(context).await;
        run(
            context,
            &format!("CREATE OR REPLACE TABLE release AS SELECT * FROM {}", self.call(method, ", private => true")),
        )
        .await
        .unwrap_or_else(|error| panic!("{method}: {error}"));
        let sql = "SELECT r.group_id, p.value FROM people p JOIN release r ON p.person = r.person ORDER BY p.person";
        let rows = columns(context, sql).await;
        assert_eq!(rows[0].len(), people.known.len());
        assert_eq!(
            number(context, "SELECT count(*) FROM release").await as usize,
            people.known.len(),
            "no counterfeits"
        );
        // The values of a group are in the release; of a first release, which has no counterfeits, they are those of its people.
        let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
        for (person, (group, value)) in rows[0].iter().zip(&rows[1]).enumerate() {
            let group = groups.entry(*group).or_default();
            group.members.push(person);
            *group.values.entry(codes[0].0[value]).or_default() += 1.0;
        }
        by_groups(&people, groups.into_values().collect())
    }

    /// Returns the same from a public release of rows: each column is an expression.
    async fn rows(&self, context: &SessionContext, relation: &str, ends: &[&dyn Fn(&str) -> String]) -> [f64; 2] {
        let (people, codes) = self.people(context).await;
        let mut learned = Vec::new();
        for end in ends {
            let quasi: Vec<String> = self.quasi.iter().map(|column| end(column)).collect();
            let rows = columns(context, &format!("SELECT value, {} FROM {relation}", quasi.join(", "))).await;
            for row in 0..rows[0].len() {
                let known = (1..rows.len()).map(|j| codes[j].0[&rows[j][row]]).collect();
                learned.push((known, codes[0].0[&rows[0][row]]));
            }
        }
        by_rows(&people, &learned)
    }

    fn tell(&self, method: &str, kind: &str, [surest, all]: [f64; 2]) {
        println!(
            "{}, bound {:.3}, values {kind}, {method}: right for {surest:.3} of the {SUREST} surest guesses, {all:.3} of all",
            self.name,
            1.0 / self.m as f64
        );
    }

    /// Returns what is right by chance, with room for it.
    fn chance(&self) -> f64 {
        let bound = 1.0 / self.m as f64;
        bound + 4.5 * (bound * (1.0 - bound) / SUREST as f64).sqrt()
    }
}

/// Makes `people` of a table `everybody`, with their own values or values by lot.
async fn give_out(context: &SessionContext, by_lot: bool) {
    let order = if by_lot { "person * 1103515245 % 2147483647 % 99991 * 69069 % 65537, person" } else { "person" };
    let sql = format!(
        "CREATE OR REPLACE TABLE people AS SELECT a.* EXCLUDE (value, place), b.value
         FROM (SELECT *, row_number() OVER (ORDER BY person) AS place FROM everybody) a
         JOIN (SELECT value, row_number() OVER (ORDER BY {order}) AS place FROM everybody) b ON a.place = b.place"
    );
    run(context, &sql).await.unwrap();
}

/// Of the ACS, every method: with values as they are, the surest guesses are right far more often than the bound; with values given out by
/// lot they are not. So it is what the data say, and not what a method lets slip.
#[tokio::test(flavor = "multi_thread")]
async fn balanced_bayes_learns_from_correlation_only() {
    let Some(acs) = microdata("acs_income.parquet") else { return };
    let context = session();
    let everybody = format!(
        "CREATE TABLE everybody AS SELECT person_id AS person, age, sex, education, birthplace, occupation AS value
         FROM '{acs}' ORDER BY person_id * 7919 % 1000003 LIMIT {PEOPLE}"
    );
    run(&context, &everybody).await.unwrap();
    // An occupation can become the other one of its pair.
    let law = "CREATE TABLE law AS
        WITH o AS (SELECT value, (row_number() OVER (ORDER BY value) - 1) / 2 AS pair FROM (SELECT DISTINCT value FROM everybody))
        SELECT a.value AS from_value, b.value AS to_value, 0.05 AS probability FROM o a JOIN o b ON a.pair = b.pair AND a.value <> b.value";
    run(&context, law).await.unwrap();
    let data = Data { name: "ACS", quasi: &["age", "sex", "education", "birthplace"], m: 5 };
    let methods = [
        "m_invariant(people, 5",
        "m_invariant(people, 5, reader => 'participant'",
        "m_invariant(people, 5, groups => 'cohort'",
        "m_distinct(people, 5, updates => law, exact => true",
        "dynamic(people, 5",
        "anatomy(people, 5",
        "mondrian(people, 5, 5, cuts => 'fair'",
    ];
    for (kind, by_lot) in [("as they are", false), ("by lot", true)] {
        give_out(&context, by_lot).await;
        for method in methods {
            let right = data.groups(&context, method).await;
            data.tell(method, kind, right);
            match by_lot {
                true => assert!(right.iter().all(|share| *share < data.chance()), "{method}: {right:?}"),
                false => assert!(right[0] > 0.3, "{method}: {right:?}"),
            }
        }
        let muco = data.call("muco(people, delta => 'equal', l => 5", "");
        let of_muco = data.rows(&context, &muco, &[&|column| column.to_owned()]).await;
        data.tell("muco(people, delta => 'equal', l => 5", kind, of_muco);
        let worlds = data.call("sequential_worlds(people, 5", "");
        run(&context, &format!("CREATE OR REPLACE TABLE worlds AS SELECT * FROM {worlds}")).await.unwrap();
        let release = data.call("sequential_release(people, worlds", "");
        run(&context, &format!("CREATE OR REPLACE TABLE release AS SELECT * FROM {release}")).await.unwrap();
        let ends: [&dyn Fn(&str) -> String; 2] =
            [&|column| format!("{column}['lo']"), &|column| format!("{column}['hi']")];
        let of_sequential = data.rows(&context, "release", &ends).await;
        data.tell("sequential_release(people, worlds of l = 5", kind, of_sequential);
        // Without groups there are no few values to choose from, and by lot hardly anything is right.
        for right in [of_muco, of_sequential] {
            match by_lot {
                true => assert!(right[0] < 0.1, "{right:?}"),
                false => assert!(right[0] > 0.15, "{right:?}"),
            }
        }
    }
}

/// Of ADULT, and of a table in which diagnoses go with age and sex.
#[tokio::test(flavor = "multi_thread")]
async fn where_values_follow_from_quasi_identifiers_most_guesses_are_right() {
    let context = session();
    // Four in ten diagnoses can be anybody's, and the others are of an age and mostly of a sex.
    let hospital = "CREATE TABLE everybody AS
        SELECT person, age, sex, postcode, CASE WHEN lot < 40 THEN lot % 4 ELSE 4 + 4 * least(age / 15, 5) + 2 * sex + lot % 2 END AS value
        FROM (SELECT value AS person, value * 7919 % 89 AS age, value % 2 AS sex, value * 31 % 50 AS postcode,
                     value * 48271 % 2147483647 % 100 AS lot FROM generate_series(1, 20000))";
    run(&context, hospital).await.unwrap();
    let data = Data { name: "a hospital", quasi: &["age", "sex", "postcode"], m: 3 };
    let methods = ["m_invariant(people, 3", "m_invariant(people, 3, groups => 'cohort'", "anatomy(people, 3"];
    for (kind, by_lot) in [("as they are", false), ("by lot", true)] {
        give_out(&context, by_lot).await;
        for method in methods {
            let right = data.groups(&context, method).await;
            data.tell(method, kind, right);
            let expected = if by_lot { 0.0..data.chance() } else { 0.9..1.1 };
            assert!(expected.contains(&right[0]), "{method}: {right:?}");
        }
    }
    let Some(adult) = microdata("adult.parquet") else { return };
    let quasi = ["age", "workclass", "education", "marital_status", "race", "sex", "native_country"];
    let coded: Vec<String> =
        quasi.iter().map(|column| format!("dense_rank() OVER (ORDER BY {column}) AS {column}")).collect();
    let everybody = format!(
        "CREATE OR REPLACE TABLE everybody AS SELECT record_id AS person, {}, dense_rank() OVER (ORDER BY occupation) AS value
         FROM '{adult}' WHERE is_complete AND split = 'train'",
        coded.join(", ")
    );
    run(&context, &everybody).await.unwrap();
    let data = Data { name: "ADULT", quasi: &quasi, m: 3 };
    give_out(&context, false).await;
    for method in methods {
        let right = data.groups(&context, method).await;
        data.tell(method, "as they are", right);
        assert!(right[0] > 0.5, "{method}: {right:?}");
    }
}
