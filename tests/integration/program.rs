//! Finds the program, which another package builds.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;

/// Returns the path of `anonymize`, which cargo puts beside the directory of this test's executable.
///
/// # Panics
/// When the program is not built, or its sources have changed since.
pub(super) fn program() -> &'static str {
    static PROGRAM: LazyLock<Result<String, String>> = LazyLock::new(find);
    PROGRAM.as_deref().unwrap_or_else(|error| panic!("{error}; build it: cargo build --release --features distributed"))
}

fn find() -> Result<String, String> {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let program = folder.join(format!("anonymize{EXE_SUFFIX}"));
    let Some(built) = modified(&program) else { return Err(format!("{} is not built", program.display())) };
    // Cargo lists the sources of the program beside it.
    let sources = fs::read_to_string(folder.join("anonymize.d")).unwrap_or_default().replace("\\ ", "\0");
    let mut sources = sources.split_whitespace().skip(1).map(|source| source.replace('\0', " "));
    match sources.find(|source| modified(source).is_some_and(|changed| changed > built)) {
        Some(source) => Err(format!("{} is older than {source}", program.display())),
        None => Ok(program.display().to_string()),
    }
}

fn modified(file: impl AsRef<Path>) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}
