//! `disclosure(release, original => .., p_match => ..)` of releases whose rows look like rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast, ident};

use super::computed::computed;
use super::input::{Input, common_type};
use crate::error::refusal;
use crate::exec::PerturbedComputation;
use crate::methods::AnyMethod;
use crate::release::{Description, Form};

/// Returns true if the columns of a relation say that it is such a release.
pub(super) fn is_perturbed(columns: &[FieldRef]) -> bool {
    let mut descriptions = columns.iter().filter_map(|field| Description::from_metadata(field.metadata()));
    let form = |description: Description| Some(AnyMethod::described(&description)?.form());
    descriptions.any(|description| form(description) == Some(Form::Perturbed))
}

/// Returns everybody of a private release, beside their originals. Roles are names of columns that all have.
pub(super) fn table(
    p_match: f64,
    original: Input,
    release: Input,
    (id, quasi, sensitive): (&str, &[String], &str),
) -> Result<Arc<dyn TableProvider>> {
    let function = original.function;
    if !release.has(id) {
        return Err(refusal!(
            function,
            "of rows that look like rows, only the publisher can tell whose they are: pass the private release \
             (private => true), which has the identifier column {id}"
        ));
    }
    let mut pairs = Vec::new();
    for name in [id, sensitive].into_iter().chain(quasi.iter().map(String::as_str)) {
        let mut column = original.column(name)?;
        column.publish(function)?;
        let theirs = release.column(name)?;
        common_type(function, &mut column, &theirs, release.argument)?;
        pairs.push((column, theirs));
    }
    let fields: Vec<_> = pairs.iter().map(|(column, _)| Arc::clone(&column.field)).collect();
    let (mut before, mut after, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (column, theirs)) in pairs.into_iter().enumerate() {
        let data_type = column.field.data_type();
        let names = [format!("before_{place}"), format!("after_{place}")];
        before.push(cast(Expr::Column(column.column), data_type.clone()).alias(&names[0]));
        after.push(cast(Expr::Column(theirs.column), data_type.clone()).alias(&names[1]));
        match place {
            0 => both.extend([ident(&names[1]), ident(&names[0]).is_not_null().alias("found")]),
            1 => both.push(ident(&names[1])),
            _ => both.extend(names.map(ident)),
        }
    }
    let before = LogicalPlanBuilder::from(original.plan).project(before)?.build()?;
    let rows = LogicalPlanBuilder::from(release.plan)
        .project(after)?
        .join(before, JoinType::Left, (vec!["after_0"], vec!["before_0"]), None)?
        .project(both)?
        .build()?;
    let mut fields = fields.into_iter();
    let (Some(id), Some(sensitive)) = (fields.next(), fields.next()) else {
        return Err(refusal!(function, "there is no identifier"));
    };
    let question = PerturbedComputation { p_match, id, sensitive, quasi: fields.collect() };
    Ok(computed(Arc::new(question), vec![rows]))
}
