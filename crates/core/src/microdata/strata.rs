//! Microdata cut into the rows of each value of a column.

use super::{Codes, Microdata};

/// Rows by the value they have in the column `within`. Strata are in the order of its domain.
#[derive(Debug)]
pub struct Strata {
    /// Code of each part.
    pub codes: Vec<u32>,
    /// Rows of the whole, part after part.
    rows: Vec<u32>,
    /// Start of each part in `rows`, and the end of the last.
    starts: Vec<usize>,
}

impl Strata {
    /// Returns the rows of the whole that are in a part.
    pub fn rows(&self, part: usize) -> &[u32] {
        &self.rows[self.starts[part]..self.starts[part + 1]]
    }
}

impl Microdata {
    /// Returns the parts by the column `within`; values without rows have none.
    pub fn strata(&self) -> Strata {
        let mut strata = Strata { codes: Vec::new(), rows: (0..self.rows as u32).collect(), starts: Vec::new() };
        let Some((_, codes)) = &self.within else { return strata };
        strata.rows.sort_by_key(|&row| codes[row as usize]);
        for (place, &row) in strata.rows.iter().enumerate() {
            let code = codes[row as usize];
            if strata.codes.last() != Some(&code) {
                strata.codes.push(code);
                strata.starts.push(place);
            }
        }
        strata.starts.push(self.rows);
        strata
    }

    /// Returns some of the rows as microdata of their own. Domains are those of the whole.
    pub fn part(&self, rows: &[u32]) -> Self {
        Self {
            rows: rows.len(),
            people: self.people.as_ref().map(|people| people.part(rows)),
            quasi: self.quasi.clone(),
            quasi_codes: self.quasi_codes.part(rows),
            sensitive: self.sensitive.clone(),
            sensitive_codes: match self.sensitive {
                Some(_) => self.sensitive_codes.of_rows(rows),
                None => Codes::default(),
            },
            within: None,
            other: self.other.clone(),
            other_codes: rows.iter().flat_map(|&row| self.other_of(row)).copied().collect(),
            updates: self.updates.clone(),
        }
    }
}
