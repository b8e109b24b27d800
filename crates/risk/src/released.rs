//! A released table, row after row, for checks of what it promises.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};

use crate::error::{Error, Result};
use crate::microdata::{ColumnEncoder, Order, given_order};
use crate::release::{COUNTERFEITS, GROUP_ID, GROUP_SIZE, HI, LO, NODE};

/// Names of a release's columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableColumns {
    /// Quasi-identifiers.
    pub quasi: Vec<String>,
    /// The sensitive attribute.
    pub sensitive: Option<String>,
    /// The column that the release was made within.
    pub within: Option<String>,
}

/// A released table in codes.
#[derive(Debug)]
pub struct ReleasedTable {
    /// True if the groups are not published.
    pub(super) hidden: bool,
    /// Group of each row, numbered as they come.
    pub(super) group: Vec<u32>,
    pub(super) number: Vec<i64>,
    pub(super) size: Vec<i64>,
    /// Published number of counterfeits of each row's group.
    pub(super) counterfeits: Vec<i64>,
    /// Numbers of rows and counterfeits of the release, said by rows without groups.
    pub(super) said: Vec<[i64; 2]>,
    pub(super) quasi: Vec<Quasi>,
    /// Sensitive value of each row; empty where they are published as lists, or not at all.
    pub(super) sensitive: Vec<u32>,
    /// Sensitive values of each group, ascending, with their numbers of rows.
    pub(super) histograms: Vec<Vec<(u32, u64)>>,
    /// The sensitive values by code.
    pub(super) values: Option<ArrayRef>,
    /// True if rows have the list of their group's values: counterfeits have no rows.
    pub(super) listed: bool,
    /// Groups with rows that differ in their lists of values.
    pub(super) torn_lists: usize,
    /// Code of each row in the column within, 0 without one.
    pub(super) within: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Quasi {
    pub name: String,
    /// Ends of each row.
    pub ends: Vec<[u32; 2]>,
    /// True if it is published as intervals.
    pub intervals: bool,
    /// True if the codes have the order of the intervals: not with hierarchies, whose order is not published.
    pub ordered: bool,
}

impl ReleasedTable {
    /// Reads the rows of a release.
    ///
    /// # Errors
    /// When a column is missing or of another kind.
    pub fn try_new(rows: &RecordBatch, columns: &TableColumns) -> Result<Self> {
        let column = |name: &str| -> Result<(FieldRef, ArrayRef)> {
            let place = rows.schema().index_of(name);
            let place = place.map_err(|_| Error::refused(format!("the release has no column {name}")))?;
            Ok((FieldRef::clone(&rows.schema().fields()[place]), ArrayRef::clone(rows.column(place))))
        };
        let integers = |name: &str| -> Result<Vec<i64>> {
            let numbers = cast(&column(name)?.1, &DataType::Int64)?;
            Ok(numbers.as_primitive::<Int64Type>().iter().map(Option::unwrap_or_default).collect())
        };
        // Where groups are hidden, every row is one of its own.
        let hidden = rows.schema().index_of(GROUP_ID).is_err();
        let n = rows.num_rows() as u32;
        let group = if hidden { (0..n).collect() } else { as_they_come(&column(GROUP_ID)?.1)? };
        let numbers = |name: &str, instead: i64| match hidden {
            true => Ok(vec![instead; rows.num_rows()]),
            false => integers(name),
        };
        let said = match hidden && [GROUP_SIZE, COUNTERFEITS].iter().all(|name| column(name).is_ok()) {
            true => {
                integers(GROUP_SIZE)?.into_iter().zip(integers(COUNTERFEITS)?).map(|(size, of)| [size, of]).collect()
            }
            false => Vec::new(),
        };
        let quasi = columns.quasi.iter().map(|name| column(name).and_then(|(field, array)| Quasi::new(&field, &array)));
        let mut table = Self {
            hidden,
            number: numbers(GROUP_ID, 0)?,
            size: numbers(GROUP_SIZE, 1)?,
            counterfeits: numbers(COUNTERFEITS, 0)?,
            said,
            quasi: quasi.collect::<Result<_>>()?,
            sensitive: Vec::new(),
            histograms: vec![Vec::new(); group.iter().max().map_or(0, |most| *most as usize + 1)],
            values: None,
            listed: false,
            torn_lists: 0,
            within: match &columns.within {
                Some(name) => as_they_come(&column(name)?.1)?,
                None => vec![0; group.len()],
            },
            group,
        };
        if let Some(name) = &columns.sensitive {
            let (field, array) = column(name)?;
            table.read_values(&field, &array)?;
        }
        Ok(table)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.group.len()
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.histograms.len()
    }

    /// Returns the rows of each group. Where counterfeits have none, those that the group says it has are added.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let mut sizes = vec![0_u64; self.groups()];
        self.group.iter().for_each(|&group| sizes[group as usize] += 1);
        if self.listed {
            let said = self.of_groups(&self.counterfeits);
            sizes.iter_mut().zip(said).for_each(|(size, said)| *size = size.saturating_add_signed(said));
        }
        sizes
    }

    pub(super) fn largest(&self) -> u64 {
        self.sizes().into_iter().max().unwrap_or_default()
    }

    /// Returns the value of the first row of each group.
    pub(super) fn of_groups<T: Copy + Default>(&self, column: &[T]) -> Vec<T> {
        let mut first = vec![None; self.groups()];
        self.group.iter().zip(column).for_each(|(&group, &value)| {
            first[group as usize].get_or_insert(value);
        });
        first.into_iter().map(Option::unwrap_or_default).collect()
    }

    fn read_values(&mut self, field: &FieldRef, array: &ArrayRef) -> Result<()> {
        let Some(lists) = array.as_list_opt::<i32>() else {
            let (codes, values) = encode(field, &[array])?;
            for (&group, &code) in self.group.iter().zip(&codes[0]) {
                self.histograms[group as usize].push((code, 1));
            }
            for histogram in &mut self.histograms {
                histogram.sort_unstable();
                *histogram = histogram.chunk_by(|a, b| a.0 == b.0).map(|run| (run[0].0, run.len() as u64)).collect();
            }
            self.sensitive = codes.into_iter().next().unwrap_or_default();
            self.values = Some(values);
            return Ok(());
        };
        self.listed = true;
        let pairs = lists.values().as_struct_opt().filter(|pairs| pairs.num_columns() == 2);
        let pairs =
            pairs.ok_or_else(|| Error::refused("the sensitive column is a list of something else than counts"))?;
        let field = Field::new(field.name(), pairs.column(0).data_type().clone(), true);
        let (codes, values) = encode(&field.into(), &[pairs.column(0)])?;
        let counts = cast(pairs.column(1), &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let mut torn = vec![false; self.groups()];
        for (&group, ends) in self.group.iter().zip(lists.value_offsets().windows(2)) {
            let entries = ends[0] as usize..ends[1] as usize;
            let mut histogram: Vec<(u32, u64)> =
                entries.map(|place| (codes[0][place], counts.value(place).max(0) as u64)).collect();
            histogram.sort_unstable();
            let known = &mut self.histograms[group as usize];
            if known.is_empty() {
                *known = histogram;
            } else if *known != histogram {
                torn[group as usize] = true;
            }
        }
        self.torn_lists = torn.into_iter().filter(|&torn| torn).count();
        self.values = Some(values);
        Ok(())
    }
}

impl Quasi {
    fn new(field: &FieldRef, array: &ArrayRef) -> Result<Self> {
        let name = field.name().clone();
        let Some(interval) = array.as_struct_opt() else {
            let (codes, _) = encode(field, &[array])?;
            let ends = codes[0].iter().map(|&code| [code, code]).collect();
            return Ok(Self { name, ends, intervals: false, ordered: true });
        };
        let (Some(lo), Some(hi)) = (interval.column_by_name(LO), interval.column_by_name(HI)) else {
            return Err(Error::refused(format!("column {name} of the release is not an interval")));
        };
        let ordered = interval.column_by_name(NODE).is_none();
        let end = Field::new(&name, lo.data_type().clone(), true).with_metadata(field.metadata().clone());
        let (codes, _) = encode(&end.into(), &[lo, hi])?;
        let ends = codes[0].iter().zip(&codes[1]).map(|(&lo, &hi)| [lo, hi]).collect();
        Ok(Self { name, ends, intervals: true, ordered })
    }
}

/// Returns the codes of columns over one domain, in its order, and the domain's values.
fn encode(field: &FieldRef, columns: &[&ArrayRef]) -> Result<(Vec<Vec<u32>>, ArrayRef)> {
    let given = given_order(field)?;
    let field = Field::new(field.name(), columns[0].data_type().clone(), true);
    let mut encoder = ColumnEncoder::try_new(field.into())?;
    let mut codes = vec![Vec::new(); columns.len()];
    for (codes, column) in codes.iter_mut().zip(columns) {
        encoder.intern(column, codes)?;
    }
    let encoded = encoder.finish(given.as_deref().map_or(Order::ByValue, Order::Given))?;
    let ranked = codes.into_iter().map(|codes| codes.into_iter().map(|code| encoded.ranks[code]).collect());
    Ok((ranked.collect(), ArrayRef::clone(encoded.attribute.domain.values())))
}

/// Numbers the values in the order in which they come first.
fn as_they_come(array: &ArrayRef) -> Result<Vec<u32>> {
    let mut encoder = ColumnEncoder::try_new(Field::new("column", array.data_type().clone(), true).into())?;
    let mut codes = Vec::new();
    encoder.intern(array, &mut codes)?;
    Ok(codes.into_iter().map(|code| code as u32).collect())
}
