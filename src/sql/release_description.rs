//! Descriptions that releases give of themselves. They are in the schema of a table, or, as DataFusion drops it
//! when it reads Parquet, in the footers of the files.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::logical_plan::TableScan;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::anonymized_table::AnonymizedTable;
use super::footers::{Footer, footers_of};
use super::input::Input;
use super::opaque::OpaqueTable;
use crate::error::refusal;
use crate::microdata::Role;
use crate::release::{COUNTERFEIT_MARK, Description};

/// Columns of a relation with the metadata that they had when they were released.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub fields: Vec<FieldRef>,
    /// Columns of which it is known that no interval has NULL in it.
    pub without_null: BTreeSet<String>,
    /// True if rows were chosen by what only the publisher knows: who a row is about, or that it is a counterfeit.
    pub by_person: bool,
}

/// Describes the columns of a query over a release.
/// Fails when the query does more than select columns and filter rows, and when files are of different releases.
pub(super) fn describe(function: &str, plan: &LogicalPlan, session: &SessionState) -> Result<Described> {
    match plan {
        LogicalPlan::TableScan(scan) => of_table(function, scan, session),
        LogicalPlan::SubqueryAlias(alias) => describe(function, &alias.input, session),
        LogicalPlan::Filter(filter) => {
            let mut below = describe(function, &filter.input, session)?;
            for column in filter.predicate.column_refs() {
                let field = &below.fields[filter.input.schema().index_of_column(column)?];
                let role = field.metadata().get(Role::KEY).map(String::as_str);
                below.by_person |= role == Some(COUNTERFEIT_MARK) || role == Some(Role::Id.name());
            }
            Ok(below)
        }
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => describe(function, &sort.input, session),
        LogicalPlan::Projection(projection) => {
            let below = describe(function, &projection.input, session)?;
            let mut above = Described { by_person: below.by_person, ..Described::default() };
            for (expr, field) in projection.expr.iter().zip(projection.schema.fields()) {
                let place = match expr.clone().unalias() {
                    Expr::Column(column) => Some(projection.input.schema().index_of_column(&column)?),
                    _ => None,
                };
                // What is computed is nothing that was released.
                let metadata = place.map_or_else(HashMap::new, |place| below.fields[place].metadata().clone());
                if place.is_some_and(|place| below.without_null.contains(below.fields[place].name())) {
                    above.without_null.insert(field.name().clone());
                }
                above.fields.push(Arc::new(field.as_ref().clone().with_metadata(metadata)));
            }
            Ok(above)
        }
        _ => Err(refusal!(
            function,
            argument "release",
            "argument release must be a release; a query over it may select columns and filter rows, but not join, \
             aggregate, limit or add rows, because the result would be no release"
        )),
    }
}

/// Returns the columns of a relation with descriptions of the release that they are of. Of what is no release they say what they say.
pub(super) fn released_columns(relation: &Input, session: Option<&SessionState>) -> Vec<FieldRef> {
    let columns: Vec<FieldRef> = relation.plan.schema().fields().iter().cloned().collect();
    let is_described = columns.iter().any(|field| Description::from_metadata(field.metadata()).is_some());
    let session = session.filter(|_| !is_described);
    let described = session.and_then(|session| describe(relation.function, &relation.plan, session).ok());
    described.map_or(columns, |described| described.fields)
}

fn of_table(function: &str, scan: &TableScan, session: &SessionState) -> Result<Described> {
    let table = source_as_provider(&scan.source)?;
    let fields: Vec<FieldRef> = scan.projected_schema.fields().iter().cloned().collect();
    let described = fields.iter().any(|field| Description::from_metadata(field.metadata()).is_some());
    if let Some(anonymized) = OpaqueTable::<AnonymizedTable>::relation(table.as_ref()) {
        return Ok(Described { fields, without_null: anonymized.without_null(), by_person: false });
    }
    // Several files can say several things, and the table only one of them.
    if described && !table.is::<ListingTable>() {
        return Ok(Described { fields, ..Described::default() });
    }
    let footers = footers_of(table.as_ref(), session)?;
    let Some((schema, complete)) = one_release(function, &footers)? else {
        return Ok(Described { fields, ..Described::default() });
    };
    // A column that directories are named by is in no file, but one of the release all the same.
    let partitions: Vec<String> = match table.downcast_ref::<ListingTable>() {
        Some(listing) => listing.options().table_partition_cols.iter().map(|(name, _)| name.clone()).collect(),
        None => Vec::new(),
    };
    let description = schema.fields().iter().find_map(|field| Description::from_metadata(field.metadata()));
    let with_metadata = |field: &FieldRef| -> FieldRef {
        if let Some(description) = description.as_ref().filter(|_| partitions.contains(field.name())) {
            let mut metadata = description.metadata();
            metadata.insert(Role::KEY.to_owned(), Role::Within.name().to_owned());
            return Arc::new(field.as_ref().clone().with_metadata(metadata));
        }
        match schema.field_with_name(field.name()) {
            Ok(released) => Arc::new(field.as_ref().clone().with_metadata(released.metadata().clone())),
            Err(_) => Arc::new(field.as_ref().clone().with_metadata(HashMap::new())),
        }
    };
    let fields = fields.iter().map(with_metadata).collect();
    Ok(Described { fields, without_null: complete, by_person: false })
}

/// Returns the description that all files share; `None` if they are not of a release.
fn one_release(function: &str, footers: &[Footer]) -> Result<Option<(Schema, BTreeSet<String>)>> {
    let of = |file: &Footer| {
        let fields = file.schema.fields().iter();
        fields.map(|field: &Arc<Field>| Description::from_metadata(field.metadata())).find(Option::is_some).flatten()
    };
    let Some(first) = footers.first() else { return Ok(None) };
    let release = |footer: &Footer| of(footer).map(|description| description.release_id);
    if footers.iter().any(|footer| release(footer) != release(first)) {
        return Err(refusal!(
            function,
            "the files of the table are of different releases, or not all of a release; an estimate is about one \
             release: name its files"
        ));
    }
    if release(first).is_none() {
        return Ok(None);
    }
    let complete = footers.iter().map(|file| file.complete.clone());
    let complete = complete.reduce(|a, b| a.intersection(&b).cloned().collect()).unwrap_or_default();
    Ok(Some((first.schema.clone(), complete)))
}
