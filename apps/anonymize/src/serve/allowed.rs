//! List of the statements that a reader may say, and of their parts. Whatever is not on it is refused.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CloseCursor, ContextModifier, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, ObjectName, Query, Reset, ResetStatement, Select, Set, SetExpr, Statement, TableFactor, Value,
    ValueWithSpan, Visit, Visitor, visit_expressions,
};

use super::closed::Closed;
use super::errors::Failure;

/// Tables that a statement may name: each of them makes a plan deeper, and joins of many take long to plan.
const MOST_TABLES: usize = 100;

/// The same once every common table expression is in the places that name it: where each names the one before twice, there are millions.
const MOST_TABLES_IN_PLACE: f64 = 1_000.0;

/// Functions that make much of little, outside of what the memory pool counts.
const AMPLIFYING: &str =
    "array_repeat array_resize generate_series list_repeat list_resize lpad range regexp_replace repeat rpad";

/// Greatest number of doublings in a statement: values of two others, or texts in texts. Values of values can double each time.
const DOUBLINGS: usize = 16;

/// Bytes of a text in a statement. The engine repeats it for each row of a batch.
pub(super) const LONGEST_TEXT: usize = 4 << 10;

/// Expressions of a CUBE, which are as many groupings as they have subsets; and groupings that are listed.
const GROUPINGS: (usize, usize) = (6, 64);

/// Relations that tell of the server what is not of its data.
const OWN_SETTINGS: &str = "df_settings";

#[derive(Debug, Clone)]
pub(super) enum Allowed {
    /// A question.
    Query(Closed<Statement>),
    Set(String, String),
    Show(String),
    /// `None` for all of them.
    Reset(Option<String>),
    Begin,
    Commit,
    Rollback,
    /// To a savepoint: nothing is written, so there is nothing to go back to, but a transaction that has failed goes on.
    RollbackTo,
    /// `DISCARD ALL`, which also forgets what is prepared.
    Discard,
    /// The name of a prepared statement, `None` for all.
    Deallocate(Option<String>),
    /// A statement without effect here, by the name that the answer has.
    Nothing(&'static str),
}

/// Fails when it is not on the list.
pub(super) fn allowed(statement: Statement) -> Result<Allowed, Failure> {
    Ok(match statement {
        Statement::Query(_) => Allowed::Query(Closed::new(question(statement)?)),
        // What is explained is not run, and what is told is the logical plan: the physical one has names of files.
        Statement::Explain {
            analyze: false,
            verbose: false,
            query_plan: false,
            estimate: false,
            format: None,
            options: None,
            describe_alias,
            statement: inner,
        } => {
            let inner = Box::new(match *inner {
                inner @ Statement::Query(_) => question(inner)?,
                other => return Err(refused(&other)),
            });
            Allowed::Query(Closed::new(Statement::Explain {
                describe_alias,
                analyze: false,
                verbose: false,
                query_plan: false,
                estimate: false,
                statement: inner,
                format: None,
                options: None,
            }))
        }
        Statement::ShowVariable { variable } => {
            let words: Vec<String> = variable.iter().map(|word| word.value.to_ascii_lowercase()).collect();
            Allowed::Show(match words.join(" ").as_str() {
                "time zone" => "timezone".to_owned(),
                "transaction isolation level" => "transaction_isolation".to_owned(),
                "session authorization" => "session_authorization".to_owned(),
                other => other.to_owned(),
            })
        }
        Statement::Set(set) => of_set(set)?,
        Statement::Reset(ResetStatement { reset: Reset::ALL }) => Allowed::Reset(None),
        Statement::Reset(ResetStatement { reset: Reset::ConfigurationParameter(name) }) => {
            Allowed::Reset(Some(lower(&name)))
        }
        Statement::StartTransaction { statements, exception: None, .. } if statements.is_empty() => Allowed::Begin,
        Statement::Commit { chain: false, .. } => Allowed::Commit,
        Statement::Rollback { chain: false, savepoint: None } => Allowed::Rollback,
        Statement::Rollback { chain: false, savepoint: Some(_) } => Allowed::RollbackTo,
        Statement::Savepoint { .. } => Allowed::Nothing("SAVEPOINT"),
        Statement::ReleaseSavepoint { .. } => Allowed::Nothing("RELEASE"),
        Statement::Discard { .. } => Allowed::Discard,
        Statement::Deallocate { name, .. } => {
            let all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            Allowed::Deallocate((!all).then_some(name.value))
        }
        Statement::Close { cursor: CloseCursor::All } => Allowed::Nothing("CLOSE CURSOR ALL"),
        Statement::UNLISTEN { .. } => Allowed::Nothing("UNLISTEN"),
        other => return Err(refused(&other)),
    })
}

fn of_set(set: Set) -> Result<Allowed, Failure> {
    Ok(match set {
        Set::SingleAssignment { hivevar: false, variable, values, scope }
            if scope.is_none_or(|scope| scope != ContextModifier::Global) =>
        {
            Allowed::Set(lower(&variable), values.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        Set::SetTimeZone { value, .. } => Allowed::Set("timezone".to_owned(), text(&value)),
        Set::SetNames { charset_name, .. } => Allowed::Set("client_encoding".to_owned(), charset_name.value),
        Set::SetNamesDefault {} | Set::SetTransaction { snapshot: None, .. } => Allowed::Nothing("SET"),
        other => return Err(refused(&Statement::Set(other))),
    })
}

fn lower(name: &ObjectName) -> String {
    name.to_string().replace('"', "").to_ascii_lowercase()
}

fn text(value: &Expr) -> String {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    }
}

fn refused(statement: &Statement) -> Failure {
    // The first words of a statement are not the reader's.
    let shown = statement.to_string();
    let words: Vec<&str> = shown.split_whitespace().take(2).collect();
    let keywords = words.into_iter().take_while(|word| word.chars().all(|c| c.is_ascii_uppercase()));
    let what = keywords.collect::<Vec<_>>().join(" ");
    let what = if what.is_empty() { "this statement".to_owned() } else { what };
    Failure::new("42501", format!("{what} is not for readers"))
        .hint("This server answers SELECT, WITH, VALUES, EXPLAIN and SHOW, and takes settings of sessions and BEGIN, COMMIT and ROLLBACK")
}

/// Fails when something in it is not for readers.
fn question(statement: Statement) -> Result<Statement, Failure> {
    match statement.visit(&mut Inspection::default()) {
        ControlFlow::Continue(()) => Ok(statement),
        ControlFlow::Break(failure) => Err(*failure),
    }
}

#[derive(Default)]
struct Inspection {
    tables: usize,
    doublings: usize,
    groupings: usize,
    queries: Vec<Tables>,
}

/// The tables of a query that is being looked at.
#[derive(Default)]
struct Tables {
    count: f64,
    /// Its common table expressions: where they are, and what they are called.
    with: Vec<(*const Query, String)>,
    /// Number of tables in each query that was looked at.
    known: HashMap<String, f64>,
}

impl Inspection {
    /// Counts a table by its name; one that the statement has made is as many as are in it.
    fn count(&mut self, name: Option<&Ident>) {
        let known = |name: &Ident| {
            self.queries.iter().rev().find_map(|query| query.known.get(&name.value.to_ascii_lowercase()))
        };
        let tables = name.and_then(known).copied().unwrap_or(1.0);
        if let Some(query) = self.queries.last_mut() {
            query.count += tables;
        }
    }

    /// Counts what an expression in a function's arguments can be the name of.
    fn named(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.count(Some(name)),
            Expr::CompoundIdentifier(names) => self.count(names.last()),
            Expr::Value(value) => {
                if let Some(text) = value.value.clone().into_string() {
                    self.count(Some(&Ident::new(text)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn refuse(what: &str) -> ControlFlow<Box<Failure>> {
        ControlFlow::Break(Box::new(Failure::new("42501", format!("{what} is not for readers"))))
    }

    /// Checks that all of a query's parts ask and none writes.
    fn body(body: &SetExpr) -> ControlFlow<Box<Failure>> {
        match body {
            // Whatever is in them is visited by itself.
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => ControlFlow::Continue(()),
            SetExpr::SetOperation { left, right, .. } => {
                Self::body(left)?;
                Self::body(right)
            }
            SetExpr::Table(_) => Self::refuse("TABLE"),
            _ => Self::refuse("a query that writes"),
        }
    }
}

impl Visitor for Inspection {
    type Break = Box<Failure>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        if !query.locks.is_empty() {
            return Self::refuse("FOR UPDATE");
        }
        if query.settings.is_some() || query.format_clause.is_some() || query.for_clause.is_some() {
            return Self::refuse("a clause of settings or formats");
        }
        let expressions = query.with.iter().flat_map(|with| &with.cte_tables);
        let with = expressions.map(|cte| (&raw const *cte.query, cte.alias.name.value.to_ascii_lowercase())).collect();
        self.queries.push(Tables { with, ..Tables::default() });
        Self::body(&query.body)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let Some(Tables { count, .. }) = self.queries.pop() else { return ControlFlow::Continue(()) };
        if count > MOST_TABLES_IN_PLACE {
            let message = "the statement names too many tables, once everything that it makes is where it is named";
            return ControlFlow::Break(Box::new(Failure::new("54001", message)));
        }
        if let Some(around) = self.queries.last_mut() {
            match around.with.iter().find(|(place, _)| std::ptr::eq(*place, query)) {
                Some((_, name)) => drop(around.known.insert(name.clone(), count.max(1.0))),
                None => around.count += count,
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        match &select.group_by {
            _ if select.into.is_some() => Self::refuse("SELECT INTO"),
            GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty() => Self::refuse("GROUP BY with a modifier"),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        self.tables += 1;
        if self.tables > MOST_TABLES {
            let failure = Failure::new("54001", format!("a statement names at most {MOST_TABLES} tables"));
            return ControlFlow::Break(Box::new(failure));
        }
        // Functions take tables by their names, in quotes or not, and in functions in them.
        let _ = match factor {
            TableFactor::Table { args: Some(arguments), .. } => visit_expressions(arguments, |expr| self.named(expr)),
            TableFactor::Function { args, .. } => visit_expressions(args, |expr| self.named(expr)),
            TableFactor::TableFunction { expr, .. } => visit_expressions(expr, |expr| self.named(expr)),
            _ => ControlFlow::Continue(()),
        };
        match factor {
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::TableFunction { .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => Self::refuse("this kind of table"),
        }
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Self::Break> {
        let last = name.0.last().and_then(|part| part.as_ident());
        if last.is_some_and(|last| last.value.eq_ignore_ascii_case(OWN_SETTINGS)) {
            return Self::refuse(OWN_SETTINGS);
        }
        self.count(last);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        let too_much = |what: &str| ControlFlow::Break(Box::new(Failure::new("54001", what)));
        let doublings = match expr {
            Expr::Function(Function { name, args, .. }) => {
                let last = name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.to_ascii_lowercase());
                let last = last.unwrap_or_default();
                if AMPLIFYING.split(' ').any(|name| name == last) || last == "replace" && !doubles_at_most(args) {
                    return Self::refuse(&format!("function {last}, which makes large values of small ones,"));
                }
                match (last.as_str(), args) {
                    ("replace" | "encode" | "quote_ident" | "quote_literal", _) => 1,
                    (name, FunctionArguments::List(list)) if JOINING.split(' ').any(|joining| joining == name) => {
                        list.args.iter().filter(|argument| !is_literal(argument)).count().saturating_sub(1)
                    }
                    _ => 0,
                }
            }
            // Types double as well: of `struct(x, x)`, `[x, x]` and rows.
            Expr::Array(array) => several(&array.elem),
            Expr::Tuple(values) | Expr::Struct { values, .. } => several(values),
            Expr::Dictionary(fields) => fields.len().saturating_sub(1),
            Expr::Map(map) => map.entries.len().saturating_sub(1),
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
                usize::from(!matches!(left.as_ref(), Expr::Value(_)) && !matches!(right.as_ref(), Expr::Value(_)))
            }
            Expr::Cube(_) | Expr::Rollup(_) | Expr::GroupingSets(_) if self.groupings > 0 => {
                return too_much("a statement has at most one CUBE, ROLLUP or GROUPING SETS");
            }
            Expr::Cube(sets) if sets.len() > GROUPINGS.0 => return too_much("a CUBE has at most 6 expressions"),
            Expr::Rollup(sets) | Expr::GroupingSets(sets) if sets.len() > GROUPINGS.1 => {
                return too_much("there are at most 64 groupings");
            }
            Expr::Cube(_) | Expr::Rollup(_) | Expr::GroupingSets(_) => {
                self.groupings += 1;
                0
            }
            _ => 0,
        };
        self.doublings += doublings;
        if self.doublings > DOUBLINGS {
            return too_much("a statement puts at most 16 texts together that are no literals");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Self::Break> {
        match &value.value {
            Value::SingleQuotedString(text) if text.len() > LONGEST_TEXT => {
                ControlFlow::Break(Box::new(Failure::new("54001", format!("a text has at most {LONGEST_TEXT} bytes"))))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

const JOINING: &str = "\
    array_cat array_concat array_to_string array_union arrays_zip composite concat concat_ws list_cat list_concat \
    list_zip make_array make_list make_map map named_struct row struct";

/// Returns the values that are put together, but for literals.
fn several(values: &[Expr]) -> usize {
    values.iter().filter(|value| !matches!(value, Expr::Value(_))).count().saturating_sub(1)
}

fn is_literal(argument: &FunctionArg) -> bool {
    matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(_))))
}

/// Returns true if a call of `replace` at most doubles a value of other origin. It puts a literal of at most twice the length in place of another.
fn doubles_at_most(args: &FunctionArguments) -> bool {
    let FunctionArguments::List(list) = args else { return false };
    let length = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => {
            value.value.clone().into_string().map(|text| text.len())
        }
        _ => None,
    };
    let [text, from, to] = list.args.as_slice() else { return false };
    let again = visit_expressions(text, |expr| match expr {
        Expr::Function(function) if function.name.to_string().to_ascii_lowercase().contains("replace") => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    again.is_continue() && length(from).zip(length(to)).is_some_and(|(from, to)| to <= 2 * from)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn of(sql: &str) -> Result<Allowed, Failure> {
        let mut statements =
            Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        allowed(statements.remove(0))
    }

    #[test]
    fn questions() {
        for sql in [
            "SELECT 1",
            "WITH a AS (SELECT 1 AS x) SELECT * FROM a, b WHERE x IN (SELECT y FROM c)",
            "VALUES (1), (2)",
            "SELECT * FROM release(hospital, 1)",
            "SELECT * FROM estimated('hospital') UNION ALL SELECT 1",
            "EXPLAIN SELECT 1",
            "SELECT replace(a, '\"', '\"\"') FROM t",
        ] {
            assert!(matches!(of(sql), Ok(Allowed::Query(_))), "{sql}: {:?}", of(sql));
        }
    }

    #[test]
    fn settings_and_transactions() {
        let set = |sql| match of(sql) {
            Ok(Allowed::Set(name, value)) => (name, value),
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(set("SET application_name = 'x y'"), ("application_name".to_owned(), "x y".to_owned()));
        assert_eq!(set("SET SESSION search_path TO a, public"), ("search_path".to_owned(), "a, public".to_owned()));
        assert_eq!(set("SET TIME ZONE 'UTC'"), ("timezone".to_owned(), "UTC".to_owned()));
        assert_eq!(set("SET datafusion.x.y = 1").0, "datafusion.x.y");
        for sql in ["BEGIN", "BEGIN READ ONLY", "START TRANSACTION ISOLATION LEVEL SERIALIZABLE"] {
            assert!(matches!(of(sql), Ok(Allowed::Begin)), "{sql}");
        }
        assert!(matches!(of("COMMIT"), Ok(Allowed::Commit)));
        assert!(matches!(of("ROLLBACK"), Ok(Allowed::Rollback)));
        assert!(matches!(of("ROLLBACK TO SAVEPOINT a"), Ok(Allowed::RollbackTo)));
        assert!(matches!(of("DEALLOCATE ALL"), Ok(Allowed::Deallocate(None))));
        assert!(matches!(of("DEALLOCATE a"), Ok(Allowed::Deallocate(Some(_)))));
        assert!(matches!(of("DISCARD ALL"), Ok(Allowed::Discard)));
        assert!(matches!(of("SHOW TRANSACTION ISOLATION LEVEL"), Ok(Allowed::Show(_))));
    }

    #[test]
    fn everything_else_is_refused() {
        for sql in [
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "TRUNCATE t",
            "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
            "CREATE TABLE t (a INT)",
            "CREATE TABLE t AS SELECT 1",
            "CREATE VIEW v AS SELECT 1",
            "CREATE SCHEMA s",
            "CREATE FUNCTION f() RETURNS INT RETURN 1",
            "DROP TABLE t",
            "ALTER TABLE t ADD COLUMN b INT",
            "COPY t TO 'file'",
            "COPY (SELECT 1) TO STDOUT",
            "COPY t FROM STDIN",
            "SELECT * INTO t FROM s",
            "SELECT 1 FROM t FOR UPDATE",
            "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
            "WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN VERBOSE SELECT 1",
            "EXPLAIN (FORMAT JSON) SELECT 1",
            "EXPLAIN INSERT INTO t VALUES (1)",
            "GRANT SELECT ON t TO a",
            "SET ROLE admin",
            "SET SESSION AUTHORIZATION admin",
            "PREPARE p AS SELECT 1",
            "EXECUTE p",
            "DECLARE c CURSOR FOR SELECT 1",
            "CALL f()",
            "LISTEN a",
            "NOTIFY a",
            "VACUUM t",
            "ANALYZE t",
            "SELECT * FROM information_schema.df_settings",
            "SELECT (SELECT max(value) FROM information_schema.DF_SETTINGS)",
            "SELECT repeat('x', 1000000000)",
            "SELECT length(lpad('x', 1000000000))",
            "SELECT generate_series(1, 1000000000)",
            "SELECT replace(a, 'x', 'a long text')",
            "SELECT replace(a, 'x', b)",
            "SELECT replace(replace(a, 'x', 'xx'), 'x', 'xx')",
        ] {
            let failure = of(sql).map(|found| format!("{found:?}")).expect_err(sql);
            assert_eq!(failure.code(), "42501", "{sql}");
        }
        let joined: Vec<String> = (0..30).map(|i| format!("A{} AS (SELECT l.x FROM a{i} l, a{i} r)", i + 1)).collect();
        let joined = format!("WITH a0 AS (SELECT 1 AS x), {} SELECT count(*) FROM a30", joined.join(", "));
        let in_functions = |both: &str| {
            let made = |i: usize| format!("a{} AS (SELECT l.x FROM {})", i + 1, both.replace('#', &i.to_string()));
            let made: Vec<String> = (0..30).map(made).collect();
            format!("WITH a0 AS (SELECT 1 AS x), {} SELECT count(*) FROM a30", made.join(", "))
        };
        let doubled: Vec<String> = (0..20).map(|i| format!("a{} AS (SELECT x || x AS x FROM a{i})", i + 1)).collect();
        for much in [
            format!("SELECT 1 FROM {}", vec!["t"; 200].join(", ")),
            format!("SELECT 1 FROM t GROUP BY CUBE({})", ["a"; 7].join(", ")),
            format!("SELECT 1 FROM t GROUP BY ROLLUP({})", vec!["a"; 100].join(", ")),
            "SELECT 1 FROM t GROUP BY CUBE(a, b), CUBE(c, d)".to_owned(),
            format!("SELECT * FROM ({joined}) x"),
            joined,
            format!("SELECT '{}'", "x".repeat(20_000)),
            format!("WITH a0 AS (SELECT 'a' AS x), {} SELECT x FROM a20", doubled.join(", ")),
            format!("SELECT concat({}) FROM t", vec!["x"; 30].join(", ")),
            in_functions("flat(a#) l, flat(a#) r"),
            in_functions("flat('a#') l, flat('a#') r"),
            in_functions("flat(release => a#) l, flat(release => 'a#') r"),
            in_functions("flat((a#)) l, flat(flat(a#)) r"),
            in_functions("flat(TABLE(a#)) l, LATERAL flat(a#) r"),
            in_functions("estimated(q1, prior => a#) l, a# r"),
            in_functions("flat((SELECT * FROM a#)) l, a# r"),
        ] {
            let shown: String = much.chars().take(60).collect();
            assert_eq!(of(&much).map(|_| ()).expect_err(&shown).code(), "54001", "{shown}");
        }
        assert!(of("SELECT 1 FROM t GROUP BY CUBE(a, b, c)").is_ok());
    }

    /// A chain of tables that double a value or a type is counted. A hundred bytes more double it once more.
    #[test]
    fn what_doubles_is_counted() {
        let chain = |made: &str, links: usize| {
            let made = |i: usize| format!("a{} AS (SELECT {made} AS x FROM a{i})", i + 1);
            let links: Vec<String> = (0..links).map(made).collect();
            format!("WITH a0 AS (SELECT 1 AS x), {} SELECT count(x) FROM a{}", links.join(", "), links.len())
        };
        for made in [
            "struct(x, x)",
            "named_struct('l', x, 'r', x)",
            "ROW(x, x)",
            "(x, x)",
            "[x, x]",
            "ARRAY[x, x]",
            "make_array(x, x)",
            "map(x, x)",
            "arrays_zip(x, x)",
            "array_concat(x, x)",
            "composite(x, x)",
            "encode(x, 'hex')",
            "quote_ident(x)",
            "quote_literal(x)",
            "concat(x, x)",
            "x || x",
            "replace(x, 'a', 'bb')",
        ] {
            let failure = of(&chain(made, 17)).map(|_| ()).expect_err(made);
            assert_eq!(failure.code(), "54001", "{made}");
            assert!(of(&chain(made, 3)).is_ok(), "{made}");
        }
        // One of two is a literal: values grow by as much each time.
        assert!(of(&chain("x || 'a'", 17)).is_ok());
        assert!(of(&chain("concat(x, 'a')", 17)).is_ok());
    }
}
