//! Finds which of many values each identifier is equal to, and the other way round: the entries of a ledger, of which most people have one, and the
//! partners of everybody.

use datafusion::arrow::array::{Array, ArrayRef};
use rayon::prelude::*;

use super::find::Found;
use super::values::{equality, hash};
use super::{CHUNK, HashKey, Identifiers};
use crate::error::{Error, Result};
use crate::microdata::hash_order::beginning;

/// Places of identifiers among some values.
#[derive(Debug)]
pub struct Among {
    /// For each identifier, in hash order, the first value that is equal to it.
    pub first: Found,
    /// Ranks with the values that are equal to their identifiers, too; in order.
    pub again: Vec<(u32, u32)>,
    /// The values that no identifier is equal to, in order.
    pub elsewhere: Vec<u32>,
}

impl Identifiers {
    /// Returns where these are among some values. None may be repeated; they must have been hashed under this key, and be of the same type.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type, and when there are more values than have a number; when identifiers are repeated, which is a bug.
    pub fn among(&self, values: &ArrayRef, key: HashKey) -> Result<Among> {
        if self.runs_of_several()?.next().is_some() {
            return Err(Error::internal("repeated identifiers among values"));
        }
        let mut all = Among { first: Found::none(self.len()), again: Vec::new(), elsewhere: Vec::new() };
        for (rank, value) in self.ranks_of(values, key)?.iter().zip(0..) {
            match rank.map(|rank| (rank, &mut all.first.0[rank as usize])) {
                None => all.elsewhere.push(value),
                Some((_, first)) if *first == Found::NONE => *first = value,
                Some((rank, _)) => all.again.push((rank, value)),
            }
        }
        all.again.par_sort_unstable();
        Ok(all)
    }

    /// Returns the rank of the first identifier equal to each value. The ranks are in the order of values.
    ///
    /// A value without an equal identifier has no rank. Identifiers must have been hashed under this key, and be of the same type.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type, and when there are more values than have a number.
    pub fn ranks_of(&self, values: &ArrayRef, key: HashKey) -> Result<Found> {
        if values.len() >= u32::MAX as usize {
            return Err(Error::internal("more values than can be looked for"));
        }
        let equal = equality(values, &self.values)?;
        let mut ranks = Found::none(values.len());
        ranks.0.par_chunks_mut(CHUNK).enumerate().try_for_each(|(number, ranks)| {
            let first = number * CHUNK;
            let mut hashes = vec![0; ranks.len()];
            hash(values, first, key, &mut hashes)?;
            for ((rank, hash), value) in ranks.iter_mut().zip(hashes).zip(first as u32..) {
                let same = |rank: &u32| equal(value, self.order[*rank as usize].row());
                *rank = Found::written(self.beginning_with(beginning(hash)).find(same));
            }
            Ok::<_, Error>(())
        })?;
        Ok(ranks)
    }

    /// Returns the ranks of the identifiers whose hashes begin so.
    fn beginning_with(&self, beginning: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.order.partition_point(|hashed| hashed.beginning() < beginning);
        let alike = self.order[start..].iter().take_while(move |hashed| hashed.beginning() == beginning);
        (start as u32..).zip(alike).map(|(rank, _)| rank)
    }
}
