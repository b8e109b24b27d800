//! Runs the cases of `tests/cures`: a statement is refused in the words that the case has, and what they say would do does.
//!
//! A case is a block of lines, each a word and what follows it, also on lines that begin with blanks. A block without `wrong` is for all that follow.
//!
//! - `let NAME text`: `$NAME` is this text from here on.
//! - `file NAME text`: a file in the case's folder, which statements call `$here`; `\n` and `\t` stand for a line's end and a tabulator.
//! - `given SQL`: runs before.
//! - `wrong SQL`: is refused.
//! - `says text`: the message. `ANONYMIZE_BLESS=1` writes it.
//! - `take text`: what stands around the cure in the message; `{}` is the cure. The n-th of a case is called `{n}`.
//! - `right SQL`: what is done instead; each works.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{AnonymizeError, NamedFiles, ReleaseFiles, enable_url_table, hide_values, register_all};

use crate::integration::support::{path, run, run_as_it_is};

/// A statement that is refused, and what would do.
pub(super) struct Case {
    line: usize,
    before: Vec<(String, String)>,
    wrong: String,
    pub(super) says: String,
    takes: Vec<String>,
    rights: Vec<String>,
}

/// A test for each file, and their names.
macro_rules! files {
    ($($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                Box::pin(run_file(stringify!($name))).await;
            }
        )*

        const FILES: &[&str] = &[$(stringify!($name)),*];
    };
}

files! {
    calls
    estimates
    files
    inserts
    measures
    methods
    previous
    publications
    streams
}

/// Returns the cases of all files.
pub(super) fn all() -> Vec<Case> {
    FILES.iter().flat_map(|name| parse(&std::fs::read_to_string(path(&file(name))).unwrap())).collect()
}

fn file(name: &str) -> String {
    format!("tests/cures/{name}.txt")
}

#[test]
fn every_file_is_a_test() {
    let there = std::fs::read_dir(path("tests/cures")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut there: Vec<String> = there.map(|name| name.into_string().unwrap()).collect();
    there.retain(|name| name != "without.txt");
    there.sort();
    assert_eq!(there, FILES.iter().map(|name| format!("{name}.txt")).collect::<Vec<_>>());
}

async fn run_file(name: &str) {
    let file = path(&file(name));
    let text = std::fs::read_to_string(&file).unwrap();
    let (mut failures, mut said) = (Vec::new(), BTreeMap::new());
    for case in parse(&text) {
        match Box::pin(case.run(&mut said)).await {
            Ok(()) => {}
            Err(failure) => failures.push(format!("{name}:{}: {failure}", case.line)),
        }
    }
    if std::env::var_os("ANONYMIZE_BLESS").is_some() {
        std::fs::write(&file, blessed(&text, &said)).unwrap();
    }
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

/// Writes the messages of statements, by their lines, behind these.
fn blessed(text: &str, said: &BTreeMap<usize, String>) -> String {
    let (mut lines, mut due, mut written) = (Vec::new(), None, false);
    for (number, line) in text.lines().chain([""]).enumerate() {
        if !line.starts_with(' ') {
            lines.extend(due.take().map(|message| format!("says {message}")));
        }
        if line.starts_with("wrong ") {
            due = said.get(&(number + 1));
            written = due.is_some();
        }
        if !(written && line.starts_with("says ")) {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

fn parse(text: &str) -> Vec<Case> {
    let (mut cases, mut always) = (Vec::new(), Vec::new());
    let mut names: Vec<(String, String)> = Vec::new();
    let mut block: Vec<(usize, String, String)> = Vec::new();
    for (number, line) in text.lines().chain([""]).enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if line.starts_with(' ') {
            let (_, _, last) = block.last_mut().expect("a line before");
            *last += " ";
            *last += line.trim();
        } else if let Some((word, rest)) = line.split_once(' ') {
            block.push((number + 1, word.to_owned(), rest.trim().to_owned()));
        } else if !block.is_empty() {
            let mut case = Case {
                line: 0,
                before: always.clone(),
                wrong: String::new(),
                says: String::new(),
                takes: vec![],
                rights: vec![],
            };
            for (number, word, mut rest) in block.drain(..) {
                for (name, text) in &names {
                    rest = rest.replace(name, text);
                }
                match word.as_str() {
                    "let" => {
                        let (name, text) = rest.split_once(' ').expect("a name and a text");
                        // Longer names first, so that none is taken for one that it begins with.
                        names.push((format!("${name}"), text.trim().to_owned()));
                        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
                    }
                    "file" | "given" => case.before.push((word, rest)),
                    "wrong" => (case.line, case.wrong) = (number, rest),
                    "says" => case.says = rest,
                    "take" => case.takes.push(rest),
                    "right" => case.rights.push(rest),
                    _ => panic!("line {number}: {word} is no word of a case"),
                }
            }
            match case.wrong.is_empty() {
                true => always = case.before,
                false => cases.push(case),
            }
        }
    }
    cases
}

impl Case {
    async fn run(&self, said: &mut BTreeMap<usize, String>) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        // macOS and others have links in the names of temporary folders.
        let here = folder.path().canonicalize().unwrap().display().to_string();
        let context = session();
        for (word, text) in &self.before {
            let text = text.replace("$here", &here);
            if word == "given" {
                attempt(&context, &text, false).await.map_err(|error| format!("given {text}: {error}"))?;
            } else {
                let (name, text) = text.split_once(' ').unwrap_or((text.as_str(), ""));
                let file = Path::new(&here).join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text.replace("\\n", "\n").replace("\\t", "\t")).unwrap();
            }
        }
        let Err(message) = attempt(&context, &self.wrong.replace("$here", &here), true).await else {
            return Err(format!("is not refused: {}", self.wrong));
        };
        let message = message.replace(&here, "$here").split_whitespace().collect::<Vec<_>>().join(" ");
        said.insert(self.line, message.clone());
        if message != self.says && std::env::var_os("ANONYMIZE_BLESS").is_none() {
            return Err(format!("says {message}\ninstead of {}", self.says));
        }
        let mut cures = Vec::new();
        for take in &self.takes {
            cures.extend(taken(&message, take).ok_or_else(|| format!("{take} is not in: {message}"))?);
        }
        if self.rights.is_empty() {
            return Err(format!("has no cure: {message}"));
        }
        for right in &self.rights {
            let mut right = right.clone();
            for (n, cure) in cures.iter().enumerate() {
                right = right.replace(&format!("{{{}}}", n + 1), cure);
            }
            let right = right.replace("$here", &here);
            attempt(&context, &right, false)
                .await
                .map_err(|error| format!("right {right}: {error}; it said: {message}"))?;
        }
        Ok(())
    }
}

/// Returns the texts in the gaps of a pattern. The last one ends with the message, if nothing follows it in the pattern.
fn taken(message: &str, pattern: &str) -> Option<Vec<String>> {
    let mut pieces = pattern.split("{}");
    let first = pieces.next().expect("a piece");
    let mut rest = &message[message.find(first)? + first.len()..];
    let mut found = Vec::new();
    for piece in pieces {
        let end = if piece.is_empty() { rest.len() } else { rest.find(piece)? };
        found.push(rest[..end].to_owned());
        rest = &rest[end + piece.len()..];
    }
    Some(found)
}

/// Makes a session as the shell does.
fn session() -> SessionContext {
    let config = SessionConfig::new().with_information_schema(true).with_target_partitions(2);
    let context = enable_url_table(SessionContext::new_with_config(config));
    let catalogs = Arc::clone(context.state().catalog_list());
    context.register_catalog_list(Arc::new(NamedFiles::new(catalogs)));
    register_all(&context).unwrap();
    context.state_ref().write().register_file_format(Arc::new(ReleaseFiles::default()), true).unwrap();
    context
}

/// Runs a statement. A table that is declared anew takes the place of the one that was; a publication begins, unless that is the point.
async fn attempt(context: &SessionContext, sql: &str, as_it_is: bool) -> Result<(), String> {
    if let Some(name) = sql.strip_prefix("CREATE EXTERNAL TABLE ").and_then(|rest| rest.split([' ', '(']).next())
        && context.table_exist(name).unwrap_or(false)
    {
        context.deregister_table(name).map_err(|error| error.to_string())?;
    }
    let result = match as_it_is {
        true => Box::pin(run_as_it_is(context, sql)).await,
        false => Box::pin(run(context, sql)).await,
    };
    result.map(|_| ()).map_err(|error| {
        let error = hide_values(error);
        let own = AnonymizeError::of(&error).map(ToString::to_string);
        own.unwrap_or_else(|| error.strip_backtrace())
    })
}
