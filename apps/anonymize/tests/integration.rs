//! Checks the version and the help of the program.
//!
//! The workspace's `tests/integration` checks everything else. The two tests have the same name, so that `cargo test --test integration`
//! builds the program for both.

use std::process::Command;

/// Returns what the program prints.
fn says(argument: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anonymize")).arg(argument).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(says("--version"), format!("anonymize {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_help_lists_every_task() {
    let help = says("--help");
    assert!(help.starts_with("Anonymized publication"), "{help}");
    let mut tasks = vec!["advise", "experiment", "completions", "man"];
    if cfg!(feature = "serve") {
        tasks.push("serve");
    }
    if cfg!(feature = "distributed") {
        tasks.push("worker");
    }
    for task in tasks {
        assert!(help.lines().any(|line| line.trim_start().starts_with(task)), "{task} is not in {help}");
    }
}
