//! Rewriting of statements of PostgreSQL's programs that the engine does not know.
//!
//! Most of it `datafusion-pg-catalog` has rewritten before. What is left are a few forms that are about things nobody has here:
//! constraints, indexes, sequences, collations. Where a program asks for them in the middle of a question about tables, the answer is NULL.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Value, VisitMut,
    VisitorMut, visit_expressions,
};

/// Tables of the catalog in which there is nothing about what is served.
const NOTHING: &str = "\
    pg_attrdef pg_collation pg_constraint pg_depend pg_description pg_index pg_inherits pg_policy pg_rewrite \
    pg_sequence pg_shdescription pg_trigger";

/// Their columns that are lists, which the engine has as texts; one of them by the name that the JDBC driver gives it.
const LISTS: [&str; 7] = ["indkey", "indclass", "indoption", "i_indoption", "conkey", "confkey", "polroles"];

/// Columns that tables of the catalog have in PostgreSQL and not here: privileges and settings of tables, of which there are none.
const MISSING: [&str; 2] = ["relacl", "reloptions"];

pub(super) fn rewritten(mut statement: Statement) -> Statement {
    let _ = statement.visit(&mut Rewriter);
    statement
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for (place, item) in select.projection.iter_mut().enumerate() {
            // What is replaced keeps its name: two columns must not have the same.
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(simpler) = simpler(expr)
            {
                let name = named(expr).unwrap_or_else(|| format!("column{}", place + 1));
                *item = SelectItem::ExprWithAlias { expr: simpler, alias: Ident::with_quote('"', name) };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(simpler) = simpler(expr) {
            *expr = simpler;
        }
        if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = expr
            && let Some(escape) = escape_char.take()
        {
            escaped(pattern, &escape.value);
        }
        ControlFlow::Continue(())
    }
}

/// Returns the value that an expression has here, if it is simpler than the expression.
fn simpler(expr: &Expr) -> Option<Expr> {
    match expr {
        // A scalar subquery that refers to the question around it must be an aggregate to the engine.
        Expr::Subquery(query) => of_subquery(query),
        Expr::Function(function) => of_function(function),
        Expr::CompoundIdentifier(_) => is_missing(expr).then(|| null_of(DataType::Text)),
        Expr::CompoundFieldAccess { root, access_chain } => match root.as_ref() {
            Expr::Nested(inner) => field(inner, access_chain),
            // `c.conkey[1]`: a place in a list.
            root if is_list_access(root, access_chain) => Some(null_of(DataType::Int(None))),
            _ => None,
        },
        _ => None,
    }
}

fn is_list_access(root: &Expr, access: &[AccessExpr]) -> bool {
    let by_dots = access.iter().filter_map(|access| match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name),
        _ => None,
    });
    let list = |name: &Ident| LISTS.contains(&name.value.to_ascii_lowercase().as_str());
    matches!(access.last(), Some(AccessExpr::Subscript(_)))
        && (column(root).is_some_and(list) || by_dots.into_iter().any(list))
}

/// Returns the name of a column, without that of its table.
fn column(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// Rewrites `(a).b`, as PostgreSQL wants the fields of a record to be asked for.
fn field(inner: &Expr, access: &[AccessExpr]) -> Option<Expr> {
    let mut parts = match inner {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(parts) => parts.clone(),
        // `(information_schema._pg_expandarray(i.indkey)).n`, of the columns of an index.
        Expr::Function(function) if last(&function.name) == EXPANDED => return Some(null_of(DataType::Int(None))),
        _ => return None,
    };
    // And the same of a column that the JDBC driver makes of it.
    if parts.last().is_some_and(|name| name.value.eq_ignore_ascii_case("keys")) {
        return Some(null_of(DataType::Int(None)));
    }
    for access in access {
        match access {
            AccessExpr::Dot(Expr::Identifier(name)) => parts.push(name.clone()),
            _ => return None,
        }
    }
    Some(Expr::CompoundIdentifier(parts))
}

/// Places and values of a list, in the functions of PostgreSQL's own schema of information.
const EXPANDED: &str = "_pg_expandarray";

fn is_missing(expr: &Expr) -> bool {
    match expr {
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|column| MISSING.contains(&column.value.as_str())),
        Expr::Function(Function { name, args: FunctionArguments::Subquery(_), .. }) => last(name) == "array",
        _ => false,
    }
}

/// Returns true if some of the arguments, or what is in them, is missing here.
fn lacks(list: &FunctionArgumentList) -> bool {
    let found = visit_expressions(&list.args, |expr| match is_missing(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Returns the name that PostgreSQL gives to a column of this expression.
fn named(expr: &Expr) -> Option<String> {
    match expr {
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.clone()),
        Expr::Function(function) => Some(last(&function.name)),
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(AccessExpr::Dot(Expr::Identifier(name))) => Some(name.value.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).with_empty_span())
}

fn null_of(data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(null()), data_type, array: false, format: None }
}

/// Returns the last part of a name, in lower case.
fn last(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map(|last| last.value.to_ascii_lowercase()).unwrap_or_default()
}

/// Returns the value of a scalar subquery on the catalog.
fn of_subquery(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Some(TableFactor::Table { name, args: None, .. }) = select.from.first().map(|from| &from.relation) else {
        return None;
    };
    let table = last(name);
    if NOTHING.split(' ').any(|empty| empty == table) {
        return Some(null());
    }
    let [SelectItem::UnnamedExpr(column)] = select.projection.as_slice() else { return None };
    match (table.as_str(), column, &select.selection) {
        // `'array_in'::regproc`, as it was rewritten: functions are known by their names here, and not by numbers.
        ("pg_proc", Expr::Identifier(column), Some(Expr::BinaryOp { left, op: BinaryOperator::Eq, right }))
            if column.value == "oid" && matches!(left.as_ref(), Expr::Identifier(name) if name.value == "proname") =>
        {
            name_of(right)
        }
        // Whether a type is that of a table's rows.
        ("pg_class", Expr::BinaryOp { op: BinaryOperator::Eq, .. }, _) => {
            Some(Expr::Value(Value::Boolean(false).with_empty_span()))
        }
        _ => None,
    }
}

fn of_function(function: &Function) -> Option<Expr> {
    let name = last(&function.name);
    match (&function.args, name.as_str()) {
        // `array(SELECT ..)` of roles and privileges.
        (FunctionArguments::Subquery(_), "array") => Some(null_of(DataType::Text)),
        (FunctionArguments::List(list), "unnest") if is_list(list) => Some(null_of(DataType::Int(None))),
        (FunctionArguments::List(list), "array_to_string") if lacks(list) => Some(null_of(DataType::Text)),
        (FunctionArguments::List(_), EXPANDED) => Some(null_of(DataType::Int(None))),
        (FunctionArguments::List(_), "generate_subscripts") => Some(null_of(DataType::Int(None))),
        _ => None,
    }
}

fn is_list(list: &FunctionArgumentList) -> bool {
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else { return false };
    column(argument).is_some_and(|column| LISTS.contains(&column.value.to_ascii_lowercase().as_str()))
}

/// Returns the name in a text, without its schema.
fn name_of(inner: &Expr) -> Option<Expr> {
    let Expr::Value(value) = inner else { return None };
    let name = value.value.clone().into_string()?;
    Some(text(name.rsplit('.').next().unwrap_or_default()))
}

/// Rewrites escapes: the engine's patterns are escaped by a backslash and by nothing else.
fn escaped(pattern: &mut Expr, escape: &Value) {
    let Some(escape) = escape.clone().into_string().filter(|escape| escape != "\\") else { return };
    // Backslashes stand for themselves then.
    let plain = replaced(std::mem::replace(pattern, null()), "\\", "\\\\");
    *pattern = if escape.is_empty() { plain } else { replaced(plain, &escape, "\\") };
}

/// Returns the call `replace(value, from, to)`.
fn replaced(value: Expr, from: &str, to: &str) -> Expr {
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("replace")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument(value), argument(text(from)), argument(text(to))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn of(sql: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).expect("SQL");
        rewritten(statements.remove(0)).to_string()
    }

    #[test]
    fn forms() {
        for (sql, expected) in [
            (
                "SELECT a = (SELECT oid FROM pg_catalog.pg_proc WHERE proname = 'pg_catalog.array_in') FROM t",
                "SELECT a = 'array_in' FROM t",
            ),
            ("SELECT c.reloptions FROM c", "SELECT CAST(NULL AS TEXT) AS \"reloptions\" FROM c"),
            ("SELECT 1 WHERE (SELECT c.relkind = 'c' FROM pg_class c WHERE c.a = t.b)", "SELECT 1 WHERE false"),
            (
                "SELECT a FROM t WHERE a LIKE $1 ESCAPE '/'",
                r"SELECT a FROM t WHERE a LIKE replace(replace($1, '\', '\\'), '/', '\')",
            ),
            ("SELECT a LIKE b ESCAPE '' FROM t", r"SELECT a LIKE replace(b, '\', '\\') FROM t"),
            (
                "SELECT a.b = (r.KEYS).x, array_to_string(c.reloptions || array(SELECT 1), ',') FROM c",
                "SELECT a.b = CAST(NULL AS INT), CAST(NULL AS TEXT) AS \"array_to_string\" FROM c",
            ),
            (
                "SELECT (information_schema._pg_expandarray(i.indkey)).n AS a FROM i",
                "SELECT CAST(NULL AS INT) AS a FROM i",
            ),
            ("SELECT c.conkey[p.n] = 1 FROM c", "SELECT CAST(NULL AS INT) = 1 FROM c"),
            ("SELECT a.ages[1] FROM a", "SELECT a.ages[1] FROM a"),
            ("SELECT 1 + (age).lo FROM release(clinic)", "SELECT 1 + age.lo FROM release(clinic)"),
            ("SELECT (r.age).lo FROM release(clinic) AS r", "SELECT r.age.lo AS \"lo\" FROM release(clinic) AS r"),
            ("SELECT array(SELECT 1)", "SELECT CAST(NULL AS TEXT) AS \"array\""),
            ("SELECT unnest(pg_index.indkey) FROM pg_index", "SELECT CAST(NULL AS INT) AS \"unnest\" FROM pg_index"),
            ("SELECT (SELECT c.a FROM pg_catalog.pg_collation AS c) FROM t", "SELECT NULL AS \"column1\" FROM t"),
            ("SELECT unnest(a), (SELECT max(b) FROM s) FROM t", "SELECT unnest(a), (SELECT max(b) FROM s) FROM t"),
        ] {
            assert_eq!(of(sql), expected);
        }
    }
}
