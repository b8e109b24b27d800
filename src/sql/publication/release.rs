//! The relation function `release(publication, number)`: the rows that the world sees.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::provider_as_source;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use deltalake_core::kernel::StructType;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::{DeltaTable, DeltaTableError};
use url::Url;

use super::table::PublicationTable;
use crate::error::refusal;
use crate::publication::{Reader, introduce, provider};
use crate::sql::arguments::Arguments;
use crate::sql::function::RelationFunction;
use crate::sql::options::AnonymizeOptions;
use crate::sql::resolve::wait_long_for;
use crate::sql::signature::{FunctionSignature, Kind, Parameter};

/// A release by its number.
#[derive(Debug)]
pub(super) struct ReleaseByNumber;

/// The publication that a function is about.
pub(super) const PUBLICATION: Parameter = Parameter::required("publication", Kind::Relation, "hospital");

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "release",
    parameters: &[PUBLICATION, Parameter::optional("number", Kind::Integer, "3")],
};

impl RelationFunction for ReleaseByNumber {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let number = arguments.integer("number", 1)?.map(|number| number as u64);
        let plan = arguments.relation(PUBLICATION.name)?;
        PublicationTable::with(&plan, SIGNATURE.name, |publication| {
            let (public, runtime) = (&publication.public, &publication.runtime);
            let table = wait_long_for(|| ReleaseTable::open(public, runtime, number))?;
            Ok(Arc::new(table) as Arc<dyn TableProvider>)
        })
    }
}

/// A relation, or all releases of the publication that it is.
pub(in crate::sql) fn releases_of(plan: LogicalPlan) -> Result<Vec<LogicalPlan>> {
    const FUNCTION: &str = "disclosure";
    if !PublicationTable::is(&plan) {
        return Ok(vec![plan]);
    }
    let tables = PublicationTable::with(&plan, FUNCTION, |publication| {
        let (public, runtime) = (&publication.public, &publication.runtime);
        wait_long_for(|| async move {
            let newest = Reader::open(public, runtime).await?.map_or(1, |reader| reader.newest());
            let tables = (1..=newest).map(|number| ReleaseTable::open(public, runtime, Some(number)));
            futures::future::try_join_all(tables).await
        })
    })?;
    let scan = |table| LogicalPlanBuilder::scan("release", provider_as_source(Arc::new(table)), None)?.build();
    tables.into_iter().map(scan).collect()
}

/// The columns of a release that was not made yet, as a Delta table will have them.
///
/// # Errors
/// When there can be no such table.
pub(super) async fn first_release(schema: &Schema) -> Result<SchemaRef> {
    let failed = |error: DeltaTableError| DataFusionError::External(Box::new(error));
    let columns: StructType = schema.try_into_kernel()?;
    let log_store = DeltaTable::new_in_memory().log_store();
    let table = CreateBuilder::new().with_log_store(log_store).with_columns(columns.fields().cloned()).await;
    Ok(provider(&table.map_err(failed)?).await?.schema())
}

/// The rows of a version of the public table.
#[derive(Debug)]
pub(super) struct ReleaseTable {
    table: DeltaTable,
    rows: Arc<dyn TableProvider>,
}

impl ReleaseTable {
    /// The release of this number, or the newest.
    ///
    /// # Errors
    /// When there is none, and when the store fails.
    pub(super) async fn open(public: &Url, runtime: &RuntimeEnv, number: Option<u64>) -> Result<Self> {
        let Some(reader) = Reader::open(public, runtime).await? else {
            return Err(refusal!("release", "nothing has been published yet"));
        };
        let table = reader.release(number).await?;
        let rows = provider(&table).await?;
        Ok(Self { table, rows })
    }
}

#[async_trait]
impl TableProvider for ReleaseTable {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.rows.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        introduce(&self.table, session)?;
        self.rows.scan(session, projection, filters, limit).await
    }
}
