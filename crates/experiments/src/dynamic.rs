//! Everything changes, in one series of releases (`dynamic`), beside the methods for one change. No paper has this.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::error::Result;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::changes::VALUE;
use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::{Input, quoted};
use super::results::{Point, Results, ends, falls, number};
use super::vulnerable::numbered;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "dynamic",
    title: "Everything that changes",
    source: "This program: no paper has people, values and columns that change in the same releases",
    about: "A third of all people are in the first release. At each further one a twentieth of them leaves and as many come, a tenth of whom has been \
            there before. Where values change, they are pairs (ranks 0 and 1, 2 and 3, ..), and everybody's becomes the other one with 5 %. Where \
            columns change, each release has two of the quasi-identifiers in turn. Where everything does, there is a second sensitive column \
            besides, which stays: a ward. 'Without memory': releases that do not know of each other. A version of somebody's value is vulnerable if nothing else is \
            possible in view of all releases and of which updates are. Ten releases; errors are of 1,000 random counts.",
    quasi: &["age", "gender", "education", "birthplace"],
    sensitive: &["occupation"],
    rows: [6_000, 60_000],
    figures: &[
        Figure::new("counterfeits", "Counterfeits by time", "release", "% of the people"),
        Figure::new("loss", "Loss by time", "release", "mean share of a domain that a range covers"),
        Figure::new("error", "Errors of counts by time", "release", "median relative error, %"),
        Figure::new("seconds", "Time by number of releases", "release", "seconds"),
        Figure::new("vulnerable", "Vulnerable versions (people and values change)", "releases", "vulnerable versions"),
    ],
    runs,
    findings,
};

const RELEASES: usize = 10;
/// Releases after which a reader looks at all of them.
const LOOKS: [usize; 3] = [2, 5, RELEASES];
const WARD: &str = "ward";
const WARDS: i32 = 3;
const MEMORY: &str = "dynamic";
const NO_MEMORY: &str = "without memory";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changes {
    People,
    Values,
    Columns,
    Everything,
}

impl Changes {
    fn name(self) -> &'static str {
        match self {
            Self::People => "people",
            Self::Values => "people, values",
            Self::Columns => "people, columns",
            Self::Everything => "everything",
        }
    }

    fn of_values(self) -> bool {
        matches!(self, Self::Values | Self::Everything)
    }
}

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    // Pairs of values have up to twice the share of one, and batches of few people are skewed by chance.
    let Some(m) = input.possible(0, &[6, 9, 12]).last().map(|most| most / 3) else { return runs };
    let kinds = [
        (Changes::People, "m_invariant"),
        (Changes::People, MEMORY),
        (Changes::Values, "m_distinct"),
        (Changes::Values, MEMORY),
        (Changes::Columns, "m_invariant"),
        (Changes::Columns, MEMORY),
        (Changes::Everything, MEMORY),
    ];
    for (changes, method) in kinds {
        let key = format!("{}, {method}, m = {m}", changes.name());
        runs.push(Run::new(key, RELEASES as u64, move |harness| published(harness, changes, method, m)));
    }
    for memory in [true, false] {
        let key = format!("inferred, {}, m = {m}", if memory { MEMORY } else { NO_MEMORY });
        runs.push(Run::new(key, RELEASES as u64, move |harness| inferred(harness, memory, m)));
    }
    runs
}

/// People who are present, and those who have the other value of their pair.
#[derive(Debug)]
struct People {
    present: Vec<u32>,
    gone: Vec<u32>,
    next: u32,
    other: Vec<bool>,
    ranks: Vec<i32>,
    rng: ChaCha8Rng,
}

impl People {
    async fn new(input: &Input) -> Result<Self> {
        let ranks: Vec<i32> = input.ranks(&input.sensitive[0]).await?.into_iter().map(|rank| rank as i32).collect();
        let first = (ranks.len() / 3) as u32;
        let rng = ChaCha8Rng::seed_from_u64(input.seed);
        Ok(Self {
            present: (0..first).collect(),
            gone: Vec::new(),
            next: first,
            other: vec![false; ranks.len()],
            ranks,
            rng,
        })
    }

    fn paired(&self) -> i32 {
        self.ranks.iter().max().map_or(0, |most| (most + 1) / 2 * 2)
    }

    fn advance(&mut self, values_change: bool) {
        let count = self.present.len() / 20;
        self.present.shuffle(&mut self.rng);
        let left = self.present.split_off(self.present.len() - count);
        for _ in 0..count {
            if !self.gone.is_empty() && self.rng.random_bool(0.1) {
                let place = self.rng.random_range(0..self.gone.len());
                self.present.push(self.gone.swap_remove(place));
            } else if (self.next as usize) < self.ranks.len() {
                self.present.push(self.next);
                self.next += 1;
            }
        }
        self.gone.extend(left);
        if values_change {
            let rng = &mut self.rng;
            self.other.iter_mut().for_each(|other| *other ^= rng.random_bool(0.05));
        }
    }

    /// Returns the people of the table who are there, with their value and ward.
    fn snapshot(&self, input: &Input) -> Result<RecordBatch> {
        let people = input.at(&self.present)?;
        let paired = self.paired();
        let value = |place: u32| {
            let rank = self.ranks[place as usize];
            if self.other[place as usize] && rank < paired { rank ^ 1 } else { rank }
        };
        // Wards go with first values, but for one of seven people.
        let ward = |place: u32| if place.is_multiple_of(7) { 0 } else { self.ranks[place as usize] / 2 % WARDS };
        let column = |of: &dyn Fn(u32) -> i32| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(self.present.iter().map(|&place| of(place))))
        };
        let named = |name: &str| Arc::new(Field::new(name, DataType::Int32, false));
        let fields = people.schema().fields().iter().cloned().chain([named(VALUE), named(WARD)]).collect::<Vec<_>>();
        let columns = people.columns().iter().cloned().chain([column(&value), column(&ward)]).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// Makes the law of pairs as the table `law`: of values, or of values with wards.
async fn law(harness: &Harness, paired: i32, wards: bool) -> Result<()> {
    let pairs = format!(
        "SELECT value::INT AS from_value, (value + 1 - 2 * (value % 2))::INT AS to_value, 0.05 AS probability \
         FROM generate_series(0, {}) AS t(value)",
        paired - 1
    );
    let sql = match wards {
        true => format!(
            "SELECT composite(from_value, {WARD}) AS from_value, composite(to_value, {WARD}) AS to_value, probability \
             FROM ({pairs}) CROSS JOIN (SELECT value::INT AS {WARD} FROM generate_series(0, {}) AS t(value))",
            WARDS - 1
        ),
        false => pairs,
    };
    harness.keep("law", &sql).await.map(drop)
}

/// Returns a call for a release of table `snapshot` with table `ledger` as memory.
fn call(harness: &Harness, method: &str, m: usize, changes: Changes, release: usize, memory: bool) -> String {
    let input = &harness.input;
    let quasi: Vec<String> = match changes {
        Changes::People | Changes::Values => input.quasi.clone(),
        Changes::Columns | Changes::Everything => {
            let mut places = [release, release + 1].map(|number| number % input.quasi.len());
            places.sort_unstable();
            let one = usize::from(places[0] == places[1]);
            places[one..].iter().map(|&place| input.quasi[place].clone()).collect()
        }
    };
    let both = format!("composite({VALUE}, {WARD})");
    let sensitive = if changes == Changes::Everything { &both } else { VALUE };
    let mut options = String::new();
    if changes.of_values() {
        options += "updates => law, ";
    }
    match method {
        "m_invariant" => options += "groups => 'cohort', ",
        "m_distinct" => options += "disjoint => true, ",
        _ => {}
    }
    if release > 1 && memory {
        options += "previous => ledger, ";
    }
    // A writer of text does not fail.
    let _ = write!(options, "{}, private => true, {}", harness.roles_with(&quasi, sensitive), harness.seed(release));
    format!("{method}(snapshot, {m}, {options})")
}

async fn remember(harness: &Harness, method: &str, release: usize) -> Result<()> {
    let id = quoted(&harness.input.id);
    let own = if method == "m_invariant" { VALUE } else { "signature_label" };
    let entries = format!("SELECT {id}, signature, {own}, {release} AS release FROM published WHERE {id} IS NOT NULL");
    match release {
        1 => harness.keep("ledger", &entries).await.map(drop),
        _ => harness.run(&format!("INSERT INTO ledger {entries}")).await,
    }
}

async fn published(harness: Arc<Harness>, changes: Changes, method: &'static str, m: usize) -> Result<Vec<Point>> {
    let mut people = People::new(&harness.input).await?;
    law(&harness, people.paired(), changes == Changes::Everything).await?;
    let name = format!("{}: {method}", changes.name());
    let mut points = Vec::new();
    for release in 1..=RELEASES {
        if release > 1 {
            people.advance(changes.of_values());
        }
        harness.table("snapshot", people.snapshot(&harness.input)?)?;
        let call = call(&harness, method, m, changes, release, true);
        let seconds = harness.keep("published", &format!("SELECT * FROM {call}")).await?;
        remember(&harness, method, release).await?;
        let fake = harness.number("SELECT count(*) FILTER (WHERE counterfeit) FROM published").await?;
        let loss = "SELECT iloss FROM information_loss(snapshot, published) WHERE attribute = '*'";
        let error = format!(
            "SELECT 100 * median(relative_error) FROM query_accuracy(snapshot, published, queries => 1000, {})",
            harness.seed(format!("queries {release}"))
        );
        let figures = [
            ("counterfeits", 100.0 * fake / people.present.len() as f64),
            ("loss", harness.number(loss).await?),
            ("error", harness.number(&error).await?),
            ("seconds", seconds),
        ];
        points.extend(figures.map(|(figure, y)| Point::new(figure, &name, release as f64, y)));
        harness.step();
    }
    Ok(points)
}

async fn inferred(harness: Arc<Harness>, memory: bool, m: usize) -> Result<Vec<Point>> {
    let mut people = People::new(&harness.input).await?;
    law(&harness, people.paired(), false).await?;
    let (id, one) = (quoted(&harness.input.id), quoted(&harness.input.quasi[0]));
    let name = if memory { MEMORY } else { NO_MEMORY };
    let (mut tables, mut present) = (Vec::new(), Vec::new());
    let mut points = Vec::new();
    for release in 1..=RELEASES {
        if release > 1 {
            people.advance(true);
        }
        let snapshot = people.snapshot(&harness.input)?;
        present.push(numbered(&snapshot, release)?);
        harness.table("snapshot", snapshot)?;
        let call = call(&harness, MEMORY, m, Changes::Values, release, memory);
        harness.keep("published", &format!("SELECT * FROM {call}")).await?;
        remember(&harness, MEMORY, release).await?;
        // One quasi-identifier stands for all: the reader knows the groups.
        let table = format!("r{release}");
        harness.keep(&table, &format!("SELECT {id}, {one}, {VALUE}, group_id FROM published")).await?;
        tables.push(table);
        harness.step();
        if !LOOKS.contains(&release) {
            continue;
        }
        harness.table("original", concat_batches(&present[0].schema(), &present)?)?;
        let sql = format!(
            "SELECT count(*) FILTER (WHERE vulnerable) FROM disclosure(({}), original => original, updates => law, \
             strength => 'group', id => {id}, quasi => {one}, sensitive => {VALUE})",
            tables.join(", ")
        );
        points.push(Point::new("vulnerable", name, release as f64, harness.number(&sql).await?));
    }
    Ok(points)
}

fn findings(results: &Results) -> Vec<Finding> {
    let mut findings = vec![
        Finding::new(
            "Releases that do not know of each other give values away",
            format!(
                "{} versions, after {} to {RELEASES} releases",
                ends(&results.series("vulnerable", NO_MEMORY)),
                LOOKS[0]
            ),
            results.greatest("vulnerable", Some(NO_MEMORY)) > 0.0,
        ),
        Finding::new(
            "Those of `dynamic` leave nothing vulnerable",
            format!("{} versions", number(results.greatest("vulnerable", Some(MEMORY)))),
            results.greatest("vulnerable", Some(MEMORY)) == 0.0,
        ),
    ];
    findings.extend(results.each_beside(
        "counterfeits",
        "Counterfeits become more with time, and the more there is that changes",
        " %",
    ));
    for (name, series) in results.all("loss") {
        let growth = if falls(&series, 0.0) { ", no more" } else { "" };
        findings.push(Finding::beside("Ranges become wider with time", format!("{name}: {}{growth}", ends(&series))));
    }
    findings.extend(results.each_beside("error", "Errors of counts", " %"));
    findings
}
