//! Statements from files and the command line: one after the other, up to the first that fails.

use std::io::Read;
use std::sync::Arc;

use anonymize_stores::Named;
use datafusion::common::utils::quote_identifier;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, plan_datafusion_err};
use datafusion::config::Dialect;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{self, DFParser, ResetStatement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};
use datafusion_anonymize::{hide_values, internals};
use datafusion_cli::exec;
use datafusion_cli::print_options::PrintOptions;

use super::text::Text;
use super::{functions, output, place, plain};

/// Returns the text of a script; `-` is standard input.
pub(crate) fn read(path: &str) -> Result<String> {
    let mut text = String::new();
    let result = match path {
        "-" => std::io::stdin().read_to_string(&mut text).map(|_| ()),
        path => std::fs::read_to_string(path).map(|read| text = read),
    };
    result.map_err(|error| exec_datafusion_err!("cannot read {path}: {error}"))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Runs all statements of a text. `origin` names it in errors; an empty one is not named.
pub(crate) async fn run(context: &SessionContext, print: &PrintOptions, sql: &str, origin: &str) -> Result<()> {
    let dialect = context.state().config_options().sql_parser.dialect;
    let print = output::options(print);
    for (number, statement) in split(sql, dialect, origin)?.into_iter().enumerate() {
        let result = match statement.named.register(context).await {
            Ok(()) => {
                let done = execute(context, &print, statement.text.clone()).await;
                // What is printed goes to logs of jobs as well.
                let done = match done {
                    Err(error) => Err(with_columns(context, &statement.text, error).await),
                    done => done,
                };
                match reads_rows(&statement.text) {
                    true => done.map_err(|error| internals::with_casts_of(&statement.text, hide_values(error))),
                    false => done,
                }
            }
            Err(error) => Err(error),
        };
        result.map_err(|error| {
            let underlined = place::underlined(&error, &statement.text);
            match (origin, underlined) {
                ("", None) => error,
                ("", Some(place)) => error.context(place),
                (origin, place) => {
                    let place = place.map_or_else(String::new, |place| format!("\n{place}"));
                    error.context(format!("{origin}: statement {} (line {}){place}", number + 1, statement.line))
                }
            }
        })?;
    }
    Ok(())
}

async fn execute(context: &SessionContext, print: &PrintOptions, sql: String) -> Result<()> {
    let options = Arc::clone(context.state().config_options());
    let dialect = dialect_from_str(options.sql_parser.dialect);
    let parsed = dialect.and_then(|dialect| DFParser::parse_sql_with_dialect(&sql, dialect.as_ref()).ok());
    // What does not parse fails in the next lines, with the reason.
    if let Some([statement]) =
        parsed.map(|statements| <[_; 1]>::try_from(Vec::from(statements))).and_then(|one| one.ok())
    {
        if reset(context, &statement) {
            return Ok(());
        }
        if functions::show(context, &statement, print).await? {
            return Ok(());
        }
        if output::print_rows(context, statement, print).await? {
            return Ok(());
        }
    }
    exec::exec_from_commands(context, vec![sql], print).await
}

/// Says which columns a table has, where an INSERT has another number of them.
async fn with_columns(context: &SessionContext, sql: &str, error: DataFusionError) -> DataFusionError {
    const COUNTS: [&str; 2] =
        ["Column count doesn't match insert query!", "Inconsistent data length across values list"];
    let text = error.strip_backtrace();
    if !COUNTS.iter().any(|count| text.contains(count)) {
        return error;
    }
    let parsed = DFParser::parse_sql(sql).ok().and_then(|mut parsed| parsed.pop_front());
    let Some(parser::Statement::Statement(statement)) = parsed else { return error };
    let ast::Statement::Insert(insert) = *statement else { return error };
    let ast::TableObject::TableName(name) = &insert.table else { return error };
    let Ok(table) = context.table_provider(name.to_string()).await else { return error };
    let named: Vec<String> = match insert.columns.is_empty() {
        true => table.schema().fields().iter().map(|field| quote_identifier(field.name()).into_owned()).collect(),
        false => insert.columns.iter().map(ToString::to_string).collect(),
    };
    plan_datafusion_err!(
        "the INSERT into {name} needs a value for each of {} columns, {}; or name those that it has: INSERT INTO {name} (..) SELECT ..",
        named.len(),
        named.join(", ")
    )
}

/// Returns false for statements about settings, whose errors are about what was written.
fn reads_rows(sql: &str) -> bool {
    let verb = sql.split_whitespace().next().unwrap_or_default();
    !["SET", "RESET", "SHOW"].iter().any(|of_settings| verb.eq_ignore_ascii_case(of_settings))
}

/// Resets `anonymize.id` and the like: DataFusion resets its own settings only.
fn reset(context: &SessionContext, statement: &parser::Statement) -> bool {
    let parser::Statement::Reset(ResetStatement::Variable(name)) = statement else { return false };
    let name = name.to_string().to_ascii_lowercase();
    name.starts_with("anonymize.") && context.state_ref().write().config_mut().options_mut().set(&name, "").is_ok()
}

#[derive(Debug, PartialEq, Eq)]
struct Statement {
    text: String,
    /// Line of the first token, from 1.
    line: u64,
    /// Locations in it.
    named: Named,
}

/// Cuts a text at its semicolons, except those in quotes and comments. What is between them stays as it was written, but for
/// the [options of publications](plain).
fn split(sql: &str, dialect: Dialect, origin: &str) -> Result<Vec<Statement>> {
    let dialect = dialect_from_str(dialect).ok_or_else(|| exec_datafusion_err!("unknown SQL dialect {dialect}"))?;
    let tokenize = |sql: &str| {
        Tokenizer::new(dialect.as_ref(), sql).tokenize_with_location().map_err(|error| match origin {
            "" => exec_datafusion_err!("{error}"),
            origin => exec_datafusion_err!("{origin}: {error}"),
        })
    };
    let text = Text::new(sql);
    let mut statements = Vec::new();
    let mut start: Option<Location> = None;
    let mut cut = |from: Location, end: usize| -> Result<()> {
        let statement = &sql[text.offset(from)..end];
        let tokens = tokenize(statement)?;
        let changed = plain::prefix_keys(&Text::new(statement), &tokens);
        let text = changed.unwrap_or_else(|| statement.to_owned());
        statements.push(Statement { text, line: from.line, named: Named::in_statement(&tokens) });
        Ok(())
    };
    for token in tokenize(sql)? {
        match (&token.token, start) {
            (Token::SemiColon | Token::EOF, Some(from)) => {
                cut(from, if token.token == Token::EOF { sql.len() } else { text.offset(token.span.start) })?;
                start = None;
            }
            (Token::SemiColon | Token::EOF | Token::Whitespace(_), _) => {}
            (_, None) => start = Some(token.span.start),
            _ => {}
        }
    }
    if let Some(from) = start {
        cut(from, sql.len())?;
    }
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<(String, u64)> {
        let statements = split(sql, Dialect::Generic, "test").unwrap();
        statements.into_iter().map(|statement| (statement.text.trim().to_owned(), statement.line)).collect()
    }

    #[test]
    fn splits_at_semicolons_outside_of_quotes_and_comments() {
        let sql = "-- first;\nSELECT 'a;b''c' AS \"x;y\"; /* ; */\n\nSELECT 2 -- two;\n, 3;;";
        assert_eq!(texts(sql), [("SELECT 'a;b''c' AS \"x;y\"".to_owned(), 2), ("SELECT 2 -- two;\n, 3".to_owned(), 4)]);
    }

    #[test]
    fn statements_stay_as_they_were_written() {
        let sql = "SELECT 'ü;', E'it\\'s; fine', $$a;b$$;\n SELECT 'naïve' AS é; SELECT 3";
        assert_eq!(
            texts(sql),
            [
                ("SELECT 'ü;', E'it\\'s; fine', $$a;b$$".to_owned(), 1),
                ("SELECT 'naïve' AS é".to_owned(), 2),
                ("SELECT 3".to_owned(), 2)
            ]
        );
    }

    #[test]
    fn nothing_is_no_statement() {
        assert_eq!(texts(" \n-- only a comment\n;"), []);
    }
}
