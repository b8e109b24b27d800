//! Place of an error in a statement: the line, with the place underlined and without the values that it has.
//! Scripts have seeds in them, and errors of nightly jobs end up in logs.

use datafusion::common::{DataFusionError, Location};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Returns the line that an error is about, and marks below, if it says one.
pub(super) fn underlined(error: &DataFusionError, sql: &str) -> Option<String> {
    let (start, end) = span(error)?;
    let line = without_values(sql, start.line)?;
    let length = line.chars().count();
    let from = (start.column as usize).checked_sub(1).filter(|from| *from <= length)?;
    let to = match end {
        Some(end) if end.line == start.line => (end.column as usize).saturating_sub(1),
        Some(_) => length,
        None => from + 1,
    };
    let marks = to.clamp(from + 1, length.max(from + 1)) - from;
    // As many columns as the text before, whatever a tab is wide.
    let before: String = line.chars().take(from).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    Some(format!("  {line}\n  {before}{}", "^".repeat(marks)))
}

/// Returns a line of a statement with stars for what its literals say; `None` if it cannot be told what is one.
fn without_values(sql: &str, number: u64) -> Option<String> {
    let line = sql.lines().nth((number as usize).checked_sub(1)?)?;
    let mut shown: Vec<char> = line.chars().collect();
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().ok()?;
    for found in tokens.iter().filter(|found| is_literal(&found.token)) {
        let (start, end) = (found.span.start, found.span.end);
        if (start.line..=end.line).contains(&number) {
            // A text can go on over several lines.
            let from = if start.line < number { 0 } else { (start.column as usize).saturating_sub(1) };
            let to = if end.line > number { shown.len() } else { (end.column as usize).saturating_sub(1) };
            let hidden = shown.iter_mut().take(to).skip(from).filter(|c| **c != '\'');
            hidden.for_each(|c| *c = '*');
        }
    }
    Some(shown.into_iter().collect())
}

fn is_literal(token: &Token) -> bool {
    match token {
        Token::Word(_) | Token::Whitespace(_) => false,
        Token::Number(..) => true,
        other => other.to_string().contains(['\'', '"', '$']),
    }
}

/// Returns the first and, if it is known, the last place.
fn span(error: &DataFusionError) -> Option<(Location, Option<Location>)> {
    if let Some(span) = error.diagnostic().and_then(|diagnostic| diagnostic.span) {
        return Some((span.start, Some(span.end)));
    }
    // The parser puts it into words.
    let text = error.strip_backtrace();
    let (_, place) = text.rsplit_once("Line: ")?;
    let (line, rest) = place.split_once(", Column: ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((Location { line: line.parse().ok()?, column: rest[..digits].parse().ok()? }, None))
}

#[cfg(test)]
mod tests {
    use datafusion::common::{Diagnostic, Span, plan_datafusion_err};

    use super::*;

    fn at(from: (u64, u64), to: (u64, u64)) -> DataFusionError {
        let place = |(line, column)| Location { line, column };
        let span = Span { start: place(from), end: place(to) };
        plan_datafusion_err!("no").with_diagnostic(Diagnostic::new_error("no", Some(span)))
    }

    #[test]
    fn places_are_underlined() {
        let sql = "SELECT a\nFROM\tnowhere x";
        assert_eq!(underlined(&at((2, 6), (2, 13)), sql).as_deref(), Some("  FROM\tnowhere x\n      \t^^^^^^^"));
        // To the end of the line, where it goes on in the next one.
        assert_eq!(underlined(&at((1, 8), (2, 3)), sql).as_deref(), Some("  SELECT a\n         ^"));
        let parser = plan_datafusion_err!("Expected: an expression, found: FROM at Line: 1, Column: 8");
        assert_eq!(underlined(&parser, "SELECT FROM x").as_deref(), Some("  SELECT FROM x\n         ^"));
    }

    #[test]
    fn values_are_not_shown() {
        let sql = "SELECT agee FROM m(t, 2, seed => 'a secret',\n  17, x => 'two\nlines of it', id)";
        let shown = |place| underlined(&at(place, place), sql).unwrap().lines().next().unwrap().to_owned();
        assert_eq!(shown((1, 8)), "  SELECT agee FROM m(t, *, seed => '********',");
        assert_eq!(shown((2, 3)), "    **, x => '***");
        assert_eq!(shown((3, 14)), "  ***********', id)");
        assert_eq!(underlined(&at((1, 8), (1, 9)), "SELECT a, 'open"), None);
    }

    #[test]
    fn other_errors_have_no_place() {
        assert_eq!(underlined(&plan_datafusion_err!("no"), "SELECT"), None);
        assert_eq!(underlined(&at((7, 1), (7, 2)), "SELECT"), None);
        assert_eq!(underlined(&at((1, 99), (1, 100)), "SELECT"), None);
    }
}
