//! Columns of worlds in the ledger: partners, and commitments.

use datafusion::arrow::array::{Int64Array, ListArray, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::DataType;

use super::gather::gather;
use super::{COMMITMENTS, PARTNERS, Published, signature_type};
use crate::error::{Error, Result};
use crate::microdata::{Attribute, Commitments, commitments, salts};
use crate::release::Form;

impl Published {
    /// Returns the partners of some members, if a column tells of them.
    pub(super) fn partners_in(&self, members: &[u32]) -> Result<Option<ListArray>> {
        let tells = |column: &str| column == PARTNERS || column == COMMITMENTS;
        let form = self.release.body.form();
        match form == Form::Worlds && self.schema.fields().iter().any(|field| tells(field.name())) {
            true => self.partners(members).map(Some),
            false => Ok(None),
        }
    }

    /// Returns the identifiers of the partners of some members; none of those that are not new.
    ///
    /// # Errors
    /// When there is no identifier, when there are no worlds, and when Arrow fails to gather values.
    pub fn partners(&self, members: &[u32]) -> Result<ListArray> {
        let worlds = self.release.body.worlds()?;
        let people = self.release.microdata.people.as_ref();
        let people = people.ok_or_else(|| Error::internal("a column that the release has not"))?;
        let DataType::List(item) = signature_type(&people.data_type) else {
            return Err(Error::internal("partners that are no list"));
        };
        if worlds.is_new.len() != self.release.microdata.rows {
            return Err(Error::internal("partners that are not to be remembered"));
        }
        // One step for all of them, and then the next one: each looks all over the memory.
        let rows = self.rows_of(members);
        let lengths: Vec<usize> =
            rows.iter().map(|&row| if worlds.is_new[row as usize] { worlds.width } else { 0 }).collect();
        let mut places = vec![0; lengths.iter().sum()];
        let new = rows.iter().zip(&lengths).filter(|(_, length)| **length > 0).map(|(&row, _)| row as usize);
        for (places, row) in places.chunks_exact_mut(worlds.width.max(1)).zip(new) {
            places.copy_from_slice(&worlds.partners[row * worlds.width..][..worlds.width]);
        }
        places.iter_mut().for_each(|partner| *partner = people.arrival[*partner as usize]);
        let values = gather(&people.identifiers, &UInt32Array::from(places), item.data_type())?;
        Ok(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, None)?)
    }

    /// Seals of the values of some members that travel, and of their partners.
    ///
    /// # Errors
    /// When there are no salts, and when Arrow cannot show a value.
    pub fn commitments(&self, members: &[u32], partners: &ListArray) -> Result<ListArray> {
        let microdata = &self.release.microdata;
        let salts =
            self.release.body.worlds()?.salts.ok_or_else(|| Error::internal("values to be sealed without a salt"))?;
        let rows = self.rows_of(members);
        let sensitive = microdata.sensitive.iter().map(|_| rows.iter().map(|&row| microdata.sensitive_codes.at(row)));
        let mut codes: Vec<Vec<u32>> = sensitive.map(Iterator::collect).collect();
        codes.extend((0..microdata.other.len()).map(|j| rows.iter().map(|&row| microdata.other_of(row)[j]).collect()));
        let salts: Vec<i64> = rows.iter().map(|&row| salts.of(row)).collect();
        commitments(self.sealing()?, &codes, &microdata.quasi, &salts, partners)
    }

    /// Returns the seals of some people's sensitive values, each by the salt of the person.
    ///
    /// # Errors
    /// When there is no sensitive attribute, and when Arrow cannot show a value.
    pub fn seals(&self, members: &[u32]) -> Result<Int64Array> {
        let sealing = self.sealing()?.first().ok_or_else(|| Error::internal("a seal of no value"))?;
        let codes = self.rows_of(members).into_iter().map(|row| self.release.microdata.sensitive_codes.at(row));
        let salts = salts(&self.identifiers(members)?)?;
        Ok(codes.zip(salts).map(|(code, salt)| sealing.to(salt, code)).collect())
    }

    /// Returns the commitments to the values of each column that travels, the sensitive one first. They are made once, for there may be as many values as
    /// people.
    fn sealing(&self) -> Result<&[Commitments]> {
        if let Some(sealing) = self.sealing.get() {
            return Ok(sealing);
        }
        let microdata = &self.release.microdata;
        let of = |sensitive| move |attribute: &Attribute| Commitments::of(attribute, sensitive);
        // Of groups no more is remembered than the sensitive value.
        let others = if self.release.body.form() == Form::Intervals { &[][..] } else { &microdata.other[..] };
        let sealing = microdata.sensitive.iter().map(of(true)).chain(others.iter().map(of(false)));
        let sealing = sealing.collect::<Result<Vec<_>>>()?;
        // Another thread may have been faster; it made the same ones.
        Ok(self.sealing.get_or_init(|| sealing))
    }

    pub(super) fn rows_of(&self, members: &[u32]) -> Vec<u32> {
        members.iter().map(|&member| self.release.groups.members[member as usize]).collect()
    }
}
