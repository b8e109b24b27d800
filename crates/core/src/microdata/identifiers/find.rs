//! Search of identifiers among others.

use rayon::iter::repeat_n;
use rayon::prelude::*;

use super::values::Equality;
use super::{CHUNK, Identifiers};
use crate::error::Result;
use crate::microdata::hash_order::Hashed;

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

    /// Returns the rank of the identifier equal to the one at `place`, or `None`.
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
    fn written(place: Option<u32>) -> u32 {
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

    /// Returns the result of `say` on the rank of each first equal one.
    fn find(&self, other: &Self, say: impl Fn(u32) -> u32 + Sync) -> Result<Found> {
        let equality = Equality::between(&self.values, &other.values)?;
        let is_equal = |hashed: &Hashed, rank: u32| equality.holds(hashed.row(), other.order[rank as usize].row());
        let Some(any) = other.order.first() else { return Ok(Found::none(self.order.len())) };
        let mut all = Found::none(self.order.len());
        let chunks = all.0.par_chunks_mut(CHUNK).zip(self.order.par_chunks(CHUNK));
        chunks.for_each_init(Vec::new, |equal, (found, own)| {
            let before = |hashed: &Hashed| other.order.partition_point(|entry| entry.beginning() < hashed.beginning());
            let alike = |hashed: &Hashed, start: usize| {
                let begins = hashed.beginning();
                let from = (start as u32..).zip(&other.order[start..]);
                from.take_while(move |(_, entry)| entry.beginning() == begins).map(|(rank, _)| rank)
            };
            let mut start = own.first().map_or(0, before);
            for (found, hashed) in found.iter_mut().zip(own) {
                while start < other.order.len() && other.order[start].beginning() < hashed.beginning() {
                    start += 1;
                }
                *found = Found::written(alike(hashed, start).next());
            }
            // Those that have none are compared with any, so that nothing depends on it, and to no end.
            let row = |rank: u32| other.order.get(rank as usize).unwrap_or(any).row();
            equal.clear();
            equality.append(found.iter().zip(own).map(|(&found, hashed)| (hashed.row(), row(found))), equal);
            let unequal =
                found.iter_mut().zip(own).zip(&*equal).filter(|((found, _), equal)| !**equal && **found != Found::NONE);
            for ((found, hashed), _) in unequal {
                // Hardly ever does a hash begin like another.
                *found = Found::written(alike(hashed, before(hashed)).find(|&rank| is_equal(hashed, rank)));
            }
            found.iter_mut().filter(|found| **found != Found::NONE).for_each(|found| *found = say(*found));
        });
        Ok(all)
    }
}
