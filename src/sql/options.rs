//! `SET anonymize.*`: roles for calls that name none, and the period of what is inserted.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{DataFusionError, Result};

use super::signature::suggestion;
use crate::microdata::Several;

/// Session settings. A call's arguments and the columns' own metadata come first.
///
/// An empty text is no setting: `SET anonymize.id = ''` takes it back, and so does `RESET anonymize.id` in our shell (in other
/// sessions DataFusion resets its own settings only).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnonymizeOptions {
    /// Identifier column
    pub id: Option<String>,
    /// Quasi-identifier columns, separated by commas
    pub quasi: Option<String>,
    /// Sensitive column; several as `disease, drug`, each by itself, or as `composite(disease, drug)`
    pub sensitive: Option<String>,
    /// Period of snapshots that are inserted into publications whose values change by a law
    pub period: Option<String>,
}

const NAMES: [&str; 4] = ["id", "quasi", "sensitive", "period"];

/// Splits `'age, zip'` into names.
pub(super) fn split_names(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Returns the names in `'composite(disease, drug)'`, the combination of columns; `None` for another text.
pub(super) fn names_together(text: &str) -> Option<Vec<String>> {
    let (function, rest) = text.trim().split_once('(')?;
    let names = function.trim().eq_ignore_ascii_case("composite").then(|| rest.trim_end().strip_suffix(')'))?;
    names.map(split_names)
}

/// Returns the sensitive columns in a setting, and the subject of the bound.
pub(super) fn sensitive_names(text: &str) -> (Vec<String>, Several) {
    match names_together(text) {
        Some(names) => (names, Several::Together),
        None => (split_names(text), Several::Each),
    }
}

impl ConfigExtension for AnonymizeOptions {
    const PREFIX: &'static str = "anonymize";
}

impl ExtensionOptions for AnonymizeOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    /// Sets a key without prefix; engines that ship settings as [listed](Self::entries) give it twice.
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let bare = key.strip_prefix("anonymize.").unwrap_or(key);
        let setting = match bare {
            "id" => &mut self.id,
            "quasi" => &mut self.quasi,
            "sensitive" => &mut self.sensitive,
            "period" => &mut self.period,
            _ => {
                return Err(DataFusionError::Configuration(format!(
                    "there is no setting anonymize.{bare}{}; there are {}",
                    suggestion(bare, NAMES),
                    NAMES.map(|name| format!("anonymize.{name}")).join(", ")
                )));
            }
        };
        *setting = Some(value.to_owned()).filter(|value| !value.trim().is_empty());
        Ok(())
    }

    /// Lists the settings with prefix, because `SHOW anonymize.id` looks for that.
    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |name: &str, value: &Option<String>, description: &'static str| ConfigEntry {
            key: format!("anonymize.{name}"),
            value: value.clone(),
            description,
        };
        vec![
            entry("id", &self.id, "Identifier column"),
            entry("quasi", &self.quasi, "Quasi-identifier columns, separated by commas"),
            entry("sensitive", &self.sensitive, "Sensitive column"),
            entry("period", &self.period, "Period of snapshots of publications whose values change by a law"),
        ]
    }
}
