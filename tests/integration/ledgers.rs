//! A lost, exchanged, damaged, incomplete or foreign ledger publishes nothing.

use std::path::Path;

use datafusion::common::runtime::SpawnedTask;
use tempfile::tempdir;

use super::publications::{Q1, Q2, count, declaration, declare, files, from_the_root, hospital, parquet_files};
use super::support::{error, number, run, session};

fn copy_directory(from: &Path, to: &Path) {
    for (file, contents) in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, contents).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_older_or_foreign_ledger_stops_publication() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    let (public, private) = (here.path().join("hospital"), here.path().join("hospital.private"));
    let (public_then, private_then) = (here.path().join("public then"), here.path().join("private then"));
    run(&context, Q1).await.unwrap();
    copy_directory(&public, &public_then);
    copy_directory(&private, &private_then);
    run(&context, Q2).await.unwrap();
    let (public_now, private_now) = (here.path().join("public now"), here.path().join("private now"));
    copy_directory(&public, &public_now);
    copy_directory(&private, &private_now);
    let exchange = |directory: &Path, contents: Option<&Path>| {
        let _ = std::fs::remove_dir_all(directory);
        if let Some(contents) = contents {
            copy_directory(contents, directory);
        }
    };
    let again = "INSERT INTO hospital SELECT patient_id, age + 1, zip, disease FROM 'data/patients_q2.parquet'";
    let expect = async |expected: &str| {
        let before = files(here.path());
        let at_insert = error(&context, again).await;
        assert!(at_insert.contains(expected), "{at_insert}");
        let at_create = error(&session(), &declaration(&public.display().to_string(), 2)).await;
        assert!(at_create.contains(expected), "{at_create}");
        assert!(files(here.path()) == before, "{expected}");
    };

    exchange(&private, None);
    expect("without it, a new release would break the earlier ones").await;
    exchange(&private, Some(&private_then));
    expect("knows releases up to 1 only: it is older").await;
    exchange(&private, Some(&private_now));
    exchange(&public, Some(&public_then));
    // One release behind looks like a job that was killed, but what was staged is gone.
    let error_at_insert = error(&context, again).await;
    assert!(error_at_insert.contains("a staged file of release 2 is missing or damaged"), "{error_at_insert}");
    exchange(&public, None);
    expect("the public table at").await;
    exchange(&private, Some(&private_then));
    let error_at_insert = error(&context, again).await;
    assert!(error_at_insert.contains("a staged file of release 1 is missing or damaged"), "{error_at_insert}");

    // Another publication's ledger, with as many releases.
    let other = session();
    declare(&other, &here.path().join("other").display().to_string()).await;
    run(&other, Q1).await.unwrap();
    run(&other, Q2).await.unwrap();
    exchange(&private, Some(&here.path().join("other.private")));
    copy_directory(&public_now, &public);
    expect("is of another publication").await;

    exchange(&private, Some(&private_now));
    run(&context, again).await.unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 3);
}

/// A ledger from before a release that was decided and copied, but not announced: readers may have seen its files.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_forgot_a_pending_release_is_noticed() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, Q1).await.unwrap();
    let (private, then) = (here.path().join("hospital.private"), here.path().join("then"));
    copy_directory(&private, &then);
    run(&context, Q2).await.unwrap();
    for name in ["00000000000000000002.json", "00000000000000000002.checkpoint.parquet", "_last_checkpoint"] {
        std::fs::remove_file(here.path().join("hospital/_delta_log").join(name)).unwrap();
    }
    std::fs::remove_dir_all(&private).unwrap();
    copy_directory(&then, &private);
    let message = error(&context, Q2).await;
    assert!(message.contains("Parquet files at") && message.contains("the ledger is older than they are"), "{message}");
    assert_eq!(parquet_files(&here.path().join("hospital")).len(), 2);
}

/// Half a restore, a disk that loses bits: a ledger that forgot somebody must not be believed.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_ledger_is_noticed() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, Q1).await.unwrap();
    run(&context, Q2).await.unwrap();
    let private = here.path().join("hospital.private");
    let whole = files(&private);
    let again = "INSERT INTO hospital SELECT patient_id, age + 1, zip, disease FROM 'data/patients_q2.parquet'";
    let mut damages = 0;
    for (file, contents) in &whole {
        let first_line = contents.iter().position(|byte| *byte == b'\n').unwrap_or(contents.len() / 2);
        let flipped = |place: usize| {
            let mut flipped = contents.clone();
            flipped[place] ^= 1;
            Some(flipped)
        };
        let mut kinds = vec![None, Some(Vec::new()), Some(contents[..first_line].to_vec())];
        if file.extension().is_some_and(|extension| extension == "parquet") {
            kinds.extend((4..contents.len()).step_by(97).map(flipped));
        }
        for damaged in kinds {
            match &damaged {
                Some(contents) => std::fs::write(file, contents).unwrap(),
                None => std::fs::remove_file(file).unwrap(),
            }
            let message = error(&context, again).await;
            let told = message.contains("publication: ") && message.contains("the ledger at");
            assert!(told, "{}: {message}", file.display());
            std::fs::write(file, contents).unwrap();
            damages += 1;
        }
    }
    assert!(damages > 20, "{damages}");
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 2);
    run(&context, again).await.unwrap();
}

/// A lost bit of the ledger's metadata is noticed, though no checksum covers it. With another key, a published
/// snapshot would be taken for a new one; with other terms, a bound would not be kept.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_metadata_of_a_ledger_are_noticed() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    // Snapshots that were published are known, and what is left open is as it was begun.
    let declared = |folder: &Path| {
        declaration(&folder.join("hospital").display().to_string(), 2)
            .replace("'disease',", "'disease'")
            .replace("'allow_repeated_snapshots' 'true'", "")
    };
    run(&context, &declared(here.path())).await.unwrap();
    let log = |folder: &Path| folder.join("hospital.private/_delta_log");
    let (mut in_commits, mut in_checkpoints) = (0, 0);
    for night in 0..9 {
        let insert = format!(
            "INSERT INTO hospital SELECT person_id, age + {night}, education, CAST(person_id % 4 AS VARCHAR) FROM census(40)"
        );
        run(&context, &insert).await.unwrap();
        let first = std::fs::read_to_string(log(here.path()).join(format!("{:020}.json", 0))).unwrap();
        let name = "\"anonymize.fingerprint-key\":\"";
        let key = &first[first.find(name).unwrap() + name.len()..][..32];
        let digit = key.bytes().position(|byte| byte.is_ascii_digit()).unwrap();
        for (file, contents) in files(&log(here.path())) {
            let is_checkpoint = file.to_string_lossy().contains("checkpoint");
            let terms: &[u8] = if is_checkpoint { b"\"m\":2" } else { b"\\\"m\\\":2" };
            for (what, place) in [(key.as_bytes(), digit), (terms, terms.len() - 1)] {
                // What the table was created with is said twice.
                let mut flipped = contents.clone();
                let said = contents.windows(what.len()).enumerate().filter(|(_, bytes)| *bytes == what);
                said.for_each(|(start, _)| flipped[start + place] ^= 1);
                if flipped == contents {
                    continue;
                }
                // A copy of both tables, for what was read of a log is not read again.
                let copy = tempdir().unwrap();
                for (file, contents) in files(here.path()) {
                    let file = copy.path().join(file.strip_prefix(here.path()).unwrap());
                    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                    std::fs::write(file, contents).unwrap();
                }
                std::fs::write(log(copy.path()).join(file.file_name().unwrap()), flipped).unwrap();
                let other = session();
                let published = match run(&other, &declared(copy.path())).await {
                    Ok(_) => run(&other, &insert).await,
                    Err(error) => Err(error),
                };
                match published {
                    // What is not read any more does no harm: the same snapshot is known, and nothing is published.
                    Ok(_) => {
                        let releases = number(&other, "SELECT count(*) FROM releases(hospital)").await;
                        assert_eq!(releases, night + 1, "{}", file.display());
                    }
                    Err(error) => {
                        let message = error.to_string();
                        assert!(message.contains("the ledger at"), "{}: {message}", file.display());
                        *(if is_checkpoint { &mut in_checkpoints } else { &mut in_commits }) += 1;
                    }
                }
            }
        }
    }
    assert!(in_commits >= 6 && in_checkpoints >= 6, "{in_commits} {in_checkpoints}");
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_has_one_publication_and_lies_in_no_other() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    let at = |location: &str, private: &str| {
        let (location, private) = (here.path().join(location), here.path().join(private));
        declaration(&location.display().to_string(), 2)
            .replace("'m_invariant'", &format!("'m_invariant', 'private' '{}'", private.display()))
    };
    run(&context, &at("one", "ledger")).await.unwrap();
    run(&context, Q1).await.unwrap();
    let other = session();
    let message = error(&other, &at("two", "ledger")).await;
    assert!(message.contains("is of another publication than the one at"), "{message}");
    for (location, private) in [("two", "one/ledger"), ("one/two", "elsewhere"), ("ledger/two", "elsewhere")] {
        let message = error(&other, &at(location, private)).await;
        assert!(message.contains("is inside of another Delta table"), "{location}, {private}: {message}");
    }
    let message = error(&other, "CREATE EXTERNAL TABLE r STORED AS PUBLICATION LOCATION ''").await;
    assert!(message.contains("publication: a location is missing"), "{message}");
    // Moved together they are found again.
    std::fs::rename(here.path().join("one"), here.path().join("moved")).unwrap();
    std::fs::rename(here.path().join("ledger"), here.path().join("moved ledger")).unwrap();
    run(&other, &at("moved", "moved ledger")).await.unwrap();
    assert_eq!(count(&other, Q2).await, 11);
}

/// Somebody writes a version of the public table: its versions are no longer the releases.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_in_the_public_table_are_noticed() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, Q1).await.unwrap();
    let log = here.path().join("hospital/_delta_log");
    std::fs::copy(log.join("00000000000000000001.json"), log.join("00000000000000000002.json")).unwrap();
    let message = error(&context, Q2).await;
    assert!(message.contains("or somebody else wrote to the public table"), "{message}");
    let message = error(&context, "SELECT * FROM release(hospital, 2)").await;
    assert!(message.contains("version 2 of the public table is not a release"), "{message}");
}

/// Two declarations that were both made before anything was published.
#[tokio::test(flavor = "multi_thread")]
async fn specs_are_compared_at_insert_too() {
    from_the_root();
    let here = tempdir().unwrap();
    let (one, two) = (session(), session());
    let location = here.path().join("hospital").display().to_string();
    run(&one, &declaration(&location, 2)).await.unwrap();
    run(&two, &declaration(&location, 3)).await.unwrap();
    run(&one, Q1).await.unwrap();
    let before = files(here.path());
    let message = error(&two, Q2).await;
    assert!(message.contains("m is 2 in the publication but 3 here"), "{message}");
    assert!(files(here.path()) == before);
}

/// Declares the publication with its ledger at a place of its own.
fn with_ledger(here: &Path, private: &str) -> String {
    let private = here.join(private).display().to_string();
    declaration(&here.join("hospital").display().to_string(), 2)
        .replace("'m_invariant'", &format!("'m_invariant', 'private' '{private}'"))
}

/// Runs two publishers with a ledger each, at once: one of them publishes, and only that one's rows were ever public.
async fn one_of_two(here: &Path, ledgers: [&str; 2], releases: usize) {
    let mut plans = Vec::new();
    for (publisher, private) in ledgers.into_iter().enumerate() {
        let context = session();
        run(&context, &with_ledger(here, private)).await.unwrap();
        let insert = format!(
            "INSERT INTO hospital SELECT person_id, age, {publisher}, CAST(person_id % 7 AS VARCHAR) FROM census({})",
            1000 * releases
        );
        let frame = context.sql(&insert).await.unwrap();
        plans.push((frame.create_physical_plan().await.unwrap(), context));
    }
    let run_all = plans.iter().map(|(plan, context)| {
        let (plan, task) = (std::sync::Arc::clone(plan), context.task_ctx());
        SpawnedTask::spawn(datafusion::physical_plan::collect(plan, task)).join()
    });
    let results = futures::future::join_all(run_all.collect::<Vec<_>>()).await;
    let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    let won = results.iter().position(Result::is_ok).expect("one gets through");
    let lost = results[1 - won].as_ref().expect_err("the other does not").strip_backtrace();
    // In the act; or, if it came too late for that, when it opened the publication or saw the other's files.
    let told = [
        "somebody with another ledger",
        "publication: the ledger",
        "are of none of the releases that the ledger",
        "but no publication",
    ];
    assert!(told.iter().any(|told| lost.contains(told)), "{lost}");
    assert_eq!(parquet_files(&here.join("hospital")).len(), releases, "the loser wrote something public");
    // The winner goes on, the loser does not.
    let next = format!(
        "INSERT INTO hospital SELECT person_id, age, 9, CAST(person_id % 7 AS VARCHAR) FROM census({})",
        1000 * releases
    );
    run(&plans[won].1, &next).await.unwrap();
    assert_eq!(parquet_files(&here.join("hospital")).len(), releases + 1);
    error(&plans[1 - won].1, &next).await;
    assert_eq!(parquet_files(&here.join("hospital")).len(), releases + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ledgers_at_one_place() {
    for _ in 0..5 {
        let here = tempdir().unwrap();
        one_of_two(here.path(), ["one", "two"], 1).await;
    }
}

/// A backup that is put to use while the original is.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_and_its_copy() {
    for _ in 0..5 {
        let here = tempdir().unwrap();
        let context = session();
        run(&context, &with_ledger(here.path(), "one")).await.unwrap();
        run(
            &context,
            "INSERT INTO hospital SELECT person_id, age, 9, CAST(person_id % 7 AS VARCHAR) FROM census(1000)",
        )
        .await
        .unwrap();
        copy_directory(&here.path().join("one"), &here.path().join("copy"));
        one_of_two(here.path(), ["one", "copy"], 2).await;
    }
}

/// A directory that is used for something else stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_needs_a_place_of_its_own() {
    from_the_root();
    let here = tempdir().unwrap();
    let shared = here.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    for name in ["1-january.parquet", "notes.txt"] {
        std::fs::write(shared.join(name), "somebody's").unwrap();
    }
    let before = (files(here.path()), std::fs::metadata(&shared).unwrap().permissions());
    let message = error(&session(), &with_ledger(here.path(), "shared")).await;
    assert!(message.contains("where the private ledger is to be; choose an empty location"), "{message}");
    assert!((files(here.path()), std::fs::metadata(&shared).unwrap().permissions()) == before);
}

/// Foreign files and claims at the public place are respected. A release is pending, or none is.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_files_and_claims_are_respected() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, Q1).await.unwrap();
    let public = here.path().join("hospital");
    let foreign = public.join("foreign.parquet");
    let refused = async |expected: &str| {
        let before = files(here.path());
        let message = error(&context, Q2).await;
        assert!(message.contains(expected), "{message}");
        assert!(files(here.path()) == before, "{expected}");
    };
    std::fs::write(&foreign, "another draw").unwrap();
    refused("that are of none of the releases").await;
    // The same when release 1 is still to be completed.
    let commit = public.join("_delta_log/00000000000000000001.json");
    let announced = std::fs::read(&commit).unwrap();
    std::fs::remove_file(&commit).unwrap();
    refused("that are of none of the releases").await;
    std::fs::write(&commit, announced).unwrap();
    std::fs::remove_file(&foreign).unwrap();

    let claim = public.join("_claims/2");
    std::fs::create_dir_all(claim.parent().unwrap()).unwrap();
    std::fs::write(&claim, "another release").unwrap();
    refused("somebody with another ledger has begun release 2").await;
    // As the message says.
    std::fs::remove_file(&claim).unwrap();
    assert_eq!(count(&context, Q2).await, 11);
}

/// The file of readers' beliefs is needed: an INSERT without it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_readers_believe_is_needed() {
    let insert = |age: i64| format!("INSERT INTO moving VALUES (1, {age}, 'a1'), (2, {age} + 3, 'b')");
    let here = tempdir().unwrap();
    let (location, private) = (here.path().join("moving"), here.path().join("moving.private"));
    let context = session();
    run(&context, "CREATE TABLE law AS SELECT 'a1' AS from_value, 'a2' AS to_value, 0.05 AS probability")
        .await
        .unwrap();
    let declaration = format!(
        "CREATE EXTERNAL TABLE moving (id INT, age INT, disease VARCHAR) STORED AS PUBLICATION LOCATION '{}'
         OPTIONS ('method' 'm_distinct', 'm' '2', 'updates' 'law', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')",
        location.display()
    );
    run(&context, &declaration).await.unwrap();
    run(&context, &insert(20)).await.unwrap();
    let text = std::fs::read_to_string(private.join("_delta_log/00000000000000000001.json")).unwrap();
    let (_, file) = text.split_once(r#"\"beliefs\":{\"achieved\":0.5,\"file\":{\"name\":\""#).unwrap();
    let file = private.join(&file[..file.find('\\').unwrap()]);
    let contents = std::fs::read(&file).unwrap();
    for damaged in [Some("something else"), None] {
        match damaged {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let message = error(&context, &insert(21)).await;
        assert!(message.contains("can put on people's values") && message.contains("restore it"), "{message}");
        let failed = "SELECT count(*) FROM audit(moving) WHERE NOT passed AND \"check\" = 'ledger: can be read'";
        assert_eq!(number(&context, failed).await, 1);
    }
    std::fs::write(&file, contents).unwrap();
    for age in [21, 22] {
        run(&context, &insert(age)).await.unwrap();
    }
    assert_eq!(number(&context, "SELECT count(achieved) FROM releases(moving)").await, 3);
    let checks = "SELECT count(*) FROM audit(moving) WHERE passed AND \"check\" LIKE '%law of changes'";
    assert_eq!(number(&context, checks).await, 3);
    assert_eq!(number(&context, "SELECT count(*) FROM audit(moving) WHERE NOT passed").await, 0);
    assert!(!file.exists(), "only the newest file is kept");
}

/// The public table and the ledger say the same of periods.
#[tokio::test(flavor = "multi_thread")]
async fn another_period_than_the_ledgers_is_found() {
    let here = tempdir().unwrap();
    let location = here.path().join("ill");
    let context = session();
    run(&context, "CREATE TABLE law AS SELECT 'a1' AS from_value, 'a2' AS to_value, 0.05 AS probability")
        .await
        .unwrap();
    let declaration = format!(
        "CREATE EXTERNAL TABLE ill (id INT, age INT, disease VARCHAR) STORED AS PUBLICATION LOCATION '{}'
         OPTIONS ('method' 'dynamic', 'm' '2', 'updates' 'law', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')",
        location.display()
    );
    run(&context, &declaration).await.unwrap();
    for period in [1, 2] {
        run(&context, &format!("SET anonymize.period = {period}")).await.unwrap();
        run(&context, &format!("INSERT INTO ill VALUES (1, {period}, 'a1'), (2, {period} + 3, 'b')")).await.unwrap();
    }
    assert_eq!(number(&context, "SELECT count(*) FROM audit(ill) WHERE NOT passed").await, 0);
    let commit = location.join("_delta_log/00000000000000000002.json");
    let text = std::fs::read_to_string(&commit).unwrap();
    std::fs::write(&commit, text.replace(r#"\"period\":2"#, r#"\"period\":3"#)).unwrap();
    let found =
        "SELECT count(*) FROM audit(ill) WHERE NOT passed AND figures LIKE '%of another period than the release does'";
    assert_eq!(number(&context, found).await, 1);
}
