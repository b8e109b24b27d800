//! Releases whose rows are in hidden groups, beside a ledger of groups that stay together.

use rustc_hash::FxHashMap;

use super::{Histories, Tally};
use crate::audit::Check;
use crate::error::thousands;
use crate::released::ReleasedTable;

/// Numbers of a release's rows with each value, and of its declared counterfeits.
pub(super) struct HiddenRelease {
    number: u64,
    rows: FxHashMap<u32, u64>,
    counterfeits: u64,
}

impl Histories {
    /// Appends a release, or a part of it. `codes` are those of the values of the table.
    pub(super) fn append_hidden(&mut self, number: u64, table: &ReleasedTable, codes: &[usize]) {
        let mut release = match self.hidden.pop_if(|release| release.number == number) {
            Some(release) => release,
            None => HiddenRelease { number, rows: FxHashMap::default(), counterfeits: 0 },
        };
        for &value in &table.sensitive {
            *release.rows.entry(codes[value as usize] as u32).or_default() += 1;
        }
        if let Some([_, counterfeits]) = table.said.last() {
            release.counterfeits = u64::try_from(*counterfeits).unwrap_or(u64::MAX);
        }
        self.hidden.push(release);
    }

    /// Checks that people of each signature make whole groups, whose rows releases have.
    pub(super) fn hidden_checks(&self) -> Vec<Check> {
        let Tally { fresh, .. } = &self.tally;
        if self.hidden.is_empty() {
            return Vec::new();
        }
        let length = |mark: u32| self.signatures[mark as usize].len().max(1) as u64;
        let uneven = fresh.iter().filter(|&(&(_, mark, _), entries)| entries % length(mark) > 0).count();
        let name = "ledger: groups are whole";
        let mut checks = vec![Check::none(None, name, uneven, fresh.len(), "signatures lack people")];
        for HiddenRelease { number, rows, counterfeits } in &self.hidden {
            let (mut known, mut new) = (FxHashMap::<u32, u64>::default(), FxHashMap::<u32, u64>::default());
            for (&(release, mark, _), entries) in fresh.iter().filter(|((release, ..), _)| release <= number) {
                for &value in &self.signatures[mark as usize] {
                    *known.entry(value).or_default() += entries / length(mark);
                    if release == *number {
                        *new.entry(value).or_default() += entries / length(mark);
                    }
                }
            }
            let of = |rows: &FxHashMap<u32, u64>, value: &u32| rows.get(value).copied().unwrap_or(0);
            let unknown: u64 = rows.iter().map(|(value, rows)| rows.saturating_sub(of(&known, value))).sum();
            let missing: u64 = new.iter().map(|(value, new)| new.saturating_sub(of(rows, value))).sum();
            let (count, new): (u64, u64) = (rows.values().sum(), new.values().sum());
            // Who is new is present.
            let passed = unknown == 0 && missing == 0 && *counterfeits <= count.saturating_sub(new);
            let figures = format!(
                "{} of {} are of nobody, {} of {} new entries have no row, {} are counterfeits",
                thousands(unknown as usize),
                thousands(count as usize),
                thousands(missing as usize),
                thousands(new as usize),
                thousands(*counterfeits as usize)
            );
            checks.push(Check::new(Some(*number), "rows are of the ledger's groups", passed, figures));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{DataType, Int32Type};

    use crate::TableColumns;
    use crate::memory::Histories;
    use crate::release::{COUNTERFEITS, GROUP_SIZE, Lineage};
    use crate::released::ReleasedTable;

    /// Person, first release, values of the group.
    type Row = (i64, i64, &'static [i32]);

    const ENTRIES: [Row; 5] =
        [(1, 1, &[1, 2, 3]), (2, 1, &[1, 2, 3]), (3, 1, &[1, 2, 3]), (4, 2, &[1, 2]), (5, 2, &[1, 2])];

    /// Returns the checks that fail, of releases with these values and numbers of counterfeits.
    fn failing(entries: &[Row], releases: &[(&[i32], i32)]) -> Vec<String> {
        let mut histories = Histories::try_new(&DataType::Int64, &DataType::Int32).unwrap();
        let column = |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(entries.iter().map(of).collect::<Int64Array>()) };
        let lists = entries.iter().map(|row| Some(row.2.iter().copied().map(Some)));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        histories.append_entries(&column(|row| row.0), &lists, None, &column(|row| row.1)).unwrap();
        for (number, (values, counterfeits)) in (1..).zip(releases) {
            let of_all = |number: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![number; values.len()])) };
            let rows = RecordBatch::try_from_iter([
                ("q", Arc::new(StringArray::from(vec!["x"; values.len()])) as ArrayRef),
                ("s", Arc::new(Int32Array::from(values.to_vec())) as ArrayRef),
                (GROUP_SIZE, of_all(values.len() as i32)),
                (COUNTERFEITS, of_all(*counterfeits)),
            ]);
            let columns = TableColumns { quasi: vec!["q".to_owned()], sensitive: Some("s".to_owned()), within: None };
            histories.append_release(number, &ReleasedTable::try_new(&rows.unwrap(), &columns).unwrap()).unwrap();
        }
        let checks = histories.checks(2, Lineage::Invariant).unwrap();
        checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    #[test]
    fn each_broken_promise_is_found() {
        let (first, both): ((&[i32], i32), (&[i32], i32)) = ((&[3, 1, 2], 0), (&[1, 2, 3, 1, 2], 2));
        let right = [first, both, (&[1, 2], 1)];
        assert!(failing(&ENTRIES, &right).is_empty());
        let rows = "rows are of the ledger's groups";
        assert_eq!(failing(&ENTRIES, &[(&[3, 1, 1], 0)]), [rows], "a row of nobody, and one that is missing");
        assert_eq!(failing(&ENTRIES, &[(&[3, 1, 2], 1)]), [rows], "somebody who is new is no counterfeit");
        assert_eq!(failing(&ENTRIES, &[first, (&[3], 0)]), [rows], "a new group without rows");
        assert_eq!(failing(&ENTRIES, &[first, (&[1, 2, 4], 0)]), [rows], "a value of nobody");
        let with = |place: usize, row: Row| {
            let mut entries = ENTRIES;
            entries[place] = row;
            failing(&entries, &right)
        };
        let (one, whole) = ("ledger: one signature for everybody", "ledger: groups are whole");
        assert_eq!(with(3, (1, 2, &[1, 2])), [one]);
        assert_eq!(with(4, (5, 2, &[1, 3])), [whole, rows], "two groups of one");
        assert_eq!(with(2, (3, 1, &[1])), ["ledger: signatures of m values", whole, rows, rows]);
    }
}
