//! Sequential releases by SQL, against an independent matcher, and against projections.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::risk::{ReleasedRows, World, people_outside_rings};

use super::support::{microdata, number, run, session};

const QUASI: [&str; 4] = ["age", "gender", "education", "birthplace"];

/// Returns all rows of a query, column after column, as whole numbers.
async fn numbers(context: &SessionContext, sql: &str) -> Vec<Vec<i64>> {
    let batches: Vec<RecordBatch> = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let column = |column: usize| {
        let of_batch = |batch: &RecordBatch| {
            let values = cast(batch.column(column), &DataType::Int64).unwrap();
            assert_eq!(values.null_count(), 0);
            values.as_primitive::<Int64Type>().values().to_vec()
        };
        batches.iter().flat_map(of_batch).collect()
    };
    (0..batches[0].num_columns()).map(column).collect()
}

/// Every release is consistent with all worlds, for different columns and more people. Releases are of a publication, and of the functions.
#[tokio::test(flavor = "multi_thread")]
async fn every_world_is_possible() {
    let context = session();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(4000, 3)").await.unwrap();
    let roles = format!("id => person_id, quasi => ({}), sensitive => occupation", QUASI.join(", "));
    let first = format!(
        "CREATE TABLE first AS SELECT * FROM sequential_worlds((SELECT * FROM people WHERE person_id <= 3000), 5, {roles})"
    );
    run(&context, &first).await.unwrap();
    let all = format!(
        "CREATE TABLE worlds AS SELECT * FROM first UNION ALL SELECT * FROM sequential_worlds(people, 5, worlds => first, {roles})"
    );
    run(&context, &all).await.unwrap();
    let partners = numbers(
        &context,
        "SELECT person_id, partners[1], partners[2], partners[3], partners[4] FROM worlds ORDER BY person_id",
    )
    .await;
    // Worlds are shifts of rings of different occupations, by a checker that shares no code with the method.
    let occupations = numbers(&context, "SELECT person_id, occupation FROM people ORDER BY person_id").await;
    let place: HashMap<i64, usize> = occupations[0].iter().copied().zip(0..).collect();
    let places: Vec<Vec<usize>> = (0..occupations[0].len())
        .map(|person| partners[1..].iter().map(|world| place[&world[person]]).collect())
        .collect();
    let values: Vec<u64> = occupations[1].iter().map(|&value| value as u64).collect();
    assert_eq!(people_outside_rings(&places, &values), 0);
    for (quasi, rows) in [(&QUASI[..2], 3000), (&QUASI[1..], 4000), (&QUASI[3..], 4000)] {
        let names = quasi.join(", ");
        let people = format!("(SELECT * FROM people WHERE person_id <= {rows})");
        let worlds = format!("(SELECT * FROM worlds WHERE person_id <= {rows})");
        let release = format!(
            "SELECT occupation, {} FROM sequential_release({people}, {worlds}, id => person_id, quasi => ({names}), \
             sensitive => occupation)",
            quasi
                .iter()
                .map(|name| format!("{name}.lo AS {name}_lo, {name}.hi AS {name}_hi"))
                .collect::<Vec<_>>()
                .join(", ")
        );
        let released = numbers(&context, &release).await;
        let place = 0..released[0].len();
        let rows_of = ReleasedRows {
            boxes: place
                .flat_map(|row| {
                    (0..quasi.len()).map(|j| [released[1 + 2 * j][row], released[2 + 2 * j][row]]).collect::<Vec<_>>()
                })
                .collect(),
            values: released[0].iter().map(|&value| value as u64).collect(),
        };
        let table =
            numbers(&context, &format!("SELECT person_id, occupation, {names} FROM {people} ORDER BY person_id")).await;
        let occupation: HashMap<i64, i64> = table[0].iter().copied().zip(table[1].iter().copied()).collect();
        let quasi_of: Vec<i64> =
            (0..rows).flat_map(|row| (0..quasi.len()).map(|j| table[2 + j][row]).collect::<Vec<_>>()).collect();
        for carried in &partners {
            let values = carried[..rows].iter().map(|partner| occupation[partner] as u64).collect();
            let world = World { quasi: quasi_of.clone(), values };
            assert!(world.is_consistent(&rows_of, quasi.len()), "{names}");
        }
        // Not with any other table.
        let turned = (0..rows).map(|row| occupation[&partners[0][(row + rows / 2) % rows]] as u64).collect();
        let world = World { quasi: quasi_of, values: turned };
        assert!(!world.is_consistent(&rows_of, quasi.len()), "{names}");
    }
}

/// The paper's ten releases of ADULT: each loses less than a projection of one release of all columns.
#[tokio::test(flavor = "multi_thread")]
async fn less_is_lost_than_by_projections() {
    let (Some(adult), Some(hierarchies)) = (microdata("adult.parquet"), microdata("adult_hierarchies.csv")) else {
        return;
    };
    let context = session();
    let sql = format!("CREATE TABLE adult AS SELECT * FROM '{adult}' WHERE split = 'train' AND is_complete");
    run(&context, &sql).await.unwrap();
    run(&context, &format!("CREATE TABLE hierarchies AS SELECT * FROM '{hierarchies}'")).await.unwrap();
    let all = "age, sex, education, marital_status, race, workclass, native_country";
    let roles = |quasi: &str| {
        format!("id => record_id, quasi => ({quasi}), sensitive => occupation, hierarchies => hierarchies, seed => 1")
    };
    for (name, call) in [("worlds", "sequential_worlds"), ("projected", "non_sequential")] {
        let sql = format!("CREATE TABLE {name} AS SELECT * FROM {call}(adult, 5, {})", roles(all));
        run(&context, &sql).await.unwrap();
    }
    assert_eq!(
        number(&context, "SELECT count(*) FROM worlds").await,
        number(&context, "SELECT count(*) FROM adult").await
    );
    let loss = async |release: String, quasi: &str| {
        let sql = format!(
            "SELECT lm FROM information_loss(adult, {release}, quasi => ({quasi}), hierarchies => hierarchies) \
             WHERE attribute = '*'"
        );
        let batches = run(&context, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        batches[0].column(0).as_primitive::<Float64Type>().value(0)
    };
    for quasi in [
        "age, sex, education, marital_status, race",
        "education, marital_status, workclass, native_country",
        "age, sex, marital_status, race",
        "age, race, native_country",
        "marital_status, race, native_country",
        "age, sex, marital_status, race, native_country",
        "age, native_country",
        "marital_status",
        "education, race, workclass",
    ] {
        let sequential = loss(format!("sequential_release(adult, worlds, {})", roles(quasi)), quasi).await;
        let projected = loss("projected".to_owned(), quasi).await;
        println!("ADULT, l = 5, p = 100: {quasi}: {sequential:.4}, projected {projected:.4}");
        assert!(sequential < projected, "{quasi}: {sequential} {projected}");
    }
}
