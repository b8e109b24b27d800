//! Calls as SQL syntax, where a relation planner sees them.

use datafusion::common::{DFSchema, Result, ScalarValue, TableReference, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, TableFactor,
    TableFunctionArgs, Value,
};

use super::arguments::Scope;
use super::composite::COMPOSITE;
use super::options::{AnonymizeOptions, names_together, split_names};
use super::session_tables;
use crate::error::refusal;

pub(super) struct Call {
    pub args: Vec<FunctionArg>,
    pub alias: Option<ast::TableAlias>,
}

impl Call {
    /// Returns the name of the called function, if a table factor is a call. It knows all syntactic forms.
    pub(super) fn name_in(relation: &TableFactor) -> Option<&ObjectName> {
        match relation {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => Some(name),
            TableFactor::TableFunction { expr: ast::Expr::Function(function), .. } => Some(&function.name),
            _ => None,
        }
    }

    /// Returns the call in a table factor that [`name_in`](Self::name_in) found one in.
    pub(super) fn try_new(relation: TableFactor) -> Result<Self> {
        match relation {
            TableFactor::Table { alias, args: Some(args), sample: None, with_ordinality: false, .. } => {
                Ok(Self { args: args.args, alias })
            }
            TableFactor::Function { args, alias, with_ordinality: false, .. } => Ok(Self { args, alias }),
            TableFactor::TableFunction {
                expr: ast::Expr::Function(ast::Function { args: FunctionArguments::List(list), .. }),
                alias,
            } => Ok(Self { args: list.args, alias }),
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => Err(refusal!(
                name.to_string(),
                "TABLESAMPLE and WITH ORDINALITY are not supported on a release; put the call in a subquery"
            )),
            _ => plan_err!("a call without a list of arguments"),
        }
    }

    /// Returns the arguments with their names, as far as they have names.
    pub(super) fn arguments(
        &self,
        function: &str,
        context: &dyn RelationPlannerContext,
    ) -> Result<Vec<(Option<String>, ast::Expr)>> {
        let expression = |arg: &FunctionArgExpr| match arg {
            FunctionArgExpr::Expr(expr) => Ok(expr.clone()),
            _ => Err(refusal!(function, "* is not an argument; pass a table name or a query in parentheses")),
        };
        self.args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Named { name, arg, .. } => {
                    Ok((Some(context.normalize_ident(name.clone())), expression(arg)?))
                }
                FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg, .. } => {
                    Ok((Some(context.normalize_ident(name.clone())), expression(arg)?))
                }
                FunctionArg::ExprNamed { .. } => {
                    Err(refusal!(function, "the name of an argument must be a plain name"))
                }
                FunctionArg::Unnamed(arg) => match expression(arg)? {
                    // `k = 10` is a comparison to the parser.
                    ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Eq, right }
                        if matches!(*left, ast::Expr::Identifier(_)) =>
                    {
                        Err(refusal!(function, "write {left} => {right} instead of {left} = {right}"))
                    }
                    expr => Ok((None, expr)),
                },
            })
            .collect()
    }
}

pub(super) struct SqlScope<'a> {
    pub context: &'a mut dyn RelationPlannerContext,
}

impl SqlScope<'_> {
    /// Returns a table, view or CTE. CTEs and tables of the same FROM clause are known to the planner; others to the catalogs.
    fn named(&mut self, name: ObjectName) -> Result<LogicalPlan> {
        if let Ok(plan) = self.context.plan(table_factor(name.clone(), None)) {
            return Ok(plan);
        }
        let reference = self.context.object_name_to_table_reference(name)?;
        self.scan(reference)
    }

    fn scan(&self, reference: TableReference) -> Result<LogicalPlan> {
        let table = session_tables::table(&self.session()?, &reference)?;
        LogicalPlanBuilder::scan(reference, provider_as_source(table), None)?.build()
    }
}

impl Scope for SqlScope<'_> {
    type Raw = ast::Expr;

    fn relation(&mut self, raw: &ast::Expr) -> Result<LogicalPlan> {
        if let Some(query) = values(raw) {
            return self.context.plan(derived(query));
        }
        match raw {
            ast::Expr::Identifier(name) => self.named(ObjectName(vec![ObjectNamePart::Identifier(name.clone())])),
            ast::Expr::CompoundIdentifier(parts) => {
                self.named(ObjectName(parts.iter().cloned().map(ObjectNamePart::Identifier).collect()))
            }
            ast::Expr::Subquery(query) => self.context.plan(derived(query.clone())),
            ast::Expr::Nested(inner) => self.relation(inner),
            // A name in quotes: first as FROM 'file.parquet' would take it, then by its parts.
            ast::Expr::Value(value) => match value.value.clone().into_string() {
                Some(text) => {
                    let quoted = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('\'', text.clone()))]);
                    match self.named(quoted) {
                        Ok(plan) => Ok(plan),
                        Err(error) => self.scan(TableReference::parse_str(&text)).map_err(|_| error),
                    }
                }
                None => plan_err!("expected a table name or a query in parentheses"),
            },
            ast::Expr::Function(function) => match &function.args {
                // TABLE(t) names a table in standard SQL; anything else is a nested call.
                FunctionArguments::List(list) if function.name.to_string().eq_ignore_ascii_case("table") => {
                    match list.args.as_slice() {
                        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => self.relation(expr),
                        _ => plan_err!("expected one table name in TABLE(..)"),
                    }
                }
                FunctionArguments::List(list) => {
                    self.context.plan(table_factor(function.name.clone(), Some(list.args.clone())))
                }
                _ => plan_err!("expected a table name or a query in parentheses"),
            },
            _ => plan_err!("expected a table name or a query in parentheses"),
        }
    }

    fn items(&self, raw: &ast::Expr) -> Option<Vec<ast::Expr>> {
        match raw {
            ast::Expr::Tuple(_) if values(raw).is_some() => None,
            ast::Expr::Tuple(exprs) => Some(exprs.clone()),
            ast::Expr::Array(array) => Some(array.elem.clone()),
            _ => None,
        }
    }

    fn columns(&self, raw: &ast::Expr) -> Option<Vec<String>> {
        let name = |expr: &ast::Expr| match expr {
            ast::Expr::Identifier(name) => Some(vec![self.context.normalize_ident(name.clone())]),
            ast::Expr::CompoundIdentifier(parts) => {
                parts.last().map(|name| vec![self.context.normalize_ident(name.clone())])
            }
            ast::Expr::Value(value) => value.value.clone().into_string().map(|text| split_names(&text)),
            _ => None,
        };
        let list = |exprs: &[ast::Expr]| -> Option<Vec<String>> {
            Some(exprs.iter().map(name).collect::<Option<Vec<_>>>()?.concat())
        };
        match raw {
            ast::Expr::Tuple(exprs) => list(exprs),
            ast::Expr::Array(array) => list(&array.elem),
            ast::Expr::Nested(inner) => self.columns(inner),
            other => name(other),
        }
    }

    fn together(&self, raw: &ast::Expr) -> Option<Vec<String>> {
        match raw {
            ast::Expr::Nested(inner) => self.together(inner),
            ast::Expr::Value(value) => names_together(&value.value.clone().into_string()?),
            ast::Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case(COMPOSITE) => {
                let FunctionArguments::List(list) = &function.args else { return None };
                let name = |arg: &FunctionArg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.columns(expr),
                    _ => None,
                };
                Some(list.args.iter().map(name).collect::<Option<Vec<_>>>()?.concat())
            }
            _ => None,
        }
    }

    fn constant(&mut self, raw: &ast::Expr) -> Result<ScalarValue> {
        if let ast::Expr::Value(ast::ValueWithSpan { value: Value::Placeholder(_), .. }) = raw {
            return plan_err!(
                "query parameters are not supported here, because they are not known when the call is planned"
            );
        }
        let expr = self.context.sql_to_expr(raw.clone(), &DFSchema::empty())?;
        constant(expr)
    }

    fn session(&self) -> Result<SessionState> {
        session_tables::session(self.context.context_provider())
    }

    fn options(&self) -> AnonymizeOptions {
        let options = self.context.context_provider().options();
        options.extensions.get::<AnonymizeOptions>().cloned().unwrap_or_default()
    }
}

pub(super) fn constant(expr: Expr) -> Result<ScalarValue> {
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let schema = DFSchema::empty();
    match simplifier.simplify(simplifier.coerce(expr, &schema)?)? {
        Expr::Literal(value, _) => Ok(value),
        _ => plan_err!("not a constant"),
    }
}

/// Returns the query of `(VALUES (1, 'a'), (2, 'b'))`. Where the parser expects an expression, it takes that for a call of a function and more
/// rows.
fn values(raw: &ast::Expr) -> Option<Box<ast::Query>> {
    let rows = match raw {
        ast::Expr::Tuple(rows) => rows.as_slice(),
        ast::Expr::Nested(row) => std::slice::from_ref(row.as_ref()),
        _ => return None,
    };
    let (ast::Expr::Function(first), others) = rows.split_first()? else { return None };
    let [ObjectNamePart::Identifier(Ident { value, quote_style: None, .. })] = first.name.0.as_slice() else {
        return None;
    };
    let FunctionArguments::List(list) = &first.args else { return None };
    let item = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let row = |expr: &ast::Expr| match expr {
        ast::Expr::Tuple(items) => Some(items.clone()),
        ast::Expr::Nested(item) => Some(vec![item.as_ref().clone()]),
        _ => None,
    };
    let first = list.args.iter().map(item).collect::<Option<Vec<_>>>();
    let rows = std::iter::once(first).chain(others.iter().map(row)).collect::<Option<Vec<_>>>()?;
    let rows = rows.into_iter().map(ast::Parens::with_empty_span).collect();
    let values = ast::Values { explicit_row: false, value_keyword: false, rows };
    value.eq_ignore_ascii_case("values").then(|| {
        Box::new(ast::Query {
            with: None,
            body: Box::new(ast::SetExpr::Values(values)),
            order_by: None,
            limit_clause: None,
            fetch: None,
            locks: Vec::new(),
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators: Vec::new(),
        })
    })
}

fn derived(subquery: Box<ast::Query>) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery, alias: None, sample: None }
}

fn table_factor(name: ObjectName, args: Option<Vec<FunctionArg>>) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: args.map(|args| TableFunctionArgs { args, settings: None }),
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}
