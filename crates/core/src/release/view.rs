//! Rows of a release as record batches, in an order that was drawn.

mod bytes;
mod gather;
mod order;
mod values;
mod worlds;

use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};
use rand::Rng;

use self::bytes::RowBytes;
use self::gather::{gather, gather_codes};
use self::order::Leaving;
pub use self::order::RowOrder;
use super::schema::{
    COMMITMENTS, COUNTERFEIT_MARK, COUNTERFEITS, GROUP_ID, GROUP_SIZE, HI, LABEL, LO, NULLS, PARTNERS, RING, SIGNATURE,
    signature_type,
};
use super::{COUNTERFEIT, Form, Release, for_each_of};
use crate::error::{Error, Result};
use crate::microdata::{Attribute, Codes, Commitments, part, parts_of};

/// A release whose order of rows and group numbers has been drawn.
#[derive(Debug)]
pub struct Published {
    release: Release,
    schema: SchemaRef,
    /// Members in the order they leave.
    order: Vec<Leaving>,
    /// Published number of each group, 1 to the number of groups.
    numbers: Vec<u32>,
    /// Number of counterfeits in each group, if a column tells it.
    counterfeits: Vec<u32>,
    /// Offset of the groups' published numbers.
    base: i64,
    /// Columns that the sensitive value was made of, and their values by its code. Empty if it is of none.
    parts: Vec<FieldRef>,
    values_of_parts: OnceLock<Vec<ArrayRef>>,
    /// Commitments to the values of each column that travels, once some are made.
    sealing: OnceLock<Vec<Commitments>>,
    /// The values of all members, in place of the groups': in as few bytes as they need.
    values: Codes,
    /// True if the values of every group ascend. They are its histogram then.
    ascend: bool,
    /// Says how long texts are, once that was asked for.
    row_bytes: OnceLock<RowBytes>,
}

impl Published {
    /// Draws the order of the rows and the numbers of the groups. `schema` lists the wanted columns of the release's
    /// schema, by name.
    pub fn new(mut release: Release, schema: SchemaRef, order: RowOrder, rng: &mut impl Rng) -> Self {
        // Beside lists of all values of a group, rows are of people.
        let counterfeits = release.body.form() != Form::Anatomy;
        let (order, numbers) = order::draw(&release.groups, counterfeits, order, rng);
        // A field whose metadata are not ours has none.
        let sensitive = release.microdata.sensitive.as_ref();
        let parts = sensitive.and_then(|attribute| parts_of(&attribute.field).ok()).unwrap_or_default();
        let (values_of_parts, sealing, row_bytes) = Default::default();
        let groups = &release.groups;
        let ascends = |group: usize| groups.sensitive[groups.range(group)].is_sorted_by(|value, next| value < next);
        let ascend = release.body.form() == Form::Anatomy && (0..groups.len()).all(ascends);
        let counterfeits = match schema.fields().find(COUNTERFEITS).is_some() && release.body.form().has_groups() {
            true => {
                let of_group =
                    |group: usize| groups.members[groups.range(group)].iter().filter(|&&row| row == COUNTERFEIT);
                (0..groups.len()).map(|group| of_group(group).count() as u32).collect()
            }
            false => Vec::new(),
        };
        let values = Codes::narrowed(std::mem::take(&mut release.groups.sensitive));
        let base = 0;
        Self {
            schema,
            order,
            numbers,
            counterfeits,
            base,
            parts,
            values_of_parts,
            sealing,
            values,
            ascend,
            row_bytes,
            release,
        }
    }

    /// Makes the view of one cell's part of a release: numbers of groups begin with the cell's tag, which no other cell has.
    #[must_use]
    pub fn in_cell(self, tag: u32) -> Self {
        Self { base: i64::from(tag) << 32, ..self }
    }

    /// Returns the number of rows, with those of counterfeits, if these have rows.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns true if the release has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the release behind the view; its groups have no sensitive values any more.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Returns the rows `start..start + rows` of the order that was drawn.
    ///
    /// # Errors
    /// When Arrow fails to gather values; when the schema has a column that the release has not.
    pub fn batch(&self, start: usize, rows: usize) -> Result<RecordBatch> {
        let leaving = &self.order[start..start + rows];
        let members: Vec<u32> = leaving.iter().map(|leaving| leaving.member).collect();
        let groups: Vec<u32> = leaving.iter().map(|leaving| leaving.group).collect();
        let quasi = &self.release.microdata.quasi;
        let is_quasi = |field: &&FieldRef| quasi.iter().any(|attribute| attribute.field.name() == field.name());
        let is_interval = |field: &FieldRef| matches!(field.data_type(), DataType::Struct(_));
        let wanted = || self.schema.fields().iter().filter(is_quasi);
        let exact = match wanted().all(is_interval) {
            true => Vec::new(),
            false => self.exact(&members)?,
        };
        // The ends of all intervals of each row's group. Groups are looked at once for all columns.
        let mut ends = Vec::new();
        if let Some(intervals) = self.release.body.intervals().filter(|_| wanted().any(is_interval)) {
            intervals.append_to(&mut ends, groups.iter().copied());
        }
        let fields = self.schema.fields().iter();
        let partners = self.partners_in(&members)?;
        let column = |field: &FieldRef| match &partners {
            Some(partners) if field.name() == PARTNERS => Ok(Arc::new(partners.clone()) as ArrayRef),
            Some(partners) if field.name() == COMMITMENTS => Ok(Arc::new(self.commitments(&members, partners)?) as _),
            _ => self.column(field, &members, &groups, &exact, &ends),
        };
        let columns = fields.map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)?)
    }

    fn column(
        &self,
        field: &Field,
        members: &[u32],
        groups: &[u32],
        exact: &[ArrayRef],
        ends: &[u32],
    ) -> Result<ArrayRef> {
        let microdata = &self.release.microdata;
        let name = field.name();
        if let Some(sensitive) = microdata.sensitive.as_ref().filter(|attribute| attribute.field.name() == name) {
            return match field.data_type() {
                DataType::List(item) => self.histograms(sensitive, item, groups),
                data_type => gather_codes(sensitive.domain.values(), self.values_of(members), data_type),
            };
        }
        if let Some(place) = self.parts.iter().position(|part| part.name() == name) {
            return gather_codes(&self.part(place)?, self.values_of(members), field.data_type());
        }
        if let Some(j) = microdata.quasi.iter().position(|attribute| attribute.field.name() == name) {
            return match field.data_type() {
                DataType::Struct(fields) => self.intervals(j, fields, groups, ends),
                _ => exact.get(j).cloned().ok_or_else(|| Error::internal("values that were not looked up")),
            };
        }
        if let Some((within, _)) = microdata.within.as_ref().filter(|(attribute, _)| attribute.field.name() == name) {
            let codes = groups.iter().map(|&group| self.release.groups.within[group as usize]);
            return gather_codes(within.domain.values(), codes, field.data_type());
        }
        if let Some(j) = microdata.other.iter().position(|attribute| attribute.field.name() == name) {
            let attribute = &microdata.other[j];
            // Without a value it would be known for what it is, and with somebody's, one of two rows would be.
            let code = |&member: &u32| match self.release.groups.members[member as usize] {
                COUNTERFEIT => {
                    Err(Error::internal("a counterfeit beside columns that are kept; nothing was published"))
                }
                row => Ok(microdata.other_of(row)[j]),
            };
            let codes = members.iter().map(code).collect::<Result<Vec<u32>>>()?;
            return gather(attribute.domain.values(), &UInt32Array::from(codes), attribute.field.data_type());
        }
        Ok(match name.as_str() {
            GROUP_ID => {
                let numbers = groups.iter().map(|&group| self.base + i64::from(self.numbers[group as usize]));
                Arc::new(Int64Array::from_iter_values(numbers))
            }
            GROUP_SIZE | COUNTERFEITS if !tells_of_group(name, self.release.body.form()) => {
                let all = if name == GROUP_SIZE { self.len() } else { self.release.counterfeits() };
                let all =
                    i32::try_from(all).map_err(|_| Error::refused("there are more rows than a release can have"))?;
                Arc::new(Int32Array::from_value(all, members.len()))
            }
            GROUP_SIZE => {
                let sizes = groups.iter().map(|&group| self.release.groups.range(group as usize).len() as i32);
                Arc::new(Int32Array::from_iter_values(sizes))
            }
            COUNTERFEITS => {
                let counts = groups.iter().map(|&group| self.counterfeits[group as usize] as i32);
                Arc::new(Int32Array::from_iter_values(counts))
            }
            COUNTERFEIT_MARK => {
                let row_of = |member: u32| self.release.groups.members[member as usize];
                let marks = members.iter().map(|&member| Some(row_of(member) == COUNTERFEIT));
                Arc::new(marks.collect::<BooleanArray>())
            }
            SIGNATURE => self.signatures_of(groups)?,
            LABEL => self.labels_in(members, groups),
            RING => self.rings_of(groups)?,
            PARTNERS | COMMITMENTS => return Err(Error::internal("worlds of a release that makes none")),
            _ => self.identifiers(members)?,
        })
    }

    fn values_of(&self, members: &[u32]) -> impl Iterator<Item = u32> {
        members.iter().map(|&member| self.values.at(member))
    }

    /// Returns the intervals of a quasi-identifier. `ends` has those of each row's group in all of them.
    fn intervals(&self, j: usize, fields: &Fields, groups: &[u32], ends: &[u32]) -> Result<ArrayRef> {
        let quasi = &self.release.microdata.quasi;
        let attribute = &quasi[j];
        if ends.len() != groups.len() * quasi.len() * 2 {
            return Err(Error::internal("a column that the release has not"));
        }
        let of_rows = ends.chunks_exact(2 * quasi.len());
        let end = |which: usize| {
            let codes = of_rows.clone().map(|ends| ends[2 * j + which]);
            gather_codes(attribute.domain.values(), codes, attribute.field.data_type())
        };
        let columns = fields.iter().map(|child| match child.name().as_str() {
            LO => end(0),
            HI => end(1),
            NULLS => Ok(self.nulls(j, groups)),
            _ => Ok(nodes(attribute, of_rows.clone().map(|ends| [ends[2 * j], ends[2 * j + 1]]))),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
    }

    /// Returns the people without a value in each row's group.
    fn nulls(&self, j: usize, groups: &[u32]) -> ArrayRef {
        let microdata = &self.release.microdata;
        let members = &self.release.groups;
        if !microdata.quasi[j].domain.has_null() {
            return Arc::new(Int32Array::from(vec![0; groups.len()]));
        }
        let is_null = |row: u32| row != COUNTERFEIT && microdata.quasi_at(row, j) == 0;
        let of_group = |group: u32| members.members[members.range(group as usize)].iter().filter(|&&row| is_null(row));
        Arc::new(Int32Array::from_iter_values(groups.iter().map(|&group| of_group(group).count() as i32)))
    }

    /// Returns the values of a part of the sensitive attribute, by its codes.
    fn part(&self, place: usize) -> Result<ArrayRef> {
        if let Some(values) = self.values_of_parts.get() {
            return Ok(ArrayRef::clone(&values[place]));
        }
        let whole = cast(self.release.microdata.sensitive()?.domain.values(), &DataType::Utf8)?;
        let values = self.parts.iter().enumerate().map(|(place, field)| {
            let values: ArrayRef = Arc::new(part(whole.as_string::<i32>(), |_| Some(place))?);
            Ok(cast(&values, field.data_type())?)
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let wanted = ArrayRef::clone(&values[place]);
        // Another thread may have been faster; it had the same values.
        let _ = self.values_of_parts.set(values);
        Ok(wanted)
    }

    /// Returns the sensitive values of each group, each with its number of rows. `groups` has the group of each row.
    fn histograms(&self, sensitive: &Attribute, item: &FieldRef, groups: &[u32]) -> Result<ArrayRef> {
        let DataType::Struct(fields) = item.data_type() else {
            return Err(Error::internal("a histogram without counts"));
        };
        let (mut codes, mut counts, mut lengths, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &group in groups {
            let from = codes.len();
            let of_group = self.release.groups.range(group as usize);
            if self.ascend {
                self.values.append_part(of_group, &mut codes);
            } else {
                values.clear();
                self.values.append_part(of_group, &mut values);
                for_each_of(&mut values, &mut |code, count| {
                    codes.push(code);
                    counts.push(count as i32);
                });
            }
            lengths.push(codes.len() - from);
        }
        if self.ascend {
            counts.resize(codes.len(), 1);
        }
        let values = gather_codes(sensitive.domain.values(), codes.into_iter(), fields[0].data_type())?;
        let pairs = StructArray::try_new(fields.clone(), vec![values, Arc::new(Int32Array::from(counts))], None)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(FieldRef::clone(item), offsets, Arc::new(pairs), None)?))
    }

    fn signatures_of(&self, groups: &[u32]) -> Result<ArrayRef> {
        let sensitive = self.release.microdata.sensitive()?;
        let DataType::List(item) = signature_type(sensitive.field.data_type()) else {
            return Err(Error::internal("a signature that is not a list of sensitive values"));
        };
        let mut codes = Vec::new();
        let lengths: Vec<usize> = groups
            .iter()
            .map(|&group| {
                let from = codes.len();
                // As the method left them: ascending, or in the order of labels.
                self.values.append_part(self.release.groups.range(group as usize), &mut codes);
                codes.len() - from
            })
            .collect();
        let values = gather(sensitive.domain.values(), &UInt32Array::from(codes), item.data_type())?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(item, offsets, values, None)?))
    }

    /// Returns the values of some members who are people, of a column that travels; NULL if it is not in this release.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub fn travelling(&self, field: &Field, members: &[u32]) -> Result<ArrayRef> {
        let Release { microdata, groups, .. } = &self.release;
        let rows = members.iter().map(|&member| groups.members[member as usize]);
        let has_name = |attribute: &&Attribute| attribute.field.name() == field.name();
        if let Some(sensitive) = microdata.sensitive.as_ref().filter(has_name) {
            let codes = rows.map(|row| microdata.sensitive_codes.at(row));
            return gather(sensitive.domain.values(), &UInt32Array::from_iter_values(codes), field.data_type());
        }
        match microdata.other.iter().position(|attribute| has_name(&attribute)) {
            Some(j) => {
                let codes = UInt32Array::from_iter_values(rows.map(|row| microdata.other_of(row)[j]));
                gather(microdata.other[j].domain.values(), &codes, field.data_type())
            }
            None => Ok(new_null_array(field.data_type(), members.len())),
        }
    }

    /// Returns the members who are people with `wanted` rows, in the order that was drawn.
    pub fn members(&self, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let row_of = |member: u32| self.release.groups.members[member as usize];
        let order = self.order.iter().map(|leaving| leaving.member);
        order.filter(|&member| row_of(member) != COUNTERFEIT && wanted(row_of(member))).collect()
    }

    /// Returns the members who are people and whose sensitive values `before` does not have. It may say nothing of their
    /// row, or others than those of the group (in the order that the method left). They come in the order that was drawn.
    pub fn members_changed<'a>(&self, before: impl Fn(u32) -> Option<&'a [u32]>) -> Vec<u32> {
        let groups = &self.release.groups;
        let wanted = |leaving: &&Leaving| {
            let row = groups.members[leaving.member as usize];
            let now = || self.values.part(groups.range(leaving.group as usize));
            row != COUNTERFEIT && before(row).is_none_or(|before| !now().eq(before.iter().copied()))
        };
        self.order.iter().filter(wanted).map(|leaving| leaving.member).collect()
    }

    /// Returns the labels of some members: their places in their groups, from 1.
    ///
    /// This holds for methods that leave the members of a group in the order of labels.
    pub fn labels(&self, members: &[u32]) -> ArrayRef {
        self.labels_in(members, &self.groups_of(members))
    }

    fn labels_in(&self, members: &[u32], groups: &[u32]) -> ArrayRef {
        let starts = &self.release.groups.starts;
        let places = members.iter().zip(groups).map(|(member, &group)| (member - starts[group as usize] + 1) as i32);
        Arc::new(Int32Array::from_iter_values(places))
    }

    fn groups_of(&self, members: &[u32]) -> Vec<u32> {
        members.iter().map(|&member| self.release.groups.group_of(member)).collect()
    }

    /// Returns the numbers of the rings of some members.
    ///
    /// # Errors
    /// When groups are made anew for every release.
    pub fn rings(&self, members: &[u32]) -> Result<ArrayRef> {
        self.rings_of(&self.groups_of(members))
    }

    fn rings_of(&self, groups: &[u32]) -> Result<ArrayRef> {
        let rings = &self.release.groups.rings;
        if rings.len() != self.release.groups.len() {
            return Err(Error::internal("rings of a release that has none"));
        }
        Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(|&group| rings[group as usize]))))
    }

    /// Returns the sensitive values of the groups of some members, as lists.
    ///
    /// # Errors
    /// When there is no sensitive attribute, and when Arrow fails to gather values.
    pub fn signatures(&self, members: &[u32]) -> Result<ArrayRef> {
        self.signatures_of(&self.groups_of(members))
    }

    /// Returns the identifiers of some members; NULL for counterfeits.
    ///
    /// # Errors
    /// When there is no identifier, and when Arrow fails to gather values.
    pub fn identifiers(&self, members: &[u32]) -> Result<ArrayRef> {
        let people = self.release.microdata.people.as_ref();
        let people = people.ok_or_else(|| Error::internal("a column that the release has not"))?;
        let rows = members.iter().map(|&member| match self.release.groups.members[member as usize] {
            COUNTERFEIT => None,
            row => Some(people.arrival[row as usize]),
        });
        gather(&people.identifiers, &rows.collect::<UInt32Array>(), &people.data_type)
    }
}

/// Returns true if a column of releases of this form describes a row's group.
fn tells_of_group(column: &str, form: Form) -> bool {
    match column {
        GROUP_ID => true,
        // Where there are no groups, they are of all rows.
        GROUP_SIZE | COUNTERFEITS => form.has_groups(),
        _ => false,
    }
}

/// Returns the names of intervals in a hierarchy; NULLs without one.
fn nodes(attribute: &Attribute, intervals: impl ExactSizeIterator<Item = [u32; 2]>) -> ArrayRef {
    match &attribute.hierarchy {
        Some(hierarchy) => Arc::new(intervals.map(|[lo, hi]| hierarchy.label(lo, hi)).collect::<StringArray>()),
        None => new_null_array(&DataType::Utf8, intervals.len()),
    }
}
