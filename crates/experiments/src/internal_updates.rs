//! People whose sensitive values change (m-Distinct, Figures 3 to 9).

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::error::Result;

use super::changes::{Changing, Classes, LEAVING, VALUE};
use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::{Input, quoted};
use super::results::{Point, Results, ends, falls, number, rises};
use super::vulnerable::numbered;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "internal-updates",
    title: "People whose sensitive values change",
    source: "Li and Zhou, m-Distinct (2008), Section VI, Figures 3 to 9",
    about: "Of 20,000 people 2,000 leave before each further release, 5,000 come, and 5,000 change their occupation for another one of its class \
            of d (in other tables: a tenth, a fourth and a fourth of the first snapshot). A version of somebody's occupation is vulnerable if \
            nothing else is possible in view of all releases and of which updates are. 20 releases; quick mode: 8. Counterfeits are \
            counted with 3,000 who leave. Queries are counts with ranges of the given share of every domain, 10,000 (1,000) of them.",
    quasi: &["age", "gender", "education", "birthplace"],
    sensitive: &["occupation"],
    rows: [12_000, 120_000],
    figures: &[
        Figure::new("3a", "Figure 3a: vulnerable versions by time (d = 10)", "releases", "vulnerable versions"),
        Figure::new("3b", "Figure 3b: vulnerable versions by diameter, after all releases", "d", "vulnerable versions"),
        Figure::new(
            "4a",
            "Figure 4a: records that m-invariance cannot publish (d = 10)",
            "releases",
            "records, in all releases",
        ),
        Figure::new(
            "4b",
            "Figure 4b: records that m-invariance cannot publish, by diameter",
            "d",
            "records, in all releases",
        ),
        Figure::new(
            "5a",
            "Figure 5a: error by time (m-Distinct, ranges of 50 %, d = 10)",
            "release",
            "median relative error, %",
        ),
        Figure::new(
            "5b",
            "Figure 5b: error by length of ranges (m = 4, d = 10)",
            "ranges, % of domains",
            "median relative error, mean, %",
        ),
        Figure::new("6", "Figure 6: error by diameter (m = 4, ranges of 50 %)", "d", "median relative error, mean, %"),
        Figure::new("7", "Figure 7: counterfeits by time (m = 6, d = 5)", "release", "counterfeits of a group, mean"),
        Figure::new("8a", "Figure 8a: counterfeits by diameter (m = 6)", "d", "counterfeits of a group, mean"),
        Figure::new("8b", "Figure 8b: counterfeits by m (d = 5)", "m", "counterfeits of a group, mean"),
        Figure::new("9a", "Figure 9a: time of the second release by diameter (m = 4)", "d", "seconds"),
        Figure::new("9b", "Figure 9b: time of the second release by m (d = 10)", "m", "seconds"),
    ],
    runs,
    findings,
};

/// Shares of versions, in percent: for findings only.
const SHARES: &str = "3a, shares";
const DISTINCT: &str = "m-Distinct, m = 2";
const DIAMETERS: [i32; 4] = [1, 2, 5, 10];
/// Lengths of ranges, in percent of the domains.
const LENGTHS: [f64; 5] = [30.0, 40.0, 50.0, 60.0, 70.0];

/// Treatment of the snapshots of a run.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Published by Mondrian, l-diverse, or, without a number, with m-Distinct and m = 2; what a reader can infer.
    Inferred(Option<usize>),
    /// Published with m-invariance, as far as possible.
    Invariant,
    /// Published with m-Distinct; queries and time.
    Asked,
    /// Published with m-Distinct while more leave; counterfeits.
    Counterfeits,
}

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    let steps = input.pick(8, 20);
    let mut add = |key: String, kind: Kind, m: usize, size: i32| {
        let key = format!("{key}, d = {size}");
        runs.push(Run::new(key, steps, move |harness| chain(harness, kind, m, size, steps)));
    };
    let parameters = input.possible(0, &[2, 4, 6, 8]);
    for size in DIAMETERS {
        for &m in &parameters {
            add(format!("l-diversity, l = {m}"), Kind::Inferred(Some(m)), m, size);
            add(format!("m-invariance, m = {m}"), Kind::Invariant, m, size);
            if size == 10 || m == 4 {
                add(format!("m-Distinct, m = {m}"), Kind::Asked, m, size);
            }
            if size == 5 || m == 6 {
                add(format!("counterfeits, m = {m}"), Kind::Counterfeits, m, size);
            }
        }
        add(format!("inferred from {DISTINCT}"), Kind::Inferred(None), 2, size);
    }
    runs
}

async fn chain(harness: Arc<Harness>, kind: Kind, m: usize, size: i32, releases: u64) -> Result<Vec<Point>> {
    let input = &harness.input;
    let ranks: Arc<[i32]> = input.ranks(&input.sensitive[0]).await?.into_iter().map(|rank| rank as i32).collect();
    let values = ranks.iter().max().map_or(0, |rank| rank + 1);
    // The same people for every diameter.
    let classes = Classes { size, values: values - values % 10 };
    let leaving = LEAVING[usize::from(matches!(kind, Kind::Counterfeits))];
    let people = Changing::new(ranks, classes, leaving, input.seed);
    harness.table("updates", classes.updates()?)?;
    let mut chain = Chain { harness: &harness, m, size, people, releases, points: Vec::new() };
    match kind {
        Kind::Inferred(l) => chain.inferred(l).await?,
        Kind::Invariant => chain.invariant().await?,
        Kind::Asked => chain.asked().await?,
        Kind::Counterfeits => chain.counterfeits().await?,
    }
    Ok(chain.points)
}

struct Chain<'a> {
    harness: &'a Harness,
    m: usize,
    size: i32,
    people: Changing,
    releases: u64,
    points: Vec<Point>,
}

impl Chain<'_> {
    /// Returns the next snapshot, as the table `snapshot`.
    fn next(&mut self, release: u64) -> Result<RecordBatch> {
        if release > 1 {
            self.people.advance();
        }
        let snapshot = self.people.snapshot(&self.harness.input)?;
        self.harness.table("snapshot", snapshot.clone())?;
        Ok(snapshot)
    }

    fn roles(&self, quasi: &[String]) -> String {
        self.harness.roles_with(quasi, VALUE)
    }

    /// Returns a call of m_distinct on the snapshot; everybody's last release is in the table `previous` (nobody returns).
    fn distinct(&self, release: u64, previous: &str) -> String {
        let previous = if release > 1 { previous } else { "" };
        let end = self.harness.minimal(previous, &self.roles(&self.harness.input.quasi), release);
        format!("m_distinct(snapshot, {}, updates => updates, {end})", self.m)
    }

    async fn inferred(&mut self, l: Option<usize>) -> Result<()> {
        let harness = self.harness;
        let quasi = &harness.input.quasi;
        let (id, one) = (quoted(&harness.input.id), quoted(&quasi[0]));
        let name = l.map_or_else(|| DISTINCT.to_owned(), |l| format!("l = {l}"));
        let (mut tables, mut present): (Vec<String>, Vec<RecordBatch>) = (Vec::new(), Vec::new());
        for release in 1..=self.releases {
            let snapshot = self.next(release)?;
            present.push(numbered(&snapshot, release as usize)?);
            let (call, columns) = match l {
                Some(l) => {
                    let (roles, seed) = (self.roles(quasi), harness.seed(release));
                    (format!("mondrian(snapshot, l => {l}, cuts => 'median', private => true, {roles}, {seed})"), "")
                }
                None => (self.distinct(release, &format!("r{}", release - 1)), ", signature, signature_label"),
            };
            let table = format!("r{release}");
            // One quasi-identifier stands for all: the reader knows the groups.
            harness.keep(&table, &format!("SELECT {id}, {one}, {VALUE}, group_id{columns} FROM {call}")).await?;
            tables.push(table);
            harness.step();
            let last = release == self.releases;
            if !last && (self.size < 10 || release % 4 > 0) {
                continue;
            }
            harness.table("original", concat_batches(&present[0].schema(), &present)?)?;
            let releases = if tables.len() == 1 { tables[0].clone() } else { format!("({})", tables.join(", ")) };
            let sql = format!(
                "SELECT count(*) FILTER (WHERE vulnerable), count(*) FROM disclosure({releases}, original => original, updates => updates, \
                 strength => 'group', {})",
                self.roles(&quasi[..1])
            );
            let counts = harness.row(&sql).await?;
            if self.size == 10 {
                self.points.push(Point::new("3a", &name, release as f64, counts[0]));
                self.points.push(Point::new(SHARES, &name, release as f64, 100.0 * counts[0] / counts[1]));
            }
            if last {
                self.points.push(Point::new("3b", &name, f64::from(self.size), counts[0]));
            }
        }
        Ok(())
    }

    async fn invariant(&mut self) -> Result<()> {
        let harness = self.harness;
        let id = quoted(&harness.input.id);
        let name = format!("m = {}", self.m);
        let mut refused = 0.0;
        for release in 1..=self.releases {
            let all = self.next(release)?.num_rows() as f64;
            if release > 1 {
                // As the paper counts. Who has another value of the signature is published with the first one, for a change is refused.
                let possible = format!(
                    "SELECT snapshot.* EXCLUDE ({VALUE}), coalesce(ledger.{VALUE}, snapshot.{VALUE}) AS {VALUE} \
                     FROM snapshot LEFT JOIN ledger ON snapshot.{id} = ledger.{id} \
                     WHERE ledger.{id} IS NULL OR array_has(ledger.signature, snapshot.{VALUE})"
                );
                harness.keep("possible", &possible).await?;
            } else {
                harness.keep("possible", "SELECT * FROM snapshot").await?;
            }
            refused += all - harness.number("SELECT count(*) FROM possible").await?;
            let previous = if release > 1 { "ledger" } else { "" };
            let end = harness.minimal(previous, &self.roles(&harness.input.quasi), release);
            let call = format!("m_invariant(possible, {}, {end})", self.m);
            let sql = format!("SELECT {id}, signature, {VALUE} FROM {call} WHERE {id} IS NOT NULL");
            harness.keep("published", &sql).await?;
            if release > 1 {
                let new = format!("SELECT * FROM published WHERE {id} NOT IN (SELECT {id} FROM ledger)");
                harness.run(&format!("INSERT INTO ledger {new}")).await?;
            } else {
                harness.keep("ledger", "SELECT * FROM published").await?;
            }
            harness.step();
            if self.size == 10 {
                self.points.push(Point::new("4a", &name, release as f64, refused));
            }
        }
        self.points.push(Point::new("4b", &name, f64::from(self.size), refused));
        Ok(())
    }

    async fn asked(&mut self) -> Result<()> {
        let harness = self.harness;
        let name = format!("m = {}", self.m);
        let predicates = harness.input.quasi.len() as i32 + 1;
        // All lengths for Figure 5b only.
        let lengths = if self.m == 4 && self.size == 10 { &LENGTHS[..] } else { &[50.0] };
        for release in 1..=self.releases {
            self.next(release)?;
            let seconds =
                harness.keep("published", &format!("SELECT * FROM {}", self.distinct(release, "published"))).await?;
            if release == 2 && self.m == 4 {
                self.points.push(Point::new("9a", &name, f64::from(self.size), seconds));
            }
            if release == 2 && self.size == 10 {
                self.points.push(Point::new("9b", "d = 10", self.m as f64, seconds));
            }
            for &length in lengths {
                let sql = format!(
                    "SELECT 100 * median(relative_error) FROM query_accuracy(snapshot, published, queries => {}, selectivity => {}, distribution => 'uniform', {})",
                    harness.input.pick(1_000, 10_000),
                    (length / 100.0_f64).powi(predicates),
                    harness.seed(format!("queries {release} {length}"))
                );
                let error = harness.number(&sql).await?;
                if self.size == 10 && length == 50.0 {
                    self.points.push(Point::new("5a", &name, release as f64, error));
                }
                if self.size == 10 && self.m == 4 {
                    self.points.push(Point::new("5b", &name, length, error));
                }
                if self.m == 4 && length == 50.0 {
                    self.points.push(Point::new("6", &name, f64::from(self.size), error));
                }
            }
            harness.step();
        }
        Ok(())
    }

    async fn counterfeits(&mut self) -> Result<()> {
        let harness = self.harness;
        for release in 1..=self.releases {
            self.next(release)?;
            harness.keep("published", &format!("SELECT * FROM {}", self.distinct(release, "published"))).await?;
            let sql = "SELECT count(*) FILTER (WHERE counterfeit)::DOUBLE / count(DISTINCT group_id) FROM published";
            let each = harness.number(sql).await?;
            harness.step();
            if self.m == 6 && self.size == 5 {
                self.points.push(Point::new("7", "m = 6, d = 5", release as f64, each));
            }
            if self.m == 6 {
                self.points.push(Point::new("8a", "m = 6", f64::from(self.size), each));
            }
            if self.size == 5 {
                self.points.push(Point::new("8b", "d = 5", self.m as f64, each));
            }
        }
        Ok(())
    }
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    let shares = results.series(SHARES, "l = 2");
    if let Some(&(releases, share)) = shares.last() {
        findings.push(Finding::beside(
            "Figure 3a: with 2-diversity, about 66 % of all versions are known after 20 releases",
            format!("{} % after {} releases", number(share), number(releases)),
        ));
    }
    for (i, (name, series)) in results.all("3a").into_iter().filter(|(name, _)| *name != DISTINCT).enumerate() {
        // In small tables a great l can keep everything.
        let more = series.windows(2).all(|pair| pair[0].1 <= pair[1].1) && (i > 0 || rises(&series, 0.0));
        findings.push(Finding::new(
            "Figure 3a: l-diversity gives values away, more with every release",
            format!("{name}: {} versions", ends(&series)),
            more,
        ));
    }
    let ends_by_l: Vec<(f64, f64)> = (results.all("3a").iter().filter(|(name, _)| *name != DISTINCT).enumerate())
        .filter_map(|(i, (_, series))| Some((i as f64, series.last()?.1)))
        .collect();
    findings.push(Finding::new(
        "Figure 3: fewer versions are vulnerable with a greater l",
        format!("{} after all releases, from the least to the greatest l", ends(&ends_by_l)),
        falls(&ends_by_l, 0.0),
    ));
    let by_diameter = results.series("3b", "l = 2");
    findings.push(Finding::new(
        "Figure 3b: fewer versions are vulnerable with a greater diameter, for changes hide",
        format!("l = 2: {} versions, from d = 1 to 10", ends(&by_diameter)),
        falls(&by_diameter, 0.0),
    ));
    let distinct = results.greatest("3a", Some(DISTINCT)).max(results.greatest("3b", Some(DISTINCT)));
    findings.push(Finding::new(
        "m-Distinct leaves nothing vulnerable (Lemma 3)",
        format!("{} versions with m = 2", number(distinct)),
        distinct == 0.0,
    ));
    findings.extend(results.each(
        "4a",
        "Figure 4a: records that m-invariance cannot publish become more",
        " records",
        |series| rises(series, 0.0),
    ));
    findings.extend(results.each(
        "4b",
        "Figure 4b: they become more with the diameter; with d = 1 there are none",
        " records, from d = 1 to 10",
        |series| rises(series, 0.0) && series.first().is_some_and(|point| point.1 == 0.0),
    ));
    findings.extend(results.each_beside("5a", "Figure 5a: the error grows a little with time, then no more", " %"));
    findings.extend(results.each(
        "5b",
        "Figure 5b: longer ranges, smaller errors",
        " %, from 30 to 70 % of the domains",
        |series| falls(series, 0.1),
    ));
    findings.extend(results.each_beside(
        "6",
        "Figure 6: smaller errors with a greater diameter",
        " %, from d = 1 to 10",
    ));
    let most = results.greatest("8b", None).max(results.greatest("8a", None)).max(results.greatest("7", None));
    findings.push(Finding::new(
        "Figures 7 and 8: fewer than two counterfeits a group, up to m = 8",
        format!("at most {}", number(most)),
        most < 2.0,
    ));
    findings.extend(results.each(
        "8a",
        "Figure 8a: fewer counterfeits with a greater diameter",
        ", from d = 1 to 10",
        |series| falls(series, 0.0),
    ));
    for (figure, what) in [("9a", "from d = 1 to 10"), ("9b", "from the least to the greatest m")] {
        for (name, series) in results.all(figure) {
            findings.push(Finding::beside(
                format!(
                    "Figure {figure}: {}",
                    if figure == "9a" {
                        "a greater diameter takes longer"
                    } else {
                        "m = 4 is the fastest; 2 and 8 take longer"
                    }
                ),
                format!("{name}: {} s, {what}", ends(&series)),
            ));
        }
    }
    findings
}
