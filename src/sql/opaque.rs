//! Tables that are planned when they are scanned. Of the table that a call stands for the optimizer sees nothing inside, so no filter, limit or
//! projection of the query can reach what is anonymized.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::FutureExt;
use futures::future::ready;

use crate::error::refusal;
use crate::exec::{PlanFuture, boxed_method};

/// Describes which part of a table a scan reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Columns by their places; all if `None`.
    pub projection: Option<&'a Vec<usize>>,
    /// Conditions of those that the relation [takes](Relation::takes).
    pub filters: &'a [Expr],
    /// Most rows.
    pub limit: Option<usize>,
}

impl Wanted<'_> {
    /// Returns the columns of `schema` that the scan reads.
    /// Fails when there is no such column.
    pub(super) fn of(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        match self.projection {
            Some(columns) => Ok(Arc::new(schema.project(columns)?)),
            None => Ok(Arc::clone(schema)),
        }
    }
}

/// Result of a call on its inputs, or another table that each query looks up.
pub(super) trait Relation: Send + Sync + 'static {
    /// Noun for the rows, in errors.
    const NOUN: &'static str = "its result";
    const KIND: TableType = TableType::Temporary;

    fn function(&self) -> &str;

    fn schema(&self) -> SchemaRef;

    /// Says which conditions of a query the relation can use; none, where rows are made of whole inputs.
    /// Fails with the errors of planning.
    fn takes(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
    }

    /// Plans the inputs, and the operator over them with the wanted columns.
    /// Fails with the errors of planning.
    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a>;
}

/// A relation as a table.
pub(super) struct OpaqueTable<R>(pub R);

impl<R: Relation> fmt::Debug for OpaqueTable<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpaqueTable({})", self.0.function())
    }
}

impl<R: Relation> OpaqueTable<R> {
    /// Returns the relation, if a table is one of this kind.
    pub(super) fn relation(table: &dyn TableProvider) -> Option<&R> {
        table.downcast_ref::<Self>().map(|Self(relation)| relation)
    }
}

#[async_trait]
impl<R: Relation> TableProvider for OpaqueTable<R> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        R::KIND
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.takes(filters)
    }

    boxed_method! {<'s, 'p, 'f> fn scan(
        &self,
        session: &'s dyn Session,
        projection: Option<&'p Vec<usize>>,
        filters: &'f [Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.plan(session, Wanted { projection, filters, limit })
    }}

    async fn insert_into(
        &self,
        _session: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(refusal!(self.0.function(), "{} cannot be written to", R::NOUN))
    }

    boxed_method! {<'s> fn delete_from(
        &self,
        _session: &'s dyn Session,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refusal!(self.0.function(), "rows of {} cannot be deleted", R::NOUN))).boxed()
    }}

    boxed_method! {<'s> fn update(
        &self,
        _session: &'s dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refusal!(self.0.function(), "rows of {} cannot be updated", R::NOUN))).boxed()
    }}
}
