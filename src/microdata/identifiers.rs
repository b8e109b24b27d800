//! Identifiers: who a row is about. Compared for equality, put in an order that depends on nothing but themselves and a
//! secret key, and never published.

use std::cmp::Ordering;
use std::hash::Hasher;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array, make_comparator, new_empty_array};
use datafusion::arrow::compute::{SortOptions, concat, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use rayon::prelude::*;
use siphasher::sip::SipHasher13;

use super::{compact_views, held, held_type};
use crate::error::Result;

/// Key of the hash that orders identifiers. Drawn anew for every release.
pub(crate) type HashKey = [u64; 2];

/// Rows hashed at a time: small enough to stay in cache, large enough to share the set-up.
const CHUNK: usize = 8192;

/// Identifiers as they arrive, before they are ordered.
#[derive(Debug, Clone)]
pub(crate) struct IdentifierBuilder {
    data_type: DataType,
    chunks: Vec<ArrayRef>,
    bytes: usize,
    rows: usize,
}

impl IdentifierBuilder {
    /// A builder for identifiers of one type.
    pub(crate) fn new(data_type: DataType) -> Self {
        Self { data_type, chunks: Vec::new(), bytes: 0, rows: 0 }
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// When Arrow cannot convert a string column to a view.
    pub(crate) fn append(&mut self, ids: &ArrayRef) -> Result<()> {
        let ids = compact_views(held(ids)?);
        self.bytes += match ids.data_type() {
            DataType::Utf8View | DataType::BinaryView => ids.get_array_memory_size(),
            // Of the slice, not of what it is a slice of: an aggregation below emits slices of one large array.
            _ => ids.to_data().get_slice_memory_size()?,
        };
        self.rows += ids.len();
        self.chunks.push(ids);
        Ok(())
    }

    /// Bytes held, and bytes that [`finish`](Self::finish) will need: a copy in one piece, and a hash and a place for each.
    pub(crate) fn size(&self) -> usize {
        2 * self.bytes + self.rows * size_of::<(u64, u32)>()
    }

    /// Orders the identifiers by their hash under `key`.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub(crate) fn finish(self, key: HashKey) -> Result<Identifiers> {
        let values = match self.chunks.is_empty() {
            true => new_empty_array(&held_type(&self.data_type)),
            false => concat(&self.chunks.iter().map(|chunk| chunk.as_ref()).collect::<Vec<_>>())?,
        };
        drop(self.chunks);
        Identifiers::try_new(values, self.data_type, key)
    }
}

/// Who the rows of microdata are about.
#[derive(Debug)]
pub struct People {
    /// The identifiers in order of arrival; strings as views, whatever they arrived as.
    pub identifiers: ArrayRef,
    /// The type the identifiers arrived with.
    pub data_type: DataType,
    /// Place of arrival of each row of the microdata.
    pub arrival: Vec<u32>,
}

/// A column of identifiers and its order by keyed hash (equal hashes by value, equal values in no particular order).
///
/// The order is random to anyone without the key, and the same for any order of arrival.
#[derive(Debug)]
pub struct Identifiers {
    values: ArrayRef,
    data_type: DataType,
    order: Vec<(u64, u32)>,
}

impl Identifiers {
    fn try_new(values: ArrayRef, data_type: DataType, key: HashKey) -> Result<Self> {
        let mut order = hash(&values, key)?;
        order.par_sort_unstable_by_key(|&(hash, _)| hash);
        // Runs of one hash, nearly always of length one, in the order of their values, and then of arrival.
        if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            let compare = make_comparator(&values, &values, SortOptions::default())?;
            order.chunk_by_mut(|a, b| a.0 == b.0).filter(|run| run.len() > 1).for_each(|run| {
                run.sort_unstable_by(|a, b| compare(a.1 as usize, b.1 as usize).then(a.1.cmp(&b.1)));
            });
        }
        Ok(Self { values, data_type, order })
    }

    /// Number of identifiers, NULL and repeated ones included.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many are NULL.
    pub fn nulls(&self) -> usize {
        self.values.null_count()
    }

    /// The identifiers in order of arrival and the places of arrival in hash order; the hashes are given up.
    pub fn into_people(self) -> People {
        People { arrival: self.order().collect(), identifiers: self.values, data_type: self.data_type }
    }

    /// Those that arrived at these places.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub(crate) fn at(&self, places: &UInt32Array) -> Result<ArrayRef> {
        Ok(take(&self.values, places, None)?)
    }

    /// Places of arrival in the order of the keyed hash.
    pub fn order(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.order.iter().map(|&(_, row)| row)
    }

    /// Runs of equal identifiers, as ranges of places in the order.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn runs(&self) -> Result<impl Iterator<Item = &[(u64, u32)]>> {
        let compare = make_comparator(&self.values, &self.values, SortOptions::default())?;
        Ok(self.order.chunk_by(move |a, b| a.0 == b.0 && compare(a.1 as usize, b.1 as usize).is_eq()))
    }

    /// How many rows repeat the identifier of another row.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn repeated(&self) -> Result<usize> {
        Ok(self.runs()?.map(|run| run.len() - 1).sum())
    }

    /// For each of these identifiers, in hash order, the place of arrival of an equal one in `other`, if there is one.
    /// Both must have been hashed under the same key and be of the same type. Takes linear time.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn find_in(&self, other: &Self) -> Result<Vec<Option<u32>>> {
        let compare = make_comparator(&self.values, &other.values, SortOptions::default())?;
        let mut found = vec![None; self.order.len()];
        let chunks = found.par_chunks_mut(CHUNK).zip(self.order.par_chunks(CHUNK));
        chunks.for_each(|(found, own)| {
            let mut start = own.first().map_or(0, |first| other.order.partition_point(|entry| entry.0 < first.0));
            for (found, &(hash, row)) in found.iter_mut().zip(own) {
                while start < other.order.len() && other.order[start].0 < hash {
                    start += 1;
                }
                let same_hash = other.order[start..].iter().take_while(|entry| entry.0 == hash);
                let equal = |entry: &&(u64, u32)| compare(row as usize, entry.1 as usize) == Ordering::Equal;
                *found = same_hash.into_iter().find(equal).map(|entry| entry.1);
            }
        });
        Ok(found)
    }
}

/// Keyed hashes of all values with their rows. Row format makes this work for every type, and equal values hash alike
/// on every platform.
fn hash(values: &ArrayRef, key: HashKey) -> Result<Vec<(u64, u32)>> {
    let mut hashes = vec![(0, 0); values.len()];
    hashes.par_chunks_mut(CHUNK).enumerate().try_for_each(|(number, hashes)| -> Result<()> {
        let start = number * CHUNK;
        let chunk = values.slice(start, hashes.len());
        let converter = RowConverter::new(vec![SortField::new(chunk.data_type().clone())])?;
        let rows = converter.convert_columns(&[chunk])?;
        for (i, (row, hash)) in rows.iter().zip(hashes).enumerate() {
            let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
            hasher.write(row.as_ref());
            *hash = (hasher.finish(), (start + i) as u32);
        }
        Ok(())
    })?;
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;

    fn identifiers(ids: impl Array + 'static) -> Identifiers {
        let ids: ArrayRef = Arc::new(ids);
        let mut builder = IdentifierBuilder::new(ids.data_type().clone());
        builder.append(&ids).unwrap();
        builder.finish([1, 2]).unwrap()
    }

    #[test]
    fn the_order_ignores_the_order_of_arrival() {
        let forward: Vec<i64> = (0..1000).collect();
        let backward: Vec<i64> = (0..1000).rev().collect();
        let ordered = |ids: &[i64]| -> Vec<i64> {
            let sorted = identifiers(Int64Array::from(ids.to_vec()));
            sorted.order().map(|row| ids[row as usize]).collect()
        };
        assert_eq!(ordered(&forward), ordered(&backward));
        assert_ne!(ordered(&forward), forward);
    }

    #[test]
    fn repeated_identifiers_are_counted() {
        let ids = identifiers(StringArray::from(vec!["a", "b", "a", "c", "a"]));
        assert_eq!(ids.repeated().unwrap(), 2);
    }

    #[test]
    fn finds_equal_identifiers_elsewhere() {
        let now = identifiers(StringArray::from(vec!["x", "a", "y", "b"]));
        let before = identifiers(StringArray::from(vec!["b", "c", "a"]));
        let found = now.find_in(&before).unwrap();
        let of = |row: u32| found[now.order().position(|r| r == row).unwrap()];
        assert_eq!([of(0), of(1), of(2), of(3)], [None, Some(2), None, Some(0)]);
    }

    #[test]
    fn nothing_is_fine() {
        let none = identifiers(Int64Array::from(Vec::<i64>::new()));
        assert!(none.is_empty());
        assert_eq!(none.repeated().unwrap(), 0);
    }
}
