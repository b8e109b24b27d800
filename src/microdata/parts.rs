//! Microdata cut into the rows of each value of a column.

use super::{Ledger, Microdata};

/// The rows that share a value of the column `within`, as microdata of their own. Domains are those of the whole.
#[derive(Debug)]
pub(crate) struct Part {
    /// Code of the value.
    pub code: u32,
    /// Row of the whole of each row of the part.
    pub rows: Vec<u32>,
    pub microdata: Microdata,
    pub ledger: Ledger,
}

impl Microdata {
    /// The parts by the column `within`, in the order of its domain; values without rows have none.
    pub(crate) fn parts(&self, ledger: &Ledger) -> Vec<Part> {
        let Some((attribute, codes)) = &self.within else { return Vec::new() };
        let mut rows = vec![Vec::new(); attribute.domain.len()];
        for (row, &code) in codes.iter().enumerate() {
            rows[code as usize].push(row as u32);
        }
        let parts = (0..).zip(rows).filter(|(_, rows)| !rows.is_empty());
        parts.map(|(code, rows)| Part { code, microdata: self.part(&rows), ledger: ledger.part(&rows), rows }).collect()
    }

    fn part(&self, rows: &[u32]) -> Self {
        Self {
            rows: rows.len(),
            people: None,
            quasi: self.quasi.clone(),
            quasi_codes: rows.iter().flat_map(|&row| self.quasi_of(row)).copied().collect(),
            sensitive: self.sensitive.clone(),
            sensitive_codes: match self.sensitive {
                Some(_) => rows.iter().map(|&row| self.sensitive_codes[row as usize]).collect(),
                None => Vec::new(),
            },
            within: None,
        }
    }
}
