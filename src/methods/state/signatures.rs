//! The publisher's memory of signatures: for everybody ever published, the sensitive values of the group that hosted them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use rustc_hash::FxHashMap;

use super::RELEASE;
use crate::error::{Error, Result, thousands};
use crate::microdata::{Codes, ColumnEncoder, EncodedColumns, Hashed, IdentifierBuilder};
use crate::release::{LABEL, Published, SIGNATURE, signature_type};

/// What earlier releases say about the rows of microdata: the signature (codes of the sensitive attribute, each once) of everybody
/// who was published before.
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
    /// How many steps of the law ago each row was published last, where that is known; else empty.
    steps_of: OfRows,
    all: Arc<[Box<[u32]>]>,
    /// How many people of the first release have each; empty if that was not asked for, or nobody was ever published.
    first: Arc<[usize]>,
}

/// A number of each row that has one. Kept as one more, so that 0 is that of the others.
#[derive(Debug, Default)]
struct OfRows(Codes);

impl OfRows {
    /// Numbers below `end`, where there are some.
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

/// Steps of the law that somebody can have missed.
const MOST_STEPS: u32 = 10_000;

/// Why it is not known how long ago people were published.
const UNDATED: &str = "`previous` does not say which release its rows are from (column release), which tells how often a value could change \
    since; number the releases one after the other";

impl Signatures {
    /// All signatures that were ever given, also to people who are not in the microdata.
    pub fn all(&self) -> &[Box<[u32]>] {
        &self.all
    }

    /// The number of a row's signature, if its identifier was ever published.
    #[inline]
    pub fn number_of(&self, row: usize) -> Option<u32> {
        self.number_of.of(row)
    }

    /// The signature of a row, if its identifier was ever published.
    #[inline]
    pub fn of(&self, row: usize) -> Option<&[u32]> {
        self.number_of(row).map(|number| &*self.all[number as usize])
    }

    /// The place of a row's own value in its signature, from 0, if its identifier was ever published and people have labels.
    #[inline]
    pub fn label_of(&self, row: usize) -> Option<u32> {
        self.label_of.of(row)
    }

    /// How many steps of the law ago a row was published last: 1 if it was in the last release and each of these is a step, 0 in one of the same period.
    /// `None` if it never was, or that is not known.
    #[inline]
    pub fn steps_of(&self, row: usize) -> Option<u32> {
        self.steps_of.of(row)
    }

    /// What is known of some of the rows.
    pub(super) fn part(&self, rows: &[u32]) -> Self {
        Self {
            number_of: self.number_of.part(rows),
            label_of: self.label_of.part(rows),
            steps_of: self.steps_of.part(rows),
            all: Arc::clone(&self.all),
            first: Arc::clone(&self.first),
        }
    }

    /// How many people of the first release have each signature, those who are not in the microdata included.
    pub fn first(&self) -> &[usize] {
        &self.first
    }
}

/// Lists of signatures that are remembered as they came, at most.
const LISTS: usize = 1 << 20;

/// What earlier releases say beside everybody's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Nothing.
    Signatures,
    /// By their numbers, which one is the first.
    First,
    /// Labels; and by their numbers, if they have any, which one is the latest.
    Labels,
    /// Labels; and by their numbers, how long ago everybody was published.
    Dates,
}

/// Reads the identifier and `signature` columns of earlier private releases.
#[derive(Debug)]
pub(super) struct SignaturesReader {
    says: Says,
    identifiers: IdentifierBuilder,
    signature_of: Vec<u32>,
    /// Label of each entry, from 0; empty if there are none.
    label_of: Vec<u32>,
    /// Which release each entry is from; empty if that is not known.
    releases: Vec<i64>,
    /// Signatures, in provisional codes.
    sets: FxHashMap<Box<[u32]>, Known>,
    /// Lists as they came, where signatures have no order: most are those of others, and need not be put in order again.
    lists: FxHashMap<Box<[u32]>, Known>,
    set_bytes: usize,
    codes: Vec<u32>,
}

/// What is known of a signature that was read.
#[derive(Debug, Clone, Copy)]
struct Known {
    number: u32,
    /// Whether it has a value twice.
    has_one_twice: bool,
}

impl SignaturesReader {
    /// A builder for identifiers of the given type.
    pub(super) fn new(identifier: DataType, says: Says) -> Self {
        Self {
            says,
            identifiers: IdentifierBuilder::new(identifier),
            signature_of: Vec::new(),
            label_of: Vec::new(),
            releases: Vec::new(),
            sets: FxHashMap::default(),
            lists: FxHashMap::default(),
            set_bytes: 0,
            codes: Vec::new(),
        }
    }

    /// Appends a batch: identifiers, lists of sensitive values, with labels the places of people's own values in these (from 1),
    /// and the numbers of the releases where one of them counts. Rows without identifier
    /// (counterfeits) are skipped. The values join the domain of the sensitive attribute, so that codes agree.
    ///
    /// # Errors
    /// When a published row has no signature, no label or no number, when a signature holds NULL, and with labels when it holds
    /// a value twice or has no such place.
    pub(super) fn append(&mut self, batch: &RecordBatch, sensitive: &mut ColumnEncoder) -> Result<()> {
        let (labelled, numbered) = (matches!(self.says, Says::Labels | Says::Dates), self.says != Says::Signatures);
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
        let mut sorted = Vec::new();
        for (entry, window) in offsets.windows(2).enumerate() {
            let set = &codes[window[0] as usize - first..window[1] as usize - first];
            let known = if labels.is_none() { self.lists.get(set) } else { self.sets.get(set) };
            let known = match known {
                Some(known) => *known,
                None if labels.is_some() => self.learn(set),
                None => {
                    sorted.clear();
                    sorted.extend_from_slice(set);
                    sorted.sort_unstable();
                    sorted.dedup();
                    let known = self.sets.get(sorted.as_slice()).copied();
                    let known = known.unwrap_or_else(|| self.learn(&sorted));
                    if self.lists.len() < LISTS {
                        self.set_bytes += size_of_val(set) + size_of::<(Box<[u32]>, Known)>();
                        self.lists.insert(set.into(), known);
                    }
                    known
                }
            };
            self.signature_of.push(known.number);
            if let Some(labels) = labels {
                let label = if labels.is_valid(entry) { labels.value(entry) } else { 0 };
                let is_place = (1..=set.len() as i64).contains(&label);
                nobodys += usize::from(!is_place || known.has_one_twice);
                self.label_of.push((label - 1) as u32);
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
        self.identifiers.append(&ids)
    }

    /// Numbers a signature that was not seen before.
    fn learn(&mut self, set: &[u32]) -> Known {
        let mut values = set.to_vec();
        values.sort_unstable();
        let has_one_twice = values.windows(2).any(|pair| pair[0] == pair[1]);
        let known = Known { number: self.sets.len() as u32, has_one_twice };
        self.set_bytes += size_of_val(set) + size_of::<(Box<[u32]>, Known)>();
        self.sets.insert(set.into(), known);
        known
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        self.identifiers.size()
            + (self.signature_of.capacity() + self.label_of.capacity()) * size_of::<u32>()
            + self.releases.capacity() * size_of::<i64>()
            + self.set_bytes
    }

    /// Finds what it says of the rows of microdata.
    ///
    /// # Errors
    /// When an identifier was published with two different signatures, without a number that says which is the later one, or with
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
        signature_of.iter_mut().for_each(|number| *number = renumbered[*number as usize]);

        let published = self.identifiers.finish(key)?;
        let label_of = self.label_of;
        let (mut torn, mut moved) = (0, 0);
        let dated = self.says == Says::Dates;
        if dated && self.releases.len() != signature_of.len() {
            return Err(Error::refused(UNDATED));
        }
        let mut last_of = if dated { self.releases.clone() } else { Vec::new() };
        let number_of = |entry: &Hashed| self.releases.get(entry.row() as usize).copied().unwrap_or_default();
        // Only with labels does a later signature take the place of an earlier one.
        let release = |entry: &Hashed| if labelled { number_of(entry) } else { 0 };
        for run in published.runs_of_several()? {
            let last = run.iter().map(release).max().unwrap_or_default();
            let mut latest =
                run.iter().filter(|entry| release(entry) == last).map(|entry| signature_of[entry.row() as usize]);
            let Some(signature) = latest.next() else { return Err(Error::internal("people without a last release")) };
            torn += usize::from(latest.any(|other| other != signature));
            run.iter().filter(|_| dated).for_each(|entry| last_of[entry.row() as usize] = last);
            run.iter().for_each(|entry| signature_of[entry.row() as usize] = signature);
            let label = |entry: &Hashed| label_of.get(entry.row() as usize);
            moved += usize::from(run.iter().any(|entry| label(entry) != label(&run[0])));
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
        let mut first = Vec::new();
        if let (Says::First, Some(earliest)) = (self.says, self.releases.iter().min()) {
            first.resize(sets.len(), 0);
            for run in published.runs()? {
                if run.iter().any(|entry| number_of(entry) == *earliest) {
                    first[signature_of[run[0].row() as usize] as usize] += 1;
                }
            }
        }
        // All numbers that there are, not everybody's last ones only.
        let numbered = if dated { self.releases.as_slice() } else { &[] };
        let calendar = Calendar::new(numbered, number, periods)?;
        let (mut signatures_of_rows, mut labels_of_rows, mut steps_of_rows) =
            (OfRows::default(), OfRows::default(), OfRows::default());
        if !published.is_empty() {
            let entries = microdata.find_in(&published)?;
            let of_row = |row: u32| entries[row as usize].map(|entry| entry as usize);
            let of_rows = |end: usize, all: &[u32]| {
                OfRows::new(end as u32, entries.len(), |row| of_row(row).map(|entry| all[entry]))
            };
            signatures_of_rows = of_rows(sets.len(), &signature_of);
            if labelled {
                labels_of_rows = of_rows(sets.iter().map(|(set, _)| set.len()).max().unwrap_or(0), &label_of);
            }
            if let Some(calendar) = &calendar {
                // Of people who are not here, it does not matter.
                let steps_of = |entry: &Option<u32>| entry.map(|row| calendar.steps(last_of[row as usize])).transpose();
                let steps = entries.iter().map(steps_of).collect::<Result<Vec<_>>>()?;
                let end = steps.iter().flatten().max().map_or(0, |most| most + 1);
                steps_of_rows = OfRows::new(end, entries.len(), |row| steps[row as usize]);
            }
        }
        let signatures = sets.into_iter().map(|(set, _)| set).collect();
        Ok(Signatures {
            number_of: signatures_of_rows,
            label_of: labels_of_rows,
            steps_of: steps_of_rows,
            all: signatures,
            first: first.into(),
        })
    }
}

/// How often values could change between releases.
struct Calendar<'a> {
    /// The number of the release that is made, or the period that it is of.
    now: u64,
    /// The period of each release, by number from 1; without, every release is one.
    periods: Option<&'a [u64]>,
}

impl<'a> Calendar<'a> {
    /// `number` is that of the release that is made; where it is not known, it follows the last one of `releases`. `None` if there are none.
    ///
    /// # Errors
    /// When it is not known, and the releases are not numbered 1, 2, 3 and so on: then nobody knows how often values could change.
    fn new(releases: &[i64], number: Option<u64>, periods: Option<&'a (Vec<u64>, u64)>) -> Result<Option<Self>> {
        let Some(&last) = releases.iter().max() else { return Ok(None) };
        if let Some((periods, now)) = periods {
            return Ok(Some(Self { now: *now, periods: Some(periods) }));
        }
        if let Some(now) = number {
            return Ok(Some(Self { now, periods: None }));
        }
        let mut numbers = releases.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        match numbers.iter().copied().eq(1..=numbers.len() as i64) {
            true => Ok(Some(Self { now: last as u64 + 1, periods: None })),
            false => Err(Error::refused(
                "`previous` has releases that are not numbered 1, 2, 3 and so on, without gaps: the numbers say how many times a value could change \
                 since. Pass all rows of all earlier private releases, also of people who are not there any more, with column release",
            )),
        }
    }

    /// How many steps of the law there are from a release to this one.
    fn steps(&self, release: i64) -> Result<u32> {
        let then = match (self.periods, usize::try_from(release)) {
            (None, _) => u64::try_from(release).ok().filter(|then| *then < self.now),
            (Some(periods), Ok(release)) => release.checked_sub(1).and_then(|place| periods.get(place)).copied(),
            (Some(_), Err(_)) => None,
        };
        let steps = then.and_then(|then| self.now.checked_sub(then)).and_then(|steps| u32::try_from(steps).ok());
        let Some(steps) = steps else { return Err(Error::internal("a person who was published in a later release")) };
        match steps <= MOST_STEPS {
            true => Ok(steps),
            false => Err(Error::refused(format!(
                "some people were published more than {} periods ago, over which the law of changes is not followed; leave them out",
                thousands(MOST_STEPS as usize)
            ))),
        }
    }
}

/// Columns of an entry behind whom it is about, but for the release that it is from.
pub(super) fn fields(sensitive: &FieldRef, labelled: bool) -> impl Iterator<Item = Field> {
    let signature = Field::new(SIGNATURE, signature_type(sensitive.data_type()), false);
    [signature].into_iter().chain(labelled.then(|| Field::new(LABEL, DataType::Int32, false)))
}

/// The members who get an entry: people who were not published before, or, where signatures change, not with these values.
pub(super) fn members(published: &Published, known: &Signatures, change: bool) -> Vec<u32> {
    match change {
        false => published.members(|row| known.number_of(row as usize).is_none()),
        true => published.members_who(|row, values| known.of(row as usize).is_none_or(|before| *before != *values)),
    }
}

/// Their entries.
///
/// # Errors
/// When Arrow fails to gather values.
pub(super) fn entries(published: &Published, members: &[u32], labelled: bool) -> Result<Vec<ArrayRef>> {
    let signatures = published.signatures(members)?;
    Ok([signatures].into_iter().chain(labelled.then(|| published.labels(members))).collect())
}
