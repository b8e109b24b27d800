//! Reads which releases the tables of a relation are of.

use datafusion::catalog::TableProvider;
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};

use super::{Followed, ids};
use crate::release::{COUNTERFEIT_MARK, FOLLOWS, OWN, PARTNERS, SIGNATURE};
use crate::sql::anonymized_table::AnonymizedTable;
use crate::sql::footers::{Footer, footers_of};
use crate::sql::opaque::OpaqueTable;

impl Followed {
    /// Reads which releases the tables of a relation are of. `id` is the identifier, and `session` finds what files say of themselves.
    /// Fails when a table cannot be read.
    pub(in crate::sql) fn by(plan: &LogicalPlan, id: Option<&str>, session: Option<&SessionState>) -> Result<Self> {
        let mut found = Self { unknown: !keeps_everybody(plan, id), ..Self::default() };
        if let LogicalPlan::TableScan(scan) = plan {
            match source_as_provider(&scan.source) {
                Ok(table) => match table.get_logical_plan() {
                    Some(view) => found.add(Self::by(view.as_ref(), id, session)?),
                    None => found.add_table(table.as_ref(), session)?,
                },
                Err(_) => found.unknown = true,
            }
        }
        for input in plan.inputs() {
            found.add(Self::by(input, below(plan, input, id), session)?);
        }
        Ok(found)
    }

    fn add_table(&mut self, table: &dyn TableProvider, session: Option<&SessionState>) -> Result<()> {
        let schema = table.schema();
        if OpaqueTable::<AnonymizedTable>::relation(table).is_some() {
            // Its id is another one in every query, though its rows are the same.
            self.earlier.extend(ids(&schema, FOLLOWS));
            return Ok(());
        }
        // Files can be of several releases, and the table then says nothing.
        let files = match session.filter(|_| table.is::<ListingTable>()) {
            Some(session) => footers_of(table, session)?,
            None => Vec::new(),
        };
        match files.is_empty() {
            true => self.add_schema(&schema),
            false => files.iter().for_each(|file| self.add_file(file)),
        }
        Ok(())
    }

    fn add_file(&mut self, file: &Footer) {
        self.add_schema(&file.schema);
        if file.lacks_people {
            self.partial.extend(ids(&file.schema, OWN));
        }
    }
}

/// Returns true if everybody in the inputs of a node is in its rows.
pub(in crate::sql) fn keeps_everybody(plan: &LogicalPlan, id: Option<&str>) -> bool {
    let is_id = |expr: &Expr| matches!(expr, Expr::Column(column) if Some(column.name.as_str()) == id);
    match plan {
        LogicalPlan::Projection(projection) => {
            let names = projection.schema.fields().iter().map(|field| field.name().as_str());
            let mut identifiers = projection.expr.iter().zip(names).filter(|(_, name)| Some(*name) == id);
            identifiers.all(|(expr, _)| is_column(expr))
        }
        LogicalPlan::TableScan(scan) => {
            scan.fetch.is_none() && scan.filters.iter().all(|filter| is_of_people(filter, id))
        }
        LogicalPlan::Filter(filter) => {
            split_conjunction(&filter.predicate).into_iter().all(|part| is_of_people(part, id))
        }
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Distinct(Distinct::On(distinct)) => distinct.on_expr.iter().any(is_id),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().any(is_id),
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => true,
        _ => false,
    }
}

/// Returns true for a column, whatever its new name and type.
fn is_column(expr: &Expr) -> bool {
    name_of(expr).is_some()
}

/// Returns the name that a column had before it got another one, or another type.
fn name_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Alias(alias) => name_of(&alias.expr),
        Expr::Cast(cast) => name_of(&cast.expr),
        Expr::Column(column) => Some(&column.name),
        _ => None,
    }
}

/// Returns the name that the identifier has in an input of a node.
fn below<'a>(plan: &'a LogicalPlan, input: &'a LogicalPlan, id: Option<&'a str>) -> Option<&'a str> {
    let place = plan.schema().fields().iter().position(|field| Some(field.name().as_str()) == id);
    let name = match (plan, place) {
        (LogicalPlan::Projection(projection), Some(place)) => projection.expr.get(place).and_then(name_of),
        (LogicalPlan::Union(_), Some(place)) => input.schema().fields().get(place).map(|field| field.name().as_str()),
        _ => None,
    };
    name.or(id)
}

/// Returns true for a condition that leaves out only rows of nobody, as counterfeits are.
fn is_of_people(condition: &Expr, id: Option<&str>) -> bool {
    let is =
        |expr: &Expr, names: &[&str]| matches!(expr, Expr::Column(column) if names.contains(&column.name.as_str()));
    match condition {
        Expr::IsNotNull(expr) => is(expr, &[id.unwrap_or(SIGNATURE), SIGNATURE, PARTNERS]),
        Expr::Not(expr) | Expr::IsFalse(expr) | Expr::IsNotTrue(expr) => is(expr, &[COUNTERFEIT_MARK]),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            is(left, &[COUNTERFEIT_MARK])
                && matches!(right.as_ref(), Expr::Literal(ScalarValue::Boolean(Some(false)), _))
        }
        _ => false,
    }
}
