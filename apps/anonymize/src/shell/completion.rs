//! Completions by Tab: functions, their arguments, tables, columns, and files between quotes.

use std::borrow::Cow;

use datafusion::config::Dialect;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::{function_overview, function_parameters};
use datafusion_cli::helper::CliHelper;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use tokio::runtime::Handle;

/// datafusion-cli's helper, but for completion.
pub(super) struct Editing {
    inner: CliHelper,
    context: SessionContext,
    files: FilenameCompleter,
}

impl Editing {
    pub(super) fn new(context: &SessionContext, dialect: &Dialect, color: bool) -> Self {
        Self { inner: CliHelper::new(dialect, color), context: context.clone(), files: FilenameCompleter::new() }
    }

    pub(super) fn set_dialect(&mut self, dialect: &Dialect) {
        self.inner.set_dialect(dialect);
    }

    pub(super) fn reset_hint(&self) {
        self.inner.reset_hint();
    }
}

impl Completer for Editing {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let before = &line[..pos];
        if is_quoted(before) {
            return self.files.complete(line, pos, context);
        }
        let start = word(before);
        let names = tokio::task::block_in_place(|| Handle::current().block_on(known(&self.context, line)));
        let candidates = candidates(before, &names).into_iter();
        Ok((start, candidates.map(|text| Pair { display: text.trim_end().to_owned(), replacement: text }).collect()))
    }
}

impl Highlighter for Editing {
    fn highlight<'l>(&self, line: &'l str, pos: usize) -> Cow<'l, str> {
        self.inner.highlight(line, pos)
    }

    fn highlight_char(&self, line: &str, pos: usize, kind: CmdKind) -> bool {
        self.inner.highlight_char(line, pos, kind)
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        self.inner.highlight_hint(hint)
    }
}

impl Hinter for Editing {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<String> {
        self.inner.hint(line, pos, context)
    }
}

impl Validator for Editing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        // What is meant for a command needs no semicolon.
        match meant(context.input()) {
            Some(_) => Ok(ValidationResult::Valid(None)),
            None => self.inner.validate(context),
        }
    }
}

impl Helper for Editing {}

/// Returns the command behind a word that is no SQL, and that other shells know.
pub(super) fn meant(line: &str) -> Option<&'static str> {
    match line.trim().trim_end_matches([';', ' ']).to_ascii_lowercase().as_str() {
        "help" => Some("?"),
        "exit" | "quit" => Some("q"),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Names {
    tables: Vec<String>,
    /// Of the tables that the statement names.
    columns: Vec<String>,
}

/// Returns the tables of the default schema, and columns of those that a statement names.
async fn known(context: &SessionContext, line: &str) -> Names {
    let options = context.state_ref().read().config_options().catalog.clone();
    let catalog = context.catalog(&options.default_catalog);
    let Some(schema) = catalog.and_then(|catalog| catalog.schema(&options.default_schema)) else {
        return Names::default();
    };
    let mut names = Names { tables: schema.table_names(), columns: Vec::new() };
    names.tables.sort();
    let words: Vec<&str> = line.split(|c: char| !is_word(c)).collect();
    for table in names.tables.iter().filter(|table| words.contains(&table.as_str())) {
        // A table that cannot be opened has no columns to offer.
        if let Ok(Some(table)) = schema.table(table).await {
            names.columns.extend(table.schema().fields().iter().map(|field| field.name().clone()));
        }
    }
    names.columns.sort();
    names.columns.dedup();
    names
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the place where the last word begins.
fn word(before: &str) -> usize {
    before.char_indices().rev().take_while(|(_, c)| is_word(*c)).last().map_or(before.len(), |(at, _)| at)
}

/// Returns true if a text ends within single quotes.
fn is_quoted(before: &str) -> bool {
    before.matches('\'').count() % 2 == 1
}

/// Returns the name of the function whose call a text ends in, if it does.
fn call(before: &str) -> Option<&str> {
    let mut depth = 0;
    let mut quoted = false;
    for (at, c) in before.char_indices().rev() {
        match c {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' => {
                let name = &before[word(&before[..at])..at];
                // A list of columns is no call, but may stand in one.
                if !name.is_empty() {
                    return Some(name);
                }
            }
            _ => {}
        }
    }
    None
}

/// Lists the words that the last word of a text can become.
fn candidates(before: &str, names: &Names) -> Vec<String> {
    let prefix = before[word(before)..].to_lowercase();
    let mut all = Vec::new();
    let parameters = call(before).and_then(|name| function_parameters(&name.to_lowercase()));
    if let Some(parameters) = &parameters {
        all.extend(parameters.iter().map(|name| format!("{name} => ")));
    }
    all.extend(names.columns.iter().chain(&names.tables).cloned());
    all.extend(function_overview().into_iter().map(|(name, _)| format!("{name}(")));
    all.retain(|candidate| candidate.to_lowercase().starts_with(&prefix));
    let mut seen = std::collections::HashSet::new();
    all.retain(|candidate| seen.insert(candidate.clone()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(before: &str) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        candidates(before, &Names { tables: owned(&["patients", "people"]), columns: owned(&["age", "patient_id"]) })
    }

    #[test]
    fn functions_tables_and_columns() {
        assert_eq!(offered("SELECT * FROM m_inv"), ["m_invariant("]);
        assert_eq!(offered("SELECT * FROM peo"), ["people"]);
        assert_eq!(offered("SELECT PAT"), ["patient_id", "patients"]);
        assert_eq!(offered("SELECT xyz"), [""; 0]);
        assert!(offered("").len() > 20);
    }

    #[test]
    fn arguments_of_the_call_come_first() {
        assert_eq!(
            offered("SELECT * FROM m_invariant(patients, 2, se"),
            ["sensitive => ", "seed => ", "sequential_worlds(", "sequential_release("]
        );
        // In a list of columns of the call, and after one.
        assert_eq!(offered("FROM m_invariant(patients, 2, quasi => (ag"), ["age"]);
        assert_eq!(offered("FROM m_invariant(patients, 2, quasi => (age), pre")[0], "previous => ");
        // Not of a call that is closed.
        assert!(!offered("FROM m_invariant(patients, 2) WHERE pre").contains(&"previous => ".to_owned()));
        assert!(!offered("SELECT count(pre").contains(&"previous => ".to_owned()));
    }

    #[test]
    fn quotes_are_for_files() {
        assert!(is_quoted("FROM m_invariant('data/pat") && !is_quoted("FROM m_invariant('data/patients.parquet', "));
        assert_eq!(word("a.b_c"), 2);
        assert_eq!(call("f(a, (b, 'x)'"), Some("f"));
        assert_eq!(call("f(a)"), None);
    }

    #[test]
    fn words_of_other_shells_are_commands() {
        for (line, command) in [("help", "?"), (" HELP ; ", "?"), ("exit", "q"), ("quit;", "q")] {
            assert_eq!(meant(line), Some(command), "{line}");
        }
        for line in ["", ";", "help me", "SELECT 1;", "\\q", "exit_code"] {
            assert_eq!(meant(line), None, "{line}");
        }
    }
}
