//! No value of the data in an error or in a plan: every input of every function, with everything that can fail in it.

use std::io::Write;
use std::path::Path;

use datafusion::prelude::SessionContext;
use tempfile::{TempDir, tempdir};

use super::support::{err, error, number, out, run, session, shell, table};

/// Values of every secret, which are in nothing else: not in a query, not in a path.
const SECRETS: [&str; 2] = ["471147", "x4711"];

/// Expressions that inputs are made to have: they fail on a row of secrets.
const FAILING: [&str; 8] = [
    "CAST(s.word AS INT) > 0",
    "abs(CAST(s.big AS INT)) > 0",
    "s.big / (s.big - s.big) > 0",
    "to_date(s.word) > DATE '2020-01-01'",
    "abs(CAST(s.big AS DECIMAL(5, 2))) > 0",
    "length(CAST(s.far AS VARCHAR)) > 3",
    "s.big > (SELECT CAST(word AS INT) FROM secrets)",
    "CAST(s.big AS VARCHAR) IN (SELECT arrow_cast(word, 'Int64')::VARCHAR FROM secrets)",
];

/// Files that are malformed below their first thousand rows, or in their pages.
const FILES: [&str; 4] = ["short.csv", "typed.csv", "bad.json", "corrupt.parquet"];

async fn world(here: &Path) -> SessionContext {
    let context = session();
    let people = "SELECT person_id AS id, age, gender, occupation AS job, CAST(birthplace AS VARCHAR) AS town, arrow_cast(arrow_cast(19723 + person_id % 9, 'Int32'), 'Date32') AS day FROM census(400)";
    let statements = [
        format!("CREATE TABLE people AS {people}"),
        "CREATE TABLE secrets AS SELECT * FROM (VALUES ('x4711x', 471147114711, arrow_cast(arrow_cast(2147471147, 'Int32'), 'Date32'))) AS s(word, big, far)".to_owned(),
        "CREATE TABLE updates AS SELECT DISTINCT a.town AS from_value, b.town AS to_value FROM people a, people b".to_owned(),
        "CREATE TABLE costs AS SELECT DISTINCT town AS value, 2.0 AS cost FROM people".to_owned(),
        "CREATE TABLE trees AS SELECT DISTINCT 'age' AS attribute, CAST(age AS VARCHAR) AS leaf, CAST(age / 10 AS VARCHAR) || 'x' AS level1, '*' AS level2 FROM people".to_owned(),
        "CREATE TABLE released AS SELECT * FROM m_invariant(people, 2, id => id, quasi => (age, gender), sensitive => town, private => true, on_ineligible => 'withhold')".to_owned(),
        "CREATE TABLE changed AS SELECT * FROM m_distinct(people, 2, updates => updates, id => id, quasi => (age, gender), sensitive => town, private => true, on_ineligible => 'withhold')".to_owned(),
        "CREATE TABLE worlds AS SELECT * FROM sequential_worlds(people, 2, id => id, quasi => (age, gender), sensitive => town)".to_owned(),
        "CREATE TABLE treed AS SELECT * FROM mondrian(people, 3, quasi => (age, gender), sensitive => town, hierarchies => trees)".to_owned(),
        "CREATE TABLE drawn AS SELECT * FROM muco(people, 0.5, 3, id => id, quasi => (age, gender), sensitive => job, private => true)".to_owned(),
    ];
    for sql in statements {
        run(&context, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let mut rows = String::from("n,t\n");
    let mut json = String::new();
    for row in 0..1500 {
        rows.push_str(&format!("{row},a\n"));
        json.push_str(&format!("{{\"n\": {row}}}\n"));
    }
    std::fs::write(here.join("short.csv"), format!("{rows}471147\n")).unwrap();
    std::fs::write(here.join("typed.csv"), format!("{rows}x4711x,b\n")).unwrap();
    std::fs::write(here.join("bad.json"), format!("{json}{{\"n\": \"x4711x\"}}\n")).unwrap();
    let parquet = here.join("corrupt.parquet").display().to_string();
    run(&context, &format!("COPY (SELECT value + 471147110000 AS n FROM generate_series(0, 99)) TO '{parquet}'"))
        .await
        .unwrap();
    let mut bytes = std::fs::read(&parquet).unwrap();
    bytes[4..24].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::File::create(&parquet).unwrap().write_all(&bytes).unwrap();
    context
}

/// Calls with one input left open, and the table that belongs there.
fn calls() -> Vec<(&'static str, &'static str, String)> {
    let roles = "id => id, quasi => (age, gender), sensitive => town";
    let plain = "quasi => (age, gender), sensitive => town";
    let call = |function, relation, sql: String| (function, relation, format!("SELECT * FROM {sql}"));
    vec![
        call("mondrian", "people", format!("mondrian({{}}, 3, {plain})")),
        call("mondrian", "trees", format!("mondrian(people, 3, {plain}, hierarchies => {{}})")),
        call("anatomy", "people", format!("anatomy({{}}, 2, {plain})")),
        call("m_invariant", "people", format!("m_invariant({{}}, 2, {roles})")),
        call("m_invariant", "released", format!("m_invariant(people, 2, {roles}, previous => {{}})")),
        call("m_invariant", "trees", format!("m_invariant(people, 2, {roles}, hierarchies => {{}})")),
        call("m_distinct", "people", format!("m_distinct({{}}, 2, updates => updates, {roles})")),
        call("m_distinct", "changed", format!("m_distinct(people, 2, updates => updates, {roles}, previous => {{}})")),
        call("m_distinct", "updates", format!("m_distinct(people, 2, updates => {{}}, {roles})")),
        call("muco", "people", "muco({}, 0.5, 3, quasi => (age, gender), sensitive => job)".to_owned()),
        call("sequential_worlds", "people", format!("sequential_worlds({{}}, 2, {roles})")),
        call("sequential_worlds", "worlds", format!("sequential_worlds(people, 2, {roles}, worlds => {{}})")),
        call("sequential_worlds", "trees", format!("sequential_worlds(people, 2, {roles}, hierarchies => {{}})")),
        call("sequential_release", "people", format!("sequential_release({{}}, worlds, {roles})")),
        call("sequential_release", "worlds", format!("sequential_release(people, {{}}, {roles})")),
        call(
            "sequential_release",
            "trees",
            format!("sequential_release(people, worlds, {roles}, hierarchies => {{}})"),
        ),
        call("non_sequential", "people", format!("non_sequential({{}}, 2, {plain})")),
        call("reposition", "people", "reposition({}, 2, day, 3, town, finish => true)".to_owned()),
        call(
            "reposition",
            "costs",
            "reposition(people, 2, day, 3, town, suppress_cost => {}, finish => true)".to_owned(),
        ),
        call("information_loss", "people", "information_loss({}, released, quasi => (age, gender))".to_owned()),
        call("information_loss", "released", "information_loss(people, {}, quasi => (age, gender))".to_owned()),
        call(
            "information_loss",
            "trees",
            "information_loss(people, treed, quasi => (age, gender), hierarchies => {})".to_owned(),
        ),
        call("query_accuracy", "people", "query_accuracy({}, released)".to_owned()),
        call("disclosure", "released", format!("disclosure({{}}, original => people, {roles})")),
        call("disclosure", "people", format!("disclosure(released, original => {{}}, {roles})")),
        call("disclosure", "people", format!("disclosure(released, background => {{}}, {roles})")),
        call("disclosure", "updates", format!("disclosure(released, original => people, updates => {{}}, {roles})")),
        call("disclosure", "trees", format!("disclosure(treed, original => people, hierarchies => {{}}, {roles})")),
        call(
            "disclosure",
            "people",
            "disclosure(drawn, original => {}, id => id, quasi => (age, gender), sensitive => job, p_match => 0.7)"
                .to_owned(),
        ),
        call(
            "disclosure",
            "drawn",
            "disclosure({}, original => people, id => id, quasi => (age, gender), sensitive => job, p_match => 0.7)"
                .to_owned(),
        ),
    ]
}

fn says_nothing(text: &str, sql: &str) {
    // Times of day have all kinds of digits.
    let is_time = |word: &&str| word.matches(':').count() == 2 && word.starts_with(|c: char| c.is_ascii_digit());
    for word in text.split_whitespace().filter(|word| !is_time(word)) {
        assert!(!SECRETS.iter().any(|secret| word.contains(secret)), "{word}: {sql}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_expressions() {
    let here = tempdir().unwrap();
    let context = world(here.path()).await;
    for (function, relation, sql) in calls() {
        for failing in FAILING {
            let input = format!("(SELECT r.* FROM {relation} r, secrets s WHERE {failing})");
            let sql = sql.replace("{}", &input);
            let text = error(&context, &sql).await;
            says_nothing(&text, &sql);
            assert!(text.contains(function), "{sql}\n{text}");
            assert!(text.contains("not shown"), "{sql}\n{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_files() {
    let here = tempdir().unwrap();
    let context = world(here.path()).await;
    for (function, relation, sql) in calls() {
        for file in FILES {
            let path = here.path().join(file).display().to_string();
            let input = format!("(SELECT r.* FROM {relation} r, '{path}' f WHERE f.n > 0)");
            let sql = sql.replace("{}", &input);
            let text = error(&context, &sql).await;
            says_nothing(&text, &sql);
            assert!(text.contains(function), "{sql}\n{text}");
            assert!(text.contains(&path), "the file has no name: {sql}\n{text}");
            match file {
                "short.csv" => assert!(text.contains("line 1502: 2 fields were expected, and there are 1"), "{text}"),
                "typed.csv" => assert!(text.contains("line 1502, column 1"), "{text}"),
                "bad.json" => assert!(text.contains("is no JSON"), "{text}"),
                _ => assert!(text.contains("is no Parquet file, or a damaged one"), "{text}"),
            }
        }
    }
}

/// Smallest and greatest values are in the statistics of Parquet files; a join's filter has the keys that it found.
#[tokio::test(flavor = "multi_thread")]
async fn plans() {
    let here = tempdir().unwrap();
    let context = world(here.path()).await;
    let file = |name: &str| here.path().join(name).display().to_string();
    let secret = file("secret.parquet");
    let copy = "COPY (SELECT value + 471147110000 AS key, 'x4711' || value AS word, value % 7 AS small FROM generate_series(0, 99)) TO";
    run(&context, &format!("{copy} '{secret}'")).await.unwrap();
    let joined = |relation: &str| {
        format!(
            "(SELECT r.* FROM {relation} r JOIN (SELECT a.small FROM '{secret}' a JOIN '{secret}' b ON a.key = b.key AND a.word = b.word
              WHERE a.key <= (SELECT max(key) FROM '{secret}') AND b.word >= (SELECT min(word) FROM '{secret}') ORDER BY a.key, a.word, a.small LIMIT 1) s
              ON s.small < 100)"
        )
    };
    for option in ["true", "false"] {
        run(&context, &format!("SET datafusion.explain.show_statistics = {option}")).await.unwrap();
        for (_, relation, sql) in calls() {
            let sql = sql.replace("{}", &joined(relation));
            for explain in
                ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE", "EXPLAIN FORMAT TREE"]
            {
                let sql = format!("{explain} {sql}");
                let text = table(&context, &sql).await;
                says_nothing(&text, &sql);
                if explain != "EXPLAIN FORMAT TREE" {
                    assert!(text.contains("secret.parquet"), "the plan of the input is to be seen: {sql}\n{text}");
                }
            }
        }
    }
}

/// Publications hide secrets of inserted rows, of relations, and of their ledger.
#[cfg(feature = "publication")]
#[tokio::test(flavor = "multi_thread")]
async fn publications() {
    let here = tempdir().unwrap();
    let context = world(here.path()).await;
    let declare = async |name: &str, options: &str| {
        let location = here.path().join(name).display().to_string();
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} (id BIGINT, age BIGINT, gender BIGINT, town VARCHAR) STORED AS PUBLICATION LOCATION '{location}/'
             OPTIONS ('m' '2', 'id' 'id', 'quasi' 'age, gender', 'sensitive' 'town', 'on_ineligible' 'withhold', {options})"
        );
        run(&context, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    declare("good", "'method' 'm_invariant'").await;
    let insert =
        |name: &str, relation: &str| format!("INSERT INTO {name} SELECT id, age, gender, town FROM {relation}");
    let mut failing: Vec<String> =
        FAILING.iter().map(|failing| format!("(SELECT r.* FROM people r, secrets s WHERE {failing})")).collect();
    failing.extend(
        FILES.map(|file| format!("(SELECT r.* FROM people r, '{}' f WHERE f.n > 0)", here.path().join(file).display())),
    );
    failing.push("(SELECT s.big + r.id AS id, age, gender, CAST(CAST(s.word AS INT) AS VARCHAR) AS town FROM people r, secrets s)".to_owned());
    for relation in &failing {
        let sql = insert("good", relation);
        let text = error(&context, &sql).await;
        says_nothing(&text, &sql);
        assert!(text.contains("publication: "), "{text}");
    }
    // The declared type, which the INSERT casts to.
    let sql = "INSERT INTO good SELECT s.word AS id, age, gender, town FROM people, secrets s";
    says_nothing(&error(&context, sql).await, sql);
    for (place, condition) in FAILING.iter().enumerate() {
        for (method, option, relation) in
            [("m_invariant", "hierarchies", "trees"), ("m_distinct", "updates", "updates")]
        {
            let (view, name) = (format!("{option}_view{place}"), format!("{option}_{place}"));
            let sql = format!("CREATE VIEW {view} AS SELECT r.* FROM {relation} r, secrets s WHERE {condition}");
            run(&context, &sql).await.unwrap();
            declare(&name, &format!("'method' '{method}', '{option}' '{view}'")).await;
            let sql = insert(&name, "people");
            let text = error(&context, &sql).await;
            says_nothing(&text, &sql);
            assert!(text.contains(method) && text.contains("not shown"), "{text}");
        }
    }

    // Identifiers and values are in the ledger's files, too.
    let secret = here.path().join("secret.parquet").display().to_string();
    let copy = "COPY (SELECT id + 471147110000 AS id, age, gender, 'x4711' || town AS town FROM people) TO";
    run(&context, &format!("{copy} '{secret}'")).await.unwrap();
    run(&context, &insert("good", &format!("'{secret}' WHERE id % 3 < 2"))).await.unwrap();
    run(&context, "SET datafusion.explain.show_statistics = true").await.unwrap();
    for explain in ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE"] {
        let rows = format!("'{secret}' WHERE id <= (SELECT max(id) FROM '{secret}') AND id % 3 > 0");
        let sql = format!("{explain} {}", insert("good", &rows));
        let text = table(&context, &sql).await;
        says_nothing(&text, &sql);
        assert!(text.contains("PublishExec"), "{text}");
        if explain == "EXPLAIN VERBOSE" {
            assert!(text.contains("Rows="), "numbers of rows stay: {text}");
        }
    }
    assert!(number(&context, "SELECT count(*) FROM releases(good)").await >= 2);
}

/// Times beyond the calendar fail in our own code.
#[tokio::test(flavor = "multi_thread")]
async fn dates_beyond_the_calendar() {
    let context = session();
    let far = "SELECT value AS id, arrow_cast(arrow_cast(2147471100 + value, 'Int32'), 'Date32') AS day, arrow_cast(9223372036854711 + value, 'Timestamp(Second, None)') AS at, 'v' || (value % 5) AS town FROM generate_series(0, 49)";
    run(&context, &format!("CREATE TABLE far AS {far}")).await.unwrap();
    for column in ["day", "at"] {
        for sql in [
            "sequential_worlds(far, 2, id => id, quasi => {}, sensitive => town)",
            "non_sequential(far, 2, quasi => {}, sensitive => town)",
            "mondrian(far, 3, quasi => {}, sensitive => town)",
            "anatomy(far, 2, quasi => {}, sensitive => town)",
            "m_invariant(far, 2, id => id, quasi => {}, sensitive => town)",
            "muco(far, 0.5, 3, quasi => ({}, id), sensitive => town)",
            "reposition(far, 2, {}, 3, town, every => INTERVAL '1 day', finish => true)",
        ] {
            let sql = format!("SELECT count(*) FROM {}", sql.replace("{}", column));
            if let Err(error) = run(&context, &sql).await {
                let text = error.strip_backtrace();
                assert!(!text.contains("21474") && !text.contains("92233") && !text.contains("5879"), "{sql}\n{text}");
            }
        }
    }
}

async fn floats(here: &TempDir, context: &SessionContext) -> String {
    let file = here.path().join("floats.parquet").display().to_string();
    let rows = "SELECT value AS id, CASE WHEN value = 1 THEN 'NaN'::DOUBLE ELSE 1.1 END AS x, 'v' || value AS town FROM generate_series(0, 2)";
    run(context, &format!("COPY ({rows}) TO '{file}'")).await.unwrap();
    file
}

/// NaN is read correctly, though DataFusion takes equal ends for a constant column.
#[tokio::test(flavor = "multi_thread")]
async fn nan_is_read_from_parquet_files() {
    let here = tempdir().unwrap();
    let context = session();
    let file = floats(&here, &context).await;
    let nan = async |sql: &str| number(&context, &format!("SELECT count(*) FROM {sql}")).await;
    for input in [format!("'{file}'"), format!("(SELECT * FROM '{file}' WHERE id >= 0)")] {
        let release = format!("anatomy({input}, 2, quasi => x, sensitive => town, seed => 1) WHERE isnan(x)");
        assert_eq!(nan(&release).await, 1, "{input}");
    }
}

/// The same for every query of a session with our rule.
#[tokio::test(flavor = "multi_thread")]
async fn nan_is_read_by_every_query_with_the_rule() {
    use std::sync::Arc;

    use datafusion::execution::SessionStateBuilder;
    use datafusion_anonymize::KeepNan;

    let here = tempdir().unwrap();
    let file = floats(&here, &session()).await;
    let state =
        SessionStateBuilder::new().with_default_features().with_physical_optimizer_rule(Arc::new(KeepNan)).build();
    let context = SessionContext::new_with_state(state).enable_url_table();
    assert_eq!(number(&context, &format!("SELECT count(*) FROM '{file}' WHERE isnan(x)")).await, 1);
}

/// Through the shell, whose errors go to logs of jobs: statements that call none of our functions.
#[test]
fn statements_of_the_shell_without_our_functions() {
    let here = tempdir().unwrap();
    std::fs::write(here.path().join("people.csv"), "word,big\nx4711x,471147114711\n").unwrap();
    let declare = |columns: &str| {
        format!(
            "CREATE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION 'people.csv' OPTIONS ('format.has_header' 'true')"
        )
    };
    let statements = [
        "CREATE TABLE t AS SELECT CAST(word AS INT) AS n FROM 'people.csv'".to_owned(),
        "CREATE TABLE t AS SELECT CAST(word AS DATE) AS n FROM 'people.csv'".to_owned(),
        "SELECT CAST(big AS INT) FROM 'people.csv'".to_owned(),
        "SELECT big / (big - big) FROM 'people.csv'".to_owned(),
        "SELECT to_timestamp(word) FROM 'people.csv'".to_owned(),
        "SELECT arrow_cast(word, 'Decimal128(5, 2)') FROM 'people.csv'".to_owned(),
        "COPY (SELECT CAST(word AS DOUBLE) FROM 'people.csv') TO 'out.csv'".to_owned(),
        "EXPLAIN ANALYZE SELECT CAST(word AS INT) FROM 'people.csv'".to_owned(),
        format!("{}; SELECT * FROM t", declare("word INT, big BIGINT")),
        format!("{}; SELECT * FROM t", declare("word TIMESTAMP, big BIGINT")),
        format!("{}; SELECT * FROM t", declare("word DECIMAL(5, 2), big BIGINT")),
        format!("{}; SELECT count(*) FROM t WHERE big > 0", declare("word VARCHAR, big INT")),
    ];
    for statement in statements {
        let output = shell(here.path(), &["-q", "-c", &statement]);
        let text = err(&output);
        assert!(!output.status.success() && text.contains("not shown"), "{statement}\n{text}");
        says_nothing(&text, &statement);
    }
    // The cure that is named for casts.
    let output = shell(here.path(), &["-q", "-c", "SELECT CAST(word AS INT) FROM 'people.csv'"]);
    assert!(err(&output).contains("WHERE word IS NOT NULL AND TRY_CAST(word AS INT) IS NULL"), "{}", err(&output));
    let cure = "SELECT count(*) AS n FROM 'people.csv' WHERE word IS NOT NULL AND try_cast(word AS INT) IS NULL";
    assert!(out(&shell(here.path(), &["-q", "--format", "csv", "-c", cure])).contains("n\n1\n"));
    // What is about names is told as it is.
    for (statement, told) in [
        ("CREATE TABLE a AS SELECT 1; CREATE TABLE a AS SELECT 2", "Table 'a' already exists"),
        ("DROP TABLE nothing", "doesn't exist"),
        ("SELECT * FROM nothing", "not found"),
        ("SELECT nothing FROM 'people.csv'", "nothing"),
        ("SET datafusion.execution.batch_size = 'many'", "batch_size"),
    ] {
        let text = err(&shell(here.path(), &["-q", "-c", statement]));
        assert!(text.contains(told) && !text.contains("not shown"), "{statement}\n{text}");
    }
}
