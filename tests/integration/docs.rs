//! Every SQL example in README and docs runs, in the order in which it stands there; where a table follows, it is the
//! example's output. So do the walk-throughs in `sql`, whose output is in the file beside each.

use std::path::Path;

use super::support::{path, run, session, table};

#[tokio::test]
async fn examples_are_true() {
    std::env::set_current_dir(path("")).unwrap();
    let mut examples = 0;
    // Where the examples have a lake, the tests have one of their own.
    let lake = tempfile::tempdir().unwrap();
    let lake = format!("'{}/", lake.path().display());
    for name in documents() {
        let context = session();
        let text = std::fs::read_to_string(&name).unwrap();
        let mut output = None;
        for (language, block) in blocks(&text) {
            match language {
                "sql" => {
                    let (last, before) = statements(&block.replace("'lake/", &lake));
                    for statement in before {
                        run(&context, &statement).await.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
                    }
                    output = Some(table(&context, &last).await);
                    examples += 1;
                }
                "text" => assert_eq!(output.take().expect("an example before its output"), block.trim_end(), "{name}"),
                _ => {}
            }
        }
    }
    assert!(examples >= 5, "only {examples} examples");
}

/// `ANONYMIZE_BLESS=1` writes the outputs instead of comparing them.
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
    if Path::new("docs").exists() {
        let files = std::fs::read_dir("docs").unwrap().map(|entry| entry.unwrap().path().display().to_string());
        names.extend(files.filter(|name| name.ends_with(".md")));
    }
    names.sort();
    names
}

/// Language and text of the fenced blocks.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
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
