//! Turns on features of crates far below DataFusion, and has no code.
//!
//! Cargo compiles a crate anew for every set of features that is asked of it, and DataFusion with it. Tests, benchmarks and
//! `datafusion-distributed` ask for more of the crates below it than the program does. This crate asks for all of that from the start, so
//! that `cargo run` and `cargo test`, with the feature `distributed` and without, share one build of DataFusion.
//!
//! The program and the Python package depend on it. The library, and each other package with tests, has it as a dev-dependency, so that
//! `cargo test -p PACKAGE` shares the build as well. An embedder of the library does not get it.
//!
//! `.ci/lint` fails if the library without its features, beside this crate, asks for other features than the program does.
