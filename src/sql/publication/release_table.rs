//! A release that is open: a version of the public table.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use deltalake_core::kernel::StructType;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::{DeltaTable, DeltaTableError};
use futures::FutureExt;
use futures::future::ready;
use url::Url;

use crate::error::refusal;
use crate::exec::PlanFuture;
use crate::publication::{Reader, introduce, provider};
use crate::sql::opaque::{Relation, Wanted};

/// Returns the columns of a future release as a Delta table will have them.
/// Fails when there can be no such table.
pub(super) async fn as_table(schema: &Schema) -> Result<SchemaRef> {
    let failed = |error: DeltaTableError| DataFusionError::External(Box::new(error));
    let columns: StructType = schema.try_into_kernel()?;
    let log_store = DeltaTable::new_in_memory().log_store();
    let table = CreateBuilder::new().with_log_store(log_store).with_columns(columns.fields().cloned()).await;
    Ok(provider(&table.map_err(failed)?).await?.schema())
}

const FUNCTION: &str = "release";

/// The rows of a version of the public table.
#[derive(Clone)]
pub(super) struct ReleaseTable {
    table: DeltaTable,
    rows: Arc<dyn TableProvider>,
}

impl ReleaseTable {
    /// Returns the release of this number, or the newest.
    /// Fails when there is none, and when the store fails.
    pub(super) async fn open(public: &Url, runtime: &RuntimeEnv, number: Option<u64>) -> Result<Self> {
        let Some(reader) = Reader::open(public, runtime).await? else {
            return Err(refusal!(FUNCTION, "nothing has been published yet"));
        };
        Self::of(&reader, number).await
    }

    /// Returns the newest version that is a release.
    /// Fails when there is none, and when the store fails.
    pub(super) async fn open_readable(public: &Url, runtime: &RuntimeEnv) -> Result<Self> {
        let Some(reader) = Reader::open(public, runtime).await? else {
            return Err(refusal!(FUNCTION, "nothing has been published yet"));
        };
        let newest = Self::of(&reader, None).await;
        let Err(error) = newest else { return newest };
        for number in (1..reader.newest()).rev() {
            if let Ok(earlier) = Self::of(&reader, Some(number)).await {
                return Ok(earlier);
            }
        }
        Err(error)
    }

    async fn of(reader: &Reader, number: Option<u64>) -> Result<Self> {
        let table = reader.release(number).await?;
        let rows = provider(&table).await?;
        Ok(Self { table, rows })
    }
}

impl Relation for ReleaseTable {
    const NOUN: &'static str = "a release";
    const KIND: TableType = TableType::View;

    fn function(&self) -> &str {
        FUNCTION
    }

    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn takes(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.rows.supports_filters_pushdown(filters)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        match introduce(&self.table, session) {
            Ok(()) => self.rows.scan(session, wanted.projection, wanted.filters, wanted.limit),
            Err(error) => ready(Err(error)).boxed(),
        }
    }
}
