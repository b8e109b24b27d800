//! Releases as CSV, and as columns that every program knows.

use super::support::{error, number, run, session, table};

const RELEASE: &str = "SELECT * FROM m_invariant('data/patients_q1.parquet', 2, id => patient_id, quasi => (age, zip), \
                       sensitive => disease, seed => 2)";

#[tokio::test]
async fn csv_has_the_ends_of_ranges_as_columns() {
    std::env::set_current_dir(super::support::path("")).unwrap();
    let context = session();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("release.csv");
    let file = file.display();
    assert_eq!(number(&context, &format!("COPY ({RELEASE}) TO '{file}'")).await, 11);
    let text = std::fs::read_to_string(file.to_string()).unwrap();
    let header = "age_lo,age_hi,zip_lo,zip_hi,disease,group_id,group_size,counterfeits";
    assert_eq!(text.lines().next(), Some(header));
    // The rows are those of the release.
    run(&context, &format!("CREATE TABLE release AS {RELEASE}")).await.unwrap();
    let columns = "disease, group_id, group_size, counterfeits";
    let ranges = format!("SELECT age.lo, age.hi, zip.lo, zip.hi, {columns} FROM release ORDER BY 1, 2, 3, 4, 5");
    let ends =
        |from: &str| format!("SELECT age_lo, age_hi, zip_lo, zip_hi, {columns} FROM {from} ORDER BY 1, 2, 3, 4, 5");
    let rows = |table: String| {
        let rows = table.lines().filter(|line| line.starts_with('|')).skip(1);
        rows.map(|line| line.replace(' ', "")).collect::<Vec<_>>()
    };
    let wanted = rows(table(&context, &ranges).await);
    assert_eq!(rows(table(&context, &ends(&format!("'{file}'"))).await), wanted);
    assert_eq!(rows(table(&context, &ends("flat(release)")).await), wanted);
}

/// Signatures and groups' values are lists.
#[tokio::test]
async fn what_text_cannot_hold_is_refused() {
    std::env::set_current_dir(super::support::path("")).unwrap();
    let context = session();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("release.csv");
    let private = RELEASE.replace("seed => 2", "seed => 2, private => true");
    let anatomy = "SELECT * FROM anatomy('data/patients_q1.parquet', 2, quasi => (age, zip), sensitive => disease)";
    for (release, column) in [(private.as_str(), "signature"), (anatomy, "disease")] {
        let message = error(&context, &format!("COPY ({release}) TO '{}'", file.display())).await;
        let expected =
            format!("COPY: column {column} is a list or a struct, which text files cannot hold; write a Parquet file");
        assert!(message.contains(&expected), "{message}");
        assert!(!file.exists());
        let rest = format!("COPY (SELECT * EXCLUDE ({column}) FROM ({release})) TO '{}'", file.display());
        assert_eq!(number(&context, &rest).await, 11);
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test]
async fn names_must_not_meet() {
    std::env::set_current_dir(super::support::path("")).unwrap();
    let context = session();
    let message = error(&context, &format!("SELECT * FROM flat((SELECT *, 1 AS age_lo FROM ({RELEASE})))")).await;
    assert!(message.contains("flat: with ranges as columns, age_lo is there twice; rename"), "{message}");
    // What has no ranges stays as it is.
    assert_eq!(number(&context, "SELECT count(*) FROM flat((SELECT 1 AS a)) WHERE a = 1").await, 1);
}

/// A release of a publication can lack sensitive columns: the table of its newest release has them all the same, with NULL.
#[tokio::test(flavor = "multi_thread")]
async fn columns_that_the_newest_release_lacks_are_null() {
    let context = session();
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("clinic/");
    let place = place.display();
    let declared = format!(
        "CREATE EXTERNAL TABLE clinic (id BIGINT, age BIGINT, disease VARCHAR, ward VARCHAR) STORED AS PUBLICATION LOCATION '{place}'
         OPTIONS ('method' 'dynamic', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease, ward')"
    );
    run(&context, &declared).await.unwrap();
    let rows = "CREATE TABLE rows AS SELECT * FROM (VALUES (1, 30, 'flu', 'east'), (2, 31, 'gastritis', 'west')) AS t(id, age, disease, ward)";
    run(&context, rows).await.unwrap();
    run(&context, "INSERT INTO clinic SELECT * FROM rows").await.unwrap();
    let clinic = datafusion_anonymize::publication_for_readers(&context, &place.to_string()).await.unwrap();
    let flat = datafusion_anonymize::flat_table(&clinic).unwrap().unwrap();
    context.register_table("clinic_flat", flat).unwrap();
    assert_eq!(number(&context, "SELECT count(ward) FROM clinic_flat").await, 2);
    run(&context, "INSERT INTO clinic (id, disease) SELECT id, disease FROM rows").await.unwrap_err();
    run(&context, "INSERT INTO clinic (id, age, disease) SELECT id, age + 1, disease FROM rows").await.unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM clinic_flat WHERE ward IS NULL AND age_lo = 31").await, 2);
    assert_eq!(number(&context, "SELECT count(disease) FROM clinic_flat").await, 2);
}
