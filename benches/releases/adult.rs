//! The table that everybody measures with, from memory: eight quasi-identifiers, k = 5, three distinct occupations.

use std::time::Instant;

use crate::measure::{run, session};

/// Prints the best of ten times, without and with hierarchies.
pub(crate) async fn adult() {
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let (file, hierarchies) = (format!("{directory}/adult.parquet"), format!("{directory}/adult_hierarchies.csv"));
    if !std::path::Path::new(&file).exists() {
        return println!("adult.parquet is not in {directory}");
    }
    let context = session();
    let rows = format!("CREATE TABLE adult AS SELECT * FROM '{file}' WHERE is_complete AND split = 'train'");
    run(&context, &rows).await;
    run(&context, &format!("CREATE TABLE hierarchies AS SELECT * FROM '{hierarchies}'")).await;
    for (name, more) in [("without", ""), ("with", ", hierarchies => hierarchies")] {
        let sql = format!(
            "SELECT * FROM mondrian(adult, 5, 3, sensitive => occupation, diversity => 'distinct', quasi => (age, workclass,
             education, marital_status, race, sex, native_country, income){more})"
        );
        let mut best = f64::INFINITY;
        for _ in 0..10 {
            let start = Instant::now();
            run(&context, &sql).await;
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("ADULT, 30,162 rows, {name} hierarchies: {:.1} ms", best * 1e3);
    }
}
