//! A text in which places are known by line and column.

use datafusion::sql::sqlparser::tokenizer::Location;

/// The text and where its lines begin.
pub(super) struct Text<'a> {
    sql: &'a str,
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    pub(super) fn new(sql: &'a str) -> Self {
        let lines = std::iter::once(0).chain(sql.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
        Self { sql, lines }
    }

    pub(super) fn sql(&self) -> &'a str {
        self.sql
    }

    /// Returns the lines and columns count from 1, columns in characters.
    pub(super) fn offset(&self, at: Location) -> usize {
        let start = self.lines[at.line as usize - 1];
        let line = &self.sql[start..];
        let column = line.char_indices().nth(at.column as usize - 1).map_or(line.len(), |(column, _)| column);
        start + column
    }
}
