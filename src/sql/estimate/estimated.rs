//! `estimated(release, ..)`: the table that a release was made of, as far as aggregates over it can be told.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use futures::FutureExt;
use futures::future::ready;

use super::Source;
use super::release_integrity::intact;
use super::sources::refuse_publication;
use crate::error::refusal;
use crate::estimate::{Distribution, ESTIMATE, Released};
use crate::exec::PlanFuture;
use crate::sql::arguments::Arguments;
use crate::sql::choice::DISTRIBUTION;
use crate::sql::input::Input;
use crate::sql::opaque::{OpaqueTable, Relation, Wanted};
use crate::sql::options::AnonymizeOptions;
use crate::sql::release_description::{Described, describe};
use crate::sql::signature::{FunctionSignature, Kind, Parameter};

/// Declares the function.
pub(in crate::sql) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "estimated",
    about: "the table that a release was made of, as far as COUNT, SUM and AVG can be estimated",
    refused: &[],
    parameters: &[
        Parameter::required("release", Kind::Release, "'release.parquet'").says("a release: a call, a table, or files"),
        Parameter::HIERARCHIES,
        DISTRIBUTION
            .parameter()
            .says("how values lie in ranges: as the ends of all ranges do, and somebody at each end, or evenly"),
        Parameter::PRIOR,
    ],
};

/// Makes the table of a call.
pub(in crate::sql) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let (source, by_person) = source_of(function, &mut arguments)?;
    source.released.refuse_people(function, by_person)?;
    // The rule that uses them runs when everything else has its types.
    let session = arguments.session()?;
    let analyzed = |plan| session.analyzer().execute_and_check(plan, session.config_options(), |_, _| {});
    let release = analyzed(source.release)?;
    let hierarchies = source.hierarchies.map(analyzed).transpose()?;
    let prior = source.prior.map(analyzed).transpose()?;
    // One qualifier for all columns, whatever was renamed.
    let release = LogicalPlanBuilder::from(release).alias("release")?.build()?;
    let source = Source { release, hierarchies, prior, ..source };
    Ok(Arc::new(OpaqueTable(EstimatedTable::new(source))))
}

/// Reads the arguments of functions of estimates. It tells whether rows of the release were chosen by what only the publisher knows.
/// Fails when the release cannot be described, or an argument is malformed.
pub(super) fn source_of(function: &'static str, arguments: &mut Arguments) -> Result<(Source, bool)> {
    let release = arguments.relation("release")?;
    let distribution = DISTRIBUTION.of(arguments);
    let hierarchies = arguments.hierarchies(function)?;
    let prior = prior(function, arguments)?;
    refuse_publication(function, &release)?;
    let Described { fields, without_null, by_person } = describe(function, &release, arguments.session()?)?;
    let released = Released::try_new(function, &Schema::new(fields))?;
    let intact = intact(function, &release)?;
    Ok((Source { release, released, hierarchies, prior, without_null, distribution, intact }, by_person))
}

/// Returns the known distributions of attributes.
/// Fails when it lacks a column, or values are to be spread evenly all the same.
fn prior(function: &'static str, arguments: &mut Arguments) -> Result<Option<LogicalPlan>> {
    let Some(plan) = arguments.relation_if_given("prior") else { return Ok(None) };
    if DISTRIBUTION.of(arguments) == Distribution::Uniform {
        return Err(refusal!(
            function,
            argument "prior",
            "argument prior says how values are distributed, and distribution => 'uniform' that they lie evenly; leave out one of them"
        ));
    }
    Input { function, argument: "prior", plan }.prior().map(Some)
}

/// A table whose rows are not there.
pub(super) struct EstimatedTable {
    source: Arc<Source>,
    schema: SchemaRef,
}

impl EstimatedTable {
    fn new(source: Source) -> Self {
        Self { schema: Arc::new(source.released.schema()), source: Arc::new(source) }
    }

    pub(super) fn source(&self) -> &Arc<Source> {
        &self.source
    }
}

impl Relation for EstimatedTable {
    fn function(&self) -> &str {
        SIGNATURE.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plan<'a>(&'a self, _session: &'a dyn Session, _wanted: Wanted<'a>) -> PlanFuture<'a> {
        ready(Err(refusal!(ESTIMATE, "{ROWS}"))).boxed()
    }
}

/// Reason why rows cannot be read.
pub(super) const ROWS: &str = "the original rows are not in a release, so only aggregates over them can be estimated; \
                               ask for COUNT, SUM or AVG, for example SELECT disease, count(*) .. GROUP BY disease, or read the \
                               released rows themselves";
