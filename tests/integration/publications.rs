//! Publications: what is on disk, who may read it, who wins, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::risk::{Cover, PublicRelease, candidates};
use datafusion_anonymize::{AnonymizeError, ErrorKind};
use tempfile::tempdir;

use super::support::{error, microdata, number, path, run, session, table};

/// Declares the publication of the quickstart's patients at `directory`/hospital.
pub(super) async fn hospital(context: &SessionContext, directory: &Path) {
    declare(context, &directory.join("hospital").display().to_string()).await;
}

/// Declares the same at any location.
pub(super) async fn declare(context: &SessionContext, location: &str) {
    run(context, "DROP TABLE IF EXISTS hospital").await.unwrap();
    run(context, &declaration(location, 2)).await.unwrap();
}

pub(super) fn declaration(location: &str, m: usize) -> String {
    format!(
        "CREATE EXTERNAL TABLE hospital (patient_id BIGINT, age INT, zip INT, disease VARCHAR) STORED AS PUBLICATION
         LOCATION '{location}'
         OPTIONS ('method' 'm_invariant', 'm' '{m}', 'id' 'patient_id', 'quasi' 'age, zip', 'sensitive' 'disease',
                  'allow_repeated_snapshots' 'true')"
    )
}

pub(super) const Q1: &str = "INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q1.parquet'";
pub(super) const Q2: &str = "INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q2.parquet'";

pub(super) fn from_the_root() {
    std::env::set_current_dir(path("")).unwrap();
}

/// Returns the rows that an INSERT reports.
pub(super) async fn count(context: &SessionContext, insert: &str) -> u64 {
    use datafusion::arrow::datatypes::UInt64Type;

    let batches = run(context, insert).await.unwrap();
    batches[0].column(0).as_primitive::<UInt64Type>().value(0)
}

/// Returns all files below a directory with their contents.
pub(super) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Lists the files with rows, without checkpoints of logs.
pub(super) fn parquet_files(directory: &Path) -> BTreeSet<PathBuf> {
    files(directory).into_keys().filter(|path| has_rows(path)).collect()
}

fn has_rows(file: &Path) -> bool {
    let in_log = file.components().any(|part| part.as_os_str() == "_delta_log");
    !in_log && file.extension().is_some_and(|extension| extension == "parquet")
}

#[tokio::test(flavor = "multi_thread")]
async fn private_files_are_the_owners_and_public_ones_tell_nothing() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    assert!(files(here.path()).is_empty(), "CREATE wrote something");
    for insert in [Q1, Q2] {
        assert_eq!(count(&context, insert).await, 11);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        let mut directories = vec![here.path().join("hospital.private")];
        let mut seen = 0;
        while let Some(directory) = directories.pop() {
            assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700, "{directory:?}");
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
                    seen += 1;
                }
            }
        }
        assert!(seen >= 5, "a log and entries, not {seen} files");
    }
    // Whatever the ledger says that nobody else may know, no public file says.
    let log = files(&here.path().join("hospital.private/_delta_log"));
    let log: String = log.values().map(|contents| String::from_utf8_lossy(contents).into_owned()).collect();
    let mut secrets = vec!["patient_id".to_owned(), here.path().display().to_string()];
    for name in ["fingerprint", "fingerprint-key", "attempt"] {
        // As a setting, or in JSON that is a text in JSON.
        let (plain, nested) = (format!("{name}\":\""), format!("{name}\\\":\\\""));
        let values = log.split(&plain).skip(1).chain(log.split(&nested).skip(1));
        let values: Vec<String> =
            values.map(|rest| rest.chars().take_while(|c| c.is_ascii_hexdigit() || *c == '-').collect()).collect();
        assert!(!values.is_empty(), "{name} is not in the ledger");
        secrets.extend(values);
    }
    assert!(secrets.iter().all(|secret| secret.len() >= 10), "{secrets:?}");
    for (file, contents) in files(&here.path().join("hospital")) {
        let text = String::from_utf8_lossy(&contents);
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{secret} in {}", file.display());
        }
        if has_rows(&file) {
            let metadata = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
            let metadata = metadata.metadata();
            assert!(metadata.column_index().is_none() && metadata.offset_index().is_none());
            for group in metadata.row_groups() {
                assert!(group.sorting_columns().is_none());
                for column in group.columns() {
                    assert!(column.statistics().is_none(), "{}", column.column_path());
                    assert!(column.bloom_filter_offset().is_none());
                }
            }
        }
    }
    // What is staged is gone when it is published.
    assert!(files(&here.path().join("hospital.private/_staged")).is_empty());
    assert_eq!(parquet_files(&here.path().join("hospital")).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_insert_leaves_every_file_as_it_was() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    let refused = [
        "INSERT INTO hospital SELECT patient_id, age, zip, 'one' FROM 'data/patients_q1.parquet'",
        "INSERT INTO hospital SELECT 1, age, zip, disease FROM 'data/patients_q1.parquet'",
        "INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q1.parquet' WHERE false",
        "INSERT INTO hospital SELECT patient_id, age / (age - 21), zip, disease FROM 'data/patients_q1.parquet'",
        "INSERT INTO hospital (patient_id, disease) SELECT patient_id, disease FROM 'data/patients_q1.parquet'",
        "INSERT OVERWRITE hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q1.parquet'",
        "DELETE FROM hospital",
    ];
    for insert in refused {
        error(&context, insert).await;
        assert!(files(here.path()).is_empty(), "{insert}");
    }
    run(&context, Q1).await.unwrap();
    let before = files(here.path());
    for insert in refused {
        error(&context, insert).await;
        assert!(files(here.path()) == before, "{insert}");
    }
    for harmless in [Q1, "EXPLAIN INSERT INTO hospital SELECT 1, 2, 3, 'x'"] {
        run(&context, harmless).await.unwrap();
        assert!(files(here.path()) == before, "{harmless}");
    }
    let explained = table(&context, &format!("EXPLAIN FORMAT INDENT {Q2}")).await;
    let plan = "/hospital/, release=2, method=m_invariant, balance=blind, groups=close, m=2, on_ineligible=refuse, quasi=[age, zip], sensitive=disease";
    assert!(explained.contains("PublishExec: publication=file://") && explained.contains(plan), "{explained}");
    let analyzed = table(&context, &format!("EXPLAIN ANALYZE {Q2}")).await;
    assert!(analyzed.contains("input_rows=11") && analyzed.contains("previous_rows=11"), "{analyzed}");
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_publishers_one_wins() {
    from_the_root();
    let here = tempdir().unwrap();
    for release in 1..=3 {
        // All are planned before any of them runs, so all see the same ledger (none, at first).
        let mut plans = Vec::new();
        for publisher in 0..8 {
            let context = session();
            hospital(&context, here.path()).await;
            let insert = format!(
                "INSERT INTO hospital SELECT person_id, age, {publisher}, CAST(person_id % 7 AS VARCHAR) FROM census({})",
                100 * release
            );
            let frame = context.sql(&insert).await.unwrap();
            plans.push((frame.create_physical_plan().await.unwrap(), context.task_ctx()));
        }
        let barrier = Arc::new(tokio::sync::Barrier::new(plans.len()));
        let mut publishers = tokio::task::JoinSet::new();
        for (plan, task) in plans {
            let barrier = Arc::clone(&barrier);
            publishers.spawn(async move {
                barrier.wait().await;
                datafusion::physical_plan::collect(plan, task).await
            });
        }
        let results = publishers.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "release {release}");
        for error in lost {
            let error = error.unwrap_err();
            assert!(AnonymizeError::of(&error).is_some_and(AnonymizeError::is_conflict), "{error}");
            let error = error.strip_backtrace();
            assert!(error.contains("another INSERT decided") && error.contains("run it again"), "{error}");
        }
        assert_eq!(parquet_files(&here.path().join("hospital")).len(), release, "losers wrote something public");
        let context = session();
        hospital(&context, here.path()).await;
        assert_eq!(number(&context, "SELECT max(release) FROM releases(hospital)").await, release as i64);
        assert_eq!(number(&context, "SELECT count(DISTINCT zip.lo) FROM release(hospital)").await, 1);
    }
    assert!(files(&here.path().join("hospital.private/_staged")).is_empty(), "losers left what they had staged");
    // Of entries, too, only those of releases are there.
    assert_eq!(parquet_files(&here.path().join("hospital.private")).len(), 3);
}

/// A host learns from an error's type what became of its INSERT.
#[tokio::test(flavor = "multi_thread")]
async fn errors_have_kinds() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    let kind = |error: &datafusion::error::DataFusionError| {
        let own = AnonymizeError::of(error).unwrap_or_else(|| panic!("{error}"));
        (own.kind(), own.function().to_owned(), own.argument().map(str::to_owned))
    };
    let of = |kind: ErrorKind, argument: Option<&str>| (kind, "publication".to_owned(), argument.map(str::to_owned));
    // Planned before another one decides.
    let late = context.sql(Q1).await.unwrap().create_physical_plan().await.unwrap();
    run(&context, Q1).await.unwrap();
    let overtaken = datafusion::physical_plan::collect(late, context.task_ctx()).await.unwrap_err();
    assert_eq!(kind(&overtaken), of(ErrorKind::Conflict, None));
    let empty = run(&context, &format!("{Q2} WHERE false")).await.unwrap_err();
    assert_eq!(kind(&empty), of(ErrorKind::Refused, None));
    let location = here.path().join("other").display().to_string();
    let unknown = declaration(&location, 2).replace("'m' '2'", "'n' '2'");
    assert_eq!(kind(&run(&session(), &unknown).await.unwrap_err()), of(ErrorKind::Refused, Some("n")));
    // Nothing can be staged where a file stands.
    let staged = here.path().join("hospital.private/_staged");
    std::fs::remove_dir_all(&staged).unwrap();
    std::fs::write(&staged, "in the way").unwrap();
    let input = run(&context, Q2).await.unwrap_err();
    assert_eq!(kind(&input), of(ErrorKind::Input, None));
    let text = input.strip_backtrace();
    assert!(text.contains("nothing was published") && !text.contains("caused by"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_publishers_who_try_again_all_publish() {
    from_the_root();
    let here = tempdir().unwrap();
    let location = here.path().to_owned();
    let mut publishers = tokio::task::JoinSet::new();
    for publisher in 0..8 {
        let location = location.clone();
        publishers.spawn(async move {
            let context = session();
            let insert = format!(
                "INSERT INTO hospital SELECT person_id, age, {publisher}, CAST(person_id % 5 AS VARCHAR) FROM census(200)"
            );
            for _ in 0..200 {
                hospital(&context, &location).await;
                match run(&context, &insert).await {
                    Ok(_) => return,
                    Err(error) => {
                        let error = error.strip_backtrace();
                        assert!(error.contains("run it again"), "publisher {publisher}: {error}");
                    }
                }
            }
            panic!("publisher {publisher} never got through");
        });
    }
    publishers.join_all().await;
    let context = session();
    hospital(&context, here.path()).await;
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 8);
    let mut zips = BTreeSet::new();
    for release in 1..=8 {
        zips.insert(number(&context, &format!("SELECT min(zip.lo) FROM release(hospital, {release})")).await);
    }
    assert_eq!(zips.len(), 8);
}

/// More releases than commits between two checkpoints of Delta Lake.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_and_five_nights() {
    let here = tempdir().unwrap();
    let location = here.path().join("hospital").display().to_string();
    for night in 0..105 {
        let context = session();
        declare(&context, &location).await;
        let insert = format!(
            "INSERT INTO hospital SELECT person_id, age + {night}, education, CAST(person_id % 4 AS VARCHAR) FROM census(40)"
        );
        assert_eq!(count(&context, &insert).await, 40, "night {night}");
    }
    let context = session();
    declare(&context, &location).await;
    assert!(here.path().join("hospital.private/_delta_log/_last_checkpoint").exists());
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 105);
    for release in [1, 50, 100, 105] {
        let first = number(&context, &format!("SELECT min(age.lo) FROM release(hospital, {release})")).await;
        let ages = number(&context, &format!("SELECT min(age) + {release} - 1 FROM census(40)")).await;
        assert_eq!(first, ages, "release {release}");
    }
    // Checkpoints are the owner's, too, and say nothing of the rows.
    #[cfg(unix)]
    for (file, _) in files(&here.path().join("hospital.private")) {
        use std::os::unix::fs::PermissionsExt;

        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

/// Errors of the engine's expressions name the values they failed on.
#[tokio::test(flavor = "multi_thread")]
async fn errors_name_no_values() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    let expressions = [
        ("concat('secret', patient_id)", "secret"),
        ("4000000000 * patient_id * patient_id", "4000000000"),
        ("to_unixtime(to_timestamp(disease, '%Y'))", "dyspepsia"),
        ("length(chr(-age))", "-2"),
        ("factorial(zip)", "12000"),
        ("length(CAST(make_date(zip, age, age) AS VARCHAR))", "'2"),
    ];
    for (expression, value) in expressions {
        let insert = format!(
            "INSERT INTO hospital SELECT patient_id, {expression}, zip, disease FROM 'data/patients_q1.parquet'"
        );
        let message = error(&context, &insert).await;
        assert!(message.contains("failed in the rows of the INSERT"), "{expression}: {message}");
        assert!(!message.contains(value), "{expression}: {message}");
    }
    assert!(files(here.path()).is_empty());
}

/// The next INSERT completes a decided release, even if it is refused, and says so. The job of the release died.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_insert_says_what_it_completed() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, Q1).await.unwrap();
    // As if the job had died before its last write.
    std::fs::remove_file(here.path().join("hospital/_delta_log/00000000000000000001.json")).unwrap();
    let message = error(&context, &format!("{Q2} WHERE false")).await;
    assert!(message.contains("release 1, which was decided earlier, is public now"), "{message}");
    assert!(message.contains("the snapshot has no rows"), "{message}");
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 1);
}

/// Every type that a publication takes comes back as it went in, from both tables.
#[tokio::test(flavor = "multi_thread")]
async fn types_come_back() {
    let context = session();
    let types = [
        ("BOOLEAN", "# % 2 = 0"),
        ("TINYINT", "#"),
        ("SMALLINT", "#"),
        ("INT", "#"),
        ("BIGINT", "#"),
        ("TINYINT UNSIGNED", "#"),
        ("SMALLINT UNSIGNED", "#"),
        ("INT UNSIGNED", "#"),
        ("BIGINT UNSIGNED", "#"),
        ("FLOAT", "# / 4.0"),
        ("DOUBLE", "# / 8.0"),
        ("DECIMAL(10, 2)", "# / 10.0"),
        ("DECIMAL(30, 5)", "# / 10.0"),
        ("VARCHAR", "concat('ü', #)"),
        ("BYTEA", "arrow_cast(concat('ü', #), 'Binary')"),
        ("DATE", "date '2026-01-01' + interval '# day'"),
        ("TIMESTAMP", "timestamp '2026-01-01T01:02:03.123456' + interval '# second'"),
        ("TIMESTAMP WITH TIME ZONE", "timestamp '2026-01-01T01:02:03.123456' + interval '# second'"),
    ];
    for (i, (data_type, value)) in types.into_iter().enumerate() {
        let here = tempdir().unwrap();
        let table = format!("t{i}");
        let create = format!(
            "CREATE EXTERNAL TABLE {table} (id {data_type}, q {data_type}, s {data_type}) STORED AS PUBLICATION LOCATION '{}'
             OPTIONS ('method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'q', 'sensitive' 's')",
            here.path().join("t").display()
        );
        run(&context, &create).await.unwrap_or_else(|error| panic!("{data_type}: {error}"));
        // Two people, so that even truth values can identify them; the second release reads the ledger.
        for (release, quasi) in [(1, "1"), (2, "2")] {
            let of = |n: &str| value.replace('#', n);
            let insert = format!(
                "INSERT INTO {table} SELECT {v} AS a, {q} AS b, {v} AS c UNION ALL SELECT {w}, {q}, {w}",
                v = of("1"),
                w = of("2"),
                q = of(quasi)
            );
            run(&context, &insert).await.unwrap_or_else(|error| panic!("{data_type}: {insert}: {error}"));
            let back = format!(
                "SELECT count(*) FROM release({table}) r WHERE r.q.lo = CAST({q} AS {data_type}) AND r.q.hi = r.q.lo
                 AND s IN (CAST({v} AS {data_type}), CAST({w} AS {data_type}))",
                v = of("1"),
                w = of("2"),
                q = of(quasi)
            );
            assert_eq!(number(&context, &back).await, 2, "{data_type}, release {release}");
        }
        assert_eq!(
            number(&context, &format!("SELECT max(counterfeits) FROM release({table}, 2)")).await,
            0,
            "{data_type}"
        );
    }
}

/// Twenty thousand of 25,000 people, who come and go and come back, thirty times; everybody keeps m candidates after all
/// releases together, and everybody's signature is for ever.
#[tokio::test(flavor = "multi_thread")]
async fn acs_thirty_times() {
    let Some(acs) = microdata("acs_income.parquet") else { return };
    let here = tempdir().unwrap();
    let context = session();
    run(
        &context,
        &format!(
            "CREATE TABLE acs AS SELECT person_id, age, education, birthplace, occupation, place FROM (SELECT *,
            row_number() OVER (ORDER BY person_id * 7919 % 1000003) - 1 AS place FROM '{acs}') WHERE place < 25000"
        ),
    )
    .await
    .unwrap();
    let location = here.path().join("acs");
    let declare = format!(
        "CREATE EXTERNAL TABLE published (person_id BIGINT, age INT, education INT, birthplace INT, occupation VARCHAR)
         STORED AS PUBLICATION LOCATION '{}'
         OPTIONS ('method' 'm_invariant', 'm' '4', 'id' 'person_id', 'quasi' 'age, education, birthplace', 'sensitive' 'occupation',
                  'allow_repeated_snapshots' 'true')",
        location.display()
    );
    let releases = 30;
    for release in 0..releases {
        // A new process each night.
        let job = session();
        job.register_table("acs", context.table_provider("acs").await.unwrap()).unwrap();
        run(&job, &declare).await.unwrap();
        let insert = format!(
            "INSERT INTO published SELECT person_id, age, education, birthplace, CAST(occupation AS VARCHAR) FROM acs
             WHERE (place - {} + 25000) % 25000 < 20000",
            release * 1000 % 25000
        );
        assert_eq!(count(&job, &insert).await, 20_000);
    }
    run(&context, &declare).await.unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM releases(published)").await, releases);
    let counterfeits = run(&context, "SELECT counterfeits FROM releases(published) ORDER BY release").await.unwrap();
    let counterfeits: Vec<i64> =
        counterfeits.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    println!("ACS, m = 4, 30 releases of 20,000 rows with 1,000 changed: counterfeits {counterfeits:?}");

    // Everything that ever stood at LOCATION is a file of a release, and everybody keeps m candidates after all those releases
    // that they were in; a reader knows which.
    assert_eq!(parquet_files(&location).len() as i64, releases);
    let people = run(&context, "SELECT * FROM acs WHERE place % 250 = 7").await.unwrap();
    let people = concat_batches(&people[0].schema(), &people).unwrap();
    let places = people.column_by_name("place").unwrap();
    let places = cast(places, &DataType::Int64).unwrap().as_primitive::<Int64Type>().values().to_vec();
    let quasi = ["age", "education", "birthplace"];
    let known: Vec<ArrayRef> =
        quasi.iter().map(|name| cast(people.column_by_name(name).unwrap(), &DataType::Int32).unwrap()).collect();
    let mut seen: Vec<Vec<Vec<BTreeSet<String>>>> = vec![Vec::new(); places.len()];
    for release in 0..releases {
        let rows = run(&context, &format!("SELECT * FROM release(published, {})", release + 1)).await.unwrap();
        let public = PublicRelease::try_new(&rows, &quasi, "group_id", "occupation").unwrap();
        let found = public.candidates(&Cover { quasi: &known }).unwrap();
        for ((seen, found), place) in seen.iter_mut().zip(found).zip(&places) {
            if (place - release * 1000 % 25000 + 25000) % 25000 < 20000 {
                seen.push(vec![found]);
            }
        }
    }
    assert_eq!(seen.len(), 100);
    for (person, seen) in seen.iter().enumerate() {
        let left = candidates(seen).remove(0);
        assert!(seen.len() >= 20 && left.len() >= 4, "person {person} keeps {} of {} releases", left.len(), seen.len());
    }
    // The ledger has everybody once.
    let ledger = format!("'{}'", here.path().join("acs.private").display());
    let entries = number(&context, &format!("SELECT count(*) FROM {ledger}")).await;
    assert_eq!(entries, number(&context, &format!("SELECT count(DISTINCT identifier) FROM {ledger}")).await);
    assert_eq!(entries, 25_000);
}
