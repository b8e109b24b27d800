//! Whether a ledger of signatures and the releases it is of agree, over the whole history.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::{FxHashMap, FxHashSet};

use super::audit::Check;
use super::entries::{Agreement, Entries, Entry, Shown, Which};
use super::legal::{Legality, is_legal};
use super::released::ReleasedTable;
use super::updates::{Update, Updates};
use crate::error::{Error, Result};
use crate::microdata::ColumnEncoder;

/// What a method promises of people's signatures from release to release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lineage {
    /// m-invariance: everybody has one signature for ever.
    Invariant,
    /// The same, and whoever came after the first release has one of its signatures, or one with a value that it has not.
    Drawn,
    /// m-Distinct: everybody has one label for ever, people of a group have different ones, and the value at every label of a
    /// group is one that the value at that label can have become, of the group that each of its people was in most recently.
    Distinct {
        /// Whether the update relation is meant to be closed; else it must be transitive as it is.
        close: bool,
        /// Whether nobody's first group has two values that can become the same one.
        disjoint: bool,
    },
}

/// The check of labels, where there are any.
const LABELLED: &str = "ledger: one label for everybody";

/// Signatures in a ledger and in its releases, in codes.
pub(crate) struct Histories {
    values: ColumnEncoder,
    value_type: DataType,
    id_type: DataType,
    ids: ColumnEncoder,
    entries: Vec<Entry>,
    nulls: usize,
    /// Label of each entry, from 0; `None` if it is no place of a value. Empty if entries have none.
    labels: Vec<Option<u32>>,
    /// Numbers of signatures, which are codes of values, ascending or in the order of labels.
    numbers: FxHashMap<Vec<u32>, u32>,
    signatures: Vec<Vec<u32>>,
    releases: Vec<(u64, Shown)>,
    updates: Vec<(u32, u32)>,
    any_update: bool,
    tally: Tally,
}

/// What is counted of people whose entries are forgotten.
#[derive(Debug)]
struct Tally {
    entries: usize,
    people: usize,
    /// Entries of people who had one before, and of these in the same release.
    again: usize,
    twice: usize,
    /// By signature, entries, and those without a label or with another than the person had before.
    marks: FxHashMap<u32, (usize, usize)>,
    /// By release, signature and label, entries that begin there.
    fresh: FxHashMap<(u64, u32, u32), u64>,
    /// By signature, people who had it first.
    firsts: FxHashMap<u32, usize>,
    /// By release, signature before and signature from there on, people.
    steps: FxHashMap<(u64, u32, u32), usize>,
    agreement: Agreement,
    /// Whether all entries had labels.
    labelled: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            entries: 0,
            people: 0,
            again: 0,
            twice: 0,
            marks: FxHashMap::default(),
            fresh: FxHashMap::default(),
            firsts: FxHashMap::default(),
            steps: FxHashMap::default(),
            agreement: Agreement::default(),
            labelled: true,
        }
    }
}

impl Tally {
    /// Bytes held, roughly.
    fn size(&self) -> usize {
        let counts = self.marks.capacity() + self.fresh.capacity() + self.firsts.capacity() + self.steps.capacity();
        counts * 32 + self.agreement.size()
    }
}

fn encoder(data_type: &DataType) -> Result<ColumnEncoder> {
    ColumnEncoder::try_new(FieldRef::new(Field::new("x", data_type.clone(), true)))
}

impl Histories {
    /// Of a ledger with identifiers and signatures over values of these types.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub(crate) fn try_new(id: &DataType, value: &DataType) -> Result<Self> {
        Ok(Self {
            values: encoder(value)?,
            value_type: value.clone(),
            ids: encoder(id)?,
            id_type: id.clone(),
            entries: Vec::new(),
            nulls: 0,
            labels: Vec::new(),
            numbers: FxHashMap::default(),
            signatures: Vec::new(),
            releases: Vec::new(),
            updates: Vec::new(),
            any_update: false,
            tally: Tally::default(),
        })
    }

    /// Appends entries of the ledger: who, with which signature, with which label in it (from 1) if people have labels, from
    /// which release on.
    ///
    /// # Errors
    /// When a column is of another type.
    pub(crate) fn append_entries(
        &mut self,
        ids: &ArrayRef,
        signatures: &ArrayRef,
        labels: Option<&ArrayRef>,
        releases: &ArrayRef,
    ) -> Result<()> {
        let (mut people, mut codes) = (Vec::new(), Vec::new());
        self.ids.intern(ids, &mut people)?;
        self.nulls += ids.null_count() + signatures.null_count();
        let lists = signatures.as_list_opt::<i32>();
        let lists = lists.ok_or_else(|| Error::refused("the signatures of the ledger are not lists"))?;
        self.values.intern(lists.values(), &mut codes)?;
        let releases = cast(releases, &DataType::Int64)?;
        let releases = releases.as_primitive::<Int64Type>();
        let labels = labels.map(|labels| cast(labels, &DataType::Int64)).transpose()?;
        let labels = labels.as_ref().map(|labels| labels.as_primitive::<Int64Type>());
        for (row, (ends, &person)) in lists.value_offsets().windows(2).zip(&people).enumerate() {
            let signature = codes[ends[0] as usize..ends[1] as usize].iter().map(|&code| code as u32);
            let mut signature: Vec<u32> = signature.collect();
            match labels {
                Some(labels) => {
                    let label = labels.is_valid(row).then(|| labels.value(row) - 1);
                    let label = label.and_then(|label| u32::try_from(label).ok());
                    self.labels.push(label.filter(|&label| (label as usize) < signature.len()));
                }
                None => signature.sort_unstable(),
            }
            let mark = self.number(signature);
            let release = u64::try_from(releases.value(row)).unwrap_or(0);
            self.entries.push(Entry { person: person as u32, release, mark });
        }
        Ok(())
    }

    /// Appends a release, or a part of it, by its number, in ascending order.
    ///
    /// # Errors
    /// When grouping fails.
    pub(crate) fn append_release(&mut self, number: u64, table: &ReleasedTable) -> Result<()> {
        let Some(values) = &table.values else { return Err(Error::refused("the release has no sensitive values")) };
        let mut codes = Vec::new();
        self.values.intern(values, &mut codes)?;
        let counterfeits = table.of_groups(&table.counterfeits);
        let mut shown = match self.releases.pop_if(|(known, _)| *known == number) {
            Some((_, shown)) => shown,
            None => Shown::default(),
        };
        for ((histogram, &counterfeits), size) in table.histograms.iter().zip(&counterfeits).zip(table.sizes()) {
            let mut signature: Vec<u32> = histogram.iter().map(|&(value, _)| codes[value as usize] as u32).collect();
            signature.sort_unstable();
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
    pub(crate) fn append_updates(&mut self, from: &ArrayRef, to: &ArrayRef) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.values.intern(&cast(from, &self.value_type)?, &mut before)?;
        self.values.intern(&cast(to, &self.value_type)?, &mut after)?;
        self.updates.extend(before.iter().zip(&after).map(|(&from, &to)| (from as u32, to as u32)));
        Ok(())
    }

    /// Says that every value can become every other.
    pub(crate) fn allow_any_update(&mut self) {
        self.any_update = true;
    }

    fn number(&mut self, signature: Vec<u32>) -> u32 {
        let next = self.signatures.len() as u32;
        let (all, numbers) = (&mut self.signatures, &mut self.numbers);
        *numbers.entry(signature).or_insert_with_key(|signature| {
            all.push(signature.clone());
            next
        })
    }

    /// Bytes held, roughly.
    pub(crate) fn size(&self) -> usize {
        let marks = self.releases.iter().map(|(_, shown)| shown.len()).sum::<usize>() + 2 * self.signatures.len();
        let entries = self.entries.capacity() * size_of::<(Entry, Option<u32>)>();
        self.ids.size() + self.values.size() + marks * 128 + entries + self.tally.size()
    }

    /// Says that all entries of the people so far have been appended, and forgets them but for what is counted. A ledger that is larger
    /// than memory is appended a part of its people at a time.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub(crate) fn close_people(&mut self) -> Result<()> {
        let labels = std::mem::take(&mut self.labels);
        let marked = std::mem::take(&mut self.entries);
        self.ids = encoder(&self.id_type)?;
        self.tally.labelled &= labels.len() == marked.len();
        let mut first: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        for (place, entry) in marked.iter().enumerate() {
            let label = labels.get(place).copied().flatten();
            let changed = *first.entry(entry.person).or_insert(label) != label;
            let of_mark = self.tally.marks.entry(entry.mark).or_default();
            of_mark.0 += 1;
            of_mark.1 += usize::from(label.is_none() || changed);
            *self.tally.fresh.entry((entry.release, entry.mark, label.unwrap_or(u32::MAX))).or_default() += 1;
        }
        drop(first);
        let entries = Entries::new(marked);
        self.tally.entries += entries.len();
        for own in entries.of_people() {
            self.tally.people += 1;
            *self.tally.firsts.entry(own[0].mark).or_default() += 1;
        }
        for [before, after] in entries.steps() {
            self.tally.again += 1;
            self.tally.twice += usize::from(before.release == after.release);
            *self.tally.steps.entry((after.release, before.mark, after.mark)).or_default() += 1;
        }
        // Releases show which values a group has, in no order.
        let mut shown = entries.into_inner();
        for entry in &mut shown {
            entry.mark = self.shown(entry.mark);
        }
        self.tally.agreement.add(&Entries::new(shown), Which::Latest);
        Ok(())
    }

    /// The mark of the same values in no order.
    fn shown(&mut self, mark: u32) -> u32 {
        let mut signature = self.signatures[mark as usize].clone();
        signature.sort_unstable();
        self.number(signature)
    }

    /// The checks: of the ledger itself, that the groups of releases are those of the ledger's people, and that people's
    /// signatures of at least `m` values go on as promised.
    ///
    /// # Errors
    /// When the update relation has no meaning.
    pub(crate) fn checks(mut self, m: usize, lineage: Lineage) -> Result<Vec<Check>> {
        self.close_people()?;
        let tally = &self.tally;
        let short = tally.marks.iter().filter(|(mark, _)| self.signatures[**mark as usize].len() < m);
        let short = short.map(|(_, (entries, _))| entries).sum();
        let (ledger, releases, repeated) = match lineage {
            Lineage::Invariant | Lineage::Drawn => {
                ("ledger: one signature for everybody", "m-invariant: groups are of the ledger's people", tally.again)
            }
            Lineage::Distinct { .. } => (
                "ledger: one signature for everybody in a release",
                "m-distinct: groups are of the ledger's people",
                tally.twice,
            ),
        };
        let mut checks = vec![
            Check::none(None, ledger, repeated + self.nulls, tally.entries, "entries are too many"),
            Check::none(None, "ledger: signatures of m values", short, tally.entries, "are shorter"),
        ];
        if lineage == Lineage::Drawn {
            checks.extend(self.drawn());
        }
        if let Lineage::Distinct { close, disjoint } = lineage {
            let updates = self.relation(close)?;
            if !close {
                let (broken, all) = (updates.intransitive().len(), self.updates.len());
                checks.push(Check::none(None, "update relation: transitive", broken, all, "pairs break it"));
            }
            let labelled = self.tally.labelled;
            if labelled {
                let labels = self.labels();
                checks.extend([labels, self.apart()]);
            } else {
                let figures = "it does not: it is of an earlier version, whose releases can give people away to a reader who \
                    combines the members of groups";
                checks.push(Check::new(None, LABELLED, false, figures));
            }
            if disjoint {
                checks.push(self.disjoint(&updates));
            }
            checks.extend(self.legal(&updates, labelled));
        }
        checks.extend(std::mem::take(&mut self.tally.agreement).checks(releases, &self.releases));
        Ok(checks)
    }

    /// Whether the people of the first release can be equally many of each value of their signatures, and all others have signatures that
    /// they could draw.
    fn drawn(&self) -> [Check; 2] {
        let fresh = &self.tally.fresh;
        let first = fresh.keys().map(|&(release, ..)| release).min();
        let (mut people, mut seen) = (FxHashMap::<u32, u64>::default(), FxHashSet::<u32>::default());
        for (&(_, mark, _), &entries) in fresh.iter().filter(|((release, ..), _)| Some(*release) == first) {
            *people.entry(mark).or_default() += entries;
            seen.extend(&self.signatures[mark as usize]);
        }
        let length = |mark: u32| self.signatures[mark as usize].len().max(1) as u64;
        let uneven = people.iter().filter(|&(&mark, entries)| entries % length(mark) > 0).count();
        let foreign = |mark: u32| {
            !people.contains_key(&mark) && self.signatures[mark as usize].iter().all(|value| seen.contains(value))
        };
        let later = || fresh.iter().filter(|((release, ..), _)| Some(*release) != first);
        let all = later().map(|(_, entries)| *entries as usize).sum();
        let wrong = later().filter(|((_, mark, _), _)| foreign(*mark)).map(|(_, entries)| *entries as usize).sum();
        [
            Check::none(None, "drawn: the first release is balanced", uneven, people.len(), "signatures are not"),
            Check::none(None, "drawn: signatures are those of the first release", wrong, all, "entries have others"),
        ]
    }

    /// Whether everybody has the same label in all entries, and it is the place of a value; and no value has two.
    fn labels(&self) -> Check {
        let repeats = |mark: u32| {
            let mut seen = FxHashSet::default();
            !self.signatures[mark as usize].iter().all(|value| seen.insert(value))
        };
        let wrong = self.tally.marks.iter();
        let wrong = wrong.map(|(&mark, &(all, wrong))| if repeats(mark) { all } else { wrong }).sum();
        Check::none(None, LABELLED, wrong, self.tally.entries, "entries have another or none")
    }

    /// Whether there are enough groups for people of one label to be in different ones. People of a group agree in the order of
    /// its values, so that groups of different orders are different, too. Of those who have been in a group with these values
    /// before, nobody knows here whether they are in a release.
    fn apart(&mut self) -> Check {
        // By release, order of values and label: how many people are new there.
        let fresh = std::mem::take(&mut self.tally.fresh);
        let mut groups: FxHashMap<(u64, u32), u64> = FxHashMap::default();
        for ((release, mark, _), people) in fresh {
            let most = groups.entry((release, mark)).or_default();
            *most = people.max(*most);
        }
        let mut needed: FxHashMap<(u64, u32), u64> = FxHashMap::default();
        for ((release, mark), most) in groups {
            *needed.entry((release, self.shown(mark))).or_default() += most;
        }
        let (mut wrong, mut all) = (0, 0);
        for (release, shown) in &self.releases {
            let there = needed.iter().filter(|((number, _), _)| number == release);
            for (&(_, values), &needed) in there {
                // That there are none at all is another check's finding.
                let groups = shown.get(&values).map_or(needed, |host| host.0 as u64);
                all += needed as usize;
                wrong += needed.saturating_sub(groups) as usize;
            }
        }
        let name = "m-distinct: people of one label are in different groups";
        Check::none(None, name, wrong, all, "groups are missing for that")
    }

    /// The relation over all values that were seen.
    fn relation(&self, close: bool) -> Result<Updates> {
        let most = self.signatures.iter().flatten().chain(self.updates.iter().flat_map(|(a, b)| [a, b])).max();
        let values = most.map_or(0, |&most| most as usize + 1);
        if self.any_update {
            return Ok(Updates::any(values));
        }
        let rows: Vec<Update> = self.updates.iter().map(|&(from, to)| Update::possible(from, to)).collect();
        let updates = Updates::try_new(values, &rows)?;
        match close {
            true => updates.closed(),
            false => Ok(updates),
        }
    }

    /// Whether the values of nobody's first group can become the same.
    fn disjoint(&self, updates: &Updates) -> Check {
        let overlaps = |mark: &u32| {
            let mut seen = FxHashSet::default();
            let mut next = self.signatures[*mark as usize].iter().flat_map(|&value| updates.cus(value));
            next.any(|(value, _)| !seen.insert(value))
        };
        let wrong = self.tally.firsts.iter().filter(|(mark, _)| overlaps(mark)).map(|(_, people)| people).sum();
        let name = "m-distinct: first groups of values with nothing in common";
        Check::none(None, name, wrong, self.tally.people, "people were in others")
    }

    /// Whether at every label the value of people's groups can be what that of the groups before has become. So everybody can
    /// have had, at every release, the value that is any fixed number of places further on. Without labels, one to one.
    fn legal(&self, updates: &Updates, labelled: bool) -> Vec<Check> {
        let legality = if labelled { Legality::Labelled } else { Legality::Strict };
        let mut known: FxHashMap<(u32, u32), bool> = FxHashMap::default();
        // Steps into each release, and those that are not legal.
        let mut steps: FxHashMap<u64, (usize, usize)> = FxHashMap::default();
        for (&(release, before, after), &people) in &self.tally.steps {
            let legal = *known.entry((before, after)).or_insert_with(|| {
                let [before, after] = [before, after].map(|mark| &self.signatures[mark as usize]);
                is_legal(updates, before, after, legality)
            });
            let step = steps.entry(release).or_default();
            step.0 += people;
            step.1 += if legal { 0 } else { people };
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

    use datafusion::arrow::array::{Int32Array, Int64Array, ListArray, RecordBatch, StringArray, UInt32Array};
    use datafusion::arrow::compute::take;

    use super::super::TableColumns;
    use super::*;

    /// Who, since which release, with which values in the order of labels, with which label.
    type Row = (i64, i64, [i32; 2], i64);

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
        let labels = numbers(|row| row.3);
        let labels =
            (matches!(lineage, Lineage::Distinct { .. }) && entries.iter().any(|row| row.3 != NONE)).then_some(&labels);
        histories.append_entries(&numbers(|row| row.0), &lists, labels, &numbers(|row| row.1)).unwrap();
        for (number, groups) in (1..).zip(releases) {
            histories.append_release(number, &release(groups)).unwrap();
        }
        let side =
            |of: fn(&(i32, i32)) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(updates.iter().map(of))) };
        histories.append_updates(&side(|pair| pair.0), &side(|pair| pair.1)).unwrap();
        // A part of the people at a time, nothing is found that is not found of all of them together.
        let mut in_parts = Histories::try_new(&DataType::Int64, &DataType::Int32).unwrap();
        for person in entries.iter().map(|row| row.0).collect::<std::collections::BTreeSet<_>>() {
            let own: Vec<u32> = (0..).zip(entries).filter(|(_, row)| row.0 == person).map(|(place, _)| place).collect();
            let own = UInt32Array::from(own);
            let of = |column: &ArrayRef| take(column, &own, None).unwrap();
            let labels = labels.map(of);
            let (ids, releases) = (of(&numbers(|row| row.0)), of(&numbers(|row| row.1)));
            in_parts.append_entries(&ids, &of(&lists), labels.as_ref(), &releases).unwrap();
            in_parts.close_people().unwrap();
        }
        for (number, groups) in (1..).zip(releases) {
            in_parts.append_release(number, &release(groups)).unwrap();
        }
        in_parts.append_updates(&side(|pair| pair.0), &side(|pair| pair.1)).unwrap();
        let in_parts = in_parts.checks(2, lineage).unwrap();
        let checks = histories.checks(2, lineage).unwrap();
        assert_eq!(checks, in_parts);
        checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    /// Instead of a label: a ledger without any.
    const NONE: i64 = -1;
    const DISTINCT: Lineage = Lineage::Distinct { close: false, disjoint: false };
    const LEGAL: &str = "m-distinct: groups are legal updates of the last ones";
    const APART: &str = "m-distinct: people of one label are in different groups";
    const HOSTS: &str = "m-distinct: groups are of the ledger's people";

    /// Person 1 and 2 in a group of values 1 and 3; then 1 in one of 2 and 3 with a counterfeit, while 2 is away; then both again.
    const ENTRIES: [Row; 4] = [(1, 1, [1, 3], 1), (2, 1, [1, 3], 2), (1, 2, [2, 3], 1), (2, 3, [2, 3], 2)];
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
        let overlapping = [(1, 1, [1, 2], 1)];
        let disjoint = Lineage::Distinct { close: false, disjoint: true };
        assert_eq!(
            failing(&overlapping, &[&[([1, 2], 1)]], &UPDATES[..4], disjoint),
            ["m-distinct: first groups of values with nothing in common"]
        );
        let elsewhere: [&[Group]; 3] = [RELEASES[0], &[([2, 4], 1)], RELEASES[2]];
        assert_eq!(failing(&ENTRIES, &elsewhere, &UPDATES[..4], DISTINCT), [HOSTS]);
        let crowded: [&[Group]; 3] = [RELEASES[0], &[([2, 3], 0)], RELEASES[2]];
        assert_eq!(failing(&ENTRIES, &crowded, &UPDATES[..4], DISTINCT), [HOSTS], "two rows for one person");
        let twice = [ENTRIES[0], ENTRIES[1], ENTRIES[2], ENTRIES[2], ENTRIES[3]];
        let found = failing(&twice, &RELEASES, &UPDATES[..4], DISTINCT);
        assert_eq!(
            found,
            ["ledger: one signature for everybody in a release", APART, HOSTS],
            "and one of them has no row"
        );
    }

    /// A first release of two signatures; then one of these, and one with a value that came later, or with none.
    #[test]
    fn signatures_that_could_not_be_drawn_are_found() {
        let first = [(1, 1, [1, 3], NONE), (2, 1, [1, 3], NONE), (3, 1, [2, 4], NONE), (4, 1, [2, 4], NONE)];
        let of_first: &[Group] = &[([1, 3], 0), ([2, 4], 0)];
        let with = |signature: [i32; 2]| [&first[..], &[(5, 2, [1, 3], NONE), (6, 2, signature, NONE)]].concat();
        assert!(failing(&with([1, 5]), &[of_first, &[([1, 3], 1), ([1, 5], 1)]], &[], Lineage::Drawn).is_empty());
        let foreign: [&[Group]; 2] = [of_first, &[([1, 3], 1), ([1, 4], 1)]];
        let name = "drawn: signatures are those of the first release";
        assert_eq!(failing(&with([1, 4]), &foreign, &[], Lineage::Drawn), [name]);
        assert!(failing(&with([1, 4]), &foreign, &[], Lineage::Invariant).is_empty());
        let lost: [&[Group]; 1] = [&[([1, 3], 1), ([2, 4], 0)]];
        assert_eq!(failing(&first[1..], &lost, &[], Lineage::Drawn), ["drawn: the first release is balanced"]);
    }

    /// What a reader who combines people could use: labels that change, a place twice, values that are legal in another order only.
    #[test]
    fn each_broken_label_is_found() {
        let with = |row: usize, change: fn(&mut Row)| {
            let mut entries = ENTRIES;
            change(&mut entries[row]);
            failing(&entries, &RELEASES, &UPDATES[..4], DISTINCT)
        };
        assert_eq!(with(1, |row| row.3 = 1), [LABELLED, APART], "and it changes later");
        assert_eq!(with(3, |row| row.3 = 1), [LABELLED]);
        assert_eq!(with(0, |row| row.3 = 3), [LABELLED]);
        assert_eq!(with(2, |row| row.2 = [3, 2]), [LEGAL], "1 does not become 3, nor 3 become 2");
        assert_eq!(with(0, |row| row.2 = [3, 1]), [APART, LEGAL], "two orders in one group");
        let mut alone = ENTRIES;
        alone[1].3 = 1;
        alone[3].3 = 1;
        assert_eq!(failing(&alone, &RELEASES, &UPDATES[..4], DISTINCT), [APART]);
        let unlabelled = ENTRIES.map(|row| (row.0, row.1, row.2, NONE));
        assert_eq!(failing(&unlabelled, &RELEASES, &UPDATES[..4], DISTINCT), [LABELLED]);
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
