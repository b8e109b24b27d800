//! Parquet files without statistics, in memory; files that are as they were made.

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as EngineResult;
use datafusion::object_store::path::Path;
use datafusion::object_store::{self, ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::schema::types::ColumnPath;

use super::blocking::blocking;
use super::record::ReleaseFile;
use crate::error::{Error, Result};
use crate::methods::state::IDENTIFIER;
use crate::release::GROUP_ID;

/// A Parquet file that is still in memory.
#[derive(Debug)]
pub(crate) struct MadeFile {
    /// Description of the file that will be.
    pub(crate) file: ReleaseFile,
    pub(crate) contents: Vec<u8>,
}

/// Writes batches as a Parquet file: no statistics, no indexes of values.
/// Fails when Parquet fails, or a batch is one.
pub(crate) fn make(
    name: String,
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch>>,
) -> Result<MadeFile> {
    let mut properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_compression(Compression::ZSTD(ZstdLevel::default()));
    // Hardly any two rows share these, so a dictionary of them is work for nothing.
    for column in [GROUP_ID, IDENTIFIER] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(column), false);
    }
    let failed = |error: ParquetError| Error::Engine(Box::new(error.into()));
    let mut contents = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut contents, SchemaRef::clone(schema), Some(properties.build())).map_err(failed)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    let file = ReleaseFile { name, size: contents.len() as u64, rows, checksum: checksum(&contents) };
    Ok(MadeFile { file, contents })
}

fn checksum(contents: &[u8]) -> String {
    blake3::hash(contents).to_hex().to_string()
}

/// Returns a file's contents, if it is there and as it was made.
pub(super) async fn intact(store: &dyn ObjectStore, path: &Path, file: &ReleaseFile) -> EngineResult<Option<Bytes>> {
    let contents = match store.get(path).await {
        Ok(found) => found.bytes().await?,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bytes = contents.clone();
    let hashed = blocking(move || Ok(checksum(&bytes))).await?;
    Ok(Some(contents).filter(|_| hashed == file.checksum))
}
