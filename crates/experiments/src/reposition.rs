//! Eligible days of a skewed stream, by the length of the window (reposition).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::error::Result;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::experiment::{Experiment, Figure, Finding, Run};
use super::harness::Harness;
use super::input::Input;
use super::results::{Point, Results, ends, falls, number, rises};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "reposition",
    title: "Small skewed snapshots",
    source: "Wang, Xu, Wong and Fu (ICDM 2010); the paper leaves its experiments to a report that is not at hand",
    about: "A stream of days, of which many are not l-eligible: one kind of record is too frequent. Records are published up to a window's length \
            late, less one day, or suppressed; a window of 1 is plain suppression. The stream is made of the synthetic census: some \
            twenty records a day, of ten kinds (occupations, by five), a third of which come in bursts, one for each kind every twenty days; or it is \
            the table of --data by --time. Queries are 1,000 counts of one kind in a range of days that holds such a record.",
    quasi: &[],
    sensitive: &["occupation"],
    rows: [6_000, 100_000],
    figures: &[
        Figure::new("suppressed", "Records that are not published", "window, days", "% of all records"),
        Figure::new("moved", "Records that are published late", "window, days", "% of all records"),
        Figure::new("late", "How late they are", "window, days", "days, mean of those that are late"),
        Figure::new("error", "Errors of counts by length of the range (least l)", "days", "mean relative error, %"),
    ],
    runs,
    findings,
};

const WINDOWS: [usize; 6] = [1, 2, 3, 5, 7, 14];
/// Days of the ranges of queries.
const RANGES: [i64; 5] = [1, 3, 7, 14, 30];
const QUERIES: usize = 1_000;
/// Not drawn: days that are not eligible as they are, and published days that are not, in percent.
const SKEWED: &str = "skewed";
const WRONG: &str = "wrong";

fn runs(input: &Input) -> Vec<Run> {
    let mut runs = Vec::new();
    // Bursts make ten kinds as diverse as this; a real table as diverse as it is.
    let allowed: &[usize] = if input.time.is_some() { &input.possible(0, &[2, 3, 4, 5, 8, 10]) } else { &[4, 5, 6] };
    let some = allowed[allowed.len().saturating_sub(3)..].to_vec();
    for &l in &some {
        for window in WINDOWS {
            let least = l == some[0];
            runs.push(Run::new(format!("l = {l}, window = {window}"), 1, move |harness| {
                stream(harness, l, window, least)
            }));
        }
    }
    runs
}

async fn stream(harness: Arc<Harness>, l: usize, window: usize, least: bool) -> Result<Vec<Point>> {
    harness.table("records", records(&harness.input).await?)?;
    if harness.input.time.is_some() {
        harness.keep("days", DAYS).await?;
    } else {
        harness.keep("days", "SELECT * FROM records").await?;
    }
    let call = format!(
        "reposition(days, {l}, time => day, window => {window}, sensitive => kind, finish => true, private => true, {})",
        harness.seed("")
    );
    let columns = harness.columns(&format!("SELECT original_time, coalesce(day, -1), kind FROM {call}")).await?;
    let record = |at: usize| Record {
        day: columns[0][at] as i64,
        published: Some(columns[1][at] as i64).filter(|&day| day >= 0),
        kind: columns[2][at] as i64,
    };
    let records: Vec<Record> = (0..columns[0].len()).map(record).collect();
    harness.step();

    let share = |count: usize| 100.0 * count as f64 / records.len() as f64;
    let suppressed = records.iter().filter(|record| record.published.is_none()).count();
    let late: Vec<i64> = records
        .iter()
        .filter_map(|record| record.published.map(|day| day - record.day))
        .filter(|&days| days > 0)
        .collect();
    let name = format!("l = {l}");
    let x = window as f64;
    let mut points = vec![
        Point::new("suppressed", &name, x, share(suppressed)),
        Point::new("moved", &name, x, share(late.len())),
        Point::new(SKEWED, &name, x, ineligible(&records, l, |record| Some(record.day))),
        Point::new(WRONG, &name, x, ineligible(&records, l, |record| record.published)),
    ];
    if !late.is_empty() {
        points.push(Point::new("late", &name, x, late.iter().sum::<i64>() as f64 / late.len() as f64));
    }
    if least {
        for days in RANGES {
            points.push(Point::new(
                "error",
                format!("window {window}"),
                days as f64,
                100.0 * error(&records, days, harness.input.seed),
            ));
        }
    }
    Ok(points)
}

/// A record's own day, the one on which it is published, and its sensitive value.
#[derive(Debug, Clone, Copy)]
struct Record {
    day: i64,
    published: Option<i64>,
    kind: i64,
}

/// Days as numbers, whatever the times are.
const DAYS: &str = "SELECT CASE WHEN arrow_typeof(time) LIKE 'Date%' OR arrow_typeof(time) LIKE 'Timestamp%' \
                    THEN date_part('epoch', date_trunc('day', time::TIMESTAMP))::BIGINT / 86400 ELSE time::BIGINT END AS day, kind FROM records";

/// Returns the stream: the table of `--data` with `time` and `kind`, or one made of the census with `day` and `kind`.
async fn records(input: &Input) -> Result<RecordBatch> {
    let ranks = input.ranks(&input.sensitive[0]).await?;
    if let Some(time) = input.time.as_ref().and_then(|time| input.people.column_by_name(time)) {
        let kinds: ArrayRef = Arc::new(Int64Array::from(ranks));
        return Ok(RecordBatch::try_from_iter([("time", Arc::clone(time)), ("kind", kinds)])?);
    }
    let (kinds, every) = (10, 20);
    let days = (ranks.len() / 20).max(1) as i64;
    let mut rng = ChaCha8Rng::seed_from_u64(input.seed);
    let day = |kind: i64, rng: &mut ChaCha8Rng| {
        let day = rng.random_range(0..days);
        let burst = (day / every * every + kind * (every / kinds)).min(days - 1);
        if rng.random_bool(0.3) { burst } else { day }
    };
    let (days, kinds): (Vec<i64>, Vec<i64>) =
        ranks.into_iter().map(|rank| rank / 5 % kinds).map(|kind| (day(kind, &mut rng), kind)).unzip();
    let columns: [(&str, ArrayRef); 2] =
        [("day", Arc::new(Int64Array::from(days))), ("kind", Arc::new(Int64Array::from(kinds)))];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Returns the percentage of days on which some kind has more than `1/l` of records.
fn ineligible(records: &[Record], l: usize, day: impl Fn(&Record) -> Option<i64>) -> f64 {
    let mut days: HashMap<i64, HashMap<i64, usize>> = HashMap::new();
    for record in records {
        if let Some(day) = day(record) {
            *days.entry(day).or_default().entry(record.kind).or_default() += 1;
        }
    }
    let skewed = days.values().filter(|kinds| kinds.values().any(|&count| count * l > kinds.values().sum::<usize>()));
    100.0 * skewed.count() as f64 / days.len().max(1) as f64
}

/// Returns the mean relative error of random queries with ranges of so many days.
fn error(records: &[Record], days: i64, seed: u64) -> f64 {
    let mut counts: HashMap<(i64, i64), [f64; 2]> = HashMap::new();
    for record in records {
        counts.entry((record.kind, record.day)).or_default()[0] += 1.0;
        if let Some(day) = record.published {
            counts.entry((record.kind, day)).or_default()[1] += 1.0;
        }
    }
    let first = records.iter().map(|record| record.day).min().unwrap_or(0);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let one = |rng: &mut ChaCha8Rng| {
        let record = records[rng.random_range(0..records.len())];
        let begin = rng.random_range((record.day - days + 1).max(first)..=record.day);
        let count = |which: usize| {
            (begin..begin + days).filter_map(|day| counts.get(&(record.kind, day))).map(|both| both[which]).sum::<f64>()
        };
        (count(1) - count(0)).abs() / count(0)
    };
    (0..QUERIES).map(|_| one(&mut rng)).sum::<f64>() / QUERIES as f64
}

fn findings(results: &Results) -> Vec<Finding> {
    let skewed = results
        .all(SKEWED)
        .iter()
        .map(|(name, series)| format!("{} % with {name}", number(series[0].1)))
        .collect::<Vec<_>>();
    let mut findings = vec![
        Finding::new(
            "Most days of such a stream are not l-eligible (Section I)",
            skewed.join(", "),
            results.greatest(SKEWED, None) > 0.0,
        ),
        Finding::new(
            "Every published day is l-eligible (Definition 1)",
            format!("{} % of the published days are not", number(results.greatest(WRONG, None))),
            results.greatest(WRONG, None) == 0.0,
        ),
    ];
    findings.extend(results.each(
        "suppressed",
        "Records that are published late need not be suppressed: the longer the window, the fewer are lost",
        " % with windows of 1 to 14 days",
        |series| falls(series, 0.5),
    ));
    for (name, series) in results.all("error") {
        let (claim, here) = (
            "Counts over more days are nearly exact, for records are moved by few",
            format!("{name}: {} %, over 1 to 30 days", ends(&series)),
        );
        // With a short window much is suppressed, and stays away from every range.
        let long = WINDOWS[3..].iter().any(|window| name == format!("window {window}"));
        findings.push(if long { Finding::new(claim, here, falls(&series, 0.5)) } else { Finding::beside(claim, here) });
    }
    let late: Vec<_> = results.all("late");
    for (name, series) in late {
        findings.push(Finding::beside(
            "The longer the window, the later records can be",
            format!(
                "{name}: {} days in the mean{}",
                ends(&series),
                if rises(&series, 0.0) { "" } else { ", no later" }
            ),
        ));
    }
    findings
}
