//! Check that a relation is the same table whenever it is read: a release is of one table, and a query may read it several times.

use std::borrow::Cow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::utils::quote_identifier;
use datafusion::common::{Dependency, Result};
use datafusion::logical_expr::logical_plan::{Distinct, FetchType, Limit, SkipType};
use datafusion::logical_expr::{Expr, LogicalPlan, Sort, SortExpr};

use crate::error::refusal;
use crate::microdata::Role;

/// Refuses functions that return something else every time. `subject` names the relation in errors, such as "argument input".
/// Fails when there is one.
pub(super) fn check_volatile(function: &str, subject: &str, plan: &LogicalPlan) -> Result<()> {
    let mut volatile = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            volatile |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match volatile {
        true => Err(refusal!(
            function,
            "{subject} contains a volatile function such as random(); used twice in a query, it would be two different tables and so \
             two releases that contradict each other: CREATE TABLE .. AS that query first"
        )),
        false => Ok(()),
    }
}

/// Refuses choices of rows that an order does not settle. `unique` are columns that no two rows share a value of.
/// Fails with a LIMIT or a DISTINCT ON that can choose.
pub(super) fn check_choices(function: &str, subject: &str, plan: &LogicalPlan, unique: &[String]) -> Result<()> {
    let unique = &renamed(plan, unique)?;
    plan.apply(|node| {
        let choice = match node {
            LogicalPlan::Limit(limit) if limits(limit)? && !is_settled(&limit.input, unique) => Some("LIMIT"),
            LogicalPlan::Distinct(Distinct::On(on))
                if !on.sort_expr.as_deref().is_some_and(|keys| settle(keys, &on.input, unique, &on.on_expr)) =>
            {
                Some("DISTINCT ON")
            }
            _ => None,
        };
        if let Some(choice) = choice {
            let example = unique.first().map_or(Cow::Borrowed("age, patient_id"), |name| quote_identifier(name));
            return Err(refusal!(
                function,
                "{subject} contains a {choice} without an ORDER BY that leaves no choice, so it is another table whenever it is read; \
                 order by all columns, or, for a LIMIT, by the identifier, for example ORDER BY {example}"
            ));
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    // Whether there is a row does not depend on which of them is taken.
                    Expr::Exists(exists) => check_choices(function, subject, below_limit(&exists.subquery.subquery), unique)?,
                    Expr::InSubquery(subquery) => check_choices(function, subject, &subquery.subquery.subquery, unique)?,
                    Expr::ScalarSubquery(subquery) => check_choices(function, subject, &subquery.subquery, unique)?,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Returns the names that columns have before projections rename them.
fn renamed(plan: &LogicalPlan, names: &[String]) -> Result<Vec<String>> {
    let mut names = names.to_vec();
    plan.apply(|node| {
        if let LogicalPlan::Projection(projection) = node {
            for (expr, field) in projection.expr.iter().zip(projection.schema.fields()) {
                if names.contains(field.name())
                    && let Some(column) = column_of(expr)
                {
                    names.push(column.to_owned());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

/// Returns the column that an expression is, under another name or of another type.
fn column_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Alias(alias) => column_of(&alias.expr),
        Expr::Cast(cast) => column_of(&cast.expr),
        _ => None,
    }
}

fn below_limit(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Limit(limit) => &limit.input,
        plan => plan,
    }
}

/// Returns true if a LIMIT leaves some rows out, and takes others.
fn limits(limit: &Limit) -> Result<bool> {
    let (FetchType::Literal(fetch), SkipType::Literal(skip)) = (limit.get_fetch_type()?, limit.get_skip_type()?) else {
        return Ok(true);
    };
    Ok(match (fetch, skip) {
        (Some(0), _) | (None, 0) => false,
        (Some(fetch), 0) => limit.input.max_rows().is_none_or(|most| most > fetch),
        _ => true,
    })
}

/// Returns true if a plan's rows are in an order that leaves no choice.
fn is_settled(plan: &LogicalPlan, unique: &[String]) -> bool {
    match plan {
        LogicalPlan::Sort(Sort { expr, input, .. }) => settle(expr, input, unique, &[]),
        LogicalPlan::Projection(projection) => is_settled(&projection.input, unique),
        LogicalPlan::SubqueryAlias(alias) => is_settled(&alias.input, unique),
        // Of rows in an order, the first ones are in that order.
        LogicalPlan::Limit(limit) => is_settled(&limit.input, unique),
        _ => false,
    }
}

/// Returns true if rows that are equal in all keys are equal altogether. `unique` are columns that no two rows
/// share a value of, but for those of `on`: of rows that share these values one is chosen.
fn settle(keys: &[SortExpr], input: &LogicalPlan, unique: &[String], on: &[Expr]) -> bool {
    let schema = input.schema();
    let places: Vec<usize> = keys
        .iter()
        .filter_map(|key| match &key.expr {
            Expr::Column(column) => schema.maybe_index_of_column(column),
            _ => None,
        })
        .collect();
    let fields = schema.fields();
    let is_unique = |place: &usize| {
        let field = &fields[*place];
        let role = field.metadata().get(Role::KEY).and_then(|role| Role::parse(role));
        let chosen = on.iter().any(|expr| column_of(expr) == Some(field.name()));
        !chosen && (unique.contains(field.name()) || role == Some(Role::Id))
    };
    let determined = schema.functional_dependencies().iter().any(|dependence| {
        dependence.mode == Dependency::Single
            && !dependence.nullable
            && dependence.source_indices.iter().all(|source| places.contains(source))
            && (0..fields.len()).all(|place| dependence.target_indices.contains(&place))
    });
    places.iter().any(is_unique) || determined || (0..fields.len()).all(|place| places.contains(&place))
}
