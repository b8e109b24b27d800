//! Describes what `disclosure(..)` takes from a publication: its releases, and what its publisher has declared and its ledger knows.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{Column, Result};
use datafusion::datasource::provider_as_source;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, cast, lit};

use super::release_table::ReleaseTable;
use super::table::{PublicationTable, Publisher};
use crate::error::refusal;
use crate::exec::{Origin, PlanFuture, hide};
use crate::methods::ValueChanges;
use crate::methods::state::{IDENTIFIER, RELEASE};
use crate::publication::{OpenPublication, Publication, Reader, ReleaseRow};
use crate::release::{LABEL, SIGNATURE};
use crate::sql::block_on_io::block_on_io;
use crate::sql::input::OWN_VALUE;
use crate::sql::opaque::{OpaqueTable, Relation, Wanted};
use crate::sql::publication_terms::{Declared, Presence, WHO};

const FUNCTION: &str = "disclosure";

/// Returns the releases of a publication, and what it says of itself; `None` if a relation is none.
/// Fails when the publication cannot be read.
pub(in crate::sql) fn evidence_of(plan: &LogicalPlan) -> Result<Option<(Vec<LogicalPlan>, Declared)>> {
    if !PublicationTable::is(plan) {
        return Ok(None);
    }
    PublicationTable::with(plan, FUNCTION, |table| {
        let (public, private, runtime) = (&table.public, table.private(), &table.runtime);
        let (tables, rows) = block_on_io(|| async move {
            let Some(reader) = Reader::open(public, runtime).await? else {
                return Ok((vec![ReleaseTable::open(public, runtime, Some(1)).await?], Vec::new()));
            };
            let rows = reader.releases(private, runtime).await?;
            let tables = (1..=reader.newest()).map(|number| ReleaseTable::open(public, runtime, Some(number)));
            Ok((futures::future::try_join_all(tables).await?, rows))
        })?;
        let scan = |table| {
            let release = provider_as_source(Arc::new(OpaqueTable(table)));
            LogicalPlanBuilder::scan("release", release, None)?.build()
        };
        let releases: Vec<LogicalPlan> = tables.into_iter().map(scan).collect::<Result<_>>()?;
        let mut declared = match table.publisher() {
            Some(publisher) => declared_by(publisher, &rows, runtime)?,
            None => Declared::default(),
        };
        declared.times = times(&rows);
        declared.people = people(&rows);
        Ok(Some((releases, declared)))
    })
}

/// Returns the period of each release, as far as all say theirs; else each is one.
fn times(rows: &[ReleaseRow]) -> Vec<u64> {
    let said = |row: &ReleaseRow| {
        let noted = row.record.as_ref().and_then(|record| record.period_of(record.number));
        noted.or(row.announcement.period)
    };
    let times: Option<Vec<u64>> = rows.iter().map(said).collect();
    times.filter(|times| times.is_sorted()).unwrap_or_default()
}

fn declared_by(publisher: &Publisher, rows: &[ReleaseRow], runtime: &Arc<RuntimeEnv>) -> Result<Declared> {
    let spec = &publisher.publication.spec;
    let parts: Vec<String> = publisher.parts.iter().map(|part| part.name().clone()).collect();
    let changes = spec.method.as_method().changes();
    // A domain is no relation of updates.
    let updates = publisher.updates.clone().filter(|_| !spec.has_domain());
    Ok(Declared {
        id: spec.roles.id.clone(),
        quasi: spec.roles.quasi.clone(),
        sensitive: if parts.is_empty() { spec.roles.sensitive.iter().cloned().collect() } else { parts },
        several: publisher.several,
        updates,
        any_update: changes == ValueChanges::Any,
        closed: changes.are_closed(),
        hierarchies: publisher.hierarchies.clone(),
        times: Vec::new(),
        people: Vec::new(),
        presence: presence(&publisher.publication, rows, runtime)?,
    })
}

/// Returns what the ledger knows of who was in which release: of some methods all, of others since when.
fn presence(publication: &Publication, rows: &[ReleaseRow], runtime: &Arc<RuntimeEnv>) -> Result<Presence> {
    let kind = publication.spec.method.state();
    if kind.is_none() || rows.len() < 2 {
        return Ok(Presence::Everybody);
    }
    let dated = publication.spec.method.as_method().changes().are_lawful();
    let wanted: &[&str] = if dated { &[IDENTIFIER, SIGNATURE, LABEL, RELEASE] } else { &[IDENTIFIER, RELEASE] };
    let columns =
        block_on_io(|| async move { OpenPublication::open(publication.clone(), runtime).await?.ledger_columns() });
    let Some(columns) = columns? else { return Ok(Presence::Everybody) };
    let fields = wanted.iter().map(|name| columns.field_with_name(name).cloned());
    let schema = Arc::new(Schema::new(fields.collect::<std::result::Result<Vec<_>, _>>()?));
    let entries = OpaqueTable(LedgerEntries { publication: publication.clone(), schema });
    let entries = LogicalPlanBuilder::scan("ledger", provider_as_source(Arc::new(entries)), None)?;
    let column = |name: &str| Expr::Column(Column::from_name(name));
    if dated {
        let own = array_element(column(SIGNATURE), cast(column(LABEL), DataType::Int64));
        let columns = [column(IDENTIFIER).alias(WHO), own.alias(OWN_VALUE), column(RELEASE)];
        return Ok(Presence::Valued(entries.project(columns)?.build()?));
    }
    // From the release on in which they came.
    let numbers: Vec<Vec<Expr>> = (1..=rows.len() as i64).map(|number| vec![lit(number)]).collect();
    let numbers = LogicalPlanBuilder::values(numbers)?.project([column("column1").alias("number")])?.build()?;
    let came = entries.aggregate([column(IDENTIFIER)], [min(column(RELEASE)).alias("came")])?;
    let came = came.project([column(IDENTIFIER).alias(WHO), column("came")])?;
    let there = came.join_on(numbers, JoinType::Inner, [column("came").lt_eq(column("number"))])?;
    Ok(Presence::Since(there.project([column(WHO), column("number").alias(RELEASE)])?.build()?))
}

/// Returns how many people were in each release, withheld ones included.
fn people(rows: &[ReleaseRow]) -> Vec<u64> {
    let people = |row: &ReleaseRow| {
        let figures = &row.announcement.figures;
        let withheld = row.record.as_ref().map_or(0, |record| record.withheld);
        figures.rows.saturating_sub(figures.counterfeits) + withheld
    };
    rows.iter().map(people).collect()
}

/// Entries of a ledger, with some of its columns.
struct LedgerEntries {
    publication: Publication,
    schema: SchemaRef,
}

impl Relation for LedgerEntries {
    fn function(&self) -> &str {
        FUNCTION
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let open = OpenPublication::open(self.publication.clone(), session.runtime_env()).await?;
            let Some(entries) = open.entries() else {
                return Err(refusal!(FUNCTION, "the ledger of the publication has no entries"));
            };
            let origin = Origin { function: FUNCTION.to_owned(), argument: "the ledger".to_owned(), names: Vec::new() };
            hide(&entries.plan(wanted.of(&self.schema)?)?, &Arc::new(origin))
        })
    }
}
