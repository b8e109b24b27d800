//! The intersection attack: whose sensitive value is left over once all releases are put side by side?

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};

use crate::error::{Error, Result};

/// A public release as a reader holds it: rows in groups, each row with intervals of quasi-identifiers and a sensitive
/// value.
#[derive(Debug)]
pub struct PublicRelease {
    /// Per row: its group, the ends of its intervals, its sensitive value.
    pub(super) rows: Vec<PublicRow>,
    converters: Vec<(DataType, RowConverter)>,
}

#[derive(Debug)]
pub(super) struct PublicRow {
    pub(super) group: OwnedRow,
    intervals: Vec<(OwnedRow, OwnedRow)>,
    pub(super) sensitive: String,
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
        let column = |batch: &RecordBatch, name: &str| -> Result<ArrayRef> {
            let column = batch.column_by_name(name);
            column.cloned().ok_or_else(|| Error::refused(format!("the release has no column {name}")))
        };
        let mut converters = Vec::new();
        let mut rows = Vec::new();
        for batch in batches {
            let groups = column(batch, group)?;
            let groups =
                RowConverter::new(vec![SortField::new(groups.data_type().clone())])?.convert_columns(&[groups])?;
            let texts = column(batch, sensitive)?;
            let texts = cast(&texts, &DataType::Utf8)?;
            let mut ends = Vec::new();
            for (j, name) in quasi.iter().enumerate() {
                let interval = column(batch, name)?;
                let interval = interval.as_struct_opt();
                let end = |end: &str| {
                    interval
                        .and_then(|interval| interval.column_by_name(end))
                        .cloned()
                        .ok_or_else(|| Error::refused(format!("column {name} of the release has no {end}")))
                };
                let (lo, hi) = (end("lo")?, end("hi")?);
                if converters.len() == j {
                    let data_type = lo.data_type().clone();
                    converters.push((data_type.clone(), RowConverter::new(vec![SortField::new(data_type)])?));
                }
                let converter = &converters[j].1;
                ends.push((converter.convert_columns(&[lo])?, converter.convert_columns(&[hi])?));
            }
            for i in 0..batch.num_rows() {
                rows.push(PublicRow {
                    group: groups.row(i).owned(),
                    intervals: ends.iter().map(|(lo, hi)| (lo.row(i).owned(), hi.row(i).owned())).collect(),
                    sensitive: texts.as_string::<i32>().value(i).to_owned(),
                });
            }
        }
        Ok(Self { rows, converters })
    }

    /// For each person, the sensitive values of all groups whose intervals cover the person's quasi-identifiers: what the
    /// person's value can be by this release alone. Compares every person with every row: for small releases.
    ///
    /// # Errors
    /// When the quasi-identifiers have other types than the release's.
    pub fn candidates(&self, people: &Cover<'_>) -> Result<Vec<BTreeSet<String>>> {
        let mut groups: BTreeMap<&OwnedRow, BTreeSet<&str>> = BTreeMap::new();
        for row in &self.rows {
            groups.entry(&row.group).or_default().insert(&row.sensitive);
        }
        let known = self
            .converters
            .iter()
            .zip(people.quasi)
            .map(|((data_type, converter), quasi)| Ok(converter.convert_columns(&[cast(quasi, data_type)?])?));
        let known = known.collect::<Result<Vec<_>>>()?;
        let people = people.quasi.first().map_or(0, |column| column.len());
        Ok((0..people)
            .map(|person| {
                let covers = |row: &&PublicRow| {
                    row.intervals.iter().zip(&known).all(|((lo, hi), values)| {
                        let value = values.row(person);
                        lo.row() <= value && value <= hi.row()
                    })
                };
                let covering = self.rows.iter().filter(covers);
                covering.flat_map(|row| &groups[&row.group]).map(|value| (*value).to_owned()).collect()
            })
            .collect())
    }
}

/// What is left of each person's candidates when the releases that had the person are put side by side. `seen[i]` holds
/// the candidates by release `i`, empty where the person was not in it.
pub fn candidates(seen: &[Vec<BTreeSet<String>>]) -> Vec<BTreeSet<String>> {
    let people = seen.iter().map(Vec::len).max().unwrap_or(0);
    (0..people)
        .map(|person| {
            let sets = seen.iter().filter_map(|release| release.get(person)).filter(|set| !set.is_empty());
            sets.cloned().reduce(|a, b| a.intersection(&b).cloned().collect()).unwrap_or_default()
        })
        .collect()
}
