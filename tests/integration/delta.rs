//! Publications read by another Delta Lake reader: the Python package [deltalake](https://pypi.org/project/deltalake/) with
//! pyarrow's Parquet reader.

use std::process::Command;

use datafusion::arrow::array::AsArray;
use tempfile::tempdir;

use super::publications::hospital;
use super::python::environment;
use super::support::{path, run, session};

#[tokio::test(flavor = "multi_thread")]
async fn every_version_has_the_rows_of_its_release() {
    let Some(python) = environment("deltalake", &["deltalake==1.6.6", "pyarrow==26.0.1"], "deltalake, pyarrow") else {
        return;
    };
    std::env::set_current_dir(path("")).unwrap();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    for quarter in ["q1", "q2", "q1"] {
        let insert =
            format!("INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_{quarter}.parquet'");
        run(&context, &insert).await.unwrap();
    }
    let mut ours = Vec::new();
    for number in 1..=3 {
        let lines = format!(
            "SELECT concat('[{number},{{\"lo\":', age.lo, ',\"hi\":', age.hi, '}},{{\"lo\":', zip.lo, ',\"hi\":', zip.hi, '}},\"', disease,
                '\",', group_id, ',', group_size, ',', counterfeits, ']') AS line
             FROM release(hospital, {number}) ORDER BY line"
        );
        for batch in run(&context, &lines).await.unwrap() {
            ours.extend(batch.column(0).as_string_view().iter().map(|line| line.unwrap().to_owned()));
        }
    }
    let output =
        Command::new(python).arg(path("tests/delta/read.py")).arg(here.path().join("hospital")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs = String::from_utf8(output.stdout).unwrap();
    assert_eq!(theirs.lines().collect::<Vec<_>>(), ours);
    assert!(ours.len() >= 33);
}
