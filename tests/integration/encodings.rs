//! Encodings of releases' columns in Parquet files that COPY writes.

use std::collections::BTreeMap;
use std::fs::File;

use datafusion::parquet::basic::Encoding;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::prelude::SessionContext;
use tempfile::TempDir;

use super::support::{err, number, run, session, shell};

/// Returns the encodings of each column of a file, and whether it has statistics.
fn columns(file: &str) -> BTreeMap<String, (Vec<Encoding>, bool)> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let group = reader.metadata().row_group(0);
    let column = |column: &datafusion::parquet::file::metadata::ColumnChunkMetaData| {
        (column.column_path().string(), (column.encodings().collect(), column.statistics().is_some()))
    };
    group.columns().iter().map(column).collect()
}

async fn copied(context: &SessionContext, here: &TempDir, query: &str, options: &str) -> String {
    let file = here.path().join("rows.parquet").display().to_string();
    run(context, &format!("COPY ({query}) TO '{file}' {options}")).await.unwrap();
    file
}

const RELEASE: &str = "SELECT * FROM m_invariant(census(3000), 5, person_id, (age, gender), occupation)";
const HISTOGRAMS: &str = "SELECT * FROM anatomy(census(3000), 5, quasi => (age, gender), sensitive => occupation)";

fn has_dictionary((encodings, _): &(Vec<Encoding>, bool)) -> bool {
    encodings.iter().any(|encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY))
}

/// Numbers of groups have no dictionary, and counts in lists neither; nor have lists statistics. All else is as it always was, and what is read
/// again is what was written.
#[tokio::test]
async fn releases_are_written_as_suits_them() {
    let (context, here) = (session(), tempfile::tempdir().unwrap());
    for order in ["", " ORDER BY group_id"] {
        let file = copied(&context, &here, &format!("{RELEASE}{order}"), "").await;
        let columns = columns(&file);
        assert!(columns["group_id"].0.contains(&Encoding::DELTA_BINARY_PACKED) && columns["group_id"].1);
        for (name, column) in &columns {
            assert_eq!(has_dictionary(column), name != "group_id", "{name}");
        }
        let groups = format!("SELECT count(DISTINCT group_id) FROM '{file}' WHERE group_id > 0");
        assert_eq!(
            number(&context, &groups).await,
            number(&context, &format!("SELECT max(group_id) FROM '{file}'")).await
        );
    }
    let file = copied(&context, &here, HISTOGRAMS, "").await;
    let columns = columns(&file);
    let [count, value] = ["count", "value"].map(|leaf| &columns[&format!("occupation.list.item.{leaf}")]);
    assert!(!has_dictionary(count) && !count.1 && has_dictionary(value) && !value.1, "{count:?} {value:?}");
    assert!(columns["age"].1 && has_dictionary(&columns["age"]));
    let wrong = format!(
        "SELECT count(*) FROM (SELECT group_id, max(group_size) AS size, max(people) AS people FROM
         (SELECT group_id, group_size, unnest(occupation)['count'] AS n,
          array_length(occupation) AS people FROM '{file}') GROUP BY group_id) WHERE size <> people"
    );
    assert_eq!(number(&context, &wrong).await, 0, "every value of a group occurs once here");
}

/// The shell, whose format of Parquet files is another one.
#[test]
fn the_shell_writes_them_so_too() {
    let here = tempfile::tempdir().unwrap();
    for query in [RELEASE, "SELECT * FROM 'first.parquet'"] {
        let name = if query == RELEASE { "first.parquet" } else { "again.parquet" };
        let output = shell(here.path(), &["-c", &format!("COPY ({query}) TO '{name}'")]);
        assert!(output.status.success(), "{}", err(&output));
        let columns = columns(&here.path().join(name).display().to_string());
        assert!(columns["group_id"].0.contains(&Encoding::DELTA_BINARY_PACKED), "{columns:?}");
        assert!(!has_dictionary(&columns["group_id"]) && has_dictionary(&columns["age.lo"]), "{columns:?}");
    }
}

/// The statement's or the session's encodings are used, and only for columns of releases. Other tables are left alone, whatever their columns are called.
#[tokio::test]
async fn whoever_says_how_is_heard() {
    let here = tempfile::tempdir().unwrap();
    for options in [
        "STORED AS PARQUET OPTIONS ('format.dictionary_enabled' 'true')",
        "STORED AS PARQUET OPTIONS ('encoding::group_size' 'plain')",
        "STORED AS PARQUET OPTIONS ('format.dictionary_enabled::group_id' 'true')",
    ] {
        let file = copied(&session(), &here, RELEASE, options).await;
        assert!(has_dictionary(&columns(&file)["group_id"]), "{options}");
    }
    // Statistics of lists, if anything is said of statistics; but no dictionary of counts.
    let asked = "STORED AS PARQUET OPTIONS ('statistics_enabled' 'page')";
    let set = session();
    run(&set, "SET datafusion.execution.parquet.statistics_enabled = 'chunk'").await.unwrap();
    for (context, options) in [(session(), asked), (set, "")] {
        let file = copied(&context, &here, HISTOGRAMS, options).await;
        let count = &columns(&file)["occupation.list.item.count"];
        assert!(count.1 && !has_dictionary(count), "{count:?}");
    }
    let context = session();
    run(&context, "SET datafusion.execution.parquet.encoding = 'plain'").await.unwrap();
    let file = copied(&context, &here, RELEASE, "").await;
    assert!(!columns(&file)["group_id"].0.contains(&Encoding::DELTA_BINARY_PACKED));
    let file = copied(&session(), &here, "SELECT 1::BIGINT AS group_id, make_array(struct(1 AS count)) AS x", "").await;
    let columns = columns(&file);
    assert!(columns.len() == 2 && columns.values().all(has_dictionary), "{columns:?}");
    // By the API, with options of their own.
    let context = session();
    let rows = context.sql(RELEASE).await.unwrap();
    let file = here.path().join("api.parquet").display().to_string();
    let options = datafusion::config::TableParquetOptions::default();
    rows.write_parquet(&file, Default::default(), Some(options)).await.unwrap();
    assert!(number(&context, &format!("SELECT count(*) FROM '{file}'")).await >= 3000);
}
