//! Audits of publications: what is as it should be passes, and what was tampered with is found.

use std::path::Path;
use std::process::Command;

use datafusion::prelude::SessionContext;
use tempfile::tempdir;

use super::program::program;
use super::publications::{Q1, Q2, count, declaration, from_the_root, hospital};
use super::support::{microdata, number, path, run, session, table};

/// Names of the checks that fail.
async fn failing(context: &SessionContext, publication: &str) -> String {
    table(context, &format!("SELECT DISTINCT \"check\" FROM audit({publication}) WHERE NOT passed ORDER BY 1")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hospital_passes_with_and_without_its_ledger() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    count(&context, Q2).await;
    assert!(!failing(&context, "hospital").await.contains('|'), "{}", failing(&context, "hospital").await);
    let location = here.path().join("hospital").display().to_string();
    run(&context, &format!("CREATE EXTERNAL TABLE theirs STORED AS PUBLICATION LOCATION '{location}'")).await.unwrap();
    assert!(!failing(&context, "theirs").await.contains('|'));
    let of = |publication: &str| format!("SELECT count(*) FROM audit({publication})");
    let (ours, theirs) = (of("hospital"), of("theirs"));
    let (ours, theirs) = (number(&context, &ours).await, number(&context, &theirs).await);
    assert!(theirs > 20 && ours > theirs, "{ours} {theirs}");
}

/// Occupations in classes of five by their place in the alphabet: what somebody can do next, for m_distinct.
const CLASSES: &str = "CREATE TABLE classes AS
    WITH places AS (SELECT occupation, (row_number() OVER (ORDER BY occupation))::BIGINT / 5 AS class FROM (SELECT DISTINCT occupation FROM people))
    SELECT a.occupation AS from_value, b.occupation AS to_value FROM places a JOIN places b ON a.class = b.class";

/// Makes snapshots of ADULT: of the second, some people have left, others have come, some are a year older, and
/// some have another occupation of their class.
async fn snapshots(context: &SessionContext, adult: &str) {
    let people = "SELECT record_id, age, sex, education_num, occupation FROM";
    run(context, &format!("CREATE TABLE people AS {people} '{adult}' WHERE occupation IS NOT NULL")).await.unwrap();
    run(context, CLASSES).await.unwrap();
    run(context, "CREATE TABLE first AS SELECT * FROM people WHERE record_id % 4 <> 0").await.unwrap();
    run(context, "CREATE TABLE second AS SELECT record_id, age + (record_id % 3 = 0)::INT AS age, sex, education_num, occupation FROM people WHERE record_id % 4 <> 1").await.unwrap();
    run(
        context,
        "CREATE TABLE changed AS SELECT record_id, age, sex, education_num,
            CASE WHEN record_id % 10 < 3 THEN (SELECT min(to_value) FROM classes WHERE from_value = occupation) ELSE occupation END AS occupation
         FROM second",
    )
    .await
    .unwrap();
}

async fn publish(context: &SessionContext, here: &Path, method: &str, options: &str, snapshots: &[&str]) {
    let location = here.join(method).display().to_string();
    run(context, &format!("CREATE EXTERNAL TABLE {method}_published (record_id INT, age INT, sex VARCHAR, education_num INT, occupation VARCHAR)
        STORED AS PUBLICATION LOCATION '{location}'
        OPTIONS ('method' '{method}', {options}, 'id' 'record_id', 'quasi' 'age, sex, education_num', 'sensitive' 'occupation')")).await.unwrap();
    for snapshot in snapshots {
        run(context, &format!("INSERT INTO {method}_published SELECT * FROM {snapshot}")).await.unwrap();
    }
}

/// Every method's publications pass, on real people.
#[tokio::test(flavor = "multi_thread")]
async fn every_method_passes_on_adult() {
    let Some(adult) = microdata("adult.parquet") else { return };
    let context = session();
    let here = tempdir().unwrap();
    snapshots(&context, &adult).await;
    for (method, options, releases) in [
        ("m_invariant", "'m' '5', 'allow_repeated_snapshots' 'true'", ["first", "second", "first"].as_slice()),
        ("m_distinct", "'m' '3', 'updates' 'classes'", &["first", "changed", "second"]),
        ("mondrian", "'k' '5', 'l' '3', 'diversity' 'entropy', 't' '0.6'", &["first"]),
        ("anatomy", "'l' '5'", &["first"]),
        ("muco", "'delta' '0.25', 'l' '5'", &["first"]),
        ("sequential", "'l' '3'", &["first", "people"]),
    ] {
        publish(&context, here.path(), method, options, releases).await;
        let found = failing(&context, &format!("{method}_published")).await;
        assert!(!found.contains('|'), "{method}: {found}");
        let last = format!("SELECT count(DISTINCT release) FROM audit({method}_published)");
        assert_eq!(number(&context, &last).await, releases.len() as i64, "{method}");
    }
}

/// Steps between groups are looked at with the publisher's relation: under another one they are not legal, and it is noticed that
/// it is another one.
#[tokio::test(flavor = "multi_thread")]
async fn releases_of_changing_values_are_audited_by_the_update_relation() {
    let Some(adult) = microdata("adult.parquet") else { return };
    let context = session();
    let here = tempdir().unwrap();
    snapshots(&context, &adult).await;
    publish(&context, here.path(), "m_distinct", "'m' '3', 'updates' 'classes'", &["first", "changed"]).await;
    let legal = "SELECT split_part(figures, ' ', 3) <> '0' AS somebody FROM audit(m_distinct_published)
        WHERE \"check\" = 'm-distinct: groups are legal updates of the last ones' AND release = 2";
    assert!(table(&context, legal).await.contains("true"), "some people's groups have changed");
    run(&context, "DROP TABLE classes").await.unwrap();
    run(
        &context,
        "CREATE TABLE classes AS SELECT DISTINCT occupation AS from_value, occupation AS to_value FROM people",
    )
    .await
    .unwrap();
    run(&context, "DROP TABLE m_distinct_published").await.unwrap();
    publish(&context, here.path(), "m_distinct", "'m' '3', 'updates' 'classes'", &[]).await;
    let found = failing(&context, "m_distinct_published").await;
    for check in ["update relation: that of the first release", "m-distinct: groups are legal updates of the last ones"]
    {
        assert!(found.contains(check), "{check}: {found}");
    }
}

/// A ledger that was written to by somebody else is not taken for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_was_tampered_with_is_found() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    let [file] = files(&here.path().join("hospital.private")).try_into().unwrap();
    let other = here.path().join("other.parquet").display().to_string();
    run(&context, &format!("COPY (SELECT * FROM '{}' LIMIT 3) TO '{other}'", file.display())).await.unwrap();
    std::fs::copy(&other, &file).unwrap();
    let found = failing(&context, "hospital").await;
    assert!(found.contains("ledger: can be read"), "{found}");
}

/// An audit finds what an INSERT refuses in damaged ledgers, and the other way round. A byte of the entries is
/// flipped, or a commit is gone or was cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_was_damaged_is_found_by_audit_and_insert() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    count(&context, Q2).await;
    let private = here.path().join("hospital.private");
    let again = "INSERT INTO hospital SELECT patient_id, age + 1, zip, disease FROM 'data/patients_q2.parquet'";
    let mut places = 0;
    for (file, contents) in super::publications::files(&private) {
        let parquet = file.extension().is_some_and(|extension| extension == "parquet");
        let flip = |place: usize| {
            let mut flipped = contents.clone();
            flipped[place] ^= 4;
            Some(flipped)
        };
        let mut damages = vec![None, Some(Vec::new()), Some(contents[..contents.len() / 2].to_vec())];
        if parquet {
            damages.extend((0..contents.len()).step_by(7).map(flip));
        }
        for (number, damaged) in damages.iter().enumerate() {
            match damaged {
                Some(damaged) => std::fs::write(&file, damaged).unwrap(),
                None => std::fs::remove_file(&file).unwrap(),
            }
            let found = failing(&context, "hospital").await;
            assert!(found.contains("ledger: "), "{} {number}: {found}", file.display());
            // Reading it all is slow.
            if number % 10 == 0 {
                let message = super::support::error(&context, again).await;
                assert!(message.contains("the ledger at"), "{} {number}: {message}", file.display());
            }
            std::fs::write(&file, &contents).unwrap();
            places += 1;
        }
    }
    assert!(places > 150, "{places}");
    assert!(!failing(&context, "hospital").await.contains('|'));
    count(&context, again).await;
}

/// An audit compares each commit with the next. An INSERT needs nothing of those before the newest two, and does not read them.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_commit_that_was_changed_is_found() {
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    for night in 0..9 {
        let insert = format!(
            "INSERT INTO hospital SELECT person_id, age + {night}, education, CAST(person_id % 4 AS VARCHAR) FROM census(40)"
        );
        count(&context, &insert).await;
    }
    let log = here.path().join("hospital.private/_delta_log");
    for version in [0, 1, 3] {
        let file = log.join(format!("{version:020}.json"));
        let contents = std::fs::read_to_string(&file).unwrap();
        for damaged in
            [contents.replacen("timestamp\":1", "timestamp\":2", 1), contents[..contents.len() / 2].to_owned()]
        {
            assert_ne!(damaged, contents);
            std::fs::write(&file, damaged).unwrap();
            let found = failing(&context, "hospital").await;
            assert!(found.contains("ledger: commits are those that were written"), "{version}: {found}");
        }
        std::fs::write(&file, contents).unwrap();
    }
    assert!(!failing(&context, "hospital").await.contains('|'));
}

/// Lists the Parquet files below a directory, without those of logs.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect();
    files.sort();
    files
}

/// A released file is exchanged for the same rows in order, with names. A column tells who they are about.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_exchanged_is_found() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    let [file] = files(&here.path().join("hospital")).try_into().unwrap();
    let other = here.path().join("other.parquet").display().to_string();
    run(&context, &format!("COPY (SELECT age, zip, 'flu' AS disease, group_id, group_size, counterfeits FROM '{}' ORDER BY group_id) TO '{other}'", file.display()))
        .await
        .unwrap();
    std::fs::copy(&other, &file).unwrap();
    let found = failing(&context, "hospital").await;
    for check in
        ["files are those that were decided", "files tell nothing but their rows", "columns say what made them"]
    {
        assert!(found.contains(check), "{check}: {found}");
    }
}

/// A release whose file is gone is a finding, and the others are looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_missing_is_found() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    let [file] = files(&here.path().join("hospital")).try_into().unwrap();
    count(&context, Q2).await;
    std::fs::remove_file(&file).unwrap();
    let of = "SELECT release, count(*) FILTER (WHERE NOT passed) > 1 AS findings FROM audit(hospital) WHERE release IS NOT NULL GROUP BY 1 ORDER BY 1";
    let found = table(&context, of).await;
    assert!(found.contains("| 1       | true") && found.contains("| 2       | false"), "{found}");
    assert!(failing(&context, "hospital").await.contains("files are there"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_fails_if_it_is_to() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    let location = here.path().join("hospital").display().to_string();
    let shell = |more: &[&str], sql: &str| {
        let sql = format!("CREATE EXTERNAL TABLE theirs STORED AS PUBLICATION LOCATION '{location}'; {sql}");
        let mut command = Command::new(program());
        command.current_dir(path("")).env_remove("RUST_BACKTRACE").arg("-q").args(more).args(["-c", &sql]);
        command.output().unwrap()
    };
    let audit = "SELECT count(*) FROM audit(theirs) WHERE passed";
    assert!(shell(&["--fail-on-audit"], audit).status.success());
    // Another file in its place: of the reader's checks, those of the file's metadata fail.
    let [file] = files(&here.path().join("hospital")).try_into().unwrap();
    let other = here.path().join("other.parquet").display().to_string();
    run(&context, &format!("COPY (SELECT * FROM '{}') TO '{other}'", file.display())).await.unwrap();
    std::fs::copy(&other, &file).unwrap();
    assert!(shell(&[], audit).status.success(), "only if it is asked to");
    let failed = shell(&["--fail-on-audit"], audit);
    assert!(!failed.status.success(), "{}", String::from_utf8_lossy(&failed.stdout));
    let message = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(message.contains("checks have failed"), "{message}");
    assert!(shell(&["--fail-on-audit"], "SELECT 1").status.success(), "a script without audits has none that fail");
}

const Q3: &str = "INSERT INTO hospital SELECT patient_id, age + 1, zip, disease FROM 'data/patients_q2.parquet'";

/// Audits in a process of its own: this one reads no commit again.
fn found_anew(here: &Path) -> String {
    let location = here.join("hospital").display().to_string();
    let audit = "SELECT release, \"check\", passed FROM audit(hospital) ORDER BY 1 NULLS FIRST, 2";
    printed_anew(&format!("{}; {audit}", declaration(&location, 2)))
}

fn printed_anew(sql: &str) -> String {
    let mut command = Command::new(program());
    let output = command.current_dir(path("")).args(["-q", "--format", "csv", "-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Readers of Delta Lake believe its log: what it says of rows, values and columns has to be true, and no more than was meant. A version that
/// is none of ours is a finding, and the others are looked at.
#[tokio::test(flavor = "multi_thread")]
async fn the_public_log_is_compared_with_the_files() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    count(&context, Q2).await;
    // Version 2 has a checkpoint, which is read in place of its commit.
    count(&context, Q3).await;
    let log = here.path().join("hospital/_delta_log");
    let commit = log.join("00000000000000000003.json");
    let text = std::fs::read_to_string(&commit).unwrap();
    let start = text.find(r#"{\"numRecords\":"#).unwrap();
    let counted = &text[start..=start + text[start..].find('}').unwrap()];
    let (rows, columns) =
        ("the log tells how many rows files have, and no more", "the log says of columns what files do");
    let commits = "the commit says what it is to say, and no more";
    for (from, to, check) in [
        (counted, r#"{\"numRecords\":3}"#.to_owned(), rows),
        (counted, counted.replace('}', r#",\"maxValues\":{\"disease\":\"flu\"}}"#), rows),
        (r#"\"anonymize.role\":\"sensitive\""#, r#"\"anonymize.role\":\"insensitive\""#.to_owned(), columns),
        (r#"\"nullable\":false"#, r#"\"nullable\":true"#.to_owned(), columns),
        (r#""tags":null"#, r#""tags":{"who":"Ann has flu"}"#.to_owned(), commits),
        (r#""partitionValues":{}"#, r#""partitionValues":{"who":"Ann"}"#.to_owned(), commits),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&commit, text.replacen(from, &to, 1)).unwrap();
        let found = found_anew(here.path());
        assert!(
            found.contains(&format!("3,\"{check}\",false")) || found.contains(&format!("3,{check},false")),
            "{to}: {found}"
        );
        assert_eq!(found.matches("false").count(), 1, "{to}: {found}");
    }
    std::fs::write(&commit, &text).unwrap();
    assert!(!found_anew(here.path()).contains("false"));
    let info = r#"{"commitInfo":{"timestamp":1700000000000,"operation":"OPTIMIZE","operationParameters":{}}}"#;
    std::fs::write(log.join("00000000000000000004.json"), info).unwrap();
    // A reader's, for a publisher's declaration is refused.
    let audit = "SELECT release, \"check\", passed FROM audit(theirs) ORDER BY 1, 2";
    let location = here.path().join("hospital").display().to_string();
    let theirs = format!("CREATE EXTERNAL TABLE theirs STORED AS PUBLICATION LOCATION '{location}'; {audit}");
    let found = printed_anew(&theirs);
    assert!(found.contains("4,the version is a release,false") && found.matches("false").count() == 1, "{found}");
    assert!(
        ["1,", "2,", "3,"].iter().all(|release| found.contains(&format!("\n{release}files are there,true"))),
        "{found}"
    );
    // A release that says what this program does not know was made by a newer one: nothing of the table is taken for read.
    std::fs::remove_file(log.join("00000000000000000004.json")).unwrap();
    let rows = r#"\"rows\":"#;
    assert!(text.contains(rows), "{text}");
    std::fs::write(&commit, text.replacen(rows, r#"\"note\":\"Ann has flu\",\"rows\":"#, 1)).unwrap();
    let found = printed_anew(&theirs);
    assert!(found.contains("\n,public table: can be read,false") && found.matches("false").count() == 1, "{found}");
    assert!(!found.contains("Ann"), "{found}");
}

/// The next INSERT completes a decided release that is not public, given its files.
#[tokio::test(flavor = "multi_thread")]
async fn a_decided_release_whose_files_are_gone_is_found() {
    from_the_root();
    let context = session();
    let here = tempdir().unwrap();
    hospital(&context, here.path()).await;
    count(&context, Q1).await;
    count(&context, Q2).await;
    let public = here.path().join("hospital");
    let before = files(&public);
    count(&context, Q3).await;
    std::fs::remove_file(public.join("_delta_log/00000000000000000003.json")).unwrap();
    let check = "3,the release that was decided can be made public,";
    let found = found_anew(here.path());
    assert!(found.contains(&format!("{check}false")), "{found}");
    let copied: Vec<_> = files(&public).into_iter().filter(|file| !before.contains(file)).collect();
    assert_eq!(copied.len(), 1);
    // As it is before a release is public: its files are staged.
    let private = here.path().join("hospital.private");
    let commit = std::fs::read_to_string(private.join("_delta_log/00000000000000000003.json")).unwrap();
    let (_, attempt) = commit.split_once(r#"\"attempt\":\""#).unwrap();
    let staged = private.join("_staged").join(attempt.split('\\').next().unwrap());
    std::fs::create_dir_all(&staged).unwrap();
    std::fs::copy(&copied[0], staged.join(copied[0].file_name().unwrap())).unwrap();
    let found = found_anew(here.path());
    assert!(found.contains(&format!("{check}true")), "{found}");
    std::fs::remove_dir_all(&staged).unwrap();
    std::fs::remove_file(&copied[0]).unwrap();
    let found = found_anew(here.path());
    assert!(found.contains(&format!("{check}false")), "{found}");
}
