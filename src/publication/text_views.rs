//! Long texts by reference: in a ledger the same ones come again and again, in few bytes. Read as views, they stay as few.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, ListArray, RecordBatch, RecordBatchOptions, StringViewBuilder,
    StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

const ROWS: usize = 8192;
/// Bytes of a batch, about.
const BYTES: usize = 8 << 20;

/// A Parquet file in memory, whose texts and lists of texts are read as views.
pub(super) struct Views {
    file: ParquetRecordBatchReaderBuilder<Bytes>,
    plain: SchemaRef,
}

impl Views {
    /// Fails when it is no Parquet file.
    pub(super) fn of(contents: Bytes) -> Result<Self> {
        let metadata = ArrowReaderMetadata::load(&contents, ArrowReaderOptions::new())?;
        let plain = SchemaRef::clone(metadata.schema());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(in_views(&plain)));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
        Ok(Self { file: ParquetRecordBatchReaderBuilder::new_with_metadata(contents, metadata), plain })
    }

    pub(super) fn written(&self) -> &SchemaRef {
        &self.plain
    }

    /// Returns the bytes of all rows: of texts that come again, once.
    pub(super) fn bytes(&self) -> usize {
        self.file.metadata().row_groups().iter().map(|group| group.total_byte_size() as usize).sum()
    }

    /// Returns the rows, some at a time.
    /// Fails when Parquet fails.
    pub(super) fn read(self) -> Result<ParquetRecordBatchReader> {
        let rows = self.file.metadata().file_metadata().num_rows() as usize;
        let of_row = self.bytes() / rows.max(1);
        Ok(self.file.with_batch_size(ROWS.min(BYTES / of_row.max(1)).max(1)).build()?)
    }
}

/// Returns the columns with texts as views, or lists of them.
pub(super) fn in_views(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| Arc::new(with_view(field))).collect::<Vec<FieldRef>>();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// Returns the column with texts as views, or lists of them.
pub(crate) fn with_view(field: &Field) -> Field {
    field.clone().with_data_type(view_type(field.data_type()))
}

fn view_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(item) => DataType::List(Arc::new(with_view(item))),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| Arc::new(with_view(field))).collect::<Vec<FieldRef>>().into())
        }
        other => other.clone(),
    }
}

/// Returns the rows with texts as views, in whose buffers long ones are once. `schema` is that of [`in_views`].
pub(super) fn each_once(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(once).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?)
}

fn once(column: &ArrayRef) -> Result<ArrayRef> {
    /// Shorter ones, on average, are not worth looking for.
    const LONG: usize = 64;
    let data_type = view_type(column.data_type());
    Ok(match &data_type {
        DataType::Utf8View | DataType::BinaryView => {
            let column = cast(column, &data_type)?;
            if text_bytes(&column) / LONG < column.len().max(1) {
                return Ok(column);
            }
            match data_type {
                DataType::Utf8View => {
                    let mut texts = StringViewBuilder::new().with_deduplicate_strings();
                    column.as_string_view().iter().for_each(|text| texts.append_option(text));
                    Arc::new(texts.finish())
                }
                _ => {
                    let mut texts = BinaryViewBuilder::new().with_deduplicate_strings();
                    column.as_binary_view().iter().for_each(|text| texts.append_option(text));
                    Arc::new(texts.finish())
                }
            }
        }
        DataType::List(item) => {
            let (_, offsets, values, nulls) = column.as_list::<i32>().clone().into_parts();
            Arc::new(ListArray::try_new(FieldRef::clone(item), offsets, once(&values)?, nulls)?)
        }
        DataType::Struct(fields) => {
            let (_, columns, nulls) = column.as_struct().clone().into_parts();
            let columns = columns.iter().map(once).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?)
        }
        _ => ArrayRef::clone(column),
    })
}

/// Returns the rows with columns of these types, in pieces. They are small even where each text is written out.
pub(super) fn written_out(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
    let bytes: usize = batch.columns().iter().map(text_bytes).sum();
    let rows = (BYTES / (bytes / batch.num_rows().max(1)).max(1)).clamp(1, ROWS);
    let (batch, schema) = (batch.clone(), SchemaRef::clone(schema));
    (0..batch.num_rows()).step_by(rows).map(move |start| {
        let piece = batch.slice(start, rows.min(batch.num_rows() - start));
        let columns = piece.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| Ok(cast(&with_own_items(column)?, field.data_type())?));
        Ok(RecordBatch::try_new(SchemaRef::clone(&schema), columns.collect::<Result<_>>()?)?)
    })
}

/// Lists without the items of others: a slice has all of them, and a cast writes all of them out.
fn with_own_items(column: &ArrayRef) -> Result<ArrayRef> {
    let Some(lists) = column.as_list_opt::<i32>() else { return Ok(ArrayRef::clone(column)) };
    let DataType::List(item) = lists.data_type() else { return Ok(ArrayRef::clone(column)) };
    let ends = lists.value_offsets();
    let (first, last) = (ends[0] as usize, ends[ends.len() - 1] as usize);
    let offsets = OffsetBuffer::from_lengths(ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize));
    let items = lists.values().slice(first, last - first);
    Ok(Arc::new(ListArray::try_new(FieldRef::clone(item), offsets, items, lists.nulls().cloned())?))
}

/// Returns the bytes of written out texts: a column of views, or lists.
fn text_bytes(column: &ArrayRef) -> usize {
    let all = |views: &[u128]| views.iter().map(|view| *view as u32 as usize).sum();
    match column.data_type() {
        DataType::Utf8View => all(column.as_string_view().views()),
        DataType::BinaryView => all(column.as_binary_view().views()),
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let ends = lists.value_offsets();
            let (first, last) = (ends[0] as usize, ends[ends.len() - 1] as usize);
            text_bytes(&lists.values().slice(first, last - first))
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;
    use crate::publication::buffer_bytes::Buffers;
    use crate::publication::files::make;

    /// Lists of long texts, of which there are few: they are read in as few bytes as they were written in, and written out in small pieces.
    #[test]
    fn long_texts_are_read_in_few_bytes_and_are_the_same() {
        let texts: Vec<String> = (0..6).map(|text| format!("{text:03}x").repeat(25_000)).collect();
        let values: StringArray = (0..3000).map(|place| Some(&texts[place * 5 % 6])).collect();
        let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
        let lists = ListArray::new(item, OffsetBuffer::from_lengths([3; 1000]), Arc::new(values), None);
        let ids = Int64Array::from_iter_values(0..1000);
        let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("signature", Arc::new(lists))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = make("x".to_owned(), &batch.schema(), [Ok(batch.clone())]).unwrap();
        let views = Views::of(file.contents.into()).unwrap();
        assert_eq!(*views.written(), batch.schema());
        assert!(views.bytes() < 2 << 20, "{}", views.bytes());
        let (mut rows, mut pieces) = (Vec::new(), 0);
        for read in views.read().unwrap() {
            let read = read.unwrap();
            let bytes = Buffers::default().add(&read);
            assert!(bytes < 4 << 20, "{bytes}");
            for piece in written_out(&read, &batch.schema()) {
                let piece = piece.unwrap();
                assert!(piece.get_array_memory_size() < 2 * BYTES, "{}", piece.get_array_memory_size());
                pieces += 1;
                rows.push(piece);
            }
        }
        assert!(pieces > 30);
        assert_eq!(datafusion::arrow::compute::concat_batches(&batch.schema(), &rows).unwrap(), batch);
        // And what was read by others, where each text is written out.
        let once = each_once(&batch, &Arc::new(in_views(&batch.schema()))).unwrap();
        let bytes = Buffers::default().add(&once);
        assert!((600_000..1 << 20).contains(&bytes), "{bytes}");
        let pieces = written_out(&once, &batch.schema()).collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(datafusion::arrow::compute::concat_batches(&batch.schema(), &pieces).unwrap(), batch);
    }
}
