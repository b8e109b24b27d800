//! Rows that look like rows (MuCo, Figures 5 to 10).

use std::sync::Arc;

use datafusion::error::Result;

use super::covered::Covered;
use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::{Input, quoted, tuple};
use super::results::{Point, Results, ends, falls, number, rises};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "muco",
    title: "Rows that cover for each other",
    source: "Li et al., MuCo (2023), Section 5, Figures 5 to 10",
    about: "MuCo with l = 10 and delta = 1/5 to 1/10, ten draws (quick mode: two), against Mondrian and Anatomy with l = 8 to 18. Disclosure: the \
            chance of a reader who matches each quasi-identifier with probability P to hit the right row (identity), and the share of the right \
            value among the matches (attribute), means over people. Loss: mean distance of published values, or mean length of ranges, as \
            shares of the attributes' ranges. Queries: 1,000 sums of the sensitive attribute with ranges of up to four random \
            quasi-identifiers.",
    quasi: &["age", "gender", "education", "birthplace", "occupation"],
    sensitive: &["income"],
    rows: [4_000, 40_152],
    figures: &[
        Figure::new("5-identity", "Figure 5: identities disclosed by MuCo (l = 10)", BY_DELTA, "mean chance"),
        Figure::new("5-attribute", "Figure 5: attributes disclosed by MuCo (l = 10)", BY_DELTA, "mean chance"),
        Figure::new("6", "Figure 6: disclosure by Mondrian (P = 0.7)", "l", "mean chance"),
        Figure::new("7", "Figure 7: information loss", BY_BOTH, "loss"),
        Figure::new("8", "Figure 8: errors of sums, mean", BY_BOTH, "relative error"),
        Figure {
            logarithmic: true,
            ..Figure::new("9", "Figure 9: errors of sums, variance", BY_BOTH, "variance of the relative error")
        },
        Figure::new("10a", "Figure 10a: information loss of MuCo by l (delta = 1/6)", "l", "loss"),
        Figure::new("10b", "Figure 10b: errors of sums of MuCo by l (delta = 1/6), mean", "l", "relative error"),
    ],
    runs,
    findings,
};

const BY_DELTA: &str = "1/delta";
const BY_BOTH: &str = "1/delta (MuCo), l (Mondrian, Anatomy)";

const MATCHES: [f64; 6] = [0.3, 0.5, 0.7, 0.8, 0.9, 1.0];
/// The reader whom MuCo and Mondrian are compared by.
const READER: f64 = 0.7;
const L: usize = 10;
const MUCO: &str = "MuCo";
const MONDRIAN: &str = "Mondrian";
const ANATOMY: &str = "Anatomy";

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    let draws = input.pick(2, 10);
    let l = input.possible(0, &[2, 4, 6, 8, L]).last().copied().unwrap_or(2);
    for rows in [5, 6, 7, 8, 10].into_iter().filter(|&rows| rows <= l) {
        let key = format!("MuCo, l = {l}, delta = 1/{rows}");
        runs.push(Run::new(key, draws, move |harness| perturbed(harness, rows, l, draws, true)));
    }
    for other in input.possible(0, &[10, 12, 15, 18, 20]) {
        let key = format!("MuCo by l, l = {other}, delta = 1/6");
        runs.push(Run::new(key, draws, move |harness| perturbed(harness, 6, other, draws, false)));
    }
    for l in input.possible(0, &[8, 10, 12, 15, 18]) {
        runs.push(Run::new(format!("Mondrian, l = {l}"), 1, move |harness| generalized(harness, l)));
        runs.push(Run::new(format!("Anatomy, l = {l}"), 1, move |harness| separated(harness, l)));
    }
    runs
}

/// Draws of MuCo. `by_delta`: for the figures over delta; else for those over l.
async fn perturbed(harness: Arc<Harness>, rows: usize, l: usize, draws: u64, by_delta: bool) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    let x = if by_delta { rows } else { l } as f64;
    for draw in 1..=draws {
        let call = format!(
            "muco(people, 1.0 / {rows}, {l}, cuts => 'median', private => true, {}, {}{})",
            harness.roles(0),
            harness.seed(draw),
            harness.hierarchies()
        );
        harness.keep("released", &format!("SELECT * FROM {call}")).await?;
        let lost = loss(&harness, "distance", &format!(", id => {}", quoted(&harness.input.id))).await?;
        let [mean, variance] = errors(&harness).await?;
        if by_delta {
            points.push(Point::new("7", MUCO, x, lost));
            points.push(Point::new("8", MUCO, x, mean));
            points.push(Point::new("9", MUCO, x, variance));
            for p in MATCHES {
                let sql = format!(
                    "SELECT avg(identity), avg(attribute) FROM disclosure(released, original => people, p_match => {p}, {})",
                    harness.roles(0)
                );
                let found = harness.row(&sql).await?;
                points.push(Point::new("5-identity", format!("P = {p}"), x, found[0]));
                points.push(Point::new("5-attribute", format!("P = {p}"), x, found[1]));
            }
        } else {
            points.push(Point::new("10a", MUCO, x, lost));
            points.push(Point::new("10b", MUCO, x, mean));
        }
        harness.step();
    }
    Ok(points)
}

async fn generalized(harness: Arc<Harness>, l: usize) -> Result<Vec<Point>> {
    let call = format!(
        "mondrian(people, l => {l}, cuts => 'median', private => true, {}, {})",
        harness.roles(0),
        harness.seed("")
    );
    harness.keep("released", &format!("SELECT * FROM {call}")).await?;
    let x = l as f64;
    let [mean, variance] = errors(&harness).await?;
    let [identity, attribute] = Covered::read(&harness).await?.disclosure(READER);
    let lost = loss(&harness, "ncp", "").await?;
    harness.step();
    Ok(vec![
        Point::new("6", "identity", x, identity),
        Point::new("6", "attribute", x, attribute),
        Point::new("7", MONDRIAN, x, lost),
        Point::new("8", MONDRIAN, x, mean),
        Point::new("9", MONDRIAN, x, variance),
    ])
}

async fn separated(harness: Arc<Harness>, l: usize) -> Result<Vec<Point>> {
    let call = format!("anatomy(people, {l}, {}, {})", harness.roles(0), harness.seed(""));
    harness.keep("released", &format!("SELECT * FROM {call}")).await?;
    let [mean, variance] = errors(&harness).await?;
    harness.step();
    Ok(vec![Point::new("8", ANATOMY, l as f64, mean), Point::new("9", ANATOMY, l as f64, variance)])
}

async fn loss(harness: &Harness, measure: &str, more: &str) -> Result<f64> {
    let call = format!("information_loss(people, released, quasi => {}{more})", tuple(&harness.input.quasi));
    harness.number(&format!("SELECT {measure} FROM {call} WHERE attribute = '*'")).await
}

/// Returns the mean and variance of relative errors; the same queries for all releases.
async fn errors(harness: &Harness) -> Result<[f64; 2]> {
    let sql = format!(
        "SELECT avg(relative_error), var_pop(relative_error) FROM query_accuracy(people, released, queries => 1000, aggregate => 'sum', \
         predicates => {}, distribution => 'uniform', seed => 'queries {}')",
        harness.input.quasi.len().min(4),
        harness.input.seed
    );
    let found = harness.row(&sql).await?;
    Ok([found[0], found[1]])
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for figure in ["5-identity", "5-attribute"] {
        let series = results.series(figure, &format!("P = {READER}"));
        findings.push(Finding::new(
            "Figure 5: the smaller delta, the less is disclosed",
            format!("{}, P = {READER}: {}, from 1/5 to the smallest delta", &figure[2..], ends(&series)),
            falls(&series, 0.0),
        ));
    }
    let exact = results.greatest("5-identity", Some("P = 1"));
    findings.push(Finding::new(
        "Figure 5f: a reader who matches all quasi-identifiers finds nobody, for every row has changed somewhere",
        format!("at most {}", number(exact)),
        exact < 1e-3,
    ));
    let muco = results.series("7", MUCO);
    findings.push(Finding::new("Figure 7a: the smaller delta, the more is lost", ends(&muco), rises(&muco, 0.0)));
    for (figure, what) in [("7", "loses less"), ("8", "errs less"), ("9", "varies less")] {
        let muco = results.series(figure, MUCO);
        let mondrian = results.series(figure, MONDRIAN);
        // The paper compares the smallest 1/delta with the smallest l, and so on: they disclose about as much.
        let pairs = || muco.iter().zip(&mondrian);
        findings.push(Finding::new(
            format!("Figure {figure}: MuCo {what} than Mondrian at the same protection"),
            format!("{} against {}", ends(&muco), ends(&mondrian)),
            pairs().next().is_some() && pairs().all(|(muco, mondrian)| muco.1 < mondrian.1),
        ));
        let anatomy = results.series(figure, ANATOMY);
        if !anatomy.is_empty() {
            findings.push(Finding::beside(
                format!("Figure {figure}: MuCo {what} than Anatomy (wages from 4 to 718,000; the synthetic census has 50 classes)"),
                format!("{} against {}", ends(&muco), ends(&anatomy)),
            ));
        }
    }
    let (lost, erred) = (results.series("10a", MUCO), results.series("10b", MUCO));
    findings.push(Finding::beside("Figure 10a: a greater l loses a little less", ends(&lost)));
    findings.push(Finding::beside("Figure 10b: a greater l errs a little more", ends(&erred)));
    findings
}
