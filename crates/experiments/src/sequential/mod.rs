//! Releases of other columns (Shmueli and Tassa 2015, Figures 6 to 13, 15 to 17). Figure 14 needs `--data`.
//!
//! ```text
//! releases.rs    ten releases, over l, p and the number of people
//! dynamic.rs     columns and people that come later
//! ```
//!
//! Figures 1 to 5 compare with methods of others, which are not here.

mod dynamic;
mod releases;

use std::sync::Arc;

use datafusion::error::Result;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::{Input, tuple};
use super::results::{Results, below, ends, falls, mean, number, rises};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "sequential",
    title: "Releases of other columns",
    source: "Shmueli and Tassa (Information Sciences 2015), Section 6, Figures 6 to 13 and 15 to 17",
    about: "Ten releases of the same people with other columns each, made one by one ('sequential') and projected from one release of all columns \
            ('projected'); loss is LM, the mean of all released entries (EM, in bits, in Figure 13). l = 5, p = 100 and half of the people, if not \
            said otherwise. The paper's quasi-identifiers 1 to 7 are those of the table in turn; where it has fewer, some stand for several. Then \
            columns (Figure 15), people (16) or both (17) that come release by release: worlds of 'adaptive' know them when they come, those of \
            'prophetic' know all columns from the start.",
    quasi: &["age", "gender", "education", "birthplace", "income"],
    sensitive: &["occupation"],
    rows: [5_000, 200_000],
    figures: &[
        Figure::new("6", "Figure 6: loss of ten releases", "release", "loss (LM)"),
        Figure::new("7", "Figure 7: loss by l", "l", "loss (LM), mean of ten releases"),
        Figure::new("8", "Figure 8: loss by number of people", "people", "loss (LM), mean of ten releases"),
        Figure::new("9", "Figure 9: loss by p", "p", "loss (LM), mean of ten releases"),
        Figure::new("10", "Figure 10: time by l", "l", "seconds"),
        Figure::new("11", "Figure 11: time by number of people", "people", "seconds"),
        Figure::new("12", "Figure 12: time by p", "p", "seconds"),
        Figure::new("13", "Figure 13: entropy loss by l", "l", "loss (EM, bits), mean of ten releases"),
        Figure::new("15", "Figure 15: columns that come later", "release", "loss (LM)"),
        Figure::new("16", "Figure 16: people who come later", "release", "loss (LM)"),
        Figure::new("17", "Figure 17: columns and people that come later", "release", "loss (LM)"),
    ],
    runs,
    findings,
};

const SEQUENTIAL: &str = "sequential";
const PROJECTED: &str = "projected";
const ADAPTIVE: &str = "adaptive";
const PROPHETIC: &str = "prophetic";

/// Default `l` of the worlds.
const L: usize = 5;
/// Most rows that are matched exactly at a time.
const P: usize = 100;

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    let half = input.rows() / 2;
    let l = input.possible(0, &[2, 3, 4, L]).last().copied().unwrap_or(2);
    let standard =
        releases::Setting { people: half, l, p: P, loss: "lm", figures: &["6", "7", "8", "9", "10", "11", "12"] };
    let mut settings = vec![standard];
    let sizes = [half / 2, 3 * half / 2, 2 * half];
    for other in input.possible(0, &[3, 4, 5, 6, 7]).into_iter().filter(|&other| other != l) {
        settings.push(releases::Setting { l: other, figures: &["7", "10"], ..standard });
    }
    settings.extend(sizes.map(|people| releases::Setting { people, figures: &["8", "11"], ..standard }));
    settings.extend([25, 50, 200, 400].map(|p| releases::Setting { p, figures: &["9", "12"], ..standard }));
    for l in input.possible(0, &[3, 4, 5, 6, 7]) {
        settings.push(releases::Setting { l, loss: "em", figures: &["13"], ..standard });
    }
    for setting in settings {
        let key = format!("{} people, l = {}, p = {}, {}", setting.people, setting.l, setting.p, setting.loss);
        runs.push(Run::new(key, releases::SUBSETS.len() as u64 + 1, move |harness| releases::ten(harness, setting)));
    }
    // Worlds that know people before they come are refused: a reader could reason from who is missing.
    for (figure, name) in [("15", ADAPTIVE), ("15", PROPHETIC), ("16", ADAPTIVE), ("17", ADAPTIVE)] {
        let key = format!("figure {figure}, {name}, l = {l}");
        runs.push(Run::new(key, 4, move |harness| dynamic::four(harness, figure, l, name)));
    }
    runs
}

/// Ends of a call on some columns of the microdata: roles, seed and hierarchies.
fn arguments(harness: &Harness, quasi: &[String], seed: &str) -> String {
    format!("{}, {}{}", harness.roles_of(quasi, 0), harness.seed(seed), harness.hierarchies())
}

/// Returns the loss of a release's columns, or of some of them.
async fn loss(harness: &Harness, original: &str, release: &str, quasi: &[String], measure: &str) -> Result<f64> {
    let call = format!("information_loss({original}, {release}, quasi => {}{})", tuple(quasi), harness.hierarchies());
    harness.number(&format!("SELECT {measure} FROM {call} WHERE attribute = '*'")).await
}

fn original(harness: &Arc<Harness>, people: usize) -> Result<()> {
    harness.table("original", harness.input.people.slice(0, people))
}

/// Returns the paper's columns (from 1) among those that there are.
fn columns(input: &Input, numbers: &[usize]) -> Vec<String> {
    let mut places: Vec<usize> = numbers.iter().map(|number| (number - 1) % input.quasi.len()).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| input.quasi[place].clone()).collect()
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (sequential, projected) = (results.series("6", SEQUENTIAL), results.series("6", PROJECTED));
    findings.push(Finding::new(
        "Figure 6: each of the ten releases loses less than if it were projected from one release",
        format!("{} and {} in the mean", number(mean(&sequential)), number(mean(&projected))),
        below(&sequential, &projected),
    ));
    for figure in ["7", "13"] {
        let (sequential, projected) = (results.series(figure, SEQUENTIAL), results.series(figure, PROJECTED));
        findings.push(Finding::new(
            format!("Figure {figure}: loss grows with l, and stays below that of projections"),
            format!("{} against {}, from the least to the greatest l", ends(&sequential), ends(&projected)),
            rises(&sequential, 0.0) && below(&sequential, &projected),
        ));
    }
    let (sequential, projected) = (results.series("8", SEQUENTIAL), results.series("8", PROJECTED));
    findings.push(Finding::new(
        "Figure 8: the difference stays, whatever the number of people",
        format!("{} against {}, from the fewest to the most", ends(&sequential), ends(&projected)),
        below(&sequential, &projected),
    ));
    let by_p = results.series("9", SEQUENTIAL);
    findings.push(Finding::new(
        "Figure 9: loss falls slowly with p",
        format!("{}, from p = 25 to 400", ends(&by_p)),
        falls(&by_p, 0.0) && !falls(&by_p, 0.5),
    ));
    for (figure, claim) in [
        ("10", "Figure 10: time grows roughly linearly with l"),
        ("11", "Figure 11: time grows roughly linearly with the number of people"),
        ("12", "Figure 12: time falls with p up to about 100, then grows"),
    ] {
        let here =
            results.all(figure).iter().map(|(name, series)| format!("{name}: {} s", ends(series))).collect::<Vec<_>>();
        findings.push(Finding::beside(claim, here.join("; ")));
    }
    let (adaptive, prophetic) = (results.series("15", ADAPTIVE), results.series("15", PROPHETIC));
    let later =
        |series: &[(f64, f64)]| series.iter().filter(|point| point.0 % 2.0 == 0.0).map(|point| point.1).sum::<f64>();
    findings.push(Finding::new(
        "Figure 15: who knew the columns before loses less in releases 2 and 4, in which they come",
        format!(
            "releases 2 and 4: adaptive {}, prophetic {} in the mean",
            number(later(&adaptive) / 2.0),
            number(later(&prophetic) / 2.0)
        ),
        later(&prophetic) < later(&adaptive),
    ));
    for (figure, claim) in [
        ("16", "Figure 16: people who come later cost little"),
        ("17", "Figure 17: columns and people that come later cost little"),
    ] {
        let adaptive = format!("{} in the mean", number(mean(&results.series(figure, ADAPTIVE))));
        findings.push(Finding::beside(claim, adaptive));
    }
    findings
}
