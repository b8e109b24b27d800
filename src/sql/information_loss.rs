//! `information_loss(original, release, ..)`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, JoinType, Result};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

use super::arguments::Arguments;
use super::computed::Computed;
use super::hierarchy_checks::MadeWith;
use super::input::{Input, InputColumn, common_type};
use super::options::AnonymizeOptions;
use super::perturbed::is_perturbed;
use super::release_description::released_columns;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::exec::InformationLoss;
use crate::microdata::Role;
use crate::release::{GROUP_ID, HI, LO, NODE};

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "information_loss",
    about: "what a release loses, by attribute",
    refused: &[],
    parameters: &[
        Parameter::required("original", Kind::Relation, "patients").says("the table"),
        Parameter::required("release", Kind::Release, "'release.parquet'").says("a release of it"),
        Parameter::QUASI,
        Parameter::HIERARCHIES,
        Parameter::ID.otherwise("the release's").says("of perturbed releases: pairs published and original rows"),
    ],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let quasi = arguments.columns("quasi").map(<[String]>::to_vec);
    let original = Input { function, argument: "original", plan: arguments.relation("original")? };
    let release = Input { function, argument: "release", plan: arguments.relation("release")? };
    let columns = released_columns(&release, Some(arguments.session()?));
    let hierarchies = arguments.hierarchies(function)?;
    let attributes = match quasi {
        Some(names) => names,
        None => released_attributes(&columns)?,
    };
    let made_with = match (&hierarchies, arguments.session()) {
        (Some(plan), Ok(session)) => MadeWith::of(function, plan, [&release.plan], &attributes, session),
        _ => None,
    };
    if let Some(id) = paired_by(&arguments, &release, &columns, &attributes)? {
        return Ok(pairs(original, release, hierarchies, &attributes, &id)?.made_with(made_with).table());
    }
    let (mut originals, mut ends) = (Vec::new(), Vec::new());
    for name in &attributes {
        let mut column = original.column(name)?;
        let interval = release.column(name)?;
        column.publish(function)?;
        let mut end = release.column(name)?;
        if let Some(lo) = end_of(&interval.field, LO) {
            let nodes = end_of(&interval.field, NODE).is_some();
            if nodes && hierarchies.is_none() {
                return Err(refusal!(
                    function,
                    "the release was made with hierarchies; pass the same ones: hierarchies => .."
                ));
            }
            if !nodes && hierarchies.is_some() {
                return Err(refusal!(function, "the release was made without hierarchies; leave them out"));
            }
            end.field = lo;
        }
        let data_type = common_type(function, &mut column, &end, "release")?;
        let expr = Expr::Column(interval.column);
        for which in [LO, HI] {
            let end = if end_of(&interval.field, which).is_some() { expr.clone().field(which) } else { expr.clone() };
            ends.push(cast(end, data_type.clone()).alias(format!("{name}.{which}")));
        }
        originals.push(column);
    }
    let grouped = release.plan.schema().fields().iter().filter(|field| field.name() == GROUP_ID).count() == 1;
    if grouped && !attributes.iter().any(|name| name == GROUP_ID) {
        ends.push(Expr::Column(Column::from_name(GROUP_ID)));
    }
    let release = LogicalPlanBuilder::from(release.plan).project(ends)?.build()?;
    Ok(measured(original, originals, release, hierarchies, false)?.made_with(made_with).table())
}

/// Returns the identifier by which rows of a perturbed release are compared with the originals; `None` of other releases.
fn paired_by(
    arguments: &Arguments,
    release: &Input,
    columns: &[FieldRef],
    attributes: &[String],
) -> Result<Option<String>> {
    let function = SIGNATURE.name;
    let given = arguments.columns("id").map(<[String]>::concat);
    let fields = attributes.iter().map(|name| release.column(name).map(|column| column.field));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let intervals = fields.iter().any(|field| end_of(field, LO).is_some());
    if given.is_some() && intervals {
        return Err(refusal!(function, "the release has intervals, which need no id; leave it out"));
    }
    if given.is_some() || !is_perturbed(columns) {
        return Ok(given);
    }
    let is_id =
        |field: &&FieldRef| field.metadata().get(Role::KEY).and_then(|role| Role::parse(role)) == Some(Role::Id);
    match columns.iter().find(is_id) {
        Some(field) => Ok(Some(field.name().clone())),
        None => Err(refusal!(
            function,
            "the rows of this release look like rows, and only the publisher can tell which row was which: pass the private one \
             (private => true), and name its identifier if it does not say so: id => patient_id"
        )),
    }
}

/// Compares rows with the same identifier.
fn pairs(
    original: Input,
    release: Input,
    hierarchies: Option<LogicalPlan>,
    attributes: &[String],
    id: &str,
) -> Result<Computed> {
    let function = SIGNATURE.name;
    let (mut before, mut after, mut ends, mut originals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (place, name) in attributes.iter().map(String::as_str).chain([id]).enumerate() {
        let mut column = original.column(name)?;
        column.publish(function)?;
        let released = release.column(name)?;
        let data_type = common_type(function, &mut column, &released, "release")?;
        let names = [format!("before_{place}"), format!("after_{place}")];
        before.push(cast(Expr::Column(column.column.clone()), data_type.clone()).alias(&names[0]));
        after.push(cast(Expr::Column(released.column), data_type).alias(&names[1]));
        if place < attributes.len() {
            ends.extend(names.map(|name| Expr::Column(Column::from_name(name))));
            originals.push(column);
        }
    }
    let last = attributes.len();
    let after = LogicalPlanBuilder::from(release.plan).project(after)?.build()?;
    let on = (vec![format!("before_{last}")], vec![format!("after_{last}")]);
    let release = LogicalPlanBuilder::from(original.plan.clone())
        .project(before)?
        .join(after, JoinType::Inner, on, None)?
        .project(ends)?
        .build()?;
    measured(original, originals, release, hierarchies, true)
}

fn measured(
    original: Input,
    originals: Vec<InputColumn>,
    release: LogicalPlan,
    hierarchies: Option<LogicalPlan>,
    pairs: bool,
) -> Result<Computed> {
    let attributes = originals.iter().map(|column| Arc::clone(&column.field)).collect();
    let inputs = [original.project(originals)?, release].into_iter().chain(hierarchies).collect();
    Ok(Computed::new(Arc::new(InformationLoss { attributes, pairs }), inputs))
}

/// Returns the quasi-identifiers of a release: by their metadata, else all columns that are intervals.
fn released_attributes(columns: &[FieldRef]) -> Result<Vec<String>> {
    let declared =
        |field: &&FieldRef| field.metadata().get(Role::KEY).and_then(|role| Role::parse(role)) == Some(Role::Quasi);
    let interval = |field: &&FieldRef| end_of(field, LO).is_some() && end_of(field, HI).is_some();
    let names = |which: &dyn Fn(&&FieldRef) -> bool| -> Vec<String> {
        columns.iter().filter(|field| which(field)).map(|field| field.name().clone()).collect()
    };
    let attributes = names(&declared);
    let attributes = if attributes.is_empty() { names(&interval) } else { attributes };
    if attributes.is_empty() {
        return Err(refusal!(
            SIGNATURE.name,
            "release has no columns of intervals {{lo, hi}}; name the columns to compare, for example quasi => (age, zip)"
        ));
    }
    Ok(attributes)
}

pub(super) fn end_of(field: &FieldRef, name: &str) -> Option<FieldRef> {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().find(|field| field.name() == name).cloned(),
        _ => None,
    }
}
