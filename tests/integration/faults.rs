//! Faults of a job anywhere: no release is lost, none is drawn twice, and running it again is enough.

use std::fmt;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::compute::concat_batches;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::risk::{Cover, PublicRelease, candidates};
use futures::StreamExt;
use futures::stream::BoxStream;
use tempfile::tempdir;
use url::Url;

use super::program::program;
use super::publications::{Q1, Q2, declaration, declare};
use super::support::{number, path, run, session};

const LOCATION: &str = "fault://disk/hospital/";

/// Fault at the fatal write; all later ones fail, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not done.
    Before,
    /// It is done, but the caller hears that it failed.
    After,
    /// It is not done, and the process dies.
    KillBefore,
    /// It is done, and the process dies.
    KillAfter,
    /// Not a write: from the read of that number on, nothing can be read.
    Reading,
}

/// A directory in which the write of a given number goes wrong.
#[derive(Debug)]
pub(super) struct Faulty {
    inner: LocalFileSystem,
    pub(super) writes: AtomicUsize,
    reads: AtomicUsize,
    fatal: usize,
    fault: Fault,
}

impl Faulty {
    fn error() -> Error {
        Error::Generic { store: "Faulty", source: "no space left on device".into() }
    }

    fn die() -> ! {
        let id = std::process::id().to_string();
        Command::new("kill").args(["-KILL", &id]).status().unwrap();
        loop {
            std::thread::park();
        }
    }

    fn read(&self) -> Result<()> {
        let number = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fault == Fault::Reading && number >= self.fatal { Err(Self::error()) } else { Ok(()) }
    }

    async fn write<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fault == Fault::Reading {
            return work.await;
        }
        match number.cmp(&self.fatal) {
            std::cmp::Ordering::Less => work.await,
            std::cmp::Ordering::Greater => Err(Self::error()),
            std::cmp::Ordering::Equal => match self.fault {
                Fault::Before => Err(Self::error()),
                Fault::After => {
                    let _ = work.await;
                    Err(Self::error())
                }
                Fault::KillBefore => Self::die(),
                Fault::KillAfter => {
                    let _ = work.await;
                    Self::die()
                }
                Fault::Reading => unreachable!("is not about writes"),
            },
        }
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.write(self.inner.put_opts(location, payload, opts)).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.write(self.inner.put_multipart_opts(location, opts)).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.read()?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.read()?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.fatal && matches!(self.fault, Fault::KillBefore | Fault::KillAfter) {
            Self::die();
        }
        if number >= self.fatal && self.fault != Fault::Reading {
            return futures::stream::once(async { Err(Self::error()) }).boxed();
        }
        self.inner.delete_stream(locations)
    }

    /// Lists in order, as stores other than local disks do.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Err(error) = self.read() {
            return futures::stream::once(async { Err(error) }).boxed();
        }
        let listed = self.inner.list(prefix);
        let sorted = async move {
            let mut all = listed.collect::<Vec<_>>().await;
            all.sort_by(|a, b| {
                a.as_ref().ok().map(|meta| &meta.location).cmp(&b.as_ref().ok().map(|meta| &meta.location))
            });
            futures::stream::iter(all)
        };
        futures::stream::once(sorted).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.read()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.write(self.inner.copy_opts(from, to, options)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.write(self.inner.rename_opts(from, to, options)).await
    }
}

/// Returns a session on a directory `fault://disk/`, whose write number `fatal` fails.
pub(super) fn faulty(directory: &FilePath, fatal: usize, fault: Fault) -> (SessionContext, Arc<Faulty>) {
    std::env::set_current_dir(path("")).unwrap();
    let inner = LocalFileSystem::new_with_prefix(directory).unwrap();
    let store = Arc::new(Faulty { inner, writes: AtomicUsize::new(0), reads: AtomicUsize::new(0), fatal, fault });
    let context = session();
    context.register_object_store(&Url::parse("fault://disk/").unwrap(), Arc::clone(&store) as Arc<dyn ObjectStore>);
    (context, store)
}

/// Runs a night's job: it declares its publication and inserts a snapshot.
async fn job(context: &SessionContext, insert: &str) -> datafusion::error::Result<()> {
    declare(context, LOCATION).await;
    run(context, insert).await.map(|_| ())
}

/// The nights before, and the job that goes wrong.
const NIGHTS: [(Option<&str>, &str); 2] = [(None, Q1), (Some(Q1), Q2)];

async fn before(directory: &FilePath, first: Option<&str>) {
    let (context, _) = faulty(directory, usize::MAX, Fault::Before);
    if let Some(first) = first {
        job(&context, first).await.unwrap();
    }
}

/// Runs the job again after a fault: all is as if nothing had happened.
async fn recover(directory: &FilePath, first: Option<&str>, insert: &str, what: &str) {
    let (context, _) = faulty(directory, usize::MAX, Fault::Before);
    let seen = public_files(directory);
    let releases = 1 + i64::from(first.is_some());
    for again in ["at first", "and again"] {
        job(&context, insert).await.unwrap_or_else(|error| panic!("{what}, {again}: {error}"));
        assert_eq!(number(&context, "SELECT max(release) FROM releases(hospital)").await, releases, "{what}, {again}");
        // Every Parquet file that ever stood at LOCATION is of a release: nothing was drawn twice.
        let files = public_files(directory);
        assert_eq!(files.len() as i64, releases, "{what}, {again}: {files:?}");
        assert!(seen.iter().all(|file| files.contains(file)), "{what}, {again}: {seen:?} {files:?}");
    }
    // The next night knows of everybody: who is in both quarters keeps two candidates.
    if first.is_none() {
        job(&context, Q2).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let people = "SELECT p.age, p.zip FROM 'data/patients_q1.parquet' p JOIN 'data/patients_q2.parquet' n ON p.patient_id = n.patient_id";
    let people = run(&context, people).await.unwrap();
    let people = concat_batches(&people[0].schema(), &people).unwrap();
    let mut found = Vec::new();
    for file in public_files(directory) {
        let rows = run(&context, &format!("SELECT * FROM '{}'", file.display())).await.unwrap();
        let public = PublicRelease::try_new(&rows, &["age", "zip"], "group_id", "disease").unwrap();
        found.push(public.candidates(&Cover { quasi: people.columns() }).unwrap());
    }
    assert_eq!(found.len(), 2, "{what}");
    assert!(candidates(&found).iter().all(|left| left.len() >= 2), "{what}: {found:?}");
}

/// Returns the files below a directory; empty directories do not matter.
fn files_below(directory: &FilePath) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

fn public_files(directory: &FilePath) -> Vec<PathBuf> {
    public_files_of(directory, "hospital")
}

fn public_files_of(directory: &FilePath, publication: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory.join(publication)) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_at_any_write() {
    for fault in [Fault::Before, Fault::After] {
        for (first, insert) in NIGHTS {
            for fatal in 1.. {
                let here = tempdir().unwrap();
                before(here.path(), first).await;
                let (context, store) = faulty(here.path(), fatal, fault);
                let result = job(&context, insert).await;
                let writes = store.writes.load(Ordering::SeqCst);
                if writes < fatal {
                    result.unwrap();
                    assert!(fatal > 5, "a job has more than {writes} writes");
                    break;
                }
                let what = format!("{fault:?} at write {fatal}");
                if let Err(error) = result {
                    let error = error.strip_backtrace();
                    let told =
                        error.contains("nothing was published") || error.contains("is decided but not public yet");
                    assert!(told && !error.contains("caused by"), "{what}: {error}");
                    if error.contains("nothing was published") {
                        let there = public_files(here.path()).len();
                        assert_eq!(there, usize::from(first.is_some()), "{what}: {error}");
                    }
                }
                recover(here.path(), first, insert, &what).await;
            }
        }
    }
}

/// A first release that was decided, and cannot be announced where it was to be.
#[tokio::test(flavor = "multi_thread")]
async fn a_decided_release_is_announced_elsewhere_if_that_is_declared() {
    let mut moved = 0;
    for fatal in 1.. {
        let here = tempdir().unwrap();
        let (context, store) = faulty(here.path(), fatal, Fault::Before);
        let result = job(&context, Q1).await;
        if store.writes.load(Ordering::SeqCst) < fatal {
            break;
        }
        let decided = result.is_err_and(|error| error.strip_backtrace().contains("is decided but not public yet"));
        let location = "fault://disk/elsewhere/";
        let there = |more: &str| {
            let options = format!("'m_invariant', 'private' 'fault://disk/hospital.private/'{more}");
            declaration(location, 2).replace("'m_invariant'", &options)
        };
        let from = |place: &str| there(&format!(", 'moved_from' 'fault://disk/{place}'"));
        let (context, _) = faulty(here.path(), usize::MAX, Fault::Before);
        if decided {
            let seen = public_files(here.path());
            for declared in [there(""), from("another")] {
                let error = run(&context, &declared).await.unwrap_err().strip_backtrace();
                assert!(error.contains("with the option 'moved_from' 'fault://disk/hospital/'"), "{error}");
            }
            run(&context, &from("hospital")).await.unwrap();
            run(&context, Q1).await.unwrap();
            // The same files: no other draw.
            let names =
                |files: Vec<PathBuf>| files.iter().map(|file| file.file_name().unwrap().to_owned()).collect::<Vec<_>>();
            let now = names(public_files_of(here.path(), "elsewhere"));
            assert!(now.len() == 1 && names(seen).iter().all(|file| now.contains(file)), "write {fatal}: {now:?}");
            // From now on it is there, whatever is declared; and where it was to be it is no more.
            run(&context, "DROP TABLE hospital").await.unwrap();
            run(&context, &there("")).await.unwrap();
            run(&context, Q2).await.unwrap();
            assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, 2);
            assert_eq!(number(&context, "SELECT count(*) FROM audit(hospital) WHERE NOT passed").await, 0);
            moved += 1;
        }
    }
    assert!(moved >= 3, "{moved} writes are between the decision and the announcement");
}

const STREAM: &str = "CREATE EXTERNAL TABLE clinic (visit BIGINT, day BIGINT, v BIGINT) STORED AS PUBLICATION
    LOCATION 'fault://disk/clinic/' OPTIONS ('method' 'reposition', 'inner' 'anatomy', 'l' '2', 'time' 'day', 'window' '2',
    'quasi' 'visit', 'sensitive' 'v', 'allow_independent_releases' 'true'";

/// Inserts a day of a stream, of which the first is skewed; day 3 ends the stream.
async fn day(context: &SessionContext, day: i64) -> datafusion::error::Result<()> {
    run(context, "DROP TABLE IF EXISTS clinic").await?;
    let end = if day == 3 { ", 'finish' 'true')" } else { ")" };
    run(context, &format!("{STREAM}{end}")).await?;
    let rows = format!(
        "SELECT {day} * 10 + value, {day}, CASE WHEN {day} = 0 AND value < 6 THEN 0 ELSE value END FROM generate_series(1, 8)"
    );
    let condition = if day == 3 { "WHERE false" } else { "" };
    run(context, &format!("INSERT INTO clinic {rows} {condition}")).await.map(|_| ())
}

/// A stream whose rows are held back: wherever a job fails, the next ones publish each row once.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_loses_no_row_at_any_write() {
    for fault in [Fault::Before, Fault::After] {
        for fatal in 1.. {
            let here = tempdir().unwrap();
            let (context, store) = faulty(here.path(), fatal, fault);
            let mut next = 0;
            while next <= 3 && day(&context, next).await.is_ok() {
                next += 1;
            }
            let writes = store.writes.load(Ordering::SeqCst);
            let (context, _) = faulty(here.path(), usize::MAX, Fault::Before);
            // The job that failed runs again, and once more to no effect; then those that are left.
            for left in std::iter::once(next.min(3)).chain(next.min(3)..=3) {
                day(&context, left).await.unwrap_or_else(|error| panic!("{fault:?} at write {fatal}: {error}"));
            }
            let mut found = Vec::new();
            for release in 1..=4 {
                let rows = format!("SELECT count(*), count(DISTINCT visit) FROM release(clinic, {release})");
                found.push(number(&context, &rows).await);
            }
            // Nothing is suppressed, so rows are as many as came; and each is in one file.
            assert_eq!(found.iter().sum::<i64>(), 24, "{fault:?} at write {fatal}: {found:?}");
            let files = public_files_of(here.path(), "clinic");
            let files: Vec<String> =
                files.iter().map(|file| format!("SELECT visit FROM '{}'", file.display())).collect();
            let all = format!("SELECT count(DISTINCT visit) FROM ({})", files.join(" UNION ALL "));
            assert_eq!((number(&context, &all).await, files.len()), (24, 4), "{fault:?} at write {fatal}");
            if writes < fatal {
                assert!(fatal > 12, "four jobs have more than {writes} writes");
                break;
            }
        }
    }
}

const MOVING: &str = "CREATE EXTERNAL TABLE moving (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'fault://disk/moving/'
    OPTIONS ('method' 'm_distinct', 'm' '2', 'updates' 'law', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";

/// Nights of two people with the highest probability that a reader reaches: one of them stays away for a night, in which the other one has changed.
const MOVES: [(&str, f64); 3] = [
    ("INSERT INTO moving VALUES (1, 20, 'a1'), (2, 23, 'b')", 0.5),
    ("INSERT INTO moving VALUES (1, 21, 'a2')", 1.0 / 1.05),
    ("INSERT INTO moving VALUES (1, 22, 'a2'), (2, 25, 'b')", 2.0 / 3.0),
];

async fn move_in(context: &SessionContext, insert: &str) -> datafusion::error::Result<()> {
    run(context, "DROP TABLE IF EXISTS moving").await?;
    run(context, "CREATE TABLE IF NOT EXISTS law AS SELECT * FROM (VALUES ('a1', 'a2', 0.05), ('a2', 'a1', 0.05)) AS t(from_value, to_value, probability)").await?;
    run(context, MOVING).await?;
    run(context, insert).await.map(|_| ())
}

/// Beliefs beside the ledger are those of the published release, wherever a job fails.
#[tokio::test(flavor = "multi_thread")]
async fn what_readers_believe_is_lost_at_no_write() {
    for fault in [Fault::Before, Fault::After] {
        for fatal in 1.. {
            let here = tempdir().unwrap();
            let (context, store) = faulty(here.path(), fatal, fault);
            let mut next = 0;
            while next < MOVES.len() && move_in(&context, MOVES[next].0).await.is_ok() {
                next += 1;
            }
            let writes = store.writes.load(Ordering::SeqCst);
            let (context, _) = faulty(here.path(), usize::MAX, Fault::Before);
            let what = format!("{fault:?} at write {fatal}");
            let first = next.min(MOVES.len() - 1);
            for (insert, _) in std::iter::once(&MOVES[first]).chain(&MOVES[first..]) {
                move_in(&context, insert).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            for (release, (_, highest)) in (1..).zip(MOVES) {
                let found = format!(
                    "SELECT CAST(round(achieved * 1000000) AS BIGINT) FROM releases(moving) WHERE release = {release}"
                );
                let found = number(&context, &found).await;
                assert_eq!(found, (highest * 1e6).round() as i64, "{what}: release {release}");
            }
            assert_eq!(number(&context, "SELECT count(*) FROM audit(moving) WHERE NOT passed").await, 0, "{what}");
            // Entries of three releases, and what is believed after the last.
            assert_eq!(public_files_of(here.path(), "moving.private").len(), 4, "{what}");
            if writes < fatal {
                assert!(fatal > 12, "three jobs have more than {writes} writes");
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_read_from_some_time_on() {
    for (first, insert) in NIGHTS {
        for fatal in 1.. {
            let here = tempdir().unwrap();
            before(here.path(), first).await;
            let (context, store) = faulty(here.path(), fatal, Fault::Reading);
            // Declaring the table reads, too.
            let declared = run(&context, &declaration(LOCATION, 2)).await;
            let result = match declared {
                Ok(_) => run(&context, insert).await,
                Err(error) => Err(error),
            };
            if store.reads.load(Ordering::SeqCst) < fatal {
                result.unwrap();
                assert!(fatal > 10, "a job has more than {} reads", fatal - 1);
                break;
            }
            recover(here.path(), first, insert, &format!("read {fatal}")).await;
        }
    }
}

/// Variable with the fault of a process of its own: directory, write, kind, night.
const CHILD: &str = "ANONYMIZE_TEST_CHILD";

/// Runs the job of such a process.
async fn doomed(text: &str) {
    let [directory, fatal, fault, night] = text.split('|').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let fault = if fault == "KillBefore" { Fault::KillBefore } else { Fault::KillAfter };
    let (context, _) = faulty(FilePath::new(directory), fatal.parse().unwrap(), fault);
    job(&context, NIGHTS[night.parse::<usize>().unwrap()].1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_at_any_write() {
    // The test starts itself anew as the process to be killed.
    if let Ok(text) = std::env::var(CHILD) {
        return doomed(&text).await;
    }
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        for (night, (first, insert)) in NIGHTS.into_iter().enumerate() {
            for fatal in 1.. {
                let here = tempdir().unwrap();
                before(here.path(), first).await;
                let status = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "integration::faults::a_process_that_is_killed_at_any_write"])
                    .env(CHILD, format!("{}|{fatal}|{fault:?}|{night}", here.path().display()))
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status()
                    .unwrap();
                if status.code().is_some() {
                    assert!(status.success(), "the job failed instead of being killed");
                    assert!(fatal > 5, "a job has more than {} writes", fatal - 1);
                    break;
                }
                recover(here.path(), first, insert, &format!("{fault:?} at write {fatal} of night {night}")).await;
            }
        }
    }
}

/// Runs a night's job of a publication whose releases are made in two cells.
async fn night_in_cells(context: &SessionContext, night: usize) -> datafusion::error::Result<()> {
    run(context, "DROP TABLE IF EXISTS people").await?;
    run(
        context,
        "CREATE EXTERNAL TABLE people (person_id BIGINT, age INT, occupation INT) STORED AS PUBLICATION LOCATION 'fault://disk/people/'
         OPTIONS ('method' 'm_invariant', 'm' '2', 'id' 'person_id', 'quasi' 'age', 'sensitive' 'occupation', 'cells' '2')",
    )
    .await?;
    let insert =
        format!("INSERT INTO people SELECT person_id, age, occupation FROM census(90) WHERE person_id % 3 <> {night}");
    run(context, &insert).await.map(|_| ())
}

/// A release in cells, with staged files of entries, survives faults as one cell does.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_in_cells_at_any_write() {
    const CHILD: &str = "ANONYMIZE_TEST_CHILD_IN_CELLS";
    if let Ok(text) = std::env::var(CHILD) {
        let [directory, fatal, fault, night] = text.split('|').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let fault = if fault == "KillBefore" { Fault::KillBefore } else { Fault::KillAfter };
        let (context, _) = faulty(FilePath::new(directory), fatal.parse().unwrap(), fault);
        return night_in_cells(&context, night.parse().unwrap()).await.unwrap();
    }
    for fault in [Fault::Before, Fault::After, Fault::KillBefore, Fault::KillAfter] {
        for night in 0..2 {
            for fatal in 1.. {
                let here = tempdir().unwrap();
                let healthy = || faulty(here.path(), usize::MAX, Fault::Before).0;
                for earlier in 0..night {
                    night_in_cells(&healthy(), earlier).await.unwrap();
                }
                let over = match fault {
                    Fault::KillBefore | Fault::KillAfter => {
                        let status = Command::new(std::env::current_exe().unwrap())
                            .args(["--exact", "integration::faults::a_release_in_cells_at_any_write"])
                            .env(CHILD, format!("{}|{fatal}|{fault:?}|{night}", here.path().display()))
                            .stdout(Stdio::null())
                            .stderr(Stdio::null())
                            .status()
                            .unwrap();
                        assert!(status.code().is_none() || status.success(), "the job failed instead of being killed");
                        status.success()
                    }
                    _ => {
                        let (context, store) = faulty(here.path(), fatal, fault);
                        let result = night_in_cells(&context, night).await;
                        if let Err(error) = &result {
                            let error = error.strip_backtrace();
                            let told = error.contains("nothing was published")
                                || error.contains("is decided but not public yet");
                            assert!(told, "{fault:?} at write {fatal}: {error}");
                        }
                        store.writes.load(Ordering::SeqCst) < fatal
                    }
                };
                let what = format!("{fault:?} at write {fatal} of night {night}");
                let seen = public_files_of(here.path(), "people");
                let context = healthy();
                for _ in 0..2 {
                    night_in_cells(&context, night).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let files = public_files_of(here.path(), "people");
                    // Two cells, two files.
                    assert_eq!(files.len(), 2 * (night + 1), "{what}: {files:?}");
                    assert!(seen.iter().all(|file| files.contains(file)), "{what}: {seen:?} {files:?}");
                }
                assert_eq!(
                    number(&context, "SELECT count(*) FROM releases(people)").await as usize,
                    night + 1,
                    "{what}"
                );
                assert_eq!(number(&context, "SELECT count(*) FROM audit(people) WHERE NOT passed").await, 0, "{what}");
                assert_eq!(files_below(&here.path().join("people.private/_staged")), 0, "{what}");
                if over {
                    assert!(fatal > 8, "a job has more than {fatal} writes");
                    break;
                }
            }
        }
    }
}

/// Returns a script of the shell: a publication of made-up people, which may begin with it, and one snapshot of it.
fn script(here: &FilePath, begins: bool, rows: usize) -> PathBuf {
    let begin = if begins { "'begin' 'true', " } else { "" };
    let sql = format!(
        "CREATE EXTERNAL TABLE published (person_id BIGINT, age INT, education INT, occupation INT)
         STORED AS PUBLICATION LOCATION 'published'
         OPTIONS ({begin}'method' 'm_invariant', 'm' '4', 'id' 'person_id', 'quasi' 'age, education', 'sensitive' 'occupation');
         INSERT INTO published SELECT person_id, age, education, occupation FROM census({rows});"
    );
    let path = here.join(format!("{rows}.sql"));
    std::fs::write(&path, sql).unwrap();
    path
}

fn shell(here: &FilePath, script: &FilePath) -> Command {
    let mut command = Command::new(program());
    command.current_dir(here).args(["-q", "-f"]).arg(script).env_remove("RUST_BACKTRACE");
    command
}

async fn published(here: &FilePath, what: &str) -> i64 {
    let context = session();
    let reader =
        format!("CREATE EXTERNAL TABLE r STORED AS PUBLICATION LOCATION '{}'", here.join("published").display());
    run(&context, &reader).await.unwrap();
    let releases = number(&context, "SELECT count(*) FROM releases(r)").await;
    let files = std::fs::read_dir(here.join("published")).unwrap();
    let parquet = files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".parquet"));
    assert_eq!(parquet.count() as i64, releases, "{what}");
    releases
}

/// The shell itself, on a local disk, killed whenever.
#[tokio::test(flavor = "multi_thread")]
async fn the_shell_that_is_killed_at_any_time() {
    let here = tempdir().unwrap();
    let mut killed = 0;
    for (round, wait) in [2, 5, 10, 20, 40, 60, 80, 100, 120, 140, 160, 200].into_iter().enumerate() {
        let script = script(here.path(), round == 0, 40_000 + 1_000 * round);
        let mut child = shell(here.path(), &script).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        for again in 0..2 {
            let output = shell(here.path(), &script).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let what = format!("killed after {wait} ms, run {again}");
            assert_eq!(published(here.path(), &what).await, round as i64 + 1, "{what}");
        }
        // Nothing is left of the attempts that were killed.
        let private = here.path().join("published.private");
        let entries = std::fs::read_dir(&private).unwrap();
        let entries =
            entries.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "parquet"));
        // Those of many releases are merged.
        let entries = entries.count();
        assert!(entries == round + 1 || (round > 3 && entries <= 4), "{entries} after {} releases", round + 1);
        assert_eq!(files_below(&private.join("_staged")), 0);
    }
    assert!(killed > 0, "nothing was killed in time");
}

/// Files cannot grow beyond a few kilobytes: a full disk, as the operating system reports it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room() {
    let here = tempdir().unwrap();
    let (small, large) = (script(here.path(), true, 200), script(here.path(), false, 50_000));
    assert!(shell(here.path(), &small).stdout(Stdio::null()).status().unwrap().success());
    let limited = "trap '' XFSZ; ulimit -f 40; exec \"$0\" -q -f \"$1\"";
    let output =
        Command::new("sh").args(["-c", limited, program()]).arg(&large).current_dir(here.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("nothing was published"), "{error}");
    assert_eq!(published(here.path(), "full").await, 1);
    assert_eq!(files_below(&here.path().join("published.private/_staged")), 0, "what was staged fills the disk");
    assert!(shell(here.path(), &large).stdout(Stdio::null()).status().unwrap().success());
    assert_eq!(published(here.path(), "room again").await, 2);
}

/// A small disk and a ledger on a read-only one, in a mount namespace. It runs where that is allowed. Both are real.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn small_and_read_only_disks() {
    let here = tempdir().unwrap();
    let (small, large) = (script(here.path(), true, 200), script(here.path(), false, 50_000));
    let steps = r#"
        set -e
        shell=$0 small=$1 large=$2
        mkdir disk && mount -t tmpfs -o size=300k disk disk && cd disk
        "$shell" -q -f "$small" >/dev/null
        if "$shell" -q -f "$large" 2>../full.txt; then exit 3; fi
        ls published/*.parquet | wc -l
        mount -o remount,size=100m .
        mount --bind published.private published.private && mount -o remount,ro,bind published.private
        if "$shell" -q -f "$large" 2>../readonly.txt; then exit 4; fi
        ls published/*.parquet | wc -l
        umount published.private
        "$shell" -q -f "$large" >/dev/null
        ls published/*.parquet | wc -l
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
    assert!(output.status.success(), "{errors}\n{}\n{}", read("full.txt"), read("readonly.txt"));
    assert_eq!(String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>(), ["1", "1", "2"]);
    assert!(
        read("full.txt").contains("nothing was published") && read("full.txt").contains("No space left"),
        "{}",
        read("full.txt")
    );
    assert!(read("readonly.txt").contains("nothing was published"), "{}", read("readonly.txt"));
}
