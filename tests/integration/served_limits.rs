//! `anonymize serve` under statements that compute, or make values, without end: they end by themselves or are ended, and nobody else waits.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::served::{Server, Wire, lake};

/// Limit of another reader's answers during a hundred statements, on an otherwise idle machine.
const ANSWERED: Duration = Duration::from_secs(1);

/// Returns statements that compute for long, make long values, or exceed accounted memory.
fn hostile() -> Vec<String> {
    let text = format!("'{}'", "x".repeat(4000));
    let texts = vec![text.as_str(); 200].join(", ");
    let product = "q1 a, q1 b, q1 c, q1 d, q1 e";
    let by_constants = "(SELECT 1 AS k, * FROM q1) a JOIN (SELECT 1 AS k, * FROM q1) b ON a.k = b.k JOIN (SELECT 1 AS k, * FROM q1) c ON b.k = c.k
        JOIN (SELECT 1 AS k, * FROM q1) d ON c.k = d.k JOIN (SELECT 1 AS k, * FROM q1) e ON d.k = e.k";
    vec![
        format!(
            "SELECT count(*) FROM {product} WHERE sin(a.group_id + e.group_id) + cos(b.group_id + e.group_id) + tan(c.group_id + e.group_id) * \
             atan(d.group_id + e.group_id) > 1000 + sin(a.group_id + b.group_id + c.group_id + d.group_id + e.group_id)"
        ),
        format!("SELECT count(*) FROM {product}, q1 f WHERE a.group_id + b.group_id + c.group_id + d.group_id = e.group_id * f.group_id"),
        format!("SELECT max(length(concat({texts}, a.group_id))) FROM q1 a, q1 b, q1 c"),
        format!("SELECT sum(sin(a.group_id) * cos(b.group_id + c.group_id) * tan(d.group_id + e.group_id)) FROM {by_constants}"),
        "SELECT length(string_agg(a.diagnosis || b.diagnosis || c.diagnosis || d.diagnosis, ',')) FROM q1 a, q1 b, q1 c, q1 d".to_owned(),
        "SELECT max(length(x)) FROM (SELECT string_agg(a.diagnosis, ',') OVER (ORDER BY b.group_id) AS x FROM q1 a, q1 b, q1 c)".to_owned(),
        "SELECT cardinality(array_agg(a.diagnosis || b.diagnosis || c.diagnosis || d.diagnosis)) FROM q1 a, q1 b, q1 c, q1 d".to_owned(),
        format!("SELECT count(DISTINCT concat(a.group_id, '-', b.group_id, '-', c.group_id, '-', d.group_id, '-', e.group_id)) FROM {product}"),
        format!("SELECT a.group_id FROM {product} ORDER BY sin(a.group_id + b.group_id + c.group_id + d.group_id + e.group_id)"),
        "WITH s AS (SELECT string_agg(a.diagnosis, '') AS x FROM q1 a, q1 b, q1 c) SELECT sum(length(concat(l.x, r.group_id))) FROM s l, q1 r, q1 t, q1 u".to_owned(),
    ]
}

/// Returns the processes that the server has started.
fn children(server: &Server) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", server.process.id())) else { return Vec::new() };
    let of_thread = |path: std::path::PathBuf| fs::read_to_string(path.join("children")).unwrap_or_default();
    let listed: String = threads.filter_map(|thread| Some(of_thread(thread.ok()?.path()))).collect();
    listed.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Returns the hundredths of seconds that a process has computed.
fn computed(process: u32) -> u64 {
    let times = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let times = times.rsplit_once(')').map_or("", |(_, times)| times);
    times.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Returns the kilobytes of memory of a process.
fn memory(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// A hundred sessions ask something hostile at once; one that asks what readers ask waits for none of them.
#[test]
fn a_hundred_hostile_statements() {
    let folder = lake();
    let more = ["--sessions", "120", "--statement-timeout", "12", "--statement-memory", "64m", "--quiet"];
    let mut server = Server::start(folder.path(), &more);
    let mut reader = Wire::enter(&server);
    reader.is_answered();
    let statements = hostile();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let sessions: Vec<_> = (0..100)
        .map(|number| {
            let (mut wire, statement) = (Wire::enter(&server), statements[number % statements.len()].clone());
            let ends = Arc::clone(&ends);
            thread::spawn(move || {
                let began = Instant::now();
                let codes = wire.ask(&statement);
                ends.lock().unwrap().push((number, began.elapsed(), codes));
            })
        })
        .collect();
    let most = Arc::new(AtomicBool::new(false));
    let watched = {
        let (done, process) = (Arc::clone(&most), server.process.id());
        thread::spawn(move || {
            let mut largest = 0;
            while !done.load(Ordering::Relaxed) {
                largest = largest.max(memory(process));
                thread::sleep(Duration::from_millis(50));
            }
            largest
        })
    };
    let mut waits = Vec::new();
    while sessions.iter().any(|session| !session.is_finished()) {
        let began = Instant::now();
        assert_eq!(reader.ask("SELECT count(*) FROM clinic WHERE age > 40"), [""; 0]);
        waits.push(began.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
    for session in sessions {
        session.join().unwrap();
    }
    most.store(true, Ordering::Relaxed);
    let largest = watched.join().unwrap();
    waits.sort();
    let (median, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    println!(
        "{} answers beside them: median {median:?}, longest {longest:?}; the server had {largest} kB",
        waits.len()
    );
    let ends = ends.lock().unwrap();
    for (number, taken, codes) in ends.iter() {
        let statement: String = statements[number % statements.len()].chars().take(60).collect();
        println!("{taken:?} {codes:?} {statement}");
        // Too large, too much memory, too long, or the server has others to answer; or it was done in time.
        let is_known = codes.iter().all(|code| ["54001", "53200", "57014", "53000", "54000"].contains(&code.as_str()));
        assert!(is_known, "{statement}: {codes:?}");
        assert!(*taken < Duration::from_secs(20), "{statement}: {taken:?}");
    }
    assert!(ends.iter().any(|(.., codes)| codes == &["57014"]) && ends.iter().any(|(.., codes)| codes == &["54001"]));
    assert!(waits.len() >= 10, "{waits:?}");
    // Other tests compute as well.
    let nearly_all = waits[waits.len() * 9 / 10];
    assert!(median < ANSWERED && nearly_all < 2 * ANSWERED && longest < 8 * ANSWERED, "{waits:?}");
    assert!(server.process.try_wait().unwrap().is_none(), "the server has ended: {}", server.log());
    assert!(largest < 1_000_000, "the server had {largest} kB");
    reader.is_answered();
}

/// A statement that ended for the reader ended for the machine, even without waits.
#[test]
fn statements_end_at_their_time() {
    let folder = lake();
    let server = Server::start(folder.path(), &["--statement-timeout", "1"]);
    let mut wire = Wire::enter(&server);
    wire.is_answered();
    for number in [0, 3] {
        let began = Instant::now();
        assert_eq!(wire.ask(&hostile()[number]), ["57014"]);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        thread::sleep(Duration::from_secs(2));
        let before: u64 = children(&server).into_iter().map(computed).sum();
        thread::sleep(Duration::from_secs(1));
        let after: u64 = children(&server).into_iter().map(computed).sum();
        assert!(after < before + 50, "{before} {after}: something computes still");
        wire.is_answered();
    }
}

/// A process that is killed is the end of its statement, and of nothing else. Files of processes go with them.
#[test]
fn a_process_that_ends() {
    let folder = lake();
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let server = Server::start_with(folder.path(), &[], &[("TMPDIR", temporary.as_path())]);
    let mut other = Wire::enter(&server);
    other.is_answered();
    let mut wire = Wire::enter(&server);
    wire.send(b'Q', format!("{}\0", hostile()[0]).as_bytes());
    thread::sleep(Duration::from_millis(1500));
    let before: Vec<(u32, u64)> = children(&server).into_iter().map(|child| (child, computed(child))).collect();
    thread::sleep(Duration::from_millis(1000));
    let more = |(child, before): &(u32, u64)| computed(*child).saturating_sub(*before);
    let (busy, _) = before.into_iter().max_by_key(more).expect("a process");
    assert!(std::process::Command::new("kill").args(["-KILL", &busy.to_string()]).status().unwrap().success());
    assert_eq!(wire.until_ready(), ["53200"]);
    wire.is_answered();
    other.is_answered();
    let own: Vec<_> = fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    let (well, log) = server.stop();
    assert!(well, "{log}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "files are left");
}

/// Parameters are texts like any other.
#[test]
fn parameters_have_the_limits_of_texts() {
    let folder = lake();
    let server = Server::start(folder.path(), &[]);
    let mut wire = Wire::enter(&server);
    let mut bound = |sql: &str, parameter: &str| {
        wire.send(b'P', format!("\0{sql}\0\0\0").as_bytes());
        let mut bind = b"\0\0\0\0\0\x01".to_vec();
        bind.extend_from_slice(&(parameter.len() as u32).to_be_bytes());
        bind.extend_from_slice(parameter.as_bytes());
        bind.extend_from_slice(b"\0\0");
        wire.send(b'B', &bind);
        wire.send(b'E', b"\0\0\0\0\0");
        wire.send(b'S', b"");
        wire.until_ready()
    };
    let long = "x".repeat(4000);
    assert_eq!(bound("SELECT count(*) FROM q1 WHERE diagnosis = $1", &long), [""; 0]);
    assert_eq!(bound("SELECT max(length($1 || diagnosis)) FROM q1", &long), [""; 0]);
    assert_eq!(bound("SELECT max(length($1 || diagnosis)) FROM q1", &"x".repeat(200_000)), ["54001"]);
    assert_eq!(bound("SELECT count(*) FROM q1 WHERE diagnosis = $1", &"x".repeat(5000)), ["54001"]);
    let many = format!("SELECT max(length(concat({}, diagnosis))) FROM q1", ["$1"; 12].join(", "));
    assert_eq!(bound(&many, &long), ["54001"]);
    wire.is_answered();
}

/// An accidental product of two tables is refused with words that help, before it runs.
#[test]
fn accidental_products() {
    let folder = lake();
    let made = super::support::shell(
        folder.path(),
        &[
            "-q",
            "-c",
            "SET datafusion.execution.parquet.skip_metadata = false;
             COPY (SELECT * FROM m_invariant(census(60000), 3, id => person_id, quasi => (age, education), sensitive => occupation)) TO 'lake/p.parquet'",
        ],
    );
    assert!(made.status.success(), "{}", super::support::err(&made));
    let server = Server::start(folder.path(), &["--release", "p=lake/p.parquet"]);
    let mut wire = Wire::enter(&server);
    let began = Instant::now();
    for sql in [
        "SELECT count(*) FROM p_flat a, p_flat b WHERE a.age_lo < b.age_lo",
        "SELECT sum(a.group_id - b.group_id) FROM p a CROSS JOIN p b",
        "SELECT count(*) FROM p a JOIN p b ON (a.age).lo < (b.age).lo AND a.occupation <> b.occupation",
        "SELECT count(*) FROM p_flat a WHERE EXISTS (SELECT 1 FROM p_flat b WHERE a.age_lo < b.age_lo)",
    ] {
        wire.send(b'Q', format!("{sql}\0").as_bytes());
        let mut told = String::new();
        while let Some((kind, body)) = wire.receive() {
            match kind {
                b'E' => told = String::from_utf8_lossy(&body).into_owned(),
                b'Z' => break,
                _ => {}
            }
        }
        assert!(told.contains("C54001") && told.contains("ON a.group_id = b.group_id"), "{sql}: {told:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    // The cure works.
    assert_eq!(wire.ask("SELECT count(*) FROM p_flat a JOIN p_flat b ON a.group_id = b.group_id"), [""; 0]);
    assert_eq!(wire.ask("SELECT count(*) FROM p_flat a, q1_flat b WHERE a.age_lo < b.age_lo"), [""; 0]);
}
