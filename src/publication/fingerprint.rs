//! Keyed fingerprints of snapshots and update relations: the same one again is recognized without keeping it.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hasher;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Result;
use siphasher::sip128::{Hasher128, SipHasher13};

/// Sum of keyed hashes of all rows: the same for any order of rows, and meaningless without the key.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    key: [u64; 2],
    sum: u128,
    converter: Option<RowConverter>,
}

impl Fingerprint {
    pub(crate) fn new(key: [u64; 2]) -> Self {
        Self { key, sum: 0, converter: None }
    }

    pub(crate) fn add_name(&mut self, name: &str) {
        let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        hasher.write(b"name ");
        hasher.write(name.as_bytes());
        self.sum = self.sum.wrapping_add(hasher.finish128().as_u128());
    }

    pub(crate) fn is_of_nothing(&self) -> bool {
        self.converter.is_none()
    }

    /// Adds the rows of a batch; all batches must have the same types.
    /// Fails when Arrow cannot encode a type as rows.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => {
                let fields = batch.columns().iter().map(|column| SortField::new(column.data_type().clone()));
                none.insert(RowConverter::new(fields.collect())?)
            }
        };
        let rows = converter.convert_columns(batch.columns())?;
        for row in &rows {
            let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
            hasher.write(row.as_ref());
            self.sum = self.sum.wrapping_add(hasher.finish128().as_u128());
        }
        Ok(())
    }

    /// Returns the fingerprint in hexadecimal digits.
    pub(crate) fn finish(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

/// Keyed fingerprint of what an update relation allows: rows that are repeated, that say that a value can stay as it is, or
/// that follow from others, do not change it. Of a domain, whose rows say of each value that it can stay as it is and nothing else, it is that
/// of the values.
#[derive(Debug)]
pub(crate) struct RelationFingerprint {
    key: [u64; 2],
    domain: bool,
    converter: Option<RowConverter>,
    numbers: HashMap<OwnedRow, u32>,
    /// Values by number, and the bits of the probability if there is one.
    pairs: BTreeSet<(u32, u32, Option<u64>)>,
}

impl RelationFingerprint {
    /// Begins without rows of an update relation, or of a domain.
    pub(crate) fn new(key: [u64; 2], domain: bool) -> Self {
        Self { key, domain, converter: None, numbers: HashMap::new(), pairs: BTreeSet::new() }
    }

    /// Adds rows: a value, what it can become, and perhaps the probability.
    /// Fails when Arrow cannot encode the type of the values as rows.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => none.insert(RowConverter::new(vec![SortField::new(batch.column(0).data_type().clone())])?),
        };
        let mut number = |column: usize| -> Result<Vec<u32>> {
            let rows = converter.convert_columns(&batch.columns()[column..=column])?;
            Ok(rows
                .iter()
                .map(|row| {
                    let next = self.numbers.len() as u32;
                    *self.numbers.entry(row.owned()).or_insert(next)
                })
                .collect())
        };
        let (from, to) = (number(0)?, number(1)?);
        let probabilities = batch.columns().get(2).map(|column| cast(column, &DataType::Float64)).transpose()?;
        let probabilities = probabilities.as_ref().map(|column| column.as_primitive::<Float64Type>());
        for (row, (from, to)) in from.into_iter().zip(to).enumerate().filter(|(_, (from, to))| from != to) {
            let probability =
                probabilities.filter(|column| column.is_valid(row)).map(|column| column.value(row).to_bits());
            self.pairs.insert((from, to, probability));
        }
        Ok(())
    }

    /// Returns the fingerprint in hexadecimal digits.
    pub(crate) fn finish(&self) -> String {
        let mut values: Vec<Option<&OwnedRow>> = vec![None; self.numbers.len()];
        self.numbers.iter().for_each(|(row, &number)| values[number as usize] = Some(row));
        let mut sum = 0_u128;
        let mut add = |from: u32, to: u32, probability: Option<u64>| {
            let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
            for value in [from, to].map(|value| values[value as usize]).into_iter().flatten() {
                hasher.write_u64(value.as_ref().len() as u64);
                hasher.write(value.as_ref());
            }
            hasher.write_u64(probability.map_or(0, |bits| bits.wrapping_add(1)));
            sum = sum.wrapping_add(hasher.finish128().as_u128());
        };
        if self.domain {
            (0..values.len() as u32).for_each(|value| add(value, value, None));
            return format!("{sum:032x}");
        }
        // What probabilities do not say does not follow.
        if self.pairs.iter().any(|(.., probability)| probability.is_some()) {
            self.pairs.iter().for_each(|&(from, to, probability)| add(from, to, probability));
            return format!("{sum:032x}");
        }
        let mut becomes: Vec<Vec<u32>> = vec![Vec::new(); values.len()];
        self.pairs.iter().for_each(|&(from, to, _)| becomes[from as usize].push(to));
        let mut seen = vec![u32::MAX; values.len()];
        for from in 0..values.len() as u32 {
            let mut open = vec![from];
            seen[from as usize] = from;
            while let Some(value) = open.pop() {
                for &to in &becomes[value as usize] {
                    if seen[to as usize] != from {
                        seen[to as usize] = from;
                        open.push(to);
                        add(from, to, None);
                    }
                }
            }
        }
        format!("{sum:032x}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, StringArray};

    use super::*;

    fn batch(ages: Vec<Option<i32>>, names: Vec<&str>) -> RecordBatch {
        let columns: [(&str, ArrayRef); 2] =
            [("age", Arc::new(Int32Array::from(ages))), ("name", Arc::new(StringArray::from(names)))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn of(key: [u64; 2], batches: &[RecordBatch]) -> String {
        let mut fingerprint = Fingerprint::new(key);
        batches.iter().for_each(|batch| fingerprint.add(batch).unwrap());
        fingerprint.finish()
    }

    #[test]
    fn order_and_batches_do_not_matter_but_rows_and_key_do() {
        let whole = of([1, 2], &[batch(vec![Some(1), None, Some(3)], vec!["a", "b", "c"])]);
        let parts = [batch(vec![Some(3)], vec!["c"]), batch(vec![None, Some(1)], vec!["b", "a"])];
        assert_eq!(of([1, 2], &parts), whole);
        assert_ne!(of([1, 3], &parts), whole);
        for other in [
            batch(vec![Some(1), None, Some(3)], vec!["a", "b", "d"]),
            batch(vec![Some(3), None, Some(1)], vec!["a", "b", "c"]),
            batch(vec![Some(1), None], vec!["a", "b"]),
            batch(vec![Some(1), None, Some(3), Some(3)], vec!["a", "b", "c", "c"]),
        ] {
            assert_ne!(of([1, 2], &[other]), whole);
        }
    }

    fn relation(pairs: &[(&str, &str)]) -> String {
        of_rows(pairs, false)
    }

    fn of_rows(pairs: &[(&str, &str)], domain: bool) -> String {
        let end = |of: fn(&(&str, &str)) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(pairs.iter().map(of)))
        };
        let columns = [("from", end(|pair| pair.0.to_owned())), ("to", end(|pair| pair.1.to_owned()))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut fingerprint = RelationFingerprint::new([1, 2], domain);
        fingerprint.add(&batch.slice(0, pairs.len() / 2)).unwrap();
        fingerprint.add(&batch.slice(pairs.len() / 2, pairs.len() - pairs.len() / 2)).unwrap();
        fingerprint.finish()
    }

    #[test]
    fn a_relation_is_what_it_allows() {
        let closed = relation(&[("a", "b"), ("b", "c"), ("a", "c")]);
        assert_eq!(relation(&[("a", "b"), ("b", "c")]), closed);
        assert_eq!(relation(&[("b", "c"), ("b", "c"), ("a", "a"), ("a", "b"), ("d", "d"), ("a", "c")]), closed);
        assert_eq!(relation(&[("a", "b"), ("b", "a")]), relation(&[("b", "b"), ("b", "a"), ("a", "b")]));
        assert_eq!(relation(&[]), relation(&[("a", "a")]));
        for other in [&[("a", "b"), ("a", "c")][..], &[("b", "a"), ("c", "b")], &[("a", "bb"), ("b", "c")], &[]] {
            assert_ne!(relation(other), closed, "{other:?}");
        }
    }

    #[test]
    fn a_domain_is_its_values() {
        let domain =
            |values: &[&'static str]| of_rows(&values.iter().map(|value| (*value, *value)).collect::<Vec<_>>(), true);
        assert_eq!(domain(&["a", "b", "c"]), domain(&["c", "a", "b", "a"]));
        for other in [&["a", "b"][..], &["a", "b", "d"], &["a", "b", "c", "d"], &[]] {
            assert_ne!(domain(other), domain(&["a", "b", "c"]), "{other:?}");
        }
    }

    #[test]
    fn probabilities_belong_to_a_relation() {
        let weighted = |stays: bool, probability: f64| {
            let (from, to) = (vec!["a", "a"], vec!["b", "a"]);
            let columns: [(&str, ArrayRef); 3] = [
                ("from", Arc::new(StringArray::from(from))),
                ("to", Arc::new(StringArray::from(to))),
                ("probability", Arc::new(Float64Array::from(vec![probability, 1.0 - probability]))),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let mut fingerprint = RelationFingerprint::new([1, 2], false);
            fingerprint.add(&batch.slice(0, if stays { 2 } else { 1 })).unwrap();
            fingerprint.finish()
        };
        assert_eq!(weighted(true, 0.25), weighted(false, 0.25));
        assert_ne!(weighted(false, 0.5), weighted(false, 0.25));
        assert_ne!(relation(&[("a", "b")]), weighted(false, 0.25));
    }
}
