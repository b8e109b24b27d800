//! Duration of m-invariant releases (m-invariance, Figure 9).

use std::sync::Arc;

use datafusion::error::Result;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::Input;
use super::invariant::{self, Publisher, Setting};
use super::results::{Point, Results, number};
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
        Figure::new("9a", "Figure 9a: time of a release by update volume (m = 10)", "update volume r", "seconds"),
        Figure::new("9b", "Figure 9b: time of a release by m (least r)", "m", "seconds"),
    ],
    runs,
    findings,
};

fn runs(input: &Input) -> Vec<Run> {
    invariant::runs(input, &VOLUMES, |_| RELEASES + 1, chain)
}

async fn chain(harness: Arc<Harness>, setting: Setting) -> Result<Vec<Point>> {
    let Setting { sensitive, volume, m, most } = setting;
    let name = &harness.input.sensitive[sensitive];
    let mut publisher = Publisher::new(&harness, setting);
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
    findings.extend(results.each_beside(
        "9a",
        "Figure 9a: the more people come, the longer a release takes",
        " s, from the least to the greatest r",
    ));
    findings.extend(results.each_beside(
        "9b",
        "Figure 9b: the greater m, the shorter, for there are fewer splits",
        " s, from the least to the greatest m",
    ));
    findings
}
