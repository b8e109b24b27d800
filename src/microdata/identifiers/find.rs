//! Where identifiers are among others.

use rayon::iter::repeat_n;
use rayon::prelude::*;

use super::values::{Equality, hash};
use super::{CHUNK, Chunks, HashKey, Identifiers};
use crate::error::Result;
use crate::microdata::hash_order::Hashed;

/// Places of arrival of identifiers that are equal to others, in the order of these. Four bytes each.
#[derive(Debug)]
pub struct Found(Vec<u32>);

impl Found {
    /// There is no such identifier. No place of arrival has this number, for there are fewer rows than that.
    pub(super) const NONE: u32 = u32::MAX;

    pub(super) fn none(len: usize) -> Self {
        Self(repeat_n(Self::NONE, len).with_min_len(CHUNK).collect())
    }

    /// What is written, one after the other.
    pub(super) fn places(&mut self) -> &mut [u32] {
        &mut self.0
    }

    /// How many identifiers were looked for.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Where the one is that is equal to the one at `place`, if there is one.
    #[inline]
    pub fn at(&self, place: usize) -> Option<u32> {
        Self::read(self.0[place])
    }

    /// Where each of them is.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<u32>> + '_ {
        self.0.iter().map(|&place| Self::read(place))
    }

    /// The same on all cores.
    pub fn par_iter(&self) -> impl IndexedParallelIterator<Item = Option<u32>> + '_ {
        self.0.par_iter().map(|&place| Self::read(place))
    }

    #[inline]
    fn read(place: u32) -> Option<u32> {
        (place != Self::NONE).then_some(place)
    }

    #[inline]
    fn written(place: Option<u32>) -> u32 {
        place.unwrap_or(Self::NONE)
    }
}

impl Identifiers {
    /// For each of these identifiers, in hash order, the place of arrival of an equal one in `other`, if there is one.
    /// Both must have been hashed under the same key and be of the same type. Takes linear time.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn find_in(&self, other: &Self) -> Result<Found> {
        let equality = Equality::between(&self.values, &other.values)?;
        let mut all = Found::none(self.order.len());
        let chunks = all.0.par_chunks_mut(CHUNK).zip(self.order.par_chunks(CHUNK));
        chunks.for_each_init(Vec::new, |holds, (found, own)| {
            let before = |hashed: &Hashed| other.order.partition_point(|entry| entry.beginning() < hashed.beginning());
            let alike = |hashed: &Hashed, start: usize| {
                let begins = hashed.beginning();
                other.order[start..].iter().take_while(move |entry| entry.beginning() == begins)
            };
            let mut start = own.first().map_or(0, before);
            for (found, hashed) in found.iter_mut().zip(own) {
                while start < other.order.len() && other.order[start].beginning() < hashed.beginning() {
                    start += 1;
                }
                *found = Found::written(alike(hashed, start).next().map(|entry| entry.row()));
            }
            // Values are all over the memory: looked at together, none waits for the one before. Hardly ever does a hash begin like another.
            let both = found.iter().zip(own);
            holds.clear();
            holds.extend(both.map(|(&found, hashed)| found == Found::NONE || equality.holds(hashed.row(), found)));
            for ((found, hashed), _) in found.iter_mut().zip(own).zip(&*holds).filter(|(_, holds)| !**holds) {
                let mut alike = alike(hashed, before(hashed));
                let equal = alike.find(|entry| equality.holds(hashed.row(), entry.row()));
                *found = Found::written(equal.map(|entry| entry.row()));
            }
        });
        Ok(all)
    }

    /// For each of some values, in their order, the place of arrival of an equal identifier, if there is one. Identifiers must have been hashed under
    /// this key, and be of the same type. Takes linear time: the values are not put in order.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub(crate) fn places_of(&self, values: &Chunks, key: HashKey) -> Result<Found> {
        // Hashes are spread evenly, so that about four of them begin alike, which stand together.
        let bits = (usize::BITS - self.order.len().leading_zeros()).saturating_sub(2).clamp(1, u32::BITS);
        let beginning = |hashed: Hashed| (hashed.beginning() >> (u32::BITS - bits)) as usize;
        let mut begins = vec![0_u32; (1 << bits) + 1];
        self.order.iter().for_each(|&hashed| begins[beginning(hashed) + 1] += 1);
        let mut before = 0;
        for begin in &mut begins {
            before += *begin;
            *begin = before;
        }
        let mut all = Found::none(values.rows);
        let (mut left, mut pieces) = (all.0.as_mut_slice(), Vec::new());
        for chunk in &values.all {
            let (of_chunk, after) = left.split_at_mut(chunk.len());
            left = after;
            pieces
                .extend(of_chunk.chunks_mut(CHUNK).enumerate().map(|(number, places)| (chunk, number * CHUNK, places)));
        }
        let looked = || (vec![0; CHUNK], Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
        pieces.into_par_iter().try_for_each_init(
            looked,
            |(hashes, ranges, holds), (chunk, first, places)| -> Result<()> {
                let equality = Equality::between(chunk, &self.values)?;
                let hashes = &mut hashes[..places.len()];
                hash(chunk, first, key, hashes)?;
                let all = || hashed_from(first, hashes);
                // One step for all of them, and then the next one: what is looked at is all over the memory, and so nothing waits for what was before.
                ranges.clear();
                ranges.extend(all().map(|hashed| [0, 1].map(|next| begins[beginning(hashed) + next] as usize)));
                let alike = |range: &[usize; 2]| &self.order[range[0]..range[1]];
                for ((place, range), hashed) in places.iter_mut().zip(&*ranges).zip(all()) {
                    for entry in alike(range) {
                        let begins_alike = entry.beginning() == hashed.beginning();
                        *place = if begins_alike { entry.row() } else { *place };
                    }
                }
                holds.clear();
                let found = places.iter().zip(all());
                holds.extend(found.map(|(&place, of)| place == Found::NONE || equality.holds(of.row(), place)));
                // Hardly ever does a hash begin like another.
                let wrong = places.iter_mut().zip(&*ranges).zip(all()).zip(&*holds).filter(|(_, holds)| !**holds);
                for (((place, range), hashed), _) in wrong {
                    let is_equal = |entry: &&Hashed| {
                        entry.beginning() == hashed.beginning() && equality.holds(hashed.row(), entry.row())
                    };
                    *place = Found::written(alike(range).iter().find(is_equal).map(|entry| entry.row()));
                }
                Ok(())
            },
        )?;
        Ok(all)
    }
}

/// Hashes of rows from one on.
fn hashed_from(first: usize, hashes: &[u64]) -> impl Iterator<Item = Hashed> + '_ {
    hashes.iter().zip(first as u32..).map(|(&hash, row)| Hashed::new(hash, row))
}
