//! The database that readers look around in: their tables, PostgreSQL's catalog, and a schema of information.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{
    CatalogProvider, MemTable, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;

use super::settings::Settings;

/// Schema in which PostgreSQL has its own tables.
pub(super) const PG_CATALOG: &str = "pg_catalog";
const PG_SETTINGS: &str = "pg_settings";

/// A catalog whose schema of information is found by its name and not listed: whoever lists tables would take its views for a reader's.
#[derive(Debug, Default)]
pub(super) struct Database {
    schemas: MemoryCatalogProvider,
    information: OnceLock<Arc<dyn SchemaProvider>>,
}

impl Database {
    /// Makes a catalog with one schema for tables.
    /// Fails when the schema is not taken.
    pub(super) fn new(schema: &str) -> Result<Self> {
        let database = Self::default();
        database.schemas.register_schema(schema, Arc::new(MemorySchemaProvider::new()))?;
        Ok(database)
    }
}

impl CatalogProvider for Database {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            INFORMATION_SCHEMA => self.information.get().cloned(),
            _ => self.schemas.schema(name),
        }
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        match name {
            INFORMATION_SCHEMA => Ok(self.information.set(schema).err()),
            // What drivers read of settings is what is set here.
            PG_CATALOG => {
                self.schemas.register_schema(name, Arc::new(Postgres { tables: schema, settings: settings()? }))
            }
            _ => self.schemas.register_schema(name, schema),
        }
    }
}

/// PostgreSQL's catalog with the settings that there are.
#[derive(Debug)]
struct Postgres {
    tables: Arc<dyn SchemaProvider>,
    settings: Arc<dyn TableProvider>,
}

#[async_trait]
impl SchemaProvider for Postgres {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name {
            PG_SETTINGS => Ok(Some(Arc::clone(&self.settings))),
            _ => self.tables.table(name).await,
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.tables.table_type(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table_exist(name)
    }
}

/// Returns settings as they are at first: a session knows the values that it has set.
fn settings() -> Result<Arc<dyn TableProvider>> {
    let (names, values): (Vec<&str>, Vec<&str>) = Settings::known().unzip();
    let same = |text: &'static str| -> ArrayRef { Arc::new(StringArray::from(vec![text; names.len()])) };
    let values: ArrayRef = Arc::new(StringArray::from(values));
    let columns = [
        ("name", Arc::new(StringArray::from(names.clone())) as ArrayRef),
        ("setting", Arc::clone(&values)),
        ("unit", Arc::new(StringArray::new_null(names.len()))),
        ("category", same("Readers")),
        ("short_desc", same("")),
        ("extra_desc", same("")),
        ("context", same("user")),
        ("vartype", same("string")),
        ("source", same("default")),
        ("boot_val", Arc::clone(&values)),
        ("reset_val", values),
    ];
    let batch = RecordBatch::try_from_iter(columns)?;
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
}
