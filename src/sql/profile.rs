//! `profile(rel, ..)`: what a table is like before it is anonymized.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};

use super::arguments::Arguments;
use super::computed::computed;
use super::input::Input;
use super::options::AnonymizeOptions;
use super::signature::{FunctionSignature, Parameter};
use crate::error::refusal;
use crate::exec::{Profile, ProfiledColumn};
use crate::microdata::Role;

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "profile",
    about: "a table before it is anonymized: who is singled out, suggested roles, the largest m",
    refused: &[],
    parameters: &[Parameter::INPUT, Parameter::ID, Parameter::QUASI, Parameter::SENSITIVE],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let function = SIGNATURE.name;
    let input = Input { function, argument: "the input", plan: arguments.relation("input")? };
    let mut given: Vec<(String, Role)> = Vec::new();
    for (parameter, role) in [("id", Role::Id), ("quasi", Role::Quasi), ("sensitive", Role::Sensitive)] {
        for name in arguments.columns(parameter).unwrap_or_default() {
            input.column(name)?.publish(function)?;
            if given.iter().any(|(other, _)| other == name) {
                return Err(refusal!(function, "column {name} has two roles; leave one out"));
            }
            given.push((name.clone(), role));
        }
    }
    let mut columns = Vec::new();
    let mut chosen = Vec::new();
    for (qualifier, field) in input.plan.schema().iter() {
        let role = given.iter().find(|(name, _)| name == field.name()).map(|&(_, role)| role);
        columns.push(ProfiledColumn { field: Arc::clone(field), role });
        chosen.push(Expr::Column((qualifier, field).into()));
    }
    let input = LogicalPlanBuilder::from(input.plan).project(chosen)?.build()?;
    let computation = Arc::new(Profile { columns });
    Ok(computed(computation, vec![input]))
}
