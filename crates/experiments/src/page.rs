//! Page of all experiments in a directory, as HTML and as Markdown.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::error::Result;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;
use serde_json::Value;

use super::chart::plain;
use super::input::ROW;
use super::results::number;
use super::store::{self, Drawn, Report};
use super::{EXPERIMENTS, broken, experiment::Experiment};

/// Style of pages.
pub const PAGE_CSS: &str = include_str!("page.css");

/// Writes `index.html` and `README.md`; the place of the first.
pub(super) fn write(out: &Path) -> Result<PathBuf> {
    let mut shown = Vec::new();
    for experiment in &EXPERIMENTS {
        if let Some(report) = store::report(out, experiment.name)? {
            let charts =
                report.figures.iter().map(|figure| fs::read_to_string(out.join(&report.name).join(&figure.file)));
            let charts = charts.collect::<std::io::Result<Vec<_>>>()?;
            shown.push(Shown::new(experiment, report, charts));
        }
    }
    store::write(&out.join("README.md"), render(&shown, "page.md")?.as_bytes())?;
    let place = out.join("index.html");
    store::write(&place, render(&shown, "page.html")?.as_bytes())?;
    Ok(place)
}

fn render(shown: &[Shown], page: &str) -> Result<String> {
    let mut environment = Environment::new();
    environment
        .set_auto_escape_callback(|name| if name.ends_with("html") { AutoEscape::Html } else { AutoEscape::None });
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_template("page.html", include_str!("page.html")).map_err(broken)?;
    environment.add_template("page.md", include_str!("page.md")).map_err(broken)?;
    let page = environment.get_template(page).map_err(broken)?;
    page.render(context! { experiments => Serde(shown), css => PAGE_CSS }).map_err(broken)
}

/// An experiment as the template takes it.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    title: String,
    source: String,
    about: String,
    command: String,
    settings: Vec<(&'static str, String)>,
    findings: Vec<Row>,
    /// Number of findings that can fail, and number of these that do not.
    asked: usize,
    found: usize,
    figures: Vec<Chart>,
    took: String,
}

#[derive(Debug, Serialize)]
struct Row {
    claim: String,
    here: String,
    kind: &'static str,
    sign: &'static str,
    mark: &'static str,
}

#[derive(Debug, Serialize)]
struct Chart {
    id: String,
    title: String,
    file: String,
    svg: String,
    x: String,
    y: String,
    series: Vec<String>,
    /// For each `x`, it and the `y` of each series.
    points: Vec<Vec<String>>,
}

impl Shown {
    fn new(experiment: &Experiment, report: Report, charts: Vec<String>) -> Self {
        let rows = report.findings.iter().map(|finding| {
            let (kind, sign, mark) = match finding.holds {
                Some(true) => ("found", "✓", "found again"),
                Some(false) => ("lost", "✗", "not found again"),
                None => ("beside", "≈", "to compare"),
            };
            Row { claim: finding.claim.clone(), here: finding.here.clone(), kind, sign, mark }
        });
        Self {
            command: command(experiment, &report.settings),
            settings: settings(&report),
            took: duration(report.seconds),
            findings: rows.collect(),
            asked: report.findings.iter().filter(|finding| finding.holds.is_some()).count(),
            found: report.findings.iter().filter(|finding| finding.holds == Some(true)).count(),
            figures: report.figures.into_iter().zip(charts).map(|(figure, svg)| Chart::new(figure, svg)).collect(),
            name: report.name,
            title: report.title,
            source: report.source,
            about: report.about,
        }
    }
}

impl Chart {
    fn new(figure: Drawn, svg: String) -> Self {
        let mut places: Vec<f64> = figure.series.iter().flat_map(|(_, points)| points).map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let row = |x: &f64| {
            let cells = figure.series.iter().map(|(_, points)| {
                points.iter().find(|point| point.0 == *x).map_or_else(String::new, |point| plain(point.1))
            });
            std::iter::once(plain(*x)).chain(cells).collect()
        };
        Self {
            points: places.iter().map(row).collect(),
            series: figure.series.iter().map(|(name, _)| name.clone()).collect(),
            id: figure.id,
            title: figure.title,
            file: figure.file,
            svg,
            x: figure.x,
            y: figure.y,
        }
    }
}

/// Returns the command that gives the same results.
fn command(experiment: &Experiment, settings: &Value) -> String {
    let quick = settings["mode"] == "quick";
    let mut words = vec![format!("anonymize experiment {}", experiment.name)];
    if quick {
        words.push("--quick".to_owned());
    }
    words.push(format!("--seed {}", settings["seed"]));
    let size = experiment.rows[usize::from(!quick)] as u64;
    match settings["microdata"].as_str() {
        Some(file) if file != "synthetic census" => {
            words.push(format!("--data {}", word(file)));
            words.push(format!("--quasi {}", word(&names(&settings["quasi"]).join(","))));
            words.push(format!("--sensitive {}", word(&names(&settings["sensitive"]).join(","))));
            let id = settings["id"].as_str().filter(|id| *id != ROW);
            for (option, value) in
                [("id", id), ("time", settings["time"].as_str()), ("hierarchies", settings["hierarchies"].as_str())]
            {
                words.extend(value.map(|value| format!("--{option} {}", word(value))));
            }
        }
        _ => {
            let other = settings["rows"].as_u64().filter(|rows| *rows != size);
            words.extend(other.map(|rows| format!("--rows {rows}")));
        }
    }
    words.join(" ")
}

/// Returns a word of a shell's command line.
fn word(text: &str) -> String {
    if text.chars().all(|c| c.is_alphanumeric() || "._-/,".contains(c)) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn settings(report: &Report) -> Vec<(&'static str, String)> {
    let settings = &report.settings;
    let text = |name: &str| match &settings[name] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, plain),
        _ => String::new(),
    };
    let mut lines = vec![
        ("Microdata", text("microdata")),
        ("Rows", settings["rows"].as_u64().map_or_else(String::new, |rows| number(rows as f64))),
        ("Quasi-identifiers", names(&settings["quasi"]).join(", ")),
        ("Sensitive attribute", names(&settings["sensitive"]).join(", ")),
        ("Time", text("time")),
        ("Seed", settings["seed"].to_string()),
        ("Mode", text("mode")),
        ("Version", text("version")),
        ("Took", duration(report.seconds)),
    ];
    lines.retain(|(_, value)| !value.is_empty());
    lines
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::experiment::Finding;

    fn report(settings: Value) -> Report {
        Report {
            name: EXPERIMENTS[0].name.to_owned(),
            title: "Title <b> & more".to_owned(),
            source: "Source".to_owned(),
            about: "About".to_owned(),
            settings,
            seconds: 200.0,
            findings: vec![Finding::new("a <i>", "1", true), Finding::new("b", "2", false), Finding::beside("c", "3")],
            figures: vec![Drawn {
                id: "4a".to_owned(),
                title: "Figure".to_owned(),
                x: "r".to_owned(),
                y: "tuples".to_owned(),
                file: "fig-4a.svg".to_owned(),
                series: vec![("l".to_owned(), vec![(1.0, 1234.0), (2.0, 0.5)]), ("m".to_owned(), vec![(2.0, 7.0)])],
            }],
        }
    }

    fn census() -> Value {
        let rows = EXPERIMENTS[0].rows[0];
        json!({"mode": "quick", "seed": 7, "microdata": "synthetic census", "rows": rows, "quasi": ["age", "zip"], "sensitive": ["income"], "version": "1", "time": null})
    }

    #[test]
    fn text_is_escaped_and_charts_are_not() {
        let shown = Shown::new(&EXPERIMENTS[0], report(census()), vec!["<svg id=\"chart\"></svg>".to_owned()]);
        assert_eq!((shown.found, shown.asked), (1, 2));
        assert_eq!(shown.figures[0].points, [["1", "1,234", ""], ["2", "0.5", "7"]]);
        let shown = [shown];
        let page = render(&shown, "page.html").expect("a page");
        for part in [
            "Title &lt;b&gt; &amp; more",
            "a &lt;i&gt;",
            "<svg id=\"chart\"></svg>",
            "✓&nbsp;found again",
            "✗&nbsp;not found again",
            "≈&nbsp;to compare",
            "1 of 2 found again",
            "3 min 20 s",
            "age, zip",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        let name = EXPERIMENTS[0].name;
        assert!(
            page.contains(&format!("<figure id=\"{name}-4a\">")) && page.contains(&format!("{name}/points.parquet"))
        );
        let markdown = render(&shown, "page.md").expect("a page");
        for part in
            ["| a <i> | 1 | ✓ |", "| b | 2 | ✗ |", "1 of 2 | 3 min 20 s |", &format!("![Figure]({name}/fig-4a.svg)")]
        {
            assert!(markdown.contains(part), "{part} is not in {markdown}");
        }
    }

    #[test]
    fn a_page_of_nothing_says_so() {
        assert!(render(&[], "page.html").expect("a page").contains("no results yet"));
    }

    #[test]
    fn commands_make_the_same_again() {
        let name = EXPERIMENTS[0].name;
        let mut settings = census();
        assert_eq!(command(&EXPERIMENTS[0], &settings), format!("anonymize experiment {name} --quick --seed 7"));
        settings["rows"] = json!(500);
        assert_eq!(
            command(&EXPERIMENTS[0], &settings),
            format!("anonymize experiment {name} --quick --seed 7 --rows 500")
        );
        settings["microdata"] = json!("my adults.csv");
        settings["mode"] = json!("full");
        settings["id"] = json!(ROW);
        assert_eq!(
            command(&EXPERIMENTS[0], &settings),
            format!("anonymize experiment {name} --seed 7 --data 'my adults.csv' --quasi age,zip --sensitive income")
        );
        settings["id"] = json!("person");
        settings["hierarchies"] = json!("zip.csv");
        assert!(command(&EXPERIMENTS[0], &settings).ends_with("--sensitive income --id person --hierarchies zip.csv"));
    }

    #[test]
    fn durations() {
        assert_eq!(
            [0.25, 59.6, 119.0, 125.4, 7300.0].map(duration),
            ["0.2 s", "60 s", "119 s", "2 min 5 s", "2 h 1 min"]
        );
    }
}
