//! The random output tables of a group, as its rows are drawn from them.

use std::sync::Arc;

use super::mix;
use super::reduced::{Memo, Values};
use super::table::{OutputTable, keeps};
use crate::error::Result;
use crate::microdata::{Distance, Microdata};

/// Source of the tables of groups.
pub(super) struct Source<'a> {
    pub microdata: &'a Microdata,
    pub distances: &'a [Distance],
    pub memo: &'a Memo,
    /// Greatest distance in each attribute.
    pub widest: &'a [f64],
}

/// An attribute in which a group's rows differ, and its optimal table.
pub(super) struct Solved<'a> {
    pub attribute: usize,
    pub values: Values,
    /// Of each row, the place of its value.
    pub own: Vec<usize>,
    pub table: Arc<OutputTable>,
    pub distance: &'a Distance,
    pub widest: f64,
}

/// The table of one attribute. Rows with equal values share a row of it.
pub(super) struct GroupTable {
    pub attribute: usize,
    /// Values of the group, and how many rows have each.
    pub values: Values,
    /// Of each row, the place of its value.
    pub own: Vec<usize>,
    /// Codes that may be published; they ascend, and the values are among them.
    pub columns: Vec<u32>,
    /// Parts of each value's probability, value after value.
    pub parts: Vec<u64>,
}

/// The tables of the attributes in which the rows of a group differ.
pub(super) struct GroupTables {
    /// The parts that make a probability of one, in all of them.
    pub whole: u64,
    pub tables: Vec<GroupTable>,
    /// True if they were mixed so that no row stays as it is.
    pub mixed: bool,
}

impl Source<'_> {
    /// Returns the tables of these rows. The same whenever it is asked.
    pub(super) fn tables(&self, rows: &[u32]) -> Result<GroupTables> {
        let mut solved = Vec::new();
        for (attribute, distance) in self.distances.iter().enumerate() {
            let code = |row: &u32| self.microdata.quasi_at(*row, attribute);
            let mut values = Values::default();
            values.collect(rows.iter().map(code));
            if values.codes.len() > 1 {
                let own = rows.iter().map(|row| values.place(code(row))).collect();
                let table = self.memo.table(attribute, distance, &values);
                let widest = self.widest[attribute].max(f64::MIN_POSITIVE);
                solved.push(Solved { attribute, values, own, table, distance, widest });
            }
        }
        let whole = solved.first().map_or(1, |solved| solved.table.whole()) * mix::FINER;
        let mixtures = mix::mixtures(&solved)?;
        let mixed = mixtures.is_some();
        let tables = match mixtures {
            Some(mixtures) => solved.into_iter().zip(mixtures).map(|(solved, mixture)| mixture.apply(solved)).collect(),
            None => solved.into_iter().map(GroupTable::of).collect(),
        };
        Ok(GroupTables { whole, tables, mixed })
    }
}

impl GroupTable {
    /// Takes the optimal table as it is.
    pub(super) fn of(solved: Solved<'_>) -> Self {
        let parts = solved.table.parts().iter().map(|parts| parts * mix::FINER).collect();
        let columns = solved.values.codes.clone();
        Self { attribute: solved.attribute, values: solved.values, own: solved.own, columns, parts }
    }

    /// Returns the parts of the rows of a value.
    pub(super) fn row(&self, value: usize) -> &[u64] {
        &self.parts[value * self.columns.len()..][..self.columns.len()]
    }

    /// Returns the column of a value.
    pub(super) fn column(&self, value: usize) -> usize {
        let code = self.values.codes[value];
        self.columns.partition_point(|&other| other < code)
    }

    /// Returns the parts of the probability that a row of this value publishes another.
    pub(super) fn change(&self, whole: u64, value: usize) -> u64 {
        whole - self.row(value)[self.column(value)]
    }

    /// Returns true if rows sum to one and contribute at most delta to columns. It is exact, without a tolerance.
    pub(super) fn keeps(&self, whole: u64, delta: f64) -> bool {
        let rows = || (0..self.values.codes.len()).map(|value| self.row(value));
        let covers = |column: usize| {
            let most = rows().map(|row| row[column]).max().unwrap_or(0);
            let sum = rows().zip(&self.values.weights).map(|(row, &weight)| row[column] * u64::from(weight)).sum();
            keeps(most, sum, delta)
        };
        rows().all(|row| row.iter().sum::<u64>() == whole) && (0..self.columns.len()).all(covers)
    }
}

impl GroupTables {
    /// Returns true if rows can be told apart by more than one attribute: only then must each of them change.
    pub(super) fn must_change(&self) -> bool {
        self.tables.len() > 1
    }

    /// Returns true if every row always changes in one attribute at least. It does on average, and so always: see [`draw`](super::draw).
    pub(super) fn always_change(&self) -> bool {
        let rows = self.tables.first().map_or(0, |table| table.own.len());
        (0..rows).all(|row| {
            let changes = self.tables.iter().map(|table| table.change(self.whole, table.own[row]));
            changes.sum::<u64>() >= self.whole
        })
    }
}
