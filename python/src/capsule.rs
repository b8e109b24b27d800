//! Tables from and to other libraries by the Arrow PyCapsule interface: streams of record batches, without copies.
//!
//! The only unsafe code: taking what a capsule points to. The name of a capsule says what that is, which pyo3 compares.

use std::ffi::CStr;

use datafusion::arrow::array::{Array, RecordBatch, RecordBatchIterator, StructArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use datafusion::arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use datafusion::arrow::record_batch::RecordBatchReader;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::refused;
use crate::table::Table;
use crate::wait::wait_blocking;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Reads a table to its end.
///
/// # Errors
/// When it has neither method of the interface, and when reading fails. What the other library says may have values in it, so it is
/// not passed on; only what its method raises is.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    if let Ok(table) = object.cast::<Table>() {
        return Ok(table.get().clone());
    }
    if object.hasattr("__arrow_c_stream__")? {
        let stream = stream(&object.call_method0("__arrow_c_stream__")?)?;
        let read = move || {
            let reader = ArrowArrayStreamReader::try_new(stream)?;
            let schema = reader.schema();
            Ok((schema, reader.collect::<Result<Vec<_>, ArrowError>>()?))
        };
        let (schema, batches) = wait_blocking(object.py(), read)?;
        return Table::imported(schema, batches);
    }
    if object.hasattr("__arrow_c_array__")? {
        let (schema, array) =
            object.call_method0("__arrow_c_array__")?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let batch = array_of(&schema, &array)?;
        return Table::imported(batch.schema(), vec![batch]);
    }
    Err(refused("expected a table: an object with __arrow_c_stream__ or __arrow_c_array__"))
}

/// Returns a capsule with a stream of these batches.
pub(crate) fn write<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

#[expect(unsafe_code, reason = "a capsule of this name holds such a stream")]
fn stream(capsule: &Bound<'_, PyAny>) -> PyResult<FFI_ArrowArrayStream> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the interface says what a capsule of this name points to, and that it may be moved out.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) })
}

#[expect(unsafe_code, reason = "capsules of these names hold a schema and an array of it")]
fn array_of(schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: as above; the schema is only looked at, and stays with its capsule.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let fields = unsafe { datafusion::arrow::datatypes::Schema::try_from(schema.as_ref()) };
    let (Ok(data), Ok(fields)) = (data, fields) else {
        return Err(refused("the array cannot be read as a table; give a record batch"));
    };
    let columns = StructArray::from(data);
    if columns.null_count() > 0 {
        return Err(refused("rows of a table cannot be NULL as a whole"));
    }
    let rows = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(columns.len()));
    RecordBatch::try_new_with_options(fields.into(), columns.columns().to_vec(), &rows)
        .map_err(|_| refused("the array cannot be read as a table; give a record batch"))
}
