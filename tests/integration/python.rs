//! Python packages that measure or read our output, each in its own environment. Environments are under the target
//! directory. Where there is no Python or no package index, tests say so and go without, unless `ANONYMIZE_PYTHON=require`.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Returns the Python of an environment with these packages, which is made if need be; `import` tells whether it works.
pub(super) fn environment(name: &str, packages: &[&str], import: &str) -> Option<PathBuf> {
    let environment = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = environment.join("bin/python");
    let works = || run_quietly(Command::new(&python).args(["-c", &format!("import {import}")])).is_some();
    if python.exists() && works() {
        return Some(python);
    }
    let install = ["-m", "pip", "install", "--quiet", "--retries", "3", "--timeout", "30"];
    let made = run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
        .and_then(|_| run_quietly(Command::new(&python).args(install).args(packages)));
    if made.is_some() && works() {
        return Some(python);
    }
    assert_ne!(std::env::var("ANONYMIZE_PYTHON").as_deref(), Ok("require"), "{name} could not be installed");
    println!("{name} could not be installed: not used");
    None
}

fn run_quietly(command: &mut Command) -> Option<Output> {
    command.output().ok().filter(|output| output.status.success())
}
