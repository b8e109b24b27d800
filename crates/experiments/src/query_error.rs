//! Errors of counts asked of m-invariant releases (m-invariance, Figures 7 and 8).

use std::sync::Arc;

use datafusion::error::Result;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::Input;
use super::invariant::{self, Publisher, Setting};
use super::results::{Point, Results, ends, falls, mean, number, rises};
use super::series::{VOLUMES, releases};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "query-error",
    title: "Errors of counts asked of m-invariant releases",
    source: "Xiao and Tao, m-Invariance (SIGMOD 2007), Section 5.2, Figures 7 and 8",
    about: "The series of snapshots of the experiment 'vulnerable', published with m-invariance. Of each release, 10,000 random counts are asked \
            (quick mode: 1,000) with a range of every quasi-identifier and of the sensitive attribute, each as long as the domain times the fifth \
            root of the selectivity, as with four quasi-identifiers; the error of a release is the median of |estimate - truth| / truth. \
            Means are of every fourth release. Values are taken to lie evenly in their ranges, as in the paper; 'fitted' is this program's \
            default, which takes them to lie as the ends of all ranges do.",
    quasi: &["age", "gender", "education", "birthplace"],
    sensitive: &["occupation", "income"],
    rows: [24_000, 600_000],
    figures: &[
        Figure::new(
            "7a",
            "Figure 7a: error of each release (occupation, m = 10)",
            "release",
            "median relative error, %",
        ),
        Figure::new("7b", "Figure 7b: error of each release (income, m = 10)", "release", "median relative error, %"),
        Figure::new(
            "8a",
            "Figure 8a: error by selectivity (least r, m = 10)",
            "selectivity, %",
            "median relative error, mean of releases, %",
        ),
        Figure::new(
            "8b",
            "Figure 8b: error by m (least r, selectivity 10 %)",
            "m",
            "median relative error, mean of releases, %",
        ),
    ],
    runs,
    findings,
};

const OVER_TIME: [&str; 2] = ["7a", "7b"];
/// Means are of every so many releases.
const SOME: usize = 4;
/// Selectivities in percent.
const SELECTIVITIES: [f64; 5] = [2.0, 4.0, 6.0, 8.0, 10.0];
/// Behind the name of the sensitive attribute, in the series of this program's default.
const FITTED: &str = "fitted";
const LAST: f64 = SELECTIVITIES[SELECTIVITIES.len() - 1];

fn runs(input: &Input) -> Vec<Run> {
    // In quick mode fewer releases, of more people who come.
    let least = input.pick(VOLUMES[1], VOLUMES[0]);
    invariant::runs(input, &[least, VOLUMES[4]], |volume| releases(input.rows(), volume), chain)
}

async fn chain(harness: Arc<Harness>, setting: Setting) -> Result<Vec<Point>> {
    let Setting { sensitive, volume, m, most } = setting;
    let input = &harness.input;
    let name = &input.sensitive[sensitive];
    let small = volume < VOLUMES[4];
    // Figure 8a is of the runs with the least volume and the greatest m.
    let selectivities = if small && m == most { &SELECTIVITIES[..] } else { &[LAST] };
    let mut errors = vec![Vec::new(); selectivities.len()];
    let mut fitted = errors.clone();
    let mut publisher = Publisher::new(&harness, setting);
    while publisher.next().await?.is_some() {
        let some = publisher.number() % SOME == 1;
        for ((errors, fitted), percent) in errors.iter_mut().zip(&mut fitted).zip(selectivities) {
            // Every release for Figure 7; for the means of Figure 8 some.
            if !(some || m == most && *percent == LAST) {
                continue;
            }
            let seed = harness.seed(format!("queries {} {percent}", publisher.number()));
            let (queries, selectivity) = (input.pick(1_000, 10_000), percent / 100.0);
            let error = |distribution: &str| {
                format!(
                    "SELECT 100 * median(relative_error) FROM query_accuracy(snapshot, published, queries => {queries}, \
                     selectivity => {selectivity}, distribution => '{distribution}', {seed})"
                )
            };
            errors.push(harness.number(&error("uniform")).await?);
            if small && some {
                fitted.push(harness.number(&error("fitted")).await?);
            }
        }
        harness.step();
    }
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    let mut all = Vec::new();
    if m == most {
        let last = errors.len() - 1;
        let some = errors[last].iter().copied().step_by(SOME).collect();
        all = std::mem::replace(&mut errors[last], some);
    }
    let mut points = Vec::new();
    if m == most {
        let series = if small { "small r" } else { "r = a fifth" };
        points.extend(
            all.iter()
                .zip(1..)
                .map(|(&error, release)| Point::new(OVER_TIME[sensitive], series, f64::from(release), error)),
        );
    }
    if small {
        for (series, errors) in [(name.clone(), &errors), (format!("{name}, {FITTED}"), &fitted)] {
            points.push(Point::new("8b", &series, m as f64, mean(&errors[errors.len() - 1])));
            if m == most {
                let each = errors.iter().zip(selectivities);
                points.extend(each.map(|(errors, &percent)| Point::new("8a", &series, percent, mean(errors))));
            }
        }
    }
    Ok(points)
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for figure in OVER_TIME.into_iter().filter(|figure| !results.names(figure).is_empty()) {
        findings.push(Finding::beside(
            format!("Figure {figure}: at every release at most 10 %"),
            format!("at most {} %", number(results.greatest(figure, None))),
        ));
        for (name, series) in results.all(figure) {
            let (first, last) = halves(&series);
            findings.push(Finding::beside(
                format!("Figure {figure}: the error does not vary much with time"),
                format!(
                    "{name}: {} % in the first half of the releases, {} % in the second",
                    number(first),
                    number(last)
                ),
            ));
        }
    }
    let even = |figure: &'static str| results.all(figure).into_iter().filter(|(name, _)| !name.ends_with(FITTED));
    for (name, series) in even("8a") {
        findings.push(Finding::new(
            "Figure 8a: the more a query selects, the smaller its error",
            format!("{name}: {} %, from 2 to 10 % of the table", ends(&series)),
            falls(&series, 0.05),
        ));
    }
    for (name, series) in even("8b") {
        findings.push(Finding::new(
            "Figure 8b: the greater m, the greater the error",
            format!("{name}: {} %, from the least to the greatest m", ends(&series)),
            rises(&series, 0.02),
        ));
    }
    for (figure, x) in [("8a", "selectivity"), ("8b", "m")] {
        let all = results.all(figure);
        for (name, series) in &all {
            let Some((_, even)) = all.iter().find(|(even, _)| *name == format!("{even}, {FITTED}")) else { continue };
            findings.push(Finding::beside(
                format!("Figure {figure}, beside the paper: values as the ends of ranges tell"),
                format!("{name}: {} %, even: {} % (means over {x})", number(mean(series)), number(mean(even))),
            ));
        }
    }
    findings
}

/// Returns the means of the first and the second half of a series.
fn halves(series: &[(f64, f64)]) -> (f64, f64) {
    let (first, second) = series.split_at(series.len().div_ceil(2));
    (mean(first), mean(second))
}
