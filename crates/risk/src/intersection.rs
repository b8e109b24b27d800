//! The intersection attack: whose sensitive value is left over once all releases are put side by side?

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};

use super::{AdversaryModel, BackgroundColumns, Disclosure, EvidenceBuilder, ReleaseColumns};
use crate::error::{Error, Result};

/// A public release as a reader holds it: rows in groups, each row with intervals of quasi-identifiers and a sensitive
/// value.
#[derive(Debug)]
pub struct PublicRelease {
    /// Ends of the intervals, one after the other, then the sensitive value and the group.
    columns: Option<RecordBatch>,
    quasi: Vec<FieldRef>,
}

/// Exact quasi-identifiers of people, one row each: what the reader knows of them.
#[derive(Debug)]
pub struct Cover<'a> {
    /// The quasi-identifier columns, in the order of the release's.
    pub quasi: &'a [ArrayRef],
}

impl PublicRelease {
    /// Reads a public release from its columns: quasi-identifiers as structs of `lo` and `hi`, group numbers, and sensitive
    /// values. Texts stand for sensitive values, so that any type will do.
    ///
    /// # Errors
    /// When a column is missing or a quasi-identifier is not an interval.
    pub fn try_new(batches: &[RecordBatch], quasi: &[&str], group: &str, sensitive: &str) -> Result<Self> {
        let Some(first) = batches.first() else {
            return Ok(Self { columns: None, quasi: Vec::new() });
        };
        let whole = concat_batches(&first.schema(), batches)?;
        let column = |name: &str| -> Result<ArrayRef> {
            let column = whole.column_by_name(name);
            column.cloned().ok_or_else(|| Error::refused(format!("the release has no column {name}")))
        };
        let (mut columns, mut fields, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for name in quasi {
            let interval = column(name)?;
            let interval = interval.as_struct_opt();
            for end in ["lo", "hi"] {
                let end = interval.and_then(|interval| interval.column_by_name(end)).cloned();
                let end =
                    end.ok_or_else(|| Error::refused(format!("column {name} of the release is not an interval")))?;
                fields.push(Field::new(*name, end.data_type().clone(), true));
                columns.push(end);
            }
            known.extend(fields.last().cloned().map(FieldRef::new));
        }
        let groups = column(group)?;
        let texts = cast(&column(sensitive)?, &DataType::Utf8)?;
        fields.push(Field::new("sensitive", DataType::Utf8, true));
        fields.push(Field::new("group", groups.data_type().clone(), true));
        columns.extend([texts, groups]);
        let columns = RecordBatch::try_new(Schema::new(fields).into(), columns)?;
        Ok(Self { columns: Some(columns), quasi: known })
    }

    /// Returns for each person the sensitive values of all groups that cover the person's quasi-identifiers. These are
    /// the possible values by this release alone.
    ///
    /// # Errors
    /// When the quasi-identifiers have other types than the release's.
    pub fn candidates(&self, people: &Cover<'_>) -> Result<Vec<BTreeSet<String>>> {
        let number = people.quasi.first().map_or(0, |column| column.len());
        let mut found = vec![BTreeSet::new(); number];
        let Some(columns) = &self.columns else { return Ok(found) };
        let mut known: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from_iter_values(0..number as u32))];
        for (field, column) in self.quasi.iter().zip(people.quasi) {
            known.push(cast(column, field.data_type())?);
        }
        let id = Field::new("person", DataType::UInt32, false);
        let fields: Vec<FieldRef> = std::iter::once(FieldRef::new(id.clone())).chain(self.quasi.clone()).collect();
        let known = RecordBatch::try_new(Schema::new(fields).into(), known)?;
        let sensitive = FieldRef::new(Field::new("sensitive", DataType::Utf8, true));
        let mut builder = EvidenceBuilder::try_new(id.into(), self.quasi.clone(), sensitive)?;
        builder.append_known(&known, BackgroundColumns { sensitive: false, release: false })?;
        builder.begin_release(ReleaseColumns { group: true, id: false });
        builder.append_release(columns)?;
        let disclosure = Disclosure::try_new(builder.finish()?, AdversaryModel::Cover)?;
        let values = cast(disclosure.evidence().values(), &DataType::Utf8)?;
        let values = values.as_string::<i32>();
        for findings in disclosure.all() {
            // Identifiers are numbered from 0, in their order.
            for (place, &person) in findings.people.iter().enumerate() {
                let candidates = findings.candidates.get(place).iter();
                found[person as usize] = candidates.map(|&code| values.value(code as usize).to_owned()).collect();
            }
        }
        Ok(found)
    }
}

/// Returns the candidates of each person that are left after all releases with the person. `seen[i]` holds the
/// candidates by release `i`, empty where the person was not in it.
pub fn candidates(seen: &[Vec<BTreeSet<String>>]) -> Vec<BTreeSet<String>> {
    let people = seen.iter().map(Vec::len).max().unwrap_or(0);
    (0..people)
        .map(|person| {
            let sets = seen.iter().filter_map(|release| release.get(person)).filter(|set| !set.is_empty());
            sets.cloned().reduce(|a, b| a.intersection(&b).cloned().collect()).unwrap_or_default()
        })
        .collect()
}
