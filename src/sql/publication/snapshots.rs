//! The relation function `check_snapshots(publication, (snapshot1, ..))`: what would be refused, before anything is published.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;

use super::release::PUBLICATION;
use super::table::{PublicationTable, Publisher};
use crate::error::refusal;
use crate::exec::SnapshotsCheck;
use crate::methods::{Foreseen, ValueChanges};
use crate::microdata::{field_of_parts, is_of_each};
use crate::publication::Changes;
use crate::sql::arguments::Arguments;
use crate::sql::computed::computed;
use crate::sql::input::{Input, InputColumn};
use crate::sql::options::AnonymizeOptions;
use crate::sql::signature::{FunctionSignature, Kind, Parameter};

const SNAPSHOTS: &str = "snapshots";

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "check_snapshots",
    about: "what a publication would refuse of historical snapshots; nothing is written",
    refused: &[],
    parameters: &[
        PUBLICATION,
        Parameter::required(SNAPSHOTS, Kind::Relations, "('first.parquet', 'second.parquet')")
            .says("historical snapshots in their order, as (s1, s2, ..)"),
        Parameter::PRIVATE.says("true lists the rows, with identifiers"),
    ],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let people = arguments.boolean("private");
    let plan = arguments.relation(PUBLICATION.name)?;
    let snapshots = arguments.relations(SNAPSHOTS);
    PublicationTable::with(&plan, SIGNATURE.name, |publication| match publication.publisher() {
        Some(publisher) => check(publisher, snapshots, people),
        None => Err(refusal!(
            SIGNATURE.name,
            "this publication is declared for reading; only its publisher can tell what would be refused"
        )),
    })
}

fn check(publisher: &Publisher, snapshots: Vec<LogicalPlan>, people: bool) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let spec = &publisher.publication.spec;
    if spec.repositioned.is_some() {
        return Err(refusal!(
            function,
            "the rows of a stream are put into snapshots by their times, so whole snapshots cannot be looked at; ask \
             reposition(..) what becomes of them"
        ));
    }
    let method = spec.method.as_method();
    let least = match method.foresees() {
        Foreseen::ByValues { least } => least,
        Foreseen::Nothing => {
            return Err(refusal!(
                function,
                "what {} takes depends on what was drawn for earlier releases, so it cannot be told beforehand; publish \
                 the snapshots at another LOCATION that nobody reads, and delete that",
                spec.method.name()
            ));
        }
        Foreseen::ByItself => {
            return Err(refusal!(
                function,
                "releases of {} do not know of each other, so each snapshot is taken or refused for itself: ask \
                 {}(..) of each",
                spec.method.name(),
                spec.method.name()
            ));
        }
    };
    let changes = match method.changes() {
        ValueChanges::Any => Changes::Any,
        ValueChanges::Never | ValueChanges::Listed { .. } => Changes::Listed,
        ValueChanges::Lawful { .. } => Changes::Law,
    };
    let (Some(id), Some(sensitive)) = (&spec.roles.id, &spec.roles.sensitive) else {
        return Err(refusal!(function, "the publication has no identifier or no sensitive column"));
    };
    let field = |name: &String| -> Result<FieldRef> { Ok(Arc::new(publisher.schema.field_with_name(name)?.clone())) };
    let parts: Vec<String> = publisher.parts.iter().map(|part| part.name().clone()).collect();
    let sensitive = match parts.is_empty() {
        true => field(sensitive)?,
        false => Arc::new(field_of_parts(&publisher.parts, publisher.several)),
    };
    let id = field(id)?;
    let is_of_each = is_of_each(&sensitive).map_err(|error| error.in_function(function))?;
    let mut inputs: Vec<LogicalPlan> = publisher.updates.iter().cloned().collect();
    for plan in snapshots {
        let mut snapshot = Input { function, argument: SNAPSHOTS, plan };
        if !parts.is_empty() {
            snapshot = snapshot.composed(&parts, sensitive.name())?;
        }
        let columns = [&id, &sensitive].map(|field| -> Result<InputColumn> {
            let mut column = snapshot.column(field.name())?;
            column.field = Arc::clone(field);
            Ok(column)
        });
        let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
        inputs.push(snapshot.project(columns)?);
    }
    let computation = SnapshotsCheck {
        id,
        sensitive,
        changes,
        updates: publisher.updates.is_some(),
        // Within parts, new people are counted part by part. Of several columns, it is each that must be eligible.
        m: least.filter(|_| spec.roles.within.is_none() && !is_of_each).map(|least| least as u64),
        people,
    };
    Ok(computed(Arc::new(computation), inputs))
}
