//! Measurements of the page by a browser, and looks at its screenshot. It is Chromium without a window.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::tempdir;

use super::super::support::{err, shell};
use super::png::Picture;
use super::{EXPERIMENTS, SHARED, json, list, text};

const DESKTOP: usize = 1200;
const PHONE: usize = 390;
/// Chromium's windows are not narrower.
const NARROWEST: usize = 500;

/// Experiments of which screenshots are taken, which take a while.
const PICTURED: [&str; 3] = ["internal-updates", "query-error", "muco"];

/// Returns the browser, if there is one.
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("ANONYMIZE_CHROMIUM_BIN").filter(|name| !name.is_empty()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = named.or_else(|| {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let mut places = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
        places.find(|place| place.is_file())
    });
    if found.is_none() {
        assert_ne!(std::env::var("ANONYMIZE_CHROMIUM").as_deref(), Ok("require"), "there is no Chromium");
        println!("there is no Chromium; set ANONYMIZE_CHROMIUM_BIN to look at the page");
    }
    found
}

/// Opens a page and returns what the browser writes.
fn open(browser: &Path, page: &Path, width: usize, height: usize, what: &str) -> String {
    let here = tempdir().unwrap();
    let output = here.path().join("output");
    let mut running = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--force-device-scale-factor=1", "--disable-lcd-text"])
        .arg(format!("--user-data-dir={}", here.path().join("profile").display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(what)
        .arg(format!("file://{}", page.display()))
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser starts");
    let begin = Instant::now();
    let status = loop {
        match running.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > Duration::from_secs(120) => {
                running.kill().unwrap();
                panic!("the browser hangs");
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert!(status.success(), "{status}");
    fs::read_to_string(output).unwrap()
}

/// Returns the page with one experiment only, for screenshots have an end, or with all.
fn page_of(name: Option<&str>) -> String {
    let page = fs::read_to_string(SHARED.join("index.html")).unwrap();
    match name {
        Some(name) => {
            page.replace("</head>", &format!("<style>section:not(#{name}) {{ display: none }}</style></head>"))
        }
        None => page,
    }
}

/// Measures the page of the experiments in the browser; its charts' files are read as XML.
fn measure(browser: &Path, page: &str, width: usize) -> Value {
    let mut charts = Vec::new();
    for name in EXPERIMENTS {
        for figure in list(&json(&SHARED.join(name).join("report.json"))["figures"]) {
            charts.push(fs::read_to_string(SHARED.join(name).join(text(&figure["file"]))).unwrap());
        }
    }
    measure_page(browser, page, width, &charts)
}

fn measure_page(browser: &Path, page: &str, width: usize, charts: &[String]) -> Value {
    let here = tempdir().unwrap();
    let files = serde_json::to_string(charts).unwrap().replace('<', "\\u003c");
    let script = format!("<script>\nconst FILES = {files};\n{}</script></body>", include_str!("measure.js"));
    let place = here.path().join("page.html");
    let mut page = page.replace("</body>", &script);
    if width < NARROWEST {
        // What it measures is written to the page around it.
        let inner = page.replace('&', "&amp;").replace('"', "&quot;");
        page = format!(
            "<!doctype html><html><body><iframe width={width} height=1000 style=\"border: 0\" srcdoc=\"{inner}\"></iframe></body></html>"
        );
    }
    fs::write(&place, page).unwrap();
    let dom = open(browser, &place, width.max(NARROWEST), 1000, "--dump-dom");
    let measured = dom.split_once("<pre id=\"measured\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (measured, _) = measured.unwrap_or_else(|| panic!("the script failed"));
    serde_json::from_str(measured).unwrap()
}

fn rectangle(value: &Value) -> [f64; 4] {
    let sides: Vec<f64> = list(value).iter().map(|side| side.as_f64().unwrap()).collect();
    sides.try_into().unwrap()
}

/// Names of the series of a figure, as in the report.
fn names(id: &str) -> Vec<String> {
    let of = |name: &&&str| id.strip_prefix(**name).is_some_and(|rest| rest.starts_with('-'));
    let experiment = EXPERIMENTS.iter().find(of).unwrap();
    let figure = &id[experiment.len() + 1..];
    let report = json(&SHARED.join(experiment).join("report.json"));
    let figure = list(&report["figures"]).iter().find(|other| other["id"] == figure).unwrap();
    list(&figure["series"]).iter().map(|series| text(&series[0]).to_owned()).collect()
}

fn legible(page: &Value, smallest: f64, narrowest: f64) {
    assert_eq!(page["malformed"], 0, "a chart is not XML");
    assert_eq!(page["files"], list(&page["charts"]).len(), "charts that are not shown");
    charts_are_legible(page, smallest, narrowest, names);
}

/// Checks the charts; `names` are those of a chart's series, as far as they are known otherwise.
fn charts_are_legible(page: &Value, smallest: f64, narrowest: f64, names: impl Fn(&str) -> Vec<String>) {
    let width = page["width"].as_f64().unwrap();
    assert!(page["scroll"].as_f64().unwrap() <= width, "the page is wider than the window");
    for chart in list(&page["charts"]) {
        let id = text(&chart["id"]);
        let ([left, top, right, bottom], frame) = (rectangle(&chart["box"]), rectangle(&chart["frame"]));
        assert!(frame[0] >= 0.0 && frame[2] <= width, "{id} is cut off: {frame:?}");
        assert!(right - left >= narrowest && right - left <= 800.0, "{id} is {} wide", right - left);
        assert!((0.4..1.6).contains(&((bottom - top) / (right - left))), "{id} has another shape");
        let size = chart["smallest"].as_f64().unwrap();
        assert!(size >= smallest, "{id} has letters of {size} px");
        assert!(chart["texts"].as_u64().unwrap() >= 7, "{id} has few labels");
        assert!(list(&chart["outside"]).is_empty(), "{id}: texts are cut off: {}", chart["outside"]);
        assert!(list(&chart["meeting"]).is_empty(), "{id}: texts cover each other: {}", chart["meeting"]);
        let mut drawn: Vec<&str> = list(&chart["series"]).iter().map(|series| text(&series["name"])).collect();
        let entries: Vec<&str> = list(&chart["entries"]).iter().map(|entry| text(&entry["name"])).collect();
        drawn.reverse();
        let names = names(id);
        assert_eq!(drawn, entries, "{id}: lines and legend");
        assert!(names.is_empty() && !entries.is_empty() || entries == names, "{id}: legend");
        for series in list(&chart["series"]).iter().chain(list(&chart["entries"])) {
            let [left, top, right, bottom] = rectangle(&series["box"]);
            assert!(right - left >= 4.0 && bottom - top >= 4.0, "{id}: {} is not drawn", series["name"]);
            assert_eq!(series["inside"], true, "{id}: {} leaves the chart", series["name"]);
        }
    }
}

#[test]
fn charts_are_legible_on_a_desktop_and_on_a_phone() {
    let Some(browser) = browser() else { return };
    legible(&measure(&browser, &page_of(None), DESKTOP), 11.0, 500.0);
    legible(&measure(&browser, &page_of(None), PHONE), 9.5, 320.0);
}

/// The page of `anonymize advise`.
#[test]
fn advice_is_legible_on_a_desktop_and_on_a_phone() {
    let Some(browser) = browser() else { return };
    let here = tempdir().unwrap();
    let make = "COPY (SELECT person_id, age, gender, occupation FROM census(1500, 5)) TO 'people.csv'";
    assert!(shell(here.path(), &["-q", "-c", make]).status.success());
    let roles = ["--id", "person_id", "--quasi", "age,gender", "--sensitive", "occupation"];
    let output =
        shell(here.path(), &[&["advise", "people.csv", "--queries", "100", "--seed", "3"][..], &roles].concat());
    assert!(output.status.success(), "{}", err(&output));
    let page = fs::read_to_string(here.path().join("advice.html")).unwrap();
    for (width, smallest, narrowest) in [(DESKTOP, 11.0, 500.0), (PHONE, 9.5, 320.0)] {
        let measured = measure_page(&browser, &page, width, &[]);
        assert!(list(&measured["charts"]).len() >= 3, "{width}: {measured}");
        charts_are_legible(&measured, smallest, narrowest, |_| Vec::new());
    }
}

#[test]
fn lines_and_letters_are_on_the_screenshot() {
    let Some(browser) = browser() else { return };
    let here = tempdir().unwrap();
    // Those with the most lines; where the lines and letters of the others are was measured.
    for name in PICTURED {
        let page = page_of(Some(name));
        let measured = measure(&browser, &page, DESKTOP);
        let (place, shot) = (here.path().join("page.html"), here.path().join("page.png"));
        fs::write(&place, page).unwrap();
        let height = measured["height"].as_u64().unwrap() as usize;
        open(&browser, &place, DESKTOP, height, &format!("--screenshot={}", shot.display()));
        let picture = Picture::read(&shot);
        assert_eq!((picture.width, picture.height), (DESKTOP, height));
        let charts = list(&measured["charts"]);
        assert!(!charts.is_empty(), "{name} shows no chart");
        for chart in charts {
            seen(&picture, chart);
        }
    }
}

fn seen(picture: &Picture, chart: &Value) {
    let (id, whole) = (text(&chart["id"]), rectangle(&chart["box"]));
    let all = picture.count(whole, |_| true);
    let paper = picture.count(whole, |pixel| pixel == [255; 3]);
    assert!(paper * 2 > all && paper < all, "{id}: {paper} of {all} pixels are white");
    for (number, entry) in list(&chart["entries"]).iter().enumerate() {
        let (label, hex) = (text(&entry["label"]), text(&entry["colour"]).trim_start_matches('#'));
        let colour = [0, 2, 4].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        let same = |pixel: [u8; 3]| pixel.iter().zip(colour).all(|(one, other)| one.abs_diff(other) <= 12);
        assert!(picture.count(rectangle(&entry["box"]), same) >= 15, "{id}: the legend has no colour of {label}");
        let dark = picture.count(rectangle(&entry["label_box"]), |pixel| pixel.iter().all(|&channel| channel < 110));
        assert!(dark >= 3, "{id}: {label} is not written: {dark} dark pixels");
        // Lines may cover each other, but nothing covers the first.
        if number == 0 {
            let first = list(&chart["series"]).last().unwrap();
            assert!(picture.count(rectangle(&first["box"]), same) >= 30, "{id}: no line of {label}");
        }
    }
}
