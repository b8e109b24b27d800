//! People who have left, and whose values somebody who is there carries in some world.
//!
//! What left with them would tell that nobody carries it. So a ring of which somebody is there has all of its rows: those of who is not are
//! counterfeits with the values that were sealed, and with the quasi-identifiers of somebody of the ring who is there, drawn by lot. Which of the
//! worlds is the true one has no part in any of this: who is there, who is in a ring with whom, and the lot are the same in all.

use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::FieldRef;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::worlds::{Memory, NONE};
use crate::error::{Error, Result, thousands};
use crate::microdata::{HashKey, MicrodataBuilder, OfGhosts, name_of};

impl Memory {
    /// Appends the rows of people who stay as ghosts, and returns their number. None where values are not remembered,
    /// or nothing travels in this release.
    /// Fails when a ghost has no value of a column that travels; NULL or repeated identifiers.
    pub(super) fn append_ghosts(&self, microdata: &mut MicrodataBuilder, key: HashKey) -> Result<usize> {
        let Some(values) = &self.values else { return Ok(0) };
        let travelling: Vec<FieldRef> = microdata.travelling().cloned().collect();
        if travelling.is_empty() || self.width == 0 {
            return Ok(0);
        }
        let present = self.present(microdata, key)?;
        let mut rng = ChaCha20Rng::from_seed(lot(key));
        let (mut ghosts, mut beside) = (Vec::new(), Vec::new());
        for ring in self.rings() {
            let there: Vec<u32> =
                ring.iter().map(|&person| present[person as usize]).filter(|row| *row != NONE).collect();
            if there.is_empty() {
                continue;
            }
            for &person in ring.iter().filter(|&&person| present[person as usize] == NONE) {
                ghosts.push(person);
                beside.push(there[rng.random_range(0..there.len())]);
            }
        }
        if ghosts.is_empty() {
            return Ok(0);
        }
        let entry_of = self.entries_of(&ghosts, &travelling)?;
        let people = self.known.at(&self.places(&ghosts))?;
        let value_of = |field: &FieldRef| -> Result<OfGhosts> {
            let Some(j) = travelling.iter().position(|column| column.name() == field.name()) else {
                return Ok(OfGhosts::Nothing);
            };
            let column = values.column_by_name(field.name());
            let column = column.ok_or_else(|| Error::internal("a column that travels and is not remembered"))?;
            Ok(OfGhosts::Values(take(column, &entry_of[j], None)?))
        };
        microdata.append_beside(&people, &beside, value_of)?;
        Ok(ghosts.len())
    }

    /// Finds the place at which the row of each present person has arrived.
    fn present(&self, microdata: &MicrodataBuilder, key: HashKey) -> Result<Vec<u32>> {
        let rows = microdata.people(key)?;
        let mut present = vec![NONE; self.persons.people];
        for (arrival, entry) in rows.order().zip(rows.find_in(&self.known)?.iter()) {
            if let Some(entry) = entry {
                present[self.persons.of_entry[entry as usize] as usize] = arrival;
            }
        }
        Ok(present)
    }

    /// Returns the rings: everybody with all whose values they carry in some world, or who carry theirs, and so on.
    fn rings(&self) -> Vec<Vec<u32>> {
        let mut rings = Vec::new();
        let mut seen = vec![false; self.persons.people];
        for first in 0..self.persons.people as u32 {
            if std::mem::replace(&mut seen[first as usize], true) {
                continue;
            }
            // Worlds are one to one, so whoever carries somebody's values is reached from them as well.
            let mut ring = vec![first];
            let mut at = 0;
            while let Some(&person) = ring.get(at) {
                for &partner in &self.carried[person as usize * self.width..][..self.width] {
                    if !std::mem::replace(&mut seen[partner as usize], true) {
                        ring.push(partner);
                    }
                }
                at += 1;
            }
            rings.push(ring);
        }
        rings
    }

    fn places(&self, people: &[u32]) -> UInt32Array {
        let mut first = vec![NONE; self.persons.people];
        for (entry, &person) in self.persons.of_entry.iter().enumerate() {
            first[person as usize] = entry as u32;
        }
        UInt32Array::from_iter_values(people.iter().map(|&person| first[person as usize]))
    }

    /// Returns for each column the entries that have the values of some people.
    /// Fails when there is none.
    fn entries_of(&self, people: &[u32], columns: &[FieldRef]) -> Result<Vec<UInt32Array>> {
        let names: Vec<[i64; 2]> =
            columns.iter().map(|field| [true, false].map(|is| name_of(field.name(), is))).collect();
        let mut entry_of = vec![vec![NONE; self.persons.people]; columns.len()];
        for ((entry, &person), sealed) in (0..).zip(&self.persons.of_entry).zip(self.sealed()) {
            for name in sealed {
                for (names, entries) in names.iter().zip(&mut entry_of) {
                    if names.contains(&name) {
                        entries[person as usize] = entry;
                    }
                }
            }
        }
        let of_people = |(entries, field): (Vec<u32>, &FieldRef)| {
            let found: Vec<u32> = people.iter().map(|&person| entries[person as usize]).collect();
            match found.iter().filter(|&&entry| entry == NONE).count() {
                0 => Ok(UInt32Array::from(found)),
                missing => Err(Error::refused(format!(
                    "column {} was not published while {} people were there who have left, and whose rows stay as counterfeits as long \
                     as anybody is there who could have been them; leave the column out",
                    field.name(),
                    thousands(missing)
                ))),
            }
        };
        entry_of.into_iter().zip(columns).map(of_people).collect()
    }
}

/// Returns the secret of the release that lots are drawn from.
fn lot(key: HashKey) -> [u8; 32] {
    let mut seed = [0x67; 32];
    for (bytes, part) in seed.chunks_exact_mut(8).zip(key) {
        bytes.copy_from_slice(&part.to_le_bytes());
    }
    seed
}
