//! Tests who gets in: readers far away while others open connections and say nothing, and users beside one who takes all the sessions there are for them.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::program::program;
use super::served::{Server, lake, psql_as, psql_is_here};
use super::support::{err, out};

/// The password of all users.
const PASSWORD: &str = "correct horse";

/// Writes users into a file of a folder that nobody else can read.
fn users(folder: &std::path::Path, names: &[&str]) {
    let mut lines = String::new();
    for name in names {
        let mut hash = Command::new(program())
            .args(["serve", "--hash-password", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        hash.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
        lines += &out(&hash.wait_with_output().unwrap());
    }
    let file = folder.join("users");
    std::fs::write(&file, lines).unwrap();
    assert!(Command::new("chmod").arg("600").arg(file).status().unwrap().success());
}

/// Passes on what comes, later.
fn later(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            thread::sleep(delay);
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Returns a port whose connections reach the server with a delay each way. The server is connected at once, and hears nothing for a while.
fn far_away(port: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", port))) else { return };
            let (again, back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            later(client, server, delay);
            later(back, again, delay);
        }
    });
    own
}

/// Opens 200 connections a second until told to stop. They say `first` or nothing.
fn flood(port: u16, first: &'static [u8], stop: &Arc<AtomicBool>) -> thread::JoinHandle<usize> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let (mut open, mut opened) = (VecDeque::new(), 0);
        while !stop.load(Ordering::Relaxed) {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                let _ = stream.write_all(first);
                open.push_back(stream);
                opened += 1;
            }
            // Files of this process are few, too.
            if open.len() > 500 {
                open.pop_front();
            }
            thread::sleep(Duration::from_millis(5));
        }
        opened
    })
}

#[test]
fn silent_connections_keep_nobody_out() {
    if !psql_is_here() {
        return;
    }
    let folder = lake();
    users(folder.path(), &["ann"]);
    let server = Server::start(folder.path(), &["--users", "users"]);
    let port = far_away(server.port, Duration::from_millis(50));
    let connection = format!("host=127.0.0.1 port={port} user=ann dbname=publications sslmode=disable");
    let stop = Arc::new(AtomicBool::new(false));
    let floods = [
        flood(server.port, b"", &stop),
        // The first message, and no password.
        flood(server.port, b"\0\0\0\x12\0\x03\0\0user\0ann\0\0", &stop),
    ];
    thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let logins: Vec<bool> = (0..12)
        .map(|_| {
            let asked = psql_as(&connection, PASSWORD, &["SELECT count(*) FROM clinic"]);
            if !asked.status.success() {
                println!("{}", err(&asked));
            }
            out(&asked) == "60\n"
        })
        .collect();
    let taken = began.elapsed();
    stop.store(true, Ordering::Relaxed);
    let opened: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
    let in_time = logins.iter().filter(|login| **login).count();
    println!("{in_time} of 12 logins in {taken:?} beside {opened} connections");
    // Those that have spoken are drawn by lot: now and then it is a reader's.
    assert!(in_time >= 8, "{logins:?}");
    let (well, log) = server.stop();
    assert!(well, "{log}");
}

/// A psql that stays.
struct Staying(Child);

impl Staying {
    fn start(connection: &str) -> (Self, bool) {
        let mut process = Command::new("psql")
            .env("PGPASSWORD", PASSWORD)
            .args(["-X", "-q", "-A", "-t", "-d", connection])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _ = process.stdin.as_mut().unwrap().write_all(b"SELECT 17;\n");
        let mut answer = [0; 3];
        let is_in = process.stdout.as_mut().unwrap().read_exact(&mut answer).is_ok() && &answer == b"17\n";
        (Self(process), is_in)
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_user_does_not_take_all_sessions() {
    if !psql_is_here() {
        return;
    }
    let folder = lake();
    users(folder.path(), &["ann", "bob"]);
    let server = Server::start(folder.path(), &["--users", "users", "--sessions", "8"]);
    let of =
        |user: &str| format!("host=127.0.0.1 port={} user={user} dbname=publications sslmode=disable", server.port);
    let anns: Vec<(Staying, bool)> = (0..2).map(|_| Staying::start(&of("ann"))).collect();
    assert!(anns.iter().all(|(_, is_in)| *is_in));
    let third = psql_as(&of("ann"), PASSWORD, &["SELECT 1"]);
    assert!(
        err(&third).contains("this user has too many sessions") && err(&third).contains("--sessions-per-user"),
        "{}",
        err(&third)
    );
    let bob = psql_as(&of("bob"), PASSWORD, &["SELECT 17"]);
    assert_eq!(out(&bob), "17\n", "{}", err(&bob));
    drop(anns);
    let again = || out(&psql_as(&of("ann"), PASSWORD, &["SELECT 17"])) == "17\n";
    assert!((0..50).any(|_| again() || {
        thread::sleep(Duration::from_millis(100));
        false
    }));
    drop(server);
    let server = Server::start(folder.path(), &["--users", "users", "--sessions", "8", "--sessions-per-user", "1"]);
    let of =
        |user: &str| format!("host=127.0.0.1 port={} user={user} dbname=publications sslmode=disable", server.port);
    let (_ann, is_in) = Staying::start(&of("ann"));
    assert!(is_in);
    assert!(!psql_as(&of("ann"), PASSWORD, &["SELECT 1"]).status.success());
}
