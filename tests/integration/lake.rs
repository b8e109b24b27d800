//! Delta tables as inputs: what was deleted or replaced in them must not be published.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use deltalake_core::DeltaTable;
use deltalake_core::protocol::SaveMode;
use tempfile::tempdir;
use url::Url;

use super::deletion_vectors::delete_rows;
use super::program::program;
use super::python::environment;
use super::support::{error, number, path, run, session};

/// Returns the people with these identifiers, who have one of four values.
fn people(ids: std::ops::Range<i64>) -> RecordBatch {
    let ages = ids.clone().map(|id| 20 + id % 50);
    let diseases = ids.clone().map(|id| ["flu", "ulcer", "cold", "cough"][id as usize % 4]);
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
        ("age", Arc::new(Int64Array::from_iter_values(ages))),
        ("disease", Arc::new(StringArray::from_iter_values(diseases))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Returns a table that had 1,000 people and was overwritten with 100 others; then 10 were added.
async fn begun(directory: &Path) -> DeltaTable {
    std::fs::create_dir_all(directory).unwrap();
    let location = Url::from_directory_path(directory).unwrap();
    let empty = DeltaTable::try_from_url(location).await.unwrap();
    let first = empty.write([people(0..1000)]).await.unwrap();
    let second = first.write([people(2000..2100)]).with_save_mode(SaveMode::Overwrite).await.unwrap();
    second.write([people(3000..3010)]).with_save_mode(SaveMode::Append).await.unwrap()
}

/// Makes the same table, adds 10 rows, and deletes 10.
async fn overwritten(directory: &Path) {
    let more = begun(directory).await.write([people(3010..3020)]).with_save_mode(SaveMode::Append).await.unwrap();
    more.delete().with_predicate("id < 2010").await.unwrap();
}

/// People who count.
const PEOPLE: i64 = 110;

fn shell(directory: &Path, sql: &[&str]) -> Output {
    let arguments = ["-q", "--format", "csv", "-c"];
    let mut command = Command::new(program());
    command.current_dir(directory).env_remove("RUST_BACKTRACE").args(arguments).args(sql).output().unwrap()
}

/// A folder of files of several formats is not read in part.
#[test]
fn folders_of_several_formats_are_refused() {
    let here = tempdir().unwrap();
    std::fs::create_dir(here.path().join("days")).unwrap();
    std::fs::write(here.path().join("days/b.csv"), "a\n2\n").unwrap();
    assert_eq!(printed(here.path(), &["SELECT * FROM 'days/'"]), "a\n2\n");
    std::fs::write(here.path().join("days/README"), "days").unwrap();
    let message = refused(here.path(), &["SELECT * FROM 'days/'"]);
    assert!(
        message.contains("names in folder 'days' do not say what is in the files")
            && message.contains("STORED AS CSV LOCATION 'days/*.csv'"),
        "{message}"
    );
    assert_eq!(printed(here.path(), &["SELECT * FROM 'days/*.csv'"]), "a\n2\n");
    std::fs::remove_file(here.path().join("days/README")).unwrap();
    printed(here.path(), &["COPY (SELECT 1::BIGINT AS a) TO 'days/a.parquet'"]);
    let message = refused(here.path(), &["SELECT * FROM 'days/'"]);
    assert!(message.contains("have several formats (csv, parquet)") && message.contains("days/*.csv"), "{message}");
    for hidden in ["_z.csv", ".z.csv"] {
        std::fs::rename(here.path().join("days/b.csv"), here.path().join("days").join(hidden)).unwrap();
        assert!(refused(here.path(), &["SELECT * FROM 'days/'"]).contains("have several formats"), "{hidden}");
        std::fs::rename(here.path().join("days").join(hidden), here.path().join("days/b.csv")).unwrap();
    }
    std::fs::write(here.path().join("days/z.json"), "").unwrap();
    assert!(refused(here.path(), &["SELECT * FROM 'days/'"]).contains("(csv, json, parquet)"));
    assert_eq!(printed(here.path(), &["SELECT * FROM 'days/*.csv'"]), "a\n2\n");
    assert_eq!(printed(here.path(), &["SELECT * FROM 'days/*.parquet'"]), "a\n1\n");
}

fn printed(directory: &Path, sql: &[&str]) -> String {
    let output = shell(directory, sql);
    assert!(output.status.success(), "{sql:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(directory: &Path, sql: &[&str]) -> String {
    let output = shell(directory, sql);
    assert!(!output.status.success(), "{sql:?} should fail: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

const CALL: &str = "4, 2, id => id, quasi => age, sensitive => disease";

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_reads_delta_tables_by_their_paths() {
    let here = tempdir().unwrap();
    overwritten(&here.path().join("lake/people")).await;
    assert!(std::fs::read_dir(here.path().join("lake/people")).unwrap().count() > 4, "files of several versions");
    for name in ["lake/people/", "lake/people"] {
        let sql = format!("SELECT count(*) AS n, min(id) >= 2010 AS newest FROM '{name}'");
        assert_eq!(printed(here.path(), &[&sql]), format!("n,newest\n{PEOPLE},true\n"));
        let sql = format!("SELECT count(*) AS n FROM mondrian('{name}', {CALL}, private => true) WHERE id >= 2010");
        assert_eq!(printed(here.path(), &[&sql]), format!("n\n{PEOPLE}\n"));
    }
    let url = Url::from_directory_path(here.path().join("lake/people")).unwrap();
    let sql = format!("SELECT count(*) AS n FROM '{url}'");
    assert_eq!(printed(here.path(), &[&sql]), format!("n\n{PEOPLE}\n"));
    // By pattern, or a folder in it, nobody can mean the table.
    for name in ["lake/people/*.parquet", "lake/people/part-*", "lake/people/_delta_log/"] {
        let text = refused(here.path(), &[&format!("SELECT count(*) FROM '{name}'")]);
        assert!(text.contains("belong to a Delta table") && text.contains("STORED AS DELTATABLE"), "{name}: {text}");
    }
    // A file of it can have people who were deleted.
    let file = std::fs::read_dir(here.path().join("lake/people")).unwrap().map(|file| file.unwrap().path());
    let file = file.into_iter().find(|file| file.extension().is_some_and(|ending| ending == "parquet")).unwrap();
    let text = refused(here.path(), &[&format!("SELECT count(*) FROM '{}'", file.display())]);
    assert!(text.contains("belong to a Delta table"), "{text}");
    // Folders beside a table are folders.
    printed(
        here.path(),
        &["COPY (SELECT 1 AS x) TO 'lake/loose.parquet'", "SELECT x FROM 'lake/'", "SELECT x FROM 'lake/*.parquet'"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn external_tables_are_delta_tables_or_refused() {
    let here = tempdir().unwrap();
    overwritten(&here.path().join("lake/people")).await;
    let create = "CREATE EXTERNAL TABLE people STORED AS DELTATABLE LOCATION 'lake/people/'";
    let counted = printed(here.path(), &[create, "SELECT count(*) AS n FROM people WHERE id >= 2010"]);
    assert_eq!(counted, format!("n\n{PEOPLE}\n"));
    for (sql, expected) in [
        ("CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'lake/people/'", "belong to a Delta table"),
        ("CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'lake/people'", "belong to a Delta table"),
        ("CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'lake/people/*.parquet'", "belong to a Delta table"),
        ("CREATE EXTERNAL TABLE people STORED AS DELTATABLE LOCATION 'lake/nobody/'", "there is no Delta table"),
        ("CREATE EXTERNAL TABLE people (id BIGINT) STORED AS DELTATABLE LOCATION 'lake/people/'", "leave out columns"),
    ] {
        let text = refused(here.path(), &[sql]);
        assert!(text.contains(expected), "{sql}: {text}");
    }
    let publication = "CREATE EXTERNAL TABLE published (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'public/'
         OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    let inserted = printed(here.path(), &[publication, "INSERT INTO published SELECT * FROM 'lake/people/'"]);
    assert_eq!(inserted, format!("count\n{PEOPLE}\n"));
}

/// Rows that were deleted after a table was named are not read.
#[tokio::test(flavor = "multi_thread")]
async fn every_query_reads_the_newest_version() {
    let here = tempdir().unwrap();
    let directory = here.path().join("people");
    overwritten(&directory).await;
    let context = datafusion_anonymize::enable_url_table(SessionContext::new());
    datafusion_anonymize::register_all(&context).unwrap();
    let name = directory.display();
    run(&context, &format!("CREATE EXTERNAL TABLE people STORED AS DELTATABLE LOCATION '{name}'")).await.unwrap();
    run(&context, &format!("CREATE VIEW by_path AS SELECT * FROM '{name}/'")).await.unwrap();
    let location = Url::from_directory_path(&directory).unwrap();
    let table = DeltaTable::try_from_url(location).await.unwrap();
    table.delete().with_predicate("id < 3000").await.unwrap();
    for table in ["people", "by_path"] {
        assert_eq!(number(&context, &format!("SELECT count(*) FROM {table}")).await, 20, "{table}");
        let release =
            format!("SELECT count(*) FROM m_invariant({table}, 2, id => id, quasi => age, sensitive => disease)");
        assert_eq!(number(&context, &release).await, 20, "{table}");
    }
}

/// Embedding engines decide themselves how folders are read; what is anonymized must not be wrong.
#[tokio::test(flavor = "multi_thread")]
async fn loose_files_of_a_delta_table_are_not_anonymized() {
    let here = tempdir().unwrap();
    let directory = here.path().join("people");
    begun(&directory).await;
    let context = session();
    let folder = format!("{}/", directory.display());
    context.register_parquet("loose", &folder, ParquetReadOptions::default()).await.unwrap();
    run(&context, &format!("CREATE VIEW seen AS SELECT * FROM '{folder}'")).await.unwrap();
    let everybody = number(&context, "SELECT count(*) FROM loose").await;
    assert!(everybody > 1000, "DataFusion reads all versions: {everybody}");
    let file = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
    let file = file.into_iter().find(|file| file.extension().is_some_and(|ending| ending == "parquet")).unwrap();
    let file = format!("'{}'", file.display());
    for input in ["loose", "seen", "(SELECT * FROM loose WHERE id > 0)", &format!("'{folder}'"), &file] {
        let text = error(&context, &format!("SELECT count(*) FROM mondrian({input}, {CALL})")).await;
        assert!(text.contains("mondrian: argument input: the files at") && text.contains("Delta table"), "{text}");
    }
    let publication = format!(
        "CREATE EXTERNAL TABLE published (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION '{}/public/'
         OPTIONS ('method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')",
        here.path().display()
    );
    run(&context, &publication).await.unwrap();
    for input in ["loose", "seen", "(SELECT l.* FROM loose l JOIN loose r ON l.id = r.id)"] {
        let text = error(&context, &format!("INSERT INTO published SELECT * FROM {input}")).await;
        assert!(text.contains("publication: the files at") && text.contains("Delta table"), "{text}");
    }
    assert!(!here.path().join("public").exists(), "nothing was written");
    // The public table of a publication is a Delta table like any other.
    run(&context, &format!("CREATE EXTERNAL TABLE people STORED AS DELTATABLE LOCATION '{folder}'")).await.unwrap();
    run(&context, "INSERT INTO published SELECT * FROM people").await.unwrap();
    run(&context, "INSERT INTO published SELECT id, age + 1, disease FROM people").await.unwrap();
    let public = format!("{}/public/", here.path().display());
    run(&context, &format!("CREATE EXTERNAL TABLE newest STORED AS DELTATABLE LOCATION '{public}'")).await.unwrap();
    let [newest, release] = ["newest", "release(published)"].map(|table| format!("SELECT count(*) FROM {table}"));
    assert_eq!(number(&context, &newest).await, number(&context, &release).await);
    let text = error(&context, &format!("SELECT count(*) FROM estimated('{public}')")).await;
    assert!(text.contains("estimated: argument release: the files at"), "{text}");
    assert_eq!(number(&context, "SELECT round(count(*)) FROM estimated(newest)").await, PEOPLE);
}

/// Tables of other writers: partitions, several files, a checkpoint, rows deleted by another implementation.
#[test]
fn tables_of_the_python_package_are_read_as_it_reads_them() {
    let Some(python) = environment("deltalake", &["deltalake==1.6.6", "pyarrow==26.0.1"], "deltalake, pyarrow") else {
        return;
    };
    let here = tempdir().unwrap();
    let written =
        Command::new(python).arg(path("tests/delta/write.py")).arg(here.path().join("people")).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let expected = String::from_utf8(written.stdout).unwrap();
    let sql = "SELECT year, count(*) AS n, sum(id) AS ids FROM 'people/' GROUP BY year ORDER BY year";
    assert_eq!(printed(here.path(), &[sql]), format!("year,n,ids\n{expected}"));
    let text = refused(here.path(), &["SELECT count(*) FROM 'people/year=2024/'"]);
    let (_, cure) = text.split_once("Name the table: ").unwrap();
    let cure = cure.split_once(" in the shell").unwrap().0.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(cure, "SELECT * FROM 'people/' WHERE year = '2024'", "{text}");
    printed(here.path(), &[&cure]);
}

/// Tables as Spark writes them: rows are deleted by a vector beside a file that still has them.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_rows_are_not_read() {
    let here = tempdir().unwrap();
    let directory = here.path().join("people");
    let location = Url::from_directory_path({
        std::fs::create_dir_all(&directory).unwrap();
        &directory
    })
    .unwrap();
    let empty = DeltaTable::try_from_url(location).await.unwrap();
    empty.write([people(0..40)]).await.unwrap();
    delete_rows(&directory, 1, &[0, 3, 4, 7, 39]);
    let left = "n,ids\n35,727\n";
    assert_eq!(printed(here.path(), &["SELECT count(*) AS n, sum(id) AS ids FROM 'people/'"]), left);
    // By functions, alone and below other nodes, with filters, joins and several threads.
    for input in [
        "'people/'",
        "(SELECT * FROM 'people/' WHERE id >= 0 ORDER BY id)",
        "(SELECT a.* FROM 'people/' a JOIN 'people/' b ON a.id = b.id)",
        "(SELECT * FROM 'people/' UNION ALL SELECT * FROM 'people/' WHERE id < 0)",
    ] {
        let sql = format!("SELECT count(*) AS n, sum(id) AS ids FROM mondrian({input}, {CALL}, private => true)");
        assert_eq!(printed(here.path(), &["SET datafusion.execution.target_partitions = 4", &sql]), left, "{input}");
    }
    let profile = "SELECT \"distinct\" AS n FROM profile('people/') WHERE columns = 'id'";
    assert_eq!(printed(here.path(), &[profile]), "n\n35\n");
    let explained = printed(here.path(), &[&format!("EXPLAIN SELECT * FROM mondrian('people/', {CALL})")]);
    assert!(explained.contains("DeltaScanExec"), "{explained}");
    let publication = "CREATE EXTERNAL TABLE published (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'public/'
         OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '2', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    let inserted = printed(here.path(), &[publication, "INSERT INTO published SELECT id, age, disease FROM 'people/'"]);
    assert_eq!(inserted, "count\n35\n");
}
