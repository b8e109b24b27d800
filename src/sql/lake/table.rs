//! A Delta table that somebody else writes, at its newest version.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use url::Url;

use super::DELTA_TABLE;
use crate::error::refusal;
use crate::exec::PlanFuture;
use crate::publication::{introduce, newest_version, provider};
use crate::sql::opaque::{Relation, Wanted};

/// Opened anew by every query: what was deleted since the last one must not be published.
pub(super) struct NewestVersion {
    location: Url,
    runtime: Arc<RuntimeEnv>,
    /// The version of the time when the table was named.
    first: Arc<dyn TableProvider>,
}

impl NewestVersion {
    /// Returns the table at a location.
    /// Fails when there is none, and when it or its store cannot be read.
    pub(super) async fn open(location: Url, runtime: Arc<RuntimeEnv>) -> Result<Self> {
        let Some(table) = newest_version(&location, &runtime).await? else {
            return Err(refusal!(DELTA_TABLE, "there is no Delta table at {location}"));
        };
        let first = provider(&table).await?;
        Ok(Self { location, runtime, first })
    }
}

impl Relation for NewestVersion {
    const NOUN: &'static str = "a Delta table of somebody else";
    const KIND: TableType = TableType::Base;

    fn function(&self) -> &str {
        DELTA_TABLE
    }

    fn schema(&self) -> SchemaRef {
        self.first.schema()
    }

    fn takes(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.first.supports_filters_pushdown(filters)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let Some(table) = newest_version(&self.location, &self.runtime).await? else {
                return Err(refusal!(DELTA_TABLE, "the Delta table at {} is gone", self.location));
            };
            let rows = provider(&table).await?;
            if rows.schema() != self.first.schema() {
                return Err(refusal!(
                    DELTA_TABLE,
                    "the Delta table at {} has other columns than when the query was planned or the table was created; run the query \
                     again, or create the external table again",
                    self.location
                ));
            }
            introduce(&table, session)?;
            rows.scan(session, wanted.projection, wanted.filters, wanted.limit).await
        })
    }
}
