//! The publisher's memory of worlds: whose sensitive value, and what travels with it, everybody carries in each of them.
//!
//! Of everybody the memory has the identifiers of `l - 1` *partners*, and a *commitment* of every value that travels: a hash with a salt
//! that is drawn for everybody, by which a changed value is noticed and equal values do not look equal. A commitment is no secret to who has
//! the memory and can guess the value.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::seals::Seals;
use crate::error::{Error, Result, thousands};
use crate::methods::seen::Seen;
use crate::microdata::{
    Codes, Commitments, Encoded, EncodedColumns, FORMER_PARTNERS_NAME, HashKey, IdentifierBuilder, Identifiers, Layout,
    PARTNERS_NAME, copied_rows, held, name_of, partners_commitment, quasi_name_of, room,
};
use crate::release::{COMMITMENTS, PARTNERS, Published, commitments_type, signature_type};

/// Column of ledgers: the values that were sealed, of columns that were published then; NULL of others.
pub(super) const VALUES: &str = "sealed_values";

/// Instead of a number: there is none.
pub(super) const NONE: u32 = u32::MAX;

/// Entries, or rows, that are looked at on one core.
const PIECE: usize = 1 << 10;

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
    /// People whose worlds were made by a version whose worlds are not equally likely.
    pub former: usize,
    /// Rows of people who have left, whose values somebody who is there carries in some world.
    pub ghosts: usize,
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

    /// The same of all rows, row after row; of those that have none, numbers that are of no row.
    pub fn of_all(&self) -> &[u32] {
        &self.of
    }

    /// Follows rows that are put in another order, which names each of them once.
    pub(super) fn put_in_order(&mut self, order: &[u32]) {
        if self.width > 0 {
            let place_of: Vec<AtomicU32> = room(order.len());
            order.par_iter().enumerate().with_min_len(PIECE).for_each(|(place, &row)| {
                place_of[row as usize].store(place as u32, Ordering::Relaxed);
            });
            self.of = copied_rows(&self.of, self.width, order);
            let known = self.of.par_iter_mut().with_min_len(PIECE).filter(|partner| **partner != NONE);
            known.for_each(|partner| *partner = place_of[*partner as usize].load(Ordering::Relaxed));
        }
        if !self.sealed.is_empty() {
            self.sealed = copied_rows(&self.sealed, 1, order);
        }
    }

    /// Whether all values of a row that travel are sealed.
    pub fn is_sealed(&self, row: u32) -> bool {
        self.sealed.get(row as usize).copied().unwrap_or(false)
    }
}

/// What is remembered, person by person.
pub(super) struct Memory {
    pub(super) known: Identifiers,
    /// Person of each entry.
    pub(super) person_of: Vec<u32>,
    pub(super) people: usize,
    /// Whose values everybody carries in each world but the true one, person after person.
    pub(super) carried: Vec<u32>,
    /// Partners of everybody.
    pub(super) width: usize,
    seals: Seals,
    /// The values that were sealed, entry after entry, if they are remembered.
    pub(super) values: Option<StructArray>,
    former: usize,
}

impl Memory {
    /// For each entry the hashes of the names of its sealed columns.
    pub(super) fn sealed(&self) -> impl Iterator<Item = impl Iterator<Item = i64> + '_> {
        self.seals.names_of_each()
    }

    /// What is remembered of the rows of microdata, of which so many are of people who have left.
    ///
    /// # Errors
    /// When a column travelled when the worlds were made and is not to travel now, or was another kind of column.
    pub(super) fn of_rows(self, columns: &EncodedColumns<'_>, ghosts: usize) -> Result<Partners> {
        let EncodedColumns { sensitive, other, .. } = *columns;
        let Some(microdata) = columns.identifiers else { return Err(Error::internal("worlds of nobody")) };
        let quasi: Vec<&str> = columns.quasi.iter().map(|column| column.attribute.field.name().as_str()).collect();
        // Hashes of the names of all columns that were sealed.
        let names = self.seals.names();
        refuse_other_roles(&names, sensitive, other, &quasi)?;
        let Self { known, person_of, people, carried, width, seals, values, former } = self;

        let arrivals: Vec<u32> = microdata.order().collect();
        let found = microdata.find_in(&known)?;
        let row_of: Vec<AtomicU32> = (0..people).into_par_iter().map(|_| AtomicU32::new(NONE)).collect();
        found.par_iter().enumerate().with_min_len(PIECE).for_each(|(row, entry)| {
            if let Some(entry) = entry {
                row_of[person_of[entry as usize] as usize].store(row as u32, Ordering::Relaxed);
            }
        });
        let row_of = |person: u32| row_of[person as usize].load(Ordering::Relaxed);
        let mut of = vec![NONE; found.len() * width];
        let pieces = of.par_chunks_mut(PIECE * width.max(1)).enumerate();
        pieces.for_each_init(Vec::new, |persons, (piece, of)| {
            // One step for all of them, and then the next one: what is looked at is all over the memory.
            let person = |row: usize| found.at(row).map_or(NONE, |entry| person_of[entry as usize]);
            persons.clear();
            persons.extend((piece * PIECE..).take(of.len() / width).map(person));
            for (of, &person) in of.chunks_exact_mut(width).zip(&*persons).filter(|(_, person)| **person != NONE) {
                of.copy_from_slice(&carried[person as usize * width..][..width]);
            }
            for (place, of) in of.iter_mut().enumerate().filter(|(_, of)| **of != NONE) {
                let mut partner = *of;
                // Whoever has left carries what somebody else has; at last one comes back to somebody who is there.
                while row_of(partner) == NONE {
                    partner = carried[partner as usize * width + place % width];
                }
                *of = row_of(partner);
            }
        });
        // Where values are remembered, whoever is still missing is missed in no world: all of their ring are, or nothing travels.
        let missing =
            if values.is_some() { 0 } else { (0..people as u32).filter(|&person| row_of(person) == NONE).count() };

        let kinds = sensitive.map(|column| (column, true)).into_iter();
        // A column that was sensitive may be published without being the sensitive one of a release.
        let was_sensitive = |column: &Encoded| names.contains(&name_of(column.attribute.field.name(), true));
        let kinds = kinds.chain(other.iter().map(|column| (column, was_sensitive(column))));
        let (travelling, kinds): (Vec<&Encoded>, Vec<bool>) = kinds.unzip();
        let columns =
            travelling.iter().zip(kinds).map(|(column, sensitive)| Commitments::of(&column.attribute, sensitive));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let place_of: FxHashMap<i64, usize> = columns.iter().enumerate().map(|(j, column)| (column.name, j)).collect();
        // Which columns of each row are sealed, and whether any has changed.
        let (n, width_of_row) = (found.len(), columns.len());
        let [noted, changed]: [Vec<AtomicBool>; 2] = [room(n * width_of_row), room(n)];
        seals.in_pieces(|entries, sealed| {
            let first = entries.start;
            let rows: Vec<u32> = entries.map(|entry| row_of(person_of[entry])).collect();
            let arrivals: Vec<u32> = rows.iter().map(|&row| arrivals.get(row as usize).map_or(0, |&at| at)).collect();
            let codes_of = |column: &&Encoded| arrivals.iter().map(|&arrival| column.codes.at(arrival)).collect();
            let codes: Vec<Vec<u32>> = if n == 0 { Vec::new() } else { travelling.iter().map(codes_of).collect() };
            for (entry, salt, pairs) in sealed.filter(|(entry, ..)| rows[entry - first] != NONE) {
                let row = rows[entry - first] as usize;
                for (name, commitment) in pairs {
                    let Some(&j) = place_of.get(&name) else { continue };
                    noted[row * width_of_row + j].store(true, Ordering::Relaxed);
                    if columns[j].to(salt, codes[j][entry - first]) != commitment {
                        changed[row].store(true, Ordering::Relaxed);
                    }
                }
            }
        });
        let is = |noted: &AtomicBool| noted.load(Ordering::Relaxed);
        let rows = (0..n).into_par_iter().with_min_len(PIECE);
        let sealed = rows.map(|row| noted[row * width_of_row..][..width_of_row].iter().all(is)).collect();
        let changed = changed.par_iter().with_min_len(PIECE).filter(|changed| is(changed)).count();
        Ok(Partners { of, width, sealed, missing, changed, former, ghosts })
    }
}

/// Who carries whose values in each world, person after person.
fn carried(
    known: &Identifiers,
    partners: IdentifierBuilder,
    key: HashKey,
    lengths: &Codes,
    person_of: &[u32],
    people: usize,
) -> Result<Vec<u32>> {
    let who = known.places_of(&partners, key)?;
    drop(partners);
    let width = lengths.iter().find(|&length| length > 0).unwrap_or(0) as usize;
    if lengths.iter().any(|length| length != 0 && length as usize != width) {
        return Err(refused("has entries with different numbers of partners, so it is of several l"));
    }
    let carried: Vec<AtomicU32> = (0..people * width).into_par_iter().map(|_| AtomicU32::new(NONE)).collect();
    let entries = |piece: usize| piece * PIECE..lengths.len().min((piece + 1) * PIECE);
    let with_partners = |piece: usize| lengths.part(entries(piece)).filter(|&length| length > 0).count();
    let starts = (0..lengths.len().div_ceil(PIECE)).scan(0, |end, piece| {
        let start = *end;
        *end += with_partners(piece) * width;
        Some((piece, start))
    });
    let starts: Vec<(usize, usize)> = starts.collect();
    let has_entry: Vec<AtomicBool> = room(people);
    let twice = starts.into_par_iter().map(|(piece, mut start)| {
        let mut twice = 0;
        for (length, &person) in lengths.part(entries(piece)).zip(&person_of[entries(piece)]) {
            if length == 0 {
                continue;
            }
            // Of two, either one is the second: whose partners count does not matter, for there is no release then.
            twice += usize::from(has_entry[person as usize].swap(true, Ordering::Relaxed));
            for (place, at) in carried[person as usize * width..][..width].iter().zip(start..) {
                let partner = who.at(at).map_or(NONE, |entry| person_of[entry as usize]);
                place.store(partner, Ordering::Relaxed);
            }
            start += width;
        }
        twice
    });
    let twice: usize = twice.sum();
    if twice > 0 {
        return Err(refused(&format!("gives {} people two entries with partners", thousands(twice))));
    }
    // In their place.
    let carried: Vec<u32> = carried.into_iter().map(AtomicU32::into_inner).collect();
    // Every world must be the true one with people's values dealt anew, or the release would have rows too many.
    let of_world = |world: usize| carried.iter().skip(world).step_by(width).copied();
    let is_dealt = |world| Seen::once(people, of_world(world)).is_some_and(|seen| seen.is_all());
    if (people == 0 || width > 0) && (0..width).into_par_iter().all(is_dealt) {
        return Ok(carried);
    }
    let strays = (0..width).into_par_iter().map(|world| {
        let mut taken = vec![false; people];
        let mut is_stray = |partner: &u32| *partner == NONE || std::mem::replace(&mut taken[*partner as usize], true);
        of_world(world).filter(|partner| is_stray(partner)).count()
    });
    Err(refused(&format!(
        "is not complete: {} partners are missing from it; pass everything that sequential_worlds returned, for all batches of \
         people, unchanged",
        thousands(strays.sum())
    )))
}

const FORGED: &str = "is not what sequential_worlds returned: the partners of some people are others than those that were drawn; pass \
     everything that it returned, for all batches of people, unchanged";

const UNPAIRED: &str = "is not what sequential_worlds returned: a seal of somebody is without its column; pass everything that it returned, for \
     all batches of people, unchanged";

fn refused(what: &str) -> Error {
    Error::refused(format!("`worlds` {what}"))
}

/// Reads the memory.
#[derive(Debug)]
pub(super) struct WorldsReader {
    identifiers: IdentifierBuilder,
    /// Of all entries, one after the other.
    partners: IdentifierBuilder,
    /// How many partners each entry has.
    lengths: Codes,
    seals: Seals,
    /// Entries whose partners are not those that were sealed.
    forged: usize,
    /// Entries whose partners are those of an earlier version.
    former: usize,
    /// The values that were sealed, batch by batch, if they are remembered.
    values: Vec<StructArray>,
}

impl WorldsReader {
    /// For identifiers of this type.
    pub(super) fn new(identifier: &DataType) -> Self {
        Self {
            identifiers: IdentifierBuilder::new(identifier.clone()),
            partners: IdentifierBuilder::new(identifier.clone()),
            lengths: Codes::default(),
            seals: Seals::default(),
            forged: 0,
            former: 0,
            values: Vec::new(),
        }
    }

    /// Appends a batch: identifiers, lists of partners, lists of commitments, and the values that these are to, if they are remembered.
    ///
    /// # Errors
    /// When an entry lacks one of them.
    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let [ids, partners, commitments, rest @ ..] = batch.columns() else {
            return Err(Error::internal("worlds without partners and seals"));
        };
        let (partners, of_partners) = items(partners)?;
        let (commitments, of_commitments) = items(commitments)?;
        if ids.null_count() + partners.null_count() + commitments.null_count() > 0 {
            return Err(refused("has NULL in it; pass what sequential_worlds returned, unchanged"));
        }
        if let Some(values) = rest.first().and_then(|column| column.as_struct_opt()) {
            // As views, texts in one piece may be long.
            let columns = values.columns().iter().map(held).collect::<Result<Vec<_>>>()?;
            let fields = values.fields().iter().zip(&columns);
            let fields = fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
            self.values.push(StructArray::try_new(fields.collect(), columns, None)?);
        }
        self.identifiers.append(ids)?;
        self.partners.append(&partners)?;
        let commitments = cast(&commitments, &DataType::Int64)?;
        let values: &[i64] = commitments.as_primitive::<Int64Type>().values();
        self.seals.append(values, of_commitments.iter().copied());
        self.lengths.extend(&of_partners.iter().map(|&partners| partners as u32).collect::<Vec<_>>());
        let lengths: Vec<(usize, usize)> = of_partners.into_iter().zip(of_commitments).collect();
        for (forged, former) in Self::unsealed(partners.as_ref(), values, &lengths)? {
            self.forged += forged;
            self.former += former;
        }
        Ok(())
    }

    /// How many entries of a batch have partners that are not those that were sealed, and how many those of an earlier version; of one piece after
    /// the other.
    fn unsealed(partners: &dyn Array, commitments: &[i64], lengths: &[(usize, usize)]) -> Result<Vec<(usize, usize)>> {
        let mut starts = Vec::new();
        let mut start = (0, 0);
        for piece in lengths.chunks(PIECE) {
            starts.push(start);
            piece.iter().for_each(|length| start = (start.0 + length.0, start.1 + length.1));
        }
        let of_piece = |(piece, &(mut start, mut sealed)): (&[(usize, usize)], &(usize, usize))| {
            let options = FormatOptions::new();
            let texts = ArrayFormatter::try_new(partners, &options)?;
            let (mut forged, mut former) = (0, 0);
            for &(length, seals) in piece {
                let own = &commitments[sealed..sealed + seals];
                sealed += seals;
                // A salt, and pairs.
                if seals > 0 && seals % 2 == 0 {
                    return Err(refused(UNPAIRED));
                }
                if length > 0 {
                    let [salt, pairs @ ..] = own else { return Err(refused(FORGED)) };
                    let is_sealed = |name| -> Result<bool> {
                        let commitment = partners_commitment(name, *salt, &texts, start..start + length)?;
                        Ok(pairs.chunks_exact(2).any(|pair| pair == [name, commitment]))
                    };
                    if !is_sealed(PARTNERS_NAME)? {
                        let is_former = is_sealed(FORMER_PARTNERS_NAME)?;
                        former += usize::from(is_former);
                        forged += usize::from(!is_former);
                    }
                }
                start += length;
            }
            Ok((forged, former))
        };
        lengths.par_chunks(PIECE).zip(&starts).map(of_piece).collect()
    }

    /// What it says, person by person. `key` orders identifiers.
    ///
    /// # Errors
    /// When the memory is incomplete, was changed, or contradicts itself.
    pub(super) fn finish(self, key: HashKey) -> Result<Memory> {
        self.refuse_forged()?;
        let Self { identifiers, partners, lengths, seals, values, former, .. } = self;
        let known = identifiers.finish(key)?;
        if known.nulls() > 0 {
            return Err(refused("has entries without an identifier"));
        }
        let mut person_of = vec![NONE; lengths.len()];
        let mut people = 0;
        for run in known.runs()? {
            run.iter().for_each(|entry| person_of[entry.row() as usize] = people);
            people += 1;
        }
        let people = people as usize;
        let carried = carried(&known, partners, key, &lengths, &person_of, people)?;
        let width = carried.len().checked_div(people).unwrap_or(0);
        let values = match values.is_empty() {
            true => None,
            false => {
                let chunks: Vec<&dyn Array> = values.iter().map(|chunk| chunk as &dyn Array).collect();
                Some(concat(&chunks)?.as_struct().clone())
            }
        };
        Ok(Memory { known, person_of, people, carried, width, seals, values, former })
    }

    fn refuse_forged(&self) -> Result<()> {
        match self.forged {
            0 => Ok(()),
            _ => Err(refused(FORGED)),
        }
    }

    /// Bytes held, and bytes that the end needs: of each entry and partner a number, a place and a row.
    pub(super) fn size(&self) -> usize {
        self.identifiers.size()
            + 2 * self.partners.size()
            + self.seals.size()
            + self.lengths.size()
            + 32 * self.lengths.len()
            // They are put in one piece.
            + 2 * self.values.iter().map(Array::get_array_memory_size).sum::<usize>()
    }
}

/// How many entries with these commitments have the worlds of earlier versions.
///
/// # Errors
/// When they are no lists of numbers.
pub(crate) fn former_worlds(commitments: &ArrayRef) -> Result<usize> {
    let (commitments, lengths) = items(commitments)?;
    let commitments = cast(&commitments, &DataType::Int64)?;
    let mut rest: &[i64] = commitments.as_primitive::<Int64Type>().values();
    let is_former = |length: usize| {
        let (own, others) = rest.split_at(length);
        rest = others;
        own.iter().skip(1).step_by(2).any(|&name| name == FORMER_PARTNERS_NAME)
    };
    Ok(lengths.into_iter().map(is_former).filter(|&is| is).count())
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

/// Columns of an entry, but for whom it is about and the release that it is from; with `values`, those that the commitments are to.
pub(super) fn fields(identifier: &FieldRef, layout: &Layout, values: bool) -> Vec<Field> {
    let mut fields = vec![
        Field::new(PARTNERS, signature_type(identifier.data_type()), false),
        Field::new(COMMITMENTS, commitments_type(), false),
    ];
    if values {
        let travelling = layout.sensitive.iter().chain(layout.beside());
        let value = |field: &FieldRef| Field::new(field.name(), field.data_type().clone(), true);
        fields.push(Field::new(VALUES, DataType::Struct(travelling.map(value).collect()), false));
    }
    fields
}

/// The members who get an entry: people without worlds, or with values that are not sealed yet.
pub(super) fn members(published: &Published, known: &Partners) -> Vec<u32> {
    published.members(|row| known.of(row).is_none() || !known.is_sealed(row))
}

/// Their entries, with values if `schema` has them.
///
/// # Errors
/// When Arrow fails to gather values.
pub(super) fn entries(published: &Published, members: &[u32], schema: &Schema) -> Result<Vec<ArrayRef>> {
    let mut columns = vec![published.partners(members)?, published.commitments(members)?];
    if let Ok(values) = schema.field_with_name(VALUES)
        && let DataType::Struct(fields) = values.data_type()
    {
        let arrays = fields.iter().map(|field| published.travelling(field, members)).collect::<Result<Vec<_>>>()?;
        columns.push(Arc::new(StructArray::try_new(fields.clone(), arrays, None)?));
    }
    Ok(columns)
}

/// Columns that travel in one release and not in another would tell which world is the true one; and in a column that was not the
/// sensitive one when the worlds were made, people can have the same value in several worlds.
fn refuse_other_roles(
    known: &FxHashSet<i64>,
    sensitive: Option<&Encoded>,
    other: &[Encoded],
    quasi: &[&str],
) -> Result<()> {
    if known.is_empty() {
        return Ok(());
    }
    let travelled = |name: &&&str| known.contains(&name_of(name, true)) || known.contains(&name_of(name, false));
    if let Some(name) = quasi.iter().find(travelled) {
        return Err(Error::refused(format!(
            "column {name} was sensitive, or one of the others, when the worlds were made; as a quasi-identifier it would tell which world is \
             the true one: leave it out of quasi, and give it as sensitive or in other"
        )));
    }
    let name_of_column = |column: &Encoded| column.attribute.field.name().clone();
    let mut travelling = sensitive.into_iter().chain(other).map(name_of_column);
    if let Some(name) = travelling.find(|name| known.contains(&quasi_name_of(name))) {
        return Err(Error::refused(format!(
            "column {name} was a quasi-identifier when the worlds were made, so that readers may know it of everybody; as a column that \
             travels it would tell them which world is the true one: give it in quasi, or leave it out"
        )));
    }
    let Some(name) = sensitive.map(name_of_column) else { return Ok(()) };
    if known.contains(&name_of(&name, false)) {
        return Err(Error::refused(format!(
            "column {name} was one of the others when the worlds were made, so that people can have the same value in several worlds: give it \
             in other, or make worlds, for another series of releases of other people, in which it is sensitive"
        )));
    }
    match known.contains(&name_of(&name, true)) {
        true => Ok(()),
        false => Err(Error::refused(format!(
            "column {name} is not the sensitive column that the worlds were made for, so that people can have the same value of it in several \
             worlds: give it in other, if no reader knows it of anybody, or make worlds, for another series of releases of other people, in \
             which it is sensitive"
        ))),
    }
}

/// Worlds with other partners, sealed as if they had been drawn, by an earlier version if `former`: for the examples of papers.
#[cfg(test)]
pub(in crate::methods) fn resealed(
    worlds: &RecordBatch,
    partners: &datafusion::arrow::array::ListArray,
    former: bool,
) -> RecordBatch {
    use datafusion::arrow::array::{Int64Builder, ListBuilder};

    let name = if former { FORMER_PARTNERS_NAME } else { PARTNERS_NAME };
    let sealed = worlds.column(2).as_list::<i32>();
    let options = FormatOptions::new();
    let texts = ArrayFormatter::try_new(partners.values().as_ref(), &options).unwrap();
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in 0..worlds.num_rows() {
        let own = sealed.value(row);
        let own = own.as_primitive::<Int64Type>().values();
        lists.values().append_value(own[0]);
        own[1..]
            .chunks_exact(2)
            .filter(|pair| pair[0] != PARTNERS_NAME)
            .for_each(|pair| lists.values().append_slice(pair));
        let range = partners.value_offsets()[row] as usize..partners.value_offsets()[row + 1] as usize;
        lists.values().append_slice(&[name, partners_commitment(name, own[0], &texts, range).unwrap()]);
        lists.append(true);
    }
    let columns: Vec<ArrayRef> =
        vec![ArrayRef::clone(worlds.column(0)), Arc::new(partners.clone()), Arc::new(lists.finish())];
    RecordBatch::try_new(worlds.schema(), columns).unwrap()
}
