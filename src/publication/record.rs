//! What is written down about a release: for the publisher in the ledger, for everybody in the public table.

use serde::{Deserialize, Serialize};

/// A release as it was decided, in the metadata of its commit to the ledger. Whoever finds it can complete the release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Number of the release, which is the version of both tables.
    pub(crate) number: u64,
    /// Name of the attempt that made it, and of the directory it is staged in: the number and a random name.
    pub(crate) attempt: String,
    /// Random name of the release, as in its columns' metadata.
    pub(crate) release_id: String,
    /// Keyed fingerprint of the snapshot, in hexadecimal digits.
    pub(crate) fingerprint: String,
    /// Keyed fingerprint of the update relation, if the method has one: the same for all releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updates: Option<String>,
    /// Rows of the snapshot.
    pub(crate) snapshot_rows: u64,
    /// The files that the release consists of.
    pub(crate) files: Vec<ReleaseFile>,
    /// The files of the ledger that came with it.
    pub(crate) entries: Vec<ReleaseFile>,
    /// What everybody may know about it.
    pub(crate) figures: Figures,
    /// Rows that were left out and stay new.
    pub(crate) withheld: u64,
    /// Mean share of the domain that the published intervals cover (normalized certainty penalty), 0 to 1. Of texts it tells how
    /// many there are between those that are published.
    pub(crate) information_loss: f64,
    /// What is held back after it, of a stream that is repositioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_back: Option<HeldBack>,
}

/// The window of a stream, and the counts of all rows so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldBack {
    /// Number of the newest snapshot that is closed.
    pub(crate) newest: Option<i64>,
    /// Rows that are held back.
    pub(crate) rows: u64,
    /// Whether all of the window was published.
    pub(crate) finished: bool,
    pub(crate) published: u64,
    /// Those of them that were published late, and by how many snapshots in all.
    pub(crate) moved: u64,
    pub(crate) distance: u64,
    /// Rows that are never published, those that came too late among them.
    pub(crate) suppressed: u64,
    pub(crate) late: u64,
    /// Where the rows are, beside the ledger's own files.
    pub(crate) file: Option<ReleaseFile>,
}

/// A file of a release, named alike where it is staged and where it is public; or of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReleaseFile {
    /// Random name.
    pub(crate) name: String,
    /// Bytes.
    pub(crate) size: u64,
    /// Rows.
    pub(crate) rows: u64,
    /// BLAKE3 hash of the contents, in hexadecimal digits.
    pub(crate) checksum: String,
}

/// Figures that follow from the released rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Rows, counterfeits included.
    pub(crate) rows: u64,
    /// Groups; 0 where they are hidden.
    pub(crate) groups: u64,
    /// Counterfeits.
    pub(crate) counterfeits: u64,
}

/// A release as the public table's commit describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// Number of the release, which is the version of the table.
    pub(crate) number: u64,
    /// Random name of the release, as in its columns' metadata.
    pub(crate) release_id: String,
    /// Name of the method.
    pub(crate) method: String,
    /// Its parameters as a JSON object.
    pub(crate) parameters: String,
    /// Figures that follow from the released rows.
    #[serde(flatten)]
    pub(crate) figures: Figures,
}
