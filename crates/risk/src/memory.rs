//! Contents of a ledger of signatures and of its releases, to be compared. [`checks`] looks at it.

mod checks;
mod hidden;
#[cfg(test)]
mod tests;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::FxHashMap;

use self::hidden::HiddenRelease;
use super::entries::{Agreement, Entries, Entry, Shown};
use super::released::ReleasedTable;
use crate::error::{Error, Result};
use crate::microdata::ColumnEncoder;

/// Signatures in a ledger and in its releases, in codes.
pub struct Histories {
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
    /// Releases whose groups are hidden.
    hidden: Vec<HiddenRelease>,
    updates: Vec<(u32, u32)>,
    any_update: bool,
    tally: Tally,
}

/// Counts of people whose entries are forgotten.
#[derive(Debug, Default)]
struct Tally {
    entries: usize,
    people: usize,
    /// Entries of people who had one before, and of these in the same release.
    again: usize,
    twice: usize,
    /// Entries by signature, and those without a label or with another than before.
    marks: FxHashMap<u32, (usize, usize)>,
    /// By release, signature and label, entries that begin there.
    fresh: FxHashMap<(u64, u32, u32), u64>,
    /// By signature, people who had it first.
    firsts: FxHashMap<u32, usize>,
    /// By release, signature before and signature from there on, people.
    steps: FxHashMap<(u64, u32, u32), usize>,
    agreement: Agreement,
}

impl Tally {
    fn size(&self) -> usize {
        let counts = self.marks.capacity() + self.fresh.capacity() + self.firsts.capacity() + self.steps.capacity();
        counts * 32 + self.agreement.size()
    }
}

fn encoder(data_type: &DataType) -> Result<ColumnEncoder> {
    ColumnEncoder::try_new(FieldRef::new(Field::new("x", data_type.clone(), true)))
}

impl Histories {
    /// Begins with a ledger with identifiers and signatures over values of these types.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub fn try_new(id: &DataType, value: &DataType) -> Result<Self> {
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
            hidden: Vec::new(),
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
    pub fn append_entries(
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
    pub fn append_release(&mut self, number: u64, table: &ReleasedTable) -> Result<()> {
        let Some(values) = &table.values else { return Err(Error::refused("the release has no sensitive values")) };
        let mut codes = Vec::new();
        self.values.intern(values, &mut codes)?;
        if table.hidden {
            self.append_hidden(number, table, &codes);
            return Ok(());
        }
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
    pub fn append_updates(&mut self, from: &ArrayRef, to: &ArrayRef) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.values.intern(&cast(from, &self.value_type)?, &mut before)?;
        self.values.intern(&cast(to, &self.value_type)?, &mut after)?;
        self.updates.extend(before.iter().zip(&after).map(|(&from, &to)| (from as u32, to as u32)));
        Ok(())
    }

    /// Says that every value can become every other.
    pub fn allow_any_update(&mut self) {
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

    /// Returns the bytes held, roughly.
    pub fn size(&self) -> usize {
        let marks = self.releases.iter().map(|(_, shown)| shown.len()).sum::<usize>() + 2 * self.signatures.len();
        let entries = self.entries.capacity() * size_of::<(Entry, Option<u32>)>();
        self.ids.size() + self.values.size() + marks * 128 + entries + self.tally.size()
    }

    /// Closes the people so far, all of whose entries were appended. It forgets them but for what is counted. A ledger
    /// that is larger than memory is appended a part of its people at a time.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub fn close_people(&mut self) -> Result<()> {
        let labels = std::mem::take(&mut self.labels);
        let marked = std::mem::take(&mut self.entries);
        self.ids = encoder(&self.id_type)?;
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
        self.tally.agreement.add(&Entries::new(shown));
        Ok(())
    }

    /// Returns the mark of the same values in no order.
    fn shown(&mut self, mark: u32) -> u32 {
        let mut signature = self.signatures[mark as usize].clone();
        signature.sort_unstable();
        self.number(signature)
    }
}
