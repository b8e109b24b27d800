//! Number of counterfeits that m-invariance needs (its Figures 5 and 6).

use std::sync::Arc;

use datafusion::error::Result;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::Input;
use super::invariant::{self, Publisher, Setting};
use super::results::{Point, Results, ends, falls, number};
use super::series::{VOLUMES, releases, size};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "counterfeits",
    title: "Counterfeits of m-invariant releases",
    source: "Xiao and Tao, m-Invariance (SIGMOD 2007), Section 5.2, Figures 5 and 6",
    about: "The series of snapshots of the experiment 'vulnerable', published with m-invariance; how many made-up rows each release has.",
    quasi: &["age", "gender", "education", "birthplace"],
    sensitive: &["occupation", "income"],
    rows: [24_000, 600_000],
    figures: &[
        Figure::new(
            "5a",
            "Figure 5a: counterfeits of each release (occupation, least r, m = 10)",
            "release",
            "counterfeits",
        ),
        Figure::new(
            "5b",
            "Figure 5b: counterfeits of each release (income, least r, m = 10)",
            "release",
            "counterfeits",
        ),
        Figure::new(
            "6a",
            "Figure 6a: counterfeits by update volume (m = 10)",
            "update volume r",
            "counterfeits of a release, mean",
        ),
        Figure::new("6b", "Figure 6b: counterfeits by m (least r)", "m", "counterfeits of a release, mean"),
    ],
    runs,
    findings,
};

const OVER_TIME: [&str; 2] = ["5a", "5b"];

fn runs(input: &Input) -> Vec<Run> {
    invariant::runs(input, &VOLUMES, |volume| releases(input.rows(), volume), chain)
}

async fn chain(harness: Arc<Harness>, setting: Setting) -> Result<Vec<Point>> {
    let Setting { sensitive, volume, m, most } = setting;
    let name = &harness.input.sensitive[sensitive];
    let mut publisher = Publisher::new(&harness, setting);
    let mut counts = Vec::new();
    while publisher.next().await?.is_some() {
        counts.push(publisher.counterfeits().await?);
        harness.step();
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let mut points = Vec::new();
    if m == most {
        points.push(Point::new("6a", name, size(harness.input.rows(), volume) as f64, mean));
    }
    if volume == VOLUMES[0] {
        points.push(Point::new("6b", name, m as f64, mean));
        if m == most {
            let each = counts
                .iter()
                .zip(1..)
                .map(|(&count, release)| Point::new(OVER_TIME[sensitive], name, f64::from(release), count));
            points.extend(each);
        }
    }
    Ok(points)
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (figure, paper) in OVER_TIME
        .into_iter()
        .zip(["at most 10 counterfeits, and none at 51 of 81 releases", "at most 12, and none at 33 of 81"])
    {
        for (name, series) in results.all(figure) {
            let none = series.iter().filter(|point| point.1 == 0.0).count();
            findings.push(Finding::beside(
                format!("Figure {figure}: {paper} (m = 10)"),
                format!(
                    "{name}: at most {}, and none at {none} of {}",
                    number(results.greatest(figure, None)),
                    series.len()
                ),
            ));
        }
    }
    for (name, series) in results.all("6a") {
        findings.push(Finding::new(
            "Figure 6a: fewer counterfeits, the more people come and leave",
            format!("{name}: {} in the mean, from the least to the greatest r", ends(&series)),
            falls(&series, 0.0),
        ));
        let many: Vec<String> = series.iter().skip(2).map(|point| number(point.1)).collect();
        findings.push(Finding::beside(
            "Figure 6a: none at all if a tenth or more come and leave (r = 20,000 of 200,000)",
            format!("{name}: {} with a tenth and more", many.join(", ")),
        ));
    }
    for (name, series) in results.all("6b") {
        findings.push(Finding::beside(
            "Figure 6b: with the least r, at most 2.5 in the mean for m = 2 to 10",
            format!(
                "{name}: at most {}, for m = {}",
                number(greatest(&series)),
                ends(&series.iter().map(|p| (p.0, p.0)).collect::<Vec<_>>())
            ),
        ));
    }
    findings
}

fn greatest(series: &[(f64, f64)]) -> f64 {
    series.iter().map(|point| point.1).fold(0.0, f64::max)
}
