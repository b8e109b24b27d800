//! Parameters of prepared statements: their types, and their values.

use std::collections::HashMap;

use arrow_pg::datatypes::{PG_OID_ALIAS_KEY, into_pg_type, pg_type_for_alias_kind};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use pgwire::api::Type;
use pgwire::api::portal::Portal;
use pgwire::error::PgWireResult;

#[derive(Debug, Clone)]
pub(super) struct Parameter {
    /// The engine's type, if the statement tells.
    inferred: Option<DataType>,
    /// Says what the reader's program is told.
    pub wire: Type,
}

/// Returns the parameters of a plan, from `$1` on; those that are not used are texts.
/// Fails when the statement wants a parameter to be of two types.
pub(super) fn parameters(plan: &LogicalPlan) -> Result<Vec<Parameter>> {
    let mut types = plan.get_parameter_types()?;
    let mut aliases: HashMap<String, Type> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                look(expr, &mut types, &mut aliases);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let number = |id: &str| id.trim_start_matches('$').parse::<u16>().ok();
    let most = types.keys().filter_map(|id| number(id)).max().unwrap_or(0);
    let parameter = |number| {
        let id = format!("${number}");
        let inferred = types.get(&id).cloned().flatten();
        let wire = match (aliases.get(&id), &inferred) {
            (Some(alias), _) => alias.clone(),
            (None, Some(inferred)) => into_pg_type(inferred).unwrap_or(Type::UNKNOWN),
            (None, None) => Type::UNKNOWN,
        };
        Parameter { inferred, wire }
    };
    Ok((1..=most).map(parameter).collect())
}

/// Returns what an expression tells of a parameter: `$1::int`, and columns of object identifiers, which drivers send as such.
fn look(expr: &Expr, types: &mut HashMap<String, Option<DataType>>, aliases: &mut HashMap<String, Type>) {
    match expr {
        Expr::Cast(cast) => {
            if let Expr::Placeholder(placeholder) = cast.expr.as_ref() {
                let known = types.entry(placeholder.id.clone()).or_default();
                known.get_or_insert_with(|| cast.field.data_type().clone());
            }
        }
        Expr::Placeholder(placeholder) => {
            types.entry(placeholder.id.clone()).or_default();
            if let Some(field) = placeholder.field.as_deref().filter(|field| field.data_type() == &DataType::Int32)
                && let Some(alias) =
                    field.metadata().get(PG_OID_ALIAS_KEY).and_then(|kind| pg_type_for_alias_kind(kind))
            {
                aliases.insert(placeholder.id.clone(), alias);
            }
        }
        _ => {}
    }
}

/// Returns the values that a portal has for the parameters.
/// Fails when one is not of its type.
pub(super) fn values<S: Clone>(portal: &Portal<S>, parameters: &[Parameter]) -> PgWireResult<ParamValues> {
    let inferred: Vec<Option<&DataType>> = parameters.iter().map(|parameter| parameter.inferred.as_ref()).collect();
    let wire: Vec<Option<&Type>> = parameters.iter().map(|parameter| Some(&parameter.wire)).collect();
    arrow_pg::datatypes::df::deserialize_parameters_with_server_types(portal, &inferred, &wire)
}
