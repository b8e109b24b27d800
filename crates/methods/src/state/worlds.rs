//! The publisher's memory of worlds: whose sensitive value, and what travels with it, everybody carries in each of them.
//!
//! Of everybody the memory has the identifiers of `l - 1` *partners*, and a *commitment* of every value that travels: a hash with a salt
//! that is drawn for everybody, by which a changed value is noticed and equal values do not look equal. A commitment is no secret to who has
//! the memory and can guess the value.

mod persons;
mod reader;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use self::persons::Persons;
pub(super) use self::reader::WorldsReader;
#[cfg(test)]
pub(crate) use self::reader::resealed;

use super::seals::Seals;
use crate::error::{Error, Result};
use crate::microdata::{Commitments, Encoded, EncodedColumns, Identifiers, Layout, name_of, quasi_name_of};
use crate::release::{COMMITMENTS, PARTNERS, Published, commitments_type, signature_type};

/// Column of ledgers: the values that were sealed, of columns that were published then; NULL of others.
pub(super) const VALUES: &str = "sealed_values";

/// Instead of a number: there is none.
pub(super) const NONE: u32 = u32::MAX;

/// Entries, or rows, that are looked at on one core.
const PIECE: usize = 1 << 10;

/// Partners whose values the rows carry in the worlds made for them.
#[derive(Debug, Clone, Default)]
pub struct Partners {
    /// Rows of the partners, row after row of the microdata; `NONE` for people without worlds.
    of: Vec<u32>,
    /// Partners of everybody, `l - 1`; 0 if nobody has any.
    width: usize,
    /// True for rows all of whose values that travel are sealed.
    sealed: Vec<bool>,
    /// People with worlds who are not in the microdata.
    pub missing: usize,
    /// Rows of people whose sealed values are not what they were.
    pub changed: usize,
    /// Number of rows of people who left, whose values a present person carries.
    pub ghosts: usize,
}

impl Partners {
    /// Returns the number of partners of everybody who has any; 0 if nobody has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the rows whose values a row carries in each world but the true one. `None` if it has no worlds. Where
    /// partners have left, those whose values the partners carried stand in for them.
    #[inline]
    pub fn of(&self, row: u32) -> Option<&[u32]> {
        let partners = self.of.get(row as usize * self.width..)?.get(..self.width)?;
        (partners.first()? != &NONE).then_some(partners)
    }

    /// Returns the same of all rows, row after row; of those that have none, numbers that are of no row.
    pub fn of_all(&self) -> &[u32] {
        &self.of
    }

    /// Returns true if all values of a row that travel are sealed.
    pub fn is_sealed(&self, row: u32) -> bool {
        self.sealed.get(row as usize).copied().unwrap_or(false)
    }
}

/// Memory of worlds, person by person.
pub(super) struct Memory {
    pub(super) known: Identifiers,
    pub(super) persons: Persons,
    /// Partners whose values everybody carries in each world but the true one, person after person.
    pub(super) carried: Vec<u32>,
    /// Partners of everybody.
    pub(super) width: usize,
    seals: Seals,
    /// The values that were sealed, entry after entry, if they are remembered.
    pub(super) values: Option<StructArray>,
}

impl Memory {
    /// Returns for each entry the hashes of the names of its sealed columns.
    pub(super) fn sealed(&self) -> impl Iterator<Item = impl Iterator<Item = i64> + '_> {
        self.seals.names_of_each()
    }

    /// Finds the partners of the microdata's rows, many of them of people who left.
    /// Fails when a column travelled when the worlds were made and is not to travel now, or was another kind of column.
    pub(super) fn of_rows(self, columns: &EncodedColumns<'_>, ghosts: usize) -> Result<Partners> {
        let EncodedColumns { sensitive, other, .. } = *columns;
        let Some(microdata) = columns.identifiers else { return Err(Error::internal("worlds of nobody")) };
        let quasi: Vec<&str> = columns.quasi.iter().map(|column| column.attribute.field.name().as_str()).collect();
        // Hashes of the names of all columns that were sealed.
        let names = self.seals.names();
        refuse_other_roles(&names, sensitive, other, &quasi)?;
        let Self { known, persons, carried, width, seals, values } = self;

        let found = microdata.ranks_in(&known)?;
        let n = found.len();
        // What is not needed any more makes room for partners.
        drop(known);
        let people = persons.people;
        let mut row_of = vec![NONE; people];
        for (row, rank) in (0..).zip(found.iter()) {
            if let Some(rank) = rank {
                row_of[persons.at_rank(rank) as usize] = row;
            }
        }
        let mut of = vec![NONE; n * width];
        of.par_chunks_mut(width.max(1)).enumerate().with_min_len(PIECE).for_each(|(row, of)| {
            let Some(rank) = found.at(row) else { return };
            for (world, of) in of.iter_mut().enumerate() {
                let carried_by = |person: u32| carried[person as usize * width + world];
                let mut partner = carried_by(persons.at_rank(rank));
                // Whoever has left carries what somebody else has; at last one comes back to somebody who is there.
                while row_of[partner as usize] == NONE {
                    partner = carried_by(partner);
                }
                *of = row_of[partner as usize];
            }
        });
        // They are of rows now, and make room for what is looked up of these.
        drop((carried, found));
        // Where values are remembered, whoever is still missing is missed in no world: all of their ring are, or nothing travels.
        let everybody = if values.is_some() { 0 } else { people };
        let missing = row_of[..everybody].iter().filter(|&&row| row == NONE).count();

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
        let width_of_row = columns.len();
        let (mut noted, mut changed) = (vec![false; n * width_of_row], vec![false; n]);
        let arrivals: Vec<u32> = microdata.order().collect();
        for (entry, salt, pairs) in seals.iter() {
            let row = row_of[persons.of_entry[entry] as usize] as usize;
            let Some(&arrival) = arrivals.get(row) else { continue };
            for (name, commitment) in pairs {
                let Some(&j) = place_of.get(&name) else { continue };
                noted[row * width_of_row + j] = true;
                changed[row] |= columns[j].to(salt, travelling[j].codes.at(arrival)) != commitment;
            }
        }
        let sealed = (0..n).map(|row| noted[row * width_of_row..][..width_of_row].iter().all(|noted| *noted)).collect();
        let changed = changed.into_iter().filter(|changed| *changed).count();
        Ok(Partners { of, width, sealed, missing, changed, ghosts })
    }
}

fn refused(what: &str) -> Error {
    Error::refused(format!("`worlds` {what}"))
}

/// Returns the columns of an entry between its person and its release. With `values`, they include the values that the commitments are to.
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

/// Returns the members who get an entry: people without worlds, or with values that are not sealed yet.
pub(super) fn members(published: &Published, known: &Partners) -> Vec<u32> {
    published.members(|row| known.of(row).is_none() || !known.is_sealed(row))
}

/// Returns the entries of some members, with values if `schema` has them.
/// Fails when Arrow fails to gather values.
pub(super) fn entries(published: &Published, members: &[u32], schema: &Schema) -> Result<Vec<ArrayRef>> {
    let partners = published.partners(members)?;
    let commitments = published.commitments(members, &partners)?;
    let mut columns: Vec<ArrayRef> = vec![Arc::new(partners), Arc::new(commitments)];
    if let Ok(values) = schema.field_with_name(VALUES)
        && let DataType::Struct(fields) = values.data_type()
    {
        let arrays = fields.iter().map(|field| published.travelling(field, members)).collect::<Result<Vec<_>>>()?;
        columns.push(Arc::new(StructArray::try_new(fields.clone(), arrays, None)?));
    }
    Ok(columns)
}

/// Refuses other roles of columns than in the worlds. Columns that travel in one release and not in another would tell which world is the
/// true one; and in a column that was not the sensitive one when the worlds were made, people can have the same value in several worlds.
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
