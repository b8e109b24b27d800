//! Answers of the server in a second: `cargo bench --bench serve`, or `-- 100000` for another number of rows.
//!
//! Estimated counts with two conditions each, on an m-invariant release (m = 10) of the census generator's table: by 1, 8 and 64 sessions of
//! `anonymize serve` for some seconds, and the same questions one after the other in a session of this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use datafusion::prelude::SessionContext;
use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CALL: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";
/// For each number of sessions.
const TIME: Duration = Duration::from_secs(5);

fn main() {
    let rows: u64 = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir().unwrap();
    let release = directory.path().join("release.parquet").display().to_string();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let rate = runtime.block_on(async {
        let context = SessionContext::new();
        datafusion_anonymize::register_all(&context).unwrap();
        run(&context, "SET datafusion.execution.parquet.skip_metadata = false").await;
        let call = format!("m_invariant((SELECT * FROM census({rows})), 10, {CALL})");
        run(&context, &format!("COPY (SELECT * FROM {call}) TO '{release}'")).await;
        run(&context, &format!("CREATE EXTERNAL TABLE q1 STORED AS PARQUET LOCATION '{release}'")).await;
        let began = Instant::now();
        let mut number = 0;
        while began.elapsed() < TIME {
            run(&context, &question(number)).await;
            number += 1;
        }
        number as f64 / began.elapsed().as_secs_f64()
    });
    println!("{rows} rows, one process: {rate:.1} questions a second");
    let server = Server::start(&release);
    for sessions in [1, 8, 64] {
        let began = Instant::now();
        let readers: Vec<_> = (0..sessions)
            .map(|reader| {
                let port = server.port;
                std::thread::spawn(move || asks(port, reader * 1000, began))
            })
            .collect();
        let answered: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        let rate = answered as f64 / began.elapsed().as_secs_f64();
        println!("{rows} rows, {sessions} sessions: {rate:.1} questions a second");
    }
}

/// Returns a count that nobody has asked for lately.
fn question(number: usize) -> String {
    let (age, education) = (17 + number % 50, 1 + number / 50 % 15);
    format!("SELECT count(*) FROM estimated(q1) WHERE age BETWEEN {age} AND {} AND education >= {education}", age + 12)
}

async fn run(context: &SessionContext, sql: &str) {
    context.sql(sql).await.unwrap().collect().await.unwrap();
}

/// Asks until the time is over; how many were answered.
fn asks(port: u16, first: usize, began: Instant) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let startup = b"\0\x03\0\0user\0reader\0\0";
    stream.write_all(&(startup.len() as u32 + 4).to_be_bytes()).unwrap();
    stream.write_all(startup).unwrap();
    let mut stream = BufReader::new(stream);
    until_ready(&mut stream);
    let mut answered = 0;
    while began.elapsed() < TIME {
        let question = question(first + answered) + "\0";
        let message = [&b"Q"[..], &(question.len() as u32 + 4).to_be_bytes(), question.as_bytes()].concat();
        stream.get_mut().write_all(&message).unwrap();
        until_ready(&mut stream);
        answered += 1;
    }
    answered
}

fn until_ready(stream: &mut BufReader<TcpStream>) {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).unwrap();
        match head[0] {
            b'E' => panic!("{}", String::from_utf8_lossy(&body)),
            b'Z' => return,
            _ => {}
        }
    }
}

/// A server that ends with this.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(release: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_anonymize"))
            .args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--release", &format!("q1={release}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        Self { process, port: port.unwrap_or_else(|| panic!("{line}")) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
