//! Relation functions, and the two ways DataFusion can be made to see them.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{ObjectName, TableFactor};

use super::arguments::{Arguments, Scope};
use super::composite::COMPOSITE;
use super::options::{AnonymizeOptions, names_together, split_names};
use super::session_tables;
use super::signature::{FunctionSignature, suggestion};
use super::syntax::{Call, SqlScope, constant};

/// A function whose value is a relation.
#[derive(Debug, Clone, Copy)]
pub(super) struct RelationFunction {
    /// Returns the name and parameters.
    pub signature: &'static FunctionSignature<'static>,
    /// Makes the table that a call stands for. Reads no data, and fails for all that is wrong with the arguments as far as it can be known at
    /// planning time.
    pub table: fn(Arguments, &AnonymizeOptions) -> Result<Arc<dyn TableProvider>>,
}

/// Plans calls of relation functions in FROM clauses.
#[derive(Debug)]
pub(super) struct FunctionPlanner {
    pub functions: Vec<RelationFunction>,
}

impl RelationPlanner for FunctionPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        refuse_samples(&relation)?;
        let Some(name) = Call::name_in(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(function) = self.find(name, context) else {
            self.refuse_mistyped(&name.clone(), context)?;
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let call = Call::try_new(relation)?;
        let RelationFunction { signature, table } = *function;
        let arguments = call.arguments(signature.name, context)?;
        let mut scope = SqlScope { context };
        let arguments = Arguments::bind(signature, arguments, &mut scope)?;
        let table = table(arguments, &scope.options())?;
        let plan = LogicalPlanBuilder::scan(signature.name, provider_as_source(table), None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, call.alias))))
    }
}

/// Refuses TABLESAMPLE: DataFusion reads it and takes all rows, so everybody would be published instead of some.
fn refuse_samples(relation: &TableFactor) -> Result<()> {
    let (TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. }) = relation else {
        return Ok(());
    };
    plan_err!(
        "TABLESAMPLE is not supported, and DataFusion would take all rows without a word; choose rows by a condition, such as WHERE \
         patient_id % 10 = 0, or CREATE TABLE .. AS SELECT * FROM .. WHERE random() < 0.1 first"
    )
}

impl FunctionPlanner {
    /// # Errors
    /// When the session has no function of this name, but one of ours is called almost so.
    fn refuse_mistyped(&self, name: &ObjectName, context: &mut dyn RelationPlannerContext) -> Result<()> {
        let Ok(reference) = context.object_name_to_table_reference(name.clone()) else { return Ok(()) };
        let close = suggestion(reference.table(), self.functions.iter().map(|function| function.signature.name));
        if close.is_empty() || reference.schema().is_some() {
            return Ok(());
        }
        match (SqlScope { context }).session() {
            Ok(session) if !session.table_functions().contains_key(reference.table()) => {
                plan_err!("there is no function {}{close}", reference.table())
            }
            _ => Ok(()),
        }
    }

    /// Returns the function of this name, bare or in the session's default schema.
    fn find(&self, name: &ObjectName, context: &dyn RelationPlannerContext) -> Option<&RelationFunction> {
        let reference = context.object_name_to_table_reference(name.clone()).ok()?;
        let catalog = &context.context_provider().options().catalog;
        let here = reference.schema().is_none_or(|schema| schema == catalog.default_schema)
            && reference.catalog().is_none_or(|name| name == catalog.default_catalog);
        let mut functions = self.functions.iter();
        functions.find(|function| here && function.signature.name == reference.table())
    }
}

/// The same function as a plain table function, for engines without relation planners: positional arguments only, the table
/// as a name, lists of columns as `'age, zip'` or `['age', 'zip']`.
#[derive(Debug)]
pub(super) struct PlainFunction(pub RelationFunction);

impl TableFunctionImpl for PlainFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let options = args.session().config_options().extensions.get::<AnonymizeOptions>();
        let options = options.cloned().unwrap_or_default();
        let arguments = args.exprs().iter().map(|expr| (None, expr.clone())).collect();
        let mut scope = PlainScope { args: &args, options };
        let arguments = Arguments::bind(self.0.signature, arguments, &mut scope)?;
        (self.0.table)(arguments, &scope.options)
    }
}

struct PlainScope<'a, 'e, 's> {
    args: &'a TableFunctionArgs<'e, 's>,
    options: AnonymizeOptions,
}

impl Scope for PlainScope<'_, '_, '_> {
    type Raw = Expr;

    fn relation(&mut self, raw: &Expr) -> Result<LogicalPlan> {
        let reference = match raw {
            Expr::Column(column) => match &column.relation {
                Some(schema) => TableReference::parse_str(&format!("{schema}.{}", column.name)),
                None => TableReference::bare(column.name.clone()),
            },
            Expr::Literal(value, _) => match value.try_as_str().flatten() {
                Some(text) => TableReference::parse_str(text),
                None => return plan_err!("expected the name of a table"),
            },
            _ => return plan_err!("expected the name of a table"),
        };
        let table = session_tables::table(self.args.session(), &reference)?;
        LogicalPlanBuilder::scan(reference, provider_as_source(table), None)?.build()
    }

    fn items(&self, raw: &Expr) -> Option<Vec<Expr>> {
        match raw {
            Expr::ScalarFunction(function) => Some(function.args.clone()),
            _ => None,
        }
    }

    fn columns(&self, raw: &Expr) -> Option<Vec<String>> {
        match raw {
            Expr::Column(column) => Some(vec![column.name.clone()]),
            Expr::Literal(ScalarValue::List(list), _) => {
                let values = datafusion::common::utils::list_to_arrays::<i32>(&(Arc::clone(list) as _)).pop()?;
                (0..values.len())
                    .map(|i| ScalarValue::try_from_array(&values, i).ok()?.try_as_str().flatten().map(str::to_owned))
                    .collect()
            }
            Expr::Literal(value, _) => value.try_as_str().flatten().map(split_names),
            Expr::ScalarFunction(function) => {
                Some(function.args.iter().map(|arg| self.columns(arg)).collect::<Option<Vec<_>>>()?.concat())
            }
            _ => None,
        }
    }

    fn together(&self, raw: &Expr) -> Option<Vec<String>> {
        match raw {
            Expr::Literal(value, _) => value.try_as_str().flatten().and_then(names_together),
            Expr::ScalarFunction(function) if function.func.name() == COMPOSITE => {
                Some(function.args.iter().map(|arg| self.columns(arg)).collect::<Option<Vec<_>>>()?.concat())
            }
            _ => None,
        }
    }

    fn constant(&mut self, raw: &Expr) -> Result<ScalarValue> {
        constant(raw.clone())
    }

    fn session(&self) -> Result<SessionState> {
        session_tables::session_state(self.args.session()).cloned()
    }

    fn options(&self) -> AnonymizeOptions {
        self.options.clone()
    }
}
