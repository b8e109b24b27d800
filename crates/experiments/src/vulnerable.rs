//! Number of people whom methods without memory give away (m-invariance, Figure 4).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::error::Result;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::{Input, quoted};
use super::results::{Point, Results, falls, number};
use super::series::{Series, VOLUMES, releases, size};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "vulnerable",
    title: "Who is given away by releases without memory",
    source: "Xiao and Tao, m-Invariance (SIGMOD 2007), Section 5.1, Figure 4",
    about: "A third of all people are in the first snapshot. At each further release, r of them leave and r others come, until everybody has \
            been there. Each snapshot is published by itself, l-diverse by Mondrian; a tuple is vulnerable if the groups that it was in \
            have no sensitive value in common but its own. Beside it, m-invariance with m = 2.",
    quasi: &["age", "gender", "education", "birthplace"],
    sensitive: &["occupation", "income"],
    rows: [24_000, 600_000],
    figures: &[
        Figure::new("4a", "Figure 4a: vulnerable tuples (occupation)", "update volume r", "vulnerable tuples"),
        Figure::new("4b", "Figure 4b: vulnerable tuples (income)", "update volume r", "vulnerable tuples"),
    ],
    runs,
    findings,
};

const FIGURES: [&str; 2] = ["4a", "4b"];
const INVARIANT: &str = "m-invariance, m = 2";

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    for sensitive in 0..input.sensitive.len() {
        for volume in input.pick(&[0.05, 0.1, 0.2][..], &VOLUMES[..]).iter().copied() {
            let methods =
                input.possible(sensitive, input.pick(&[2, 6, 10], &[2, 4, 6, 8, 10][..])).into_iter().map(Some);
            for l in methods.chain([None]) {
                let name = l.map_or_else(|| INVARIANT.to_owned(), |l| format!("l = {l}"));
                let key = format!("{}, r = {volume}, {name}", input.sensitive[sensitive]);
                let steps = releases(input.rows(), volume);
                runs.push(Run::new(key, steps, move |harness| chain(harness, sensitive, volume, l, name)));
            }
        }
    }
    runs
}

async fn chain(
    harness: Arc<Harness>,
    sensitive: usize,
    volume: f64,
    l: Option<usize>,
    name: String,
) -> Result<Vec<Point>> {
    let input = &harness.input;
    let roles = harness.roles(sensitive);
    // All that a reader who knows everybody's group learns of quasi-identifiers is in the groups; one stands for all.
    let [id, quasi, value] = [&input.id, &input.quasi[0], &input.sensitive[sensitive]].map(|name| quoted(name));
    let mut series = Series::new(input.rows(), volume, input.seed);
    let (mut tables, mut present): (Vec<String>, _) = (Vec::new(), Vec::new());
    loop {
        let release = tables.len() + 1;
        let snapshot = input.at(series.present())?;
        present.push(numbered(&snapshot, release)?);
        harness.table("snapshot", snapshot)?;
        let (call, columns) = match l {
            Some(l) => {
                let seed = harness.seed(release);
                (format!("mondrian(snapshot, l => {l}, cuts => 'median', private => true, {roles}, {seed})"), "")
            }
            None => {
                let previous = tables.last().map_or("", String::as_str);
                (format!("m_invariant(snapshot, 2, {})", harness.minimal(previous, &roles, release)), ", signature")
            }
        };
        let table = format!("r{release}");
        harness.keep(&table, &format!("SELECT {id}, {quasi}, {value}, group_id{columns} FROM {call}")).await?;
        tables.push(table);
        harness.step();
        if !series.advance() {
            break;
        }
    }
    harness.table("original", concat_batches(&present[0].schema(), &present)?)?;
    let vulnerable = format!(
        "SELECT count(DISTINCT {id}) FILTER (WHERE vulnerable) FROM disclosure(({}), original => original, strength => 'group', {})",
        tables.join(", "),
        harness.roles_of(&input.quasi[..1], sensitive)
    );
    let volume = size(input.rows(), volume);
    Ok(vec![Point::new(FIGURES[sensitive], name, volume as f64, harness.number(&vulnerable).await?)])
}

pub(super) fn numbered(snapshot: &RecordBatch, release: usize) -> Result<RecordBatch> {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![release as i64; snapshot.num_rows()]));
    let field = Arc::new(Field::new("release", numbers.data_type().clone(), false));
    let fields: Vec<_> = std::iter::once(field).chain(snapshot.schema().fields().iter().cloned()).collect();
    let columns: Vec<ArrayRef> = std::iter::once(numbers).chain(snapshot.columns().iter().cloned()).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for figure in FIGURES.into_iter().filter(|figure| !results.names(figure).is_empty()) {
        let names = results.names(figure);
        let diverse: Vec<&str> = names.into_iter().filter(|name| *name != INVARIANT).collect();
        let series: Vec<_> = diverse.iter().map(|name| results.series(figure, name)).collect();
        let (Some(first), Some(last)) = (series.first(), series.last()) else { continue };
        findings.push(Finding::beside(
            format!("Figure {figure}: with l = 2 nearly 100,000 tuples of 600,000 are vulnerable, whatever r"),
            format!(
                "{} with {}, by falling r",
                first.iter().rev().map(|point| number(point.1)).collect::<Vec<_>>().join(", "),
                diverse[0]
            ),
        ));
        findings.push(Finding::new(
            format!("Figure {figure}: l-diversity leaves vulnerable tuples, with the greatest l as well"),
            format!("{} to {} with {}, by r", number(least(last)), number(last[0].1), diverse[diverse.len() - 1]),
            last[0].1 > 0.0,
        ));
        findings.push(Finding::new(
            format!("Figure {figure}: the greater l, the fewer are vulnerable"),
            format!(
                "with the smallest r, {} with {} and {} with {}",
                number(first[0].1),
                diverse[0],
                number(last[0].1),
                diverse[diverse.len() - 1]
            ),
            last[0].1 <= first[0].1,
        ));
        findings.push(Finding::new(
            format!("Figure {figure}: the greater r, the fewer are vulnerable, for everybody is published fewer times"),
            format!(
                "from the smallest to the greatest r, {} with {}",
                super::results::ends(last),
                diverse[diverse.len() - 1]
            ),
            falls(last, 0.0),
        ));
        let invariant = results.greatest(figure, Some(INVARIANT));
        findings.push(Finding::new(
            format!("Figure {figure}: m-invariance leaves nobody vulnerable (Lemma 3)"),
            format!("{} with m = 2", number(invariant)),
            invariant == 0.0,
        ));
    }
    findings
}

fn least(series: &[(f64, f64)]) -> f64 {
    series.iter().map(|point| point.1).fold(f64::INFINITY, f64::min)
}
