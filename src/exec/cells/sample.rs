//! A sample of a table that does not depend on the order of its rows. It holds the different rows with the least
//! keyed hashes, and how often each occurs.

use std::collections::hash_map::Entry;
use std::hash::Hasher;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use rustc_hash::FxHashMap;
use siphasher::sip::SipHasher13;

use crate::error::{Error, Result};
use crate::microdata::{HashKey, compact_views, held, held_type};

pub(super) const SAMPLED: usize = 65_536;

/// Most batches that rows are kept in: of a large table, few rows of a batch are in the sample.
const MOST_BATCHES: usize = 1024;

pub(super) struct Sampler {
    schema: SchemaRef,
    converter: RowConverter,
    key: HashKey,
    most: usize,
    /// Rows with greater hashes are not in the sample, whatever comes.
    threshold: u64,
    counts: FxHashMap<u64, u32>,
    /// The first row of each hash in `counts`, and their hashes; also of some hashes that have gone.
    kept: Vec<(RecordBatch, Vec<u64>)>,
    kept_bytes: usize,
    rows: usize,
}

/// Different rows, how often each occurs, and how many rows there are in all.
pub(super) struct Sampled {
    pub rows: RecordBatch,
    pub weights: Vec<u32>,
    pub of: usize,
}

impl Sampler {
    /// Begins a sample of tables of these columns.
    /// Fails when their rows cannot be hashed.
    pub(super) fn try_new(schema: SchemaRef, key: HashKey, most: usize) -> Result<Self> {
        let fields = schema.fields().iter().map(|field| SortField::new(held_type(field.data_type()))).collect();
        let converter = RowConverter::new(fields)?;
        Ok(Self {
            schema,
            converter,
            key,
            most,
            threshold: u64::MAX,
            counts: FxHashMap::default(),
            kept: Vec::new(),
            kept_bytes: 0,
            rows: 0,
        })
    }

    /// Looks at rows.
    /// Fails when they cannot be hashed.
    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        let columns = batch.columns().iter().map(held).collect::<Result<Vec<ArrayRef>>>()?;
        let mut chosen = Vec::new();
        let mut hashes = Vec::new();
        for (place, row) in self.converter.convert_columns(&columns)?.iter().enumerate() {
            let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
            hasher.write(row.as_ref());
            let hash = hasher.finish();
            if hash > self.threshold {
                continue;
            }
            match self.counts.entry(hash) {
                Entry::Occupied(mut count) => *count.get_mut() = count.get().saturating_add(1),
                Entry::Vacant(vacant) => {
                    vacant.insert(1);
                    chosen.push(place as u32);
                    hashes.push(hash);
                }
            }
        }
        if !chosen.is_empty() {
            let rows = take_record_batch(batch, &UInt32Array::from(chosen))?;
            // A view would hold the texts of all rows that came with it.
            let columns = rows.columns().iter().map(|column| compact_views(ArrayRef::clone(column))).collect();
            let rows = RecordBatch::try_new(rows.schema(), columns)?;
            self.kept_bytes += get_record_batch_memory_size(&rows);
            self.kept.push((rows, hashes));
        }
        let compacts = self.counts.len() > 2 * self.most || self.kept.len() > MOST_BATCHES;
        if compacts { self.compact() } else { Ok(()) }
    }

    pub(super) fn size(&self) -> usize {
        self.kept_bytes + self.counts.capacity() * size_of::<(u64, u32, u64)>()
    }

    /// Keeps as many rows as there are in a sample.
    fn compact(&mut self) -> Result<()> {
        if self.counts.len() > self.most {
            let mut hashes: Vec<u64> = self.counts.keys().copied().collect();
            let (_, last, _) = hashes.select_nth_unstable(self.most.max(1) - 1);
            self.threshold = *last;
            let threshold = self.threshold;
            self.counts.retain(|hash, _| *hash <= threshold);
        }
        let mut batches = Vec::with_capacity(self.kept.len());
        let mut hashes = Vec::with_capacity(self.counts.len());
        for (rows, of) in std::mem::take(&mut self.kept) {
            let is_in: Vec<bool> = of.iter().map(|hash| *hash <= self.threshold).collect();
            hashes.extend(of.into_iter().zip(&is_in).filter(|(_, is_in)| **is_in).map(|(hash, _)| hash));
            batches.push(filter_record_batch(&rows, &BooleanArray::from(is_in))?);
        }
        let rows = concat_batches(&self.schema, &batches)?;
        self.kept_bytes = get_record_batch_memory_size(&rows);
        self.kept.push((rows, hashes));
        Ok(())
    }

    /// Returns the sample, in the order of hashes.
    ///
    /// # Errors
    /// Never, but that rows are gathered.
    pub(super) fn finish(mut self) -> Result<Sampled> {
        self.compact()?;
        let Some((rows, hashes)) = self.kept.pop() else { return Err(Error::internal("a sample without rows")) };
        let order = datafusion::arrow::compute::sort_to_indices(&UInt64Array::from(hashes.clone()), None, None)?;
        let count = |place: &u32| self.counts.get(&hashes[*place as usize]).copied();
        let weights = order.values().iter().map(count).collect::<Option<Vec<u32>>>();
        let weights = weights.ok_or_else(|| Error::internal("a sampled row that nobody has counted"))?;
        Ok(Sampled { rows: take_record_batch(&rows, &order)?, weights, of: self.rows })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::Int64Type;
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn batch(rows: &[i64]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(rows.to_vec()));
        let texts: ArrayRef =
            Arc::new(rows.iter().map(|row| Some(format!("t{}", row % 3))).collect::<StringViewArray>());
        RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap()
    }

    fn sample(rows: &[i64], size: usize, most: usize) -> (Vec<i64>, Vec<u32>) {
        let mut sampler = Sampler::try_new(batch(&[]).schema(), [1, 2], most).unwrap();
        for rows in rows.chunks(size) {
            sampler.append(&batch(rows)).unwrap();
        }
        assert!(sampler.size() > 0 || rows.is_empty());
        let sampled = sampler.finish().unwrap();
        assert_eq!(sampled.of, rows.len());
        (sampled.rows.column(0).as_primitive::<Int64Type>().values().to_vec(), sampled.weights)
    }

    /// The same rows in any order and any batches, each counted whole: also those that were first seen late.
    #[test]
    fn the_order_of_rows_does_not_matter() {
        let mut rows: Vec<i64> = (0..20_000).map(|row| row % 5_000 * (1 + row / 15_000)).collect();
        let (first, weights) = sample(&rows, 777, 500);
        assert_eq!(first.len(), 500);
        for (row, weight) in first.iter().zip(&weights) {
            assert_eq!(rows.iter().filter(|other| *other == row).count(), *weight as usize);
        }
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        // Also of more batches than are kept.
        for size in [20_000, 13] {
            rows.shuffle(&mut rng);
            assert_eq!(sample(&rows, size, 500), (first.clone(), weights.clone()));
        }
    }

    #[test]
    fn a_small_table_is_its_own_sample() {
        let (mut rows, weights) = sample(&[3, 1, 3, 2], 2, 500);
        assert_eq!(weights.iter().sum::<u32>(), 4);
        rows.sort_unstable();
        assert_eq!(rows, [1, 2, 3]);
        assert_eq!(sample(&[], 1, 500), (Vec::new(), Vec::new()));
    }
}
