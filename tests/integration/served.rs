//! `anonymize serve`, asked by the programs that readers have: psql, psycopg, SQLAlchemy and the JDBC driver; and by some that mean no good.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use super::program::program;
use super::python::environment;
use super::support::{begun, err, out, path, run, session, shell};

/// Returns a publication, a release and what nobody is to see, in a folder.
pub(super) fn lake() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (path("data/clinic_q1.csv"), path("data/clinic_q2.csv"));
    std::fs::copy(second, folder.path().join("q2.csv")).unwrap();
    let call = |more: &str| {
        format!(
            "m_invariant('{first}', 3, id => patient_id, quasi => (age, sex, postcode), sensitive => diagnosis, seed => 4{more})"
        )
    };
    let script = format!(
        "{};
         INSERT INTO clinic SELECT patient_id, age, sex, postcode, diagnosis FROM '{first}';
         SET datafusion.execution.parquet.skip_metadata = false;
         COPY (SELECT * FROM {}) TO 'lake/q1.parquet';
         COPY (SELECT * FROM {}) TO 'lake/private.parquet';
         COPY (SELECT age, sex, diagnosis FROM '{first}') TO 'lake/people.parquet';",
        begun(DECLARED),
        call(""),
        call(", private => true"),
    );
    let made = shell(folder.path(), &["-q", "-c", &script]);
    assert!(made.status.success(), "{}", err(&made));
    folder
}

const DECLARED: &str = "CREATE EXTERNAL TABLE clinic (patient_id BIGINT, age BIGINT, sex VARCHAR, postcode BIGINT, diagnosis VARCHAR)
    STORED AS PUBLICATION LOCATION 'lake/clinic/'
    OPTIONS ('method' 'm_invariant', 'm' '3', 'id' 'patient_id', 'quasi' 'age, sex, postcode', 'sensitive' 'diagnosis')";

const SERVED: [&str; 4] = ["--publication", "clinic=lake/clinic/", "--release", "q1=lake/q1.parquet"];

/// A server that ends with this.
pub(super) struct Server {
    pub(super) process: Child,
    pub(super) port: u16,
    /// Line that it said when it began.
    line: String,
    log: PathBuf,
}

impl Server {
    pub(super) fn start(folder: &Path, more: &[&str]) -> Self {
        Self::start_with(folder, more, &[])
    }

    /// Returns the same with more in the environment.
    pub(super) fn start_with(folder: &Path, more: &[&str], environment: &[(&str, &Path)]) -> Self {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let log = folder.join(format!("log{number}"));
        let mut process = Command::new(program())
            .current_dir(folder)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(SERVED)
            .args(more)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        let Some(port) = port else {
            let _ = process.wait();
            panic!("{line}{}", std::fs::read_to_string(&log).unwrap())
        };
        Self { process, port, line, log }
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Asks it to stop, and waits until it has.
    pub(super) fn stop(mut self) -> (bool, String) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let well = self.process.wait().unwrap().success();
        (well, self.log())
    }

    /// Returns the kilobytes of memory that it has.
    fn memory(&self) -> Option<usize> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns true if there is psql. Where `ANONYMIZE_PSQL=require`, there must be.
pub(super) fn psql_is_here() -> bool {
    static HERE: OnceLock<bool> = OnceLock::new();
    *HERE.get_or_init(|| {
        let here = Command::new("psql").arg("--version").output().is_ok_and(|output| output.status.success());
        assert!(here || std::env::var("ANONYMIZE_PSQL").as_deref() != Ok("require"), "psql is not here");
        if !here {
            println!("psql is not here: not used");
        }
        here
    })
}

/// Runs psql on statements, as plain as it can.
pub(super) fn psql(server: &Server, statements: &[&str]) -> Output {
    psql_as(&format!("host=127.0.0.1 port={} user=reader dbname=publications", server.port), "", statements)
}

pub(super) fn psql_as(connection: &str, password: &str, statements: &[&str]) -> Output {
    let mut command = Command::new("psql");
    command.env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "20").env_remove("PGHOST");
    command.args(["-X", "-q", "-A", "-t", "-v", "VERBOSITY=verbose", "-d", connection]);
    for statement in statements {
        command.args(["-c", statement]);
    }
    command.output().unwrap()
}

#[test]
fn psql_asks() {
    if !psql_is_here() {
        return;
    }
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    assert!(server.line.starts_with("serving publication clinic, release q1 at 127.0.0.1:"), "{}", server.line);
    let asked = |statements: &[&str]| {
        let output = psql(&server, statements);
        assert!(output.status.success(), "{}", err(&output));
        out(&output)
    };
    assert_eq!(asked(&["SELECT count(*) FROM clinic"]), "60\n");
    assert_eq!(
        asked(&["SELECT count(*), sum(rows) FROM releases(clinic)", "SELECT count(*) FROM release(clinic, 1)"]),
        "1|60\n60\n"
    );
    assert_eq!(
        asked(&["SELECT count(*) FROM estimated(q1)", "SELECT count(*) FROM estimated(release('clinic', 1))"]),
        "60\n60\n"
    );
    let interval = asked(&["SELECT count_interval(*, 0.95), count_stddev(*) >= 0 FROM clinic WHERE age < 40"]);
    assert!(interval.starts_with('(') && interval.ends_with(")|t\n"), "{interval}");
    // Ranges: as they are, and as columns.
    assert_eq!(asked(&["SELECT count((age).lo) FROM release(clinic) WHERE (age).lo <= (age).hi"]), "60\n");
    let row = asked(&["SELECT age, sex FROM release(clinic) ORDER BY group_id LIMIT 1"]);
    assert!(row.starts_with('(') && row.contains(','), "{row}");
    assert_eq!(
        asked(&["SELECT count(*) FROM clinic_flat WHERE age_lo <= age_hi", "SELECT count(age_lo) FROM q1_flat"]),
        "60\n60\n"
    );
    let tables = asked(&["\\d"]);
    for table in ["clinic|table", "clinic_flat|view", "q1|table", "q1_flat|view"] {
        assert!(tables.contains(table), "{tables}");
    }
    let columns = asked(&["\\d clinic"]);
    assert!(columns.contains("age|bigint") && columns.contains("diagnosis|text"), "{columns}");
    assert!(!columns.contains("patient_id"), "{columns}");
    asked(&[
        "\\dt",
        "\\dv",
        "\\dn",
        "\\l",
        "\\d q1_flat",
        "\\du",
        "\\conninfo",
        "\\d+ clinic",
        "\\dt+",
        "\\df",
        "\\dT",
    ]);
    assert_eq!(asked(&["SHOW server_version", "SET application_name = 'x'; SHOW application_name"]), "16.6\nx\n");
    assert_eq!(
        asked(&["BEGIN; SELECT 1; COMMIT", "SELECT current_user", "SELECT current_database()"]),
        "1\nreader\npublications\n"
    );

    // A refusal has a code and a hint.
    let refused = psql(&server, &["SELECT * FROM clinic"]);
    assert!(!refused.status.success());
    assert!(
        err(&refused).contains("ERROR:  0A000: estimate:") && err(&refused).contains("HINT:  Ask for COUNT"),
        "{}",
        err(&refused)
    );
    let transaction = psql(&server, &["BEGIN; SELECT nothing", "SELECT 1"]);
    assert!(err(&transaction).contains("42703"), "{}", err(&transaction));

    // The next release is there without a word to the server.
    let publish =
        format!("{DECLARED}; INSERT INTO clinic SELECT patient_id, age, sex, postcode, diagnosis FROM 'q2.csv'");
    let published = shell(folder.path(), &["-q", "-c", &publish]);
    assert!(published.status.success(), "{}", err(&published));
    assert_eq!(asked(&["SELECT max(release) FROM releases(clinic)"]), "2\n");
    let newest = shell(
        folder.path(),
        &[
            "-q",
            "--format",
            "csv",
            "-c",
            &format!("{DECLARED}; SELECT count(*) AS people, sum(age) AS age FROM clinic"),
        ],
    );
    let newest = out(&newest).lines().last().unwrap_or_default().replace(',', "|");
    assert_eq!(asked(&["SELECT count(*), sum(age) FROM clinic"]).trim(), newest);
    assert_ne!(
        asked(&["SELECT sum(age_lo) FROM clinic_flat"]),
        asked(&["SELECT sum(age_lo) FROM flat(release(clinic, 1))"])
    );

    let (well, log) = server.stop();
    assert!(well, "{log}");
    assert!(log.contains("statement ") && log.contains(" ok") && log.contains("error 0A000"), "{log}");
    assert!(!log.contains("SELECT") && !log.contains("clinic"), "{log}");
}

/// Every kind of statement that is not a question.
#[test]
fn nothing_is_written_and_nothing_else_is_read() {
    if !psql_is_here() {
        return;
    }
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let here = folder.path().display().to_string();
    let ledger = format!("{here}/lake/clinic.private/");
    assert!(Path::new(&ledger).exists(), "the ledger is somewhere else, and this test tests nothing");
    let writing = [
        "INSERT INTO clinic VALUES (1, 2, 'F', 3, 'x')",
        "INSERT INTO q1 SELECT * FROM q1",
        "UPDATE clinic SET age = 1",
        "DELETE FROM clinic",
        "TRUNCATE clinic",
        "CREATE TABLE t (a INT)",
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE TEMP TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE SCHEMA s",
        "CREATE DATABASE d",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE EXTENSION x",
        "DROP TABLE q1",
        "DROP VIEW clinic_flat",
        "ALTER TABLE q1 RENAME TO q2",
        "SELECT * INTO t FROM q1",
        "WITH a AS (DELETE FROM q1 RETURNING *) SELECT * FROM a",
        "GRANT ALL ON q1 TO reader",
        "SET ROLE admin",
        "SET datafusion.execution.batch_size = 1",
        "SET anonymize.id = 'patient_id'",
        "RESET datafusion.execution.batch_size",
        "SHOW datafusion.execution.batch_size",
        "SHOW ALL",
        "PREPARE p AS SELECT 1",
        "DECLARE c CURSOR FOR SELECT 1",
        "LISTEN a",
        "VACUUM",
        "ANALYZE q1",
        "EXPLAIN ANALYZE SELECT * FROM q1",
        "EXPLAIN VERBOSE SELECT * FROM q1",
        "SELECT * FROM information_schema.df_settings",
        "SELECT repeat('x', 100000000)",
        "SELECT input_file_name() FROM q1",
        "SELECT arrow_cast('x', 'FixedSizeBinary(2000000000)')",
    ];
    let mut reading = vec![
        "COPY q1 TO STDOUT".to_owned(),
        format!("COPY q1 TO '{here}/stolen.csv'"),
        format!("COPY (SELECT 1 AS a) TO '{here}/stolen.parquet'"),
        format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{here}/lake/people.parquet'"),
        "LOAD 'x'".to_owned(),
        "SELECT * FROM parquet_metadata('lake/people.parquet')".to_owned(),
        "SELECT * FROM read_csv('q2.csv')".to_owned(),
        "SELECT pg_read_file('q2.csv')".to_owned(),
        "SELECT lo_import('q2.csv')".to_owned(),
        "SELECT * FROM audit(clinic)".to_owned(),
        "SELECT * FROM m_invariant(clinic_flat, 2, sensitive => diagnosis)".to_owned(),
        "SELECT * FROM disclosure(q1, original => q1)".to_owned(),
    ];
    let places = ["lake/people.parquet", "lake/private.parquet", "q2.csv", "lake/clinic.private/", "lake/clinic/"];
    let places = places
        .iter()
        .flat_map(|place| [format!("{here}/{place}"), (*place).to_owned(), format!("file://{here}/{place}")]);
    for place in places.chain([ledger.clone(), "/etc/passwd".to_owned(), "s3://bucket/file.parquet".to_owned()]) {
        reading.extend([
            format!("SELECT * FROM '{place}'"),
            format!("SELECT * FROM \"{place}\""),
            format!("SELECT * FROM publications.public.\"{place}\""),
            format!("SELECT * FROM estimated('{place}')"),
            format!("SELECT count(*) FROM estimated(q1, hierarchies => '{place}')"),
            format!("SELECT * FROM flat('{place}')"),
            format!("SELECT * FROM flat((SELECT * FROM '{place}'))"),
            format!("SELECT * FROM release('{place}')"),
            format!("SELECT * FROM releases('{place}')"),
        ]);
    }
    let statements: Vec<&str> = writing.iter().copied().chain(reading.iter().map(String::as_str)).collect();
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all((statements.join(";\n") + ";\n").as_bytes()).unwrap();
    let connection = format!("host=127.0.0.1 port={} user=reader", server.port);
    let output = Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "VERBOSITY=verbose", "-d", &connection, "-f"])
        .arg(script.path())
        .output()
        .unwrap();
    assert_eq!(out(&output), "", "something was answered");
    let complaints = err(&output);
    assert_eq!(complaints.matches("ERROR:  ").count(), statements.len(), "{complaints}");
    assert_eq!(complaints.matches("XX000").count(), 0, "{complaints}");
    // Of the server, readers learn what they have written themselves.
    for line in complaints.lines().filter(|line| line.contains("HINT")) {
        assert!(!line.contains(&here) && !line.contains("/etc/"), "{line}");
    }
    assert!(!folder.path().join("stolen.csv").exists() && !folder.path().join("stolen.parquet").exists());
    // Answers and plans have no names of files either.
    let told = psql(
        &server,
        &[
            "EXPLAIN SELECT count(*) FROM clinic",
            "EXPLAIN SELECT * FROM q1 WHERE group_id = 1",
            "EXPLAIN SELECT * FROM release(clinic)",
        ],
    );
    assert!(told.status.success() && !out(&told).is_empty());
    assert!(!out(&told).contains("parquet") && !out(&told).contains(&here), "{}", out(&told));
    assert_eq!(out(&psql(&server, &["SELECT count(*) FROM clinic"])), "60\n");
}

/// Tables that must not be served are not.
#[test]
fn private_tables_are_not_served() {
    let folder = lake();
    let refused = |arguments: &[&str], reason: &str| {
        let output = shell(folder.path(), &[&["serve", "--check"], arguments].concat());
        assert!(!output.status.success(), "{arguments:?}");
        assert!(err(&output).contains(reason), "{arguments:?}: {}", err(&output));
    };
    refused(&["--release", "a=lake/private.parquet"], "no release for the world");
    refused(&["--release", "a=lake/people.parquet"], "no release for the world");
    std::fs::write(folder.path().join("lake/q1.csv"), "age_lo,age_hi,disease\n20,30,flu\n").unwrap();
    refused(&["--release", "a=lake/q1.csv"], "this is no Parquet file, or a damaged one; only Parquet says");
    // By other names, columns are what they were.
    let renamed = "SET datafusion.execution.parquet.skip_metadata = false;
        COPY (SELECT * EXCLUDE (patient_id, counterfeit, signature, ring), counterfeit AS fake FROM 'lake/private.parquet') TO 'lake/fake.parquet';
        COPY (SELECT * EXCLUDE (patient_id, counterfeit, signature, ring), signature AS sign FROM 'lake/private.parquet') TO 'lake/sign.parquet';
        COPY (SELECT * EXCLUDE (patient_id, counterfeit, signature, ring), patient_id AS who FROM 'lake/private.parquet') TO 'lake/who.parquet';
        COPY (SELECT * EXCLUDE (patient_id, counterfeit, signature, ring) FROM 'lake/private.parquet') TO 'lake/rest.parquet'";
    let made = shell(folder.path(), &["-q", "-c", renamed]);
    assert!(made.status.success(), "{}", err(&made));
    for private in ["a=lake/fake.parquet", "a=lake/sign.parquet", "a=lake/who.parquet"] {
        refused(&["--release", private], "no release for the world");
    }
    let rest = shell(folder.path(), &["serve", "--check", "--release", "a=lake/rest.parquet"]);
    assert!(rest.status.success(), "{}", err(&rest));
    refused(&["--release", "a=lake/nowhere.parquet"], "");
    // Whoever was deleted or replaced is in the files of a Delta table still.
    refused(&["--release", "a=lake/clinic/"], "belong to a Delta table");
    refused(&["--publication", "a=lake/nowhere/"], "nothing has been published");
    refused(&["--publication", "a=lake/clinic.private/"], "is not a release");
    refused(&["--publication", "a=lake/clinic/", "--release", "a=lake/q1.parquet"], "two tables");
    refused(&["--publication", "a=lake/clinic/", "--release", "a_flat=lake/q1.parquet"], "two tables");
    refused(&["--listen", "0.0.0.0:5433", "--release", "a=lake/q1.parquet"], "--tls-cert, --tls-key and --users");
    refused(&[], "name what is to be served");
    let fine = shell(folder.path(), &[&["serve", "--check"], &SERVED[..]].concat());
    assert!(fine.status.success(), "{}", err(&fine));
    assert!(out(&fine).starts_with("would serve publication clinic, release q1 at 127.0.0.1:5433"), "{}", out(&fine));
}

#[test]
fn passwords_and_encryption() {
    if !psql_is_here() {
        return;
    }
    let folder = lake();
    let mut hash = Command::new(program())
        .args(["serve", "--hash-password", "ann"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    hash.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    let line = out(&hash.wait_with_output().unwrap());
    assert!(line.starts_with("ann:SCRAM-SHA-256$4096:") && !line.contains("horse"), "{line}");
    let users = folder.path().join("users");
    std::fs::write(&users, format!("# who may ask\n{line}")).unwrap();
    let private = |file: &Path| assert!(Command::new("chmod").arg("600").arg(file).status().unwrap().success());
    private(&users);
    let (certificate, key) = (path("tests/serve/localhost.crt"), path("tests/serve/localhost.key"));
    let more = ["--users", "users", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start(folder.path(), &more);
    assert!(server.line.contains("to 1 users, encrypted"), "{}", server.line);
    let ask = |user: &str, password: &str, tls: &str| {
        let connection =
            format!("host=localhost hostaddr=127.0.0.1 port={} user={user} dbname=publications {tls}", server.port);
        psql_as(&connection, password, &["SELECT count(*), current_user FROM clinic"])
    };
    let verified = format!("sslmode=verify-full sslrootcert={certificate}");
    let known = ask("ann", "correct horse", &verified);
    assert_eq!(out(&known), "60|ann\n", "{}", err(&known));
    for (user, password) in [("ann", "wrong horse"), ("bob", "correct horse"), ("ann", "")] {
        let refused = ask(user, password, &verified);
        assert!(!refused.status.success() && out(&refused).is_empty(), "{user}");
    }
    // Nobody is listened to for long before they have entered.
    let locally = Server::start(folder.path(), &["--users", "users"]);
    let mut large = Wire::connect(&locally);
    large.0.write_all(b"\0\0\0\x12\0\x03\0\0user\0ann\0\0").unwrap();
    assert_eq!(large.receive().map(|(kind, _)| kind), Some(b'R'));
    large.0.write_all(b"Q\x3f\xff\xff\xfe").unwrap();
    assert_eq!(large.until_ready(), ["08P01", "gone"]);
    let open = ask("ann", "correct horse", "sslmode=disable");
    assert!(!open.status.success() && err(&open).contains("encrypted"), "{}", err(&open));
    // What somebody in between adds before it is encrypted is not taken for the reader's.
    let mut between = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    between.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    between.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x08\0\x03\0\0").unwrap();
    let mut answer = Vec::new();
    let _ = between.read_to_end(&mut answer);
    assert!(answer.len() <= 1 || answer[1] != b'R', "{answer:?}");
    let (well, log) = server.stop();
    assert!(well && log.contains("refused user \"ann\"") && !log.contains("horse"), "{log}");
}

/// A reader without a driver, who may say anything.
pub(super) struct Wire(pub(super) TcpStream);

impl Wire {
    pub(super) fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(stream)
    }

    /// Makes a connection whose session has begun.
    pub(super) fn enter(server: &Server) -> Self {
        let mut wire = Self::connect(server);
        let body = b"\0\x03\0\0user\0reader\0\0";
        wire.0.write_all(&(body.len() as u32 + 4).to_be_bytes()).unwrap();
        wire.0.write_all(body).unwrap();
        wire.until_ready();
        wire
    }

    pub(super) fn send(&mut self, kind: u8, body: &[u8]) {
        let _ = self.0.write_all(&[kind]);
        let _ = self.0.write_all(&(body.len() as u32 + 4).to_be_bytes());
        let _ = self.0.write_all(body);
    }

    /// Returns a message; `None` at the end of the connection.
    pub(super) fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    /// Reads codes of errors until the server waits again, or has gone.
    pub(super) fn until_ready(&mut self) -> Vec<String> {
        let mut codes = Vec::new();
        while let Some((kind, body)) = self.receive() {
            match kind {
                b'Z' => return codes,
                b'E' => {
                    let fields: Vec<&[u8]> = body.split(|&byte| byte == 0).collect();
                    let code = fields.iter().find_map(|field| field.strip_prefix(b"C")).unwrap_or_default();
                    codes.push(String::from_utf8_lossy(code).into_owned());
                }
                _ => {}
            }
        }
        codes.push("gone".to_owned());
        codes
    }

    pub(super) fn ask(&mut self, sql: &str) -> Vec<String> {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat());
        self.until_ready()
    }

    pub(super) fn is_answered(&mut self) {
        // On a busy machine what was canceled before may still be on its way out, and this one be canceled for taking too long.
        let mut answer = Vec::new();
        let is_answered = (0..3).any(|_| {
            answer = self.ask("SELECT count(*) FROM clinic");
            answer.is_empty()
        });
        assert!(is_answered, "{answer:?}");
    }
}

#[test]
fn hostile_readers() {
    let folder = lake();
    let server = Server::start(folder.path(), &["--statement-timeout", "10", "--max-rows", "1000"]);
    // Before a session begins.
    let mut random = StdRng::seed_from_u64(7);
    for length in [0, 1, 4, 7, 8, 9, 100, 20_000] {
        let mut bytes = vec![0_u8; length];
        random.fill(bytes.as_mut_slice());
        let mut wire = Wire::connect(&server);
        let _ = wire.0.write_all(&bytes);
        if length == 9 {
            let _ = wire.0.write_all(b"\0\0\0\0");
        }
        drop(wire);
    }
    for first in [
        &b"\x7f\xff\xff\xff\0\x03\0\0"[..],
        b"\0\0\0\x04",
        b"\0\0\0\x08\0\x09\0\0",
        b"\0\0\0\x0e\0\x03\0\0user\0",
        b"\0\0\0\x09\0\x03\0\0\0",
        b"p\0\0\0\x09abcd\0",
        b"Q\0\0\0\x0dSELECT 1\0",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let mut wire = Wire::connect(&server);
        let _ = wire.0.write_all(first);
        let _ = wire.0.shutdown(std::net::Shutdown::Write);
        let answer = wire.receive();
        assert!(answer.as_ref().is_none_or(|(kind, _)| *kind != b'Z' && *kind != b'R'), "{answer:?}");
    }
    // Statements that are too much: each is an error, and the session goes on.
    let mut wire = Wire::enter(&server);
    let large = format!("SELECT '{}'", "x".repeat(10 << 20));
    let began = Instant::now();
    assert_eq!(wire.ask(&large), ["54000"]);
    assert!(began.elapsed() < Duration::from_secs(10));
    for (statement, code) in [
        (format!("SELECT '{}'", "x".repeat((1 << 20) + 10)), "54001"),
        (format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000)), "54001"),
        (format!("SELECT 1{}", " + 1".repeat(200_000)), "54001"),
        (format!("SELECT {}1", "-".repeat(3000).replace('-', "- ")), "54001"),
        (format!("SELECT {}true", "NOT ".repeat(900)), "42601"),
        (format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(2500)), "54001"),
        (format!("SELECT * FROM {}", vec!["q1"; 300].join(", ")), "54001"),
        ("SELECT 1;".repeat(100), "54001"),
        (format!("SELECT count(*) FROM q1_flat GROUP BY CUBE({})", vec!["age_lo"; 30].join(", ")), "54001"),
        ("SELECT 'open".to_owned(), "42601"),
        ("SELEKT 1".to_owned(), "42601"),
        ("SELECT nothing FROM q1".to_owned(), "42703"),
        (
            "WITH RECURSIVE a AS (SELECT 'x' AS x UNION ALL SELECT x || x FROM a) SELECT count(*) FROM a".to_owned(),
            "0A000",
        ),
        ("SELECT 1 FROM nothing".to_owned(), "42P01"),
        ("SELECT nothing(1)".to_owned(), "42883"),
        ("SELECT 1 / (group_id - group_id) FROM q1".to_owned(), "22012"),
        ("SELECT (SELECT group_id FROM q1)".to_owned(), "21000"),
        ("SELECT a.group_id FROM q1 a, q1 b, q1 c".to_owned(), "54000"),
    ] {
        let codes = wire.ask(&statement);
        let shown: String = statement.chars().take(60).collect();
        assert_eq!(codes, [code], "{shown}");
    }
    wire.is_answered();
    // What doubles with every line.
    for (step, last) in [
        ("SELECT age + age AS age FROM", "SELECT sum(age) FROM"),
        ("SELECT age + age AS age FROM", "SELECT count(*) FROM a30 WHERE age > 7 AND 1 IN (SELECT 1) --"),
        ("SELECT count(*) AS age FROM (SELECT 1) CROSS JOIN", "SELECT * FROM"),
    ] {
        let steps: Vec<String> = (0..30).map(|level| format!("a{} AS ({step} a{level})", level + 1)).collect();
        let statement = format!("WITH a0 AS (SELECT age FROM clinic), {} {last} a30", steps.join(", "));
        let began = Instant::now();
        let codes = wire.ask(&statement);
        assert!(codes.is_empty() || codes == ["54001"] || codes == ["0A000"], "{codes:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{last}: {:?}", began.elapsed());
    }
    wire.is_answered();
    // As deep as it may be.
    assert_eq!(wire.ask(&format!("SELECT 1{}", " + 1".repeat(900))), [""; 0]);
    assert_eq!(
        wire.ask(&format!("SELECT 1{}", " OR 1 = 1".repeat(400)).replace("SELECT 1 OR", "SELECT 1 = 1 OR")),
        [""; 0]
    );
    // What takes too long.
    let long = "SELECT count(*) FROM q1 a, q1 b, q1 c, q1 d, q1 e WHERE sin(a.group_id + e.group_id) + cos(b.group_id + e.group_id) + tan(c.group_id + e.group_id) * atan(d.group_id + e.group_id) > 1000 + sin(a.group_id + b.group_id + c.group_id + d.group_id + e.group_id)";
    let began = Instant::now();
    // Short questions must not take so long, also where other tests compute.
    assert_eq!(wire.ask("SET statement_timeout = '4s'; SHOW statement_timeout"), [""; 0]);
    assert_eq!(wire.ask(long), ["57014"]);
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    wire.is_answered();
    // Messages of prepared statements.
    let parse = |name: &str, sql: &str| [name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat();
    wire.send(b'P', &parse("", "DELETE FROM clinic"));
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["42501"]);
    wire.send(b'P', &parse("", "SELECT 1; SELECT 2"));
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["42601"]);
    wire.send(b'P', &parse("a", "SELECT age_lo, age_hi, group_id FROM q1_flat WHERE age_lo > $1"));
    // Two formats for three columns; no parameter for one; a portal and a statement that are not there.
    wire.send(b'B', b"\0a\0\0\0\0\x01\0\0\0\x011\0\x02\0\0\0\0");
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["08P01"]);
    wire.send(b'B', b"\0a\0\0\0\0\0\0\0");
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["08P01"]);
    wire.send(b'E', b"nothing\0\0\0\0\0");
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["34000"]);
    wire.send(b'D', b"Snothing\0");
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["26000"]);
    wire.is_answered();
    // Much that is prepared.
    let mut codes = Vec::new();
    for number in 0..1100 {
        wire.send(b'P', &parse(&format!("s{number}"), "SELECT 1"));
        if number % 100 == 99 {
            wire.send(b'S', b"");
            codes.extend(wire.until_ready());
        }
    }
    assert!(codes.contains(&"53000".to_owned()), "{codes:?}");
    assert_eq!(wire.ask("DEALLOCATE ALL"), [""; 0]);
    wire.is_answered();
    // Messages that are none end their own session only.
    for (kind, body) in
        [(b'B', &b"\0a\0\xff\xff"[..]), (b'P', b"a"), (b'!', b"abc"), (b'p', b"abc"), (b'd', b"data"), (b'E', b"")]
    {
        let mut other = Wire::enter(&server);
        other.send(kind, body);
        other.send(b'S', b"");
        let _ = other.0.shutdown(std::net::Shutdown::Write);
        while other.receive().is_some() {}
    }
    let mut other = Wire::enter(&server);
    let _ = other.0.write_all(b"Q\xff\xff\xff\xff");
    assert!(other.until_ready().contains(&"gone".to_owned()));
    wire.is_answered();
    // Somebody who asks for much and reads nothing.
    let mut slow: Vec<Wire> = (0..8).map(|_| Wire::enter(&server)).collect();
    for wire in &mut slow {
        for _ in 0..200 {
            wire.send(b'Q', b"SELECT a.*, b.* FROM q1_flat a, q1_flat b LIMIT 1000\0");
        }
    }
    let began = Instant::now();
    for _ in 0..20 {
        wire.is_answered();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let (well, log) = {
        drop(slow);
        drop(wire);
        server.stop()
    };
    assert!(well, "{log}");
}

/// Rows that nobody fetches are kept as long as a statement may take.
#[test]
fn a_portal_is_not_kept_for_ever() {
    let folder = lake();
    let server = Server::start(folder.path(), &["--statement-timeout", "2"]);
    let mut wire = Wire::enter(&server);
    assert_eq!(wire.ask("BEGIN"), [""; 0]);
    wire.send(b'P', b"\0SELECT a.group_id FROM q1 a, q1 b\0\0\0");
    for portal in 0..40 {
        wire.send(b'B', format!("p{portal}\0\0\0\0\0\0\0\0").as_bytes());
    }
    wire.send(b'S', b"");
    // There are few.
    assert_eq!(wire.until_ready(), ["53000"]);
    assert_eq!(wire.ask("ROLLBACK; BEGIN"), [""; 0]);
    wire.send(b'P', b"\0SELECT a.group_id FROM q1 a, q1 b\0\0\0");
    wire.send(b'B', b"p\0\0\0\0\0\0\0\0");
    let one_row = b"p\0\0\0\0\x01";
    wire.send(b'E', one_row);
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), [""; 0]);
    wire.send(b'E', one_row);
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), [""; 0]);
    std::thread::sleep(Duration::from_secs(3));
    wire.send(b'E', one_row);
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), ["57014"]);
}

/// Portals end with their transaction, or when everything is discarded; those that failed were none. One that has run says so.
#[test]
fn portals_end() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let mut wire = Wire::enter(&server);
    for round in 0..3 {
        wire.send(b'P', b"\0SELECT 1\0\0\0");
        for portal in 0..10 {
            wire.send(b'B', format!("p{round}{portal}\0\0\0\0\0\0\0\0").as_bytes());
        }
        wire.send(b'S', b"");
        assert_eq!(wire.until_ready(), [""; 0]);
    }
    assert_eq!(wire.ask("BEGIN"), [""; 0]);
    wire.send(b'P', b"\0SELECT 1\0\0\0");
    for portal in 0..10 {
        wire.send(b'B', format!("q{portal}\0\0\0\0\0\0\0\0").as_bytes());
    }
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), [""; 0]);
    assert_eq!(wire.ask("DISCARD ALL"), [""; 0]);
    for portal in 0..20 {
        // No such statement.
        wire.send(b'B', format!("r{portal}\0nothing\0\0\0\0\0\0\0").as_bytes());
        wire.send(b'S', b"");
        assert_eq!(wire.until_ready(), ["26000"]);
        assert_eq!(wire.ask("ROLLBACK; BEGIN"), [""; 0]);
    }
    wire.send(b'P', b"\0SELECT 1\0\0\0");
    wire.send(b'B', b"p\0\0\0\0\0\0\0\0");
    wire.send(b'E', b"p\0\0\0\0\0");
    wire.send(b'E', b"p\0\0\0\0\0");
    wire.send(b'S', b"");
    let mut kinds = Vec::new();
    while let Some((kind, _)) = wire.receive() {
        kinds.push(kind as char);
        if kind == b'Z' {
            break;
        }
    }
    assert_eq!(kinds, ['1', '2', 'D', 'C', 'C', 'Z']);
}

/// A transaction that has failed goes on from a savepoint, in both protocols.
#[test]
fn savepoints() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let mut wire = Wire::enter(&server);
    assert_eq!(wire.ask("BEGIN; SAVEPOINT a"), [""; 0]);
    assert_eq!(wire.ask("SELECT nothing FROM q1"), ["42703"]);
    assert_eq!(wire.ask("SELECT 1"), ["25P02"]);
    assert_eq!(wire.ask("ROLLBACK TO SAVEPOINT a; SELECT 1"), [""; 0]);
    assert_eq!(wire.ask("SELECT nothing FROM q1"), ["42703"]);
    wire.send(b'P', b"\0ROLLBACK TO SAVEPOINT a\0\0\0");
    wire.send(b'B', b"\0\0\0\0\0\0\0\0");
    wire.send(b'E', b"\0\0\0\0\0");
    wire.send(b'S', b"");
    assert_eq!(wire.until_ready(), [""; 0]);
    assert_eq!(wire.ask("SELECT 1"), [""; 0]);
    assert_eq!(wire.ask("COMMIT"), [""; 0]);
}

#[test]
fn too_many_sessions() {
    let folder = lake();
    let server = Server::start(folder.path(), &["--sessions", "2", "--idle-timeout", "1"]);
    let mut first = Wire::enter(&server);
    let second = Wire::enter(&server);
    let mut third = Wire::connect(&server);
    third.0.write_all(b"\0\0\0\x15\0\x03\0\0user\0reader\0\0").unwrap();
    assert_eq!(third.until_ready(), ["53300", "gone"]);
    drop(second);
    // Places are free again, also those of whom nobody hears anything.
    first.is_answered();
    assert_eq!(first.until_ready(), ["57P05", "gone"]);
    let mut fourth = Wire::enter(&server);
    fourth.is_answered();
}

/// Silent and half-open connections keep nobody out, and close no session.
#[test]
fn half_open_connections() {
    let folder = lake();
    let server = Server::start(folder.path(), &["--sessions", "2"]);
    let mut first = Wire::enter(&server);
    let mut silent: Vec<Wire> = (0..300).map(|_| Wire::connect(&server)).collect();
    for half in &mut silent[200..] {
        // Those that were closed already cannot be told anything.
        let _ = half.0.write_all(b"\0\0\0\x15\0\x03\0\0user");
    }
    let mut second = Wire::enter(&server);
    second.is_answered();
    first.is_answered();
    assert_eq!(silent[0].until_ready(), ["gone"]);
}

/// A statement that runs when the server stops ends well; no other begins.
#[test]
fn a_graceful_stop() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let mut idle = Wire::enter(&server);
    let mut busy = Wire::enter(&server);
    busy.send(
        b'Q',
        b"SELECT count(*) FROM q1 a, q1 b, q1 c, q1 d WHERE a.group_id + b.group_id <= c.group_id * d.group_id\0",
    );
    std::thread::sleep(Duration::from_millis(100));
    let port = server.port;
    let stopped = std::thread::spawn(move || server.stop());
    assert_eq!(idle.until_ready(), ["57P01", "gone"]);
    let codes = busy.until_ready();
    assert!(codes.is_empty() || codes == ["57P01", "gone"], "{codes:?}");
    let (well, log) = stopped.join().unwrap();
    assert!(well, "{log}");
    assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "somebody listens there still");
}

/// Returns a script of `tests/serve` in an environment with the clients.
fn clients(server: &Server, arguments: &[&str]) -> Option<String> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let packages = ["psycopg[binary]==3.2.10", "SQLAlchemy==2.0.43"];
    let python = PYTHON.get_or_init(|| environment("clients", &packages, "psycopg, sqlalchemy")).as_ref()?;
    let output = Command::new(python)
        .arg(path("tests/serve/clients.py"))
        .arg(server.port.to_string())
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    Some(out(&output))
}

#[test]
fn drivers() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let Some(found) = clients(&server, &["drivers"]) else { return };
    assert_eq!(found.trim(), "fine");
}

/// Questions at random, by the wire and in a session here.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_shell() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let mut random = StdRng::seed_from_u64(27);
    let mut questions: Vec<String> = (0..200).map(|_| question(&mut random)).collect();
    // Subqueries in the SELECT list, which are rewritten in what programs ask of the catalog.
    questions.push("SELECT (SELECT count(*) FROM clinic WHERE clinic.age > 50) AS older".to_owned());
    questions.push("SELECT 1 + (SELECT count(*) FROM clinic WHERE clinic.sex = 'F') AS more".to_owned());
    let file = folder.path().join("questions.json");
    std::fs::write(&file, serde_json::to_string(&questions).unwrap()).unwrap();
    let Some(found) = clients(&server, &["questions", &file.display().to_string()]) else { return };
    let found: Vec<Vec<Vec<Option<String>>>> = serde_json::from_str(&found).unwrap();
    assert_eq!(found.len(), questions.len());
    let context = session();
    let location = format!("{}/lake/clinic/", folder.path().display());
    run(&context, &DECLARED.replace("lake/clinic/", &location)).await.unwrap();
    let mut different = 0;
    for (question, found) in questions.iter().zip(&found) {
        let mut expected: Vec<Vec<Option<String>>> = Vec::new();
        for batch in run(&context, question).await.unwrap_or_else(|error| panic!("{question}: {error}")) {
            let columns: Vec<Vec<Option<String>>> = batch.columns().iter().map(|column| texts(column)).collect();
            expected
                .extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
        }
        assert_eq!(found, &expected, "{question}");
        different += usize::from(expected != [[Some("0".to_owned())]]);
    }
    assert!(different > 150, "only {different} questions have an answer that says something");
}

/// Returns values as Python says them: numbers that are not whole by their bits.
fn texts(column: &dyn Array) -> Vec<Option<String>> {
    match column.data_type() {
        DataType::Float64 => column
            .as_primitive::<Float64Type>()
            .iter()
            .map(|number| number.map(|number| number.to_bits().to_string()))
            .collect(),
        _ => {
            let texts = cast(column, &DataType::Utf8).unwrap();
            texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
        }
    }
}

fn question(random: &mut StdRng) -> String {
    let diagnoses = ["asthma", "depression", "diabetes", "gastritis", "hypertension", "migraine"];
    let condition = |random: &mut StdRng| match random.random_range(0..5) {
        0 => format!("age BETWEEN {} AND {}", random.random_range(20..50), random.random_range(50..80)),
        1 => format!("diagnosis = '{}'", diagnoses[random.random_range(0..6)]),
        2 => format!("sex = '{}'", ["F", "M"][random.random_range(0..2)]),
        3 => format!("postcode < {}", random.random_range(4010..4090)),
        _ => format!("age > {} AND diagnosis IN ('asthma', 'migraine')", random.random_range(20..70)),
    };
    let aggregate = ["count(*)", "sum(age)", "avg(age)", "count_stddev(*)", "avg(postcode)", "count(age)"];
    let aggregate = aggregate[random.random_range(0..aggregate.len())];
    let first = condition(random);
    match random.random_range(0..3) {
        0 => format!("SELECT {aggregate} FROM clinic WHERE {first}"),
        1 => format!("SELECT diagnosis, {aggregate} FROM clinic WHERE {first} GROUP BY diagnosis ORDER BY diagnosis"),
        _ => {
            format!("SELECT {aggregate} AS one, count(*) AS people FROM clinic WHERE {first} OR {}", condition(random))
        }
    }
}

/// Many at once, some of whom go without a word.
#[test]
fn many_sessions() {
    let folder = lake();
    let server = Server::start(folder.path(), &["--quiet"]);
    // So that what is made once is there.
    if clients(&server, &["many", "16", "2"]).is_none() {
        return;
    }
    let before = server.memory();
    // A minute by hand: ANONYMIZE_SERVE_SECONDS=60.
    let seconds = std::env::var("ANONYMIZE_SERVE_SECONDS").unwrap_or_else(|_| "6".to_owned());
    let found = clients(&server, &["many", "64", &seconds]).unwrap();
    let after = server.memory();
    let answered: usize = found.trim().parse().unwrap();
    assert!(answered > 64, "{answered} answers");
    if let (Some(before), Some(after)) = (before, after) {
        println!("{answered} answers; {before} kB before, {after} kB after");
        assert!(after < before + 300_000, "{before} kB before, {after} kB after");
    }
    let (well, log) = server.stop();
    assert!(well && !log.contains("panic"), "{log}");
}

/// The driver of DBeaver and Metabase, as Debian has it. Where `ANONYMIZE_JDBC=require`, it and Java must be there.
#[test]
fn jdbc() {
    let jar = "/usr/share/java/postgresql.jar";
    let java = Command::new("javac").arg("-version").output().is_ok_and(|output| output.status.success());
    if !java || !Path::new(jar).exists() {
        assert_ne!(std::env::var("ANONYMIZE_JDBC").as_deref(), Ok("require"), "there is no Java, or no JDBC driver");
        println!("there is no Java, or no JDBC driver: not used");
        return;
    }
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let compiled =
        Command::new("javac").arg("-d").arg(folder.path()).arg(path("tests/serve/Metadata.java")).output().unwrap();
    assert!(compiled.status.success(), "{}", err(&compiled));
    let url = format!("jdbc:postgresql://127.0.0.1:{}/publications?user=reader&sslmode=disable", server.port);
    let classes = format!("{}:{jar}", folder.path().display());
    let output = Command::new("java").args(["-cp", &classes, "Metadata", &url]).output().unwrap();
    let found = out(&output);
    assert!(output.status.success(), "{found}{}", err(&output));
    for expected in [
        "product PostgreSQL\n",
        "table clinic TABLE\n",
        "table clinic_flat VIEW\n",
        "column age_lo int8\n",
        "column diagnosis text\n",
        "keys 0\n",
        "indexes 0\n",
        "rows 60 of ",
        "refused 42501\n",
    ] {
        assert!(found.contains(expected), "{expected} is not in\n{found}");
    }
    assert_eq!(found.matches("answer ").count(), 8, "{found}");
    let answers: std::collections::BTreeSet<&str> = found.lines().filter(|line| line.starts_with("answer ")).collect();
    assert_eq!(answers.len(), 1, "{found}");
}
