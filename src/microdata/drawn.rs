//! The publisher's memory of values that were drawn at random: what everybody published whose quasi-identifiers were these.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type};

use super::{ColumnEncoder, Encoded, HashKey, IdentifierBuilder, Identifiers};
use crate::error::{Error, Result};

/// Instead of an entry's number: there is none.
const NONE: u32 = u32::MAX;

/// Published values of the rows of microdata that are as they were.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawn {
    /// Entry of each row; empty if nothing was ever drawn.
    entry_of: Vec<u32>,
    /// Published codes, entry after entry.
    codes: Arc<[u32]>,
    quasi: usize,
}

impl Drawn {
    #[inline]
    pub(super) fn of(&self, row: u32) -> Option<&[u32]> {
        let entry = *self.entry_of.get(row as usize)?;
        self.codes.get(entry as usize * self.quasi..)?.get(..self.quasi)
    }

    pub(super) fn part(&self, rows: &[u32]) -> Self {
        let entry_of = match self.entry_of.is_empty() {
            true => Vec::new(),
            false => rows.iter().map(|&row| self.entry_of[row as usize]).collect(),
        };
        Self { entry_of, codes: Arc::clone(&self.codes), quasi: self.quasi }
    }
}

/// Reads entries: identifier, number of the release, the original and then the published value of every quasi-identifier.
#[derive(Debug)]
pub(super) struct DrawnBuilder {
    identifiers: IdentifierBuilder,
    releases: Vec<i64>,
    /// Provisional codes, column after column.
    columns: Vec<Vec<u32>>,
    codes: Vec<usize>,
}

impl DrawnBuilder {
    pub(super) fn new(identifier: DataType, quasi: usize) -> Self {
        let columns = vec![Vec::new(); 2 * quasi];
        Self { identifiers: IdentifierBuilder::new(identifier), releases: Vec::new(), columns, codes: Vec::new() }
    }

    /// Appends a batch. Values join the domains, so that codes agree.
    pub(super) fn append(&mut self, batch: &RecordBatch, quasi: &mut [ColumnEncoder]) -> Result<()> {
        let [id, releases, values @ ..] = batch.columns() else {
            return Err(Error::internal("entries without columns"));
        };
        if values.len() != self.columns.len() || id.null_count() + releases.null_count() > 0 {
            return Err(Error::internal("entries of the ledger that are not those that were written"));
        }
        let of_column = quasi.len();
        for (place, (column, values)) in self.columns.iter_mut().zip(values).enumerate() {
            quasi[place % of_column].intern(values, &mut self.codes)?;
            column.extend(self.codes.iter().map(|&code| code as u32));
        }
        self.releases.extend(releases.as_primitive::<Int64Type>().values());
        self.identifiers.append(id)
    }

    /// Bytes held, and bytes that [`finish`](Self::finish) will need.
    pub(super) fn size(&self) -> usize {
        let codes: usize = self.columns.iter().map(|column| 2 * column.capacity() * size_of::<u32>()).sum();
        self.identifiers.size() + self.releases.capacity() * size_of::<i64>() + codes
    }

    /// Finds for each row of the microdata, in the order of its identifiers, the newest entry with the same identifier and the same
    /// original values.
    pub(super) fn finish(self, quasi: &[Encoded], key: HashKey, microdata: &Identifiers) -> Result<Drawn> {
        let d = quasi.len();
        let entries = self.releases.len();
        let final_codes = |of: usize| -> Vec<u32> {
            let mut codes = Vec::with_capacity(entries * d);
            for entry in 0..entries {
                codes.extend((0..d).map(|j| quasi[j].ranks[self.columns[of * d + j][entry] as usize]));
            }
            codes
        };
        let (originals, published) = (final_codes(0), final_codes(1));
        let known = self.identifiers.finish(key)?;
        if known.is_empty() {
            return Ok(Drawn::default());
        }
        // Entries of one identifier stand together, found by the first of them.
        let mut last_of = vec![NONE; entries];
        let order: Vec<u32> = known.order().collect();
        let mut at = 0;
        for run in known.runs()? {
            at += run.len();
            last_of[run[0].1 as usize] = at as u32;
        }
        let mut place_of = vec![0; entries];
        order.iter().enumerate().for_each(|(place, &entry)| place_of[entry as usize] = place);
        let found = microdata.find_in(&known)?;
        let newest = |(first, arrival): (Option<u32>, u32)| {
            let first = first? as usize;
            let run = &order[place_of[first]..last_of[first] as usize];
            let same = |entry: &&u32| {
                let original = &originals[**entry as usize * d..][..d];
                quasi.iter().zip(original).all(|(column, &code)| column.codes[arrival as usize] == code)
            };
            run.iter().filter(same).copied().max_by_key(|&entry| self.releases[entry as usize])
        };
        let rows = found.into_iter().zip(microdata.order());
        let entry_of = rows.map(|row| newest(row).unwrap_or(NONE)).collect();
        Ok(Drawn { entry_of, codes: published.into(), quasi: d })
    }
}
