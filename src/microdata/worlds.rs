//! The publisher's memory of worlds: whose sensitive value, and what travels with it, everybody carries in each of them.
//!
//! Of everybody the memory has the identifiers of `l - 1` *partners*, and a *seal* of every value that travels: a hash with a salt
//! that is drawn for everybody, by which a changed value is noticed and equal values do not look equal. A seal is no secret to who has
//! the memory and can guess the value.

use std::collections::HashMap;
use std::hash::Hasher;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use siphasher::sip::SipHasher13;

use super::{Attribute, Encoded, HashKey, IdentifierBuilder, Identifiers};
use crate::error::{Error, Result, thousands};

/// Column of the memory: the identifiers of everybody's partners, world by world; empty in entries that only add seals.
pub const PARTNERS: &str = "partners";
/// Column of the memory: a salt, and then for every sealed column the hash of its name and the seal of the value.
pub const SEALS: &str = "seals";

/// Instead of a number: there is none.
const NONE: u32 = u32::MAX;
/// Names are no secret.
const NAMES: HashKey = [0x7365_616c_6564_2063, 0x6f6c_756d_6e73_2e2e];

/// Whose values the rows of microdata carry in the worlds that were made for them.
#[derive(Debug, Clone, Default)]
pub struct Partners {
    /// Rows of the partners, row after row of the microdata; `NONE` for people without worlds.
    of: Vec<u32>,
    /// Partners of everybody, `l - 1`; 0 if nobody has any.
    width: usize,
    /// Whether all values of a row that travel are sealed.
    sealed: Vec<bool>,
    /// People with worlds who are not in the microdata.
    pub missing: usize,
    /// Rows of people whose sealed values are not what they were.
    pub changed: usize,
}

impl Partners {
    /// How many partners everybody has who has any; 0 if nobody has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The rows whose values a row carries in each world but the true one, if it has worlds. Where partners have left, those whose
    /// values the partners carried stand in for them.
    #[inline]
    pub fn of(&self, row: u32) -> Option<&[u32]> {
        let partners = self.of.get(row as usize * self.width..)?.get(..self.width)?;
        (partners.first()? != &NONE).then_some(partners)
    }

    /// Whether all values of a row that travel are sealed.
    pub fn is_sealed(&self, row: u32) -> bool {
        self.sealed.get(row as usize).copied().unwrap_or(false)
    }

    /// What is remembered of these rows. `travelling` are their columns that travel, identifiers hashed under `key`.
    ///
    /// # Errors
    /// When the memory is incomplete or contradicts itself.
    pub(super) fn of_rows(
        memory: WorldsBuilder,
        key: HashKey,
        microdata: &Identifiers,
        travelling: &[&Encoded],
    ) -> Result<Self> {
        let WorldsBuilder { identifiers, partners, lengths, seals, .. } = memory;
        let known = identifiers.finish(key)?;
        if known.nulls() > 0 {
            return Err(refused("has entries without an identifier"));
        }
        let mut person_of = vec![NONE; lengths.len()];
        let mut people = 0;
        for run in known.runs()? {
            run.iter().for_each(|entry| person_of[entry.1 as usize] = people);
            people += 1;
        }
        let carried = carried(&known, partners.finish(key)?, &lengths, &person_of, people as usize)?;
        let width = if people == 0 { 0 } else { carried.len() / people as usize };

        let arrivals: Vec<u32> = microdata.order().collect();
        let found = microdata.find_in(&known)?;
        let mut row_of = vec![NONE; people as usize];
        for (row, entry) in found.iter().enumerate() {
            if let Some(entry) = entry {
                row_of[person_of[*entry as usize] as usize] = row as u32;
            }
        }
        let mut of = vec![NONE; if width == 0 { 0 } else { found.len() * width }];
        for (person, &row) in row_of.iter().enumerate().filter(|(_, row)| **row != NONE) {
            for world in 0..width {
                // Whoever has left carries what somebody else has; at last one comes back to somebody who is there.
                let mut partner = carried[person * width + world];
                while row_of[partner as usize] == NONE {
                    partner = carried[partner as usize * width + world];
                }
                of[row as usize * width + world] = row_of[partner as usize];
            }
        }
        let missing = row_of.iter().filter(|row| **row == NONE).count();

        let columns = travelling.iter().map(|column| Seals::of(&column.attribute)).collect::<Result<Vec<_>>>()?;
        let place_of: HashMap<i64, usize> = columns.iter().enumerate().map(|(j, seals)| (seals.name, j)).collect();
        let mut noted = vec![false; found.len() * columns.len()];
        let mut changed = vec![false; found.len()];
        let mut start = 0;
        for (entry, &(_, length)) in lengths.iter().enumerate() {
            let of_entry = &seals[start..start + length];
            start += length;
            let row = row_of[person_of[entry] as usize];
            let [salt, pairs @ ..] = of_entry else { continue };
            if row == NONE {
                continue;
            }
            let row = row as usize;
            for pair in pairs.chunks_exact(2) {
                let Some(&j) = place_of.get(&pair[0]) else { continue };
                noted[row * columns.len() + j] = true;
                let code = travelling[j].codes[arrivals[row] as usize];
                changed[row] |= columns[j].seal(*salt, code) != pair[1];
            }
        }
        let sealed = (0..found.len()).map(|row| noted[row * columns.len()..][..columns.len()].iter().all(|&is| is));
        let changed = changed.into_iter().filter(|&is| is).count();
        Ok(Self { of, width, sealed: sealed.collect(), missing, changed })
    }
}

/// Who carries whose values in each world, person after person.
fn carried(
    known: &Identifiers,
    partners: Identifiers,
    lengths: &[(usize, usize)],
    person_of: &[u32],
    people: usize,
) -> Result<Vec<u32>> {
    let mut who = vec![NONE; partners.len()];
    let arrivals: Vec<u32> = partners.order().collect();
    for (arrival, entry) in arrivals.into_iter().zip(partners.find_in(known)?) {
        if let Some(entry) = entry {
            who[arrival as usize] = person_of[entry as usize];
        }
    }
    drop(partners);
    let width = lengths.iter().map(|lengths| lengths.0).find(|&length| length > 0).unwrap_or(0);
    if lengths.iter().any(|&(length, _)| length != 0 && length != width) {
        return Err(refused("has entries with different numbers of partners, so it is of several l"));
    }
    let mut carried = vec![NONE; people * width];
    let (mut start, mut twice) = (0, 0);
    for (&(length, _), &person) in lengths.iter().zip(person_of) {
        let place = &mut carried[person as usize * width..][..width];
        if length > 0 {
            twice += usize::from(place.iter().any(|&partner| partner != NONE));
            place.copy_from_slice(&who[start..start + length]);
        }
        start += length;
    }
    if twice > 0 {
        return Err(refused(&format!("gives {} people two entries with partners", thousands(twice))));
    }
    // Every world must be the true one with people's values dealt anew, or the release would have rows too many.
    let mut taken = vec![false; carried.len()];
    let strays = carried.iter().enumerate().filter(|&(place, &partner)| {
        partner == NONE || std::mem::replace(&mut taken[partner as usize * width + place % width], true)
    });
    match strays.count() {
        0 if people == 0 || width > 0 => Ok(carried),
        strays => Err(refused(&format!(
            "is not complete: {} partners are missing from it; pass everything that sequential_worlds returned, for all batches of \
             people, unchanged",
            thousands(strays)
        ))),
    }
}

fn refused(what: &str) -> Error {
    Error::refused(format!("`worlds` {what}"))
}

/// Reads the memory.
#[derive(Debug)]
pub struct WorldsBuilder {
    identifiers: IdentifierBuilder,
    /// Of all entries, one after the other.
    partners: IdentifierBuilder,
    seals: Vec<i64>,
    /// Partners and seals of each entry.
    lengths: Vec<(usize, usize)>,
}

impl WorldsBuilder {
    /// For identifiers of this type.
    pub fn new(identifier: &DataType) -> Self {
        Self {
            identifiers: IdentifierBuilder::new(identifier.clone()),
            partners: IdentifierBuilder::new(identifier.clone()),
            seals: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Appends a batch: identifiers, lists of partners, lists of seals.
    ///
    /// # Errors
    /// When an entry lacks one of them.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let [ids, partners, seals, ..] = batch.columns() else {
            return Err(Error::internal("worlds without partners and seals"));
        };
        let (partners, of_partners) = items(partners)?;
        let (seals, of_seals) = items(seals)?;
        if ids.null_count() + partners.null_count() + seals.null_count() > 0 {
            return Err(refused("has NULL in it; pass what sequential_worlds returned, unchanged"));
        }
        self.identifiers.append(ids)?;
        self.partners.append(&partners)?;
        self.seals.extend(cast(&seals, &DataType::Int64)?.as_primitive::<Int64Type>().values());
        self.lengths.extend(of_partners.into_iter().zip(of_seals));
        Ok(())
    }

    /// Bytes held, and bytes that the end needs: of each entry and partner a number, a place and a row.
    pub fn size(&self) -> usize {
        self.identifiers.size()
            + 2 * self.partners.size()
            + self.seals.capacity() * size_of::<i64>()
            + self.lengths.capacity() * (size_of::<(usize, usize)>() + 16)
    }
}

/// The items of lists, and the length of each list.
fn items(lists: &ArrayRef) -> Result<(ArrayRef, Vec<usize>)> {
    let item = match lists.data_type() {
        DataType::List(item) | DataType::LargeList(item) => item.clone(),
        other => return Err(Error::internal(format!("lists of type {other}"))),
    };
    if lists.null_count() > 0 {
        return Err(refused("has NULL in it; pass what sequential_worlds returned, unchanged"));
    }
    let lists = cast(lists, &DataType::LargeList(item))?;
    let lists = lists.as_list::<i64>();
    let offsets = lists.value_offsets();
    let (first, last) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    let lengths = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).collect();
    Ok((lists.values().slice(first, last - first), lengths))
}

/// Seals of one column.
struct Seals {
    name: i64,
    /// Hash of each value, by code.
    values: Vec<u64>,
}

impl Seals {
    fn of(attribute: &Attribute) -> Result<Self> {
        let name = attribute.field.name().as_bytes();
        let values = attribute.domain.values();
        let options = FormatOptions::new();
        let texts = ArrayFormatter::try_new(values.as_ref(), &options)?;
        let hash = |code: usize| -> Result<u64> {
            let mut hasher = SipHasher13::new_with_keys(NAMES[0], NAMES[1]);
            hasher.write(name);
            hasher.write_u8(u8::from(values.is_null(code)));
            hasher.write(texts.value(code).try_to_string()?.as_bytes());
            Ok(hasher.finish())
        };
        let mut hasher = SipHasher13::new_with_keys(NAMES[0], NAMES[1]);
        hasher.write(name);
        Ok(Self { name: hasher.finish() as i64, values: (0..values.len()).map(hash).collect::<Result<_>>()? })
    }

    fn seal(&self, salt: i64, code: u32) -> i64 {
        let mut hasher = SipHasher13::new_with_keys(salt as u64, self.name as u64);
        hasher.write_u64(self.values[code as usize]);
        hasher.finish() as i64
    }
}

/// Salt and seals of some rows, for the memory: of each attribute with the code that each row has.
///
/// # Errors
/// When Arrow cannot show values of a type as text.
pub fn seals(
    columns: &[(&Attribute, &dyn Fn(u32) -> u32)],
    rows: &[u32],
    salt_of: impl Fn(u32) -> i64,
) -> Result<Vec<i64>> {
    let sealing = columns.iter().map(|(attribute, _)| Seals::of(attribute)).collect::<Result<Vec<_>>>()?;
    let mut sealed = Vec::with_capacity(rows.len() * (1 + 2 * columns.len()));
    for &row in rows {
        let salt = salt_of(row);
        sealed.push(salt);
        for (seals, (_, code_of)) in sealing.iter().zip(columns) {
            sealed.push(seals.name);
            sealed.push(seals.seal(salt, code_of(row)));
        }
    }
    Ok(sealed)
}
