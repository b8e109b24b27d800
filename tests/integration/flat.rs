//! Releases as CSV, and as columns that every program knows.

use super::support::{err, error, number, out, run, session, shell, table};

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
         OPTIONS ('method' 'dynamic', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'composite(disease, ward)')"
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

/// The shell prints for programs the columns that a file has.
#[test]
fn separated_values_of_the_shell_are_those_of_a_file() {
    let here = tempfile::tempdir().unwrap();
    let patients = super::support::path("data/patients_q1.parquet");
    let release = format!(
        "SELECT * FROM m_invariant('{patients}', 2, id => patient_id, quasi => (age, zip), sensitive => disease, seed => 2) \
         ORDER BY group_id, disease, age.lo"
    );
    let file = format!("COPY ({release}) TO 'release.csv'");
    assert!(shell(here.path(), &["-q", "-c", &file]).status.success());
    let written = std::fs::read_to_string(here.path().join("release.csv")).unwrap();
    let printed = |format: &str| {
        let output = shell(here.path(), &["-q", "--format", format, "-c", &release]);
        assert!(output.status.success(), "{}", err(&output));
        out(&output)
    };
    assert!(printed("csv").starts_with("age_lo,age_hi,zip_lo,zip_hi,disease,group_id,group_size,counterfeits\n"));
    assert_eq!(printed("csv"), written);
    assert_eq!(printed("tsv"), written.replace(',', "\t"));
    // What has structs keeps them.
    assert!(printed("json").starts_with("[{\"age\":{\"lo\":"), "{}", printed("json"));
    assert!(printed("nd-json").starts_with("{\"age\":{\"lo\":"));
    let anatomy = format!("SELECT * FROM anatomy('{patients}', 2, quasi => (age, zip), sensitive => disease)");
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", &anatomy]);
    assert!(!output.status.success());
    let expected = "csv: column disease is a list or a struct, which text files cannot hold; print JSON (--format json), or leave it \
                    out: SELECT * EXCLUDE (disease)";
    assert!(err(&output).contains(expected), "{}", err(&output));
    for cure in [["json", anatomy.as_str()], ["csv", &anatomy.replace('*', "* EXCLUDE (disease)")]] {
        assert!(shell(here.path(), &["-q", "--format", cure[0], "-c", cure[1]]).status.success());
    }
}

/// Functions of one value say that an argument is a range, and no bug.
#[test]
fn functions_of_ranges_are_refused_in_one_sentence() {
    let here = tempfile::tempdir().unwrap();
    let patients = super::support::path("data/patients_q1.parquet");
    let release = format!(
        "CREATE TABLE release AS SELECT * FROM mondrian('{patients}', 3, quasi => (age, zip), sensitive => disease)"
    );
    let functions = [
        ("avg", "avg(age)"),
        ("sum", "sum(age)"),
        ("median", "median(age)"),
        ("stddev", "stddev(age)"),
        ("corr", "corr(age, zip)"),
        ("approx_percentile_cont", "approx_percentile_cont(age, 0.5)"),
        ("avg", "avg(age) OVER ()"),
        ("abs", "abs(age)"),
        ("round", "round(age)"),
        ("upper", "upper(age)"),
        ("character_length", "length(zip)"),
        ("substr", "substr(zip, 1, 2)"),
        ("date_part", "date_part('year', age)"),
        ("greatest", "greatest(age, 3)"),
        ("coalesce", "coalesce(age, 3)"),
        ("NOT", "NOT age"),
    ];
    // Of operators it is known which column they have.
    let subject = |function: &str| if function == "NOT" { "column age" } else { "a column" };
    let mut wrong = Vec::new();
    for (function, call) in functions {
        let output = shell(here.path(), &["-q", "-c", &release, "-c", &format!("SELECT {call} FROM release")]);
        let said = err(&output);
        let sentence =
            format!("{function}: {} is a range, from lo to hi, and not a value; ask the release", subject(function));
        if output.status.success() || !said.contains(&sentence) || said.contains("bug") || said.lines().count() > 4 {
            wrong.push(format!("{call}: {}{said}", out(&output)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let cures =
        "SELECT avg(age) > 0 FROM estimated(release) WHERE age > 20; SELECT avg(age.lo) < avg(age.hi) FROM release";
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", &release, "-c", cures]);
    assert!(output.status.success() && out(&output).matches("true").count() == 2, "{}{}", out(&output), err(&output));
}
