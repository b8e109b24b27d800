//! A table in memory.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Float64Type, Int64Type, Schema, SchemaRef, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::capsule;
use crate::errors::{raised, refused};

/// Metadata key of the order of a column's texts: a JSON array of them.
const ORDER: &str = "anonymize.order";
/// Key under which polars keeps the values of an enumeration.
const POLARS_ENUM: &str = "_PL_ENUM_VALUES";

/// Record batches of one schema.
#[pyclass(frozen, skip_from_py_object, module = "datafusion_anonymize._native")]
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Table {
    /// Takes the result of a query. Texts become plain ones, for not everybody knows Arrow's views.
    pub(crate) fn computed(schema: &Schema, batches: Vec<RecordBatch>) -> Result<Self> {
        let schema = Arc::new(Schema::new(schema.fields().iter().map(plain_field).collect::<Vec<_>>()));
        let batches = batches.iter().map(|batch| with_schema(batch, &schema)).collect::<Result<_>>()?;
        Ok(Self { schema, batches })
    }

    /// Takes a table of another library. Categories that have an order keep it.
    pub(crate) fn imported(schema: SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Self> {
        let field = |(place, field): (usize, &FieldRef)| match order_of(field, place, &batches) {
            Some(order) => {
                let mut metadata = field.metadata().clone();
                metadata.entry(ORDER.to_owned()).or_insert(order);
                Arc::new(field.as_ref().clone().with_metadata(metadata))
            }
            None => Arc::clone(field),
        };
        // What other libraries say of the whole table is not for us.
        let schema = Arc::new(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()));
        let again = |batch: RecordBatch| {
            let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::clone(&schema), batch.columns().to_vec(), &rows)
        };
        let batches = batches.into_iter().map(again).collect::<Result<_, _>>();
        let batches = batches.map_err(|_| refused("the batches of the table differ in their columns"))?;
        Ok(Self { schema, batches })
    }
}

#[pymethods]
impl Table {
    /// Reads any table with `__arrow_c_stream__` or `__arrow_c_array__`.
    #[staticmethod]
    fn read(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        capsule::read(data)
    }

    /// Returns the table as an Arrow stream. A schema that is asked for is not: casts are the consumer's.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        capsule::write(py, Arc::clone(&self.schema), self.batches.clone())
    }

    /// Returns the number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the name and type of each column, and the fields of structs.
    fn columns(&self) -> Vec<(String, String, Vec<String>)> {
        let fields = |data_type: &DataType| match data_type {
            DataType::Struct(fields) => fields.iter().map(|field| field.name().clone()).collect(),
            _ => Vec::new(),
        };
        let column =
            |field: &FieldRef| (field.name().clone(), field.data_type().to_string(), fields(field.data_type()));
        self.schema.fields().iter().map(column).collect()
    }

    /// Returns the metadata of a column.
    fn metadata(&self, column: &str) -> PyResult<HashMap<String, String>> {
        match self.schema.field_with_name(column) {
            Ok(field) => Ok(field.metadata().clone()),
            Err(_) => Err(refused(&format!("there is no column {column}"))),
        }
    }

    /// Returns some of the columns.
    fn select(&self, names: Vec<String>) -> PyResult<Self> {
        let places = names.iter().map(|name| self.schema.index_of(name)).collect::<Result<Vec<_>, _>>();
        let places = places.map_err(|_| refused("there is no such column"))?;
        let project = |batch: &RecordBatch| batch.project(&places);
        let batches =
            self.batches.iter().map(project).collect::<Result<_, _>>().map_err(|error| raised(error.into()))?;
        let schema = self.schema.project(&places).map_err(|error| raised(error.into()))?;
        Ok(Self { schema: Arc::new(schema), batches })
    }

    /// Returns the first rows.
    fn head(&self, rows: usize) -> Self {
        let mut left = rows;
        let mut batches = Vec::new();
        for batch in &self.batches {
            let taken = left.min(batch.num_rows());
            if taken > 0 {
                batches.push(batch.slice(0, taken));
            }
            left -= taken;
        }
        Self { schema: Arc::clone(&self.schema), batches }
    }

    /// Returns the rows as texts, for showing.
    fn texts(&self) -> PyResult<Vec<Vec<String>>> {
        let options = FormatOptions::default().with_null("NULL").with_display_error(false);
        let mut rows = Vec::new();
        for batch in &self.batches {
            let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| raised(error.into()))?;
            rows.extend(
                (0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()),
            );
        }
        Ok(rows)
    }

    /// Returns the rows as dictionaries. What is no number, text, truth value, list or struct is a text.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let values = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    values.set_item(field.name(), value(py, column, row)?)?;
                }
                rows.append(values)?;
            }
        }
        Ok(rows)
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }
}

fn value<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) || column.data_type().is_null() {
        return Ok(py.None().into_bound(py));
    }
    let failed = |error: datafusion::arrow::error::ArrowError| raised(error.into());
    let one = column.slice(row, 1);
    Ok(match column.data_type() {
        DataType::Boolean => one.as_boolean().value(0).into_pyobject(py)?.to_owned().into_any(),
        DataType::UInt64 => one.as_primitive::<UInt64Type>().value(0).into_pyobject(py)?.into_any(),
        data_type if data_type.is_integer() => {
            let number = cast(&one, &DataType::Int64).map_err(failed)?;
            number.as_primitive::<Int64Type>().value(0).into_pyobject(py)?.into_any()
        }
        data_type if data_type.is_floating() => {
            let number = cast(&one, &DataType::Float64).map_err(failed)?;
            number.as_primitive::<Float64Type>().value(0).into_pyobject(py)?.into_any()
        }
        DataType::List(_) => {
            let items = one.as_list::<i32>().value(0);
            let list = PyList::empty(py);
            for item in 0..items.len() {
                list.append(value(py, &items, item)?)?;
            }
            list.into_any()
        }
        DataType::Struct(fields) => {
            let values = PyDict::new(py);
            for (field, column) in fields.iter().zip(one.as_struct().columns()) {
                values.set_item(field.name(), value(py, column, 0)?)?;
            }
            values.into_any()
        }
        _ => {
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(one.as_ref(), &options).map_err(failed)?;
            formatter.value(0).to_string().into_pyobject(py)?.into_any()
        }
    })
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())))
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect::<Fields>()),
        DataType::List(item) => DataType::List(plain_field(item)),
        other => other.clone(),
    }
}

fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| plain(column, field));
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_>>()?, &rows)?)
}

fn plain(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    if let (Some(parts), DataType::Struct(fields)) = (column.as_struct_opt(), field.data_type()) {
        let columns = parts.columns().iter().zip(fields).map(|(column, field)| plain(column, field));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        return Ok(Arc::new(StructArray::try_new(fields.clone(), columns, parts.nulls().cloned())?));
    }
    Ok(cast(column, field.data_type())?)
}

/// Returns the order of a column's categories, as JSON, if they have one.
fn order_of(field: &Field, place: usize, batches: &[RecordBatch]) -> Option<String> {
    let DataType::Dictionary(_, values) = field.data_type() else { return None };
    if !matches!(values.as_ref(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        return None;
    }
    let enumeration = field.metadata().contains_key(POLARS_ENUM);
    if !enumeration && field.dict_is_ordered() != Some(true) {
        return None;
    }
    let categories = |batch: &RecordBatch| -> Option<Vec<String>> {
        let values = cast(batch.column(place).as_any_dictionary_opt()?.values(), &DataType::Utf8).ok()?;
        Some(values.as_string::<i32>().iter().flatten().map(str::to_owned).collect())
    };
    // Batches of one column have one dictionary, or the first is no order of all.
    let first = categories(batches.first()?)?;
    let same = batches.iter().skip(1).all(|batch| categories(batch).as_ref() == Some(&first));
    if same { serde_json::to_string(&first).ok() } else { None }
}
