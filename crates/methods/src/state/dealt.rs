//! The publisher's memory of rings whose quasi-identifiers were dealt: for ever, who is in a ring with whom, in which order, with which
//! sensitive value, and whose quasi-identifiers everybody's row shows.
//!
//! Of a ring of which somebody is there, all rows are published: those of who is not are *ghosts*, counterfeits with the sensitive value that was
//! published, and with the quasi-identifiers of the next person in the order of the ring who is there. The order was drawn uniformly, and
//! has nothing to do with values. So who is a ghost, and what the rows show, follows from who is there and from everybody's
//! quasi-identifiers, whoever has which value.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Int64Type};

use super::worlds::NONE;
use crate::error::{Error, Result};
use crate::microdata::{ColumnEncoder, EncodedColumns, HashKey, IdentifierBuilder, Identifiers};
use crate::microdata::{MicrodataBuilder, OfGhosts};
use crate::release::Published;

/// Column of a ledger: the sensitive value that somebody is published with.
pub const VALUE: &str = "sensitive_value";
/// Column of a ledger: somebody's place in the order of their ring, from 0.
pub const PLACE: &str = "place";
/// Column of a ledger: for each quasi-identifier, the place in the ring of the person whose value somebody's row shows.
pub const SHOWN: &str = "shown_places";

/// Rings of earlier releases with somebody of the microdata; all others are as ghosts.
#[derive(Debug, Clone, Default)]
pub struct Dealt {
    /// Rows, ring after ring, each in its order.
    rows: Vec<u32>,
    /// End of each ring.
    ends: Vec<u32>,
    /// Place in the ring of the shown person, for each row and quasi-identifier.
    shown: Vec<u32>,
    quasi: usize,
    /// True for rows that are in these rings; empty if none is.
    known: Vec<bool>,
    /// Rows of people who have left.
    pub ghosts: usize,
    /// People whose sensitive value is another one than was published.
    pub changed: usize,
}

impl Dealt {
    /// Returns true if a row is in a ring of an earlier release.
    #[inline]
    pub fn is_known(&self, row: u32) -> bool {
        self.known.get(row as usize).copied().unwrap_or(false)
    }

    /// Returns the rings, each with its rows and what these show.
    pub fn rings(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let ring = start..end as usize;
            start = ring.end;
            (&self.rows[ring.clone()], &self.shown[ring.start * self.quasi..ring.end * self.quasi])
        })
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[derive(Debug)]
pub(super) struct DealtReader {
    identifiers: IdentifierBuilder,
    /// Provisional codes of sensitive values.
    values: Vec<u32>,
    /// The release that drew each entry's ring, and its number there.
    rings: Vec<[i64; 2]>,
    places: Vec<u32>,
    /// Entry after entry.
    shown: Vec<u32>,
    quasi: usize,
    codes: Vec<u32>,
}

fn not_as_written() -> Error {
    Error::internal("entries of the ledger that are not those that were written")
}

impl DealtReader {
    pub(super) fn new(identifier: DataType, quasi: usize) -> Self {
        Self {
            identifiers: IdentifierBuilder::new(identifier),
            values: Vec::new(),
            rings: Vec::new(),
            places: Vec::new(),
            shown: Vec::new(),
            quasi,
            codes: Vec::new(),
        }
    }

    /// Appends a batch. Sensitive values join the domain, so that codes agree.
    /// Fails when it is not one that was written.
    pub(super) fn append(&mut self, batch: &RecordBatch, sensitive: &mut ColumnEncoder) -> Result<()> {
        let [ids, values, rings, places, shown, releases] = batch.columns() else { return Err(not_as_written()) };
        let whole = batch.columns().iter().all(|column| column.null_count() == 0);
        let shown = shown.as_list_opt::<i32>().filter(|_| whole).ok_or_else(not_as_written)?;
        let lengths = shown.value_offsets().windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        if lengths.into_iter().any(|length| length != self.quasi) {
            return Err(not_as_written());
        }
        let (first, last) = (shown.value_offsets()[0], shown.value_offsets()[batch.num_rows()]);
        let items = cast(&shown.values().slice(first as usize, (last - first) as usize), &DataType::Int32)?;
        let number = |&place: &i32| u32::try_from(place).unwrap_or(NONE);
        self.shown.extend(items.as_primitive::<Int32Type>().values().iter().map(number));
        let places = cast(places, &DataType::Int32)?;
        self.places.extend(places.as_primitive::<Int32Type>().values().iter().map(number));
        let [rings, releases] = [cast(rings, &DataType::Int64)?, cast(releases, &DataType::Int64)?];
        let rings = rings.as_primitive::<Int64Type>().values().iter();
        let releases = releases.as_primitive::<Int64Type>().values().iter();
        self.rings.extend(releases.zip(rings).map(|(&release, &ring)| [release, ring]));
        sensitive.encode(values, &mut self.codes)?;
        self.values.extend_from_slice(&self.codes);
        self.identifiers.append(ids)
    }

    /// Returns the bytes held, and bytes that the end needs: of each entry a place in order, where its row is, and what it shows once more.
    pub(super) fn size(&self) -> usize {
        let of_entry = size_of::<[i64; 2]>() + 2 * size_of::<u32>();
        let kept = self.rings.capacity() * of_entry + self.shown.capacity() * size_of::<u32>();
        let needed = self.rings.len() * (4 + self.quasi) * size_of::<u32>();
        self.identifiers.size() + kept + needed
    }

    /// Finishes the memory, ring by ring. `key` orders identifiers.
    /// Fails when somebody has two entries or none, or a ring is not whole.
    pub(super) fn finish(self, key: HashKey) -> Result<Memory> {
        let Self { identifiers, values, rings, places, shown, quasi, .. } = self;
        let known = identifiers.finish(key)?;
        if known.nulls() > 0 || known.repeated()? > 0 {
            return Err(not_as_written());
        }
        let mut order: Vec<u32> = (0..rings.len() as u32).collect();
        order.sort_unstable_by_key(|&entry| (rings[entry as usize], places[entry as usize]));
        let mut ends = Vec::new();
        let (mut end, mut seen) = (0, Vec::new());
        for ring in order.chunk_by(|&a, &b| rings[a as usize] == rings[b as usize]) {
            let in_order = ring.iter().zip(0..).all(|(&entry, place)| places[entry as usize] == place);
            let dealt = (0..quasi).all(|j| {
                seen.clear();
                seen.resize(ring.len(), false);
                let mut shown = ring.iter().map(|&entry| shown[entry as usize * quasi + j] as usize);
                shown.all(|place| seen.get_mut(place).is_some_and(|seen| !std::mem::replace(seen, true)))
            });
            if !in_order || !dealt {
                return Err(not_as_written());
            }
            end += ring.len() as u32;
            ends.push(end);
        }
        Ok(Memory { known, order, ends, values, shown, quasi })
    }
}

pub(super) struct Memory {
    known: Identifiers,
    /// Entries, ring after ring, each in its order.
    order: Vec<u32>,
    ends: Vec<u32>,
    /// Provisional code of each entry's sensitive value.
    values: Vec<u32>,
    /// Person that each entry shows.
    shown: Vec<u32>,
    quasi: usize,
}

impl Memory {
    fn rings(&self) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let ring = &self.order[start..end as usize];
            start = end as usize;
            ring
        })
    }

    /// Appends the rows of people who stay as ghosts, and returns their number.
    ///
    /// # Errors
    /// NULL or repeated identifiers.
    pub(super) fn append_ghosts(&self, microdata: &mut MicrodataBuilder, key: HashKey) -> Result<usize> {
        let rows = microdata.people(key)?;
        let mut present = vec![NONE; self.order.len()];
        for (arrival, entry) in rows.order().zip(rows.find_in(&self.known)?.iter()) {
            if let Some(entry) = entry {
                present[entry as usize] = arrival;
            }
        }
        let (mut ghosts, mut beside) = (Vec::new(), Vec::new());
        for ring in self.rings() {
            let row_of = |place: usize| present[ring[place % ring.len()] as usize];
            let Some(first) = (0..ring.len()).find(|&place| row_of(place) != NONE) else { continue };
            // From somebody who is there backwards round the ring: whoever is next in the order is known.
            let mut next = row_of(first);
            for place in (first + 1..first + ring.len()).rev() {
                match row_of(place) {
                    NONE => {
                        ghosts.push(ring[place % ring.len()]);
                        beside.push(next);
                    }
                    row => next = row,
                }
            }
        }
        if ghosts.is_empty() {
            return Ok(0);
        }
        let values: Vec<u32> = ghosts.iter().map(|&entry| self.values[entry as usize]).collect();
        let sensitive = microdata.encoders().1.map(|encoder| FieldRef::clone(encoder.field()));
        let count = ghosts.len();
        let people = self.known.at(&UInt32Array::from(ghosts))?;
        microdata.append_beside(&people, &beside, |field| match sensitive.as_ref() == Some(field) {
            true => Ok(OfGhosts::Codes(values.clone())),
            // Columns that are kept: of these nothing is promised but that a counterfeit has somebody's value.
            false => Ok(OfGhosts::Beside),
        })?;
        Ok(count)
    }

    /// Finds the rings of the microdata's rows, many of them of people who left.
    /// Fails when there are no identifiers, or somebody of a ring has no row.
    pub(super) fn of_rows(self, columns: &EncodedColumns<'_>, ghosts: usize) -> Result<Dealt> {
        let Some(microdata) = columns.identifiers else { return Err(Error::internal("rings of nobody")) };
        let Some(sensitive) = columns.sensitive else { return Err(Error::internal("rings without values")) };
        let mut row_of = vec![NONE; self.order.len()];
        let mut known = vec![false; microdata.len()];
        let mut changed = 0;
        let found = microdata.find_in(&self.known)?;
        for (row, (entry, arrival)) in found.iter().zip(microdata.order()).enumerate() {
            let Some(entry) = entry else { continue };
            row_of[entry as usize] = row as u32;
            known[row] = true;
            let published = sensitive.ranks[self.values[entry as usize] as usize];
            changed += usize::from(sensitive.codes.at(arrival) != published);
        }
        let mut dealt = Dealt { quasi: self.quasi, known, ghosts, changed, ..Dealt::default() };
        for ring in self.rings() {
            let there = ring.iter().filter(|&&entry| row_of[entry as usize] != NONE).count();
            if there == 0 {
                continue;
            }
            if there < ring.len() {
                return Err(Error::internal("a ring that is not whole"));
            }
            for &entry in ring {
                dealt.rows.push(row_of[entry as usize]);
                dealt.shown.extend_from_slice(&self.shown[entry as usize * self.quasi..][..self.quasi]);
            }
            dealt.ends.push(dealt.rows.len() as u32);
        }
        Ok(dealt)
    }
}

/// Returns the columns of an entry between its person and the ring's release.
pub(super) fn fields(sensitive: &FieldRef) -> [Field; 4] {
    [
        Field::new(VALUE, sensitive.data_type().clone(), false),
        Field::new(super::RING, DataType::Int64, false),
        Field::new(PLACE, DataType::Int32, false),
        Field::new(SHOWN, DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true))), false),
    ]
}

/// Returns the members who get an entry: people whose ring is new.
pub(super) fn members(published: &Published, known: &Dealt) -> Vec<u32> {
    published.members(|row| !known.is_known(row))
}

/// Returns the entries of some members.
/// Fails when nothing was dealt, or Arrow fails to gather values.
pub(super) fn entries(published: &Published, members: &[u32]) -> Result<Vec<ArrayRef>> {
    let sensitive = &published.release().microdata.sensitive()?.field;
    let value = published.travelling(sensitive, members)?;
    Ok([value].into_iter().chain(published.dealt(members)?).collect())
}
