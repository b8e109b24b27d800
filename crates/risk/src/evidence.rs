//! Evidence of a reader, as codes: releases, and background knowledge of people.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type};
use rustc_hash::FxHashMap;

use super::background::{ALL, BackgroundKnowledge, Fact, KnownPeople};
use super::cover::Boxes;
use super::{Update, Updates};
use crate::error::{Error, Result, thousands};
use crate::microdata::{ColumnEncoder, Encoded, Hierarchies, Order, given_order};

/// Code that stands for no value.
pub(super) const NONE: u32 = u32::MAX;
/// Interval that stands for all values.
const ANY: [u32; 2] = [NONE; 2];

/// Columns of the batches of a release. The least and the greatest value of each quasi-identifier come first, then
/// the sensitive value (or, as Anatomy publishes, the list of `{value, count}` of the row's group), and then these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseColumns {
    /// Number of the row's group. Without one, every row is a group of its own.
    pub group: bool,
    /// Identifier of the row, NULL for counterfeits: a private view, in which the reader sees everybody's group.
    pub id: bool,
}

/// Columns of the batches of background knowledge: identifier and quasi-identifiers, and then these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundColumns {
    /// The true sensitive value, of which risks are told.
    pub sensitive: bool,
    /// Number of the release in which the person is like that. Without one, the person is in all releases.
    pub release: bool,
}

/// Collects what a reader holds.
pub struct EvidenceBuilder {
    quasi: Vec<ColumnEncoder>,
    fields: Vec<FieldRef>,
    ids: ColumnEncoder,
    sensitive: ColumnEncoder,
    releases: Vec<EvidenceRows>,
    known: BackgroundKnowledge,
    facts: Vec<Fact>,
    updates: Option<Vec<Update>>,
    any_update: bool,
    closed: bool,
    times: Vec<u64>,
    hierarchies: Option<Hierarchies>,
    codes: Vec<usize>,
}

/// A release as it was read, in provisional codes.
struct EvidenceRows {
    columns: ReleaseColumns,
    groups: Option<ColumnEncoder>,
    /// True for each quasi-identifier that is not in the release.
    absent: Vec<bool>,
    /// Ends of each row and attribute.
    ends: Vec<[u32; 2]>,
    group: Vec<u32>,
    /// Rows of each group by sensitive value, with repetitions: group, value, count.
    values: Vec<(u32, u32, u32)>,
    /// Groups whose list of values was read.
    listed: Vec<bool>,
    /// Persons, groups, and values of their rows, or [`NONE`] if rows show the group's.
    hosts: Vec<(u32, u32, u32)>,
}

impl EvidenceBuilder {
    /// Returns a builder for these columns. All batches must have them with these types.
    ///
    /// # Errors
    /// When a type cannot be grouped by.
    pub fn try_new(id: FieldRef, quasi: Vec<FieldRef>, sensitive: FieldRef) -> Result<Self> {
        Ok(Self {
            quasi: quasi.iter().map(|field| ColumnEncoder::try_new(FieldRef::clone(field))).collect::<Result<_>>()?,
            fields: quasi,
            ids: ColumnEncoder::try_new(id)?,
            sensitive: ColumnEncoder::try_new(sensitive)?,
            releases: Vec::new(),
            known: BackgroundKnowledge::default(),
            facts: Vec::new(),
            updates: None,
            any_update: false,
            closed: false,
            times: Vec::new(),
            hierarchies: None,
            codes: Vec::new(),
        })
    }

    /// Appends rows of what is known of people.
    ///
    /// # Errors
    /// A NULL where none can be, a release number below 1.
    pub fn append_known(&mut self, batch: &RecordBatch, columns: BackgroundColumns) -> Result<()> {
        let nulls = batch.column(0).null_count();
        if nulls > 0 {
            return Err(Error::refused(format!("{} rows have a NULL in the identifier column", thousands(nulls))));
        }
        self.ids.intern(batch.column(0), &mut self.codes)?;
        self.known.person.extend(self.codes.iter().map(|&code| code as u32));
        let d = self.quasi.len();
        let start = self.known.quasi.len();
        self.known.quasi.resize(start + d * batch.num_rows(), 0);
        for (j, encoder) in self.quasi.iter_mut().enumerate() {
            encoder.intern(batch.column(1 + j), &mut self.codes)?;
            let places = self.known.quasi[start..].iter_mut().skip(j).step_by(d);
            places.zip(&self.codes).for_each(|(place, &code)| *place = code as u32);
        }
        match columns.sensitive {
            true => {
                let values = batch.column(1 + d);
                self.sensitive.intern(values, &mut self.codes)?;
                let codes = self.codes.iter().enumerate();
                let code = |(row, &code): (usize, &usize)| if values.is_null(row) { NONE } else { code as u32 };
                self.known.sensitive.extend(codes.map(code));
            }
            false => self.known.sensitive.resize(self.known.person.len(), NONE),
        }
        match columns.release {
            true => {
                let numbers = cast(batch.column(1 + d + usize::from(columns.sensitive)), &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>();
                let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
                let numbers = numbers.iter().map(|n| number(n).filter(|&n| n > 0));
                let numbers: Option<Vec<u64>> = numbers.collect();
                let numbers = numbers.ok_or_else(|| {
                    Error::refused("the numbers of releases must be whole numbers from 1, without NULL")
                })?;
                self.known.release.extend(numbers);
            }
            false => self.known.release.resize(self.known.person.len(), ALL),
        }
        Ok(())
    }

    /// Appends what the reader knows of sensitive values: identifier, value, and the number of the release if there is a third column, else it
    /// is so in all of them. A joint reader ([`AdversaryModel::Joint`](super::AdversaryModel::Joint)) uses it.
    ///
    /// # Errors
    /// A NULL, a release number below 1.
    pub fn append_facts(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.columns().iter().any(|column| column.null_count() > 0) {
            return Err(Error::refused("facts: identifiers, values and releases cannot be NULL"));
        }
        let mut values = Vec::new();
        self.ids.intern(batch.column(0), &mut self.codes)?;
        self.sensitive.intern(batch.column(1), &mut values)?;
        let releases = match batch.columns() {
            [_, _, column] => {
                let numbers = cast(column, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>().values().iter();
                let numbers = numbers.map(|&number| u64::try_from(number).ok().filter(|&number| number > 0));
                let numbers: Option<Vec<u64>> = numbers.collect();
                numbers.ok_or_else(|| Error::refused("facts: the numbers of releases must be whole numbers from 1"))?
            }
            _ => vec![ALL; batch.num_rows()],
        };
        let facts = self.codes.iter().zip(values).zip(releases);
        self.facts.extend(facts.map(|((&person, value), release)| Fact {
            person: person as u32,
            release,
            value: value as u32,
        }));
        Ok(())
    }

    /// Begins another release, whose rows follow. Releases are numbered from 1 in this order.
    pub fn begin_release(&mut self, columns: ReleaseColumns) {
        self.begin_release_without(columns, &[]);
    }

    /// Begins a release that lacks some quasi-identifiers, by their places. Its rows can be of people with any value of them.
    pub fn begin_release_without(&mut self, columns: ReleaseColumns, absent: &[usize]) {
        self.releases.push(EvidenceRows {
            columns,
            absent: (0..self.quasi.len()).map(|j| absent.contains(&j)).collect(),
            groups: None,
            ends: Vec::new(),
            group: Vec::new(),
            values: Vec::new(),
            listed: Vec::new(),
            hosts: Vec::new(),
        });
    }

    /// Appends rows of the release that was begun last.
    ///
    /// # Errors
    /// When no release was begun, or its rows are too many to number.
    pub fn append_release(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(rows) = self.releases.last_mut() else { return Err(Error::internal("rows of no release")) };
        let d = self.quasi.len();
        let first = rows.group.len();
        if first + batch.num_rows() >= NONE as usize {
            return Err(Error::refused("a release has more rows than can be numbered"));
        }
        rows.ends.resize((first + batch.num_rows()) * d, ANY);
        let there = self.quasi.iter_mut().enumerate().filter(|(j, _)| !rows.absent[*j]);
        let pairs = batch.columns().chunks_exact(2);
        let width = 2 * rows.absent.iter().filter(|absent| !**absent).count();
        for ((j, encoder), ends) in there.zip(pairs) {
            for (which, column) in ends.iter().enumerate() {
                encoder.intern(column, &mut self.codes)?;
                let places = rows.ends[first * d..].iter_mut().skip(j).step_by(d);
                places.zip(&self.codes).for_each(|(place, &code)| place[which] = code as u32);
            }
        }
        let mut columns = batch.columns()[width..].iter();
        let missing = || Error::internal("a release with other columns than announced");
        let values = columns.next().ok_or_else(missing)?;
        match rows.columns.group {
            true => {
                let numbers = columns.next().ok_or_else(missing)?;
                if rows.groups.is_none() {
                    let field = datafusion::arrow::datatypes::Field::new("group", numbers.data_type().clone(), true);
                    rows.groups = Some(ColumnEncoder::try_new(FieldRef::new(field))?);
                }
                if let Some(groups) = &mut rows.groups {
                    groups.intern(numbers, &mut self.codes)?;
                }
                rows.group.extend(self.codes.iter().map(|&code| code as u32));
            }
            false => rows.group.extend((first..first + batch.num_rows()).map(|row| row as u32)),
        }
        rows.append_values(values, first, &mut self.sensitive, &mut self.codes)?;
        if rows.columns.id {
            let ids = columns.next().ok_or_else(missing)?;
            self.ids.intern(ids, &mut self.codes)?;
            let people = self.codes.iter().enumerate().filter(|(row, _)| ids.is_valid(*row));
            let own = rows
                .values
                .len()
                .checked_sub(batch.num_rows())
                .filter(|_| !matches!(values.data_type(), DataType::List(_)));
            let value = |row: usize| own.map_or(NONE, |own| rows.values[own + row].1);
            rows.hosts.extend(people.map(|(row, &person)| (person as u32, rows.group[first + row], value(row))));
        }
        Ok(())
    }

    /// Appends rows of the update relation: from, to, and the probability, if there is a third column.
    ///
    /// # Errors
    /// A NULL value.
    pub fn append_updates(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut ends = [Vec::new(), Vec::new()];
        for (end, column) in ends.iter_mut().zip(batch.columns()) {
            if column.null_count() > 0 {
                return Err(Error::refused("updates: from and to cannot be NULL"));
            }
            self.sensitive.intern(column, end)?;
        }
        let probabilities = match batch.columns() {
            [_, _, column] => Some(cast(column, &DataType::Float64)?),
            _ => None,
        };
        let probability = |row: usize| {
            let column = probabilities.as_ref()?.as_primitive::<Float64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let [from, to] = &ends;
        let updates = self.updates.get_or_insert_default();
        updates.extend((0..batch.num_rows()).map(|row| Update {
            from: from[row] as u32,
            to: to[row] as u32,
            probability: probability(row),
        }));
        Ok(())
    }

    /// Says that every value can become every other.
    pub fn allow_any_update(&mut self) {
        self.any_update = true;
    }

    /// Says that what follows from several pairs of the update relation follows at once.
    pub fn close_updates(&mut self) {
        self.closed = true;
    }

    /// Says when each release was made, in steps of the update relation; else each is a step of its own.
    pub fn set_times(&mut self, times: &[u64]) {
        self.times = times.to_vec();
    }

    /// Checks that no more people are known to be in a release than it has.
    ///
    /// # Errors
    /// When there are more: some have left, and nobody says who.
    pub fn check_people(&self, people: &[u64]) -> Result<()> {
        self.known.check_people(people)
    }

    /// Appends rows of hierarchies: attribute, leaf and levels.
    ///
    /// # Errors
    /// When the columns are not texts, which is a bug.
    pub fn append_hierarchies(&mut self, batch: &RecordBatch) -> Result<()> {
        let names = self.fields.iter().map(|field| field.name());
        self.hierarchies.get_or_insert_with(|| Hierarchies::new(names)).append(batch)
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        let encoders = self.quasi.iter().chain([&self.ids, &self.sensitive]).map(ColumnEncoder::size).sum::<usize>();
        let release = |rows: &EvidenceRows| {
            rows.ends.capacity() * size_of::<[u32; 2]>()
                + rows.group.capacity() * size_of::<u32>()
                + rows.values.capacity() * size_of::<(u32, u32, u32)>()
                + rows.hosts.capacity() * size_of::<(u32, u32, u32)>()
                + rows.groups.as_ref().map_or(0, ColumnEncoder::size)
        };
        let known = self.known.person.capacity() * 16 + self.known.quasi.capacity() * size_of::<u32>();
        let facts = self.facts.capacity() * size_of::<Fact>();
        encoders + known + facts + self.releases.iter().map(release).sum::<usize>()
    }

    /// Orders domains and puts boxes together. Computes.
    ///
    /// # Errors
    /// A person who is known twice in one release, intervals that are none in the order of their domain, updates that cannot
    /// be, malformed hierarchies.
    pub fn finish(self) -> Result<Evidence> {
        let Self {
            quasi,
            fields,
            ids,
            sensitive,
            releases,
            mut known,
            mut facts,
            updates,
            any_update,
            closed,
            times,
            hierarchies,
            ..
        } = self;
        let hierarchies = hierarchies.map(Hierarchies::finish).transpose()?;
        let mut ranks = Vec::new();
        for (encoder, field) in quasi.into_iter().zip(&fields) {
            let given = given_order(field)?;
            let encoded = encoder.finish(Order::of(field.name(), hierarchies.as_ref(), given.as_deref()))?;
            ranks.push(encoded.ranks);
        }
        let people = ids.finish(Order::ByValue)?;
        let sensitive = sensitive.finish(Order::ByValue)?;
        let rank = |code: u32, ranks: &[u32]| if code == NONE { NONE } else { ranks[code as usize] };
        known.person.iter_mut().for_each(|person| *person = people.ranks[*person as usize]);
        known.sensitive.iter_mut().for_each(|value| *value = rank(*value, &sensitive.ranks));
        for fact in &mut facts {
            fact.person = people.ranks[fact.person as usize];
            fact.value = sensitive.ranks[fact.value as usize];
        }
        let d = fields.len();
        known.quasi.chunks_exact_mut(d.max(1)).for_each(|codes| {
            codes.iter_mut().zip(&ranks).for_each(|(code, ranks)| *code = ranks[*code as usize]);
        });
        let number = releases.len() as u64;
        let mut torn = 0;
        let mut made = Vec::with_capacity(releases.len());
        for rows in releases {
            made.push(rows.finish(&ranks, &people, &sensitive.ranks, &mut torn)?);
        }
        if torn > 0 {
            return Err(Error::refused(format!(
                "in {} rows of the releases, lo comes after hi in the order of their column; if they were made with \
                 hierarchies, pass the same hierarchies => ..",
                thousands(torn)
            )));
        }
        let values = sensitive.attribute.domain.len();
        let updates = match updates {
            Some(rows) => {
                let code = |code: u32| sensitive.ranks[code as usize];
                let rows: Vec<Update> =
                    rows.iter().map(|row| Update { from: code(row.from), to: code(row.to), ..*row }).collect();
                let updates = Updates::try_new(values, &rows)?;
                if closed { updates.closed()? } else { updates }
            }
            None if any_update => Updates::any(values),
            None => Updates::identity(values),
        };
        let known = known.in_order(d, number)?;
        Ok(Evidence {
            ids: people.attribute.domain.values().clone(),
            values: sensitive.attribute.domain.values().clone(),
            quasi: d,
            releases: made,
            known,
            facts,
            updates,
            times,
        })
    }
}

impl EvidenceRows {
    /// Appends the sensitive values of the rows from `first`, or lists of their groups'.
    fn append_values(
        &mut self,
        values: &ArrayRef,
        first: usize,
        encoder: &mut ColumnEncoder,
        codes: &mut Vec<usize>,
    ) -> Result<()> {
        let Some(lists) = values.as_list_opt::<i32>() else {
            encoder.intern(values, codes)?;
            let groups = &self.group[first..];
            self.values.extend(groups.iter().zip(&*codes).map(|(&group, &value)| (group, value as u32, 1)));
            return Ok(());
        };
        let pairs = lists.values().as_struct_opt().filter(|pairs| pairs.num_columns() == 2);
        let pairs = pairs.ok_or_else(|| Error::internal("lists of sensitive values without counts"))?;
        let counts = cast(pairs.column(1), &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        encoder.intern(pairs.column(0), codes)?;
        for (row, ends) in lists.value_offsets().windows(2).enumerate() {
            let group = self.group[first + row];
            if self.listed.len() <= group as usize {
                self.listed.resize(group as usize + 1, false);
            }
            if !std::mem::replace(&mut self.listed[group as usize], true) {
                let entries = ends[0] as usize..ends[1] as usize;
                self.values
                    .extend(entries.map(|place| (group, codes[place] as u32, counts.value(place).max(0) as u32)));
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        ranks: &[Vec<u32>],
        people: &Encoded,
        values: &[u32],
        torn: &mut usize,
    ) -> Result<ReleaseEvidence> {
        let d = ranks.len();
        self.ends.chunks_exact_mut(d.max(1)).for_each(|ends| {
            for (end, ranks) in ends.iter_mut().zip(ranks) {
                *end = if *end == ANY { [0, u32::MAX] } else { end.map(|code| ranks[code as usize]) };
            }
        });
        let rows = self.group.len();
        let of_row = |row: u32| &self.ends[row as usize * d..][..d];
        *torn += (0..rows as u32).filter(|&row| of_row(row).iter().any(|[lo, hi]| lo > hi)).count();
        let groups = self.group.iter().max().map_or(0, |most| *most as usize + 1);
        let mut boxes = Boxes { quasi: d, starts: vec![0], ..Boxes::default() };
        // Rows of a group with the same ends are one box.
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            (self.group[a as usize], of_row(a), a).cmp(&(self.group[b as usize], of_row(b), b))
        });
        let same = |a: &u32, b: &u32| self.group[*a as usize] == self.group[*b as usize] && of_row(*a) == of_row(*b);
        for run in order.chunk_by(same) {
            boxes.ends.extend_from_slice(of_row(run[0]));
            boxes.group.push(self.group[run[0] as usize]);
            boxes.rows.push(run.len() as u32);
        }
        let mut entries: Vec<(u32, u32, u32)> =
            self.values.iter().map(|&(group, value, count)| (group, values[value as usize], count)).collect();
        entries.sort_unstable();
        let mut left = entries.as_slice();
        for group in 0..groups as u32 {
            let (own, others) = left.split_at(left.partition_point(|entry| entry.0 == group));
            left = others;
            let total: f64 = own.iter().map(|entry| f64::from(entry.2)).sum();
            for run in own.chunk_by(|a, b| a.1 == b.1) {
                let count: u32 = run.iter().map(|entry| entry.2).fold(0, u32::saturating_add);
                if count > 0 {
                    boxes.shares.push((run[0].1, f64::from(count) / total));
                    boxes.counted.push(count);
                }
            }
            boxes.starts.push(boxes.shares.len() as u32);
        }
        boxes.pack();
        let hosts = self.columns.id.then(|| {
            let mut hosts = vec![(NONE, NONE); people.attribute.domain.len()];
            let mut twice = 0;
            for &(person, group, value) in &self.hosts {
                let host = &mut hosts[people.ranks[person as usize] as usize];
                twice += usize::from(host.0 != NONE && host.0 != group);
                *host = (group, if value == NONE { NONE } else { values[value as usize] });
            }
            (hosts, twice)
        });
        if let Some((_, twice)) = hosts.as_ref().filter(|(_, twice)| *twice > 0) {
            return Err(Error::refused(format!(
                "in a release, {} people are in several groups; the reader of a private view knows one group per identifier",
                thousands(*twice)
            )));
        }
        Ok(ReleaseEvidence { boxes, hosts: hosts.map(|(hosts, _)| hosts) })
    }
}

/// Releases and what is known of people, in codes.
#[derive(Debug)]
pub struct Evidence {
    /// Identifiers by code.
    ids: ArrayRef,
    /// Sensitive values by code.
    values: ArrayRef,
    pub(super) quasi: usize,
    pub(super) releases: Vec<ReleaseEvidence>,
    pub(super) known: KnownPeople,
    pub(super) facts: Vec<Fact>,
    pub(super) updates: Updates,
    /// Time of each release, in steps of the update relation; empty if each is a step of its own.
    pub(super) times: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct ReleaseEvidence {
    pub boxes: Boxes,
    /// Group and value of each person's row, or [`NONE`], of a private view. Readers know the group. The value is one
    /// that everybody's together are an assignment.
    pub hosts: Option<Vec<(u32, u32)>>,
}

impl Evidence {
    /// Returns the number of releases.
    pub fn releases(&self) -> usize {
        self.releases.len()
    }

    /// Returns the time of a release, by its number.
    pub(super) fn time(&self, release: u64) -> u64 {
        let place = usize::try_from(release).ok().and_then(|release| release.checked_sub(1));
        place.and_then(|place| self.times.get(place)).copied().unwrap_or(release)
    }

    /// Returns the identifiers of people by their codes.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub fn ids(&self, people: &datafusion::arrow::array::UInt32Array) -> Result<ArrayRef> {
        Ok(take(&self.ids, people, None)?)
    }

    /// Returns the sensitive values by code, ascending.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Returns true if all releases are private views. The reader knows then in which group everybody is.
    pub(crate) fn shows_groups(&self) -> bool {
        self.releases.iter().all(|release| release.hosts.is_some())
    }
}

/// Numbers rows of equal points in order of appearance.
pub(super) fn distinct<'a>(points: impl Iterator<Item = &'a [u32]>) -> (Vec<u32>, Vec<u32>) {
    let mut numbers: FxHashMap<&[u32], u32> = FxHashMap::default();
    let mut codes = Vec::new();
    let number = points.map(|point| {
        let next = numbers.len() as u32;
        *numbers.entry(point).or_insert_with(|| {
            codes.extend_from_slice(point);
            next
        })
    });
    let number = number.collect();
    (codes, number)
}
