//! The shell as a user runs it: the real binary.

use std::fs::File;
use std::path::Path;
use std::process::Command;
#[cfg(unix)]
use std::time::{Duration, Instant};

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::tempdir;

use super::program::program;
use super::support::{err, out, path, shell};

#[test]
fn commands_and_formats() {
    let here = tempdir().unwrap();
    let output =
        shell(here.path(), &["-q", "--format", "csv", "-c", "SELECT 1 AS a; SELECT 'x;y' AS b", "SELECT 3 AS c"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(out(&output), "a\n1\nb\nx;y\nc\n3\n");
    let output = shell(here.path(), &["-q", "--format", "json", "-c", "SELECT count(*) AS n FROM census(10)"]);
    assert_eq!(out(&output).trim(), r#"[{"n":10}]"#);
}

/// Commands that can be typed in a session can be said on the command line.
#[test]
fn backslash_commands() {
    let folder = tempdir().unwrap();
    let output = shell(folder.path(), &["-q", "-c", "\\h m_invariant", "-c", "SELECT 1 AS after"]);
    let text = out(&output);
    assert!(output.status.success() && text.contains("previous") && text.contains("after"), "{text}{}", err(&output));
    let output = shell(folder.path(), &["-q", "-c", "\\no_such", "-c", "SELECT 1 AS after"]);
    assert!(!output.status.success() && !out(&output).contains("after"));
    assert!(err(&output).contains("is not a command"), "{}", err(&output));
    let output = shell(folder.path(), &["-q", "-c", "\\h m_invarient"]);
    assert!(err(&output).contains("no relation function m_invarient; did you mean m_invariant?"), "{}", err(&output));
    let output = shell(folder.path(), &["-q", "-c", "\\h select"]);
    assert!(output.status.success() && out(&output).to_lowercase().contains("select"), "{}", err(&output));
}

/// Respelled identifiers make new people in the ledger, and that is told.
#[test]
fn a_snapshot_of_strangers_is_told() {
    let here = tempdir().unwrap();
    let create = "CREATE EXTERNAL TABLE pub (id VARCHAR, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'pub/' OPTIONS \
                  ('method' 'm_invariant', 'm' '3', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    let begin = |create: &str| create.replace("('method'", "('begin' 'true', 'method'");
    let insert = |id: &str, age: u8| {
        format!(
            "INSERT INTO pub SELECT concat('{id}', value), value % 90 + {age}, concat('d', value % 7) FROM generate_series(1, 70)"
        )
    };
    let mut declared = begin(create);
    for (id, age, told) in [("0", 0, false), ("", 1, true), ("0", 2, false), ("", 3, false)] {
        let output = shell(here.path(), &["-q", "-c", &declared, &insert(id, age)]);
        declared = create.to_owned();
        let refused = "nobody in this snapshot was in an earlier release, and release 1 has 70 people";
        assert_eq!((output.status.success(), err(&output).contains(refused)), (!told, told), "{}", err(&output));
        if told {
            // As the refusal says.
            let allowed = create.replace("('method'", "('max_missing' '1', 'method'");
            let output = shell(here.path(), &["-q", "-c", &allowed, &insert(id, age)]);
            assert!(err(&output).contains("mend column id") != output.status.success(), "{}", err(&output));
            assert!(
                err(&output)
                    .contains("0 people were in an earlier release, 70 are new; 70 of the 70 of release 1 are missing"),
                "{}",
                err(&output)
            );
        } else if age > 0 {
            assert!(err(&output).contains("70 people were in an earlier release, 0 are new; "), "{}", err(&output));
        }
    }
    // Who has become older is no stranger.
    let create = "CREATE EXTERNAL TABLE rows (id VARCHAR, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'rows/' OPTIONS \
                  ('method' 'muco', 'delta' 'equal', 'l' '3', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    let mut declared = begin(create);
    for (id, age, told) in [("0", 0, false), ("0", 1, false), ("", 1, true)] {
        let insert = insert(id, age).replace("INTO pub", "INTO rows");
        let output = shell(here.path(), &["-q", "-c", &declared, &insert]);
        declared = create.to_owned();
        assert_eq!(
            (output.status.success(), err(&output).contains("nobody in this snapshot")),
            (!told, told),
            "{}",
            err(&output)
        );
    }
}

/// Rows that are left out are not left out without a word: on standard error, in the metrics, and in the list of releases.
#[test]
fn withheld_rows_are_told() {
    let here = tempdir().unwrap();
    let people = "SELECT value AS id, value % 90 AS age, CASE WHEN value % 3 = 0 THEN concat('d', value % 7) ELSE 'flu' END AS disease \
                  FROM generate_series(1, 300)";
    let call = |policy: &str| {
        format!("m_invariant(({people}), 3, id => id, quasi => age, sensitive => disease, on_ineligible => '{policy}')")
    };
    let output = shell(here.path(), &["-q", "-c", &format!("SELECT count(*) AS n FROM {}", call("withhold"))]);
    assert!(output.status.success(), "{}", err(&output));
    let notice = err(&output);
    assert!(notice.contains("of 300 rows are withheld from this release") && notice.lines().count() == 1, "{notice}");
    let withheld: usize = notice.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(out(&output).contains(&format!("| {} ", 300 - withheld)), "{}", out(&output));
    let output = shell(here.path(), &["-q", "-c", &format!("EXPLAIN ANALYZE SELECT * FROM {}", call("withhold"))]);
    assert!(out(&output).contains(&format!("withheld_rows={withheld}")), "{}", out(&output));
    let create = "CREATE EXTERNAL TABLE pub (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'pub/' OPTIONS \
                  ('begin' 'true', 'method' 'm_invariant', 'm' '3', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease', 'on_ineligible' 'withhold')";
    let insert = format!("INSERT INTO pub {people}");
    let list = "SELECT rows + withheld - counterfeits AS everybody, withheld FROM releases(pub)";
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", create, &insert, list]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains(&format!("notice: {withheld} of 300 rows")), "{}", err(&output));
    assert!(out(&output).contains(&format!("300,{withheld}")), "{}", out(&output));
    let output = shell(here.path(), &["-q", "-c", &format!("SELECT count(*) FROM {}", call("counterfeit"))]);
    assert!(output.status.success() && err(&output).is_empty(), "{}", err(&output));
}

#[test]
fn a_script_stops_at_the_first_failure_and_says_where() {
    let here = tempdir().unwrap();
    let script =
        "-- A script; with a comment\nSELECT 1;\n\nSELECT *\nFROM nowhere;\nCOPY (SELECT 2 AS x) TO 'after.parquet';\n";
    std::fs::write(here.path().join("script.sql"), script).unwrap();
    let output = shell(here.path(), &["-q", "-f", "script.sql"]);
    assert!(!output.status.success());
    assert!(err(&output).contains("script.sql: statement 2 (line 4)"), "{}", err(&output));
    assert!(err(&output).contains("table 'datafusion.public.nowhere' not found"), "{}", err(&output));
    assert!(!here.path().join("after.parquet").exists(), "went on after the failure");
    let output = shell(here.path(), &["-f", "missing.sql"]);
    assert!(!output.status.success() && err(&output).contains("cannot read missing.sql"), "{}", err(&output));
}

/// DataFusion's COPY closes its file as if all were well when its query fails: an empty one, or the rows so far.
#[test]
fn a_copy_that_fails_leaves_what_was_there() {
    let here = tempdir().unwrap();
    let release = |m: usize| {
        format!("SELECT * FROM m_invariant(census(100), {m}, id => person_id, quasi => age, sensitive => income)")
    };
    // Fails after the first rows of a release would have been written.
    let half_way = "SELECT value, 1 / (500000 - value) AS x FROM generate_series(1, 600000)".to_owned();
    let anatomy = |m: usize| format!("SELECT age, group_id, group_size FROM ({})", release(m));
    let mut before = 0;
    for (name, options, good, bad) in [
        ("release.parquet", "", release(2), [release(60), half_way.clone()]),
        ("release.csv", "", format!("SELECT group_id, income FROM ({})", release(2)), [anatomy(60), half_way.clone()]),
        ("release.json", "", anatomy(2), [anatomy(60), half_way.clone()]),
        (
            "release.csv.gz",
            " STORED AS CSV OPTIONS ('format.compression' 'gzip')",
            "SELECT 1 AS x".to_owned(),
            [anatomy(60), half_way.clone()],
        ),
        ("directory/", " STORED AS PARQUET", release(2), [release(60), release(70)]),
    ] {
        let files = || {
            let mut found: Vec<_> = walk(here.path());
            found.sort();
            found.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect::<Vec<_>>()
        };
        // A first COPY that fails leaves no file at all.
        let copy = |query: &str| shell(here.path(), &["-q", "-c", &format!("COPY ({query}) TO '{name}'{options}")]);
        for query in &bad {
            let output = copy(query);
            assert!(!output.status.success(), "{name}: {query}");
            assert_eq!(files().len(), before, "{name}: {query}: {:?}", walk(here.path()));
        }
        let output = copy(&good);
        assert!(output.status.success(), "{name}: {}", err(&output));
        let written = files();
        assert!(written.len() > before, "{name}");
        before = written.len();
        for query in &bad {
            let output = copy(query);
            assert!(!output.status.success(), "{name}: {query}");
            assert_eq!(files(), written, "{name}: {query}");
        }
    }
    // One that succeeds takes the place of what was there.
    let output = shell(here.path(), &["-q", "-c", "COPY (SELECT 7 AS x) TO 'release.csv'"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(std::fs::read_to_string(here.path().join("release.csv")).unwrap(), "x\n7\n");
    assert_eq!(walk(here.path()).len(), before, "no file was left behind");
}

/// INSERT into a table of files fails as a whole, too.
#[test]
fn an_insert_into_files_that_fails_adds_none() {
    let here = tempdir().unwrap();
    std::fs::create_dir(here.path().join("table")).unwrap();
    let create = "CREATE EXTERNAL TABLE t (x BIGINT) STORED AS CSV LOCATION 'table/' OPTIONS ('has_header' 'true')";
    let output = shell(here.path(), &["-q", "-c", create, "INSERT INTO t VALUES (1)"]);
    assert!(output.status.success(), "{}", err(&output));
    let before = walk(here.path());
    let output =
        shell(here.path(), &["-q", "-c", create, "INSERT INTO t SELECT 1 / (3 - value) FROM generate_series(1, 5)"]);
    assert!(!output.status.success());
    assert_eq!(walk(here.path()), before);
}

/// Returns all files below a directory.
fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// The refusal itself.
#[test]
fn a_refused_release_says_why() {
    let here = tempdir().unwrap();
    let copy = "COPY (SELECT * FROM m_invariant(census(100), 60, id => person_id, quasi => age, sensitive => income)) TO 'release.parquet'";
    let output = shell(here.path(), &["-q", "-c", copy]);
    assert!(!output.status.success());
    assert!(err(&output).contains("m = 60"), "{}", err(&output));
    assert!(walk(here.path()).is_empty());
}

/// A script that is run again publishes nothing, and says so, also to a log.
#[test]
fn a_script_that_runs_again_publishes_nothing() {
    let here = tempdir().unwrap();
    let declare = |options: &str| {
        format!(
            "CREATE EXTERNAL TABLE hospital (id BIGINT, age INT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'lake/hospital/'
             OPTIONS ('method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease'{options})"
        )
    };
    let insert = |year: usize| {
        format!(
            "INSERT INTO hospital SELECT value, 20 + value + {year}, CASE WHEN value % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 10)"
        )
    };
    let script = |options: &str| {
        let statements = [declare(options), insert(1), insert(2), insert(3)];
        std::fs::write(here.path().join("script.sql"), statements.join(";\n")).unwrap();
        let output = shell(here.path(), &["-q", "--format", "csv", "-f", "script.sql"]);
        assert!(output.status.success(), "{}", err(&output));
        output
    };
    let first = script(", 'begin' 'true'");
    assert_eq!(out(&first), "count\n10\ncount\n10\ncount\n10\n");
    let returned = "10 people were in an earlier release, 0 are new; 0 of the 10 of release";
    assert!(err(&first).lines().count() == 2 && err(&first).matches(returned).count() == 2, "{}", err(&first));
    // It has not to be told that it began.
    let again = script(", 'begin' 'true'");
    assert_eq!(out(&again), "count\n0\ncount\n0\ncount\n0\n");
    let notices = err(&again);
    let said = |number: usize| {
        format!("publication: this snapshot of 10 rows is that of release {number}; nothing was published")
    };
    let lines: Vec<&str> = notices.lines().collect();
    assert_eq!(lines.len(), 3, "{notices}");
    assert!(lines[0].starts_with(&said(1)) && lines[0].contains("'allow_repeated_snapshots' 'true'"), "{notices}");
    assert!(lines[0].contains("readers see release 3") && lines[1].starts_with(&said(2)), "{notices}");
    let begun = "; take 'begin' 'true' out of the declaration for good";
    assert!(lines[2].starts_with(&(said(3) + begun)), "the newest: nothing else is to be said, {notices}");
    // A table that has really come back to what it was.
    let back = script(", 'allow_repeated_snapshots' 'true'");
    assert_eq!(out(&back), "count\n10\ncount\n10\ncount\n10\n", "1, 2 and 3 follow 3, 1 and 2");
    let count = format!(
        "{}; INSERT INTO hospital SELECT value, 23 + value, CASE WHEN value % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 10); SELECT count(*) AS n FROM releases(hospital)",
        declare(", 'allow_repeated_snapshots' 'true'")
    );
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", &count]);
    assert_eq!(out(&output), "count\n0\nn\n6\n", "but the newest is not published twice: {}", err(&output));
}

#[test]
fn memory_limits_hold() {
    let here = tempdir().unwrap();
    let sql = "SELECT count(*) FROM m_invariant(census(300000), 5, id => person_id, quasi => age, sensitive => income)";
    let output = shell(here.path(), &["-q", "-m", "4m", "-c", sql]);
    assert!(!output.status.success());
    assert!(err(&output).contains("Resources exhausted"), "{}", err(&output));
    let output = shell(here.path(), &["-q", "-m", "1g", "-c", sql]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn a_pipe_is_a_script() {
    use std::io::Write;
    use std::process::Stdio;

    let here = tempdir().unwrap();
    let run = |sql: &str| {
        let mut command = Command::new(program());
        command.current_dir(here.path()).args(["-q", "--format", "csv"]).env_remove("RUST_BACKTRACE");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let fine = run("\u{feff}-- a comment; with a semicolon\nSELECT count(*) AS n FROM census(12); SELECT 2 AS two");
    assert!(fine.status.success(), "{}", err(&fine));
    assert_eq!(out(&fine), "n\n12\ntwo\n2\n");
    let failing = run("SELECT bad;\nSELECT 2;\n");
    assert!(!failing.status.success() && out(&failing).is_empty());
    assert!(err(&failing).contains("standard input: statement 1 (line 1)"), "{}", err(&failing));
}

/// The README's first command, from the root of the repository.
#[test]
fn the_quickstart_runs() {
    let output = shell(Path::new(&path("")), &["-q", "-f", "sql/quickstart.sql"]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("| age              | zip                    | disease"), "{text}");
}

/// Completions are scripts that their shells understand; the manual page names all arguments.
#[test]
fn completions_and_the_manual_page() {
    let here = tempdir().unwrap();
    for (name, has) in [("bash", "complete -F"), ("zsh", "#compdef anonymize"), ("fish", "complete -c anonymize")] {
        let output = shell(here.path(), &["completions", name]);
        assert!(output.status.success() && out(&output).contains(has), "{name}: {}", err(&output));
        assert!(out(&output).contains("fail-on-audit"), "{name}");
    }
    let page = shell(here.path(), &["man"]);
    assert!(page.status.success() && out(&page).starts_with(".ie") || out(&page).starts_with(".TH"), "{}", out(&page));
    assert!(out(&page).contains("memory"), "{}", out(&page));
    assert!(!shell(here.path(), &["completions", "cmd"]).status.success());
}

/// Nobody's identifier, nor the seed, is in a released file: not in the data, not in the metadata, not in statistics.
#[test]
fn public_files_hold_nothing_but_the_release() {
    let here = tempdir().unwrap();
    let copy = "COPY (SELECT * FROM m_invariant((SELECT 'person-' || person_id AS who, age, 'job-' || income AS income, 'note-' || person_id AS note FROM census(2000)), 5,
        id => who, quasi => age, sensitive => income, seed => 5820974613)) TO 'release.parquet' OPTIONS ('format.compression' 'uncompressed')";
    let output = shell(here.path(), &["-q", "-c", copy]);
    assert!(output.status.success(), "{}", err(&output));
    let bytes = std::fs::read(here.path().join("release.parquet")).unwrap();
    let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    assert!(holds(b"job-"), "sensitive values can be found");
    for needle in [&b"person-"[..], b"note-", b"5820974613", &5820974613_u64.to_le_bytes(), b"who"] {
        assert!(!holds(needle), "{}", String::from_utf8_lossy(needle));
    }
    // The Arrow schema is encoded in the file, so it is read to be searched.
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(here.path().join("release.parquet")).unwrap()).unwrap();
    let schema = format!("{:?}", reader.schema());
    assert!(schema.contains("anonymize.release") && schema.contains("m_invariant"), "{schema}");
    for needle in ["person", "note", "5820974613", "who", "seed"] {
        assert!(!schema.contains(needle), "{needle} in {schema}");
    }
}

/// Rows of a query in each format, into a pipe and into a file.
#[test]
fn what_programs_read_is_complete() {
    use std::process::Stdio;

    const ROWS: usize = 1_000_000;
    let here = tempdir().unwrap();
    let sql = format!("SELECT value AS n, 'v' || value AS t FROM generate_series(1, {ROWS}) ORDER BY n");
    for (format, lines) in [
        ("csv", ROWS + 1),
        ("tsv", ROWS + 1),
        ("nd-json", ROWS),
        ("json", 1),
        ("table", ROWS + 4),
        ("automatic", ROWS + 4),
    ] {
        let arguments = ["-q", "--format", format, "-c", &sql];
        let pipe = shell(here.path(), &arguments);
        assert!(pipe.status.success(), "{format}: {}", err(&pipe));
        let path = here.path().join(format!("out.{format}"));
        let mut command = Command::new(program());
        command.current_dir(here.path()).args(arguments).stdout(Stdio::from(File::create(&path).unwrap()));
        assert!(command.status().unwrap().success(), "{format}");
        let file = std::fs::read_to_string(&path).unwrap();
        let text = out(&pipe);
        assert!(text == file, "{format}: a pipe and a file differ");
        assert_eq!(text.lines().count(), lines, "{format}");
        assert!(text.contains("v1000000"), "{format}: the last row is missing");
        if format == "json" {
            let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(rows.len(), ROWS);
            assert_eq!(rows[ROWS - 1]["n"], ROWS);
        }
    }
}

/// `--maxrows` is for people; without `-q`, programs are not told how long it took.
#[test]
fn only_rows_are_written_for_programs() {
    let here = tempdir().unwrap();
    let sql = "SELECT value AS n FROM generate_series(1, 5) ORDER BY n";
    let output = shell(
        here.path(),
        &["--format", "csv", "--maxrows", "2", "-c", sql, "CREATE TABLE t AS SELECT 1 AS a", "SELECT * FROM t"],
    );
    assert_eq!(out(&output), "n\n1\n2\n3\n4\n5\na\n1\n");
    let output = shell(here.path(), &["--maxrows", "2", "-c", sql]);
    assert!(out(&output).contains("| 5 |"), "{}", out(&output));
    // A format that is chosen in the session.
    let mut command = Command::new(program());
    command.current_dir(here.path()).args(["-q", "--format", "json", "-c", "SELECT 1 AS a WHERE 1 = 2"]);
    assert_eq!(String::from_utf8_lossy(&command.output().unwrap().stdout), "[]\n");
}

/// A reader of the first lines only, as `head` is, causes no error.
#[test]
fn a_reader_that_leaves_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;

    let here = tempdir().unwrap();
    for format in ["csv", "json", "nd-json"] {
        let mut command = Command::new(program());
        command.current_dir(here.path()).env_remove("RUST_BACKTRACE");
        command.args(["-q", "--format", format, "-c", "SELECT value FROM generate_series(1, 3000000)"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut start = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{format}: {}", err(&output));
    }
}

/// Errors about a file name it as it was written, wherever it is named.
#[test]
fn errors_name_the_file() {
    let here = tempdir().unwrap();
    std::fs::create_dir(here.path().join("data")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(here.path().join("data").join(name), text).unwrap();
    write("empty.csv", "");
    write("plain", "age\n7\n");
    write("corrupt.parquet", "no Parquet at all, but long enough to have a footer");
    let rows: String = (0..1200).map(|row| format!("{row},{}\n", if row < 1100 { "" } else { "late" })).collect();
    write("late.csv", &format!("age,job\n{rows}"));
    let typed: String = (0..1200).map(|row| format!("{},x\n", if row < 1100 { "7" } else { "seven" })).collect();
    write("typed.csv", &format!("age,job\n{typed}"));
    let failing = |sql: &str| {
        let output = shell(here.path(), &["-q", "-c", sql]);
        assert!(!output.status.success(), "{sql}");
        err(&output)
    };
    for (file, expected) in [
        ("data/typo.csv", "file not found: 'data/typo.csv'; did you mean data/typed.csv?"),
        (
            "data/plain",
            "the file 'data/plain' is there, and its name does not say what is in it to this session: CREATE EXTERNAL TABLE t STORED AS CSV",
        ),
        ("data/corrupt.parquet", "'data/corrupt.parquet' cannot be read: it is no Parquet file, or a damaged one"),
    ] {
        for sql in [
            format!("SELECT * FROM '{file}'"),
            format!("SELECT * FROM mondrian('{file}', 2, quasi => age)"),
            format!("SELECT * FROM mondrian((SELECT * FROM '{file}'), 2, quasi => age)"),
        ] {
            let text = failing(&sql);
            assert!(text.contains(expected), "{sql}: {text}");
        }
    }
    let text = failing("SELECT * FROM mondrian('data/empty.csv', 2, quasi => age)");
    assert!(text.contains("mondrian: argument input has no columns; if it is a file, then one of 0 bytes"), "{text}");
    let text = failing("SELECT * FROM anatomy('data/late.csv', 2, quasi => age, sensitive => job)");
    assert!(text.contains("column job has type Null") && text.contains("CREATE EXTERNAL TABLE"), "{text}");
    let text = failing("SELECT * FROM mondrian('data/typed.csv', 2, quasi => age)");
    assert!(
        text.contains("'data/typed.csv' has a value that is not of its column's type at line 1102, column 1"),
        "{text}"
    );
    assert!(!text.contains("seven"), "{text}");
}

/// Errors of statements that call none of our functions name columns, and never values.
#[test]
fn what_a_statement_gets_wrong_is_named() {
    let here = tempdir().unwrap();
    std::fs::write(here.path().join("latin.csv"), b"age,name\n7,M\xfcller\n8,Smith\n").unwrap();
    let failing = |sql: &str, format: &str| {
        let output = shell(here.path(), &["-q", "--format", format, "-c", sql]);
        assert!(!output.status.success(), "{sql}");
        err(&output)
    };
    let release = "mondrian(census(100), 5, quasi => age, sensitive => occupation)";
    for (sql, expected) in [
        (
            "CREATE TABLE t AS SELECT 'x7' AS dose, 1 AS n; CREATE TABLE u AS SELECT CAST(dose AS INT) AS d FROM t"
                .to_owned(),
            "a cast of column dose to INT failed in the query (what it failed on is data, and not shown); write TRY_CAST(dose AS INT)",
        ),
        (
            "CREATE TABLE t AS SELECT 'x7' AS dose; SELECT CAST(dose AS DATE) FROM t".to_owned(),
            "a cast of column dose to DATE failed in the query",
        ),
        (
            "CREATE TABLE t (a INT, \"B\" INT); INSERT INTO t VALUES (1)".to_owned(),
            "the INSERT into t needs a value for each of 2 columns, a, \"B\"",
        ),
        (
            "CREATE TABLE t (a INT, b INT); INSERT INTO t (b, a) SELECT 1".to_owned(),
            "the INSERT into t needs a value for each of 2 columns, b, a",
        ),
        (format!("SELECT -age FROM {release}"), "column age is a range, from lo to hi, and not a value"),
        ("SELECT count(*) FROM 'latin.csv'".to_owned(), "the text is not UTF-8; write the file anew as UTF-8"),
    ] {
        let text = failing(&sql, "csv");
        assert!(text.contains(expected) && !text.contains("x7"), "{sql}: {text}");
    }
    let lists = "m_invariant(census(100), 2, id => person_id, quasi => age, sensitive => occupation, private => true, on_ineligible => 'withhold')";
    for format in ["csv", "tsv"] {
        let text = failing(&format!("SELECT signature FROM {lists}"), format);
        assert!(text.contains(&format!("{format}: column signature is a list")), "{text}");
    }
    // The cure of the file, as it is written.
    let text = failing("SELECT count(*) FROM 'latin.csv'", "csv");
    let cure =
        text.split("for example ").nth(1).and_then(|rest| rest.split(" (").next()).unwrap_or_else(|| panic!("{text}"));
    let cure = cure.trim().replace("old.csv", "latin.csv");
    if Command::new("sh").args(["-c", &cure]).current_dir(here.path()).status().unwrap().success() {
        let read = shell(here.path(), &["-q", "--format", "csv", "-c", "SELECT count(name) AS n FROM 'new.csv'"]);
        assert_eq!(out(&read), "n\n2\n", "{}", err(&read));
    }
}

/// DataFusion resets its own settings only.
#[test]
fn settings_are_reset() {
    let here = tempdir().unwrap();
    let output = shell(
        here.path(),
        &[
            "-q",
            "--format",
            "csv",
            "-c",
            "SET anonymize.id = 'x'; SHOW anonymize.id; RESET anonymize.id; SHOW anonymize.id; RESET datafusion.execution.batch_size",
        ],
    );
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).contains("anonymize.id,x\n"), "{}", out(&output));
    assert!(out(&output).ends_with("anonymize.id,\n"), "{}", out(&output));
    let output = shell(here.path(), &["-q", "-c", "SHOW FUNCTIONS"]);
    assert!(!out(&output).contains("__anonymize"), "{}", out(&output));
}

/// A copy of a release's file describes itself, as a table and as a file. Files of others keep nothing of their metadata, which may differ.
#[test]
fn copies_of_releases_describe_themselves() {
    let here = tempdir().unwrap();
    let make = "COPY (SELECT * FROM mondrian(census(500), k => 5, quasi => age, sensitive => income)) TO 'release.parquet';
        CREATE TABLE t AS SELECT * FROM 'release.parquet'; SELECT count(*) FROM estimated(t);
        COPY (SELECT * FROM 'release.parquet' WHERE income > 0) TO 'copy.parquet'; SELECT count(*) > 400 FROM estimated('copy.parquet');
        CREATE EXTERNAL TABLE declared STORED AS PARQUET LOCATION 'release.parquet';
        COPY declared TO 'third.parquet'; SELECT count(*) FROM estimated('third.parquet')";
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", make]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    // Each COPY and CREATE says how many rows it wrote, in a format for programs.
    let figures: Vec<&str> = text.lines().filter(|line| *line == "true").collect();
    assert_eq!(figures.len(), 1, "{text}");
    assert!(text.lines().filter(|line| *line == "500").count() >= 4, "{text}");
    // Two releases in one folder can be read, but are no release.
    let folder =
        "COPY (SELECT * FROM mondrian(census(500), k => 5, quasi => age, sensitive => income)) TO 'folder/a.parquet';
        COPY (SELECT * FROM mondrian(census(500), k => 5, quasi => age, sensitive => income)) TO 'folder/b.parquet';
        CREATE EXTERNAL TABLE both STORED AS PARQUET LOCATION 'folder/'; SELECT count(*) AS n FROM both";
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", folder, "SELECT count(*) FROM estimated(both)"]);
    assert!(!output.status.success() && out(&output).ends_with("n\n1000\n"), "{}", out(&output));
    assert!(err(&output).contains("the files of the table are of different releases"), "{}", err(&output));
}

/// A hardly published stream is told once, and not among the results.
#[test]
fn a_stream_that_is_suppressed_says_so() {
    let here = tempdir().unwrap();
    let of = |flu: usize| {
        format!(
            "SELECT * FROM reposition((SELECT value / 10 AS day, CASE WHEN value % 10 < {flu} THEN 'flu' ELSE 'cough' END AS disease
             FROM generate_series(0, 99)), 2, day, 3, disease, finish => true)"
        )
    };
    let said = |sql: &str| {
        let output = shell(here.path(), &["-q", "--format", "csv", "-c", sql]);
        assert!(output.status.success(), "{}", err(&output));
        assert!(!out(&output).contains("suppressed"));
        err(&output)
    };
    assert!(said(&of(10)).contains("reposition: all rows are suppressed (100 of 100)"), "{}", said(&of(10)));
    assert!(said(&of(9)).contains("reposition: most rows are suppressed (80 of 100)"), "{}", said(&of(9)));
    assert_eq!(said(&of(6)), "");
    let publication =
        "CREATE EXTERNAL TABLE clinic (day BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'clinic/' OPTIONS ('begin' 'true', 'method'
         'reposition', 'inner' 'anatomy', 'l' '2', 'time' 'day', 'window' '2', 'quasi' 'age', 'sensitive' 'disease',
         'allow_independent_releases' 'true'); INSERT INTO clinic SELECT value / 10, value, 'flu' FROM generate_series(0, 99)";
    let output = said(publication);
    assert!(output.contains("reposition: all rows are suppressed (80 of 80)"), "{output}");
}

/// Spilled rows are in files while a job runs, and go with it.
#[cfg(unix)]
#[test]
fn a_job_that_is_told_to_end_leaves_no_rows_behind() {
    for (signal, status, told_twice) in
        [("TERM", 143, false), ("INT", 130, false), ("HUP", 129, false), ("TERM", 143, true)]
    {
        let (here, spilled) = (tempdir().unwrap(), tempdir().unwrap());
        let sort = "COPY (SELECT * FROM census(20000000) ORDER BY occupation, person_id) TO 'sorted.parquet'";
        let mut job = hearing()
            .args(["-q", "--memory-limit", "256m", "-c", sort])
            .current_dir(here.path())
            .env("TMPDIR", spilled.path())
            .spawn()
            .unwrap();
        let files = || super::publications::files(spilled.path());
        while files().values().all(|file| file.is_empty()) {
            assert!(job.try_wait().unwrap().is_none(), "it has spilled nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
        tell(&job, signal);
        if told_twice {
            tell(&job, signal);
        }
        assert_eq!(job.wait().unwrap().code(), Some(status));
        assert!(files().is_empty(), "{:?}", files().keys());
    }
}

/// Returns the shell hearing SIGINT, also if this test's starter does not. Jobs in the background do not.
#[cfg(unix)]
fn hearing() -> Command {
    let shell = program();
    if cfg!(not(target_os = "linux")) {
        return Command::new(shell);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP", shell]);
    command
}

/// Starts a job that runs for minutes, and returns once it is at work.
#[cfg(unix)]
fn at_work(here: &Path, sql: &str) -> std::process::Child {
    let job = hearing()
        .args(["-q", "--memory-limit", "1g", "-c", "SELECT 'at work'", sql])
        .current_dir(here)
        .env("TMPDIR", here)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn();
    let mut job = job.unwrap();
    let mut read = [0; 1];
    std::io::Read::read_exact(job.stdout.as_mut().unwrap(), &mut read).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(job.try_wait().unwrap().is_none(), "it has ended by itself: {sql}");
    job
}

#[cfg(unix)]
fn tell(job: &std::process::Child, signal: &str) {
    let told = Command::new("kill").args([format!("-{signal}"), job.id().to_string()]).status().unwrap();
    assert!(told.success());
}

/// Waits for at most so long; returns the exit status and the time.
#[cfg(unix)]
fn ended(job: &mut std::process::Child, most: Duration) -> (Option<i32>, Duration) {
    let start = Instant::now();
    loop {
        if let Some(status) = job.try_wait().unwrap() {
            return (status.code(), start.elapsed());
        }
        if start.elapsed() > most {
            job.kill().unwrap();
            job.wait().unwrap();
            panic!("it goes on after {most:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Statements that never let their thread go: the process ends all the same, after ten seconds, and at once where it is told again.
#[cfg(unix)]
#[test]
fn a_job_ends_when_it_is_told_to_whatever_it_does() {
    let here = tempdir().unwrap();
    // Nested loops, of which each batch of one side takes very long with the other.
    let pairs = "FROM generate_series(1, 4000000) a(x) CROSS JOIN generate_series(1, 4000000) b(y)";
    let counted = format!("SELECT count(*) {pairs} WHERE x % 7 + y % 11 = 40");
    let joined = "SELECT count(*) FROM census(300000) a JOIN census(300000) b ON a.age + b.age < a.education - b.occupation - 1000";
    let written = format!("COPY (SELECT x, y {pairs} WHERE x + y < 0) TO 'pairs.parquet'");
    let mut jobs: Vec<_> =
        [counted.as_str(), joined, &written].into_iter().map(|sql| (at_work(here.path(), sql), sql)).collect();
    for ((job, _), signal) in jobs.iter().zip(["TERM", "INT", "HUP"]) {
        tell(job, signal);
    }
    std::thread::sleep(Duration::from_secs(1));
    tell(&jobs[0].0, "TERM");
    let (status, took) = ended(&mut jobs[0].0, Duration::from_secs(5));
    assert_eq!(status, Some(143), "{took:?}");
    for ((job, sql), status) in jobs.iter_mut().zip([143, 130, 129]).skip(1) {
        assert_eq!(ended(job, Duration::from_secs(20)).0, Some(status), "{sql}");
    }
    let left = super::publications::files(here.path());
    assert!(left.values().all(Vec::is_empty), "{:?}", left.keys());
}

/// A long look at many columns gives up as soon as it is told.
#[cfg(unix)]
#[test]
fn a_profile_that_is_told_to_end_does_not_need_the_grace() {
    let here = tempdir().unwrap();
    let columns: Vec<String> = (1..=60)
        .map(|column| format!("(value * {column} + value % 97) % 50021 % {} AS c{column}", 20 + column))
        .collect();
    let sql = format!("SELECT * FROM profile((SELECT {} FROM generate_series(1, 1500000)))", columns.join(", "));
    let mut job = at_work(here.path(), &sql);
    std::thread::sleep(Duration::from_secs(4));
    tell(&job, "TERM");
    let (status, took) = ended(&mut job, Duration::from_secs(20));
    assert_eq!(status, Some(143));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// A file declares what commands use, and the other way round.
#[test]
fn files_and_commands_run_in_their_order() {
    let here = tempdir().unwrap();
    std::fs::write(here.path().join("declare.sql"), "CREATE TABLE days AS SELECT 1 AS day;").unwrap();
    std::fs::write(here.path().join("show.sql"), "SELECT * FROM days;").unwrap();
    let words = [
        "-q",
        "--format",
        "csv",
        "-f",
        "declare.sql",
        "-c",
        "INSERT INTO days VALUES (2)",
        "-f",
        "show.sql",
        "-c",
        "SELECT 3 AS a",
    ];
    let output = shell(here.path(), &words);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).ends_with("day\n1\n2\na\n3\n"), "{}", out(&output));
}
