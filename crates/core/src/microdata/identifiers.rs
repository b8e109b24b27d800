//! Identifiers: who a row is about. Compared for equality, put in an order that depends on nothing but themselves and a
//! secret key, and never published.

mod among;
mod find;
mod values;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array, make_comparator, new_empty_array};
use datafusion::arrow::compute::{SortOptions, concat, take};
use datafusion::arrow::datatypes::DataType;
use rayon::prelude::*;

use self::values::{equality, hash};
use super::hash_order::{CHUNK, Hashed, in_hash_order};
use super::{compact_views, held, held_type};
use crate::error::{Error, Result};
pub use among::Among;

/// Key of the hash that orders identifiers. Drawn anew for every release.
pub type HashKey = [u64; 2];

/// Key of salts, which are the same for ever and no secret.
const SALTS: HashKey = [0x7361_6c74_206f_6620, 0x6120_7065_7273_6f6e];

/// Identifiers as they arrive, before they are ordered.
#[derive(Debug, Clone)]
pub struct IdentifierBuilder {
    data_type: DataType,
    chunks: Vec<ArrayRef>,
    bytes: usize,
    rows: usize,
}

impl IdentifierBuilder {
    /// Returns a builder for identifiers of one type.
    pub fn new(data_type: DataType) -> Self {
        Self { data_type, chunks: Vec::new(), bytes: 0, rows: 0 }
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// When Arrow cannot convert a string column to a view; when they are of another type, which is a bug.
    pub fn append(&mut self, ids: &ArrayRef) -> Result<()> {
        let ids = compact_views(held(ids)?);
        if ids.data_type().primitive_width() != held_type(&self.data_type).primitive_width() {
            return Err(Error::internal("identifiers of another type"));
        }
        self.bytes += match ids.data_type() {
            DataType::Utf8View | DataType::BinaryView => ids.get_array_memory_size(),
            // Of the slice, not of what it is a slice of: an aggregation below emits slices of one large array.
            _ => ids.to_data().get_slice_memory_size()?,
        };
        self.rows += ids.len();
        self.chunks.push(ids);
        Ok(())
    }

    /// Returns the bytes held, with those that [`finish`](Self::finish) will need.
    ///
    /// [`finish`](Self::finish) copies the identifiers into one piece. Each identifier also takes half a hash with its place, twice, and a rank.
    pub fn size(&self) -> usize {
        2 * self.bytes + self.rows * (2 * size_of::<Hashed>() + size_of::<u32>())
    }

    /// Orders the identifiers by their hash under `key`.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn finish(self, key: HashKey) -> Result<Identifiers> {
        let data_type = self.data_type.clone();
        Identifiers::try_new(self.in_one_piece()?, data_type, key)
    }

    /// Returns the identifiers as they arrived.
    ///
    /// # Errors
    /// When there are more bytes than one column can hold.
    pub fn in_one_piece(self) -> Result<ArrayRef> {
        let chunks: Vec<&dyn Array> = self.chunks.iter().map(|chunk| chunk.as_ref()).collect();
        match chunks.is_empty() {
            true => Ok(new_empty_array(&held_type(&self.data_type))),
            false => Ok(concat(&chunks)?),
        }
    }
}

/// Returns a number for each identifier, the same for ever. It seals what is remembered of a person.
///
/// # Errors
/// When Arrow cannot encode the type as rows.
pub fn salts(ids: &ArrayRef) -> Result<Vec<i64>> {
    let ids = held(ids)?;
    let mut hashes = vec![0; ids.len()];
    hash(&ids, 0, SALTS, &mut hashes)?;
    Ok(hashes.into_iter().map(|hash| hash as i64).collect())
}

/// Identifiers of the rows of microdata.
#[derive(Debug)]
pub struct People {
    /// The identifiers in order of arrival; strings as views, whatever they arrived as.
    pub identifiers: ArrayRef,
    /// The type the identifiers arrived with.
    pub data_type: DataType,
    /// Place of arrival of each row of the microdata.
    pub arrival: Vec<u32>,
}

impl People {
    /// Returns the people of some rows, beside the identifiers of all.
    pub(super) fn part(&self, rows: &[u32]) -> Self {
        Self {
            identifiers: ArrayRef::clone(&self.identifiers),
            data_type: self.data_type.clone(),
            arrival: rows.iter().map(|&row| self.arrival[row as usize]).collect(),
        }
    }

    /// Returns a number for a row's person, the same for ever.
    ///
    /// # Errors
    /// When Arrow cannot encode the type as rows.
    pub fn salt(&self, row: u32) -> Result<i64> {
        let identifier = self.identifiers.slice(self.arrival[row as usize] as usize, 1);
        salts(&identifier)?.pop().ok_or_else(|| Error::internal("a person without a salt"))
    }
}

/// A column of identifiers and its order by keyed hash. Equal hashes are ordered by value, equal values in no particular order.
///
/// The order is random to anyone without the key, and the same for any order of arrival.
#[derive(Debug)]
pub struct Identifiers {
    values: ArrayRef,
    data_type: DataType,
    order: Vec<Hashed>,
    /// True if some have one hash, as equal ones do.
    has_alike: bool,
}

impl Identifiers {
    /// Orders values, as an [`IdentifierBuilder`] holds them, by their hash under `key`. `data_type` is the type that they arrived with.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn try_new(values: ArrayRef, data_type: DataType, key: HashKey) -> Result<Self> {
        let compare = make_comparator(&values, &values, SortOptions::default())?;
        // Equal ones stand together, and others that have their hash, which hardly ever happens, elsewhere.
        let by_value = |alike: &mut [Hashed]| {
            alike.sort_unstable_by(|a, b| compare(a.row() as usize, b.row() as usize).then(a.row().cmp(&b.row())));
        };
        let hashes = |first: usize, hashes: &mut [u64]| hash(&values, first, key, hashes);
        let (order, has_alike) = in_hash_order(values.len(), hashes, equality(&values, &values)?, by_value)?;
        Ok(Self { values, data_type, order, has_alike })
    }

    /// Returns the number of identifiers, NULL and repeated ones included.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Counts the identifiers that are NULL.
    pub fn nulls(&self) -> usize {
        self.values.null_count()
    }

    /// Returns the identifiers in order of arrival and the places of arrival in hash order; the hashes are given up.
    pub fn into_people(self) -> People {
        let arrival = self.par_order().collect();
        People { arrival, identifiers: self.values, data_type: self.data_type }
    }

    /// Returns the identifiers that arrived at these places.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub fn at(&self, places: &UInt32Array) -> Result<ArrayRef> {
        Ok(take(&self.values, places, None)?)
    }

    /// Returns the salts of those that arrived at these places.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub fn salts(&self, places: &[u32]) -> Result<Vec<i64>> {
        salts(&self.at(&UInt32Array::from(places.to_vec()))?)
    }

    /// Returns the places of arrival in the order of the keyed hash.
    pub fn order(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.order.iter().map(|hashed| hashed.row())
    }

    /// Returns the same on all cores.
    pub fn par_order(&self) -> impl IndexedParallelIterator<Item = u32> + '_ {
        self.order.par_iter().map(|hashed| hashed.row())
    }

    /// Runs of equal identifiers, as ranges of places in the order.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn runs(&self) -> Result<impl Iterator<Item = &[Hashed]>> {
        let equal = equality(&self.values, &self.values)?;
        Ok(self.order.chunk_by(move |a, b| a.beginning() == b.beginning() && equal(a.row(), b.row())))
    }

    /// Returns the runs of several identifiers.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn runs_of_several(&self) -> Result<impl Iterator<Item = &[Hashed]>> {
        let runs = if self.has_alike { Some(self.runs()?) } else { None };
        Ok(runs.into_iter().flatten().filter(|run| run.len() > 1))
    }

    /// Counts the rows that repeat the identifier of another row.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn repeated(&self) -> Result<usize> {
        Ok(self.runs_of_several()?.map(|run| run.len() - 1).sum())
    }
}

#[cfg(test)]
mod tests;
