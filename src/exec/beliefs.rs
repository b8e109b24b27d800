//! Beliefs about everybody of a reader who knows how probable changes are. They are kept from release to release of
//! m-distinct, for the figure that says how far such a reader gets.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, filter_record_batch, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, Schema, SchemaRef};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::methods::state::{IDENTIFIER, RELEASE, Signatures};
use crate::methods::{AnyMethod, Monitor, State, ValueChanges};
use crate::microdata::{HashKey, IdentifierBuilder, Microdata, People, compact_views};
use crate::publication::{Beliefs, Believed, make, numbered};
use crate::release::{COUNTERFEIT, Release};
use crate::risk::{Before, Changes, Update, Updates, believed_after};

/// Column of a file of beliefs: how probable each value of somebody's last group is, in the order of their signature.
const SHARES: &str = "shares";
/// Groups looked at by one thread at a time.
const GROUPS: usize = 256;
/// People of a batch that is written.
const PEOPLE: usize = 1 << 13;
/// Entry number that stands for none.
const NONE: u32 = u32::MAX;

pub(super) struct BeliefsStep {
    /// The file that the release before has left; none before the first.
    before: Vec<RecordBatch>,
    number: u64,
}

impl BeliefsStep {
    pub(super) fn new(before: Vec<RecordBatch>, number: u64) -> Self {
        Self { before, number }
    }

    /// Returns true if such a method leaves beliefs, given probabilities of changes. Where nobody's value is likelier
    /// than is promised, there is nothing to be found out.
    pub(super) fn is_of(method: &AnyMethod) -> bool {
        matches!(method.as_method().changes(), ValueChanges::Listed { .. })
    }

    /// Computes the beliefs after the release, which was made with this state; `None` if nobody has said how probable
    /// all changes are. `key` puts identifiers in an order, and nothing else. Charges to the monitor what it holds.
    /// Fails when there is not enough memory, or the file and the ledger are of different people, which is a bug.
    pub(super) fn take(
        self,
        release: &Release,
        state: &State,
        key: HashKey,
        monitor: &Monitor,
    ) -> Result<Option<Believed>> {
        let microdata = &release.microdata;
        let Some(law) = law(microdata)? else { return Ok(None) };
        let past = Past::read(&self.before, microdata, key, monitor)?;
        let known = state.signatures()?;
        let believed = past.after(release, known, law, self.number, monitor)?;
        let people = identified(microdata)?;
        let schema = schema(&people.data_type);
        let absent = self.absent(&past, release, &schema);
        let present = (0..believed.rows.len()).step_by(PEOPLE).map(|first| {
            monitor.check()?;
            let rows = first..believed.rows.len().min(first + PEOPLE);
            let places = rows.clone().map(|at| people.arrival[believed.rows[at] as usize]);
            let ids = compact_views(take(&people.identifiers, &UInt32Array::from_iter_values(places), None)?);
            let releases: ArrayRef = Arc::new(Int64Array::from(vec![self.number as i64; rows.len()]));
            let columns =
                vec![cast(&ids, &people.data_type)?, releases, believed.lists(rows, schema.field(2).data_type())?];
            Ok(RecordBatch::try_new(SchemaRef::clone(&schema), columns)?)
        });
        let file = make(numbered(self.number)? + ".parquet", &schema, absent.chain(present))?;
        monitor.charge(file.contents.len())?;
        Ok(Some(Believed { record: Beliefs { achieved: believed.highest(), file: file.file.clone() }, file }))
    }

    /// Returns the beliefs that remain about people whom the release has not.
    fn absent<'a>(
        &'a self,
        past: &Past,
        release: &Release,
        schema: &'a SchemaRef,
    ) -> impl Iterator<Item = Result<RecordBatch>> + 'a {
        let mut gone = vec![true; past.releases.len()];
        for entry in people(release).filter_map(|row| past.entry_of(row)) {
            gone[entry] = false;
        }
        let mut first = 0;
        self.before.iter().map(move |batch| {
            let kept = BooleanArray::from(gone[first..first + batch.num_rows()].to_vec());
            first += batch.num_rows();
            let columns = batch.columns().iter().zip(schema.fields());
            let columns =
                columns.map(|(column, field)| Ok(cast(column, field.data_type())?)).collect::<Result<Vec<_>>>()?;
            Ok(filter_record_batch(&RecordBatch::try_new(SchemaRef::clone(schema), columns)?, &kept)?)
        })
    }
}

/// Returns the rows of a release that are somebody's, group by group.
fn people(release: &Release) -> impl Iterator<Item = u32> + '_ {
    release.groups.members.iter().copied().filter(|row| *row != COUNTERFEIT)
}

fn identified(microdata: &Microdata) -> Result<&People> {
    microdata.people.as_ref().ok_or_else(|| Error::internal("beliefs about nobody"))
}

fn schema(identifier: &DataType) -> SchemaRef {
    let item: FieldRef = Arc::new(Field::new_list_field(DataType::Float64, false));
    Arc::new(Schema::new(vec![
        Field::new(IDENTIFIER, identifier.clone(), true),
        Field::new(RELEASE, DataType::Int64, false),
        Field::new(SHARES, DataType::List(item), false),
    ]))
}

/// Returns the probabilities of changes, if somebody has given them for all. Where they have probabilities, none is added to close the relation.
fn law(microdata: &Microdata) -> Result<Option<Changes>> {
    let Some(updates) = microdata.updates.as_deref().filter(|updates| updates.weighted()) else { return Ok(None) };
    let mut rows = Vec::with_capacity(updates.pairs.len());
    for (&(from, to), &probability) in updates.pairs.iter().zip(&updates.probabilities) {
        match probability {
            Some(_) => rows.push(Update { from, to, probability }),
            None if from == to => {}
            None => return Ok(None),
        }
    }
    Ok(Some(Changes::new(Updates::try_new(microdata.sensitive()?.domain.len(), &rows)?)))
}

/// Beliefs before the release, as they concern the rows of microdata.
struct Past {
    /// Entry of each row; empty if there are none.
    entries: Vec<u32>,
    /// Of each entry: its release, and where its shares begin; one more, where they end.
    releases: Vec<i64>,
    starts: Vec<usize>,
    shares: Vec<f64>,
}

impl Past {
    fn read(batches: &[RecordBatch], microdata: &Microdata, key: HashKey, monitor: &Monitor) -> Result<Self> {
        let mut past = Self { entries: Vec::new(), releases: Vec::new(), starts: vec![0], shares: Vec::new() };
        let people = identified(microdata)?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows == 0 {
            return Ok(past);
        }
        let (mut then, mut now) =
            (IdentifierBuilder::new(people.data_type.clone()), IdentifierBuilder::new(people.data_type.clone()));
        now.append(&people.identifiers)?;
        for batch in batches {
            let column = |name: &str| {
                let column = batch.column_by_name(name);
                column.ok_or_else(|| Error::internal("a file of beliefs with other columns"))
            };
            then.append(&cast(column(IDENTIFIER)?, &people.data_type)?)?;
            let releases = cast(column(RELEASE)?, &DataType::Int64)?;
            let lists = cast(column(SHARES)?, schema(&people.data_type).field(2).data_type())?;
            let lists = lists.as_list::<i32>();
            let (first, last) = (lists.value_offsets()[0] as usize, lists.value_offsets()[lists.len()] as usize);
            monitor.charge((last - first) * size_of::<f64>() + lists.len() * size_of::<(i64, usize, u32, u8)>())?;
            past.releases.extend_from_slice(releases.as_primitive::<Int64Type>().values());
            past.starts.extend(lists.offsets().lengths().scan(past.shares.len(), |end, length| {
                *end += length;
                Some(*end)
            }));
            past.shares.extend_from_slice(&lists.values().as_primitive::<Float64Type>().values()[first..last]);
        }
        monitor.charge(then.size() + now.size() + microdata.rows * size_of::<[u32; 2]>())?;
        let (then, now) = (then.finish(key)?, now.finish(key)?);
        let mut of_arrival = vec![NONE; now.len()];
        for (place, entry) in now.order().zip(now.find_in(&then)?.iter()) {
            of_arrival[place as usize] = entry.unwrap_or(NONE);
        }
        past.entries = people.arrival.iter().map(|&place| of_arrival[place as usize]).collect();
        Ok(past)
    }

    fn entry_of(&self, row: u32) -> Option<usize> {
        self.entries.get(row as usize).filter(|entry| **entry != NONE).map(|entry| *entry as usize)
    }

    /// Returns the beliefs about the person of a row, if there are any.
    fn of<'a>(&'a self, row: u32, known: &'a Signatures, number: u64) -> Result<Option<Before<'a>>> {
        let (entry, values) = match (self.entry_of(row), known.of(row as usize)) {
            (Some(entry), Some(values)) => (entry, values),
            (None, None) => return Ok(None),
            _ => return Err(Error::internal("beliefs about other people than those of the ledger")),
        };
        let shares = &self.shares[self.starts[entry]..self.starts[entry + 1]];
        match u32::try_from(number as i64 - self.releases[entry]) {
            Ok(releases) if releases > 0 && shares.len() == values.len() => {
                Ok(Some(Before { values, shares, releases }))
            }
            _ => Err(Error::internal("beliefs about other groups than those of the ledger")),
        }
    }

    fn after(
        &self,
        release: &Release,
        known: &Signatures,
        mut law: Changes,
        number: u64,
        monitor: &Monitor,
    ) -> Result<After> {
        let groups = &release.groups;
        let mut prepared = FxHashSet::default();
        for row in people(release) {
            if let Some(Before { values, releases, .. }) = self.of(row, known, number)?
                && prepared.insert((known.number_of(row as usize), releases))
            {
                law.prepare(values, releases);
            }
        }
        monitor.charge(law.size())?;
        let members =
            |group: usize| groups.members[groups.range(group)].iter().copied().filter(|row| *row != COUNTERFEIT);
        let items: usize = (0..groups.len()).map(|group| members(group).count() * groups.range(group).len()).sum();
        // As the threads leave them, and together.
        monitor.charge(2 * (items * size_of::<f64>() + groups.members.len() * size_of::<(u32, usize)>()))?;
        let found = (0..groups.len().div_ceil(GROUPS)).into_par_iter().map(|chunk| {
            monitor.check()?;
            let mut found = After::default();
            for group in chunk * GROUPS..groups.len().min((chunk + 1) * GROUPS) {
                let before = members(group).map(|row| self.of(row, known, number)).collect::<Result<Vec<_>>>()?;
                let after = believed_after(&law, &groups.sensitive[groups.range(group)], &before);
                members(group).zip(after).for_each(|(row, shares)| found.add(row, &shares));
            }
            Ok(found)
        });
        let found = found.collect::<Result<Vec<After>>>()?;
        let mut all = After::default();
        all.shares.reserve_exact(items);
        found.into_iter().for_each(|found| all.append(found));
        Ok(all)
    }
}

/// Beliefs about people after a release.
#[derive(Default)]
struct After {
    rows: Vec<u32>,
    /// Ends of the shares of each of them.
    ends: Vec<usize>,
    /// Probability of each value of their group, in its order.
    shares: Vec<f64>,
}

impl After {
    fn add(&mut self, row: u32, shares: &[f64]) {
        self.rows.push(row);
        self.shares.extend_from_slice(shares);
        self.ends.push(self.shares.len());
    }

    fn append(&mut self, other: Self) {
        let before = self.shares.len();
        self.rows.extend(other.rows);
        self.ends.extend(other.ends.into_iter().map(|end| before + end));
        self.shares.extend(other.shares);
    }

    fn highest(&self) -> Option<f64> {
        // A sum of shares can be off by its rounding.
        self.shares.iter().copied().reduce(f64::max).map(|highest| highest.min(1.0))
    }

    /// Returns the shares of some of the people, as a column.
    fn lists(&self, people: Range<usize>, data_type: &DataType) -> Result<ArrayRef> {
        let DataType::List(item) = data_type else { return Err(Error::internal("shares that are no lists")) };
        let start = people.start.checked_sub(1).map_or(0, |last| self.ends[last]);
        let ends = &self.ends[people];
        let lengths = ends.iter().scan(start, |from, end| Some(end - std::mem::replace(from, *end)));
        let shares = Float64Array::from(self.shares[start..ends.last().copied().unwrap_or(start)].to_vec());
        let offsets = OffsetBuffer::from_lengths(lengths.collect::<Vec<_>>());
        Ok(Arc::new(ListArray::try_new(FieldRef::clone(item), offsets, Arc::new(shares), None)?))
    }
}

#[cfg(test)]
mod tests;
