//! Files that `COPY` writes through the shell: those of private views are the owner's alone, and releases are as all files are.
#![cfg(unix)]

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::compute::concat_batches;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::file::properties::WriterProperties;
use tempfile::tempdir;

use super::support::{err, shell};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

#[test]
fn private_views_are_for_their_owner() {
    let here = tempdir().unwrap();
    let run = |sql: &str| {
        let output = shell(here.path(), &["-q", "-c", sql]);
        (output.status.success(), err(&output))
    };
    std::fs::write(here.path().join("plain"), "").unwrap();
    let usual = mode(&here.path().join("plain"));
    let call = |private: bool| {
        format!(
            "SELECT * FROM m_invariant(census(300), 2, id => person_id, quasi => (age, gender), sensitive => occupation, private => {private}, on_ineligible => 'withhold')"
        )
    };
    let private = call(true);
    // Text files hold no lists.
    let flat = format!("SELECT * EXCLUDE (signature) FROM ({private})");
    let statements = [
        (format!("COPY ({private}) TO 'private/one.parquet'"), "private/one.parquet", 0o600),
        (format!("COPY ({flat}) TO 'private/one.csv'"), "private/one.csv", 0o600),
        (format!("COPY ({flat}) TO 'private/one.json'"), "private/one.json", 0o600),
        // Over one that was everybody's.
        ("COPY (SELECT 1 AS a) TO 'private/two.csv'".to_owned(), "private/two.csv", usual),
        (format!("COPY ({flat}) TO 'private/two.csv'"), "private/two.csv", 0o600),
        // A file knows what it is; so does what is left of one.
        ("COPY (SELECT * FROM 'private/one.parquet') TO 'again.parquet'".to_owned(), "again.parquet", 0o600),
        ("COPY (SELECT age, signature FROM 'private/one.parquet') TO 'signed.parquet'".to_owned(), "signed.parquet", 0o600),
        ("COPY (SELECT * FROM 'private/one.parquet' ORDER BY person_id) TO 'sorted.parquet'".to_owned(), "sorted.parquet", 0o600),
        ("COPY (SELECT * FROM 'private/one.parquet') TO 'private/many/' STORED AS PARQUET".to_owned(), "private/many", 0o700),
        (
            "COPY (SELECT * FROM sequential_worlds(census(300), 2, id => person_id, quasi => age, sensitive => occupation)) TO 'worlds.parquet'"
                .to_owned(),
            "worlds.parquet",
            0o600,
        ),
        // So does what is computed of it.
        (
            "COPY (SELECT concat('n', CAST(person_id AS TEXT)) AS person, age.lo FROM 'private/one.parquet') TO 'computed.parquet'".to_owned(),
            "computed.parquet",
            0o600,
        ),
        (
            "COPY (SELECT upper(p) AS q, count(*) FROM (SELECT CAST(person_id AS TEXT) AS p FROM 'private/one.parquet') GROUP BY 1) TO 'computed.csv'"
                .to_owned(),
            "computed.csv",
            0o600,
        ),
        (format!("COPY (SELECT max(person_id) AS most FROM ({private}) UNION ALL SELECT 1) TO 'most.csv'"), "most.csv", 0o600),
        ("COPY (SELECT age.lo AS lo, count(*) FROM 'private/one.parquet' GROUP BY 1) TO 'ages.csv'".to_owned(), "ages.csv", usual),
        (
            format!(
                "COPY (SELECT * EXCLUDE (candidates, remaining) FROM disclosure(({private}), original => census(300), id => person_id, quasi => (age, gender), \
                 sensitive => occupation)) TO 'who.csv'"
            ),
            "who.csv",
            0o600,
        ),
        // Releases are for everybody.
        (format!("COPY ({}) TO 'release.parquet'", call(false)), "release.parquet", usual),
        ("COPY (SELECT * EXCLUDE (person_id, counterfeit, signature, ring) FROM 'private/one.parquet') TO 'q1.csv'".to_owned(), "q1.csv", usual),
    ];
    for (statement, file, expected) in statements {
        let (done, errors) = run(&statement);
        assert!(done, "{statement}\n{errors}");
        assert_eq!(format!("{:o}", mode(&here.path().join(file))), format!("{expected:o}"), "{statement}");
    }
    // Files in a folder that was there, too, and others in it stay as they are.
    std::fs::create_dir(here.path().join("there")).unwrap();
    std::fs::write(here.path().join("there/readme"), "").unwrap();
    let usual_folder = mode(&here.path().join("there"));
    for options in ["STORED AS PARQUET", "STORED AS CSV", "STORED AS PARQUET PARTITIONED BY (gender)"] {
        let folder = here.path().join("there");
        let before = std::fs::read_dir(&folder).unwrap().count();
        let (done, errors) = run(&format!(
            "COPY (SELECT person_id, CAST(gender.lo AS TEXT) AS gender FROM ({flat})) TO 'there/' {options}"
        ));
        assert!(done, "{options}\n{errors}");
        assert!(std::fs::read_dir(&folder).unwrap().count() > before, "{options}");
    }
    let mut folders = vec![here.path().join("there")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.file_name().unwrap().to_str().unwrap().starts_with('.'), "{}", path.display());
            match (path.is_dir(), path.ends_with("readme")) {
                (true, _) => folders.push(path),
                (false, true) => assert_eq!(mode(&path), usual),
                (false, false) => {
                    files += 1;
                    assert_eq!(format!("{:o}", mode(&path)), "600", "{}", path.display());
                }
            }
        }
    }
    assert!(files >= 3);
    assert_eq!(mode(&here.path().join("there")), usual_folder);
    // What fails leaves what was there, and nothing beside it.
    let before = std::fs::read(here.path().join("private/one.csv")).unwrap();
    let (done, _) =
        run(&format!("COPY (SELECT *, 1 / (person_id - person_id) AS x FROM ({flat})) TO 'private/one.csv'"));
    assert!(!done);
    assert_eq!(std::fs::read(here.path().join("private/one.csv")).unwrap(), before);
    let mut names: Vec<String> = std::fs::read_dir(here.path().join("private"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["many", "one.csv", "one.json", "one.parquet", "two.csv"]);
}

/// Another program leaves out rows of a private view and keeps its description.
#[test]
fn a_view_that_lacks_people_is_refused() {
    let here = tempdir().unwrap();
    let run = |sql: &str| {
        let output = shell(here.path(), &["-q", "-c", sql]);
        (output.status.success(), err(&output))
    };
    let call = |previous: &str| {
        format!(
            "SELECT * FROM m_invariant(census(300), 2, id => person_id, quasi => (age, gender), sensitive => occupation, private => true, \
             on_ineligible => 'withhold'{previous})"
        )
    };
    let whole = here.path().join("q1.parquet");
    let (done, errors) = run(&format!("COPY ({}) TO 'q1.parquet'", call("")));
    assert!(done, "{errors}");
    let next = |file: &str| run(&format!("COPY ({}) TO 'q2.parquet'", call(&format!(", previous => '{file}'"))));
    let (done, errors) = next("q1.parquet");
    assert!(done, "{errors}");
    let read = || ParquetRecordBatchReaderBuilder::try_new(File::open(&whole).unwrap()).unwrap();
    let said = read().metadata().file_metadata().key_value_metadata().unwrap().clone();
    let said = said.into_iter().filter(|said| said.key.starts_with("anonymize.")).collect::<Vec<_>>();
    assert_eq!(said.len(), 1, "{said:?}");
    let schema = Arc::clone(read().schema());
    let batches = read().build().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let rows = concat_batches(&schema, &batches).unwrap();
    for (rows, is_whole) in
        [(rows.clone(), true), (rows.slice(0, rows.num_rows() / 2), false), (rows.slice(0, 0), false)]
    {
        let properties = WriterProperties::builder().set_key_value_metadata(Some(said.clone())).build();
        let file = File::create(here.path().join("copy.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let (done, errors) = next("copy.parquet");
        assert_eq!(done, is_whole, "{} rows: {errors}", rows.num_rows());
        assert_eq!(errors.contains("previous has a stored copy of which rows were left out"), !is_whole, "{errors}");
    }
}
