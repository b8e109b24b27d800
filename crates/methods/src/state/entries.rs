//! People whom the entries of a ledger are of.

use datafusion::arrow::array::{Array, UInt32Array};
use datafusion::arrow::compute::take;

use crate::error::Result;
use crate::microdata::{Among, HashKey, IdentifierBuilder, Identifiers};

/// The entries of everybody, in the order in which the ledger has them.
#[derive(Debug)]
pub(super) struct Entries {
    /// Of each row of the microdata.
    among: Among,
    /// Entries of people who have several, be they in the microdata or not; one of these people after the other.
    several: Vec<u32>,
    /// End of the entries of each of them.
    ends: Vec<usize>,
}

impl Entries {
    /// Looks for the rows of people with entries. `key` is that by which the rows are in order.
    ///
    /// Entries are not put in order: only those of people who have none of the rows are, and those of people who have several.
    /// Fails when Arrow cannot compare values of the type.
    pub(super) fn find(identifiers: IdentifierBuilder, microdata: &Identifiers, key: HashKey) -> Result<Self> {
        let identifiers = identifiers.in_one_piece()?;
        let among = microdata.among(&identifiers, key)?;
        let others = take(&identifiers, &UInt32Array::from(among.elsewhere.clone()), None)?;
        let data_type = others.data_type().clone();
        let others = Identifiers::try_new(others, data_type, key)?;
        let (mut several, mut ends) = (Vec::new(), Vec::new());
        for run in others.runs_of_several()? {
            several.extend(run.iter().map(|hashed| among.elsewhere[hashed.row() as usize]));
            ends.push(several.len());
        }
        for again in among.again.chunk_by(|a, b| a.0 == b.0) {
            several.extend(among.first.at(again[0].0 as usize));
            several.extend(again.iter().map(|&(_, entry)| entry));
            ends.push(several.len());
        }
        Ok(Self { among, several, ends })
    }

    pub(super) fn rows(&self) -> usize {
        self.among.first.len()
    }

    /// Returns the first entry of a row's person, if there is any.
    #[inline]
    pub(super) fn of(&self, row: usize) -> Option<u32> {
        self.among.first.at(row)
    }

    pub(super) fn several(&self) -> impl Iterator<Item = &[u32]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.several[start..end])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
    use datafusion::arrow::datatypes::DataType;
    use proptest::prelude::*;

    use super::*;

    fn builder(ids: &[i64], texts: bool, batch: usize) -> IdentifierBuilder {
        let mut builder = IdentifierBuilder::new(if texts { DataType::Utf8 } else { DataType::Int64 });
        for ids in ids.chunks(batch) {
            let column: ArrayRef = match texts {
                true => Arc::new(ids.iter().map(|id| Some(id.to_string())).collect::<StringArray>()),
                false => Arc::new(Int64Array::from(ids.to_vec())),
            };
            builder.append(&column).unwrap();
        }
        builder
    }

    proptest! {
        /// People with no entry, one and several; entries of people who are not there; in batches of any size, on any number of threads.
        #[test]
        fn everybody_has_their_entries(
            entries in prop::collection::vec(0_i64..40, 0..60), people in prop::collection::btree_set(0_i64..40, 0..30),
            texts in any::<bool>(), batch in 1_usize..20, threads in 1_usize..4,
        ) {
            let people: Vec<i64> = people.into_iter().collect();
            let microdata = builder(&people, texts, 100).finish([1, 2]).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| Entries::find(builder(&entries, texts, batch), &microdata, [1, 2])).unwrap();
            let mut of: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
            (0..).zip(&entries).for_each(|(entry, &person)| of.entry(person).or_default().push(entry));
            prop_assert_eq!(found.rows(), people.len());
            for (row, arrival) in microdata.order().enumerate() {
                let all = of.get(&people[arrival as usize]);
                prop_assert_eq!(found.of(row), all.map(|all| all[0]));
            }
            let mut several: Vec<Vec<u32>> = found.several().map(<[u32]>::to_vec).collect();
            several.iter_mut().for_each(|entries| entries.sort_unstable());
            several.sort();
            let mut expected: Vec<Vec<u32>> = of.into_values().filter(|entries| entries.len() > 1).collect();
            expected.sort();
            prop_assert_eq!(several, expected);
        }
    }
}
