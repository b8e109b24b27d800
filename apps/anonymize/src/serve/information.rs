//! `information_schema`: the engine's, with PostgreSQL's names of types, and without the server's own settings.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::functions::expr_fn::starts_with;
use datafusion::logical_expr::{Expr, TableType, case, col, lit, when};
use datafusion::prelude::SessionContext;
use futures::FutureExt;

/// Settings of the engine, which have paths of the server.
const OWN_SETTINGS: &str = "df_settings";
/// The columns of all tables.
const COLUMNS: &str = "columns";

/// The engine's types as they are called there, and PostgreSQL's.
const TYPES: [(&str, &str); 20] = [
    ("Boolean", "boolean"),
    ("Int8", "smallint"),
    ("Int16", "smallint"),
    ("UInt8", "smallint"),
    ("Int32", "integer"),
    ("UInt16", "integer"),
    ("Int64", "bigint"),
    ("UInt32", "bigint"),
    ("UInt64", "numeric"),
    ("Float16", "real"),
    ("Float32", "real"),
    ("Float64", "double precision"),
    ("Utf8", "text"),
    ("LargeUtf8", "text"),
    ("Utf8View", "text"),
    ("Binary", "bytea"),
    ("LargeBinary", "bytea"),
    ("BinaryView", "bytea"),
    ("Date32", "date"),
    ("Date64", "date"),
];

/// Types with something behind their names.
const FAMILIES: [(&str, &str); 7] = [
    ("Decimal", "numeric"),
    ("Time32", "time without time zone"),
    ("Time64", "time without time zone"),
    ("Interval", "interval"),
    ("Struct", "record"),
    ("List", "ARRAY"),
    ("LargeList", "ARRAY"),
];

#[derive(Debug)]
struct Information {
    tables: InformationSchemaProvider,
    columns: Arc<dyn TableProvider>,
}

#[async_trait]
impl SchemaProvider for Information {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names().into_iter().filter(|name| name != OWN_SETTINGS).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name.to_ascii_lowercase().as_str() {
            OWN_SETTINGS => Ok(None),
            COLUMNS => Ok(Some(Arc::clone(&self.columns))),
            _ => self.tables.table(name).await,
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::View))
    }

    fn table_exist(&self, name: &str) -> bool {
        !name.eq_ignore_ascii_case(OWN_SETTINGS) && self.tables.table_exist(name)
    }
}

/// Adds it to a catalog.
/// Fails when the engine has no such tables.
pub(super) fn register(context: &SessionContext, database: &str) -> Result<()> {
    let tables = InformationSchemaProvider::new(Arc::clone(context.state().catalog_list()));
    let columns = tables.table(COLUMNS).now_or_never().transpose()?.flatten();
    let columns = columns.ok_or_else(|| exec_datafusion_err!("the engine has no table of columns"))?;
    let columns = context.read_table(columns)?.with_column("data_type", in_their_words()?)?.into_view();
    let catalog = context.catalog(database).ok_or_else(|| exec_datafusion_err!("there is no catalog {database}"))?;
    catalog.register_schema(INFORMATION_SCHEMA, Arc::new(Information { tables, columns }))?;
    Ok(())
}

/// Returns a type's name in PostgreSQL.
fn in_their_words() -> Result<Expr> {
    let name = || col("data_type");
    let begins = |with: &str| starts_with(name(), lit(with));
    // Those with a time zone have it in quotes.
    let zone = datafusion::functions::expr_fn::strpos(name(), lit("\"")).gt(lit(0));
    let zoned = when(zone, lit("timestamp with time zone")).otherwise(lit("timestamp without time zone"))?;
    let mut others = when(begins("Timestamp"), zoned);
    for (family, called) in FAMILIES {
        others = others.when(begins(family), lit(called));
    }
    let others = others.otherwise(name())?;
    let mut names = case(name());
    for (own, called) in TYPES {
        names = names.when(lit(own), lit(called));
    }
    names.otherwise(others)
}
