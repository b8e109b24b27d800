//! Paths at the two places of a publication: staged files, claims, probes, random names.

use datafusion::common::Result;
use datafusion::object_store::path::Path;
use rand::TryRngCore;
use rand::rngs::OsRng;

use super::failure::input_error;
use super::record::ReleaseFile;

/// The log of a Delta table, in its directory.
pub(super) const LOG: &str = "_delta_log";
/// Beside the ledger's own files; names with an underscore are not part of a Delta table.
pub(super) const STAGED: &str = "_staged";
/// Folder in the public place; names with an underscore are not part of a Delta table.
pub(super) const CLAIMS: &str = "_claims";
const PROBE: &str = "probe-";
const DIGITS: usize = 32;

/// Draws 128 random bits in hexadecimal digits, from the operating system.
/// Fails when the operating system has none.
pub(crate) fn random_name() -> Result<String> {
    let mut bytes = [0; DIGITS / 2];
    let filled = OsRng.try_fill_bytes(&mut bytes);
    filled.map_err(|error| input_error(format!("a random name is needed: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a random name with the number of a release. Leftovers can be told from files being made by it.
/// Fails when the operating system has no randomness.
pub(crate) fn numbered(number: u64) -> Result<String> {
    Ok(format!("{number}-{}", random_name()?))
}

/// Returns the number in a name that [`numbered`] has made.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let (number, random) = name.split_once('-')?;
    if is_random(random) { number.parse().ok() } else { None }
}

/// Returns the name of an unfinished file. A directory that is listed as a table does not show it.
/// Fails when the operating system has no randomness.
pub(super) fn unnamed() -> Result<String> {
    Ok(format!(".{}.tmp", random_name()?))
}

/// Returns true if a file has not got its name yet.
pub(super) fn is_unnamed(name: &str) -> bool {
    name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")).is_some_and(is_random)
}

pub(super) fn attempt(name: &str) -> Path {
    Path::from_iter([STAGED, name])
}

pub(super) fn staged(attempt: &str, file: &ReleaseFile) -> Path {
    Path::from_iter([STAGED, attempt, &file.name])
}

/// Returns the path of the claim of a release of this number.
pub(super) fn claim(number: u64) -> Path {
    Path::from_iter([CLAIMS, &number.to_string()])
}

/// Returns a name for a probe of the public place.
/// Fails when the operating system has no randomness.
pub(super) fn probe() -> Result<Path> {
    Ok(Path::from_iter([CLAIMS, &format!("{PROBE}{}", random_name()?)]))
}

/// Returns a name for a probe of the private place, among what the attempt stages.
pub(super) fn private_probe(attempt: &str) -> Path {
    Path::from_iter([STAGED, attempt, "probe"])
}

/// Returns true if a file among the claims is a probe.
pub(super) fn is_probe(name: &str) -> bool {
    name.starts_with(PROBE)
}

fn is_random(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        let random = "0123456789abcdef0123456789abcdef";
        assert_eq!(number_of(&format!("12-{random}")), Some(12));
        assert_eq!(number_of(&numbered(7).unwrap()), Some(7));
        for other in ["1-january", "12", random, "x-0123456789abcdef0123456789abcdef", "-1"] {
            assert_eq!(number_of(other), None, "{other}");
        }
        assert!(is_unnamed(&format!(".{random}.tmp")) && is_unnamed(&unnamed().unwrap()));
        assert!(!is_unnamed(".notes.tmp") && !is_unnamed(&format!("{random}.tmp")));
    }
}
