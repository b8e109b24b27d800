//! `SET anonymize.*`: roles for calls that name none.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Session settings. A call's arguments and the columns' own metadata come first.
    pub struct AnonymizeOptions {
        /// Identifier column
        pub id: Option<String>, default = None
        /// Quasi-identifier columns, separated by commas
        pub quasi: Option<String>, default = None
        /// Sensitive column
        pub sensitive: Option<String>, default = None
    }
}

impl ConfigExtension for AnonymizeOptions {
    const PREFIX: &'static str = "anonymize";
}
