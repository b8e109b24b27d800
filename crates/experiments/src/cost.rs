//! Duration of m-invariant releases (m-invariance, Figure 9).

use std::sync::Arc;

use datafusion::error::Result;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::Input;
use super::invariant::Publisher;
use super::results::{Point, Results, ends, number};
use super::series::{VOLUMES, size};

/// Times are means of so many releases after the first, in which everybody is new.
const RELEASES: u64 = 10;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cost",
    title: "Time of m-invariant releases",
    source: "Xiao and Tao, m-Invariance (SIGMOD 2007), Section 5.2, Figure 9",
    about: "The series of snapshots of the experiment 'vulnerable', published with m-invariance: seconds of a release, from the table in memory \
            to the private view in memory, mean of the ten releases after the first. Seconds depend on the machine.",
    quasi: &["age", "gender", "education", "birthplace"],
    sensitive: &["occupation", "income"],
    rows: [24_000, 600_000],
    figures: &[
        Figure {
            id: "9a",
            title: "Figure 9a: time of a release by update volume (m = 10)",
            x: "update volume r",
            y: "seconds",
            logarithmic: false,
        },
        Figure {
            id: "9b",
            title: "Figure 9b: time of a release by m (least r)",
            x: "m",
            y: "seconds",
            logarithmic: false,
        },
    ],
    runs,
    findings,
};

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    for sensitive in 0..input.sensitive.len() {
        let all = input.possible(sensitive, &[2, 4, 6, 8, 10]);
        let Some(&most) = all.last() else { continue };
        let fewer = all[..all.len() - 1].iter().map(|&m| (VOLUMES[0], m));
        for (volume, m) in VOLUMES.into_iter().map(|volume| (volume, most)).chain(fewer) {
            let key = format!("{}, r = {volume}, m = {m}", input.sensitive[sensitive]);
            runs.push(Run::new(key, RELEASES + 1, move |harness| chain(harness, sensitive, volume, m, most)));
        }
    }
    runs
}

async fn chain(harness: Arc<Harness>, sensitive: usize, volume: f64, m: usize, most: usize) -> Result<Vec<Point>> {
    let name = &harness.input.sensitive[sensitive];
    let mut publisher = Publisher::new(&harness, sensitive, volume, m);
    let mut times = Vec::new();
    while let Some(seconds) = publisher.next().await? {
        harness.step();
        times.push(seconds);
        if times.len() as u64 > RELEASES {
            break;
        }
    }
    let mean = times[1..].iter().sum::<f64>() / (times.len() - 1) as f64;
    let mut points = Vec::new();
    if m == most {
        points.push(Point::new("9a", name, size(harness.input.rows(), volume) as f64, mean));
    }
    if volume == VOLUMES[0] {
        points.push(Point::new("9b", name, m as f64, mean));
    }
    Ok(points)
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = vec![Finding::new(
        "Figure 9: 200,000 rows take at most 12 seconds (3 GHz, 2007)",
        format!("at most {} s", number(results.greatest("9a", None).max(results.greatest("9b", None)))),
        results.greatest("9a", None).max(results.greatest("9b", None)) <= 12.0,
    )];
    for (name, series) in results.all("9a") {
        findings.push(Finding::beside(
            "Figure 9a: the more people come, the longer a release takes",
            format!("{name}: {} s, from the least to the greatest r", ends(&series)),
        ));
    }
    for (name, series) in results.all("9b") {
        findings.push(Finding::beside(
            "Figure 9b: the greater m, the shorter, for there are fewer splits",
            format!("{name}: {} s, from the least to the greatest m", ends(&series)),
        ));
    }
    findings
}
