//! Search of identifiers among others.

use rayon::iter::repeat_n;
use rayon::prelude::*;

use super::values::equality;
use super::{CHUNK, Identifiers};
use crate::error::Result;

/// Places of identifiers that are equal to others, in the order of these: places of arrival, or *ranks*, which are places in the order of the
/// keyed hash. Four bytes each.
#[derive(Debug)]
pub struct Found(pub(super) Vec<u32>);

impl Found {
    /// Rank that says that no identifier is equal. No place has this number, for there are fewer rows than that.
    pub(super) const NONE: u32 = u32::MAX;

    pub(super) fn none(len: usize) -> Self {
        Self(repeat_n(Self::NONE, len).with_min_len(CHUNK).collect())
    }

    /// Returns the number of identifiers that were looked for.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the place of the identifier equal to the one at `place`, or `None`.
    #[inline]
    pub fn at(&self, place: usize) -> Option<u32> {
        Self::read(self.0[place])
    }

    /// Returns the rank of each of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<u32>> + '_ {
        self.0.iter().map(|&place| Self::read(place))
    }

    /// Returns the same on all cores.
    pub fn par_iter(&self) -> impl IndexedParallelIterator<Item = Option<u32>> + '_ {
        self.0.par_iter().map(|&place| Self::read(place))
    }

    #[inline]
    fn read(place: u32) -> Option<u32> {
        (place != Self::NONE).then_some(place)
    }

    #[inline]
    pub(super) fn written(place: Option<u32>) -> u32 {
        place.unwrap_or(Self::NONE)
    }
}

impl Identifiers {
    /// Finds for each identifier, in hash order, the place of an equal one in `other`. Both must have been hashed under
    /// the same key and be of the same type. Takes linear time.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn find_in(&self, other: &Self) -> Result<Found> {
        self.find(other, |rank| other.order[rank as usize].row())
    }

    /// Finds like [`find_in`](Self::find_in), but returns ranks: of several equal ones that of the first.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn ranks_in(&self, other: &Self) -> Result<Found> {
        self.find(other, |rank| rank)
    }

    /// Returns what `say` makes of the rank of the first equal one.
    fn find(&self, other: &Self, say: impl Fn(u32) -> u32 + Sync) -> Result<Found> {
        let equal = equality(&self.values, &other.values)?;
        let mut all = Found::none(self.order.len());
        let chunks = all.0.par_chunks_mut(CHUNK).zip(self.order.par_chunks(CHUNK));
        chunks.for_each(|(found, own)| {
            let begins = own.first().map_or(0, |hashed| hashed.beginning());
            let mut start = other.order.partition_point(|entry| entry.beginning() < begins);
            for (found, hashed) in found.iter_mut().zip(own) {
                let begins = hashed.beginning();
                while other.order.get(start).is_some_and(|entry| entry.beginning() < begins) {
                    start += 1;
                }
                let mut alike =
                    (start as u32..).zip(other.order[start..].iter().take_while(|entry| entry.beginning() == begins));
                let same = alike.find(|(_, entry)| equal(hashed.row(), entry.row()));
                *found = Found::written(same.map(|(rank, _)| say(rank)));
            }
        });
        Ok(all)
    }
}
