//! Errors of estimates, and coverage of `count_interval`, on real and synthetic microdata.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::prelude::SessionContext;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::support::{microdata, number, run, session, table};

/// A table and how it is released.
struct Data {
    name: &'static str,
    /// The table: identifier `id`, quasi-identifiers, sensitive value.
    rel: String,
    quasi: &'static [&'static str],
    sensitive: &'static str,
    m: usize,
    /// Greatest median relative error of counts at selectivity 10 %, in percent: of fitted estimates, measured and rounded up.
    most: f64,
}

fn all() -> Vec<Data> {
    let mut all = vec![Data {
        name: "census",
        rel: "SELECT person_id AS id, age, gender, education, birthplace, occupation FROM census(40000)".to_owned(),
        quasi: &["age", "gender", "education", "birthplace"],
        sensitive: "occupation",
        m: 10,
        most: 11.0,
    }];
    if let Some(adult) = microdata("adult.parquet") {
        all.push(Data {
            name: "ADULT",
            rel: format!(
                "SELECT record_id AS id, age, sex, race, education_num, marital_status, occupation FROM '{adult}'
                 WHERE occupation IS NOT NULL"
            ),
            quasi: &["age", "sex", "race", "education_num", "marital_status"],
            sensitive: "occupation",
            m: 7,
            most: 13.0,
        });
    }
    if let Some(acs) = microdata("acs_income.parquet") {
        all.push(Data {
            name: "ACS",
            rel: format!(
                "SELECT person_id AS id, age, sex, education, birthplace, occupation FROM '{acs}' WHERE person_id % 4 = 1"
            ),
            quasi: &["age", "sex", "education", "birthplace"],
            sensitive: "occupation",
            m: 10,
            most: 17.0,
        });
    }
    if let Some(chicago) = microdata("chicago_crime.parquet") {
        all.push(Data {
            name: "Chicago",
            rel: format!(
                "SELECT incident_id AS id, location_description, district, community_area, domestic, description
                 FROM '{chicago}' WHERE incident_id % 3 = 1"
            ),
            quasi: &["location_description", "district", "community_area", "domestic"],
            sensitive: "description",
            m: 9,
            most: 18.0,
        });
    }
    all
}

async fn publish(context: &SessionContext, data: &Data) {
    run(context, &format!("CREATE OR REPLACE TABLE t AS {}", data.rel)).await.unwrap();
    // Groups of the whole cohort are wide, so that it matters what lies inside of them.
    release(context, data, &format!("m_invariant(t, {}, id => id, groups => 'cohort'", data.m)).await;
}

/// Releases the table by a call without its other columns and its end.
async fn release(context: &SessionContext, data: &Data, call: &str) {
    let (quasi, sensitive) = (data.quasi.join(", "), data.sensitive);
    let call = format!("{call}, quasi => ({quasi}), sensitive => {sensitive}, seed => 1)");
    run(context, &format!("CREATE OR REPLACE TABLE r AS SELECT * FROM {call}")).await.unwrap();
}

/// Returns the median relative error of random counts, in percent.
async fn error(context: &SessionContext, distribution: &str) -> f64 {
    let sql = format!(
        "SELECT CAST(median(relative_error) * 10000 AS BIGINT)
         FROM query_accuracy(t, r, queries => 2000, selectivity => 0.1, distribution => '{distribution}', seed => 1)"
    );
    number(context, &sql).await as f64 / 100.0
}

#[tokio::test(flavor = "multi_thread")]
async fn fitted_estimates_are_nearer_than_uniform_ones() {
    let context = session();
    for data in all() {
        publish(&context, &data).await;
        let (fitted, uniform) = (error(&context, "fitted").await, error(&context, "uniform").await);
        println!("{}, m = {}: median error {fitted} %, uniform {uniform} %", data.name, data.m);
        assert!(fitted <= data.most, "{}: {fitted}", data.name);
        let bound = if data.name == "census" { uniform * 1.15 } else { uniform * 0.8 };
        assert!(fitted <= bound, "{}: {fitted} instead of {uniform}", data.name);
    }
}

/// Returns the values of each attribute in their order, as they are written in SQL.
async fn domains(context: &SessionContext, data: &Data) -> Vec<(&'static str, Vec<String>)> {
    let mut domains = Vec::new();
    for name in data.quasi.iter().copied().chain([data.sensitive]) {
        let sql = format!("SELECT DISTINCT {name} FROM t WHERE {name} IS NOT NULL ORDER BY {name}");
        let mut values = Vec::new();
        for batch in run(context, &sql).await.unwrap() {
            let column = batch.column(0);
            let quoted =
                if column.data_type().is_numeric() || *column.data_type() == DataType::Boolean { "" } else { "'" };
            let texts = cast(column, &DataType::Utf8).unwrap();
            let texts = texts.as_string::<i32>().iter().flatten();
            values.extend(texts.map(|text| format!("{quoted}{}{quoted}", text.replace('\'', "''"))));
        }
        domains.push((name, values));
    }
    domains
}

/// Counts the random counts that are in their intervals.
async fn covered(context: &SessionContext, data: &Data, selectivity: f64, rng: &mut StdRng) -> (usize, usize) {
    const QUERIES: usize = 20;
    let domains = domains(context, data).await;
    let share = selectivity.powf(1.0 / domains.len() as f64);
    let (mut inside, mut asked) = (0, 0);
    while asked < QUERIES {
        let conditions: Vec<String> = (0..10)
            .map(|_| {
                let ranges = domains.iter().map(|(name, values)| {
                    let length = ((values.len() as f64 * share).round() as usize).clamp(1, values.len());
                    let first = rng.random_range(0..=values.len() - length);
                    format!("{name} BETWEEN {} AND {}", values[first], values[first + length - 1])
                });
                ranges.collect::<Vec<_>>().join(" AND ")
            })
            .collect();
        let select = |what: &str| {
            let all = conditions.iter().enumerate();
            all.map(|(i, condition)| format!("{what} FILTER (WHERE {condition}) AS c{i}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let truth = integers(context, &format!("SELECT {} FROM t", select("count(*)"))).await;
        let ends = (0..conditions.len()).map(|i| format!("c{i}['lo'], c{i}['hi']")).collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {ends} FROM (SELECT {} FROM estimated(r))", select("count_interval(*, 0.95)"));
        let ends = integers(context, &sql).await;
        for (truth, ends) in truth.iter().zip(ends.chunks(2)).filter(|(truth, _)| **truth > 0) {
            asked += 1;
            inside += usize::from((ends[0]..=ends[1]).contains(truth));
        }
    }
    (inside, asked)
}

async fn integers(context: &SessionContext, sql: &str) -> Vec<i64> {
    let batches = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    batches[0].columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_hold_the_truth() {
    let context = session();
    let mut rng = StdRng::seed_from_u64(7);
    for data in all() {
        publish(&context, &data).await;
        let everybody = number(&context, "SELECT count(*) FROM t").await;
        let releases = [
            ("m_invariant", String::new(), &[0.02, 0.05, 0.1][..]),
            ("mondrian", "mondrian(t, 10, id => id".to_owned(), &[0.05]),
            ("anatomy", format!("anatomy(t, {}, id => id", data.m), &[0.05]),
        ];
        for (method, call, selectivities) in releases {
            if !call.is_empty() {
                release(&context, &data, &call).await;
            }
            let exact = table(
                &context,
                "SELECT c['lo'] AS lo, c['hi'] AS hi FROM (SELECT count_interval(*, 0.95) AS c FROM estimated(r))",
            )
            .await;
            assert_eq!(exact.matches(&everybody.to_string()).count(), 2, "{exact}");
            for &selectivity in selectivities {
                let (inside, asked) = covered(&context, &data, selectivity, &mut rng).await;
                let share = inside as f64 / asked as f64;
                println!(
                    "{}, {method}, selectivity {selectivity}: the truth is inside in {inside} of {asked} queries, {:.1} %",
                    data.name,
                    100.0 * share
                );
                assert!(share >= 0.85, "{}, {method}: {share}", data.name);
            }
        }
    }
}
