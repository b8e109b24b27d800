//! Tests of the beginning of a publication, which happens once. They cover storage that is away, full or another account's, and people who are missing.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::tempdir;

use super::program::program;
use super::publications::{Q1, Q2, declaration, files, from_the_root};
use super::support::{begun, err, out, run, run_as_it_is, session, shell};

const DECLARED: &str =
    "CREATE EXTERNAL TABLE hospital (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'hospital/'
    OPTIONS ('method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease'";

/// Returns the people of a night, of whom there are as many every night.
fn night(night: usize, people: usize) -> String {
    format!(
        "INSERT INTO hospital SELECT value AS id, 20 + (value + {night}) % 60 AS age, CASE WHEN value % 2 = 0 THEN 'a' ELSE 'b' END AS disease \
         FROM generate_series(1, {people})"
    )
}

fn job(here: &Path, options: &str, insert: &str) -> Output {
    shell(here, &["-q", "--format", "csv", "-c", &format!("{DECLARED}{options}); {insert}")])
}

const BEGIN: &str = ", 'begin' 'true'";

#[test]
fn storage_that_is_away_is_no_new_publication() {
    let here = tempdir().unwrap();
    let refused = job(here.path(), "", &night(0, 10));
    assert!(!refused.status.success() && files(here.path()).is_empty(), "{}", err(&refused));
    for said in
        ["there is no publication at", "is the storage mounted", "OPTIONS ('begin' 'true', 'method' 'm_invariant', ..)"]
    {
        assert!(err(&refused).contains(said), "{said}: {}", err(&refused));
    }
    for (options, of) in [(BEGIN, 0), (BEGIN, 0), ("", 1)] {
        let done = job(here.path(), options, &night(of, 10));
        assert!(done.status.success(), "{}", err(&done));
    }
    // A declaration that still says it.
    let before = files(here.path());
    let again = job(here.path(), BEGIN, &night(1, 10));
    assert_eq!((again.status.success(), out(&again).as_str()), (true, "count\n0\n"), "{}", err(&again));
    assert_eq!(err(&again).matches("take 'begin' 'true' out of the declaration").count(), 1, "{}", err(&again));
    let again = job(here.path(), "", &night(1, 10));
    assert!(again.status.success() && !err(&again).contains("begin"), "{}", err(&again));
    let again = job(here.path(), BEGIN, &night(2, 10));
    assert!(!again.status.success() && err(&again).contains("this publication has begun"), "{}", err(&again));
    assert!(err(&again).contains("Take 'begin' 'true' out of the declaration"), "{}", err(&again));
    assert_eq!(files(here.path()), before);
    // Both tables are away, and then one.
    let (tables, away) = (["hospital", "hospital.private"], tempdir().unwrap());
    for table in tables {
        std::fs::rename(here.path().join(table), away.path().join(table)).unwrap();
        let missing = job(here.path(), "", &night(2, 10));
        assert!(!missing.status.success(), "{}", err(&missing));
    }
    assert!(files(here.path()).is_empty());
    for table in tables {
        std::fs::rename(away.path().join(table), here.path().join(table)).unwrap();
    }
    let back = job(here.path(), "", &night(2, 10));
    assert!(back.status.success() && out(&back) == "count\n10\n", "{}", err(&back));
}

/// A publication of a session goes on there, and never begins again without its tables.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_begun_goes_on() {
    from_the_root();
    let here = tempdir().unwrap();
    let declared = declaration(&here.path().join("hospital").display().to_string(), 2);
    let context = session();
    let error = run_as_it_is(&context, &declared).await.unwrap_err().to_string();
    assert!(error.contains("'begin' 'true'"), "{error}");
    run_as_it_is(&context, &begun(&declared)).await.unwrap();
    run(&context, Q1).await.unwrap();
    run(&context, Q2).await.unwrap();
    for table in ["hospital", "hospital.private"] {
        std::fs::rename(here.path().join(table), here.path().join(format!("{table} away"))).unwrap();
    }
    let error = run(&context, Q1).await.unwrap_err().to_string();
    assert!(error.contains("is the storage mounted"), "{error}");
    assert!(!here.path().join("hospital").exists() && !here.path().join("hospital.private").exists());
}

/// A tenth of the people get another identifier.
#[test]
fn who_is_missing_is_counted_and_may_be_refused() {
    let here = tempdir().unwrap();
    let changed =
        night(1, 100).replace("SELECT value AS id", "SELECT CASE WHEN value <= 10 THEN -value ELSE value END AS id");
    let first = job(here.path(), BEGIN, &night(0, 100));
    assert!(first.status.success() && err(&first).is_empty(), "{}", err(&first));
    let before = files(here.path());
    let refused = job(here.path(), ", 'max_missing' '0.05'", &changed);
    assert!(!refused.status.success() && files(here.path()) == before, "{}", err(&refused));
    let said = "10 of the 100 people of release 1 are missing, more than option 'max_missing' '0.05' allows";
    assert!(err(&refused).contains(said) && err(&refused).contains("'max_missing' '0.1'"), "{}", err(&refused));
    let told = job(here.path(), "", &changed);
    let said = "publication: release 2: 90 people were in an earlier release, 10 are new; 10 of the 100 of release 1 are missing. If some of \
                the new ones are missing ones whose id is not written as it was";
    assert!(told.status.success() && err(&told).contains(said), "{}", err(&told));
    let lifted = job(here.path(), ", 'max_missing' '0.1'", &night(2, 100));
    assert!(lifted.status.success() && err(&lifted).lines().count() == 1, "{}", err(&lifted));
    for wrong in ["2", "ten"] {
        let refused = job(here.path(), &format!(", 'max_missing' '{wrong}'"), &night(3, 100));
        assert!(err(&refused).contains("a share from 0 to 1"), "{wrong}: {}", err(&refused));
    }
    let other = DECLARED
        .replace("'m_invariant', 'm' '2'", "'anatomy', 'l' '2', 'begin' 'true', 'max_missing' '0.1'")
        .replace("hospital/", "other/");
    let refused = shell(here.path(), &["-q", "-c", &format!("{other})")]);
    assert!(
        err(&refused).contains("for methods that remember people by their identifiers, which anatomy does not"),
        "{}",
        err(&refused)
    );
}

/// Twenty people leave and come back when the others' identifiers are written otherwise.
#[test]
fn who_comes_back_does_not_make_up_for_who_is_missing() {
    let people = |id: &str, of: &str| {
        format!(
            "INSERT INTO hospital SELECT {id} AS id, 20 + value AS age, CASE WHEN value % 2 = 0 THEN 'a' ELSE 'b' END AS disease FROM generate_series({of})"
        )
    };
    for (method, said) in [
        ("'m_invariant', 'm' '2'", "between 0 and 20 of the 20 people of release 2 are missing"),
        ("'m_distinct', 'm' '2', 'exact' 'true', 'updates' 'law'", "20 of the 20 people of release 2 are missing"),
    ] {
        let here = tempdir().unwrap();
        let job = |period: usize, options: &str, insert: &str| {
            let declared = DECLARED.replace("id BIGINT", "id VARCHAR").replace("'m_invariant', 'm' '2'", method);
            let set =
                if method.contains("law") { format!("SET anonymize.period = '{period}'; ") } else { String::new() };
            let law = "CREATE TABLE law AS SELECT * FROM (VALUES ('a', 'c', 0.1), ('c', 'a', 0.1), ('b', 'd', 0.1), ('d', 'b', 0.1)) \
                   AS t(from_value, to_value, probability)";
            shell(here.path(), &["-q", "--format", "csv", "-c", &format!("{law}; {declared}{options}); {set}{insert}")])
        };
        for (period, options, of) in [(1, BEGIN, "0, 39"), (2, ", 'max_missing' '0.5'", "0, 19")] {
            let done = job(period, options, &people("concat(value)", of));
            assert!(done.status.success(), "{method}: {}", err(&done));
        }
        let changed = people("CASE WHEN value < 20 THEN concat(value, ' ') ELSE concat(value) END", "0, 39");
        let before = files(here.path());
        let refused = job(3, ", 'max_missing' '0'", &changed);
        assert!(!refused.status.success() && err(&refused).contains(said), "{method}: {}", err(&refused));
        assert!(files(here.path()) == before);
        // Nobody of the newest release is missing, and it is known where people are dated.
        let all = job(3, ", 'max_missing' '0'", &people("concat(value)", "0, 39").replace("20 +", "21 +"));
        assert!(all.status.success(), "{method}: {}", err(&all));
    }
}

/// Methods without memory know people by identifiers, and a blank in front makes others.
#[test]
fn that_people_are_known_by_their_spelling_is_said() {
    let here = tempdir().unwrap();
    let declared = DECLARED
        .replace("id BIGINT", "id VARCHAR")
        .replace("'m_invariant', 'm' '2'", "'anatomy', 'l' '2', 'allow_independent_releases' 'true'");
    for (options, blank, said) in
        [(BEGIN, "", None), ("", " ", Some("release 2: all 40 people are new; people are known by"))]
    {
        let insert = night(0, 40).replace("value AS id", &format!("concat('{blank}', value) AS id"));
        let done = shell(here.path(), &["-q", "--format", "csv", "-c", &format!("{declared}{options}); {insert}")]);
        assert!(done.status.success(), "{}", err(&done));
        assert_eq!(err(&done).lines().count(), usize::from(said.is_some()), "{}", err(&done));
        assert!(said.is_none_or(|said| err(&done).contains(said)), "{}", err(&done));
    }
}

#[test]
fn calls_say_who_returns_and_that_there_is_nobody() {
    let here = tempdir().unwrap();
    let people = |from: usize| {
        format!(
            "(SELECT value AS id, value % 50 AS age, value % 4 AS disease FROM generate_series({from}, {}))",
            from + 99
        )
    };
    let call = |from: usize, more: &str| {
        format!("m_invariant({}, 2, id => id, quasi => age, sensitive => disease{more})", people(from))
    };
    let first = format!("COPY (SELECT * FROM {}) TO 'first.parquet'", call(1, ", private => true"));
    let made = shell(here.path(), &["-q", "-c", &first]);
    assert!(made.status.success() && err(&made).is_empty(), "{}", err(&made));
    let second = format!("SELECT count(*) AS n FROM {}", call(11, ", previous => 'first.parquet'"));
    let made = shell(here.path(), &["-q", "-c", &second]);
    assert!(err(&made).starts_with("m_invariant: 90 people were in an earlier release, 10 are new"), "{}", err(&made));
    // What does not say which release it is.
    let made = shell(
        here.path(),
        &[
            "-q",
            "-c",
            &format!(
                "CREATE TABLE p AS SELECT 1 AS id, [1, 2] AS signature, 1 AS ring, 1 AS disease; SELECT count(*) AS n FROM {}",
                call(1, ", previous => p")
            ),
        ],
    );
    assert!(err(&made).contains("not all rows of previous say which release they are of"), "{}", err(&made));
    let empty = format!("SELECT count(*) AS n FROM {}", call(1, "").replace("(1, 100)", "(1, 0)"));
    let made = shell(here.path(), &["-q", "-c", &empty]);
    assert_eq!(err(&made).trim(), "m_invariant: the input has no rows, and so the release has none");
}

#[test]
fn periods_that_are_not_said_are_told() {
    let here = tempdir().unwrap();
    let declared = |more: &str| {
        format!(
            "CREATE TABLE law AS SELECT 'a' AS from_value, 'c' AS to_value; {}{more}, 'updates' 'law')",
            DECLARED.replace("m_invariant", "m_distinct")
        )
    };
    for (of, more, said) in [
        (0, BEGIN, Some("from the second release on `reader` is the paper's")),
        (1, "", Some("from this release on `reader` is the paper's")),
        (2, "", None),
    ] {
        let done = shell(here.path(), &["-q", "-c", &format!("{}; {}", declared(more), night(of, 30))]);
        assert!(done.status.success(), "{}", err(&done));
        assert_eq!(err(&done).contains("`reader` is"), said.is_some(), "{}", err(&done));
        assert!(said.is_none_or(|said| err(&done).contains(said)), "{}", err(&done));
    }
    let other = declared(BEGIN).replace("hospital/", "other/");
    let quarters = |quarter: &str, of: usize| format!("SET anonymize.period = '{quarter}'; {}", night(of, 30));
    let all = format!("{other}; {}; {}", quarters("2025-Q4", 0), quarters("2026-Q1", 1));
    let done = shell(
        here.path(),
        &["-q", "-c", &all, "-c", "SELECT count(*) AS n FROM releases(hospital) WHERE reader <> 'the paper''s'"],
    );
    assert!(done.status.success() && out(&done).contains("| 2 "), "{}{}", out(&done), err(&done));
    assert!(!err(&done).contains("`reader` is"), "{}", err(&done));
    let wrong =
        shell(here.path(), &["-q", "-c", &declared("").replace("hospital/", "other/"), &quarters("2026-Q5", 2)]);
    assert!(err(&wrong).contains("or quarter ('2026-Q1')"), "{}", err(&wrong));
}

/// A killed first INSERT leaves a folder in which a commit has no name.
#[test]
fn a_table_of_the_name_of_its_folder_begins_again() {
    let here = tempdir().unwrap();
    let log = here.path().join("hospital/_delta_log");
    std::fs::create_dir_all(&log).unwrap();
    std::fs::create_dir_all(here.path().join("hospital/_claims")).unwrap();
    std::fs::write(log.join(format!(".{}.tmp", "0123456789abcdef".repeat(2))), "half of a comm").unwrap();
    let done = job(here.path(), BEGIN, &night(0, 10));
    assert!(done.status.success(), "{}", err(&done));
}

/// Of jobs that run the same INSERT at once, one reports its rows.
#[test]
fn of_eight_that_publish_one_snapshot_one_reports_it() {
    let here = tempdir().unwrap();
    for round in 0..4 {
        let begin = if round == 0 { BEGIN } else { "" };
        let text = format!("{DECLARED}{begin}); {}", night(round, 400));
        let start = || {
            let mut command = Command::new(program());
            command.current_dir(here.path()).args(["-q", "--format", "csv", "-c", &text]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<_> = (0..8).map(|_| start()).collect();
        let mut rows = 0;
        for one in all {
            let one = one.wait_with_output().unwrap();
            match one.status.success() {
                true => rows += out(&one).lines().nth(1).unwrap().parse::<usize>().unwrap(),
                false => assert!(err(&one).contains("run it again"), "{}", err(&one)),
            }
        }
        assert_eq!(rows, 400, "round {round}");
    }
}

/// Runs as another account where the tests run as root, who may do everything.
#[cfg(unix)]
mod accounts {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    use super::*;

    const NOBODY: u32 = 65_534;

    fn is_root(here: &Path) -> bool {
        std::fs::metadata(here).unwrap().uid() == 0
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Returns a job of somebody who is not root.
    fn job_of_others(here: &Path, options: &str, insert: &str) -> Output {
        let mut command = Command::new(program());
        command.current_dir(here).args(["-q", "--format", "csv", "-c", &format!("{DECLARED}{options}); {insert}")]);
        if is_root(here.parent().unwrap()) {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }

    /// Returns a folder in another one, which is somebody's who is not root.
    fn folder(above: &Path) -> std::path::PathBuf {
        let here = above.join("here");
        std::fs::create_dir(&here).unwrap();
        mode(above, 0o755);
        if is_root(above) {
            chown(&here, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        here
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_decided() {
        let above = tempdir().unwrap();
        let here = folder(above.path());
        let first = job_of_others(&here, BEGIN, &night(0, 10));
        assert!(first.status.success(), "{}", err(&first));
        for closed in ["hospital", "hospital/_delta_log"] {
            // Claims and the rest could be written.
            std::fs::create_dir_all(here.join("hospital/_claims")).unwrap();
            if is_root(above.path()) {
                chown(here.join("hospital/_claims"), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            mode(&here.join(closed), 0o555);
            let refused = job_of_others(&here, "", &night(1, 10));
            mode(&here.join(closed), 0o755);
            let error = err(&refused);
            assert!(!refused.status.success() && error.contains("nothing was published"), "{closed}: {error}");
            assert!(!error.contains("is decided"), "{closed}: {error}");
        }
        let done = job_of_others(&here, "", &night(1, 10));
        assert!(done.status.success() && !err(&done).contains("completed first"), "{}", err(&done));
    }

    #[test]
    fn files_of_another_account_are_not_called_damaged() {
        let above = tempdir().unwrap();
        if !is_root(above.path()) {
            return println!("not root, who could leave files to others: not tested");
        }
        let here = folder(above.path());
        let first = job(&here, BEGIN, &night(0, 10));
        assert!(first.status.success(), "{}", err(&first));
        let refused = job_of_others(&here, "", &night(1, 10));
        let error = err(&refused);
        assert!(!refused.status.success() && error.contains("this account may not read it"), "{error}");
        assert!(error.contains("chown -R") && !error.contains("damaged"), "{error}");
    }
}

/// A disk with room for a probe and not for the release decides nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_nearly_full_decides_nothing() {
    let here = tempdir().unwrap();
    let script = |name: &str, options: &str, insert: &str| {
        let path = here.path().join(name);
        std::fs::write(&path, format!("{DECLARED}{options}); {insert}")).unwrap();
        path
    };
    let (small, large) = (script("small.sql", BEGIN, &night(0, 10)), script("large.sql", "", &night(1, 40_000)));
    let steps = r#"
        set -e
        shell=$0 small=$1 large=$2
        mkdir hospital && mount -t tmpfs -o size=400k disk hospital
        "$shell" -q -f "$small" >/dev/null
        if "$shell" -q -f "$large" 2>full.txt; then exit 3; fi
        ls hospital/*.parquet | wc -l
        mount -o remount,size=100m hospital
        "$shell" -q -f "$large" 2>after.txt >/dev/null
        ls hospital/*.parquet | wc -l
    "#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", steps, program()])
        .args([&small, &large])
        .current_dir(here.path())
        .output();
    let Some(output) = output.ok().filter(|output| !output.stdout.is_empty()) else {
        return println!("no mount namespaces here: not tested");
    };
    let read = |name: &str| std::fs::read_to_string(here.path().join(name)).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{}\n{}", read("full.txt"), read("after.txt"));
    assert_eq!(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>(), ["1", "2"]);
    assert!(
        read("full.txt").contains("nothing was published") && !read("full.txt").contains("is decided"),
        "{}",
        read("full.txt")
    );
    assert!(!read("after.txt").contains("completed first"), "{}", read("after.txt"));
}

#[test]
fn a_folder_for_spilling_that_is_missing_is_named() {
    let here = tempdir().unwrap();
    let mut command = Command::new(program());
    command.current_dir(here.path()).env("TMPDIR", here.path().join("missing")).args(["-q", "-c", "SELECT 1"]);
    let output = command.output().unwrap();
    assert!(!output.status.success() && err(&output).contains("TMPDIR names it"), "{}", err(&output));
    std::fs::create_dir(here.path().join("missing")).unwrap();
    assert!(command.output().unwrap().status.success());
}
