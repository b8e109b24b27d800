//! Arrow columns to dense codes, batch by batch.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray, UInt32Array};
use datafusion::arrow::compute::{
    CastOptions, SortOptions, can_cast_types, cast, cast_with_options, sort_to_indices, take,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

use super::near_numbers::{NearNumbers, UNKNOWN};
use super::{Attribute, Codes, Domain, Hierarchies, Hierarchy, Paths, compact_views, held, held_type};
use crate::error::{Error, Result, thousands};

/// Metadata key of the order of a column's categories, as a JSON array of texts.
pub const ORDER_KEY: &str = "anonymize.order";

/// Rows whose whole numbers are looked up together.
const PIECE: usize = 1 << 10;

/// Encodes one column as it arrives. DataFusion's GROUP BY machinery finds the distinct values, so every type it can
/// group by works; codes are provisional (in order of arrival) until [`finish`](Self::finish) sorts the domain.
pub struct ColumnEncoder {
    field: FieldRef,
    distinct: Box<dyn GroupValues>,
    groups: Vec<usize>,
    codes: Codes,
    /// Codes of a batch.
    batch: Vec<u32>,
    /// Codes that need no search, while most values are among them.
    near: Option<NearNumbers>,
}

/// The order of a domain.
#[derive(Debug, Clone, Copy)]
pub enum Order<'a> {
    /// Numbers, times, texts as they compare.
    ByValue,
    /// The order of a list of texts, which must hold all values.
    Given(&'a [String]),
    /// The order of the leaves of a hierarchy: those of a node side by side, nodes by their least leaf.
    Tree(&'a Paths),
}

impl<'a> Order<'a> {
    /// Returns the order of a column's values: that of its hierarchy, else a given one.
    pub fn of(name: &str, hierarchies: Option<&'a Hierarchies>, given: Option<&'a [String]>) -> Self {
        match (hierarchies.and_then(|all| all.of(name)), given) {
            (Some(paths), _) => Self::Tree(paths),
            (None, Some(order)) => Self::Given(order),
            (None, None) => Self::ByValue,
        }
    }
}

/// Returns the order that a column's metadata gives.
pub fn given_order(field: &FieldRef) -> Result<Option<Vec<String>>> {
    let Some(text) = field.metadata().get(ORDER_KEY) else { return Ok(None) };
    let order = serde_json::from_str(text).map_err(|_| {
        Error::refused(format!(
            "the metadata {ORDER_KEY} of column {} must be a JSON array of texts, such as '[\"low\", \"high\"]'",
            field.name()
        ))
    })?;
    Ok(Some(order))
}

/// A finished column and where its provisional codes went.
#[derive(Debug)]
pub struct Encoded {
    /// The column and its domain.
    pub attribute: Attribute,
    /// Code of each row, in order of arrival.
    pub codes: Codes,
    /// `final code = ranks[provisional code]`.
    pub ranks: Vec<u32>,
}

impl ColumnEncoder {
    /// Returns an encoder for a column of this name and type.
    ///
    /// # Errors
    /// When DataFusion cannot group by the type.
    pub fn try_new(field: FieldRef) -> Result<Self> {
        let single = Schema::new(vec![Field::new(field.name(), held_type(field.data_type()), true)]);
        let distinct = new_group_values(Arc::new(single), &GroupOrdering::None)?;
        let near = NearNumbers::of_type(field.data_type());
        Ok(Self { field, distinct, groups: Vec::new(), codes: Codes::default(), batch: Vec::new(), near })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// When the column has more rows than codes can number (2^32 - 2).
    pub fn append(&mut self, array: &ArrayRef) -> Result<()> {
        if self.codes.len() + array.len() >= u32::MAX as usize {
            return Err(Error::refused(format!(
                "more than {} rows in one release are not supported",
                thousands(u32::MAX as usize - 1)
            )));
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.encode(array, &mut batch)?;
        self.codes.extend(&batch);
        self.batch = batch;
        Ok(())
    }

    /// Encodes values provisionally without appending rows: they join the domain all the same.
    ///
    /// # Errors
    /// When DataFusion's grouping fails.
    pub fn encode(&mut self, array: &ArrayRef, codes: &mut Vec<u32>) -> Result<()> {
        codes.clear();
        if let Some(near) = self.near.take() {
            self.near = self.encode_near(near, array, codes)?;
            return Ok(());
        }
        let mut groups = std::mem::take(&mut self.groups);
        self.intern(array, &mut groups)?;
        codes.extend(groups.iter().map(|&group| group as u32));
        self.groups = groups;
        Ok(())
    }

    /// Encodes whole numbers: by `near`, and by grouping where `near` does not know them yet. Returns `near`, unless most numbers have no place there.
    fn encode_near(
        &mut self,
        mut near: NearNumbers,
        array: &ArrayRef,
        codes: &mut Vec<u32>,
    ) -> Result<Option<NearNumbers>> {
        let array = self.of_its_type(array)?;
        let numbers = cast(&array, &DataType::Int64)?;
        let mut groups = std::mem::take(&mut self.groups);
        let mut without_place = 0;
        // Most numbers come among the first rows, so that the next rows need no grouping.
        for first in (0..array.len()).step_by(PIECE) {
            let rows = PIECE.min(array.len() - first);
            let (array, numbers) = (array.slice(first, rows), numbers.slice(first, rows));
            near.look_up(numbers.as_primitive(), codes);
            let found = &mut codes[first..];
            if !found.contains(&UNKNOWN) {
                continue;
            }
            let unknown = (0..).zip(&*found).filter(|(_, code)| **code == UNKNOWN).map(|(place, _)| place);
            let unknown: UInt32Array = unknown.collect::<Vec<u32>>().into();
            self.intern(&take(&array, &unknown, None)?, &mut groups)?;
            without_place += near.learn(take(&numbers, &unknown, None)?.as_primitive(), &groups);
            for (&place, &group) in unknown.values().iter().zip(&groups) {
                found[place as usize] = group as u32;
            }
        }
        self.groups = groups;
        Ok((without_place <= array.len() / 2).then_some(near))
    }

    /// Appends rows with the values of rows that are there, by their places.
    pub fn repeat(&mut self, rows: &[u32]) {
        let codes: Vec<u32> = rows.iter().map(|&row| self.codes.at(row)).collect();
        self.codes.extend(&codes);
    }

    /// Returns the column.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Puts the provisional codes of values in place of `groups`, as DataFusion's grouping returns them: see [`encode`](Self::encode).
    ///
    /// # Errors
    /// When DataFusion's grouping fails.
    pub fn intern(&mut self, array: &ArrayRef, groups: &mut Vec<usize>) -> Result<()> {
        let array = self.of_its_type(array)?;
        Ok(self.distinct.intern(&[held(&array)?], groups)?)
    }

    /// Casts values to the type that was planned. The engine widens the columns of a UNION after that.
    fn of_its_type(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let data_type = self.field.data_type();
        if array.data_type() == data_type {
            return Ok(ArrayRef::clone(array));
        }
        let safe = CastOptions { safe: true, ..CastOptions::default() };
        let cast = cast_with_options(array, data_type, &safe)?;
        match cast.null_count() == array.null_count() {
            true => Ok(cast),
            false => Err(Error::refused(format!(
                "column {} has values that are not of its type {data_type}; cast it in the query to a type that holds them all",
                self.field.name()
            ))),
        }
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        let near = self.near.as_ref().map_or(0, NearNumbers::size);
        self.distinct.size() + self.codes.size() + near
    }

    /// Returns the number of different values so far.
    pub fn values(&self) -> usize {
        self.distinct.len()
    }

    /// Returns the bytes that a code of the values so far needs.
    pub(crate) fn code_bytes(&self) -> usize {
        Codes::bytes_of(self.distinct.len())
    }

    /// Returns the different values, by their provisional codes.
    ///
    /// # Errors
    /// When DataFusion cannot return them.
    pub fn into_values(mut self) -> Result<ArrayRef> {
        match self.distinct.is_empty() {
            true => Ok(datafusion::arrow::array::new_empty_array(&held_type(self.field.data_type()))),
            false => Ok(self.distinct.emit(EmitTo::All)?.swap_remove(0)),
        }
    }

    /// Sorts the domain and makes the codes final. With a hierarchy, the domain is all of its leaves.
    ///
    /// # Errors
    /// When the order lacks values of the column; when a leaf is not of the column's type or occurs twice.
    pub fn finish(mut self, order: Order<'_>) -> Result<Encoded> {
        let leaves = match order {
            Order::Tree(paths) => self.intern_leaves(paths)?,
            _ => Vec::new(),
        };
        let (field, mut codes) = (FieldRef::clone(&self.field), std::mem::take(&mut self.codes));
        let values = self.into_values()?;
        let nulls_first = SortOptions { descending: false, nulls_first: true };
        let mut hierarchy = None;
        let indices = match order {
            Order::ByValue => sort_to_indices(&values, Some(nulls_first), None)?,
            Order::Given(order) => indices_as_given(&values, order, field.name())?,
            Order::Tree(paths) => {
                let by_value = sort_to_indices(&values, Some(nulls_first), None)?;
                let (indices, tree) = indices_in_tree(&values, &by_value, paths, &leaves, field.name())?;
                hierarchy = Some(Arc::new(tree));
                indices
            }
        };
        let mut ranks = vec![0; values.len()];
        for (rank, &provisional) in indices.values().iter().enumerate() {
            ranks[provisional as usize] = rank as u32;
        }
        codes.rank(&ranks);
        let values = compact_views(take(&values, &indices, None)?);
        let domain = match order {
            Order::ByValue => Domain::new(values)?,
            _ => Domain::in_order(values),
        };
        Ok(Encoded { attribute: Attribute { field, domain, hierarchy }, codes, ranks })
    }

    /// Encodes the leaves of a hierarchy provisionally.
    fn intern_leaves(&mut self, paths: &Paths) -> Result<Vec<usize>> {
        let field = FieldRef::clone(&self.field);
        let (name, data_type) = (field.name(), field.data_type());
        let refuse = |what: String| Error::refused(format!("the hierarchy of {name} {what}"));
        if !can_cast_types(&DataType::Utf8, data_type) {
            return Err(refuse(format!("cannot be used: texts cannot be read as {data_type}")));
        }
        let texts: ArrayRef = Arc::new(paths.leaves.iter().map(Some).collect::<StringArray>());
        let safe = CastOptions { safe: true, ..CastOptions::default() };
        let leaves = cast_with_options(&texts, data_type, &safe)?;
        let bad = leaves.null_count() + rounded(&texts, &leaves)?;
        if bad > 0 {
            let (bad, all) = (thousands(bad), thousands(leaves.len()));
            return Err(refuse(format!("has {bad} of {all} leaves that are not of the column's type {data_type}")));
        }
        let mut codes = Vec::new();
        self.intern(&leaves, &mut codes)?;
        let distinct = codes.iter().collect::<rustc_hash::FxHashSet<_>>().len();
        if distinct < codes.len() {
            return Err(refuse(format!(
                "has {} leaves twice; list each value once",
                thousands(codes.len() - distinct)
            )));
        }
        Ok(codes)
    }
}

/// Counts the decimals that lost digits when texts were read as them.
fn rounded(texts: &ArrayRef, values: &ArrayRef) -> Result<usize> {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Float64Type;

    if !values.data_type().is_decimal() {
        return Ok(0);
    }
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let texts = cast_with_options(texts, &DataType::Float64, &safe)?;
    let values = cast_with_options(values, &DataType::Float64, &safe)?;
    let pairs = texts.as_primitive::<Float64Type>().iter().zip(values.as_primitive::<Float64Type>());
    let differ = |(text, value): &(Option<f64>, Option<f64>)| match (text, value) {
        (Some(text), Some(value)) => (text - value).abs() > 1e-9 * text.abs().max(1e-9),
        _ => false,
    };
    Ok(pairs.filter(differ).count())
}

/// Returns the positions of the values in the order of a hierarchy's leaves, NULL first. Returns also the hierarchy over their ranks.
fn indices_in_tree(
    values: &ArrayRef,
    by_value: &UInt32Array,
    paths: &Paths,
    leaves: &[usize],
    column: &str,
) -> Result<(UInt32Array, Hierarchy)> {
    const NONE: u32 = u32::MAX;
    let mut leaf_of = vec![NONE; values.len()];
    for (leaf, &value) in leaves.iter().enumerate() {
        leaf_of[value] = leaf as u32;
    }
    let missing = (0..values.len()).filter(|&i| values.is_valid(i) && leaf_of[i] == NONE).count();
    if missing > 0 {
        return Err(Error::refused(format!(
            "the hierarchy of {column} has no leaf for {} of the column's values; list them all",
            thousands(missing)
        )));
    }
    // Each node comes where its least leaf does: with all levels as keys, from the root down, nodes stay in one piece.
    let in_order = || by_value.values().iter().map(|&value| leaf_of[value as usize]).filter(|&leaf| leaf != NONE);
    let mut keys: Vec<Vec<u32>> = vec![Vec::with_capacity(paths.levels.len() + 1); leaves.len()];
    for level in paths.levels.iter().rev() {
        let mut first = rustc_hash::FxHashMap::default();
        for (rank, leaf) in (0..).zip(in_order()) {
            let key = *first.entry(level[leaf as usize].as_str()).or_insert(rank);
            keys[leaf as usize].push(key);
        }
    }
    for (rank, leaf) in (0..).zip(in_order()) {
        keys[leaf as usize].push(rank);
    }
    let mut order: Vec<u32> = in_order().collect();
    order.sort_by(|&a, &b| keys[a as usize].cmp(&keys[b as usize]));
    let label = |level: &Vec<String>| order.iter().map(|&leaf| level[leaf as usize].clone()).collect();
    let labels = paths.levels.iter().map(label).collect();
    let names = order.iter().map(|&leaf| paths.leaves[leaf as usize].clone()).collect();
    let null = (0..values.len()).find(|&i| values.is_null(i));
    let indices = null.into_iter().chain(order.iter().map(|&leaf| leaves[leaf as usize]));
    let indices = indices.map(|i| i as u32).collect::<Vec<_>>().into();
    Ok((indices, Hierarchy::new(names, labels, null.is_some())))
}

/// Returns the positions of the values in a given order of their texts, NULL first.
fn indices_as_given(values: &ArrayRef, order: &[String], column: &str) -> Result<UInt32Array> {
    let texts = cast(values, &DataType::Utf8View)?;
    let texts = texts.as_string_view();
    let places: rustc_hash::FxHashMap<&str, usize> =
        order.iter().enumerate().map(|(place, value)| (value.as_str(), place + 1)).collect();
    let place = |i: usize| if texts.is_null(i) { Some(0) } else { places.get(texts.value(i)).copied() };
    let missing = (0..values.len()).filter(|&i| place(i).is_none()).count();
    if missing > 0 {
        return Err(Error::refused(format!(
            "the order given for column {column} lacks {missing} of the column's {} distinct values; list them all",
            values.len()
        )));
    }
    let mut indices: Vec<u32> = (0..values.len() as u32).collect();
    indices.sort_by_key(|&i| place(i as usize));
    Ok(indices.into())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int32Array, Int64Array, StringViewArray,
        UInt32Array, UInt64Array,
    };

    use super::*;

    fn encode(array: &ArrayRef, order: Order<'_>) -> Result<Encoded> {
        let field = Arc::new(Field::new("x", array.data_type().clone(), true));
        let mut encoder = ColumnEncoder::try_new(field)?;
        // In two batches, so that provisional codes and ranks differ.
        encoder.append(&array.slice(0, array.len() / 2))?;
        encoder.append(&array.slice(array.len() / 2, array.len() - array.len() / 2))?;
        encoder.finish(order)
    }

    #[test]
    fn codes_are_ranks_and_null_is_first() {
        let encoded =
            encode(&(Arc::new(Int32Array::from(vec![Some(7), None, Some(3), Some(7)])) as ArrayRef), Order::ByValue)
                .unwrap();
        assert_eq!(encoded.codes.iter().collect::<Vec<_>>(), [2, 0, 1, 2]);
        assert!(encoded.attribute.domain.has_null());
    }

    #[test]
    fn whole_numbers_near_and_far_with_and_without_null() {
        let near: Vec<Option<i64>> = (0..2000).map(|i| (i % 7 != 0).then_some(i % 90)).collect();
        let far: Vec<Option<i64>> = (0..2000).map(|i| Some((i * 7_919_333_777) % 1_000_003 * 9_000_000_000)).collect();
        let ends = vec![Some(i64::MIN), None, Some(i64::MAX), Some(0), Some(-1), None, Some(i64::MIN), Some(20_000)];
        let mixed: Vec<Option<i64>> =
            near.iter().zip(&far).flat_map(|(near, far)| [*near, *far]).chain(ends.clone()).collect();
        for numbers in [near, far, ends, mixed, vec![None; 10], vec![]] {
            let mut domain = numbers.clone();
            domain.sort_unstable();
            domain.dedup();
            let expected: Vec<u32> =
                numbers.iter().map(|number| domain.binary_search(number).unwrap() as u32).collect();
            let encoded = encode(&(Arc::new(Int64Array::from(numbers)) as ArrayRef), Order::ByValue).unwrap();
            assert_eq!(encoded.codes.iter().collect::<Vec<_>>(), expected);
            assert_eq!(encoded.attribute.domain.len(), domain.len());
        }
    }

    #[test]
    fn every_ordinary_type_there_and_back() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringViewArray::from(vec!["b", "a", "b", "c"])),
            Arc::new(BooleanArray::from(vec![true, false, true, true])),
            Arc::new(Float64Array::from(vec![1.5, -2.0, 1.5, f64::INFINITY])),
            Arc::new(Int8Array::from(vec![-128, 127, -128, 0])),
            Arc::new(UInt32Array::from(vec![0, u32::MAX, 5, u32::MAX])),
            Arc::new(UInt64Array::from(vec![0, u64::MAX, 5, u64::MAX])),
            Arc::new(Date32Array::from(vec![20_000, -400, 20_000, 0])),
            Arc::new(Decimal128Array::from(vec![5, -1, 5, 9]).with_precision_and_scale(20, 0).unwrap()),
        ];
        for column in columns {
            let encoded = encode(&column, Order::ByValue).unwrap();
            let back =
                take(encoded.attribute.domain.values(), &encoded.codes.iter().collect::<UInt32Array>(), None).unwrap();
            assert_eq!(&back, &column);
        }
    }

    #[test]
    fn a_given_order_counts_and_must_be_complete() {
        let column: ArrayRef = Arc::new(StringViewArray::from(vec!["low", "high", "mid", "low"]));
        let order = ["low", "mid", "high"].map(str::to_owned);
        assert_eq!(encode(&column, Order::Given(&order)).unwrap().codes.iter().collect::<Vec<_>>(), [0, 2, 1, 0]);
        let error = encode(&column, Order::Given(&order[..2])).unwrap_err().to_string();
        assert!(error.contains("lacks 1 of"), "{error}");
        assert!(!error.contains("high"), "{error}");
    }
}
