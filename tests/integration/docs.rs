//! Every SQL example in README and docs runs, in the order in which it stands there; where a table follows, it is the
//! example's output. So do the walk-throughs in `sql`, whose output is in the file beside each.

use std::path::Path;

use super::support::{path, run, session, table};

/// `ANONYMIZE_BLESS=1` writes the outputs instead of comparing them, here and below.
#[tokio::test]
async fn examples_are_true() {
    std::env::set_current_dir(path("")).unwrap();
    let bless = std::env::var_os("ANONYMIZE_BLESS").is_some();
    let mut examples = 0;
    for name in documents() {
        // Where the examples have a lake, each document has one of its own.
        let lake = tempfile::tempdir().unwrap();
        let lake = format!("'{}/", lake.path().display());
        let context = session();
        let text = std::fs::read_to_string(&name).unwrap();
        let mut output = None;
        let mut parts: Vec<String> = text.split("```").map(str::to_owned).collect();
        // Every second one is a block: its language, and what is in it.
        for part in parts.iter_mut().skip(1).step_by(2) {
            let Some((language, block)) = part.split_once('\n') else { continue };
            match language {
                "sql" => {
                    let (last, before) = statements(&block.replace("'lake/", &lake));
                    for statement in before {
                        run(&context, &statement).await.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
                    }
                    output = Some(table(&context, &last).await);
                    examples += 1;
                }
                "text" => {
                    let output = output.take().expect("an example before its output");
                    if bless {
                        *part = format!("text\n{output}\n");
                    } else {
                        assert_eq!(output, block.trim_end(), "{name}");
                    }
                }
                _ => {}
            }
        }
        if bless {
            std::fs::write(&name, parts.join("```")).unwrap();
        }
    }
    assert!(examples >= 5, "only {examples} examples");
}

#[tokio::test]
async fn walk_throughs_are_true() {
    std::env::set_current_dir(path("")).unwrap();
    let lake = tempfile::tempdir().unwrap();
    let lake = format!("'{}/", lake.path().display());
    let names = walk_throughs();
    assert!(names.len() >= 6, "only {} walk-throughs", names.len());
    for name in names {
        let context = session();
        let text = std::fs::read_to_string(&name).unwrap().replace("'lake/", &lake);
        let (last, mut all) = statements(&text);
        all.push(last);
        let mut tables = Vec::new();
        for statement in all {
            if statement.starts_with("SELECT") {
                tables.push(table(&context, &statement).await);
            } else {
                run(&context, &statement).await.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
            }
        }
        let output = format!("{}\n", tables.join("\n\n"));
        let file = Path::new(&name).with_extension("out");
        if std::env::var_os("ANONYMIZE_BLESS").is_some() {
            std::fs::write(&file, &output).unwrap();
        }
        assert_eq!(output, std::fs::read_to_string(&file).unwrap(), "{name}");
    }
}

/// The shell's tests run the others.
fn walk_throughs() -> Vec<String> {
    let files = std::fs::read_dir("sql").unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let mut names: Vec<String> = files
        .filter(|name| name.ends_with(".sql") && !name.ends_with("make_data.sql") && !name.ends_with("quickstart.sql"))
        .collect();
    names.sort();
    names
}

fn documents() -> Vec<String> {
    let mut names = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/reference"] {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().display().to_string());
        names.extend(files.filter(|name| name.ends_with(".md")));
    }
    names.sort();
    names
}

/// The last statement and those before it.
fn statements(block: &str) -> (String, Vec<String>) {
    let mut statements: Vec<String> = block
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect::<Vec<_>>()
        .join("\n")
        .split(";\n")
        .map(|statement| statement.trim().trim_end_matches(';').to_owned())
        .filter(|statement| !statement.is_empty())
        .collect();
    (statements.pop().expect("a statement"), statements)
}

/// Every link of a page to another file, and to a heading in it, leads somewhere.
#[test]
fn links_lead_somewhere() {
    let root = path("");
    let root = Path::new(&root);
    let mut pages = vec!["CONTRIBUTING.md".to_owned(), "CHANGELOG.md".to_owned(), "sql/README.md".to_owned()];
    std::env::set_current_dir(root).unwrap();
    pages.extend(documents());
    let (mut links, mut broken) = (0, Vec::new());
    for page in &pages {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        // What is between the fences is no Markdown.
        let prose: String = text.split("```").step_by(2).collect();
        for target in prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target) {
            if target.starts_with("http") || target.is_empty() {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
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
            }
        }
    }
    assert!(links > 50, "only {links} links");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Headings as links name them: lower case, without punctuation, dashes for spaces.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// The page of all arguments says what the program knows of them. `ANONYMIZE_BLESS=1` writes it.
#[test]
fn all_arguments_are_listed() {
    use datafusion_anonymize::sql::{function_arguments, function_overview};

    let mut page = "# Reference: all arguments\n\nWhat `\\h NAME` shows in the shell. Relations can be named (`table`), or be files \
                    (`'file.parquet'`) or queries in parentheses.\n"
        .to_owned();
    for (name, about) in function_overview() {
        page += &format!("\n## `{name}`\n\n{about}.\n\n{}", function_arguments(name).unwrap());
    }
    let file = path("docs/reference/arguments.md");
    if std::env::var_os("ANONYMIZE_BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == page,
        "docs/reference/arguments.md is not what the program says"
    );
}
