//! Checks of a ledger of worlds, and of the people in its releases.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::{FxHashMap, FxHashSet};

use super::audit::Check;
use super::rings::people_outside_rings;
use crate::error::{Error, Result, thousands};
use crate::microdata::ColumnEncoder;

/// Partners whose values everybody carries in the other worlds, and numbers of rows of releases.
pub struct Partnerships {
    ids: ColumnEncoder,
    id: DataType,
    /// Person, release and partners, world by world.
    entries: Vec<(u32, u64, Vec<u32>)>,
    nulls: usize,
    releases: Vec<(u64, u64)>,
}

impl Partnerships {
    /// Begins with a ledger with identifiers of this type.
    ///
    /// # Errors
    /// When it cannot be grouped by.
    pub fn try_new(id: &DataType) -> Result<Self> {
        let ids = ColumnEncoder::try_new(FieldRef::new(Field::new("x", id.clone(), true)))?;
        Ok(Self { ids, id: id.clone(), entries: Vec::new(), nulls: 0, releases: Vec::new() })
    }

    /// Appends entries of the ledger: who, with which partners (none where an entry adds something else), from which release on.
    ///
    /// # Errors
    /// When a column is of another type.
    pub fn append_entries(&mut self, ids: &ArrayRef, partners: &ArrayRef, releases: &ArrayRef) -> Result<()> {
        let lists = partners.as_list_opt::<i32>();
        let lists = lists.ok_or_else(|| Error::refused("the partners of the ledger are not lists"))?;
        let (mut people, mut codes) = (Vec::new(), Vec::new());
        self.ids.intern(ids, &mut people)?;
        self.ids.intern(&cast(lists.values(), &self.id)?, &mut codes)?;
        self.nulls += ids.null_count() + partners.null_count() + lists.values().null_count();
        let releases = cast(releases, &DataType::Int64)?;
        let releases = releases.as_primitive::<Int64Type>();
        for (row, (ends, &person)) in lists.value_offsets().windows(2).zip(&people).enumerate() {
            let partners: Vec<u32> =
                codes[ends[0] as usize..ends[1] as usize].iter().map(|&code| code as u32).collect();
            if !partners.is_empty() {
                self.entries.push((person as u32, u64::try_from(releases.value(row)).unwrap_or(0), partners));
            }
        }
        Ok(())
    }

    /// Appends a release by its number, in ascending order: how many rows it has.
    pub fn append_release(&mut self, number: u64, rows: u64) {
        self.releases.push((number, rows));
    }

    /// Returns the bytes held, roughly.
    pub fn size(&self) -> usize {
        let partners: usize = self.entries.iter().map(|entry| entry.2.capacity()).sum();
        self.ids.size() + self.entries.capacity() * 40 + partners * size_of::<u32>()
    }

    /// Returns the checks: `worlds - 1` different partners for everybody, each world one to one among the people who came together, all worlds shifts
    /// of rings, so that none looks like the true one, and no more rows in a release than people so far.
    pub fn checks(self, worlds: usize) -> Vec<Check> {
        let all = self.entries.len();
        let mut seen = FxHashSet::default();
        let twice = self.entries.iter().filter(|entry| !seen.insert(entry.0)).count();
        let is_wrong = |(person, _, partners): &&(u32, u64, Vec<u32>)| {
            let different: FxHashSet<&u32> = partners.iter().chain([person]).collect();
            partners.len() + 1 != worlds || different.len() != worlds
        };
        let wrong = self.entries.iter().filter(is_wrong).count();
        // How often somebody's values are carried in each world; by people of the same release.
        let came: FxHashMap<u32, u64> = self.entries.iter().map(|entry| (entry.0, entry.1)).collect();
        let mut carried = FxHashSet::default();
        let once = |(_, release, partners): &&(u32, u64, Vec<u32>)| {
            (0..).zip(partners).all(|(world, partner): (u32, _)| {
                came.get(partner) == Some(release) && carried.insert((world, *partner))
            })
        };
        let lost = all - self.entries.iter().filter(once).count();
        let place: FxHashMap<u32, usize> =
            self.entries.iter().zip(0..).map(|(entry, place)| (entry.0, place)).collect();
        let place_of = |partner: &u32| place.get(partner).copied().unwrap_or(usize::MAX);
        let partners: Vec<Vec<usize>> =
            self.entries.iter().map(|entry| entry.2.iter().map(place_of).collect()).collect();
        let outside = people_outside_rings(&partners, &[]);
        let mut checks = vec![
            Check::none(None, "ledger: partners once for everybody", twice + self.nulls, all, "entries are too many"),
            Check::none(None, "ledger: everybody is in l worlds", wrong, all, "people have other partners than that"),
            Check::none(
                None,
                "ledger: worlds are shifts of rings",
                outside,
                all,
                "people are not in a ring with their partners",
            ),
            Check::none(None, "ledger: worlds are one to one", lost, all, "people carry what others carry"),
        ];
        for (number, rows) in self.releases {
            let people = self.entries.iter().filter(|entry| entry.1 <= number).count() as u64;
            let figures = format!("{} rows of {} people", thousands(rows as usize), thousands(people as usize));
            checks.push(Check::new(Some(number), "rows are of the ledger's people", rows <= people, figures));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, ListArray};

    use super::*;

    /// Person, first release, partners.
    type Row = (i64, i64, [i64; 2]);

    fn failing(entries: &[Row], releases: &[u64]) -> Vec<String> {
        let mut partnerships = Partnerships::try_new(&DataType::Int64).unwrap();
        let numbers =
            |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(entries.iter().map(of))) };
        let lists = entries.iter().map(|row| Some(row.2.map(Some)));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        partnerships.append_entries(&numbers(|row| row.0), &lists, &numbers(|row| row.1)).unwrap();
        (1..).zip(releases).for_each(|(number, &rows)| partnerships.append_release(number, rows));
        let checks = partnerships.checks(3);
        checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    const ENTRIES: [Row; 6] =
        [(1, 1, [2, 3]), (2, 1, [3, 1]), (3, 1, [1, 2]), (4, 2, [5, 6]), (5, 2, [6, 4]), (6, 2, [4, 5])];

    #[test]
    fn each_broken_promise_is_found() {
        assert!(failing(&ENTRIES, &[3, 6]).is_empty());
        assert!(failing(&ENTRIES, &[3, 5]).is_empty());
        assert_eq!(failing(&ENTRIES, &[4, 5]), ["rows are of the ledger's people"]);
        let with = |place: usize, row: Row| {
            let mut entries = ENTRIES;
            entries[place] = row;
            failing(&entries, &[3, 6])
        };
        let (worlds, one) = ("ledger: everybody is in l worlds", "ledger: worlds are one to one");
        let rings = "ledger: worlds are shifts of rings";
        assert_eq!(with(0, (1, 1, [2, 2])), [worlds, rings, one], "nobody else in a world");
        assert_eq!(with(0, (1, 1, [1, 3])), [worlds, rings, one], "their own values");
        assert_eq!(with(3, (4, 2, [2, 6])), [rings, one], "somebody of another release");
        let twice = [ENTRIES.as_slice(), &[ENTRIES[0]]].concat();
        assert_eq!(failing(&twice, &[4, 7]), ["ledger: partners once for everybody", rings, one]);
    }
}
