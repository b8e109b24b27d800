//! Whether a ledger of published values and the releases it is of agree, over the whole history.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

use super::audit::Check;
use super::entries::{Agreement, Entries, Entry, Shown, Which};
use crate::error::{Error, Result};
use crate::microdata::{ColumnEncoder, held, held_type};

/// Which values of their quasi-identifiers people had, which were published in their place, and releases of such rows.
pub(crate) struct Repeats {
    ids: ColumnEncoder,
    types: Vec<DataType>,
    /// Numbers of combinations of values, original and published ones.
    rows: Box<dyn GroupValues>,
    entries: Vec<Entry>,
    /// Number of the original values of each entry.
    originals: Vec<u32>,
    nulls: usize,
    releases: Vec<(u64, Shown)>,
}

impl Repeats {
    /// Of a ledger with identifiers and quasi-identifiers of these types.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub(crate) fn try_new(id: &DataType, quasi: &[DataType]) -> Result<Self> {
        let field = |data_type: &DataType| Field::new("x", data_type.clone(), true);
        let held = quasi.iter().map(|data_type| field(&held_type(data_type)));
        let schema = Schema::new(held.collect::<Vec<_>>());
        Ok(Self {
            ids: ColumnEncoder::try_new(FieldRef::new(field(id)))?,
            types: quasi.to_vec(),
            rows: new_group_values(Arc::new(schema), &GroupOrdering::None)?,
            entries: Vec::new(),
            originals: Vec::new(),
            nulls: 0,
            releases: Vec::new(),
        })
    }

    /// Appends entries of the ledger: who, with which values, published as which, from which release on.
    ///
    /// # Errors
    /// When a column is of another type.
    pub(crate) fn append_entries(
        &mut self,
        ids: &ArrayRef,
        originals: &[ArrayRef],
        published: &[ArrayRef],
        releases: &ArrayRef,
    ) -> Result<()> {
        let mut people = Vec::new();
        self.ids.intern(ids, &mut people)?;
        self.nulls += ids.null_count();
        let originals = self.numbers(originals)?;
        self.originals.extend(originals);
        let releases = cast(releases, &DataType::Int64)?;
        let releases = releases.as_primitive::<Int64Type>();
        let published = self.numbers(published)?;
        self.entries.extend(people.iter().zip(published).enumerate().map(|(row, (&person, mark))| Entry {
            person: person as u32,
            release: u64::try_from(releases.value(row)).unwrap_or(0),
            mark,
        }));
        Ok(())
    }

    /// Appends a release, or a part of it, by its number, in ascending order: its quasi-identifiers.
    ///
    /// # Errors
    /// When a column is of another type.
    pub(crate) fn append_release(&mut self, number: u64, quasi: &[ArrayRef]) -> Result<()> {
        let mut shown = match self.releases.pop_if(|(known, _)| *known == number) {
            Some((_, shown)) => shown,
            None => Shown::default(),
        };
        for mark in self.numbers(quasi)? {
            let shown = shown.entry(mark).or_default();
            shown.0 += 1;
            shown.1 += 1;
        }
        self.releases.push((number, shown));
        Ok(())
    }

    fn numbers(&mut self, columns: &[ArrayRef]) -> Result<Vec<u32>> {
        if columns.len() != self.types.len() {
            return Err(Error::refused("a quasi-identifier is missing"));
        }
        let columns = columns.iter().zip(&self.types).map(|(column, data_type)| held(&cast(column, data_type)?));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut numbers = Vec::new();
        self.rows.intern(&columns, &mut numbers)?;
        Ok(numbers.into_iter().map(|number| number as u32).collect())
    }

    /// Bytes held, roughly.
    pub(crate) fn size(&self) -> usize {
        let shown: usize = self.releases.iter().map(|(_, shown)| shown.len()).sum();
        let entries = self.entries.capacity() * (size_of::<Entry>() + size_of::<u32>());
        self.ids.size() + self.rows.size() + entries + 32 * shown
    }

    /// The checks: nobody was drawn twice for the same values, and releases have the rows of the ledger's people.
    pub(crate) fn checks(self) -> Vec<Check> {
        let Self { entries, originals, releases, nulls, .. } = self;
        let mut drawn: Vec<(u32, u32)> = entries.iter().map(|entry| entry.person).zip(originals).collect();
        drawn.sort_unstable();
        let again = drawn.windows(2).filter(|pair| pair[0] == pair[1]).count();
        let entries = Entries::new(entries);
        let twice = entries.steps().filter(|[before, after]| before.release == after.release).count();
        let name = "ledger: the same values are drawn once";
        let mut checks = vec![Check::none(None, name, again + twice + nulls, entries.len(), "entries are too many")];
        // Who changes back is published as before.
        let mut agreement = Agreement::default();
        agreement.add(&entries, Which::Any);
        checks.extend(agreement.checks("rows are of the ledger's people", &releases));
        checks
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array, StringArray};

    use super::*;

    /// Who, since which release, with which age and town, and with which published.
    type Row = (i64, i64, (i32, &'static str), (i32, &'static str));

    fn columns<'a>(rows: impl Iterator<Item = (i32, &'a str)> + Clone) -> Vec<ArrayRef> {
        vec![
            Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| row.0))),
            Arc::new(StringArray::from_iter_values(rows.map(|row| row.1))),
        ]
    }

    fn failing(entries: &[Row], releases: &[&[(i32, &'static str)]]) -> Vec<String> {
        let mut repeats = Repeats::try_new(&DataType::Int64, &[DataType::Int32, DataType::Utf8]).unwrap();
        let numbers =
            |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(entries.iter().map(of))) };
        let originals = columns(entries.iter().map(|row| row.2));
        let published = columns(entries.iter().map(|row| row.3));
        repeats.append_entries(&numbers(|row| row.0), &originals, &published, &numbers(|row| row.1)).unwrap();
        for (number, rows) in (1..).zip(releases) {
            repeats.append_release(number, &columns(rows.iter().copied())).unwrap();
        }
        repeats.checks().into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    #[test]
    fn rows_are_those_of_the_ledger() {
        let entries = [(1, 1, (30, "a"), (31, "a")), (2, 1, (31, "b"), (30, "b")), (2, 2, (40, "b"), (41, "c"))];
        let first: &[(i32, &str)] = &[(30, "b"), (31, "a")];
        assert!(failing(&entries, &[first, &[(31, "a"), (41, "c")], &[(41, "c")]]).is_empty());
        assert!(failing(&entries, &[first, &[(31, "a"), (41, "c")], &[(30, "b")]]).is_empty(), "changed back");
        let rows = "rows are of the ledger's people";
        assert_eq!(failing(&entries, &[&[(30, "b"), (30, "a")]]), [rows], "a row of nobody");
        assert_eq!(failing(&entries, &[&[(30, "b"), (31, "a"), (31, "a")]]), [rows], "two rows of one person");
        assert_eq!(failing(&entries, &[first, &[(31, "a"), (30, "b")]]), [rows], "the new row is missing");
        let redrawn = [entries[0], entries[1], (1, 2, (30, "a"), (30, "a"))];
        assert_eq!(failing(&redrawn, &[first, &[(30, "a"), (30, "b")]]), ["ledger: the same values are drawn once"]);
    }
}
