//! Identifiers: who a row is about. Compared for equality, put in an order that depends on nothing but themselves and a
//! secret key, and never published.

use std::cmp::Ordering;

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, ArrowPrimitiveType, AsArray, DynComparator, UInt32Array, make_array, make_comparator,
    new_empty_array,
};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::arrow::compute::{SortOptions, concat, take};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, Int32Type, Int64Type, UInt32Type, UInt64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use rayon::iter::repeat_n;
use rayon::prelude::*;
use siphasher::sip::SipHasher13;

use super::hash_order::{Alike, HashOrder, Hashed};
use super::thrown::room;
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

    /// Bytes held, and bytes that [`finish`](Self::finish) will need: a copy in one piece, and for each half a hash and its place, twice; and
    /// where it is found later on.
    pub(crate) fn size(&self) -> usize {
        2 * self.bytes + self.rows * (2 * size_of::<Hashed>() + size_of::<u32>())
    }

    /// Orders the identifiers by their hash under `key`.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub(crate) fn finish(self, key: HashKey) -> Result<Identifiers> {
        let data_type = self.data_type.clone();
        Identifiers::try_new(self.in_one_piece()?, data_type, key)
    }

    /// The identifiers as they arrived.
    ///
    /// # Errors
    /// When there are more bytes than one column can hold.
    pub(crate) fn in_one_piece(self) -> Result<ArrayRef> {
        let Some(first) = self.chunks.first() else { return Ok(new_empty_array(&held_type(&self.data_type))) };
        let held_type = first.data_type().clone();
        let numbers = match held_type.primitive_width() {
            Some(4) => numbers_in_one_piece::<u32>(&self.chunks),
            Some(8) => numbers_in_one_piece::<u64>(&self.chunks),
            _ => None,
        };
        Ok(match numbers {
            Some(buffer) => make_array(ArrayData::builder(held_type).len(self.rows).add_buffer(buffer).build()?),
            None => concat(&self.chunks.iter().map(|chunk| chunk.as_ref()).collect::<Vec<_>>())?,
        })
    }
}

/// Numbers of one width, as they are in memory, of several arrays; on all cores, for to be given memory by the system takes longer than to copy
/// what goes there. `None` if some are NULL.
fn numbers_in_one_piece<T: ArrowNativeType>(chunks: &[ArrayRef]) -> Option<Buffer> {
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
    Some(Buffer::from_vec(all))
}

/// The numbers of an array as they are in memory, which must be of this width; `None` if some are NULL.
fn numbers_of<T: ArrowNativeType>(column: &ArrayRef) -> Option<ScalarBuffer<T>> {
    let data = column.to_data();
    let numbers = |buffer: &Buffer| ScalarBuffer::new(buffer.clone(), data.offset(), data.len());
    if column.null_count() > 0 { None } else { data.buffers().first().map(numbers) }
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

/// Places of arrival of identifiers that are equal to others, in the order of these. Four bytes each.
#[derive(Debug)]
pub struct Found(Vec<u32>);

impl Found {
    /// There is no such identifier. No place of arrival has this number, for there are fewer rows than that.
    const NONE: u32 = u32::MAX;

    fn none(len: usize) -> Self {
        Self(repeat_n(Self::NONE, len).with_min_len(CHUNK).collect())
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

/// A column of identifiers and its order by keyed hash (equal hashes by value, equal values in no particular order).
///
/// The order is random to anyone without the key, and the same for any order of arrival.
#[derive(Debug)]
pub struct Identifiers {
    values: ArrayRef,
    data_type: DataType,
    order: Vec<Hashed>,
    /// Whether some have one hash, as equal ones do.
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
        let arrival = self.order.par_iter().map(|hashed| hashed.row()).collect();
        People { arrival, identifiers: self.values, data_type: self.data_type }
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
        self.order.iter().map(|hashed| hashed.row())
    }

    /// Runs of equal identifiers, as ranges of places in the order.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub(crate) fn runs(&self) -> Result<impl Iterator<Item = &[Hashed]>> {
        let equality = Equality::between(&self.values, &self.values)?;
        Ok(self.order.chunk_by(move |a, b| a.beginning() == b.beginning() && equality.holds(a.row(), b.row())))
    }

    /// Those runs that are of several.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub(crate) fn runs_of_several(&self) -> Result<impl Iterator<Item = &[Hashed]>> {
        let runs = if self.has_alike { Some(self.runs()?) } else { None };
        Ok(runs.into_iter().flatten().filter(|run| run.len() > 1))
    }

    /// How many rows repeat the identifier of another row.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type.
    pub fn repeated(&self) -> Result<usize> {
        Ok(self.runs_of_several()?.map(|run| run.len() - 1).sum())
    }

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
    pub(crate) fn places_of(&self, values: &IdentifierBuilder, key: HashKey) -> Result<Found> {
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
        for chunk in &values.chunks {
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

/// Whether values of one column are equal to those of another.
enum Equality {
    /// Numbers of one width, as they are in memory.
    Bits32(ScalarBuffer<u32>, ScalarBuffer<u32>),
    Bits64(ScalarBuffer<u64>, ScalarBuffer<u64>),
    Any(DynComparator),
}

impl Equality {
    fn between(one: &ArrayRef, other: &ArrayRef) -> Result<Self> {
        if one.data_type() == other.data_type() {
            let both = match one.data_type().primitive_width() {
                Some(4) => numbers_of(one).zip(numbers_of(other)).map(|(one, other)| Self::Bits32(one, other)),
                Some(8) => numbers_of(one).zip(numbers_of(other)).map(|(one, other)| Self::Bits64(one, other)),
                _ => None,
            };
            if let Some(both) = both {
                return Ok(both);
            }
        }
        Ok(Self::Any(make_comparator(one, other, SortOptions::default())?))
    }

    #[inline]
    fn holds(&self, row: u32, of_other: u32) -> bool {
        let (row, of_other) = (row as usize, of_other as usize);
        match self {
            Self::Bits32(one, other) => one[row] == other[of_other],
            Self::Bits64(one, other) => one[row] == other[of_other],
            Self::Any(compare) => compare(row, of_other) == Ordering::Equal,
        }
    }
}

/// Keyed hashes of values from a row on. Row format makes this work for every type, and equal values hash alike
/// on every platform.
fn hash(values: &ArrayRef, start: usize, key: HashKey, hashes: &mut [u64]) -> Result<()> {
    let chunk = values.slice(start, hashes.len());
    let hasher = SipHasher13::new_with_keys(key[0], key[1]);
    if hash_numbers(&chunk, hasher, hashes) {
        return Ok(());
    }
    let converter = RowConverter::new(vec![SortField::new(chunk.data_type().clone())])?;
    let rows = converter.convert_columns(&[chunk])?;
    rows.iter().zip(hashes).for_each(|(row, hash)| *hash = hasher.hash(row.as_ref()));
    Ok(())
}

/// The same hashes of whole numbers, as most identifiers are, without the rows: one byte that says that there is a number, and its bytes in their
/// order. Whether they are numbers.
fn hash_numbers(values: &ArrayRef, hasher: SipHasher13, hashes: &mut [u64]) -> bool {
    fn each<T: ArrowPrimitiveType>(values: &ArrayRef, hashes: &mut [u64], hash: impl Fn(T::Native) -> u64) {
        let values = values.as_primitive::<T>().values();
        hashes.iter_mut().zip(values).for_each(|(place, &value)| *place = hash(value));
    }
    if values.null_count() > 0 {
        return false;
    }
    let of_four = |bytes: u32| {
        let [a, b, c, d] = bytes.to_be_bytes();
        hasher.hash(&[1, a, b, c, d])
    };
    let of_eight = |bytes: u64| {
        let [a, b, c, d, e, f, g, h] = bytes.to_be_bytes();
        hasher.hash(&[1, a, b, c, d, e, f, g, h])
    };
    // With the sign turned round, the bytes of negative numbers come first.
    match values.data_type() {
        DataType::Int32 => each::<Int32Type>(values, hashes, |value| of_four(value as u32 ^ 1 << 31)),
        DataType::UInt32 => each::<UInt32Type>(values, hashes, of_four),
        DataType::Int64 => each::<Int64Type>(values, hashes, |value| of_eight(value as u64 ^ 1 << 63)),
        DataType::UInt64 => each::<UInt64Type>(values, hashes, of_eight),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::compute::cast;

    use super::*;

    /// A column that arrives in batches of so many rows.
    fn batches(column: &ArrayRef, rows: usize) -> IdentifierBuilder {
        let mut builder = IdentifierBuilder::new(column.data_type().clone());
        for first in (0..column.len()).step_by(rows) {
            builder.append(&column.slice(first, rows.min(column.len() - first))).unwrap();
        }
        builder
    }

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
        let of = |row: u32| found.at(now.order().position(|r| r == row).unwrap());
        assert_eq!([of(0), of(1), of(2), of(3)], [None, Some(2), None, Some(0)]);
    }

    /// Of so many, some have a hash that begins like that of another one; whom the shorter look finds is somebody else then.
    #[test]
    fn hashes_that_begin_alike_are_no_equality() {
        let now: Vec<i64> = (0..300_000).collect();
        let before: Vec<i64> = (299_990..600_000).collect();
        for wide in [true, false] {
            let column = |numbers: &[i64]| match wide {
                true => identifiers(Int64Array::from(numbers.to_vec())),
                false => identifiers(numbers.iter().map(|number| Some(format!("{number}"))).collect::<StringArray>()),
            };
            let (now, before) = (column(&now), column(&before));
            let beginnings: HashSet<u32> = before.order.iter().map(|entry| entry.beginning()).collect();
            assert!(now.order.iter().filter(|entry| beginnings.contains(&entry.beginning())).count() > 15);
            let found = now.find_in(&before).unwrap();
            let expected = |row: u32| row.checked_sub(299_990);
            assert!(now.order().zip(found.iter()).all(|(row, found)| found == expected(row)));
            let places = before.places_of(&batches(&now.values, 100_000), [1, 2]).unwrap();
            assert!(places.iter().eq((0..300_000).map(expected)));
        }
    }

    /// Of every way to compare, in one order and in any.
    #[test]
    fn places_of_values() {
        let before: Vec<i64> = (0..20_000).map(|number| number * 3).collect();
        let now: Vec<i64> = (0..30_000).rev().chain([3, 3]).collect();
        let texts = |numbers: &[i64]| -> ArrayRef {
            Arc::new(
                numbers
                    .iter()
                    .map(|number| Some(format!("somebody with the number {number}")))
                    .collect::<StringArray>(),
            )
        };
        let numbers = |numbers: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(numbers.to_vec())) };
        let small = |numbers: &[i64]| cast(&Int64Array::from(numbers.to_vec()), &DataType::Int32).unwrap();
        let with_null = |numbers: &[i64]| -> ArrayRef {
            Arc::new(numbers.iter().map(|&number| (number != 3).then_some(number)).collect::<Int64Array>())
        };
        let ways: [&dyn Fn(&[i64]) -> ArrayRef; 4] = [&texts, &numbers, &small, &with_null];
        for column in ways {
            let (before_column, now_column) =
                (column(&before).slice(1, before.len() - 1), column(&now).slice(2, now.len() - 2));
            let known = batches(&before_column, 30_000).finish([1, 2]).unwrap();
            let expected = |&number: &i64| {
                let place = number / 3 - 1;
                (number % 3 == 0 && (0..19_999).contains(&place)).then_some(place as u32)
            };
            let expected: Vec<Option<u32>> = now[2..].iter().map(expected).collect();
            for rows in [7_000, 30_000] {
                let places = known.places_of(&batches(&now_column, rows), [1, 2]).unwrap();
                assert!(places.iter().eq(expected.iter().copied()));
            }
            let ordered = batches(&now_column, 30_000).finish([1, 2]).unwrap();
            let found = ordered.find_in(&known).unwrap();
            assert!(ordered.order().zip(found.iter()).all(|(row, found)| found == expected[row as usize]));
        }
        let none = identifiers(Int64Array::from(Vec::<i64>::new()));
        assert!(none.places_of(&batches(&numbers(&[1, 2]), 5), [1, 2]).unwrap().iter().eq([None, None]));
    }

    /// The shorter way to hash numbers, where there is none missing, and rows.
    #[test]
    fn numbers_hash_as_rows_do() {
        let numbers = [0, 1, -1, i64::MAX, i64::MIN, 77];
        for data_type in [DataType::Int32, DataType::UInt32, DataType::Int64, DataType::UInt64, DataType::Int16] {
            let values = numbers.map(|number| match data_type {
                DataType::UInt32 | DataType::UInt64 => number & 0xffff_ffff,
                DataType::Int64 => number,
                _ => i64::from(number as i16),
            });
            for with_null in [false, true] {
                let values: Int64Array =
                    values.iter().map(|&value| (!with_null || value != 1).then_some(value)).collect();
                let values = cast(&values, &data_type).unwrap();
                let mut hashes = vec![0; 4];
                hash(&values, 1, [3, 4], &mut hashes).unwrap();
                let converter = RowConverter::new(vec![SortField::new(data_type.clone())]).unwrap();
                let rows = converter.convert_columns(&[values]).unwrap();
                let hasher = SipHasher13::new_with_keys(3, 4);
                let expected: Vec<u64> = (1..5).map(|row| hasher.hash(rows.row(row).as_ref())).collect();
                assert_eq!(hashes, expected, "{data_type}");
            }
        }
    }

    #[test]
    fn nothing_is_fine() {
        let none = identifiers(Int64Array::from(Vec::<i64>::new()));
        assert!(none.is_empty());
        assert_eq!(none.repeated().unwrap(), 0);
    }
}
