//! Where in a statement an error is: the line, with the place underlined.

use datafusion::common::{DataFusionError, Location};

/// The line that an error is about and a line of marks below it, if the error says where it is.
pub(super) fn underlined(error: &DataFusionError, sql: &str) -> Option<String> {
    let (start, end) = span(error)?;
    let line = sql.lines().nth((start.line as usize).checked_sub(1)?)?;
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

/// First and, if it is known, last place.
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
    fn other_errors_have_no_place() {
        assert_eq!(underlined(&plan_datafusion_err!("no"), "SELECT"), None);
        assert_eq!(underlined(&at((7, 1), (7, 2)), "SELECT"), None);
        assert_eq!(underlined(&at((1, 99), (1, 100)), "SELECT"), None);
    }
}
