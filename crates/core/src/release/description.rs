//! Description of a release by itself.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Facts about the making of a release, in the metadata of every column. Nothing in it depends on the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Description {
    /// Name of the method, as it is called in SQL.
    pub method: String,
    /// The method's parameters as a JSON object. Never the seed.
    pub parameters: String,
    /// A random number: all files of one release share it, and releases with different ones are different releases.
    pub release_id: String,
    /// Number of the release in a publication.
    pub number: Option<u64>,
}

impl Description {
    /// Metadata key of the method.
    pub const METHOD: &str = "anonymize.method";
    /// Metadata key of the parameters.
    pub const PARAMETERS: &str = "anonymize.parameters";
    /// Metadata key of the release id.
    pub const RELEASE: &str = "anonymize.release";
    /// Metadata key of the number.
    pub const NUMBER: &str = "anonymize.number";

    /// Describes a release that a method made with these parameters, a JSON object.
    #[doc(hidden)]
    pub fn new(method: &str, parameters: String, release_id: String, number: Option<u64>) -> Self {
        Self { method: method.to_owned(), parameters, release_id, number }
    }

    /// Returns the metadata that every column of the release carries.
    pub fn metadata(&self) -> HashMap<String, String> {
        let mut metadata = HashMap::from([
            (Self::METHOD.to_owned(), self.method.clone()),
            (Self::PARAMETERS.to_owned(), self.parameters.clone()),
            (Self::RELEASE.to_owned(), self.release_id.clone()),
        ]);
        metadata.extend(self.number.map(|number| (Self::NUMBER.to_owned(), number.to_string())));
        metadata
    }

    /// Reads the description back from a column's metadata.
    pub fn from_metadata(metadata: &HashMap<String, String>) -> Option<Self> {
        Some(Self {
            method: metadata.get(Self::METHOD)?.clone(),
            parameters: metadata.get(Self::PARAMETERS)?.clone(),
            release_id: metadata.get(Self::RELEASE)?.clone(),
            number: metadata.get(Self::NUMBER).and_then(|number| number.parse().ok()),
        })
    }
}
