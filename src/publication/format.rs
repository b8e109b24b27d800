//! Format of the two tables of a publication. A version of this program that does not know all of what they say would drop promises without a word,
//! so it neither publishes nor tells against whom releases hold.

use datafusion::common::{DataFusionError, Result};
use deltalake_core::DeltaTable;
use serde::de::DeserializeOwned;
use url::Url;

use super::delta::{self, COMMIT_KEY};
use super::record::{Announcement, Record};
use crate::error::{AnonymizeError, refusal};

/// Setting of both tables, and what errors about it are about.
pub(super) const FORMAT: &str = "anonymize.format";
/// The format that this version writes, and the newest that it knows. It is one higher for whatever an earlier version would have to know of.
const NEWEST: u64 = 1;

pub(super) fn setting() -> (&'static str, String) {
    (FORMAT, NEWEST.to_string())
}

/// Checks that this version knows the format of a table and all its settings.
/// Fails when it does not; [`is_unknown`] then.
pub(super) fn check(table: &DeltaTable, what: &str, place: &Url, settings: &[&str]) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match delta::setting(table, FORMAT).map(|text| text.parse::<u64>()) {
        Some(Ok(number)) if number > NEWEST => Err(refusal!(
            "publication",
            argument FORMAT,
            "the {what} at {place} is of format {number}, and this version of the program ({version}) knows formats up to {NEWEST}: a later version \
             wrote it, and this one would not keep what that one promises. Publish with the later version"
        )),
        Some(Ok(1..)) => {
            let configuration = table.snapshot().map_err(delta::failed)?.metadata().configuration();
            match configuration
                .keys()
                .find(|key| delta::is_ours(key) && *key != FORMAT && !settings.contains(&key.as_str()))
            {
                None => Ok(()),
                Some(_) => Err(unknown(format!("the {what} at {place} has a setting"))),
            }
        }
        Some(_) => Err(
            refusal!("publication", argument FORMAT, "the format of the {what} at {place} is not as it was written"),
        ),
        None => Err(refusal!(
            "publication",
            argument FORMAT,
            "the {what} at {place} does not say its format: a version of the program before 0.1.0 wrote it; begin a new publication at another location"
        )),
    }
}

/// Reads what a table or commit says as JSON.
/// Fails when there is something in it that this version does not know ([`is_unknown`]), or it is not as it was written.
pub(super) fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        // Its words for it; what it found stays out of ours.
        let why = error.to_string();
        match why.starts_with("unknown field") || why.starts_with("unknown variant") {
            true => unknown(format!("{what} says something")),
            false => refusal!("publication", "{what} is not as it was written"),
        }
    })
}

/// Returns the announcement in a public version's commit, and its time. The time is in milliseconds since 1970.
/// `None` if there is no such commit, or it is not of a release.
/// Fails when it says more than this version knows ([`is_unknown`]), and when the store fails.
pub(super) async fn announcement(table: &DeltaTable, number: u64) -> Result<Option<(Announcement, Option<i64>)>> {
    let Some(commit) = delta::committed(table, number).await? else { return Ok(None) };
    let this = || format!("release {number} in the public table says something");
    // What a ledger says is no release.
    if commit.says(COMMIT_KEY).is_some_and(|text| read::<Record>(text, "").is_ok()) {
        return Ok(None);
    }
    if !commit.says_only(&[COMMIT_KEY]) {
        return Err(unknown(this()));
    }
    let Some(text) = commit.says(COMMIT_KEY) else { return Ok(None) };
    match read::<Announcement>(text, "") {
        Ok(announcement) => Ok(Some((announcement, commit.time))),
        Err(error) if is_unknown(&error) => Err(unknown(this())),
        // Somebody else wrote it.
        Err(_) => Ok(None),
    }
}

/// Returns the error that there is more than this version knows.
pub(super) fn unknown(what: impl std::fmt::Display) -> DataFusionError {
    refusal!(
        "publication",
        argument FORMAT,
        "{what} that this version of the program ({}) does not know: a later version wrote it, and this one would not keep what that one promises. \
         Publish with the later version",
        env!("CARGO_PKG_VERSION")
    )
}

/// Returns true if an error says that a later version wrote what was read.
pub(super) fn is_unknown(error: &DataFusionError) -> bool {
    AnonymizeError::of(error).is_some_and(|error| error.argument() == Some(FORMAT))
}
