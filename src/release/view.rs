//! Rows of a release as record batches, in random order.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StructArray,
    UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use rand::Rng;
use rand::seq::SliceRandom;

use super::schema::{COUNTERFEIT_MARK, COUNTERFEITS, GROUP_ID, GROUP_SIZE, SIGNATURE, interval_fields, signature_item};
use super::{COUNTERFEIT, Release};
use crate::error::Result;
use crate::microdata::compact_views;

/// A release whose order of rows and group numbers has been drawn.
#[derive(Debug)]
pub struct Published {
    release: Release,
    schema: SchemaRef,
    /// Members in the order they leave.
    order: Vec<u32>,
    /// Group of each member.
    group_of: Vec<u32>,
    /// Published number of each group, 1 to the number of groups.
    numbers: Vec<u32>,
    /// Counterfeits of each group.
    counterfeits: Vec<i32>,
}

impl Published {
    /// Draws the order of the rows and the numbers of the groups. `schema` lists the wanted columns of the release's
    /// schema, by name.
    pub fn new(release: Release, schema: SchemaRef, rng: &mut impl Rng) -> Self {
        let groups = &release.groups;
        let mut order: Vec<u32> = (0..groups.members.len() as u32).collect();
        order.shuffle(rng);
        let mut numbers: Vec<u32> = (1..=groups.len() as u32).collect();
        numbers.shuffle(rng);
        let mut group_of = Vec::with_capacity(groups.members.len());
        let mut counterfeits = Vec::with_capacity(groups.len());
        for group in 0..groups.len() {
            let members = &groups.members[groups.range(group)];
            group_of.resize(group_of.len() + members.len(), group as u32);
            counterfeits.push(members.iter().filter(|&&row| row == COUNTERFEIT).count() as i32);
        }
        Self { schema, order, group_of, numbers, counterfeits, release }
    }

    /// Number of rows, counterfeits included.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the release has no rows.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The release behind the view.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Rows `start..start + rows` of the random order.
    ///
    /// # Errors
    /// When Arrow fails to gather values; when the schema has a column that the release has not.
    pub fn batch(&self, start: usize, rows: usize) -> Result<RecordBatch> {
        let members = &self.order[start..start + rows];
        let groups: Vec<u32> = members.iter().map(|&member| self.group_of[member as usize]).collect();
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| self.column(field.name(), members, &groups))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)?)
    }

    fn column(&self, name: &str, members: &[u32], groups: &[u32]) -> Result<ArrayRef> {
        let microdata = &self.release.microdata;
        if name == microdata.sensitive.field.name() {
            let codes = members.iter().map(|&member| self.release.groups.sensitive[member as usize]);
            return gather(
                microdata.sensitive.domain.values(),
                &UInt32Array::from_iter_values(codes),
                microdata.sensitive.field.data_type(),
            );
        }
        if let Some(j) = microdata.quasi.iter().position(|attribute| attribute.field.name() == name) {
            return self.intervals(j, groups);
        }
        let of_group = |f: &dyn Fn(usize) -> i32| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(groups.iter().map(|&group| f(group as usize))))
        };
        Ok(match name {
            GROUP_ID => {
                let numbers = groups.iter().map(|&group| i64::from(self.numbers[group as usize]));
                Arc::new(Int64Array::from_iter_values(numbers))
            }
            GROUP_SIZE => of_group(&|group| self.release.groups.range(group).len() as i32),
            COUNTERFEITS => of_group(&|group| self.counterfeits[group]),
            COUNTERFEIT_MARK => {
                let row_of = |member: u32| self.release.groups.members[member as usize];
                let marks = members.iter().map(|&member| Some(row_of(member) == COUNTERFEIT));
                Arc::new(marks.collect::<BooleanArray>())
            }
            SIGNATURE => self.signatures(groups)?,
            _ => self.identifiers(members)?,
        })
    }

    fn intervals(&self, j: usize, groups: &[u32]) -> Result<ArrayRef> {
        let attribute = &self.release.microdata.quasi[j];
        let d = self.release.microdata.quasi.len();
        let end = |which: usize| {
            let codes = groups.iter().map(|&group| self.release.groups.intervals[group as usize * d + j][which]);
            let codes = UInt32Array::from_iter_values(codes);
            gather(attribute.domain.values(), &codes, attribute.field.data_type())
        };
        Ok(Arc::new(StructArray::try_new(interval_fields(&attribute.field), vec![end(0)?, end(1)?], None)?))
    }

    fn signatures(&self, groups: &[u32]) -> Result<ArrayRef> {
        let sensitive = &self.release.microdata.sensitive;
        let mut codes = Vec::new();
        let mut lengths = Vec::with_capacity(groups.len());
        for &group in groups {
            let range = self.release.groups.range(group as usize);
            lengths.push(range.len());
            let from = codes.len();
            codes.extend_from_slice(&self.release.groups.sensitive[range]);
            codes[from..].sort_unstable();
        }
        let item = signature_item(&sensitive.field);
        let values = gather(sensitive.domain.values(), &UInt32Array::from(codes), item.data_type())?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(item, offsets, values, None)?))
    }

    fn identifiers(&self, members: &[u32]) -> Result<ArrayRef> {
        let people = &self.release.microdata.people;
        let rows = members.iter().map(|&member| match self.release.groups.members[member as usize] {
            COUNTERFEIT => None,
            row => Some(people.arrival[row as usize]),
        });
        gather(&people.identifiers, &rows.collect::<UInt32Array>(), &people.data_type)
    }
}

/// The values at these places, with buffers of their own. A view array that is only taken from shares the buffers of the
/// whole column, and some writers (Arrow IPC) write buffers as they are: all values of the input, in order of arrival.
fn gather(values: &ArrayRef, places: &UInt32Array, data_type: &DataType) -> Result<ArrayRef> {
    let taken = compact_views(take(values, places, None)?);
    if taken.data_type() == data_type {
        return Ok(taken);
    }
    Ok(cast(&taken, data_type)?)
}
