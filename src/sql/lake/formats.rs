//! Folders with files of several formats. A session would read those of one and be silent about the others.

use std::collections::BTreeMap;

use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;

/// Ends of names of files that tables are made of.
const FORMATS: [&str; 8] = ["parquet", "csv", "tsv", "json", "ndjson", "avro", "arrow", "vortex"];
/// And what may follow them.
const COMPRESSED: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];

/// Returns the formats of a location's files, if there are several; that of most files first. Hidden and empty files count, for a session may take the
/// format of one of these.
pub(super) async fn several(
    location: &ListingTableUrl,
    runtime: &RuntimeEnv,
    config: &ConfigOptions,
) -> Option<Vec<&'static str>> {
    let store = runtime.object_store(location.object_store()).ok()?;
    let ignoring = config.execution.listing_table_ignore_subdirectory;
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut listed = store.list(Some(location.prefix()));
    while let Some(Ok(object)) = listed.next().await {
        if location.contains(&object.location, ignoring)
            && let Some(format) = object.location.filename().and_then(format)
        {
            *found.entry(format).or_default() += 1;
        }
    }
    let mut formats: Vec<&str> = found.keys().copied().collect();
    formats.sort_by_key(|format| std::cmp::Reverse(found[format]));
    (formats.len() > 1).then_some(formats)
}

fn format(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let (_, end) = bare.rsplit_once('.')?;
    FORMATS.into_iter().find(|format| *format == end)
}

pub(super) fn several_text(location: &str, formats: &[&str]) -> String {
    let most = formats.first().unwrap_or(&"parquet");
    // Up to a pattern, if there is one.
    let folder = match location.find(['*', '?', '[', '{']) {
        Some(pattern) => location[..pattern].rsplit_once('/').map_or(".", |(folder, _)| folder),
        None => location.trim_end_matches('/'),
    };
    format!(
        "the files at {location} have several formats ({}), and those of one would be read only: say which, as in '{folder}/*.{most}', or by CREATE \
         EXTERNAL TABLE t STORED AS {} LOCATION '{folder}/'",
        formats.join(", "),
        most.to_uppercase()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let found = ["a.parquet", "B.CSV", "c.json.gz", "d.csv.zst", ".e.csv", "_SUCCESS", "README", "f.md", "g.gz"]
            .map(format);
        assert_eq!(
            found,
            [Some("parquet"), Some("csv"), Some("json"), Some("csv"), Some("csv"), None, None, None, None]
        );
    }

    #[test]
    fn what_is_suggested_is_there() {
        for location in ["lake/days", "lake/days/", "lake/days/*", "lake/days/*.{csv,parquet}"] {
            let text = several_text(location, &["csv", "parquet"]);
            assert!(
                text.contains("'lake/days/*.csv'") && text.contains("STORED AS CSV LOCATION 'lake/days/'"),
                "{text}"
            );
        }
    }
}
