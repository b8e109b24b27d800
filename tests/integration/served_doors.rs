//! Tests what `anonymize serve` tells beside its answers: nothing of files to readers, and what is irregular about a release to whoever runs it.

use std::path::Path;

use super::served::{Server, Wire, lake};
use super::support::{err, path, shell};

/// Returns everything that the server says to a statement: codes, sentences and hints.
fn told(wire: &mut Wire, sql: &str) -> String {
    wire.send(b'Q', format!("{sql}\0").as_bytes());
    let mut told = String::new();
    while let Some((kind, body)) = wire.receive() {
        match kind {
            b'Z' => return told,
            b'E' => told += &String::from_utf8_lossy(&body).replace('\0', "\n"),
            other => told.push(other as char),
        }
    }
    told + "gone"
}

/// A reader who guesses names of files always gets the same answer. It does not tell whether a file is there or served.
#[test]
fn guesses_are_not_confirmed() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let mut wire = Wire::enter(&server);
    let here = folder.path().canonicalize().unwrap().display().to_string();
    let parent = Path::new(&here).parent().unwrap().display().to_string();
    let guesses = |wrong: &str| {
        vec![
            format!("{here}/lake/{wrong}"),
            format!("{here}/{wrong}/clinic/"),
            format!("{here}/lake/{wrong}/"),
            format!("{parent}/{wrong}"),
            format!("file://{here}/lake/{wrong}"),
            format!("lake/{wrong}"),
            format!("./lake/{wrong}"),
            format!("lake/{wrong}/part-0.parquet"),
            format!("s3://{wrong}/q1.parquet"),
            format!("/{wrong}/passwd"),
        ]
    };
    let right = vec![
        format!("{here}/lake/q1.parquet"),
        format!("{here}/lake/clinic/"),
        format!("{here}/lake/clinic.private/"),
        here.clone(),
        format!("file://{here}/lake/q1.parquet"),
        "lake/people.parquet".to_owned(),
        "./lake/q1.parquet".to_owned(),
        "lake/clinic/_delta_log/00000000000000000000.json".to_owned(),
        "s3://bucket/q1.parquet".to_owned(),
        "/etc/passwd".to_owned(),
    ];
    let forms = [
        "SELECT * FROM '#'",
        "SELECT * FROM \"#\"",
        "SELECT * FROM publications.public.\"#\"",
        "SELECT * FROM \"#\".public.q1",
        "SELECT \"#\" FROM q1",
        "SELECT q1.\"#\" FROM q1",
        "SELECT \"#\"(1)",
        "SELECT * FROM estimated('#')",
        "SELECT * FROM estimated(\"#\")",
        "SELECT count(*) FROM estimated(q1, hierarchies => '#')",
        "SELECT count(*) FROM estimated(q1, prior => '#')",
        "SELECT * FROM flat('#')",
        "SELECT * FROM flat((SELECT * FROM '#'))",
        "SELECT * FROM release('#')",
        "SELECT * FROM release('#', 1)",
        "SELECT * FROM releases('#')",
        "SELECT CAST('#' AS INT)",
        "SELECT count(*) FROM q1 WHERE group_id = '#'",
        "SELECT date '#'",
        "SELECT encode('#', '#')",
        "EXPLAIN SELECT * FROM '#'",
        "SET '#' = 1",
        "SHOW \"#\"",
        "DEALLOCATE \"#\"",
    ];
    for form in forms {
        for (right, wrong) in right.iter().zip(guesses("nothing_here")) {
            let (of_right, of_wrong) =
                (told(&mut wire, &form.replace('#', right)), told(&mut wire, &form.replace('#', &wrong)));
            // Where a text is told at all, it is told as the reader wrote it, right or wrong; names of settings in small letters.
            let as_written =
                |told: String, guess: &str| told.replace(guess, "#").replace(&guess.to_ascii_lowercase(), "#");
            let (of_right, of_wrong) = (as_written(of_right, right), as_written(of_wrong, &wrong));
            // The name of a function that is most like it, which has to do with letters and not with files.
            let plain = |told: &str| told.split("HDid you mean").next().unwrap_or_default().to_owned();
            let (of_right, of_wrong) = (plain(&of_right), plain(&of_wrong));
            assert_eq!(of_right, of_wrong, "{form}: {right}, {wrong}");
            assert!(!of_right.to_ascii_lowercase().contains(&here.to_ascii_lowercase()), "{form}: {of_right}");
        }
    }
    assert!(told(&mut wire, "SELECT * FROM '/etc/passwd'").contains("table '..' not found"));
    wire.is_answered();
}

/// A release with sorted or missing rows is served with a notice; others without.
#[test]
fn irregular_releases_are_noticed() {
    let folder = lake();
    let second = path("data/clinic_q2.csv");
    let call = |more: &str| {
        format!(
            "m_invariant('{second}', 3, id => patient_id, quasi => (age, sex, postcode), sensitive => diagnosis, previous => 'lake/private.parquet'{more})"
        )
    };
    let of_census =
        "m_invariant(census(4000), 4, id => person_id, quasi => (age, education), sensitive => occupation, seed => 3)";
    let script = format!(
        "SET datafusion.execution.parquet.skip_metadata = false;
         COPY (SELECT * FROM {}) TO 'lake/q2_private.parquet';
         COPY (SELECT age, sex, postcode, diagnosis, group_id, group_size, counterfeits FROM 'lake/q2_private.parquet') TO 'lake/q2.parquet';
         COPY (SELECT age, sex, postcode, diagnosis, group_id, group_size, counterfeits FROM 'lake/q2_private.parquet' WHERE NOT counterfeit) TO 'lake/people_only.parquet';
         COPY (SELECT * FROM {of_census}) TO 'lake/census.parquet';
         COPY (SELECT * FROM {of_census} ORDER BY age) TO 'lake/by_age.parquet';
         COPY (SELECT * FROM {of_census} ORDER BY group_id) TO 'lake/by_group.parquet';
         COPY (SELECT * FROM {of_census} ORDER BY occupation) TO 'lake/by_value.parquet';
         COPY (SELECT * FROM anatomy(census(4000), 4, quasi => (age, education), sensitive => occupation)) TO 'lake/anatomy.parquet';
         COPY (SELECT * FROM muco(census(2000), 0.2, quasi => (age, education), sensitive => occupation)) TO 'lake/muco.parquet';
         COPY (SELECT * FROM mondrian(census(4000), 4, quasi => (age, education), sensitive => occupation)) TO 'lake/mondrian.parquet'",
        call(", private => true"),
    );
    let made = shell(folder.path(), &["-q", "-c", &script]);
    assert!(made.status.success(), "{}", err(&made));
    let notices = |release: &str| {
        let checked = shell(folder.path(), &["serve", "--check", "--release", &format!("a=lake/{release}.parquet")]);
        assert!(checked.status.success(), "{}", err(&checked));
        err(&checked)
    };
    for regular in ["q1", "q2", "census", "anatomy", "muco", "mondrian"] {
        assert_eq!(notices(regular), "", "{regular}");
    }
    let left_out = notices("people_only");
    assert!(
        left_out.starts_with("notice: release a: rows were left out") && left_out.contains("group_size"),
        "{left_out}"
    );
    for (sorted, by) in [("by_age", "age"), ("by_group", "group_id"), ("by_value", "sensitive value")] {
        let found = notices(sorted);
        assert!(
            found.starts_with("notice: release a: its rows are not in random order") && found.contains(by),
            "{found}"
        );
    }
    // The server itself says so on standard error, once, and its processes do not say it again.
    let server = Server::start(folder.path(), &["--release", "sorted=lake/by_age.parquet"]);
    let mut wire = Wire::enter(&server);
    wire.is_answered();
    let (_, log) = server.stop();
    assert_eq!(log.matches("notice: release sorted: its rows").count(), 1, "{log}");
}
