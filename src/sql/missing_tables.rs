//! Errors for tables and files that are not there, or cannot be read.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result, TableReference, plan_datafusion_err};
use datafusion::logical_expr::TableType;

use super::signature::suggestion;
use crate::error::unreadable;

/// Extensions of files that DataFusion reads, and of compressed ones.
const EXTENSIONS: [&str; 14] = [
    "arrow", "arrows", "avro", "bz2", "csv", "feather", "gz", "json", "jsonl", "ndjson", "parquet", "tsv", "xz", "zst",
];

/// Catalogs whose errors name the file as it was written: DataFusion takes a missing file for a missing table, and does not say which
/// file is damaged. Put it around the catalogs of a session in which files are tables.
#[derive(Debug, Clone)]
pub struct NamedFiles {
    catalogs: Arc<dyn CatalogProviderList>,
}

impl NamedFiles {
    /// Wraps these catalogs.
    pub fn new(catalogs: Arc<dyn CatalogProviderList>) -> Self {
        Self { catalogs }
    }
}

impl CatalogProviderList for NamedFiles {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.catalogs.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.catalogs.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        self.catalogs.catalog(name).map(|catalog| Arc::new(Catalog(catalog)) as _)
    }
}

#[derive(Debug)]
struct Catalog(Arc<dyn CatalogProvider>);

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.0.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.0.schema(name).map(|schema| Arc::new(Schema(schema)) as _)
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.register_schema(name, schema)
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.deregister_schema(name, cascade)
    }
}

#[derive(Debug)]
struct Schema(Arc<dyn SchemaProvider>);

#[async_trait]
impl SchemaProvider for Schema {
    fn owner_name(&self) -> Option<&str> {
        self.0.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.0.table(name).await {
            Ok(None) if looks_like_file(name) => Err(missing(self.0.as_ref(), &TableReference::bare(name))),
            Ok(found) => Ok(found),
            Err(error) => Err(unreadable(error, name)),
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.0.table_type(name).await
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

/// Returns the error about a table that does not exist.
pub(super) fn missing(schema: &dyn SchemaProvider, reference: &TableReference) -> DataFusionError {
    let name = reference.table();
    if looks_like_file(name) {
        if let Some(error) = there_all_the_same(name) {
            return error;
        }
        let close = if name.contains("://") { String::new() } else { suggested_file(name) };
        return plan_datafusion_err!("file not found: '{name}'{close}");
    }
    let names = schema.table_names();
    plan_datafusion_err!("table '{reference}' not found{}", suggestion(name, names.iter().map(String::as_str)))
}

/// Returns the error about a file that does exist.
fn there_all_the_same(name: &str) -> Option<DataFusionError> {
    match std::fs::File::open(name) {
        Ok(file) if file.metadata().is_ok_and(|file| file.is_file()) => {
            let (format, options) = stored_as(name);
            Some(plan_datafusion_err!(
                "the file '{name}' is there, and its name does not say what is in it to this session: CREATE EXTERNAL TABLE t STORED AS \
                 {format} LOCATION '{}'{options}, and name t",
                name.replace('\'', "''")
            ))
        }
        Ok(folder) if folder.metadata().is_ok_and(|folder| folder.is_dir()) => {
            let folder = name.trim_end_matches('/');
            let Some(files) = some_files(folder) else {
                return Some(plan_datafusion_err!(
                    "folder '{folder}' has no files; name a file, or a folder with files"
                ));
            };
            let (format, options) = stored_as(&files);
            Some(plan_datafusion_err!(
                "names in folder '{folder}' do not say what is in the files to this session: CREATE EXTERNAL TABLE t STORED AS {format} \
                 LOCATION '{}'{options}, and name t",
                files.replace('\'', "''")
            ))
        }
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(plan_datafusion_err!("file '{name}' cannot be opened: {}", error.kind())),
    }
}

/// Returns a pattern of the files in a folder: those that end as one of them does, of a known format if there is such a file.
fn some_files(folder: &str) -> Option<String> {
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).filter(|file| file.path().is_file());
    let names = files.filter_map(|file| file.file_name().into_string().ok()).filter(|name| !name.starts_with('.'));
    let first = names.min_by_key(|name| (!has_known_extension(name), !name.contains('.'), name.clone()))?;
    Some(match first.rsplit_once('.') {
        Some((_, ending)) => format!("{folder}/*.{ending}"),
        None => format!("{folder}/{first}"),
    })
}

/// Returns the format of a file and its options, as CREATE EXTERNAL TABLE has them. It goes by the name.
fn stored_as(name: &str) -> (&'static str, &'static str) {
    let name = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    match () {
        () if ends(&[".tsv", ".tab"]) => ("CSV", " OPTIONS ('format.has_header' 'true', 'format.delimiter' E'\\t')"),
        () if ends(&[".json", ".jsonl", ".ndjson"]) => ("JSON", ""),
        () if ends(&[".arrow", ".arrows", ".feather"]) => ("ARROW", ""),
        () if ends(&[".avro"]) => ("AVRO", ""),
        () if ends(&[".parquet", ".parq", ".pq"]) => ("PARQUET", ""),
        () => ("CSV", ""),
    }
}

fn has_known_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

/// Returns true if a name is hardly one of a table: it has a folder, or the extension of a file.
fn looks_like_file(name: &str) -> bool {
    name.contains(['/', '\\']) || has_known_extension(name)
}

/// Returns the file of the same folder that was probably meant.
fn suggested_file(name: &str) -> String {
    let (folder, file) =
        name.trim_end_matches('/').rsplit_once('/').map_or((None, name), |(folder, file)| (Some(folder), file));
    let there = std::fs::read_dir(match folder {
        Some("") => "/",
        Some(folder) => folder,
        None => ".",
    });
    let names = there.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    let close = suggestion(file, names.iter().map(String::as_str));
    match folder {
        Some(folder) => close.replacen("did you mean ", &format!("did you mean {folder}/"), 1),
        None => close,
    }
}
