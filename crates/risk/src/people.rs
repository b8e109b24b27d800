//! Checks of methods without memory: everybody is in one release only. Releases have the rows of a ledger's people.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};

use super::audit::Check;
use crate::error::{Result, thousands};
use crate::microdata::ColumnEncoder;

/// Says who was published, and how many rows releases have.
pub struct Appearances {
    ids: ColumnEncoder,
    /// Entries of each person, by number.
    entries: Vec<u32>,
    nulls: usize,
    /// Entries that came with each release.
    of_release: BTreeMap<u64, u64>,
    rows: BTreeMap<u64, u64>,
}

impl Appearances {
    /// Begins with a ledger with identifiers of this type.
    ///
    /// # Errors
    /// When they cannot be grouped by.
    pub fn try_new(id: &DataType) -> Result<Self> {
        Ok(Self {
            ids: ColumnEncoder::try_new(FieldRef::new(Field::new("x", id.clone(), true)))?,
            entries: Vec::new(),
            nulls: 0,
            of_release: BTreeMap::new(),
            rows: BTreeMap::new(),
        })
    }

    /// Appends entries of the ledger: who, in which release.
    ///
    /// # Errors
    /// When a column is of another type.
    pub fn append_entries(&mut self, ids: &ArrayRef, releases: &ArrayRef) -> Result<()> {
        let mut people = Vec::new();
        self.ids.intern(ids, &mut people)?;
        self.nulls += ids.null_count();
        for person in people {
            if self.entries.len() <= person {
                self.entries.resize(person + 1, 0);
            }
            self.entries[person] += 1;
        }
        for release in cast(releases, &DataType::Int64)?.as_primitive::<Int64Type>() {
            *self.of_release.entry(release.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)).or_default() +=
                1;
        }
        Ok(())
    }

    /// Appends a release, or a part of it, by its number: how many rows it has.
    pub fn append_release(&mut self, number: u64, rows: u64) {
        *self.rows.entry(number).or_default() += rows;
    }

    /// Returns the bytes held, roughly.
    pub fn size(&self) -> usize {
        self.ids.size() + self.entries.capacity() * size_of::<u32>()
    }

    /// Returns the checks: nobody is in two releases, and every row of a release is one of the ledger's people.
    pub fn checks(self) -> Vec<Check> {
        let twice = self.entries.iter().map(|&entries| entries.saturating_sub(1) as usize).sum::<usize>();
        let all = self.entries.iter().map(|&entries| entries as usize).sum();
        let name = "ledger: everybody is in one release";
        let mut checks = vec![Check::none(None, name, twice + self.nulls, all, "entries are too many")];
        for (number, rows) in self.rows {
            let people = self.of_release.get(&number).copied().unwrap_or(0);
            let figures =
                format!("{} rows, {} people in the ledger", thousands(rows as usize), thousands(people as usize));
            checks.push(Check::new(Some(number), "rows are of the ledger's people", rows == people, figures));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;

    fn failing(entries: &[(&str, i64)], rows: &[u64]) -> Vec<String> {
        let mut people = Appearances::try_new(&DataType::Utf8).unwrap();
        for part in entries.chunks(2) {
            let ids: ArrayRef = Arc::new(StringArray::from_iter_values(part.iter().map(|entry| entry.0)));
            let releases: ArrayRef = Arc::new(Int64Array::from_iter_values(part.iter().map(|entry| entry.1)));
            people.append_entries(&ids, &releases).unwrap();
        }
        for (number, &rows) in (1..).zip(rows) {
            people.append_release(number, rows / 2);
            people.append_release(number, rows - rows / 2);
        }
        people.checks().into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    #[test]
    fn nobody_is_in_two_releases() {
        let entries = [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 2)];
        assert!(failing(&entries, &[2, 3]).is_empty());
        assert_eq!(failing(&entries, &[2, 4]), ["rows are of the ledger's people"]);
        let again = [entries.as_slice(), &[("a", 3)]].concat();
        assert_eq!(failing(&again, &[2, 3, 1]), ["ledger: everybody is in one release"]);
    }
}
