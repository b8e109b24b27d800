//! Identifiers: who a row is about. Compared for equality, put in an order that depends on nothing but themselves and a
//! secret key, and never published.

mod among;
mod find;
mod values;

use datafusion::arrow::array::{Array, ArrayData, ArrayRef, UInt32Array, make_array, make_comparator, new_empty_array};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::arrow::compute::{SortOptions, concat, take};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType};
use rayon::prelude::*;

use self::values::{Equality, hash, numbers_of};
use super::hash_order::{Alike, HashOrder, Hashed};
use super::thrown::room;
use super::{compact_views, held, held_type};
use crate::error::{Error, Result};
pub use among::Among;

/// Key of the hash that orders identifiers. Drawn anew for every release.
pub type HashKey = [u64; 2];

/// Key of salts, which are the same for ever and no secret.
const SALTS: HashKey = [0x7361_6c74_206f_6620, 0x6120_7065_7273_6f6e];

/// Rows hashed at a time: small enough to stay in cache, large enough to share the set-up.
const CHUNK: usize = 8192;

/// Numbers that are put together in one chunk: what a batch holds is given back at once, and those that are looked up stand close together.
const BLOCK: usize = 1 << 17;

/// Identifiers as they arrive, before they are ordered.
#[derive(Debug, Clone)]
pub struct IdentifierBuilder {
    data_type: DataType,
    chunks: Vec<ArrayRef>,
    /// Numbers of four or of eight bytes behind the last chunk, fewer than a block.
    four: Vec<u32>,
    eight: Vec<u64>,
    bytes: usize,
    rows: usize,
}

/// Identifiers in order of arrival, in as many pieces as there are.
#[derive(Debug)]
pub struct Chunks {
    data_type: DataType,
    all: Vec<ArrayRef>,
    rows: usize,
}

impl Chunks {
    /// Returns the identifiers that arrived at these ascending places.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub fn part(&self, places: &[u32]) -> Result<IdentifierBuilder> {
        let mut part = IdentifierBuilder::new(self.data_type.clone());
        let (mut left, mut first) = (places, 0);
        for chunk in &self.all {
            let end = first + chunk.len() as u32;
            let (here, after) = left.split_at(left.partition_point(|&place| place < end));
            let here = UInt32Array::from_iter_values(here.iter().map(|place| place - first));
            if !here.is_empty() {
                part.append(&take(chunk, &here, None)?)?;
            }
            (left, first) = (after, end);
        }
        Ok(part)
    }
}

impl IdentifierBuilder {
    /// Returns a builder for identifiers of one type.
    pub fn new(data_type: DataType) -> Self {
        Self { data_type, chunks: Vec::new(), four: Vec::new(), eight: Vec::new(), bytes: 0, rows: 0 }
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
        let chunks = &mut self.chunks;
        match ids.data_type().primitive_width().filter(|_| ids.null_count() == 0) {
            Some(4) => return append_numbers(&ids, &mut self.four, chunks),
            Some(8) => return append_numbers(&ids, &mut self.eight, chunks),
            _ => {}
        }
        // Numbers stand before others, which there are where some are NULL.
        self.close()?;
        self.chunks.push(ids);
        Ok(())
    }

    /// Puts the numbers behind the last chunk in one of their own.
    fn close(&mut self) -> Result<()> {
        let data_type = held_type(&self.data_type);
        if !self.four.is_empty() {
            self.chunks.push(block(std::mem::take(&mut self.four), &data_type)?);
        }
        if !self.eight.is_empty() {
            self.chunks.push(block(std::mem::take(&mut self.eight), &data_type)?);
        }
        Ok(())
    }

    /// Returns the identifiers as they arrived.
    ///
    /// # Errors
    /// When Arrow does not take numbers for values of the type, which is a bug.
    pub fn into_chunks(mut self) -> Result<Chunks> {
        self.close()?;
        let Self { data_type, chunks: all, rows, .. } = self;
        Ok(Chunks { data_type, all, rows })
    }

    /// Returns the bytes held, and bytes that [`finish`](Self::finish) will need: a copy in one piece, and for each half a hash and its place, twice; and
    /// where it is found later on.
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
    pub(crate) fn in_one_piece(self) -> Result<ArrayRef> {
        let Chunks { data_type, all: chunks, .. } = self.into_chunks()?;
        let first = match chunks.as_slice() {
            [] => return Ok(new_empty_array(&held_type(&data_type))),
            [all] => return Ok(ArrayRef::clone(all)),
            [first, ..] => first,
        };
        let numbers = match first.data_type().primitive_width() {
            Some(4) => numbers_in_one_piece::<u32>(&chunks).map(|all| block(all, first.data_type())),
            Some(8) => numbers_in_one_piece::<u64>(&chunks).map(|all| block(all, first.data_type())),
            _ => None,
        };
        numbers.unwrap_or_else(|| Ok(concat(&chunks.iter().map(|chunk| chunk.as_ref()).collect::<Vec<_>>())?))
    }
}

/// Appends numbers of one width behind the last chunk, and makes chunks of whole blocks.
fn append_numbers<T: ArrowNativeType>(ids: &ArrayRef, behind: &mut Vec<T>, chunks: &mut Vec<ArrayRef>) -> Result<()> {
    let numbers = numbers_of::<T>(ids).ok_or_else(|| Error::internal("numbers that are none"))?;
    let mut left: &[T] = &numbers;
    while !left.is_empty() {
        let (now, after) = left.split_at(left.len().min(BLOCK - behind.len()));
        if behind.is_empty() && !chunks.is_empty() {
            behind.reserve_exact(BLOCK);
        }
        behind.extend_from_slice(now);
        left = after;
        if behind.len() == BLOCK {
            chunks.push(block(std::mem::take(behind), ids.data_type())?);
        }
    }
    Ok(())
}

/// Returns the numbers as a column of this type.
fn block<T: ArrowNativeType>(numbers: Vec<T>, data_type: &DataType) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(numbers.len()).add_buffer(Buffer::from_vec(numbers));
    Ok(make_array(data.build()?))
}

/// Returns the numbers of one width, as they are in memory, of several arrays; on all cores, for to be given memory by the system takes longer than to copy
/// what goes there. `None` if some are NULL.
fn numbers_in_one_piece<T: ArrowNativeType>(chunks: &[ArrayRef]) -> Option<Vec<T>> {
    let parts: Vec<ScalarBuffer<T>> = chunks.iter().map(numbers_of).collect::<Option<_>>()?;
    let mut all: Vec<T> = room(parts.iter().map(|part| part.len()).sum());
    let mut left = all.as_mut_slice();
    let mut places = Vec::with_capacity(parts.len());
    for part in &parts {
        let (place, after) = left.split_at_mut(part.len());
        places.push(place);
        left = after;
    }
    places.into_par_iter().zip(&parts).for_each(|(place, part)| place.copy_from_slice(part));
    Some(all)
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
    fn try_new(values: ArrayRef, data_type: DataType, key: HashKey) -> Result<Self> {
        let compare = make_comparator(&values, &values, SortOptions::default())?;
        // Equal ones stand together, and others that have their hash, which hardly ever happens, elsewhere.
        let by_value = |alike: &mut [Hashed]| {
            alike.sort_unstable_by(|a, b| compare(a.row() as usize, b.row() as usize).then(a.row().cmp(&b.row())));
        };
        let hashes = |first: usize, hashes: &mut [u64]| hash(&values, first, key, hashes);
        let equality = Equality::between(&values, &values)?;
        let equal = |row: u32, other: u32| equality.holds(row, other);
        let HashOrder { rows: order, has_alike } =
            HashOrder::try_new(values.len(), hashes, Alike::Equal(&equal), by_value, |hashed| hashed)?;
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

    /// Places of arrival in the order of the keyed hash.
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
        let equality = Equality::between(&self.values, &self.values)?;
        Ok(self.order.chunk_by(move |a, b| a.beginning() == b.beginning() && equality.holds(a.row(), b.row())))
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
