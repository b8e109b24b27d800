//! Publications in object stores: two buckets, what they must be able to do, how many requests they are asked, and the shell
//! against an S3 server (moto, from PyPI).

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path as FilePath;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::object_store::memory::InMemory;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use datafusion::prelude::SessionContext;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tempfile::tempdir;
use url::Url;

use super::program::program;
use super::publications::{Q1, Q2, count, declaration, declare, from_the_root};
use super::python::environment;
use super::support::{begun, error, number, path, run, session};

/// Objects of a page of a listing.
const PAGE: usize = 1000;

/// Misbehaviour of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Good,
    /// It replaces what it was asked to create.
    Replaces,
    /// Nobody may write.
    ReadOnly,
}

/// A bucket that counts its requests as a store in the network bills them: a page of a listing, an object that is deleted.
#[derive(Debug)]
struct Bucket {
    inner: Arc<InMemory>,
    manner: Manner,
    requests: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Bucket {
    fn new(inner: &Arc<InMemory>, manner: Manner) -> Arc<Self> {
        Arc::new(Self { inner: Arc::clone(inner), manner, requests: Arc::default() })
    }

    /// Returns a session that has it as `bucket://name/`.
    fn session(self: &Arc<Self>) -> SessionContext {
        let context = session();
        context.register_object_store(&Url::parse("bucket://lake/").unwrap(), Arc::clone(self) as Arc<dyn ObjectStore>);
        context
    }

    fn note(&self, kind: &str, requests: usize) {
        *self.requests.lock().unwrap().entry(kind.to_owned()).or_default() += requests;
    }

    /// Takes the number of requests since the last call.
    fn take(&self) -> usize {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        if std::env::var_os("ANONYMIZE_SHOW_REQUESTS").is_some() {
            println!("{requests:#?}");
        }
        requests.values().sum()
    }
}

fn paged(
    listing: BoxStream<'static, Result<ObjectMeta>>,
    requests: Arc<Mutex<BTreeMap<String, usize>>>,
    kind: String,
) -> BoxStream<'static, Result<ObjectMeta>> {
    *requests.lock().unwrap().entry(kind.clone()).or_default() += 1;
    let count = move |(place, meta): (usize, Result<ObjectMeta>)| {
        if place > 0 && place % PAGE == 0 {
            *requests.lock().unwrap().entry(kind.clone()).or_default() += 1;
        }
        meta
    };
    listing.enumerate().map(count).boxed()
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bucket")
    }
}

#[async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(&self, location: &Path, payload: PutPayload, mut opts: PutOptions) -> Result<PutResult> {
        self.note(&format!("put {location}"), 1);
        match self.manner {
            Manner::Good => {}
            Manner::Replaces => opts.mode = PutMode::Overwrite,
            Manner::ReadOnly => {
                return Err(Error::PermissionDenied { path: location.to_string(), source: "no".into() });
            }
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.note(&format!("multipart {location}"), 3);
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.note(&format!("get {location}"), 1);
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let requests = Arc::clone(&self.requests);
        let counted = locations.inspect_ok(move |path| {
            *requests.lock().unwrap().entry(format!("delete {path}")).or_default() += 1;
        });
        self.inner.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        paged(self.inner.list(prefix), Arc::clone(&self.requests), format!("list {prefix:?}"))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let listing = self.inner.list_with_offset(prefix, offset);
        paged(listing, Arc::clone(&self.requests), format!("list {prefix:?} after {offset}"))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let listed = self.inner.list_with_delimiter(prefix).await?;
        let all = listed.objects.len() + listed.common_prefixes.len();
        self.note(&format!("list in {prefix:?}"), all.div_ceil(PAGE).max(1));
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.note(&format!("copy {from}"), 1);
        self.inner.copy_opts(from, to, options).await
    }
}

const LOCATION: &str = "bucket://lake/hospital/";

async fn objects(store: &InMemory, prefix: &str) -> Vec<String> {
    let listed: Vec<ObjectMeta> = store.list(Some(&Path::from(prefix))).try_collect().await.unwrap();
    listed.into_iter().map(|meta| meta.location.to_string()).collect()
}

/// The public table and the ledger are in two buckets with their own stores.
#[tokio::test(flavor = "multi_thread")]
async fn two_tables_in_two_buckets() {
    from_the_root();
    for (public, private) in [
        ("bucket://lake/hospital/", "bucket://ledgers/hospital/"),
        ("abfss://lake@acct.dfs.core.windows.net/hospital/", "az://ledgers/hospital/"),
    ] {
        let (lake, ledgers) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
        let context = session();
        context.register_object_store(&Url::parse(public).unwrap(), Arc::clone(&lake) as Arc<dyn ObjectStore>);
        context.register_object_store(&Url::parse(private).unwrap(), Arc::clone(&ledgers) as Arc<dyn ObjectStore>);
        let option = format!("'m_invariant', 'private' '{private}'");
        run(&context, &declaration(public, 2).replace("'m_invariant'", &option)).await.unwrap();
        assert_eq!((count(&context, Q1).await, count(&context, Q2).await), (11, 11));
        assert_eq!(number(&context, "SELECT count(*) FROM release(hospital, 1)").await, 11);
        assert_eq!(number(&context, "SELECT count(*) FROM audit(hospital) WHERE NOT passed").await, 0);
        assert_eq!(number(&context, "SELECT count(*) FROM audit(hospital) WHERE release IS NULL").await, 4);
        let both = (objects(&lake, "hospital").await, objects(&ledgers, "hospital").await);
        let parquet = |names: &[String]| {
            names.iter().filter(|name| name.ends_with(".parquet") && !name.contains("_delta_log")).count()
        };
        assert_eq!((parquet(&both.0), parquet(&both.1)), (2, 2), "{both:?}");
        assert!(!both.0.iter().any(|name| name.contains("_claims")), "{both:?}");
    }
}

/// Abilities that the protocol relies on are tested before anything is decided.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_not_fit_is_found_before_anything_is_decided() {
    from_the_root();
    for (manner, expected) in [
        (Manner::Replaces, "replaces a file that exists although it was asked to create it"),
        (Manner::ReadOnly, "publication: nothing can be written to bucket://lake/hospital/; nothing was published"),
    ] {
        let (lake, here) = (Arc::new(InMemory::new()), tempdir().unwrap());
        let ledger = here.path().join("ledger").display().to_string();
        let declared = |location: &str| {
            declaration(location, 2).replace("'m_invariant'", &format!("'m_invariant', 'private' '{ledger}'"))
        };
        let context = Bucket::new(&lake, manner).session();
        run(&context, &declared(LOCATION)).await.unwrap();
        let message = error(&context, Q1).await;
        assert!(message.contains(expected) && message.contains("bucket://lake/hospital/"), "{message}");
        assert!(super::publications::files(&here.path().join("ledger")).is_empty(), "{manner:?}");
        assert_eq!(objects(&lake, "").await, Vec::<String>::new(), "{manner:?}");
        // Nothing was decided, so it can be published elsewhere, and a second release cannot go where it must not.
        let other = session();
        let elsewhere = here.path().join("elsewhere").display().to_string();
        run(&other, &declared(&elsewhere)).await.unwrap();
        assert_eq!(count(&other, Q1).await, 11);
        // The same for a ledger.
        let context = Bucket::new(&lake, manner).session();
        let location = here.path().join(format!("{manner:?}")).display().to_string();
        let private =
            declaration(&location, 2).replace("'m_invariant'", "'m_invariant', 'private' 'bucket://lake/ledger/'");
        run(&context, &private).await.unwrap();
        let message = error(&context, Q1).await;
        assert!(message.contains("bucket://lake/ledger/") && message.contains("nothing was published"), "{message}");
        assert!(super::publications::parquet_files(FilePath::new(&location)).is_empty());
    }
}

/// Errors of a store say which one it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_nobody_has_is_named() {
    from_the_root();
    for (location, expected) in [
        ("s3://nowhere/hospital/", "this session has no object store for s3://nowhere/hospital/"),
        ("lake://nowhere/hospital/", "lake://nowhere/hospital/ is in no object store that this session has"),
        ("https://example.org/hospital/", "a publication cannot be at https://"),
    ] {
        let message = error(&session(), &declaration(location, 2)).await;
        assert!(message.contains(expected), "{message}");
    }
}

/// Requests of an INSERT and of a query, at most: whatever the number of releases.
const PER_INSERT: usize = 60;
const PER_QUERY: usize = 20;

/// Requests of as many nights as `ANONYMIZE_RELEASES` says do not grow. Each is a process that knows nothing of the one before.
#[tokio::test(flavor = "multi_thread")]
async fn requests_do_not_grow_with_releases() {
    let nights = std::env::var("ANONYMIZE_RELEASES").map_or(120, |nights| nights.parse().unwrap());
    let lake = Arc::new(InMemory::new());
    let mut figures = Vec::new();
    for night in 0..nights {
        let bucket = Bucket::new(&lake, Manner::Good);
        let context = bucket.session();
        declare(&context, LOCATION).await;
        let create = bucket.take();
        // Somebody new every night, so that every release has entries.
        let insert = format!(
            "INSERT INTO hospital SELECT person_id + {night} * 2, age, education, CAST((person_id + {night} * 2) % 4 AS VARCHAR) FROM census(24)"
        );
        assert_eq!(count(&context, &insert).await, 24, "night {night}");
        let insert = bucket.take();
        let (mut query, mut declared) = (0, 0);
        if night % 10 < 5 || night + 20 > nights {
            let bucket = Bucket::new(&lake, Manner::Good);
            let reader = bucket.session();
            run(&reader, &format!("CREATE EXTERNAL TABLE r STORED AS PUBLICATION LOCATION '{LOCATION}'"))
                .await
                .unwrap();
            declared = bucket.take();
            assert!(number(&reader, "SELECT count(*) FROM r WHERE age BETWEEN 20 AND 90").await > 0);
            query = bucket.take();
        }
        figures.push([create, insert, declared, query]);
    }
    let most = |nights: &[[usize; 4]]| {
        let most = |column: usize| nights.iter().map(|figures| figures[column]).max().unwrap_or(0);
        [most(0), most(1), most(2), most(3)]
    };
    let (first, last) = (most(&figures[20..40]), most(&figures[nights - 20..]));
    println!(
        "requests of CREATE, INSERT, CREATE for reading and COUNT, at most: releases 21 to 40 {first:?}, the last 20 of {nights} {last:?}"
    );
    for [create, insert, declared, query] in figures {
        assert!(insert <= PER_INSERT && create <= PER_INSERT, "CREATE {create}, INSERT {insert}");
        assert!(query <= PER_QUERY && declared <= PER_QUERY, "CREATE for reading {declared}, COUNT {query}");
    }
    // Listings have a page for every thousand names.
    let pages = 2 * (nights / PAGE);
    assert!((0..4).all(|column| last[column] <= first[column] + pages), "{first:?} {last:?}");
    let entries = objects(&lake, "hospital.private").await;
    let entries = entries.iter().filter(|name| name.ends_with(".parquet") && !name.contains("_delta_log"));
    assert!(entries.count() <= 5, "the ledger's entries are merged");
    // All of it is still there.
    let context = Bucket::new(&lake, Manner::Good).session();
    declare(&context, LOCATION).await;
    assert_eq!(number(&context, "SELECT count(*) FROM audit(hospital) WHERE NOT passed").await, 0);
    assert_eq!(number(&context, "SELECT count(*) FROM releases(hospital)").await, nights as i64);
}

/// A server that speaks S3, while it lives.
struct Moto {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Moto {
    fn start(buckets: &[&str]) -> Option<Self> {
        let python =
            environment("moto", &["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"], "moto.server, boto3")?;
        let mut server = Command::new(python)
            .arg(path("tests/moto/serve.py"))
            .args(buckets)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let mut moto = Self { server, input, output: BufReader::new(output), address: String::new() };
        moto.address = moto.line();
        assert!(moto.address.starts_with("http://"), "{}", moto.address);
        Some(moto)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Names of the objects of a bucket.
    fn objects(&mut self, bucket: &str) -> Vec<String> {
        writeln!(self.input, "{bucket}").unwrap();
        self.line().split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the shell, with nothing but this server in its environment.
    fn shell(&self, sql: &str) -> Command {
        self.anonymize(&["-q", "--fail-on-audit", "--format", "csv", "-c", sql])
    }

    fn anonymize(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.current_dir(path("")).args(arguments);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
            command.env_remove(name);
        }
        command
            .env_remove("RUST_BACKTRACE")
            .env("AWS_ENDPOINT", &self.address)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_ACCESS_KEY_ID", "testing")
            .env("AWS_SECRET_ACCESS_KEY", "testing")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const S3: &str =
    "CREATE EXTERNAL TABLE hospital (person_id BIGINT, age INT, education INT, occupation INT) STORED AS PUBLICATION
    LOCATION 's3://lake/hospital/' OPTIONS ('method' 'm_invariant', 'm' '4', 'id' 'person_id', 'quasi' 'age, education',
    'sensitive' 'occupation', 'private' 's3a://ledgers/hospital/');";

fn insert(rows: usize) -> String {
    format!("{S3} INSERT INTO hospital SELECT person_id, age, education, occupation FROM census({rows});")
}

/// Publish, publish again, read, audit; two at once; kill, and run again.
#[test]
fn the_shell_against_s3() {
    let Some(mut moto) = Moto::start(&["lake", "ledgers"]) else { return };
    for (rows, declaration) in [(2_000, begun(S3)), (2_200, S3.to_owned())] {
        text(&moto.shell(&insert(rows).replace(S3, &declaration)).output().unwrap());
    }
    let read = "CREATE EXTERNAL TABLE r STORED AS PUBLICATION LOCATION 's3://lake/hospital/';
        SELECT count(*) AS releases FROM releases(r); SELECT count(*) AS of_the_first FROM release(r, 1); SELECT count(*) AS now FROM r;";
    let read = text(&moto.shell(read).output().unwrap());
    for expected in ["releases\n2\n", "of_the_first\n2000\n", "now\n2200\n"] {
        assert!(read.contains(expected), "{read}");
    }
    let audit = text(
        &moto
            .shell(&format!("{S3} SELECT count(*) FILTER (WHERE NOT passed) AS failed FROM audit(hospital);"))
            .output()
            .unwrap(),
    );
    assert!(audit.contains("failed\n0\n"), "{audit}");
    assert!(moto.objects("lake").iter().all(|name| name.starts_with("hospital/") && !name.contains("_claims")));
    assert!(moto.objects("ledgers").iter().all(|name| name.starts_with("hospital/") && !name.contains("_staged")));

    // A table and a function over a file in the bucket, by the other name of the scheme too.
    for scheme in ["s3", "s3a"] {
        let copy = format!(
            "COPY (SELECT * FROM census(50)) TO '{scheme}://lake/{scheme}.parquet' STORED AS PARQUET;
            SELECT count(*) AS rows FROM mondrian('{scheme}://lake/{scheme}.parquet', 5, quasi => (age, education));"
        );
        assert!(text(&moto.shell(&copy).output().unwrap()).contains("rows\n50\n"));
        let rows = format!("SELECT count(*) > 0 AS rows FROM '{scheme}://lake/{scheme}.parquet';");
        assert!(text(&moto.shell(&rows).output().unwrap()).contains("rows\ntrue\n"));
    }

    // One of two gets through; the server answers the other's If-None-Match with 412.
    let both: Vec<Child> = [2_400, 2_700].map(|rows| moto.shell(&insert(rows)).spawn().unwrap()).into_iter().collect();
    let both: Vec<Output> = both.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let won = both.iter().filter(|output| output.status.success()).count();
    assert!(won > 0, "{}", String::from_utf8_lossy(&both[0].stderr));
    for lost in both.iter().filter(|output| !output.status.success()) {
        let error = String::from_utf8_lossy(&lost.stderr);
        assert!(error.contains("run it again"), "{error}");
    }
    let mut releases = 2 + won;

    let mut killed = 0;
    for (round, wait) in [100, 200, 300, 400, 500, 700].into_iter().enumerate() {
        let insert = insert(3_000 + 300 * round);
        let mut child = moto.shell(&insert).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill();
        killed += usize::from(!child.wait().unwrap().success());
        for _ in 0..2 {
            text(&moto.shell(&insert).output().unwrap());
        }
        releases += 1;
        let there = moto.objects("lake");
        let parquet = there.iter().filter(|name| name.starts_with("hospital/") && !name.contains("_delta_log"));
        assert_eq!(
            parquet.filter(|name| name.ends_with(".parquet")).count(),
            releases,
            "killed after {wait} ms: {there:?}"
        );
    }
    assert!(killed > 0, "nothing was killed in time");
    let audit = text(
        &moto
            .shell(&format!("{S3} SELECT count(*) FILTER (WHERE NOT passed) AS failed FROM audit(hospital);"))
            .output()
            .unwrap(),
    );
    assert!(audit.contains("failed\n0\n"), "{audit}");
    assert!(moto.objects("ledgers").iter().all(|name| !name.contains("_staged")));

    // A bucket that is not there is named.
    let missing = insert(100).replace(S3, &begun(S3)).replace("s3a://ledgers", "s3a://missing");
    let output = moto.shell(&missing).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("s3a://missing/hospital/"), "{error}");
}

/// Input, ledger and public table in buckets, and workers that have nothing but their environment.
#[cfg(feature = "distributed")]
#[test]
fn workers_against_s3() {
    use super::cluster::Process;

    let Some(mut moto) = Moto::start(&["lake", "ledgers"]) else { return };
    for part in 0..4 {
        let copy = format!(
            "COPY (SELECT person_id, age, education, occupation FROM census(4000) WHERE person_id % 4 = {part}) \
             TO 's3://lake/people/{part}.parquet' STORED AS PARQUET"
        );
        text(&moto.shell(&copy).output().unwrap());
    }
    let workers = [0, 1].map(|_| Process::of(moto.anonymize(&["worker", "--port", "0"])));
    let urls = format!("{},{}", workers[0].url, workers[1].url);
    let people = "CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 's3://lake/people/';
        SET distributed.file_scan_config_bytes_per_partition = 1;";
    let on_workers = |declaration: &str, sql: &str| {
        let sql = format!("{people} {declaration} {sql}");
        moto.anonymize(&["-q", "--workers", &urls, "--format", "csv", "-c", &sql]).output().unwrap()
    };
    let insert = |skipped: u32| format!("INSERT INTO hospital SELECT * FROM people WHERE person_id % 10 <> {skipped}");
    let explained = text(&on_workers(&begun(S3), &format!("EXPLAIN {}", insert(2))));
    assert!(explained.contains("PublishExec") && explained.contains("Stage 1"), "{explained}");
    for (skipped, declaration) in [(1, begun(S3)), (2, S3.to_owned()), (3, S3.to_owned())] {
        let published = text(&on_workers(&declaration, &insert(skipped)));
        assert!(published.contains("3600"), "{published}");
    }
    let read = text(&on_workers(
        S3,
        "SELECT count(*) AS releases FROM releases(hospital); SELECT count(*) FILTER (WHERE NOT passed) AS failed FROM audit(hospital);
         SELECT count(*) AS cells FROM m_invariant(people, 4, id => person_id, quasi => age, sensitive => occupation, cells => 3)",
    ));
    for expected in ["releases\n3\n", "failed\n0\n", "cells\n4000\n"] {
        assert!(read.contains(expected), "{read}");
    }
    assert!(moto.objects("ledgers").iter().all(|name| name.starts_with("hospital/")));
}
