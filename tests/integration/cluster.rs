//! The same SQL on workers: in this process, and as processes of their own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::distributed::{self, VERSION, Workers};
use datafusion_anonymize::{AnonymizeError, Progress, Step};
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt, Worker};
use tempfile::tempdir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use super::program::program;
use super::publications::from_the_root;
use super::support::{err, error, number, out, path, run, shell};

/// Workers in this process, while it lives.
#[derive(Default)]
struct Served {
    servers: JoinSet<()>,
    urls: Vec<String>,
}

impl Served {
    /// Starts so many workers as they should be.
    async fn start(count: usize) -> Self {
        let mut served = Self::default();
        for _ in 0..count {
            served.add(Worker::from_session_builder(distributed::worker).with_version(VERSION)).await;
        }
        served
    }

    /// Returns the URL of one more.
    async fn add(&mut self, worker: Worker) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = worker.into_worker_server();
        let server = Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        self.servers.spawn(async { server.await.unwrap() });
        self.urls.push(url.clone());
        url
    }
}

/// Returns a session that plans for these workers, with stages of many tasks.
fn cluster(urls: &[String], partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_information_schema(true).with_target_partitions(partitions);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let builder = builder.with_distributed_worker_resolver(Workers::parse(urls).unwrap());
    let builder = distributed::coordinator(builder).with_distributed_file_scan_config_bytes_per_partition(1).unwrap();
    let context = SessionContext::new_with_state(builder.build()).enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

fn one_process(partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_information_schema(true).with_target_partitions(partitions);
    let context = SessionContext::new_with_config(config).enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

/// Returns the rows as texts, in order.
fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let texts: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            rows.push(texts.join(" | "));
        }
    }
    rows.sort();
    rows
}

/// Returns the plan that a session would run.
async fn plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    datafusion_distributed::display_plan_ascii(plan.as_ref(), false)
}

/// Writes tables as files, several of each so that several tasks scan them.
async fn files(folder: &Path, people: usize) {
    let context = one_process(2);
    for part in 0..4 {
        let sql = |name: &str, rows: &str| {
            format!("COPY ({rows}) TO '{}/{name}/{part}.parquet' STORED AS PARQUET", folder.display())
        };
        let people = format!("SELECT * FROM census({people}, seed => 5) WHERE person_id % 4 = {part}");
        run(&context, &sql("people", &people)).await.unwrap();
        let incidents = format!(
            "SELECT value AS incident, DATE '2025-01-01' + (value % 40)::INT AS day, concat('k', value % 6) AS kind
             FROM generate_series(1, 2000) WHERE value % 4 = {part}"
        );
        run(&context, &sql("incidents", &incidents)).await.unwrap();
        // In order, within a file and from file to file.
        let timely = format!(
            "SELECT value AS incident, DATE '2025-01-01' + (value / 50)::INT AS day, concat('k', value % 6) AS kind
             FROM generate_series({}, {}) ORDER BY day",
            part * 500,
            part * 500 + 499
        );
        run(&context, &sql("timely", &timely)).await.unwrap();
    }
    let csv = format!(
        "COPY (SELECT person_id, age, gender, education, occupation FROM census({people}, seed => 5)) TO '{}/people.csv' STORED AS CSV",
        folder.display()
    );
    run(&context, &csv).await.unwrap();
    for more in ["people.csv.gz' STORED AS CSV OPTIONS ('format.compression' 'gzip')", "people.json' STORED AS JSON"] {
        let sql = format!(
            "COPY (SELECT person_id, age, gender, education, occupation FROM census({people}, seed => 5)) TO '{}/{more}",
            folder.display()
        );
        run(&context, &sql).await.unwrap();
    }
}

async fn tables(context: &SessionContext, folder: &Path) {
    for name in ["people", "incidents", "timely"] {
        let sql = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}/{name}/'", folder.display());
        run(context, &sql).await.unwrap();
    }
    for (name, of, by) in [("ordered", "people", "person_id"), ("by_day", "timely", "day")] {
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}/{of}/' WITH ORDER ({by})",
            folder.display()
        );
        run(context, &sql).await.unwrap();
    }
    run(context, "CREATE TABLE in_memory AS SELECT * FROM people").await.unwrap();
    run(context, "CREATE VIEW some AS SELECT * FROM people WHERE age > 30 AND age < 70").await.unwrap();
    let hierarchy =
        "CREATE TABLE trees AS SELECT 'education' AS attribute, value::VARCHAR AS leaf, (value / 5)::VARCHAR AS level1
                     FROM generate_series(0, 20)";
    run(context, hierarchy).await.unwrap();
    let updates = "CREATE TABLE updates AS SELECT a.value::INT AS from_value, b.value::INT AS to_value
                   FROM generate_series(0, 99) a JOIN generate_series(0, 99) b ON a.value / 2 = b.value / 2";
    run(context, updates).await.unwrap();
    let first =
        "CREATE TABLE first AS SELECT * FROM m_invariant(people, 4, id => person_id, quasi => (age, gender, education),
                 sensitive => occupation, private => true, seed => 3)";
    run(context, first).await.unwrap();
    let worlds = "CREATE TABLE worlds AS SELECT * FROM sequential_worlds(people, 4, id => person_id, quasi => (age, gender, education),
                  sensitive => occupation, seed => 3)";
    run(context, worlds).await.unwrap();
}

const ROLES: &str = "id => person_id, quasi => (age, gender, education), sensitive => occupation, private => true";

/// Returns a call of every function that makes releases, on every form of input.
fn calls(folder: &Path) -> Vec<String> {
    let csv = format!("'{}/people.csv'", folder.display());
    let joined = "(SELECT p.person_id, p.age, p.gender, q.education, p.occupation FROM people p JOIN people q ON p.person_id = q.person_id)";
    let grouped = "(SELECT person_id, max(age) AS age, max(gender) AS gender, max(education) AS education, max(occupation) AS occupation
                    FROM people GROUP BY person_id)";
    let mut calls = Vec::new();
    for input in ["people", "some", "in_memory", &csv, joined, grouped] {
        calls.push(format!("SELECT * FROM m_invariant({input}, 4, {ROLES}, seed => 1)"));
    }
    for (method, least, more) in [
        ("m_invariant", "4", ", previous => first"),
        ("m_distinct", "3", ", updates => updates"),
        ("mondrian", "5", ", l => 3"),
        ("mondrian", "5", ", hierarchies => trees"),
        ("anatomy", "4", ""),
        ("muco", "0.3, 4", ""),
        ("non_sequential", "4", ""),
        ("sequential_release", "worlds", ""),
    ] {
        calls.push(format!("SELECT * FROM {method}(people, {least}, {ROLES}{more}, seed => 1)"));
    }
    for (method, least, more) in [
        ("m_invariant", "4", ""),
        ("m_invariant", "4", ", previous => first"),
        ("m_distinct", "3", ", updates => updates"),
        ("anatomy", "4", ", within => gender"),
        ("muco", "0.3, 4", ""),
    ] {
        let roles = match more {
            ", within => gender" => ROLES.replace("gender, ", ""),
            _ => ROLES.to_owned(),
        };
        calls.push(format!("SELECT * FROM {method}(people, {least}, {roles}{more}, seed => 1, cells => 7)"));
    }
    calls.push(format!("SELECT * FROM mondrian(people, 5, {ROLES}, seed => 1, cells => 7)"));
    calls.push(format!("SELECT * FROM mondrian(people, 5, {ROLES}, hierarchies => trees, seed => 1, cells => 7)"));
    // Streams that come in any order, in that of time, and in one that is said; whole and in part.
    let fewer = "(SELECT day, incident, kind FROM by_day WHERE incident % 3 > 0)";
    for input in ["incidents", "timely", "by_day", fewer] {
        calls.push(format!(
            "SELECT * FROM reposition({input}, 3, time => day, window => 7, sensitive => kind, private => true, seed => 1)"
        ));
    }
    // What has to see all rows, below cells.
    let numbered =
        "(SELECT row_number() OVER (ORDER BY person_id) AS person_id, age, gender, education, occupation FROM people)";
    let least = "(SELECT person_id, age, gender, education, occupation FROM people ORDER BY person_id LIMIT 1000)";
    for input in [grouped, numbered, least, joined] {
        calls.push(format!("SELECT * FROM m_invariant({input}, 4, {ROLES}, seed => 1, cells => 5)"));
        calls.push(format!("SELECT * FROM mondrian({input}, 5, {ROLES}, seed => 1, cells => 5)"));
    }
    // One value, or one row, for all tasks; and files in order.
    let older = "(SELECT person_id, age, gender, education, occupation FROM people WHERE age >= (SELECT age FROM people WHERE person_id = 3))";
    let beside = "(SELECT p.person_id, p.age, p.gender, p.education, p.occupation FROM people p CROSS JOIN (SELECT person_id FROM people ORDER BY person_id LIMIT 1) q)";
    for input in [older, beside, "ordered"] {
        calls.push(format!("SELECT * FROM m_invariant({input}, 4, {ROLES}, seed => 1)"));
        calls.push(format!("SELECT * FROM m_invariant({input}, 4, {ROLES}, seed => 1, cells => 5)"));
    }
    // What cannot be divided, or has no encoding.
    let format = |name: &str| format!("'{}/{name}'", folder.display());
    for input in [format("people.csv.gz"), format("people.json")] {
        calls.push(format!("SELECT * FROM m_invariant({input}, 4, {ROLES}, seed => 1, cells => 5)"));
    }
    // What is around a release, and beside it.
    let release = format!("m_invariant(people, 4, {ROLES}, seed => 1)");
    calls.push(format!("SELECT group_id, count(*), min(age.lo) FROM {release} GROUP BY group_id"));
    calls.push(format!("SELECT r.*, p.birthplace FROM {release} r JOIN people p ON r.person_id = p.person_id"));
    calls.push(format!("SELECT p.person_id, r.group_id FROM {release} r CROSS JOIN (SELECT * FROM people LIMIT 3) p"));
    calls.push(format!("SELECT occupation FROM {release} UNION ALL SELECT occupation FROM people"));
    calls.push(format!("SELECT * FROM information_loss(people, (SELECT * FROM {release}))"));
    for asked in [
        "count(*), round(avg(age), 9) FROM estimated($R) WHERE age > 40 AND education < 9",
        "count(*) FROM estimated($R) WHERE age > 40",
        "round(sum(age), 6) FROM estimated($R)",
        "age, count(*) FROM estimated($R) WHERE education < 9 GROUP BY age",
    ] {
        calls.push(format!("SELECT {}", asked.replace("$R", &release)));
    }
    calls.push(format!(
        "SELECT person_id, round(risk, 9) FROM disclosure((SELECT * FROM {release}), original => people, strength => 'group', id => person_id,
         quasi => (age, gender, education), sensitive => occupation)"
    ));
    calls
}

/// The data and the seed give the same rows, wherever they are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn releases_are_the_same_rows_on_workers() {
    let here = tempdir().unwrap();
    files(here.path(), 3_000).await;
    let served = Served::start(2).await;
    for partitions in [1, 3] {
        let (alone, cluster) = (one_process(partitions), cluster(&served.urls, partitions));
        tables(&alone, here.path()).await;
        tables(&cluster, here.path()).await;
        for call in calls(here.path()) {
            let expected = sorted(&run(&alone, &call).await.unwrap_or_else(|error| panic!("{call}: {error}")));
            let found = run(&cluster, &call).await.unwrap_or_else(|error| panic!("on workers: {call}: {error}"));
            let found = sorted(&found);
            assert!(!expected.is_empty(), "{call}");
            assert!(found == expected, "{partitions} partitions: {call}: {} rows, {}", found.len(), expected.len());
        }
        // By the number of the group, which nobody sorts.
        let by_group = format!("SELECT group_id FROM m_invariant(people, 4, {ROLES}, seed => 1) ORDER BY group_id");
        assert!(!plan(&cluster, &by_group).await.contains("SortExec"));
        let batches = run(&cluster, &by_group).await.unwrap();
        let numbers = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values());
        assert!(numbers.clone().is_sorted() && numbers.count() >= 3_000, "{partitions} partitions");
    }
}

/// The scan is of several tasks, the release of one; in cells it is of several, and rows come to the task of their cell.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn explain_shows_stages() {
    let here = tempdir().unwrap();
    files(here.path(), 3_000).await;
    let served = Served::start(2).await;
    let context = cluster(&served.urls, 3);
    tables(&context, here.path()).await;
    let call = format!("SELECT * FROM m_invariant(people, 4, {ROLES}, seed => 1)");
    let text = plan(&context, &call).await;
    assert!(text.contains("DistributedExec") && text.contains("GuardExec: the input of m_invariant"), "{text}");
    assert!(text.contains("Stage 1") && text.contains("tasks=2"), "{text}");
    let explained = out_of(&run(&context, &format!("EXPLAIN {call}")).await.unwrap());
    assert!(explained.contains("Stage 1") && explained.contains("AnonymizeExec: method=m_invariant"), "{explained}");
    let cells = format!("SELECT * FROM m_invariant(people, 4, {ROLES}, seed => 1, cells => 7)");
    let text = plan(&context, &cells).await;
    let stage = text.find("CellsExec").map(|at| text[..at].rfind("Stage").map(|stage| &text[stage..at]));
    assert!(stage.flatten().is_some_and(|stage| stage.contains("tasks=2")), "{text}");
    assert!(text.contains("NetworkShuffleExec") && text.contains("Hash([cell"), "{text}");
    let analyzed = out_of(&run(&context, &format!("EXPLAIN ANALYZE {cells}")).await.unwrap());
    let line = analyzed.lines().find(|line| line.contains("CellsExec")).unwrap_or_default();
    assert!(line.contains("cells_released=7") && line.contains("output_rows="), "{analyzed}");
}

fn out_of(batches: &[RecordBatch]) -> String {
    sorted(batches).join("\n")
}

/// A session that plans for a cluster without this crate is told what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_know_us_is_refused_when_a_query_is_planned() {
    let served = Served::start(1).await;
    let builder = SessionStateBuilder::new().with_default_features();
    let builder =
        builder.with_distributed_worker_resolver(Workers::parse(&served.urls).unwrap()).with_distributed_planner();
    let context = SessionContext::new_with_state(builder.build());
    datafusion_anonymize::register_all(&context).unwrap();
    let text = error(
        &context,
        "SELECT * FROM anatomy(census(100), 3, id => person_id, quasi => age, sensitive => occupation)",
    )
    .await;
    assert!(text.contains("distributed::coordinator"), "{text}");
    assert_eq!(number(&context, "SELECT count(*) FROM generate_series(1, 10)").await, 10);
}

/// Errors say which worker, and no value.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn errors_name_the_worker_and_no_value() {
    let here = tempdir().unwrap();
    files(here.path(), 2_000).await;
    let mut served = Served::start(2).await;
    let good = served.urls.clone();
    let release = "SELECT * FROM m_invariant(people, 4, id => person_id, quasi => age, sensitive => occupation)";
    let broken = "SELECT * FROM m_invariant((SELECT person_id, age, CASE WHEN person_id = 77 THEN 'secret77'::INT ELSE occupation END AS occupation
                  FROM people), 4, id => person_id, quasi => age, sensitive => occupation)";
    for partitions in [1, 3] {
        let context = cluster(&good, partitions);
        tables(&context, here.path()).await;
        // The engine puts another join in place of this one.
        let joined = "SELECT * FROM mondrian((SELECT p.age, v.kind FROM (SELECT * FROM people WHERE person_id < 500) p LEFT JOIN
                      (SELECT person_id, CASE WHEN person_id = 77 THEN 'secret77'::INT ELSE 5 END AS kind FROM people) v ON p.person_id = v.person_id),
                      3, quasi => (age, kind), hierarchies => (SELECT 'age', '5', '6' UNION ALL SELECT 'age', '6', '6'))";
        for sql in [broken.to_owned(), format!("SELECT count(*) FROM ({broken}) WHERE age.lo > 3"), joined.to_owned()] {
            let failed = run(&context, &sql).await.unwrap_err();
            let text = failed.to_string();
            assert!(!text.contains("secret") && !text.contains("77"), "{text}");
            assert!(AnonymizeError::of(&failed).is_some(), "{text}");
        }
        // What a method refuses is a refusal here as well, however many workers it comes by.
        let many = release.replace(", 4,", ", 400,");
        let joined = format!("SELECT * FROM ({many}) r JOIN people p ON r.occupation = p.occupation");
        let cells = many.replace("occupation)", "occupation, cells => 3)");
        for sql in [&many, &joined, &cells] {
            let refused = run(&context, sql).await.unwrap_err();
            let own = AnonymizeError::of(&refused).unwrap_or_else(|| panic!("{refused}"));
            assert!(own.is_refusal() && own.function() == "m_invariant", "{refused}");
        }
        // Somebody who is there twice is found, wherever the two rows are.
        let twice = "SELECT * FROM anatomy((SELECT * FROM people UNION ALL SELECT * REPLACE ((gender + 1) % 2 AS gender) FROM people WHERE person_id = 1999),
                     4, id => person_id, quasi => age, sensitive => occupation, within => gender, cells => 2)";
        let text = error(&context, twice).await;
        assert!(text.contains("repeat") && !text.contains("1999"), "{text}");
    }
    // Nobody listens.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = format!("http://{free}");
    let context = cluster(&[gone.clone(), gone.clone()], 3);
    tables_of_files(&context, here.path()).await;
    let text = error(&context, release).await;
    assert!(text.contains(&gone) && text.contains("is not there"), "{text}");
    // One of another version.
    let other = "datafusion-anonymize 0.0.1";
    let old = served.add(Worker::from_session_builder(distributed::worker).with_version(other)).await;
    let context = cluster(&[old.clone(), old.clone()], 3);
    tables_of_files(&context, here.path()).await;
    let text = error(&context, release).await;
    assert!(text.contains(&old) && text.contains(other) && text.contains(VERSION), "{text}");
    // One without the codec.
    let bare = served.add(Worker::default()).await;
    let context = cluster(&[bare.clone(), bare.clone()], 3);
    tables_of_files(&context, here.path()).await;
    let text = error(&context, release).await;
    assert!(text.contains(&bare) && text.contains("distributed::worker"), "{text}");
}

async fn tables_of_files(context: &SessionContext, folder: &Path) {
    let sql = format!("CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION '{}/people/'", folder.display());
    run(context, &sql).await.unwrap();
}

/// Nothing waits for what a sister does not send: with a budget of a byte for what is on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cells_do_not_wait_for_each_other() {
    let here = tempdir().unwrap();
    files(here.path(), 20_000).await;
    let served = Served::start(2).await;
    let context = cluster(&served.urls, 3);
    tables_of_files(&context, here.path()).await;
    run(&context, "SET distributed.worker_connection_buffer_budget_bytes = 1").await.unwrap();
    let call =
        format!("SELECT count(*) FROM m_invariant(people, 4, {ROLES}, seed => 1, cells => 5) WHERE NOT counterfeit");
    assert_eq!(number(&context, &call).await, 20_000);
    // Numbers of tasks that nobody looks at are none for us.
    run(&context, "SET distributed.dynamic_task_count = true").await.unwrap();
    let text = error(&context, &call).await;
    assert!(text.contains("SET distributed.dynamic_task_count = false"), "{text}");
    assert_eq!(number(&context, "SELECT count(*) FROM people WHERE age > 0").await, 20_000);
}

/// A worker as a process, while it lives.
pub(super) struct Process {
    child: Child,
    pub(super) url: String,
}

impl Process {
    fn start() -> Self {
        let mut command = Command::new(program());
        command.args(["worker", "--port", "0", "--memory-limit", "1g"]);
        Self::of(command)
    }

    pub(super) fn of(mut command: Command) -> Self {
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { child, url }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ten releases by two workers that are killed in between, and during an INSERT.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn publications_survive_workers_that_are_killed() {
    let here = tempdir().unwrap();
    files(here.path(), 4_000).await;
    let declaration = |cells: &str| {
        format!(
            "CREATE EXTERNAL TABLE published (person_id BIGINT, age INT, gender INT, education INT, occupation INT)
             STORED AS PUBLICATION LOCATION '{}/published{cells}' OPTIONS ('method' 'm_invariant', 'm' '4', 'id' 'person_id',
             'quasi' 'age, gender, education', 'sensitive' 'occupation', 'cells' '{cells}')",
            here.path().display()
        )
    };
    for cells in ["1", "3"] {
        let mut processes = [Process::start(), Process::start()];
        for release in 1..=10_i64 {
            let published = release - 1;
            let urls: Vec<String> = processes.iter().map(|process| process.url.clone()).collect();
            let told = Arc::new(Mutex::new(Vec::new()));
            let context = cluster(&urls, 3);
            let teller = Arc::clone(&told);
            let progress = Progress::new(move |step| teller.lock().unwrap().push(step));
            context.state_ref().write().config_mut().set_extension(Arc::new(progress));
            tables_of_files(&context, here.path()).await;
            run(&context, &declaration(cells)).await.unwrap();
            let insert = format!(
                "INSERT INTO published SELECT person_id, age, gender, education, occupation FROM people WHERE (person_id + {release}) % 11 <> 0"
            );
            if release == 2 {
                // The snapshot comes from the workers, and what publishes is here.
                let text = plan(&context, &insert).await;
                let (head, stages) = text.split_once("Stage 1 ──").unwrap_or_else(|| panic!("{text}"));
                assert!(head.contains("PublishExec") && !stages.contains("PublishExec"), "{text}");
                assert!(stages.contains("GuardExec: the input of m_invariant"), "{text}");
            }
            if release % 3 == 0 {
                // Gone before the INSERT: it fails, has published nothing, and succeeds once the worker is back.
                processes[1] = Process::start();
                let text = error(&context, &insert).await;
                assert!(text.contains(&urls[1]) && text.contains("nothing was published"), "{text}");
                assert_eq!(number(&context, "SELECT count(*) FROM releases(published)").await, published);
                let urls: Vec<String> = processes.iter().map(|process| process.url.clone()).collect();
                let context = cluster(&urls, 3);
                tables_of_files(&context, here.path()).await;
                run(&context, &declaration(cells)).await.unwrap();
                assert!(number(&context, &insert).await > 3_000);
            } else if release % 4 == 0 {
                // In the middle, if it comes to that.
                let inserting = {
                    let (context, insert) = (context.clone(), insert.clone());
                    SpawnedTask::spawn(async move { run(&context, &insert).await.map_err(|error| error.to_string()) })
                };
                tokio::time::sleep(Duration::from_millis(15 * release as u64)).await;
                processes[0] = Process::start();
                let done = inserting.await.unwrap();
                let urls: Vec<String> = processes.iter().map(|process| process.url.clone()).collect();
                let again = cluster(&urls, 3);
                tables_of_files(&again, here.path()).await;
                run(&again, &declaration(cells)).await.unwrap();
                let there = number(&again, "SELECT count(*) FROM releases(published)").await;
                match &done {
                    Ok(_) => assert_eq!(there, published + 1),
                    // The answer can be lost after what it is about; it must not be told then that nothing was.
                    Err(error) if there == published + 1 => {
                        assert!(!error.contains("nothing was published"), "{error}");
                    }
                    Err(_) => assert_eq!(there, published),
                }
                // The same snapshot is published once.
                assert_eq!(number(&again, &insert).await > 3_000, there == published);
            } else {
                let mut steps = 0;
                assert!(number(&context, &insert).await > 3_000);
                for step in told.lock().unwrap().drain(..) {
                    steps += usize::from(
                        matches!(step, Step::Read { rows } if rows > 3_000) || matches!(step, Step::Announcing),
                    );
                }
                assert!(steps >= 2, "nothing is told of an INSERT");
            }
        }
        let alone = one_process(2);
        run(&alone, &declaration(cells)).await.unwrap();
        assert_eq!(number(&alone, "SELECT count(*) FROM releases(published)").await, 10);
        assert_eq!(number(&alone, "SELECT count(*) FROM audit(published) WHERE NOT passed").await, 0);
    }
}

/// A worker that is killed while rows come from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_is_killed_between_batches_is_an_error_at_once() {
    let here = tempdir().unwrap();
    files(here.path(), 200_000).await;
    let mut processes = [Process::start(), Process::start()];
    let urls: Vec<String> = processes.iter().map(|process| process.url.clone()).collect();
    let context = cluster(&urls, 3);
    tables_of_files(&context, here.path()).await;
    run(&context, "SET datafusion.execution.batch_size = 128").await.unwrap();
    // Not all of it is on its way before somebody asks for it.
    run(&context, "SET distributed.worker_connection_buffer_budget_bytes = 1").await.unwrap();
    let mut failures = 0;
    for _ in 0..3 {
        let call = format!("SELECT * FROM m_invariant(people, 4, {ROLES}, cells => 6)");
        let mut rows = context.sql(&call).await.unwrap().execute_stream().await.unwrap();
        let first = futures::StreamExt::next(&mut rows).await.unwrap();
        assert!(first.is_ok());
        let _ = processes[0].child.kill();
        let _ = processes[0].child.wait();
        while let Some(batch) = futures::StreamExt::next(&mut rows).await {
            if let Err(error) = batch {
                let text = error.to_string();
                assert!(text.contains("http://127.0.0.1:") && text.contains("not there"), "{text}");
                failures += 1;
                break;
            }
        }
        if failures > 0 {
            return;
        }
        processes[0] = Process::start();
    }
    panic!("rows of a killed worker came to an end as if they were all");
}

/// The shell, and the workers that it starts from another line.
#[test]
fn the_shell_on_workers() {
    let processes = [Process::start(), Process::start()];
    let urls = format!("{},{}", processes[0].url, processes[1].url);
    let root = path("");
    let alone = shell(Path::new(&root), &["-q", "-f", "sql/quickstart.sql"]);
    let cluster = shell(Path::new(&root), &["-q", "--workers", &urls, "-f", "sql/quickstart.sql"]);
    assert!(cluster.status.success(), "{}", err(&cluster));
    assert_eq!(out(&alone), out(&cluster));
    let wrong = shell(Path::new(&root), &["-q", "--workers", "localhost", "-c", "SELECT 1"]);
    assert!(!wrong.status.success() && err(&wrong).contains("http://host:port"), "{}", err(&wrong));
}

#[expect(dead_code, reason = "the example's own main")]
#[path = "../../examples/cluster.rs"]
mod example;

/// With TLS, and certificates on both sides.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_example_with_certificates() {
    from_the_root();
    let member = example::Member::read(Path::new("tests/cluster")).unwrap();
    let (mut servers, mut urls) = (JoinSet::new(), Vec::new());
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        urls.push(format!("https://localhost:{}", listener.local_addr().unwrap().port()));
        servers.spawn(member.clone().work(listener));
    }
    let context = member.coordinator(&urls).unwrap();
    let here = tempdir().unwrap();
    run(&context, &example::table(here.path())).await.unwrap();
    let release = example::release(here.path());
    let found = sorted(&run(&context, &release).await.unwrap());
    assert_eq!(found, sorted(&run(&one_process(2), &release).await.unwrap()));
    assert!(plan(&context, &release).await.contains("DistributedExec"));
    // Who shows none is not let in.
    let stranger = cluster(&urls, 2);
    let text = error(&stranger, &release).await;
    assert!(text.contains(&urls[0]) || text.contains(&urls[1]), "{text}");
}

/// A shell with workers runs what they cannot have itself, and says so.
#[test]
fn what_workers_cannot_have_runs_on_the_coordinator() {
    let here = tempdir().unwrap();
    let location = here.path().display();
    let made = shell(
        here.path(),
        &[
            "-q",
            "-c",
            &format!(
                "CREATE EXTERNAL TABLE p (person_id BIGINT, age INT, occupation INT) STORED AS PUBLICATION LOCATION '{location}/p' OPTIONS
                 ('begin' 'true', 'method' 'anatomy', 'l' '4', 'id' 'person_id', 'quasi' 'age', 'sensitive' 'occupation');
                 INSERT INTO p SELECT person_id, age, occupation FROM census(3000, seed => 1)"
            ),
        ],
    );
    assert!(made.status.success(), "{}", err(&made));
    let workers = [Process::start(), Process::start()];
    let urls = format!("{},{}", workers[0].url, workers[1].url);
    let sql = format!(
        "SET distributed.file_scan_config_bytes_per_partition = 1;
         CREATE EXTERNAL TABLE d STORED AS DELTATABLE LOCATION '{location}/p';
         SELECT count(*) AS n FROM mondrian((SELECT age FROM d), 10, quasi => age, cells => 3) WHERE group_size >= 10;
         SELECT sum(n) AS n FROM (SELECT age, count(*) AS n FROM d GROUP BY age)"
    );
    let output = shell(here.path(), &["-q", "--format", "csv", "--workers", &urls, "-c", &sql]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).ends_with("n\n3000\nn\n3000\n"), "{}", out(&output));
    assert!(err(&output).contains("runs on the coordinator"), "{}", err(&output));
}

/// A worker that has not the memory, or not the disk, says so.
#[test]
fn a_worker_without_memory_or_disk_is_an_error_with_its_url() {
    let here = tempdir().unwrap();
    let made = "COPY (SELECT * FROM census(1000000, seed => 1)) TO 'people.parquet' STORED AS PARQUET";
    assert!(shell(here.path(), &["-q", "-c", made]).status.success());
    for (limits, says) in [
        (["--memory-limit", "3m", "--mem-pool-type", "greedy"], "resources exhausted"),
        (["--memory-limit", "24m", "--disk-limit", "1m"], "disk space"),
    ] {
        let workers = [0, 1].map(|_| {
            let mut command = Command::new(program());
            command.args(["worker", "--port", "0"]).args(limits).current_dir(here.path());
            Process::of(command)
        });
        let urls = format!("{},{}", workers[0].url, workers[1].url);
        let sql = "SET distributed.file_scan_config_bytes_per_partition = 1;
             SELECT count(*) AS n FROM m_invariant('people.parquet', 4, id => person_id, quasi => age, sensitive => occupation, cells => 64)";
        let failed = shell(here.path(), &["-q", "--format", "csv", "--workers", &urls, "-c", sql]);
        let text = err(&failed);
        assert!(!failed.status.success() && text.contains("worker http://127.0.0.1:"), "{text}");
        assert!(text.to_lowercase().contains(says), "{text}");
    }
}
