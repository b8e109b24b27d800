//! The publisher's memory of perturbations: which values were drawn at random for everybody whose quasi-identifiers were these.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};

use crate::error::{Error, Result};
use crate::microdata::{ColumnEncoder, EncodedColumns, IdentifierBuilder};
use crate::release::Published;

/// Instead of an entry's number: there is none.
const NONE: u32 = u32::MAX;

/// Published values of the rows of microdata that are as they were.
#[derive(Debug, Clone, Default)]
pub struct Perturbations {
    /// Entry of each row; empty if nothing was ever drawn.
    entry_of: Vec<u32>,
    /// Published codes, entry after entry.
    codes: Arc<[u32]>,
    quasi: usize,
    /// Whether anybody was published before, as they are or otherwise.
    knows_anybody: bool,
}

impl Perturbations {
    /// Whether anybody of the whole table was published before, also with other quasi-identifiers.
    pub(super) fn knows_anybody(&self) -> bool {
        self.knows_anybody
    }

    /// The codes that a row published before, if its quasi-identifiers are still what they were.
    #[inline]
    pub fn of(&self, row: u32) -> Option<&[u32]> {
        let entry = *self.entry_of.get(row as usize)?;
        self.codes.get(entry as usize * self.quasi..)?.get(..self.quasi)
    }

    /// What is known of some of the rows.
    pub(super) fn part(&self, rows: &[u32]) -> Self {
        let entry_of = match self.entry_of.is_empty() {
            true => Vec::new(),
            false => rows.iter().map(|&row| self.entry_of[row as usize]).collect(),
        };
        Self { entry_of, codes: Arc::clone(&self.codes), ..*self }
    }
}

/// Reads entries: identifier, number of the release, the original and then the published value of every quasi-identifier.
#[derive(Debug)]
pub(super) struct PerturbationsReader {
    identifiers: IdentifierBuilder,
    releases: Vec<i64>,
    /// Provisional codes, column after column.
    columns: Vec<Vec<u32>>,
    codes: Vec<u32>,
}

impl PerturbationsReader {
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
            quasi[place % of_column].encode(values, &mut self.codes)?;
            column.extend_from_slice(&self.codes);
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
    ///
    /// # Errors
    /// When there are no identifiers, or Arrow fails.
    pub(super) fn finish(self, columns: &EncodedColumns<'_>) -> Result<Perturbations> {
        let EncodedColumns { key, quasi, .. } = *columns;
        let Some(microdata) = columns.identifiers else { return Err(Error::internal("entries of nobody")) };
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
            return Ok(Perturbations::default());
        }
        // Entries of one identifier stand together, found by the first of them.
        let mut last_of = vec![NONE; entries];
        let order: Vec<u32> = known.order().collect();
        let mut at = 0;
        for run in known.runs()? {
            at += run.len();
            last_of[run[0].row() as usize] = at as u32;
        }
        let mut place_of = vec![0; entries];
        order.iter().enumerate().for_each(|(place, &entry)| place_of[entry as usize] = place);
        let found = microdata.find_in(&known)?;
        let newest = |(first, arrival): (Option<u32>, u32)| {
            let first = first? as usize;
            let run = &order[place_of[first]..last_of[first] as usize];
            let same = |entry: &&u32| {
                let original = &originals[**entry as usize * d..][..d];
                quasi.iter().zip(original).all(|(column, &code)| column.codes.at(arrival) == code)
            };
            run.iter().filter(same).copied().max_by_key(|&entry| self.releases[entry as usize])
        };
        let knows_anybody = found.iter().any(|entry| entry.is_some());
        let rows = found.iter().zip(microdata.order());
        let entry_of = rows.map(|row| newest(row).unwrap_or(NONE)).collect();
        Ok(Perturbations { entry_of, codes: published.into(), quasi: d, knows_anybody })
    }
}

/// Column of an entry: the value that somebody has of a quasi-identifier, by its place from 0.
pub(crate) fn original_column(j: usize) -> String {
    format!("original_{}", j + 1)
}

/// Column of an entry: the one that was published in its place.
pub(crate) fn published_column(j: usize) -> String {
    format!("published_{}", j + 1)
}

/// Columns of an entry behind whom it is about and the release that it is from.
pub(super) fn fields(quasi: &[FieldRef]) -> impl Iterator<Item = Field> + '_ {
    [original_column, published_column].into_iter().flat_map(move |name| {
        let column = move |(j, quasi): (usize, &FieldRef)| Field::new(name(j), quasi.data_type().clone(), true);
        quasi.iter().enumerate().map(column)
    })
}

/// The members who get an entry: people for whom nothing was drawn, or not with these quasi-identifiers.
pub(super) fn members(published: &Published, known: &Perturbations) -> Vec<u32> {
    published.members(|row| known.of(row).is_none())
}

/// Their entries.
///
/// # Errors
/// When Arrow fails to gather values.
pub(super) fn entries(published: &Published, members: &[u32]) -> Result<Vec<ArrayRef>> {
    Ok([published.originals(members)?, published.exact(members)?].concat())
}
