//! The page of `anonymize advise`: one HTML file, without scripts.

use anonymize_experiments::{Figure, PAGE_CSS, draw, number};
use datafusion::error::{DataFusionError, Result};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;

use super::{Advice, Row};

/// Measure that is drawn: of a row, in the unit of the axis.
type Measure = fn(&Row) -> Option<f64>;

const FIGURES: [(Figure<'static>, Measure, &str); 4] = [
    (
        Figure::new("error", "Errors of counts", "m, l, k or 1/delta", "median relative error, %"),
        |row| row.error.map(|share| 100.0 * share),
        "Random counts, each of a tenth of the values of every quasi-identifier together and a range of the sensitive attribute, asked of \
         the release and of the table.",
    ),
    (
        Figure::new("loss", "Loss", "m, l, k or 1/delta", "loss (LM), 0 to 1"),
        |row| row.loss,
        "The share of each attribute's values that a published range holds. Anatomy publishes exact values; of MuCo it is the mean \
         distance to them.",
    ),
    (
        Figure::new(
            "risk",
            "Given away by two releases that know nothing of each other",
            "m, l or k",
            "people in both releases, %",
        ),
        |row| row.at_risk.map(|share| 100.0 * share),
        "A second release in which half the people are those of the first: for how many of them only one sensitive value is left, to a \
         reader who knows each person's group. With the memory of m_invariant and m_distinct it would be nobody.",
    ),
    (
        Figure::new("counterfeits", "Counterfeits of a second release", "m", "counterfeits"),
        |row| row.counterfeits,
        "The price of memory: rows that stand for nobody, where half the people have left and as many have come.",
    ),
];

#[derive(Debug, Serialize)]
struct Recommended {
    what: String,
    why: String,
    sql: String,
}

#[derive(Debug, Serialize)]
struct Chart {
    id: &'static str,
    svg: String,
    about: &'static str,
}

/// Returns the page of a table's advice.
pub(super) fn render(table: &str, advice: &Advice) -> Result<String> {
    let mut charts = Vec::new();
    for (figure, measure, about) in &FIGURES {
        let series = series(advice, *measure);
        if series.is_empty() {
            continue;
        }
        let series: Vec<(&str, Vec<(f64, f64)>)> =
            series.iter().map(|(name, points)| (name.as_str(), points.clone())).collect();
        charts.push(Chart { id: figure.id, svg: draw(figure, &series)?, about });
    }
    let recommended = advice.rows.iter().filter_map(|row| {
        let (why, sql) = (row.recommended.clone()?, row.sql.clone()?);
        Some(Recommended { what: format!("{} with {} = {}", row.method, row.parameter, row.value), why, sql })
    });
    let recommended: Vec<Recommended> = recommended.collect();
    let rows: Vec<Vec<String>> = advice.rows.iter().map(cells).collect();
    let mut environment = Environment::new();
    environment
        .set_auto_escape_callback(|name| if name.ends_with("html") { AutoEscape::Html } else { AutoEscape::None });
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_template("page.html", include_str!("page.html")).map_err(broken)?;
    let page = environment.get_template("page.html").map_err(broken)?;
    page.render(context! {
        css => PAGE_CSS,
        table => table,
        measured => number(advice.measured as f64),
        of => number(advice.of as f64),
        sampled => advice.measured < advice.of,
        recommended => Serde(recommended),
        charts => Serde(charts),
        rows => Serde(rows),
    })
    .map_err(broken)
}

fn broken(error: minijinja::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn series(advice: &Advice, measure: Measure) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in &advice.rows {
        let Some(y) = measure(row) else { continue };
        let name = format!("{}, {}", row.method, row.parameter);
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push((row.value, y)),
            None => series.push((name, vec![(row.value, y)])),
        }
    }
    series
}

fn cells(row: &Row) -> Vec<String> {
    let percent = |share: Option<f64>| share.map_or_else(String::new, |share| format!("{} %", number(100.0 * share)));
    vec![
        row.method.clone(),
        format!("{} = {}", row.parameter, row.value),
        row.loss.map_or_else(String::new, number),
        percent(row.error),
        percent(row.at_risk),
        row.counterfeits.map_or_else(String::new, number),
        row.note.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_all() {
        let row = |method: &str, value: f64, recommended: Option<&str>| Row {
            method: method.to_owned(),
            parameter: "m".to_owned(),
            value,
            loss: Some(0.125),
            error: Some(0.0325),
            counterfeits: Some(1234.0),
            at_risk: None,
            recommended: recommended.map(str::to_owned),
            note: Some("a <b>".to_owned()),
            sql: recommended.map(|_| "SELECT 'x' < 1;".to_owned()),
        };
        let rows = vec![row("m_invariant", 2.0, None), row("m_invariant", 3.0, Some("because & so"))];
        let advice = Advice { rows, measured: 200_000, of: 1_000_000 };
        let page = render("people <1>.csv", &advice).unwrap();
        for part in [
            "people &lt;1&gt;.csv",
            "m_invariant with m = 3",
            "because &amp; so",
            "SELECT &#x27;x&#x27; &lt; 1;",
            "200,000 of its 1,000,000 rows",
            "3.25 %",
            "1,234",
            "a &lt;b&gt;",
            "Errors of counts",
            "data-name=\"m_invariant, m\"",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        // What was not measured has no chart, and the page no script.
        assert!(!page.contains("id=\"risk\"") && page.contains("id=\"error\"") && !page.contains("<script"));
    }
}
