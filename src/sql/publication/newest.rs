//! The newest release of a publication, for estimates. Which one that is, a statement finds out when it is planned, once: all its scans
//! read the same release, and planning it asks nothing of the store before that.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use url::Url;

use super::options::refused;
use super::release_table::ReleaseTable;
use crate::error::refusal;
use crate::estimate::{ESTIMATE, OriginalColumn, ReleaseMetadata, Released};
use crate::exec::PlanFuture;
use crate::sql::opaque::{Relation, Wanted};
use crate::sql::query_start::QueryStart;

/// The releases of a publication, as far as they are alike.
pub(super) struct PublicReleases {
    public: Url,
    runtime: Arc<RuntimeEnv>,
    /// The columns that releases have, as they describe themselves.
    schema: SchemaRef,
    /// Findings of the queries that were planned last: the inputs of functions in them are planned one by one.
    last: Mutex<VecDeque<(QueryStart, Arc<Found>)>>,
}

/// A release that is opened once.
type Found = OnceCell<Arc<ReleaseTable>>;

/// Queries that are planned at a time, at most.
const AT_A_TIME: usize = 16;

impl PublicReleases {
    pub(super) fn new(public: Url, runtime: Arc<RuntimeEnv>, schema: SchemaRef) -> Self {
        Self { public, runtime, schema, last: Mutex::default() }
    }

    /// Returns the columns that releases have, as they described themselves when the publication was opened.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn found(&self, start: Option<QueryStart>) -> Arc<Found> {
        let Some(start) = start else { return Arc::default() };
        let mut last = self.last.lock();
        if let Some((_, found)) = last.iter().find(|(known, _)| *known == start) {
            return Arc::clone(found);
        }
        last.truncate(AT_A_TIME - 1);
        let found = Arc::default();
        last.push_front((start, Arc::clone(&found)));
        found
    }

    /// Opens the newest release, if the query has not done so.
    /// Fails when it cannot be opened.
    async fn open<'a>(&self, found: &'a Found) -> Result<&'a Arc<ReleaseTable>> {
        let open = async || Ok(Arc::new(ReleaseTable::open(&self.public, &self.runtime, None).await?));
        found.get_or_try_init(open).await
    }

    /// Returns the newest release as a query sees it.
    /// Fails when it cannot be opened.
    pub(super) async fn newest(&self, session: &dyn Session) -> Result<Arc<ReleaseTable>> {
        self.open(&self.found(QueryStart::of(session))).await.map(Arc::clone)
    }
}

/// The newest release as one statement sees it: the one that its first scan finds.
pub(in crate::sql) struct NewestRelease {
    releases: Arc<PublicReleases>,
    /// The columns without what a release says in them of itself: which one it is, is not known yet.
    schema: SchemaRef,
    /// Metadata by which the functions of an estimate learn what the release says.
    metadata: ReleaseMetadata,
    found: OnceLock<Arc<Found>>,
}

impl NewestRelease {
    /// Describes the newest release by what can be known of it now.
    /// Fails when estimates cannot be made from such releases.
    pub(super) fn of(releases: &Arc<PublicReleases>) -> Result<(Self, Released)> {
        let (released, metadata) = Released::try_new(ESTIMATE, &releases.schema)?.of_another();
        let schema = plain(&releases.schema);
        Ok((Self { releases: Arc::clone(releases), schema, metadata, found: OnceLock::new() }, released))
    }
}

/// Returns the columns without metadata.
pub(super) fn plain(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| field.as_ref().clone().with_metadata(Default::default());
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

impl Relation for NewestRelease {
    const KIND: TableType = TableType::View;

    fn function(&self) -> &str {
        ESTIMATE
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn takes(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let found = self.found.get_or_init(|| self.releases.found(QueryStart::of(session)));
            let release = self.releases.open(found).await?;
            let told = Released::try_new(ESTIMATE, &release.schema())?;
            if let Some(metadata) = told.metadata() {
                self.metadata.found(metadata);
            }
            let Wanted { filters, limit, .. } = wanted;
            let columns = wanted.of(&self.schema)?;
            let mut places = places(&columns, &release.schema(), &told)?;
            places.sort_unstable();
            let supported = release.takes(&filters.iter().collect::<Vec<_>>())?;
            let taken =
                filters.iter().zip(supported).filter(|(_, how)| *how != TableProviderFilterPushDown::Unsupported);
            let filters: Vec<Expr> = taken.map(|(filter, _)| filter.clone()).collect();
            let wanted = Wanted { projection: Some(&places), filters: &filters, limit };
            typed(release.plan(session, wanted).await?, &columns)
        })
    }
}

/// Returns the places of the wanted columns in a release.
/// Fails when one is not there, for some methods publish other columns every time, or is of another type than in other releases.
fn places(wanted: &Schema, release: &Schema, told: &Released) -> Result<Vec<usize>> {
    let place = |field: &Arc<Field>| match release.index_of(field.name()) {
        Ok(place) if DFSchema::datatype_is_semantically_equal(release.field(place).data_type(), field.data_type()) => {
            Ok(place)
        }
        Ok(_) => Err(refused(
            &format!("column {} of the newest release has another type than the external table", field.name()),
            "create the external table again",
        )),
        Err(_) => {
            let there: Vec<&str> = told.columns.iter().map(OriginalColumn::name).collect();
            let (name, there) = (field.name(), there.join(", "));
            Err(refusal!(ESTIMATE, "column {name} was not published; there are {there}"))
        }
    };
    wanted.fields().iter().map(place).collect()
}

/// Returns the rows of exactly this schema.
pub(super) fn typed(rows: Arc<dyn ExecutionPlan>, wanted: &Schema) -> Result<Arc<dyn ExecutionPlan>> {
    let there = rows.schema();
    let columns = wanted.fields().iter().map(|field| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new_with_schema(field.name(), &there)?);
        let typed = CastExpr::new_with_target_field(column, Arc::clone(field), None);
        Ok((Arc::new(typed) as Arc<dyn PhysicalExpr>, field.name().clone()))
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Result<Vec<_>>>()?, rows)?))
}
