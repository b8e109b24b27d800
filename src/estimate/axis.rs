//! The values of a column in their order, where they have to be listed.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::{SortOptions, cast, concat, sort};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::ColumnarValue;

use super::columns::OriginalColumn;
use super::listing::Listing;
use super::metadata::ReleaseMetadata;
use super::scale::{Scale, all_values};
use crate::microdata::{ColumnEncoder, Hierarchies, Order};
use crate::scalars::Kept;

/// A column of the original table, as the functions of an estimate know it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    pub column: String,
    pub data_type: DataType,
    /// Description of its values by the release.
    metadata: ReleaseMetadata,
    /// Categories that a query names, in order; ranges may have them without an end there.
    asked: Vec<String>,
    /// A list, and the argument that it was made of.
    kept: Kept<(ArrayRef, Option<ArrayRef>)>,
    listing: Kept<Arc<Listing>>,
}

impl Axis {
    /// Makes the axis of values that the release names.
    pub(crate) fn new(column: &OriginalColumn) -> Self {
        Self::with(column, Vec::new())
    }

    /// Makes the axis of a query that names texts, which may end no range.
    pub(crate) fn asked<'a>(column: &OriginalColumn, texts: impl Iterator<Item = &'a String>) -> Self {
        let is_listed = column.scale() == Scale::Listed;
        Self::with(column, texts.filter(|_| is_listed).cloned().collect())
    }

    fn with(column: &OriginalColumn, asked: Vec<String>) -> Self {
        let OriginalColumn { field, metadata, .. } = column;
        Self {
            column: field.name().clone(),
            data_type: field.data_type().clone(),
            metadata: metadata.clone(),
            asked,
            kept: Kept::default(),
            listing: Kept::default(),
        }
    }

    /// Makes an axis for tests: a column `x` of this type, of which the release says nothing more.
    #[cfg(test)]
    pub(super) fn of_type(data_type: DataType) -> Self {
        let form = super::columns::Form::Interval { nodes: false, nulls: false };
        let metadata = ReleaseMetadata::known(super::metadata::ValueMetadata::default());
        Self::new(&OriginalColumn { field: Arc::new(Field::new("x", data_type, true)), form, metadata })
    }

    /// Returns the values in their order, without NULL, if they have to be listed: by the rows of a hierarchy, by a given order, by
    /// value. `ends` is a list of the column's distinct values as far as they are known.
    /// Fails when the hierarchy is malformed.
    pub(crate) fn list(&self, ends: &ColumnarValue, hierarchies: &ColumnarValue) -> Result<Option<ArrayRef>> {
        if let Some(rows) = only_list(hierarchies)?
            && let Some(leaves) = self.keeping(&rows, || self.leaves(&rows))?
        {
            return Ok(Some(leaves));
        }
        if let Some(order) = self.metadata.get()?.orders.get(&self.column) {
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values(order));
            return self.keeping_first(|| Ok(cast(&texts, &self.data_type)?));
        }
        if let Some(all) = all_values(&self.data_type) {
            return self.keeping_first(|| Ok(all));
        }
        if Scale::of(&self.data_type) != Scale::Listed {
            return Ok(None);
        }
        let Some(ends) = only_list(ends)? else { return internal_err!("a category without the order of its column") };
        self.keeping(&ends, || {
            let mut values = cast(&ends, &self.data_type)?;
            if let Some(more) = self.unknown(&values)? {
                values = concat(&[&values, &more])?;
            }
            let sorted = sort(&values, Some(SortOptions { descending: false, nulls_first: true }))?;
            let nulls = sorted.null_count();
            Ok(Some(sorted.slice(nulls, sorted.len() - nulls)))
        })
    }

    /// Returns the same, with where each value stands.
    /// Fails as [`list`](Self::list) does.
    pub(crate) fn listing(&self, ends: &ColumnarValue, hierarchies: &ColumnarValue) -> Result<Option<Arc<Listing>>> {
        let Some(order) = self.list(ends, hierarchies)? else { return Ok(None) };
        self.listing.get_or_make(|listing| listing.is_of(&order), || Listing::new(&order).map(Arc::new)).map(Some)
    }

    /// Returns the values that are asked for and not among these.
    fn unknown(&self, values: &ArrayRef) -> Result<Option<ArrayRef>> {
        if self.asked.is_empty() || !self.data_type.is_string() {
            return Ok(None);
        }
        let texts = cast(values, &DataType::Utf8View)?;
        let known: HashSet<&str> = texts.as_string_view().iter().flatten().collect();
        let unknown = self.asked.iter().filter(|text| !known.contains(text.as_str()));
        let unknown: ArrayRef = Arc::new(StringArray::from_iter_values(unknown));
        Ok((!unknown.is_empty()).then(|| cast(&unknown, &self.data_type)).transpose()?)
    }

    /// Returns the values of a hierarchy from left to right; `None` if it has none for this column.
    fn leaves(&self, rows: &ArrayRef) -> Result<Option<ArrayRef>> {
        let mut hierarchies = Hierarchies::new(std::iter::once(&self.column));
        let rows = rows.as_struct();
        let columns =
            rows.columns().iter().map(|column| cast(column, &DataType::Utf8View)).collect::<Result<Vec<_>, _>>();
        let names = rows.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8View, true));
        let schema = datafusion::arrow::datatypes::Schema::new(names.collect::<Vec<_>>());
        let named = |error: crate::error::Error| error.in_function("estimated");
        hierarchies.append(&RecordBatch::try_new(Arc::new(schema), columns?)?).map_err(named)?;
        // Other attributes may have hierarchies, and this one none.
        let hierarchies = hierarchies.finish().unwrap_or_default();
        if let Some(trees) = &self.metadata.get()?.trees {
            hierarchies.check_made_with(trees, [&self.column]).map_err(named)?;
        }
        let Some(paths) = hierarchies.of(&self.column) else { return Ok(None) };
        let field: FieldRef = Arc::new(Field::new(&self.column, self.data_type.clone(), true));
        let encoder = ColumnEncoder::try_new(field).map_err(named)?;
        let encoded = encoder.finish(Order::Tree(paths)).map_err(named)?;
        Ok(Some(cast(encoded.attribute.domain.values(), &self.data_type)?))
    }

    fn keeping(&self, of: &ArrayRef, make: impl FnOnce() -> Result<Option<ArrayRef>>) -> Result<Option<ArrayRef>> {
        let kept =
            self.kept.get_or_make(|(last, _)| ArrayRef::ptr_eq(last, of), || Ok((ArrayRef::clone(of), make()?)))?;
        Ok(kept.1)
    }

    /// Keeps the first list, which depends on no argument.
    fn keeping_first(&self, make: impl FnOnce() -> Result<ArrayRef>) -> Result<Option<ArrayRef>> {
        let made = || make().map(|list| (ArrayRef::clone(&list), Some(list)));
        Ok(self.kept.get_or_make(|(_, list)| list.is_some(), made)?.1)
    }
}

/// Implements what keeps the elimination of common subexpressions away from a scalar function's lists: its first argument that is one value for
/// all rows, and those behind it. To take them for columns would repeat them for every row of a batch, and lists have as many items as a column
/// has different values. It numbers arguments in this order, and in theirs, which must be the same.
macro_rules! with_lists_apart {
    () => {
        fn short_circuits(&self) -> bool {
            true
        }

        fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
            let is_list = |argument: &Expr| matches!(argument, Expr::ScalarSubquery(_));
            let (before, after) = args.split_at(args.iter().position(is_list).unwrap_or(args.len()));
            Some((before.iter().collect(), after.iter().collect()))
        }
    };
}
pub(super) use with_lists_apart;

/// Returns the items of an argument that is one list for all rows; `None` for NULL.
pub(crate) fn only_list(value: &ColumnarValue) -> Result<Option<ArrayRef>> {
    let list = match value {
        ColumnarValue::Scalar(ScalarValue::List(list)) => Arc::clone(list),
        ColumnarValue::Array(array) if !array.is_empty() && matches!(array.data_type(), DataType::List(_)) => {
            Arc::new(array.as_list::<i32>().slice(0, 1))
        }
        _ => return Ok(None),
    };
    if list.is_null(0) {
        return Ok(None);
    }
    // The whole child, where it can be, for it is the same array every time.
    let whole = list.len() == 1 && list.value_length(0) as usize == list.values().len();
    Ok(Some(if whole { ArrayRef::clone(list.values()) } else { list.value(0) }))
}
