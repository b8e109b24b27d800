//! Descriptions by a release of the values of its columns. The releases of a publication have the same columns, but
//! of their values one may say something else than the next: hierarchies improve.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use datafusion::common::{Result, internal_datafusion_err};

use crate::microdata::Trees;

/// Of all columns of a release.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueMetadata {
    /// Orders of categories that the publisher gave, by column.
    pub orders: BTreeMap<String, Vec<String>>,
    /// Fingerprints of the hierarchies that the release was made with; `None` if it does not say.
    pub trees: Option<Trees>,
}

/// The metadata of the release that a plan reads. The release may be opened when the plan exists already.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReleaseMetadata(Arc<OnceLock<ValueMetadata>>);

impl ReleaseMetadata {
    /// Takes the metadata of a release that is open.
    pub(crate) fn known(metadata: ValueMetadata) -> Self {
        Self(Arc::new(OnceLock::from(metadata)))
    }

    /// Adds the metadata of a release that was opened. What was known before stays.
    #[cfg(feature = "publication")]
    pub(crate) fn found(&self, release: &Self) {
        if let Some(ValueMetadata { orders, trees }) = release.0.get() {
            let _ = self.0.set(ValueMetadata { orders: orders.clone(), trees: trees.clone() });
        }
    }

    /// Fails when the release was not opened, which is a bug.
    pub(super) fn get(&self) -> Result<&ValueMetadata> {
        self.0.get().ok_or_else(|| internal_datafusion_err!("an estimate from a release that was not opened"))
    }

    /// Returns the order of a column's categories, as far as that is known by now.
    pub(super) fn order(&self, column: &str) -> Option<&Vec<String>> {
        self.0.get()?.orders.get(column)
    }
}

/// Of one release, or of releases that say the same.
impl PartialEq for ReleaseMetadata {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.get().is_some_and(|metadata| other.0.get() == Some(metadata))
    }
}

impl Eq for ReleaseMetadata {}

impl Hash for ReleaseMetadata {
    /// Hashes nothing, for the metadata may become known in between.
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}
