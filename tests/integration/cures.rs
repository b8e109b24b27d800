//! Runs what refusals say would do. Most are cases of `tests/cures`; a few are programs, which cut the SQL out of the message.

mod cases;
mod data;
mod parameters;
mod places;
mod sources;

use std::path::Path;

use tempfile::{TempDir, tempdir};

use super::support::{err, out, shell};

/// Runs statements in a directory.
struct Here(TempDir);

/// People of whom one has no diagnosis, one no income, and one a spelled age.
const PEOPLE: &str = "MRN,name,age,income,admitted,flag,disease\n\
    1,Ann,20,100,2024-01-05,true,flu\n2,Bob,25,,2024-02-05,,cold\n3,Cid,30,300,,false,flu\n4,Dan,35,400,2024-04-05,true,\n\
    5,Eve,40,500,2024-05-05,true,cold\n6,Fay,45,600,2024-06-05,false,ulcer\n";

impl Here {
    fn new() -> Self {
        let here = Self(tempdir().unwrap());
        here.write("people.csv", PEOPLE);
        here
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).unwrap();
    }

    /// Returns the statements of one session; what the last one prints.
    fn printed(&self, sql: &[&str]) -> String {
        let output = shell(self.path(), &[&["-q", "--format", "csv", "-c"], sql].concat());
        assert!(output.status.success(), "{sql:?}: {}", err(&output));
        out(&output)
    }

    /// Returns what the shell says of statements of which one is refused, on one line.
    fn refused(&self, sql: &[&str]) -> String {
        let output = shell(self.path(), &[&["-q", "-c"], sql].concat());
        assert!(!output.status.success(), "{sql:?} should be refused: {}", out(&output));
        err(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let start = text.find(before).unwrap_or_else(|| panic!("{before:?} is not in {text}")) + before.len();
    let end = text[start..].find(after).unwrap_or_else(|| panic!("{after:?} does not follow {before:?} in {text}"));
    text[start..start + end].trim()
}
