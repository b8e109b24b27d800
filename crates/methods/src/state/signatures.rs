//! The publisher's memory of signatures: for everybody ever published, the sensitive values of the group that hosted them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calendar::Calendar;
use super::entries::Entries;
use super::own::{self, OwnValues, SEAL};
use super::{Facts, RELEASE};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Codes, ColumnEncoder, EncodedColumns, IdentifierBuilder};
use crate::release::{LABEL, Published, RING, SIGNATURE, signature_type};

/// Signatures by earlier releases of the rows of microdata: codes of the sensitive attribute, each once, of
/// everybody who was published before.
///
/// Signatures are ascending, or, where people have labels, in the order of the labels: of everybody with that signature, who
/// has label `j` had the value at place `j`. Their numbers follow the order of the signatures themselves, so they do not
/// depend on the order of arrival.
#[derive(Debug, Default)]
pub struct Signatures {
    /// Number of each row's signature; empty if nobody was ever published.
    number_of: OfRows,
    /// Label of each row that was published, from 0; empty if nobody has any.
    label_of: OfRows,
    /// Steps of the law since each row was published last, where that is known; else empty.
    steps_of: OfRows,
    all: Arc<[Box<[u32]>]>,
    /// Number of the ring or region of each, where people have some; else empty. Then equal signatures of several rings are several.
    rings: Arc<[i64]>,
    /// Number of people of the first release with each signature; empty if that was not asked for, or nobody was ever published.
    first: Arc<[usize]>,
    /// True for rows with another value than before, where values must stay; empty without any.
    changed: Vec<bool>,
    /// Number of people published with an earlier value of this period again.
    pub(super) held: usize,
    /// People of the microdata who were in the newest release, where that is known.
    pub(super) staying: Option<usize>,
    /// People who were ever published, where entries say it.
    pub(super) people: Option<usize>,
}

/// A number of each row that has one. Kept as one more, so that 0 is that of the others.
#[derive(Debug, Default)]
struct OfRows(Codes);

impl OfRows {
    /// Returns the numbers below `end`, where there are some.
    fn new(end: u32, rows: usize, of: impl Fn(u32) -> Option<u32> + Sync + Send) -> Self {
        Self(Codes::collected(end, rows, |row| of(row).map_or(0, |number| number + 1)))
    }

    #[inline]
    fn of(&self, row: usize) -> Option<u32> {
        if row < self.0.len() { self.0.at(row as u32).checked_sub(1) } else { None }
    }

    fn part(&self, rows: &[u32]) -> Self {
        if self.0.is_empty() { Self::default() } else { Self(rows.iter().map(|&row| self.0.at(row)).collect()) }
    }
}

/// Reason why the time since people were published is not known.
const UNDATED: &str = "`previous` does not say which release its rows are from (column release), which tells how often a value could change \
    since; number the releases one after the other";

impl Signatures {
    /// Returns all signatures ever given, also to people who are not present.
    pub fn all(&self) -> &[Box<[u32]>] {
        &self.all
    }

    /// Returns the number of the ring or region of each signature; empty if people have none.
    pub fn rings(&self) -> &[i64] {
        &self.rings
    }

    /// Returns the number of a row's signature, if its identifier was ever published.
    #[inline]
    pub fn number_of(&self, row: usize) -> Option<u32> {
        self.number_of.of(row)
    }

    /// Returns the signature of a row, if its identifier was ever published.
    #[inline]
    pub fn of(&self, row: usize) -> Option<&[u32]> {
        self.number_of(row).map(|number| &*self.all[number as usize])
    }

    /// Returns the place of a row's own value in its signature, from 0. `None` if its identifier was never published, or people have no labels.
    #[inline]
    pub fn label_of(&self, row: usize) -> Option<u32> {
        self.label_of.of(row)
    }

    /// Returns the steps of the law since a row was published last: 1 if it was in the last release and each of these
    /// is a step, 0 in one of the same period. `None` if it never was, or that is not known.
    #[inline]
    pub fn steps_of(&self, row: usize) -> Option<u32> {
        self.steps_of.of(row)
    }

    pub(super) fn part(&self, rows: &[u32]) -> Self {
        Self {
            number_of: self.number_of.part(rows),
            label_of: self.label_of.part(rows),
            steps_of: self.steps_of.part(rows),
            all: Arc::clone(&self.all),
            rings: Arc::clone(&self.rings),
            first: Arc::clone(&self.first),
            changed: rows.iter().filter_map(|&row| self.changed.get(row as usize)).copied().collect(),
            held: 0,
            staying: None,
            people: None,
        }
    }

    /// Takes NULL, which no signature has, out of the domain that codes are of.
    pub(super) fn drop_null_value(&mut self) {
        self.all = self.all.iter().map(|set| set.iter().map(|code| code - 1).collect()).collect();
    }

    /// Returns true if a row's person was published with another sensitive value. This is for methods of which values must stay.
    #[inline]
    pub fn is_changed(&self, row: usize) -> bool {
        self.changed.get(row).copied().unwrap_or(false)
    }

    /// Returns the number of the first release's people with each signature. Those who are not in the microdata are included.
    pub fn first(&self) -> &[usize] {
        &self.first
    }
}

/// Facts that earlier releases hold of each person, beside the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Everybody's own value.
    Signatures,
    /// The same; and by their numbers, which one is the first.
    First,
    /// Labels; and by their numbers, if they have any, which one is the latest.
    Labels,
    /// Labels; and by their numbers, how long ago everybody was published.
    Dates,
    /// Everybody's own value, and the number of everybody's ring: the people who stay together.
    Rings,
    /// Own value of each person, and the number of their region.
    Regions,
}

/// Reader of the identifier and `signature` columns of earlier private releases, and of own values.
#[derive(Debug)]
pub(super) struct SignaturesReader {
    says: Says,
    identifiers: IdentifierBuilder,
    signature_of: Codes,
    /// Label of each entry, from 0; empty if there are none.
    label_of: Codes,
    /// Release of each entry; empty if that is not known.
    releases: Vec<i64>,
    /// Number of each entry's ring; empty if there are none.
    ring_of: Vec<i64>,
    /// Everybody's own value, where it must stay.
    own: OwnValues,
    /// Signatures, in provisional codes.
    sets: FxHashMap<Box<[u32]>, Known>,
    set_bytes: usize,
    codes: Vec<u32>,
    set: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    number: u32,
    has_one_twice: bool,
}

impl SignaturesReader {
    pub(super) fn new(identifier: DataType, says: Says) -> Self {
        Self {
            says,
            identifiers: IdentifierBuilder::new(identifier),
            signature_of: Codes::default(),
            label_of: Codes::default(),
            releases: Vec::new(),
            ring_of: Vec::new(),
            own: OwnValues::default(),
            sets: FxHashMap::default(),
            set_bytes: 0,
            codes: Vec::new(),
            set: Vec::new(),
        }
    }

    /// Appends a batch: identifiers, lists of sensitive values, with labels the places of people's own values in these (from 1),
    /// and the numbers of the releases where one of them counts. Rows without identifier
    /// (counterfeits) are skipped. The values join the domain of the sensitive attribute, so that codes agree.
    /// Fails when a published row has no signature, no label or no number, when a signature holds NULL, and with labels when it holds
    /// a value twice or has no such place.
    pub(super) fn append(&mut self, batch: &RecordBatch, sensitive: &mut ColumnEncoder) -> Result<()> {
        let labelled = matches!(self.says, Says::Labels | Says::Dates);
        let numbered = labelled || self.says == Says::First;
        let unknown = || Error::internal("signatures of people whose own values are not known");
        let [ids, lists, ..] = batch.columns() else {
            return Err(Error::internal("signatures without identifiers"));
        };
        let labels = batch.column_by_name(LABEL).filter(|_| labelled);
        if labelled && labels.is_none() {
            return Err(Error::internal("labelled signatures without labels"));
        }
        let releases = batch.column_by_name(RELEASE).filter(|_| numbered);
        if self.says == Says::First && releases.is_none() {
            return Err(Error::internal("signatures without the numbers of their releases"));
        }
        let published = datafusion::arrow::compute::is_not_null(ids)?;
        if !labelled {
            let (field, own) = batch.schema_ref().fields().iter().zip(batch.columns()).nth(2).ok_or_else(unknown)?;
            let values = datafusion::arrow::compute::filter(own, &published)?;
            self.own.append(&values, field.name() == SEAL, sensitive)?;
        }
        let labels = labels.map(|labels| datafusion::arrow::compute::filter(labels, &published)).transpose()?;
        let labels = labels.map(|labels| cast(&labels, &DataType::Int64)).transpose()?;
        let labels = labels.as_ref().map(|labels| labels.as_primitive::<Int64Type>());
        if let Some(releases) = releases {
            let releases = datafusion::arrow::compute::filter(&cast(releases, &DataType::Int64)?, &published)?;
            if releases.null_count() > 0 {
                return Err(Error::refused(format!(
                    "`previous` has {} rows with an identifier but with a NULL in column release; number the releases in \
                     their order",
                    thousands(releases.null_count())
                )));
            }
            self.releases.extend_from_slice(releases.as_primitive::<Int64Type>().values());
        }
        if matches!(self.says, Says::Rings | Says::Regions) {
            let rings = batch.column_by_name(RING).ok_or_else(|| Error::internal("signatures without rings"))?;
            let rings = datafusion::arrow::compute::filter(&cast(rings, &DataType::Int64)?, &published)?;
            if rings.null_count() > 0 {
                return Err(Error::refused(format!(
                    "`previous` has {} rows with an identifier but with a NULL in column {RING}; pass the private releases (private => true) unchanged",
                    thousands(rings.null_count())
                )));
            }
            self.ring_of.extend_from_slice(rings.as_primitive::<Int64Type>().values());
        }
        let ids = datafusion::arrow::compute::filter(ids, &published)?;
        let lists = datafusion::arrow::compute::filter(lists, &published)?;
        let item = match lists.data_type() {
            DataType::List(item) | DataType::LargeList(item) => item,
            other => return Err(Error::internal(format!("signatures of type {other}"))),
        };
        let lists = cast(&lists, &DataType::LargeList(item.clone()))?;
        let lists = lists.as_list::<i64>();
        let offsets = lists.value_offsets();
        let (first, last) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
        let values = lists.values().slice(first, last - first);
        if lists.null_count() > 0 || values.null_count() > 0 {
            return Err(Error::refused(format!(
                "`previous` has {} rows with an identifier but with a NULL in column signature; \
                 pass the private releases (private => true) unchanged",
                thousands(lists.null_count().max(1))
            )));
        }
        let mut codes = std::mem::take(&mut self.codes);
        sensitive.encode(&values, &mut codes)?;
        let mut nobodys = 0;
        let (mut numbers, mut places) = (Vec::with_capacity(ids.len()), Vec::new());
        for (entry, ends) in offsets.windows(2).enumerate() {
            let list = &codes[ends[0] as usize - first..ends[1] as usize - first];
            let known = self.known(list, labels.is_some());
            numbers.push(known.number);
            if let Some(labels) = labels {
                let label = if labels.is_valid(entry) { labels.value(entry) } else { 0 };
                let is_place = (1..=list.len() as i64).contains(&label);
                nobodys += usize::from(!is_place || known.has_one_twice);
                places.push((label - 1) as u32);
            }
        }
        self.codes = codes;
        if nobodys > 0 {
            return Err(Error::refused(format!(
                "`previous` has {} rows with an identifier whose {LABEL} is not the place of a value in signature, or which have a \
                 value there twice; pass the private releases (private => true) unchanged",
                thousands(nobodys)
            )));
        }
        self.signature_of.extend(&numbers);
        self.label_of.extend(&places);
        self.identifiers.append(&ids)
    }

    /// Returns what is known of a list of values, whose order counts or does not.
    fn known(&mut self, list: &[u32], ordered: bool) -> Known {
        let mut set = std::mem::take(&mut self.set);
        set.clear();
        set.extend_from_slice(list);
        if !ordered {
            set.sort_unstable();
            set.dedup();
        }
        let known = self.sets.get(set.as_slice()).copied().unwrap_or_else(|| self.learn(&set));
        self.set = set;
        known
    }

    fn learn(&mut self, set: &[u32]) -> Known {
        let mut values = set.to_vec();
        values.sort_unstable();
        let has_one_twice = values.windows(2).any(|pair| pair[0] == pair[1]);
        let known = Known { number: self.sets.len() as u32, has_one_twice };
        self.set_bytes += size_of_val(set) + size_of::<(Box<[u32]>, Known)>();
        self.sets.insert(set.into(), known);
        known
    }

    pub(super) fn size(&self) -> usize {
        self.identifiers.size()
            + self.signature_of.size()
            + self.label_of.size()
            + (self.releases.capacity() + self.ring_of.capacity()) * size_of::<i64>()
            + self.own.size()
            + self.set_bytes
    }

    /// Finds what it says of the rows of microdata.
    /// Fails when an identifier was published with two different signatures, without a number that says which is the later one, or with
    /// two different labels, or some with labels and some without; and when it must be known how long ago people were published, and
    /// is not, or is so long that releases cannot be numbered one after the other.
    pub(super) fn finish(
        self,
        columns: &EncodedColumns<'_>,
        number: Option<u64>,
        periods: Option<&(Vec<u64>, u64)>,
    ) -> Result<Signatures> {
        let EncodedColumns { key, .. } = *columns;
        let (Some(microdata), Some(sensitive)) = (columns.identifiers, columns.sensitive) else {
            return Ok(Signatures::default());
        };
        let ranks = &sensitive.ranks;
        let labelled = !self.label_of.is_empty();
        if labelled && self.label_of.len() != self.signature_of.len() {
            return Err(Error::internal("entries with and without labels"));
        }
        let mut sets: Vec<(Box<[u32]>, u32)> = self
            .sets
            .into_iter()
            .map(|(mut set, Known { number, .. })| {
                set.iter_mut().for_each(|code| *code = ranks[*code as usize]);
                if !labelled {
                    set.sort_unstable();
                }
                (set, number)
            })
            .collect();
        sets.sort_unstable();
        let mut renumbered = vec![0; sets.len()];
        for (new, (_, old)) in sets.iter().enumerate() {
            renumbered[*old as usize] = new as u32;
        }
        let mut signature_of = self.signature_of;
        signature_of.rank(&renumbered);
        let mut rings = Vec::new();
        if matches!(self.says, Says::Rings | Says::Regions) {
            (signature_of, rings) = by_ring(&mut sets, &signature_of, &self.ring_of);
        }

        let entries = Entries::find(self.identifiers, microdata, key)?;
        let label_of = self.label_of;
        let (mut torn, mut moved, mut contradicted) = (0, 0, 0);
        let dated = self.says == Says::Dates;
        if dated && self.releases.len() != signature_of.len() {
            return Err(Error::refused(UNDATED));
        }
        let mut last_of = if dated { self.releases.clone() } else { Vec::new() };
        let number_of = |entry: u32| self.releases.get(entry as usize).copied().unwrap_or_default();
        // Only with labels does a later signature take the place of an earlier one.
        let release = |entry: u32| if labelled { number_of(entry) } else { 0 };
        for run in entries.several() {
            contradicted += usize::from(self.own.differ(run));
            let run = || run.iter().copied();
            let last = run().map(release).max().unwrap_or_default();
            let mut latest = run().filter(|&entry| release(entry) == last);
            let Some(one) = latest.next() else { return Err(Error::internal("people without a last release")) };
            torn += usize::from(latest.any(|other| signature_of.at(other) != signature_of.at(one)));
            run().filter(|_| dated).for_each(|entry| last_of[entry as usize] = last);
            run().for_each(|entry| signature_of.copy(one, entry));
            let label = |entry: u32| if labelled { label_of.at(entry) } else { 0 };
            moved += usize::from(run().any(|entry| label(entry) != label(one)));
        }
        if moved > 0 {
            return Err(Error::refused(format!(
                "`previous` gives {} identifiers two different labels ({LABEL}), so its releases already contradict each \
                 other; pass the private releases of one publication only",
                thousands(moved)
            )));
        }
        if torn > 0 {
            let later = match self.releases.is_empty() {
                true => {
                    " (where signatures change, as those of m_distinct do, with a column release that numbers them)"
                }
                false => "",
            };
            return Err(Error::refused(format!(
                "`previous` gives {} identifiers two different signatures, so its releases already contradict each \
                 other; pass the private releases of one publication only{later}",
                thousands(torn)
            )));
        }
        if contradicted > 0 {
            return Err(Error::refused(format!(
                "`previous` gives {} identifiers two different sensitive values, so its releases already contradict each other; pass the private \
                 releases of one publication only",
                thousands(contradicted)
            )));
        }
        let strays = self.own.strays(ranks, |entry| &sets[signature_of.at(entry) as usize].0);
        if strays > 0 {
            return Err(Error::refused(format!(
                "`previous` has {} rows with an identifier whose sensitive value is not one of those in column signature; pass the private releases \
                 (private => true) unchanged",
                thousands(strays)
            )));
        }
        let stay = self.says == Says::Rings;
        let mixed = if stay { mixed_rings(&rings, &sets, &signature_of, &self.own, &entries) } else { 0 };
        if mixed > 0 {
            return Err(Error::refused(format!(
                "column {RING} of `previous` mixes up people of {} rings: there are more of them than values, or two with one value; pass the private \
                 releases (private => true) unchanged, and go on with the argument region if they were made with it",
                thousands(mixed)
            )));
        }
        let changed = self.own.changed(&entries, columns)?;
        let mut first = Vec::new();
        if let (Says::First, Some(earliest)) = (self.says, self.releases.iter().min()) {
            first.resize(sets.len(), 0);
            let is_first = |entry: &u32| number_of(*entry) == *earliest;
            let all = 0..signature_of.len() as u32;
            all.filter(is_first).for_each(|entry| first[signature_of.at(entry) as usize] += 1);
            // Everybody counts once, and all of their entries have one signature by now.
            for run in entries.several() {
                let again = run.iter().filter(|entry| is_first(entry)).count().saturating_sub(1);
                first[signature_of.at(run[0]) as usize] -= again;
            }
        }
        // All numbers that there are, not everybody's last ones only.
        let numbered = if dated { self.releases.as_slice() } else { &[] };
        let calendar = Calendar::new(numbered, number, periods)?;
        let (mut signatures_of_rows, mut labels_of_rows, mut steps_of_rows) =
            (OfRows::default(), OfRows::default(), OfRows::default());
        if !signature_of.is_empty() {
            let of_rows = |end: usize, all: &Codes| {
                OfRows::new(end as u32, entries.rows(), |row| entries.of(row as usize).map(|entry| all.at(entry)))
            };
            signatures_of_rows = of_rows(sets.len(), &signature_of);
            if labelled {
                labels_of_rows = of_rows(sets.iter().map(|(set, _)| set.len()).max().unwrap_or(0), &label_of);
            }
            if let Some(calendar) = &calendar {
                // Of people who are not here, it does not matter.
                let steps_of = |entry: Option<u32>| entry.map(|row| calendar.steps(last_of[row as usize])).transpose();
                let steps = (0..entries.rows()).map(|row| steps_of(entries.of(row))).collect::<Result<Vec<_>>>()?;
                let end = steps.iter().flatten().max().map_or(0, |most| most + 1);
                steps_of_rows = OfRows::new(end, entries.rows(), |row| steps[row as usize]);
            }
        }
        let again: usize = entries.several().map(|run| run.len() - 1).sum();
        let people = Some(signature_of.len() - again);
        let staying = number.filter(|_| dated).map(|number| {
            let stayed =
                |row: &usize| entries.of(*row).is_some_and(|entry| last_of[entry as usize] + 1 == number as i64);
            (0..entries.rows()).filter(stayed).count()
        });
        let signatures = sets.into_iter().map(|(set, _)| set).collect();
        Ok(Signatures {
            number_of: signatures_of_rows,
            label_of: labels_of_rows,
            steps_of: steps_of_rows,
            all: signatures,
            rings: rings.into(),
            first: first.into(),
            changed,
            held: 0,
            staying,
            people,
        })
    }
}

/// Replaces signatures by those of rings or regions, in order of signature and number.
///
/// Returns the place of each entry in that order, and the lasting number of each ring or region.
fn by_ring(sets: &mut Vec<(Box<[u32]>, u32)>, signature_of: &Codes, ring_of: &[i64]) -> (Codes, Vec<i64>) {
    let entry = |entry: usize| (signature_of.at(entry as u32), ring_of[entry]);
    let mut all: Vec<(u32, i64)> = (0..ring_of.len()).map(entry).collect();
    all.par_sort_unstable();
    all.dedup();
    let place = |ring: usize| all.partition_point(|other| *other < entry(ring)) as u32;
    let places = Codes::collected(all.len() as u32, ring_of.len(), |entry| place(entry as usize));
    let signature = |(number, &(signature, _)): (u32, &(u32, i64))| (sets[signature as usize].0.clone(), number);
    *sets = (0..).zip(&all).map(signature).collect();
    (places, all.into_iter().map(|(_, ring)| ring).collect())
}

/// Counts the rings that are none: of several signatures, of more people than values, or of two people with one value where values are known.
fn mixed_rings(
    rings: &[i64],
    sets: &[(Box<[u32]>, u32)],
    ring_of: &Codes,
    own: &OwnValues,
    entries: &Entries,
) -> usize {
    if rings.is_empty() {
        return 0;
    }
    let mut numbers = rings.to_vec();
    numbers.par_sort_unstable();
    let several_signatures = numbers.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let again: FxHashSet<u32> = entries.several().flat_map(|run| run[1..].iter().copied()).collect();
    let once = (0..ring_of.len() as u32).into_par_iter().filter(|entry| !again.contains(entry));
    let mut people: Vec<(u32, Option<u32>)> = once.map(|entry| (ring_of.at(entry), own.provisional(entry))).collect();
    people.par_sort_unstable();
    let is_mixed = |ring: &&[(u32, Option<u32>)]| {
        let has_one_twice = ring.windows(2).any(|pair| pair[0].1.is_some() && pair[0].1 == pair[1].1);
        has_one_twice || ring.len() > sets[ring[0].0 as usize].0.len()
    };
    several_signatures + people.chunk_by(|one, other| one.0 == other.0).filter(is_mixed).count()
}

/// Returns the columns of an entry between its person and its release.
pub(super) fn fields(sensitive: &FieldRef, facts: Facts) -> Vec<Field> {
    let mut fields = vec![Field::new(SIGNATURE, signature_type(sensitive.data_type()), false)];
    fields.push(match facts.labels {
        true => Field::new(LABEL, DataType::Int32, false),
        false => Field::new(SEAL, DataType::Int64, false),
    });
    if facts.rings {
        fields.push(Field::new(RING, DataType::Int64, false));
    }
    fields
}

/// Returns the members who get an entry: people who were not published before, or, where signatures change, not with these values.
pub(super) fn members(published: &Published, known: &Signatures, change: bool) -> Vec<u32> {
    match change {
        false => published.members(|row| known.number_of(row as usize).is_none()),
        true => published.members_changed(|row| known.of(row as usize)),
    }
}

/// Returns the entries of some members.
/// Fails when Arrow fails to gather values.
pub(super) fn entries(published: &Published, members: &[u32], facts: Facts) -> Result<Vec<ArrayRef>> {
    let signatures = published.signatures(members)?;
    let own = if facts.labels { published.labels(members) } else { own::seals(published, members)? };
    let rings = facts.rings.then(|| published.rings(members)).transpose()?;
    Ok([signatures, own].into_iter().chain(rings).collect())
}

#[cfg(test)]
mod tests;
