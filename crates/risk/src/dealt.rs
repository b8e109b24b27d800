//! Checks of a ledger of rings whose quasi-identifiers were dealt, and of its releases.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::FxHashMap;

use super::audit::Check;
use super::released::ReleasedTable;
use crate::error::{Error, Result, thousands};
use crate::microdata::ColumnEncoder;

/// Contents of such a ledger: people, rings, values, and whose quasi-identifiers each row shows; with the counts of values in releases.
pub struct DealtRings {
    ids: ColumnEncoder,
    values: ColumnEncoder,
    value: DataType,
    entries: Vec<Entry>,
    /// The places of whom each entry's row shows, entry after entry.
    shown: Vec<i64>,
    quasi: usize,
    nulls: usize,
    releases: Vec<Release>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// The release that drew the ring, and its number there.
    ring: [i64; 2],
    place: i64,
    person: u32,
    value: u32,
    /// Place in `shown` where the shown people begin.
    start: usize,
}

/// Rows with each value, and what the release says of its rows and counterfeits.
struct Release {
    number: u64,
    rows: FxHashMap<u32, u64>,
    counterfeits: u64,
}

impl DealtRings {
    /// Begins with a ledger with identifiers and sensitive values of these types.
    ///
    /// # Errors
    /// When they cannot be grouped by.
    pub fn try_new(id: &DataType, value: &DataType) -> Result<Self> {
        let encoder =
            |data_type: &DataType| ColumnEncoder::try_new(FieldRef::new(Field::new("x", data_type.clone(), true)));
        Ok(Self {
            ids: encoder(id)?,
            values: encoder(value)?,
            value: value.clone(),
            entries: Vec::new(),
            shown: Vec::new(),
            quasi: 0,
            nulls: 0,
            releases: Vec::new(),
        })
    }

    /// Appends entries of the ledger: who, with which value, in which ring and where, showing whom, from which release on.
    ///
    /// # Errors
    /// When a column is of another type.
    pub fn append_entries(&mut self, [ids, values, rings, places, shown, releases]: [&ArrayRef; 6]) -> Result<()> {
        let lists = shown.as_list_opt::<i32>();
        let lists = lists.ok_or_else(|| Error::refused("what rows show is no list in the ledger"))?;
        let (mut people, mut codes) = (Vec::new(), Vec::new());
        self.ids.intern(ids, &mut people)?;
        self.values.intern(values, &mut codes)?;
        let number = |column: &ArrayRef| -> Result<Vec<i64>> {
            Ok(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().values().to_vec())
        };
        let (rings, places, releases) = (number(rings)?, number(places)?, number(releases)?);
        let items = number(lists.values())?;
        self.nulls += ids.null_count() + values.null_count();
        for (row, ends) in lists.value_offsets().windows(2).enumerate() {
            let start = self.shown.len();
            self.shown.extend_from_slice(&items[ends[0] as usize..ends[1] as usize]);
            let length = self.shown.len() - start;
            self.nulls += usize::from(self.quasi > 0 && length != self.quasi);
            self.quasi = length;
            let (ring, place) = ([releases[row], rings[row]], places[row]);
            self.entries.push(Entry { ring, place, person: people[row] as u32, value: codes[row] as u32, start });
        }
        Ok(())
    }

    /// Appends a release, or a part of it, by its number, in ascending order.
    ///
    /// # Errors
    /// When the values are of another type.
    pub fn append_release(&mut self, number: u64, table: &ReleasedTable) -> Result<()> {
        let mut release = match self.releases.pop_if(|release| release.number == number) {
            Some(release) => release,
            None => Release { number, rows: FxHashMap::default(), counterfeits: 0 },
        };
        let values = table.values.as_ref().ok_or_else(|| Error::refused("the release has no sensitive values"))?;
        let mut codes = Vec::new();
        self.values.intern(&cast(values, &self.value)?, &mut codes)?;
        for &value in &table.sensitive {
            *release.rows.entry(codes[value as usize] as u32).or_default() += 1;
        }
        if let Some([_, counterfeits]) = table.said.last() {
            release.counterfeits = u64::try_from(*counterfeits).unwrap_or(u64::MAX);
        }
        self.releases.push(release);
        Ok(())
    }

    /// Returns the bytes held, roughly.
    pub fn size(&self) -> usize {
        let rows: usize = self.releases.iter().map(|release| release.rows.capacity() * 16).sum();
        let entries = self.entries.capacity() * size_of::<Entry>() + self.shown.capacity() * size_of::<i64>();
        self.ids.size() + self.values.size() + entries + rows
    }

    /// Returns the checks: everybody is in one ring, of `l` people with different values at least, whose rows show each of them once in every column; and
    /// releases have the rows of such rings.
    pub fn checks(self, l: usize) -> Vec<Check> {
        let Self { mut entries, shown, quasi, nulls, releases, .. } = self;
        let all = entries.len();
        let mut people: Vec<u32> = entries.iter().map(|entry| entry.person).collect();
        people.sort_unstable();
        let twice = people.windows(2).filter(|pair| pair[0] == pair[1]).count();
        entries.sort_unstable();
        let rings: Vec<&[Entry]> = entries.chunk_by(|a, b| a.ring == b.ring).collect();
        let is_torn = |ring: &&&[Entry]| {
            let mut values: Vec<u32> = ring.iter().map(|entry| entry.value).collect();
            values.sort_unstable();
            ring.len() < l
                || values.windows(2).any(|pair| pair[0] == pair[1])
                || (0..).zip(ring.iter()).any(|(place, entry): (i64, _)| entry.place != place)
        };
        let is_undealt = |ring: &&&[Entry]| {
            (0..quasi).any(|j| {
                let mut places: Vec<i64> =
                    ring.iter().map(|entry| shown.get(entry.start + j).copied().unwrap_or(-1)).collect();
                places.sort_unstable();
                !places.into_iter().eq(0..ring.len() as i64)
            })
        };
        let (torn, undealt) = (rings.iter().filter(is_torn).count(), rings.iter().filter(is_undealt).count());
        let mut checks = vec![
            Check::none(None, "ledger: everybody is in one ring", twice + nulls, all, "entries are too many"),
            Check::none(None, "ledger: rings have l values", torn, rings.len(), "rings have not"),
            Check::none(None, "ledger: rings show everybody once", undealt, rings.len(), "rings do not"),
        ];
        for Release { number, rows, counterfeits } in releases {
            let (mut known, mut fresh): (FxHashMap<u32, u64>, FxHashMap<u32, u64>) = Default::default();
            for entry in &entries {
                let drawn = u64::try_from(entry.ring[0]).unwrap_or(u64::MAX);
                if drawn <= number {
                    *known.entry(entry.value).or_default() += 1;
                }
                if drawn == number {
                    *fresh.entry(entry.value).or_default() += 1;
                }
            }
            let of = |rows: &FxHashMap<u32, u64>, value: &u32| rows.get(value).copied().unwrap_or(0);
            let unknown: u64 = rows.iter().map(|(value, rows)| rows.saturating_sub(of(&known, value))).sum();
            let missing: u64 = fresh.iter().map(|(value, fresh)| fresh.saturating_sub(of(&rows, value))).sum();
            let (count, new): (u64, u64) = (rows.values().sum(), fresh.values().sum());
            // Who is new is there.
            let passed = unknown == 0 && missing == 0 && counterfeits <= count.saturating_sub(new);
            let figures = format!(
                "{} of {} are of nobody, {} of {} new entries have no row, {} are counterfeits",
                thousands(unknown as usize),
                thousands(count as usize),
                thousands(missing as usize),
                thousands(new as usize),
                thousands(counterfeits as usize)
            );
            checks.push(Check::new(Some(number), "rows are of the ledger's rings", passed, figures));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, Int64Array, ListArray, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;
    use crate::TableColumns;
    use crate::release::{COUNTERFEITS, GROUP_SIZE};

    /// Person, value, ring and place, shown people, first release.
    type Row = (i64, &'static str, i64, i32, [i32; 2], i64);

    const ENTRIES: [Row; 5] = [
        (1, "a", 0, 0, [1, 0], 1),
        (2, "b", 0, 1, [2, 1], 1),
        (3, "c", 0, 2, [0, 2], 1),
        (4, "a", 0, 0, [0, 1], 2),
        (5, "b", 0, 1, [1, 0], 2),
    ];

    /// Returns the checks that fail, of releases with these values and numbers of counterfeits.
    fn failing(entries: &[Row], releases: &[(&[&str], i32)]) -> Vec<String> {
        let mut rings = DealtRings::try_new(&DataType::Int64, &DataType::Utf8).unwrap();
        let column = |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(entries.iter().map(of).collect::<Int64Array>()) };
        let values: ArrayRef = Arc::new(StringArray::from_iter_values(entries.iter().map(|row| row.1)));
        let places: ArrayRef = Arc::new(entries.iter().map(|row| row.3).collect::<Int32Array>());
        let shown = entries.iter().map(|row| Some(row.4.map(Some)));
        let shown: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(shown));
        let (ids, numbers, since) = (column(|row| row.0), column(|row| row.2), column(|row| row.5));
        rings.append_entries([&ids, &values, &numbers, &places, &shown, &since]).unwrap();
        for (number, (values, counterfeits)) in (1..).zip(releases) {
            let of_all = |number: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![number; values.len()])) };
            let rows = RecordBatch::try_from_iter([
                ("q", of_all(7)),
                ("s", Arc::new(StringArray::from(values.to_vec())) as ArrayRef),
                (GROUP_SIZE, of_all(values.len() as i32)),
                (COUNTERFEITS, of_all(*counterfeits)),
            ]);
            let sensitive = Some("s".to_owned());
            let columns = TableColumns { quasi: vec!["q".to_owned()], sensitive, within: None };
            rings.append_release(number, &ReleasedTable::try_new(&rows.unwrap(), &columns).unwrap()).unwrap();
        }
        rings.checks(2).into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    #[test]
    fn each_broken_promise_is_found() {
        let (first, both): ((&[&str], i32), (&[&str], i32)) = ((&["c", "a", "b"], 0), (&["a", "b", "c", "a", "b"], 2));
        let right = [first, both, (&["a", "b"], 1)];
        assert!(failing(&ENTRIES, &right).is_empty());
        let rows = "rows are of the ledger's rings";
        assert_eq!(failing(&ENTRIES, &[(&["c", "a", "a"], 0)]), [rows], "a row of nobody, and one that is missing");
        assert_eq!(failing(&ENTRIES, &[(&["c", "a", "b"], 1)]), [rows], "somebody who is new is no counterfeit");
        assert_eq!(failing(&ENTRIES, &[first, (&["c"], 0)]), [rows], "a new ring without rows");
        assert_eq!(failing(&ENTRIES, &[first, (&["a", "b", "d"], 0)]), [rows], "a value of nobody");
        let with = |place: usize, row: Row| {
            let mut entries = ENTRIES;
            entries[place] = row;
            failing(&entries, &right)
        };
        let (one, torn, shown) =
            ("ledger: everybody is in one ring", "ledger: rings have l values", "ledger: rings show everybody once");
        assert_eq!(with(3, (1, "a", 0, 0, [0, 1], 2)), [one]);
        assert_eq!(with(1, (2, "b", 0, 1, [1, 1], 1)), [shown], "somebody twice");
        assert_eq!(with(1, (2, "b", 0, 1, [3, 1], 1)), [shown], "somebody who is not there");
        assert_eq!(with(1, (2, "b", 0, 0, [2, 1], 1)), [torn], "two people in one place");
        assert_eq!(with(4, (5, "b", 1, 0, [0, 0], 2)), [torn, shown], "two rings of one");
        assert_eq!(with(2, (3, "a", 0, 2, [0, 2], 1)), [torn, rows, rows], "a value twice in a ring");
    }
}
