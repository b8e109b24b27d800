//! Results on disk. Each run's are written as soon as it is done, so an experiment that was interrupted goes on where it was.
//!
//! ```text
//! index.html                  all experiments of the directory
//! NAME/settings.json          what results depend on: a directory is of one microdata, mode and seed
//! NAME/runs/KEY.json          points of a run
//! NAME/points.csv, .parquet   points of all runs: figure, series, x, y
//! NAME/fig-ID.svg             a chart
//! NAME/report.json            what the page says
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use datafusion::common::{exec_datafusion_err, plan_err};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::Args;
use super::broken;
use super::chart;
use super::experiment::{Experiment, Finding};
use super::input::Input;
use super::results::{Point, Results};

#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    settings: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    key: String,
    seconds: f64,
    points: Vec<Point>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) about: String,
    pub(super) settings: Value,
    /// Of all runs together.
    pub(super) seconds: f64,
    pub(super) findings: Vec<Finding>,
    pub(super) figures: Vec<Drawn>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Drawn {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: String,
    /// Name of the chart's file.
    pub(super) file: String,
    /// Series by name, in the order of the chart; points by ascending `x`.
    pub(super) series: Vec<(String, Vec<(f64, f64)>)>,
}

impl Store {
    /// Returns the directory of an experiment, made if there is none.
    /// Fails when it has results of other settings, unless those are to be discarded.
    pub(super) fn open(args: &Args, experiment: &Experiment, input: &Input) -> Result<Self> {
        let store = Self { directory: args.out.join(experiment.name), settings: input.settings() };
        let place = store.directory.join("settings.json");
        match read::<Value>(&place)? {
            Some(found) if found != store.settings && !args.fresh => {
                return plan_err!(
                    "experiment: {} has results of other microdata, mode, seed or version; name another directory with --out, or discard \
                     them with --fresh",
                    store.directory.display()
                );
            }
            Some(_) if args.fresh => fs::remove_dir_all(&store.directory)?,
            _ => {}
        }
        fs::create_dir_all(store.directory.join("runs"))?;
        write(&place, &serde_json::to_vec_pretty(&store.settings).map_err(broken)?)?;
        Ok(store)
    }

    fn place(&self, key: &str) -> PathBuf {
        let name: String = key.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        self.directory.join("runs").join(format!("{name}.json"))
    }

    /// Returns the points of a run that was done before.
    pub(super) fn stored(&self, key: &str) -> Result<Option<Vec<Point>>> {
        Ok(read::<Stored>(&self.place(key))?.filter(|stored| stored.key == key).map(|stored| stored.points))
    }

    pub(super) fn keep(&self, key: &str, took: Duration, points: &[Point]) -> Result<()> {
        if let Some(point) = points.iter().find(|point| !(point.x.is_finite() && point.y.is_finite())) {
            return Err(exec_datafusion_err!("experiment: {key}: {} is not a number", point.series));
        }
        let stored = Stored { key: key.to_owned(), seconds: took.as_secs_f64(), points: points.to_vec() };
        write(&self.place(key), &serde_json::to_vec(&stored).map_err(broken)?)
    }

    fn seconds(&self) -> Result<f64> {
        let mut seconds = 0.0;
        for entry in fs::read_dir(self.directory.join("runs"))? {
            seconds += read::<Stored>(&entry?.path())?.map_or(0.0, |stored| stored.seconds);
        }
        Ok(seconds)
    }

    /// Writes points, charts and what the page says.
    pub(super) async fn finish(&self, experiment: &Experiment, results: &Results, findings: &[Finding]) -> Result<()> {
        self.points(results).await?;
        let mut figures = Vec::new();
        for figure in experiment.figures {
            let all = results.all(figure.id);
            // Microdata without another sensitive attribute have no second figure.
            if all.is_empty() {
                continue;
            }
            let file = format!("fig-{}.svg", figure.id);
            write(&self.directory.join(&file), chart::draw(figure, &all)?.as_bytes())?;
            figures.push(Drawn {
                id: figure.id.to_owned(),
                title: figure.title.to_owned(),
                x: figure.x.to_owned(),
                y: figure.y.to_owned(),
                file,
                series: all.into_iter().map(|(name, points)| (name.to_owned(), points)).collect(),
            });
        }
        let report = Report {
            name: experiment.name.to_owned(),
            title: experiment.title.to_owned(),
            source: experiment.source.to_owned(),
            about: experiment.about.to_owned(),
            settings: self.settings.clone(),
            seconds: self.seconds()?,
            findings: findings.to_vec(),
            figures,
        };
        write(&self.directory.join("report.json"), &serde_json::to_vec_pretty(&report).map_err(broken)?)
    }

    async fn points(&self, results: &Results) -> Result<()> {
        let points = results.points();
        let texts =
            |of: fn(&Point) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(points.iter().map(of))) };
        let numbers =
            |of: fn(&Point) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(points.iter().map(of))) };
        let batch = RecordBatch::try_from_iter([
            ("figure", texts(|point| &point.figure)),
            ("series", texts(|point| &point.series)),
            ("x", numbers(|point| point.x)),
            ("y", numbers(|point| point.y)),
        ])?;
        let context = SessionContext::new();
        let whole = || DataFrameWriteOptions::new().with_single_file_output(true);
        for name in ["points.csv", "points.parquet"] {
            let place = self.directory.join(name);
            match fs::remove_file(&place) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            let place = place.to_string_lossy().into_owned();
            let frame = context.read_batch(batch.clone())?;
            match name {
                "points.csv" => frame.write_csv(&place, whole(), None).await?,
                _ => frame.write_parquet(&place, whole(), None).await?,
            };
        }
        Ok(())
    }
}

/// Returns the report of an experiment, if it has one in this directory.
/// Fails when it cannot be read.
pub(super) fn report(out: &Path, name: &str) -> Result<Option<Report>> {
    read(&out.join(name).join("report.json"))
}

fn read<T: DeserializeOwned>(place: &Path) -> Result<Option<T>> {
    match fs::read(place) {
        // Who killed a run may have killed it while it wrote.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes a file whole or not at all.
pub fn write(place: &Path, bytes: &[u8]) -> Result<()> {
    let making = place.with_extension("making");
    fs::write(&making, bytes)?;
    Ok(fs::rename(making, place)?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Float64Type;

    use super::super::EXPERIMENTS;
    use super::super::input::collect;
    use super::*;

    /// The charts of the documentation have the points beside them and this program's look.
    #[tokio::test]
    async fn charts_in_the_documentation_are_drawn_from_the_points_beside_them() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments");
        let context = SessionContext::new().enable_url_table();
        let mut page = fs::read_to_string(docs.join("index.html")).unwrap();
        let bless = std::env::var_os("ANONYMIZE_BLESS").is_some_and(|word| word == "1");
        for experiment in &EXPERIMENTS {
            let directory = docs.join(experiment.name);
            let sql = format!(
                "SELECT figure::VARCHAR, series::VARCHAR, x::DOUBLE, y::DOUBLE FROM '{}'",
                directory.join("points.csv").display()
            );
            let table = collect(&context, &sql).await.unwrap_or_else(|error| panic!("{}: {error}", experiment.name));
            let text = |column: usize, row: usize| table.column(column).as_string_view().value(row).to_owned();
            let number = |column: usize, row: usize| table.column(column).as_primitive::<Float64Type>().value(row);
            let point = |row: usize| Point::new(&text(0, row), text(1, row), number(2, row), number(3, row));
            let mut results = Results::default();
            results.extend((0..table.num_rows()).map(point).collect());
            for figure in experiment.figures {
                let file = directory.join(format!("fig-{}.svg", figure.id));
                let chart = fs::read_to_string(&file).unwrap_or_default();
                let drawn = chart::draw(figure, &results.all(figure.id)).unwrap_or_default();
                if chart != drawn && bless {
                    page = page.replace(chart.trim_end(), drawn.trim_end());
                    fs::write(&file, &drawn).unwrap();
                } else {
                    assert!(chart == drawn, "{} is drawn otherwise: ANONYMIZE_BLESS=1 draws it again", file.display());
                }
                assert!(page.contains(drawn.trim_end()), "{} is not on the page", file.display());
            }
        }
        if bless {
            fs::write(docs.join("index.html"), page).unwrap();
        }
    }
}
