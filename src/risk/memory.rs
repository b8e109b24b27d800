//! Whether a ledger of signatures and the releases it is of agree, over the whole history.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::{FxHashMap, FxHashSet};

use super::audit::Check;
use super::entries::{Entries, Entry, Shown, Which};
use super::legal::{Legality, is_legal};
use super::released::ReleasedTable;
use super::updates::{Update, Updates};
use crate::error::{Error, Result};
use crate::microdata::ColumnEncoder;

/// What a method promises of people's signatures from release to release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    /// m-invariance: everybody has one signature for ever.
    Invariant,
    /// m-Distinct: the values of a group are a legal update instance, in the strict form, of those of the group that each of
    /// its people was in most recently.
    Distinct {
        /// Whether the update relation is meant to be closed; else it must be transitive as it is.
        close: bool,
        /// Whether nobody's first group has two values that can become the same one.
        disjoint: bool,
    },
}

/// Signatures in a ledger and in its releases, in codes.
pub struct Histories {
    values: ColumnEncoder,
    value_type: DataType,
    ids: ColumnEncoder,
    entries: Vec<Entry>,
    nulls: usize,
    /// Numbers of signatures, which are ascending codes of values.
    numbers: FxHashMap<Vec<u32>, u32>,
    signatures: Vec<Vec<u32>>,
    releases: Vec<(u64, Shown)>,
    updates: Vec<(u32, u32)>,
}

impl Histories {
    /// Of a ledger with identifiers and signatures over values of these types.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub fn try_new(id: &DataType, value: &DataType) -> Result<Self> {
        let encoder =
            |data_type: &DataType| ColumnEncoder::try_new(FieldRef::new(Field::new("x", data_type.clone(), true)));
        Ok(Self {
            values: encoder(value)?,
            value_type: value.clone(),
            ids: encoder(id)?,
            entries: Vec::new(),
            nulls: 0,
            numbers: FxHashMap::default(),
            signatures: Vec::new(),
            releases: Vec::new(),
            updates: Vec::new(),
        })
    }

    /// Appends entries of the ledger: who, with which signature, from which release on.
    ///
    /// # Errors
    /// When a column is of another type.
    pub fn append_entries(&mut self, ids: &ArrayRef, signatures: &ArrayRef, releases: &ArrayRef) -> Result<()> {
        let (mut people, mut codes) = (Vec::new(), Vec::new());
        self.ids.intern(ids, &mut people)?;
        self.nulls += ids.null_count() + signatures.null_count();
        let lists = signatures.as_list_opt::<i32>();
        let lists = lists.ok_or_else(|| Error::refused("the signatures of the ledger are not lists"))?;
        self.values.intern(lists.values(), &mut codes)?;
        let releases = cast(releases, &DataType::Int64)?;
        let releases = releases.as_primitive::<Int64Type>();
        for (row, (ends, &person)) in lists.value_offsets().windows(2).zip(&people).enumerate() {
            let signature = codes[ends[0] as usize..ends[1] as usize].iter().map(|&code| code as u32);
            let mark = self.number(signature.collect());
            let release = u64::try_from(releases.value(row)).unwrap_or(0);
            self.entries.push(Entry { person: person as u32, release, mark });
        }
        Ok(())
    }

    /// Appends a release by its number, in ascending order.
    ///
    /// # Errors
    /// When grouping fails.
    pub fn append_release(&mut self, number: u64, table: &ReleasedTable) -> Result<()> {
        let Some(values) = &table.values else { return Err(Error::refused("the release has no sensitive values")) };
        let mut codes = Vec::new();
        self.values.intern(values, &mut codes)?;
        let counterfeits = table.of_groups(&table.counterfeits);
        let mut shown = Shown::default();
        for ((histogram, &counterfeits), size) in table.histograms.iter().zip(&counterfeits).zip(table.sizes()) {
            let signature = histogram.iter().map(|&(value, _)| codes[value as usize] as u32).collect();
            let host = shown.entry(self.number(signature)).or_default();
            host.0 += 1;
            host.1 += size.saturating_sub(counterfeits.max(0) as u64);
        }
        self.releases.push((number, shown));
        Ok(())
    }

    /// Appends rows of the update relation: a value, and what it can become.
    ///
    /// # Errors
    /// When the columns are of another type.
    pub fn append_updates(&mut self, from: &ArrayRef, to: &ArrayRef) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.values.intern(&cast(from, &self.value_type)?, &mut before)?;
        self.values.intern(&cast(to, &self.value_type)?, &mut after)?;
        self.updates.extend(before.iter().zip(&after).map(|(&from, &to)| (from as u32, to as u32)));
        Ok(())
    }

    fn number(&mut self, mut signature: Vec<u32>) -> u32 {
        signature.sort_unstable();
        let next = self.signatures.len() as u32;
        let (all, numbers) = (&mut self.signatures, &mut self.numbers);
        *numbers.entry(signature).or_insert_with_key(|signature| {
            all.push(signature.clone());
            next
        })
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        let marks = self.releases.iter().map(|(_, shown)| shown.len()).sum::<usize>() + 2 * self.signatures.len();
        self.ids.size() + self.values.size() + marks * 128 + self.entries.capacity() * size_of::<Entry>()
    }

    /// The checks: of the ledger itself, that the groups of releases are those of the ledger's people, and that people's
    /// signatures of at least `m` values go on as promised.
    ///
    /// # Errors
    /// When the update relation has no meaning.
    pub fn checks(mut self, m: usize, lineage: Lineage) -> Result<Vec<Check>> {
        let entries = Entries::new(std::mem::take(&mut self.entries));
        let short = entries.iter().filter(|entry| self.signatures[entry.mark as usize].len() < m).count();
        let (ledger, releases, repeated) = match lineage {
            Lineage::Invariant => (
                "ledger: one signature for everybody",
                "m-invariant: groups are of the ledger's people",
                entries.steps().count(),
            ),
            Lineage::Distinct { .. } => (
                "ledger: one signature for everybody in a release",
                "m-distinct: groups are of the ledger's people",
                entries.steps().filter(|[before, after]| before.release == after.release).count(),
            ),
        };
        let mut checks = vec![
            Check::none(None, ledger, repeated + self.nulls, entries.len(), "entries are too many"),
            Check::none(None, "ledger: signatures of m values", short, entries.len(), "are shorter"),
        ];
        if let Lineage::Distinct { close, disjoint } = lineage {
            let updates = self.relation(close)?;
            if !close {
                let (broken, all) = (updates.intransitive().len(), self.updates.len());
                checks.push(Check::none(None, "update relation: transitive", broken, all, "pairs break it"));
            }
            if disjoint {
                checks.push(self.disjoint(&entries, &updates));
            }
            checks.extend(self.legal(&entries, &updates));
        }
        checks.extend(entries.agree(releases, Which::Latest, self.signatures.len(), &self.releases));
        Ok(checks)
    }

    /// The relation over all values that were seen.
    fn relation(&self, close: bool) -> Result<Updates> {
        let most = self.signatures.iter().flatten().chain(self.updates.iter().flat_map(|(a, b)| [a, b])).max();
        let values = most.map_or(0, |&most| most as usize + 1);
        let rows: Vec<Update> = self.updates.iter().map(|&(from, to)| Update::possible(from, to)).collect();
        let updates = Updates::try_new(values, &rows)?;
        match close {
            true => updates.closed(),
            false => Ok(updates),
        }
    }

    /// Whether the values of nobody's first group can become the same.
    fn disjoint(&self, entries: &Entries, updates: &Updates) -> Check {
        let overlaps = |signature: &Vec<u32>| {
            let mut seen = FxHashSet::default();
            let mut next = signature.iter().flat_map(|&value| updates.cus(value));
            next.any(|(value, _)| !seen.insert(value))
        };
        let overlapping: Vec<bool> = self.signatures.iter().map(overlaps).collect();
        let firsts = || entries.of_people().filter_map(|own| own.first());
        let wrong = firsts().filter(|entry| overlapping[entry.mark as usize]).count();
        let name = "m-distinct: first groups of values with nothing in common";
        Check::none(None, name, wrong, firsts().count(), "people were in others")
    }

    /// Whether the values of people's groups can be what those of the groups before have become.
    fn legal(&self, entries: &Entries, updates: &Updates) -> Vec<Check> {
        let mut known: FxHashMap<(u32, u32), bool> = FxHashMap::default();
        // Steps into each release, and those that are not legal.
        let mut steps: FxHashMap<u64, (usize, usize)> = FxHashMap::default();
        for [before, after] in entries.steps() {
            let legal = *known.entry((before.mark, after.mark)).or_insert_with(|| {
                let [before, after] = [before, after].map(|entry| &self.signatures[entry.mark as usize]);
                is_legal(updates, before, after, Legality::Strict)
            });
            let step = steps.entry(after.release).or_default();
            step.0 += 1;
            step.1 += usize::from(!legal);
        }
        let check = |number: u64| {
            let (all, wrong) = steps.get(&number).copied().unwrap_or_default();
            let name = "m-distinct: groups are legal updates of the last ones";
            Check::none(Some(number), name, wrong, all, "people whose group changed are in another")
        };
        self.releases.iter().map(|(number, _)| check(*number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, Int64Array, ListArray, RecordBatch, StringArray};

    use super::super::TableColumns;
    use super::*;

    /// Who, since which release, with which values.
    type Row = (i64, i64, [i32; 2]);

    /// A group of two: its values, and how many of its rows are counterfeits.
    type Group = ([i32; 2], i32);

    /// Values 1 and 2 can become each other, 3 and 4 likewise; 5 becomes 6 and 6 becomes 7, but 5 does not become 7.
    const UPDATES: [(i32, i32); 6] = [(1, 2), (2, 1), (3, 4), (4, 3), (5, 6), (6, 7)];

    fn release(groups: &[Group]) -> ReleasedTable {
        let rows = || groups.iter().zip(1..).flat_map(|(group, number)| [(group, number, 0), (group, number, 1)]);
        let integers = |of: fn((&Group, i32, usize)) -> i32| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(rows().map(of)))
        };
        let batch = RecordBatch::try_from_iter([
            ("place", Arc::new(StringArray::from_iter_values(rows().map(|_| "x"))) as ArrayRef),
            ("disease", integers(|(group, _, place)| group.0[place])),
            ("group_id", integers(|(_, number, _)| number)),
            ("group_size", integers(|_| 2)),
            ("counterfeits", integers(|(group, ..)| group.1)),
        ]);
        let columns =
            TableColumns { quasi: vec!["place".to_owned()], sensitive: Some("disease".to_owned()), within: None };
        ReleasedTable::try_new(&batch.unwrap(), &columns).unwrap()
    }

    /// The checks that fail.
    fn failing(entries: &[Row], releases: &[&[Group]], updates: &[(i32, i32)], lineage: Lineage) -> Vec<String> {
        let mut histories = Histories::try_new(&DataType::Int64, &DataType::Int32).unwrap();
        let numbers =
            |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(entries.iter().map(of))) };
        let lists = entries.iter().map(|row| Some(row.2.map(Some)));
        let lists: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int32Type, _, _>(lists));
        histories.append_entries(&numbers(|row| row.0), &lists, &numbers(|row| row.1)).unwrap();
        for (number, groups) in (1..).zip(releases) {
            histories.append_release(number, &release(groups)).unwrap();
        }
        let side =
            |of: fn(&(i32, i32)) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(updates.iter().map(of))) };
        histories.append_updates(&side(|pair| pair.0), &side(|pair| pair.1)).unwrap();
        let checks = histories.checks(2, lineage).unwrap();
        checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    const DISTINCT: Lineage = Lineage::Distinct { close: false, disjoint: false };
    const LEGAL: &str = "m-distinct: groups are legal updates of the last ones";
    const HOSTS: &str = "m-distinct: groups are of the ledger's people";

    /// Person 1 and 2 in a group of values 1 and 3; then 1 in one of 2 and 3 with a counterfeit, while 2 is away; then both again.
    const ENTRIES: [Row; 4] = [(1, 1, [1, 3]), (2, 1, [3, 1]), (1, 2, [2, 3]), (2, 3, [2, 3])];
    const RELEASES: [&[Group]; 3] = [&[([1, 3], 0)], &[([2, 3], 1)], &[([2, 3], 0)]];

    #[test]
    fn a_chain_of_legal_updates_passes() {
        assert!(failing(&ENTRIES, &RELEASES, &UPDATES[..4], DISTINCT).is_empty());
        let disjoint = Lineage::Distinct { close: true, disjoint: true };
        assert!(failing(&ENTRIES, &RELEASES, &UPDATES, disjoint).is_empty());
    }

    /// One thing wrong at a time.
    #[test]
    fn each_broken_promise_is_found() {
        assert_eq!(failing(&ENTRIES, &RELEASES, &[], DISTINCT), [LEGAL, LEGAL], "nothing can change");
        assert_eq!(failing(&ENTRIES, &RELEASES, &UPDATES, DISTINCT), ["update relation: transitive"]);
        let overlapping = [(1, 1, [1, 2])];
        let disjoint = Lineage::Distinct { close: false, disjoint: true };
        assert_eq!(
            failing(&overlapping, &[&[([1, 2], 1)]], &UPDATES[..4], disjoint),
            ["m-distinct: first groups of values with nothing in common"]
        );
        let elsewhere: [&[Group]; 3] = [RELEASES[0], &[([2, 4], 1)], RELEASES[2]];
        assert_eq!(failing(&ENTRIES, &elsewhere, &UPDATES[..4], DISTINCT), [HOSTS]);
        let crowded: [&[Group]; 3] = [RELEASES[0], &[([2, 3], 0)], RELEASES[2]];
        assert_eq!(failing(&ENTRIES, &crowded, &UPDATES[..4], DISTINCT), [HOSTS], "two rows for one person");
        let twice = [ENTRIES[0], ENTRIES[1], ENTRIES[2], (1, 2, [2, 3]), ENTRIES[3]];
        let found = failing(&twice, &RELEASES, &UPDATES[..4], DISTINCT);
        assert_eq!(found, ["ledger: one signature for everybody in a release", HOSTS], "and one of them has no row");
    }

    /// Of m-invariant releases, nobody's signature may change, whatever can become what.
    #[test]
    fn of_invariant_releases_everybody_has_one_signature() {
        let invariant = [ENTRIES[0], ENTRIES[1]];
        let releases: [&[Group]; 2] = [&[([1, 3], 0)], &[([1, 3], 1)]];
        assert!(failing(&invariant, &releases, &[], Lineage::Invariant).is_empty());
        assert_eq!(
            failing(&ENTRIES, &RELEASES, &UPDATES[..4], Lineage::Invariant),
            ["ledger: one signature for everybody"]
        );
        let foreign: [&[Group]; 2] = [&[([1, 3], 0)], &[([1, 4], 1)]];
        assert_eq!(
            failing(&invariant, &foreign, &[], Lineage::Invariant),
            ["m-invariant: groups are of the ledger's people"]
        );
    }
}
