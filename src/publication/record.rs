//! Records of a release: for the publisher in the ledger, for everybody in the public table.

use serde::{Deserialize, Serialize};

use super::period::PeriodUnit;
use crate::release::Description;

/// A release as it was decided, in the metadata of its commit to the ledger. Whoever finds it can complete the release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Number of the release, which is the version of both tables.
    pub(crate) number: u64,
    /// Name of the attempt that made it, and of the directory it is staged in: the number and a random name.
    pub(crate) attempt: String,
    /// Random name of the release, as in its columns' metadata.
    pub(crate) release_id: String,
    /// Keyed fingerprint of the snapshot, in hexadecimal digits; without sensitive values where these are held within a period.
    pub(crate) fingerprint: String,
    /// Of these snapshots that of whole rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) whole: Option<String>,
    /// Beginnings of the fingerprints of earlier snapshots, oldest first, without separators. By them a snapshot that
    /// comes again is known without reading their records. Those of the last [`MOST`] releases.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) earlier: String,
    /// Keyed fingerprint of the update relation, if the method has one: the same for all releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updates: Option<String>,
    pub(crate) snapshot_rows: u64,
    /// The files that the release consists of.
    pub(crate) files: Vec<ReleaseFile>,
    /// The files of the ledger that came with it.
    pub(crate) entries: Vec<ReleaseFile>,
    /// Figures that everybody may know about it.
    pub(crate) figures: Figures,
    /// Rows that were left out and stay new.
    pub(crate) withheld: u64,
    /// Mean share of the domain in published intervals (normalized certainty penalty), 0 to 1. Of texts it tells how
    /// many there are between those that are published.
    pub(crate) information_loss: f64,
    /// Of m-invariance: whether this release and all before it were made so that at each the people who first appear
    /// under a signature were equally many of each value. `None` of other methods, and where signatures are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) balanced: Option<bool>,
    /// Periods of all releases up to this one, the first one's first; empty where nobody said, and every release is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) periods: Vec<u64>,
    /// Unit that they count. `None` where nobody said periods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<PeriodUnit>,
    /// Rows that are held back after it, of a stream that is repositioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_back: Option<HeldBack>,
    /// Beliefs after it of a reader with probabilities of changes, of inexact m-distinct. `None` where nobody says how
    /// probable all changes are, and in cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) beliefs: Option<Beliefs>,
}

/// Digits of an earlier fingerprint: that two of a publication's snapshots share them by chance is one in a million million.
const DIGITS: usize = 16;
/// Earlier fingerprints that are kept; 64 KiB.
const MOST: usize = 4096;

impl Record {
    /// Returns the releases, newest first, of a snapshot with this fingerprint and rows. They are given by number, up to this one.
    pub(crate) fn made_of(&self, fingerprint: &str, rows: u64) -> impl Iterator<Item = u64> {
        let newest = (self.fingerprint == fingerprint && self.snapshot_rows == rows).then_some(self.number);
        let wanted = fingerprint.get(..DIGITS);
        let count = self.earlier.len() / DIGITS;
        let at = move |place: usize| self.earlier.get(place * DIGITS..(place + 1) * DIGITS);
        let earlier = (0..count).rev().filter(move |&place| wanted.is_some() && at(place) == wanted);
        newest.into_iter().chain(earlier.filter_map(move |place| self.number.checked_sub((count - place) as u64)))
    }

    /// Returns the period of a release up to this one, where they say it.
    pub(crate) fn period_of(&self, release: u64) -> Option<u64> {
        self.periods.get(usize::try_from(release.checked_sub(1)?).ok()?).copied()
    }

    /// Returns the earlier fingerprints for the next record.
    pub(crate) fn fingerprints(&self) -> String {
        let all = format!("{}{}", self.earlier, self.fingerprint.get(..DIGITS).unwrap_or_default());
        let kept = all.len().saturating_sub(MOST * DIGITS);
        all[kept..].to_owned()
    }
}

/// The window of a stream, and the counts of all rows so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeldBack {
    /// Number of the newest snapshot that is closed.
    pub(crate) newest: Option<i64>,
    /// Rows that are held back.
    pub(crate) rows: u64,
    /// True if all of the window was published.
    pub(crate) finished: bool,
    pub(crate) published: u64,
    /// Rows that were published late, and the snapshots that they waited in all.
    pub(crate) moved: u64,
    pub(crate) distance: u64,
    /// Rows that are never published, those that came too late among them.
    pub(crate) suppressed: u64,
    pub(crate) late: u64,
    /// File of the rows, beside the ledger's own files.
    pub(crate) file: Option<ReleaseFile>,
}

/// Beliefs of a reader about people's values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beliefs {
    /// The highest probability of a value for one of the people in the release; `None` if there are none.
    pub(crate) achieved: Option<f64>,
    /// File of the probabilities of everybody's values, beside the ledger's own files.
    pub(crate) file: ReleaseFile,
}

/// A file of a release, named alike where staged and public; or of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseFile {
    /// Random name.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) rows: u64,
    /// BLAKE3 hash of the contents, in hexadecimal digits.
    pub(crate) checksum: String,
}

/// Figures that follow from the released rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// Rows, counterfeits included.
    pub(crate) rows: u64,
    /// Groups; 0 where they are hidden.
    pub(crate) groups: u64,
    pub(crate) counterfeits: u64,
}

/// A release as the public table's commit describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Announcement {
    /// Number of the release, which is the version of the table.
    pub(crate) number: u64,
    /// Random name of the release, as in its columns' metadata.
    pub(crate) release_id: String,
    pub(crate) method: String,
    /// Its parameters as a JSON object.
    pub(crate) parameters: String,
    /// True if values change by the method's law: releases say their periods then. `None` of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lawful: Option<bool>,
    /// Period of the release, where values change from period to period and somebody said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) period: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<PeriodUnit>,
    /// Of methods that know of no earlier release: whether the publisher checks by identifiers that nobody is in two of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) apart: bool,
    /// Figures that follow from the released rows.
    pub(crate) figures: Figures,
}

impl Announcement {
    pub(crate) fn description(&self) -> Description {
        Description::new(&self.method, self.parameters.clone(), String::new(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, fingerprint: String, earlier: String) -> Record {
        Record {
            number,
            attempt: String::new(),
            release_id: String::new(),
            fingerprint,
            whole: None,
            earlier,
            updates: None,
            snapshot_rows: 5,
            files: Vec::new(),
            entries: Vec::new(),
            figures: Figures { rows: 5, groups: 1, counterfeits: 0 },
            withheld: 0,
            information_loss: 0.0,
            balanced: None,
            periods: Vec::new(),
            unit: None,
            held_back: None,
            beliefs: None,
        }
    }

    #[test]
    fn the_newest_release_of_a_snapshot_is_found() {
        let print = |snapshot: u64| format!("{:032x}", u128::from(snapshot) << 64);
        let mut newest = record(1, print(7), String::new());
        for (number, snapshot) in (2..=5).zip([8, 7, 9, 10]) {
            newest = record(number, print(snapshot), newest.fingerprints());
        }
        let found = [7, 8, 9, 10, 11].map(|snapshot| newest.made_of(&print(snapshot), 5).collect::<Vec<_>>());
        assert_eq!(found, [vec![3, 1], vec![2], vec![4], vec![5], vec![]]);
        assert_eq!(newest.made_of(&print(10), 6).next(), None, "other rows");
        // The oldest are forgotten, and numbers stay right.
        for number in 6..=MOST as u64 + 10 {
            newest = record(number, print(100 + number), newest.fingerprints());
        }
        assert_eq!(newest.earlier.len(), MOST * DIGITS);
        let newest_of = |snapshot: u64| newest.made_of(&print(snapshot), 5).next();
        assert_eq!(newest_of(10), None);
        assert_eq!(newest_of(100 + 2000), Some(2000));
        assert_eq!(newest_of(100 + newest.number - MOST as u64), Some(newest.number - MOST as u64));
    }

    #[test]
    fn records_without_earlier_fingerprints_are_read() {
        let text = serde_json::to_string(&record(3, "ab".repeat(16), String::new())).unwrap();
        assert!(!text.contains("earlier"));
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(read.made_of(&"cd".repeat(16), 5).next(), None);
        assert_eq!(record(4, "cd".repeat(16), read.fingerprints()).made_of(&"ab".repeat(16), 9).next(), Some(3));
    }

    /// A number that is none is not one.
    #[test]
    fn records_without_beliefs_are_read() {
        let mut record = record(2, String::new(), String::new());
        let text = serde_json::to_string(&record).unwrap();
        assert!(!text.contains("beliefs"));
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap().beliefs, None);
        let file = ReleaseFile { name: "2-x.parquet".to_owned(), size: 1, rows: 1, checksum: String::new() };
        for (achieved, read) in [(Some(0.95), Some(0.95)), (Some(f64::NAN), None)] {
            record.beliefs = Some(Beliefs { achieved, file: file.clone() });
            let text = serde_json::to_string(&record).unwrap();
            let beliefs = serde_json::from_str::<Record>(&text).unwrap().beliefs;
            assert_eq!(beliefs, Some(Beliefs { achieved: read, file: file.clone() }));
        }
    }
}
