//! Files that `COPY` writes through the shell: those of private views are the owner's alone, and releases are as all files are.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
        // Releases are for everybody.
        (format!("COPY ({}) TO 'release.parquet'", call(false)), "release.parquet", usual),
        ("COPY (SELECT * EXCLUDE (person_id, counterfeit, signature) FROM 'private/one.parquet') TO 'q1.csv'".to_owned(), "q1.csv", usual),
    ];
    for (statement, file, expected) in statements {
        let (done, errors) = run(&statement);
        assert!(done, "{statement}\n{errors}");
        assert_eq!(format!("{:o}", mode(&here.path().join(file))), format!("{expected:o}"), "{statement}");
    }
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
