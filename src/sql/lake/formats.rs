//! Folders with files of several formats, of which a session would read those of one and be silent about the others.

use std::collections::BTreeSet;

use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;

/// Ends of names of files that tables are made of.
const FORMATS: [&str; 8] = ["parquet", "csv", "tsv", "json", "ndjson", "avro", "arrow", "vortex"];
/// And what may follow them.
const COMPRESSED: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];

/// The formats of a location's files, if there are several. Files that are hidden, or whose names tell no format, do not count.
pub(super) async fn several(
    location: &ListingTableUrl,
    runtime: &RuntimeEnv,
    config: &ConfigOptions,
) -> Option<Vec<&'static str>> {
    let store = runtime.object_store(location.object_store()).ok()?;
    let ignoring = config.execution.listing_table_ignore_subdirectory;
    let mut found = BTreeSet::new();
    let mut listed = store.list(Some(location.prefix()));
    while let Some(Ok(object)) = listed.next().await {
        if location.contains(&object.location, ignoring) && object.size > 0 {
            found.extend(object.location.filename().and_then(format));
        }
    }
    (found.len() > 1).then(|| found.into_iter().collect())
}

fn format(name: &str) -> Option<&'static str> {
    if name.starts_with(['.', '_']) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let (_, end) = bare.rsplit_once('.')?;
    FORMATS.into_iter().find(|format| *format == end)
}

/// What is wrong with reading them as one table.
pub(super) fn several_text(location: &str, formats: &[&str]) -> String {
    format!(
        "the files at {location} have several formats ({}), and those of one would be read only: say which, as in '{}/*.{}'",
        formats.join(", "),
        location.trim_end_matches('/'),
        formats.first().unwrap_or(&"parquet")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let found = ["a.parquet", "B.CSV", "c.json.gz", "d.csv.zst", "_SUCCESS", ".e.csv", "README", "f.md", "g.gz"]
            .map(format);
        assert_eq!(found, [Some("parquet"), Some("csv"), Some("json"), Some("csv"), None, None, None, None, None]);
    }
}
