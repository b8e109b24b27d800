//! Every SQL example in README and docs runs, in the order of the text. A table that follows is the example's
//! output, or the error of a block that is called `sql fails`. So do the walk-throughs in `sql`, whose output is in
//! their pages in `docs/walk-throughs`.

use std::path::Path;

use datafusion_anonymize::AnonymizeError;

use super::support::{path, run_as_it_is as run, session, table};

/// `ANONYMIZE_BLESS=1` writes the outputs instead of comparing them, here and below.
#[tokio::test]
async fn examples_are_true() {
    std::env::set_current_dir(path("")).unwrap();
    let bless = std::env::var_os("ANONYMIZE_BLESS").is_some();
    let mut examples = 0;
    // The pages of walk-throughs are written from scripts that run.
    for name in documents().into_iter().filter(|name| !name.starts_with("docs/walk-throughs/")) {
        // Where the examples have a lake, each document has one of its own.
        let places = tempfile::tempdir().unwrap();
        let placed = |sql: &str| placed(sql, places.path());
        let context = session();
        // As in the shell: a copy of a release's file stays a release.
        run(&context, "SET datafusion.execution.parquet.skip_metadata = false").await.unwrap();
        let text = std::fs::read_to_string(&name).unwrap();
        let mut output = None;
        let mut parts: Vec<String> = text.split("```").map(str::to_owned).collect();
        // Every second one is a block: its language, and what is in it.
        for part in parts.iter_mut().skip(1).step_by(2) {
            let Some((language, block)) = part.split_once('\n') else { continue };
            match language {
                "sql" => {
                    let mut all = statements(&placed(block));
                    let last = all.pop().expect("a statement");
                    for statement in all {
                        run(&context, &statement).await.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
                    }
                    output = Some(table(&context, &last).await);
                    examples += 1;
                }
                "sql fails" => {
                    let statement = statements(&placed(block)).concat();
                    let error = run(&context, &statement).await.expect_err("an error");
                    // As the shell prints it.
                    let own = AnonymizeError::of(&error).map(ToString::to_string);
                    output = Some(wrapped(&own.unwrap_or_else(|| error.strip_backtrace())));
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

/// Each script of `sql` is a page of the book, with its output: comments are the text, SELECTs have the table that they return below.
/// `ANONYMIZE_BLESS=1` writes the pages.
#[tokio::test]
async fn walk_throughs_are_true() {
    std::env::set_current_dir(path("")).unwrap();
    let places = tempfile::tempdir().unwrap();
    let names = walk_throughs();
    assert!(names.len() >= 6, "only {} walk-throughs", names.len());
    for name in names {
        let context = session();
        let mut page = format!("# Walk-through: `{name}`\n");
        for block in std::fs::read_to_string(&name).unwrap().split("\n\n") {
            let lines: Vec<&str> = block.trim_end().lines().collect();
            let comments = lines.iter().take_while(|line| line.starts_with("--")).count();
            let (text, code) = lines.split_at(comments);
            if !text.is_empty() {
                let text: Vec<&str> = text.iter().map(|line| line.trim_start_matches("--").trim()).collect();
                page += &format!("\n{}\n", text.join("\n"));
            }
            if code.is_empty() {
                continue;
            }
            let code = code.join("\n");
            page += &format!("\n```sql\n{code}\n```\n");
            for statement in statements(&placed(&code, places.path())) {
                if statement.starts_with("SELECT") {
                    page += &format!("```text\n{}\n```\n", table(&context, &statement).await);
                } else {
                    run(&context, &statement).await.unwrap_or_else(|error| panic!("{name}: {statement}\n{error}"));
                }
            }
        }
        let file = Path::new("docs/walk-throughs").join(Path::new(&name).with_extension("md").file_name().unwrap());
        if std::env::var_os("ANONYMIZE_BLESS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        assert_eq!(page, std::fs::read_to_string(&file).unwrap_or_default(), "{name}");
    }
}

/// Returns the statements whose folders `lake` and `private` are in this one.
fn placed(sql: &str, here: &Path) -> String {
    let folder = |name: &str| format!("'{}/{name}/", here.display());
    sql.replace("'lake/", &folder("lake")).replace("'private/", &folder("private"))
}

/// Returns the shell's tests run the others.
fn walk_throughs() -> Vec<String> {
    let files = std::fs::read_dir("sql").unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let mut names: Vec<String> = files
        .filter(|name| name.ends_with(".sql") && !name.ends_with("make_data.sql") && !name.ends_with("quickstart.sql"))
        .collect();
    names.sort();
    names
}

/// Lists README and all pages of `docs`, from the root of the repository.
pub(super) fn documents() -> Vec<String> {
    let mut names = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.path().display().to_string();
            if entry.path().is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    names.sort();
    names
}

/// Returns an error in lines that a page has room for.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("a line");
        match (line.is_empty(), line.len() + word.len() < 120) {
            (true, _) => line.push_str(word),
            (false, true) => *line += &format!(" {word}"),
            (false, false) => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Returns the statements of a block, without comments.
fn statements(block: &str) -> Vec<String> {
    block
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect::<Vec<_>>()
        .join("\n")
        .split(";\n")
        .map(|statement| statement.trim().trim_end_matches(';').to_owned())
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// The page of all arguments says what the program knows of them. `ANONYMIZE_BLESS=1` writes it.
#[test]
fn all_arguments_are_listed() {
    use datafusion_anonymize::{function_arguments, function_overview};

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
