//! Checks of the files of a release, and of what they tell beside their rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::object_store::path::Path;
use datafusion::object_store::{self, ObjectStoreExt};
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use deltalake_core::DeltaTable;

use crate::publication::delta;
use crate::publication::files::intact;
use crate::publication::reader::Reader;
use crate::publication::record::Record;
use crate::risk::Check;

#[derive(Default)]
pub(super) struct Files {
    all: usize,
    /// Files that are not those that were decided; `None` if nobody knows which were.
    foreign: Option<usize>,
    /// Files that are not there.
    missing: usize,
    /// Files with statistics of values, or with metadata beside the schema.
    talkative: usize,
    /// Files of which the log says something else than how many rows they have.
    miscounted: usize,
    pub(super) schema: Option<SchemaRef>,
    /// Files with another one.
    others: usize,
}

impl Files {
    pub(super) async fn read(reader: &Reader, table: &DeltaTable, record: Option<&Record>) -> Result<Self> {
        let mut found = Self { foreign: record.map(|_| 0), ..Self::default() };
        let listed = delta::listed(table).await?;
        if let (Some(record), Some(foreign)) = (record, &mut found.foreign) {
            *foreign += record.files.len().abs_diff(listed.len());
        }
        for described in listed {
            found.all += 1;
            let path = Path::from(described.name.as_str());
            let decided = record.and_then(|record| record.files.iter().find(|file| file.name == described.name));
            let contents = match decided {
                Some(file) => intact(reader.store().as_ref(), &path, file).await?,
                None => None,
            };
            if contents.is_none() {
                found.foreign.iter_mut().for_each(|foreign| *foreign += 1);
            }
            let contents = match contents {
                Some(contents) => contents,
                None => match reader.store().get(&path).await {
                    Ok(found) => found.bytes().await?,
                    // Taken away: that is a finding, too.
                    Err(object_store::Error::NotFound { .. }) => {
                        found.missing += 1;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            let Ok(file) = ParquetRecordBatchReaderBuilder::try_new(contents) else { continue };
            let metadata = file.metadata();
            let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
            let keys = metadata.file_metadata().key_value_metadata().into_iter().flatten();
            let told = columns.filter(|column| column.statistics().is_some()).count()
                + keys.filter(|entry| entry.key != ARROW_SCHEMA_META_KEY).count();
            found.talkative += usize::from(told > 0);
            let rows = metadata.file_metadata().num_rows() as u64;
            found.miscounted += usize::from(!described.tells_rows_only(rows));
            let schema = found.schema.get_or_insert_with(|| Arc::clone(file.schema()));
            found.others += usize::from(schema != file.schema());
        }
        Ok(found)
    }

    pub(super) fn checks(&self, number: u64) -> Vec<Check> {
        let number = Some(number);
        let mut checks = vec![
            Check::none(number, "files are there", self.missing, self.all, "are not"),
            Check::none(
                number,
                "files tell nothing but their rows",
                self.talkative,
                self.all,
                "files have statistics or metadata",
            ),
            Check::none(number, "files have one schema", self.others, self.all, "files have another"),
            Check::none(
                number,
                "the log tells how many rows files have, and no more",
                self.miscounted,
                self.all,
                "files have other numbers of rows there, or more is told",
            ),
        ];
        let decided = self
            .foreign
            .map(|wrong| Check::none(number, "files are those that were decided", wrong, self.all, "are not"));
        checks.extend(decided);
        checks
    }
}
