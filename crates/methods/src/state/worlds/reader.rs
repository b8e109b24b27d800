//! Reader of the memory of worlds, which checks that it is whole and unchanged.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use rayon::prelude::*;

use super::persons::Persons;
use super::{Memory, NONE, PIECE, refused};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Codes, HashKey, IdentifierBuilder, Identifiers, PARTNERS_NAME, held, partners_commitment};
use crate::seen::Seen;
use crate::state::seals::Seals;

const FORGED: &str = "is not what sequential_worlds returned: the partners of some people are others than those that were drawn; pass \
     everything that it returned, for all batches of people, unchanged";

const UNPAIRED: &str = "is not what sequential_worlds returned: a seal of somebody is without its column; pass everything that it returned, for \
     all batches of people, unchanged";

/// Reads the memory.
#[derive(Debug)]
pub(in crate::state) struct WorldsReader {
    identifiers: IdentifierBuilder,
    /// Of all entries, one after the other.
    partners: IdentifierBuilder,
    /// Number of partners of each entry.
    lengths: Codes,
    seals: Seals,
    /// Entries whose partners are not those that were sealed.
    forged: usize,
    /// The values that were sealed, batch by batch, if they are remembered.
    values: Vec<StructArray>,
}

impl WorldsReader {
    pub(in crate::state) fn new(identifier: &DataType) -> Self {
        Self {
            identifiers: IdentifierBuilder::new(identifier.clone()),
            partners: IdentifierBuilder::new(identifier.clone()),
            lengths: Codes::default(),
            seals: Seals::default(),
            forged: 0,
            values: Vec::new(),
        }
    }

    /// Appends a batch: identifiers, lists of partners, lists of commitments, and the values that these are to, if they are remembered.
    /// Fails when an entry lacks one of them.
    pub(in crate::state) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
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
        self.forged += Self::unsealed(partners.as_ref(), values, &lengths)?;
        Ok(())
    }

    /// Counts the entries of a batch whose partners are not the sealed ones.
    fn unsealed(partners: &dyn Array, commitments: &[i64], lengths: &[(usize, usize)]) -> Result<usize> {
        let mut starts = Vec::new();
        let mut start = (0, 0);
        for piece in lengths.chunks(PIECE) {
            starts.push(start);
            piece.iter().for_each(|length| start = (start.0 + length.0, start.1 + length.1));
        }
        let of_piece = |(piece, &(mut start, mut sealed)): (&[(usize, usize)], &(usize, usize))| {
            let options = FormatOptions::new();
            let texts = ArrayFormatter::try_new(partners, &options)?;
            let mut forged = 0;
            for &(length, seals) in piece {
                let own = &commitments[sealed..sealed + seals];
                sealed += seals;
                // A salt, and pairs.
                if seals > 0 && seals % 2 == 0 {
                    return Err(refused(UNPAIRED));
                }
                if length > 0 {
                    let [salt, pairs @ ..] = own else { return Err(refused(FORGED)) };
                    let sealed = [PARTNERS_NAME, partners_commitment(*salt, &texts, start..start + length)?];
                    forged += usize::from(!pairs.chunks_exact(2).any(|pair| pair == sealed));
                }
                start += length;
            }
            Ok(forged)
        };
        lengths.par_chunks(PIECE).zip(&starts).map(of_piece).try_reduce(|| 0, |one, other| Ok(one + other))
    }

    /// Finishes the memory, person by person. `key` orders identifiers.
    /// Fails when the memory is incomplete, was changed, or contradicts itself.
    pub(in crate::state) fn finish(self, key: HashKey) -> Result<Memory> {
        self.refuse_forged()?;
        let Self { identifiers, partners, lengths, seals, values, .. } = self;
        let known = identifiers.finish(key)?;
        if known.nulls() > 0 {
            return Err(refused("has entries without an identifier"));
        }
        let persons = Persons::try_new(&known)?;
        let carried = carried(&known, partners, key, &lengths, &persons)?;
        let width = carried.len().checked_div(persons.people).unwrap_or(0);
        let values = match values.is_empty() {
            true => None,
            false => {
                let chunks: Vec<&dyn Array> = values.iter().map(|chunk| chunk as &dyn Array).collect();
                Some(concat(&chunks)?.as_struct().clone())
            }
        };
        Ok(Memory { known, persons, carried, width, seals, values })
    }

    fn refuse_forged(&self) -> Result<()> {
        match self.forged {
            0 => Ok(()),
            _ => Err(refused(FORGED)),
        }
    }

    /// Returns the bytes held, and bytes that the end needs: of each entry and partner a number, a place and a row.
    pub(in crate::state) fn size(&self) -> usize {
        self.identifiers.size()
            + 2 * self.partners.size()
            + self.seals.size()
            + self.lengths.size()
            + 32 * self.lengths.len()
            // They are put in one piece.
            + 2 * self.values.iter().map(Array::get_array_memory_size).sum::<usize>()
    }
}

/// Returns the items of lists, and the length of each list.
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

/// Returns the person whose values everybody carries in each world, person after person.
fn carried(
    known: &Identifiers,
    partners: IdentifierBuilder,
    key: HashKey,
    lengths: &Codes,
    persons: &Persons,
) -> Result<Vec<u32>> {
    let people = persons.people;
    let who = known.ranks_of(&partners.in_one_piece()?, key)?;
    let width = lengths.iter().find(|&length| length > 0).unwrap_or(0) as usize;
    if lengths.iter().any(|length| length != 0 && length as usize != width) {
        return Err(refused("has entries with different numbers of partners, so it is of several l"));
    }
    let (mut carried, mut has_entry) = (vec![NONE; people * width], vec![false; people]);
    let (mut partners, mut twice) = (who.iter(), 0);
    for (_, &person) in lengths.iter().zip(&persons.of_entry).filter(|(length, _)| *length > 0) {
        twice += usize::from(std::mem::replace(&mut has_entry[person as usize], true));
        for (place, rank) in carried[person as usize * width..][..width].iter_mut().zip(&mut partners) {
            *place = rank.map_or(NONE, |rank| persons.at_rank(rank));
        }
    }
    if twice > 0 {
        return Err(refused(&format!("gives {} people two entries with partners", thousands(twice))));
    }
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

/// Returns the worlds with other partners, sealed as if they had been drawn: for the examples of papers.
#[cfg(test)]
pub(crate) fn resealed(worlds: &RecordBatch, partners: &datafusion::arrow::array::ListArray) -> RecordBatch {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Builder, ListBuilder};

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
        lists.values().append_slice(&[PARTNERS_NAME, partners_commitment(own[0], &texts, range).unwrap()]);
        lists.append(true);
    }
    let columns: Vec<ArrayRef> =
        vec![ArrayRef::clone(worlds.column(0)), Arc::new(partners.clone()), Arc::new(lists.finish())];
    RecordBatch::try_new(worlds.schema(), columns).unwrap()
}
