//! The rows of a publication's newest release, whichever that is, with ranges as columns: for programs that know tables only.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType, lit};

use super::newest::{PublicReleases, plain, typed};
use super::table::PublicationTable;
use crate::error::refusal;
use crate::exec::{PlanFuture, plan_input};
use crate::methods::{AnyMethod, LeftOut};
use crate::microdata::Role;
use crate::release::Description;
use crate::sql::flat::flat;
use crate::sql::opaque::{OpaqueTable, Relation, Wanted};

const FLAT: &str = "flat";

/// Finds the newest release anew by every query.
pub(in crate::sql) struct FlatRows {
    releases: Arc<PublicReleases>,
    schema: SchemaRef,
}

impl FlatRows {
    /// Makes the flat rows of a publication.
    /// Fails when a column would be there twice.
    pub(in crate::sql) fn of(publication: &PublicationTable) -> Result<Self> {
        let released = publication.released_schema();
        let fields = released.fields().iter().map(|field| match may_lack(field) {
            true => Arc::new(field.as_ref().clone().with_nullable(true)),
            false => Arc::clone(field),
        });
        let released = plain(&Schema::new(fields.collect::<Vec<_>>()));
        let columns = DFSchema::try_from(Arc::clone(&released))?;
        let schema = match flat(FLAT, &columns)? {
            Some(exprs) => {
                let empty = LogicalPlan::EmptyRelation(datafusion::logical_expr::EmptyRelation {
                    produce_one_row: false,
                    schema: Arc::new(columns),
                });
                let plan = LogicalPlanBuilder::from(empty).project(exprs)?.build()?;
                plain(plan.schema().as_arrow())
            }
            None => released,
        };
        Ok(Self { releases: Arc::clone(publication.releases()), schema })
    }
}

/// Returns true if releases may lack this column though most like it have values.
fn may_lack(field: &Field) -> bool {
    let metadata = field.metadata();
    let is_sensitive = metadata.get(Role::KEY).is_some_and(|role| role == Role::Sensitive.name());
    let method = Description::from_metadata(metadata).and_then(|description| AnyMethod::described(&description));
    is_sensitive && method.is_some_and(|method| method.as_method().leaves_out() == LeftOut::Remembered)
}

impl Relation for FlatRows {
    const KIND: TableType = TableType::View;

    fn function(&self) -> &str {
        FLAT
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let release = self.releases.newest(session).await?;
            let mut plan = LogicalPlanBuilder::scan(
                "release",
                provider_as_source(Arc::new(OpaqueTable(release.as_ref().clone()))),
                None,
            )?;
            if let Some(columns) = flat(FLAT, plan.schema())? {
                plan = plan.project(columns)?;
            }
            let limit = wanted.limit;
            let wanted = wanted.of(&self.schema)?;
            let columns = wanted.fields().iter().map(|field| {
                let name = field.name();
                match plan.schema().iter().find(|(_, there)| there.name() == name) {
                    Some(found) => Ok(Expr::Column(Column::from(found))),
                    // It may lack columns that others have.
                    None if field.is_nullable() => Ok(lit(ScalarValue::try_from(field.data_type())?).alias(name)),
                    None => Err(refusal!(FLAT, "the newest release has no column {name}")),
                }
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let plan = plan.project(columns)?.limit(0, limit)?.build()?;
            typed(plan_input(session, &plan).await?, &wanted)
        })
    }
}
