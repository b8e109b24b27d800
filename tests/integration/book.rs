//! README and the book of `docs`: links lead somewhere, no page is forgotten, and what mdBook makes of it is whole.

use std::path::{Path, PathBuf};

use super::docs::documents;
use super::support::path;

/// Every link of a page to another file or a heading leads somewhere. Pages of the book link to files of the book
/// only: nothing else is where the book is.
#[test]
fn links_lead_somewhere() {
    let root = path("");
    let root = Path::new(&root);
    let book = root.join("docs").canonicalize().unwrap();
    let mut pages = vec!["CONTRIBUTING.md".to_owned(), "CHANGELOG.md".to_owned(), "sql/README.md".to_owned()];
    std::env::set_current_dir(root).unwrap();
    pages.extend(documents());
    let (mut links, mut broken) = (0, Vec::new());
    for page in &pages {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for target in links_of(&text) {
            if target.starts_with("http") || target.is_empty() {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let place = match file {
                "" => root.join(page),
                file => root.join(page).parent().unwrap().join(file),
            };
            let found = match heading {
                "" => place.exists(),
                heading => std::fs::read_to_string(&place).is_ok_and(|text| headings(&text).any(|own| own == heading)),
            };
            if !found {
                broken.push(format!("{page}: {target}"));
            } else if page.starts_with("docs/") && !place.canonicalize().unwrap().starts_with(&book) {
                broken.push(format!("{page}: {target} is not in the book"));
            }
        }
    }
    assert!(links > 50, "only {links} links");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// `docs/SUMMARY.md` is the table of contents: a page that is not in it is not in the book.
#[test]
fn every_page_is_in_the_summary() {
    std::env::set_current_dir(path("")).unwrap();
    let summary = std::fs::read_to_string("docs/SUMMARY.md").unwrap();
    let mut listed: Vec<String> = links_of(&summary).map(|target| format!("docs/{target}")).collect();
    listed.sort();
    let pages = documents().into_iter().filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md");
    assert_eq!(listed, pages.collect::<Vec<_>>(), "left: docs/SUMMARY.md, right: the pages there are");
}

/// README is short: longer texts belong on a page of `docs`.
#[test]
fn readme_is_short() {
    let lines = std::fs::read_to_string(path("README.md")).unwrap().lines().count();
    assert!(lines <= 250, "{lines} lines");
}

/// The book of `.ci/book` is whole: links of all pages lead to its files, and search has entries.
/// `ANONYMIZE_BOOK=require` where it was made just now, as in `.ci/run`.
#[test]
fn the_book_is_whole() {
    if std::env::var("ANONYMIZE_BOOK").as_deref() != Ok("require") {
        println!("the book is not looked at; .ci/book makes it, ANONYMIZE_BOOK=require looks at it");
        return;
    }
    let book = PathBuf::from(path("target/book"));
    let mut pages = Vec::new();
    let mut searched = false;
    let mut folders = vec![book.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("target/book, which .ci/book makes").map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if name.ends_with(".html") {
                pages.push(entry.path());
            } else if name.starts_with("searchindex") {
                searched |= std::fs::read_to_string(entry.path()).unwrap().contains("m_invariant");
            }
        }
    }
    assert!(searched, "no search index");
    std::env::set_current_dir(path("")).unwrap();
    let written = documents().into_iter().filter(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md");
    for page in written {
        let html = book.join(page.trim_start_matches("docs/")).with_extension("html");
        assert!(pages.contains(&html), "{page} is not in the book");
    }
    let mut broken = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        let targets = ["href=\"", "src=\""].into_iter().flat_map(|name| text.split(name).skip(1));
        for target in targets.filter_map(|rest| rest.split('"').next()) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            if file.contains(':') {
                continue;
            }
            let place = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = match heading {
                "" => place.exists(),
                heading => {
                    std::fs::read_to_string(&place).is_ok_and(|text| text.contains(&format!("id=\"{heading}\"")))
                }
            };
            if !found {
                broken.push(format!("{}: {target}", page.strip_prefix(&book).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Returns the targets of links and images of a page. What is between fences is no Markdown.
fn links_of(text: &str) -> impl Iterator<Item = String> {
    let prose: String = text.split("```").step_by(2).collect();
    let targets: Vec<String> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect();
    targets.into_iter()
}

/// Returns the headings as links name them: lower case, without punctuation, dashes for spaces.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
