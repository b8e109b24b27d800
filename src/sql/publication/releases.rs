//! The relation function `releases(publication)`: what was published, and when.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::MemTable;

use super::release::PUBLICATION;
use super::table::PublicationTable;
use crate::publication::{Figures, Reader, ReleaseRow};
use crate::sql::arguments::Arguments;
use crate::sql::function::RelationFunction;
use crate::sql::options::AnonymizeOptions;
use crate::sql::resolve::wait_long_for;
use crate::sql::signature::FunctionSignature;

/// The list of releases.
#[derive(Debug)]
pub(super) struct Releases;

static SIGNATURE: FunctionSignature = FunctionSignature { name: "releases", parameters: &[PUBLICATION] };

impl RelationFunction for Releases {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let plan = arguments.relation(PUBLICATION.name)?;
        let rows = PublicationTable::with(&plan, SIGNATURE.name, |publication| {
            let (public, private, runtime) = (&publication.public, publication.private(), &publication.runtime);
            wait_long_for(|| async move {
                match Reader::open(public, runtime).await? {
                    Some(reader) => reader.releases(private, runtime).await,
                    None => Ok(Vec::new()),
                }
            })
        })?;
        let schema = schema();
        let batch = batch(&schema, &rows)?;
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
    }
}

fn schema() -> SchemaRef {
    let count = |name: &str| Field::new(name, DataType::Int64, false);
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        count("release"),
        Field::new("time", time, true),
        Field::new("method", DataType::Utf8, false),
        Field::new("parameters", DataType::Utf8, false),
        count("rows"),
        count("groups"),
        count("counterfeits"),
        Field::new("reader", DataType::Utf8, true),
        Field::new("participant", DataType::Utf8, true),
        Field::new("withheld", DataType::Int64, true),
        Field::new("information_loss", DataType::Float64, true),
        Field::new("achieved", DataType::Float64, true),
    ]))
}

fn batch(schema: &SchemaRef, rows: &[ReleaseRow]) -> Result<RecordBatch> {
    let count = |of: &dyn Fn(&ReleaseRow) -> u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| of(row) as i64)))
    };
    let figure = |of: fn(&Figures) -> u64| count(&|row| of(&row.announcement.figures));
    let text =
        |of: fn(&ReleaseRow) -> &String| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(of))) };
    let readers = rows.iter().map(ReleaseRow::reader).collect::<StringArray>();
    let of_participants = rows.iter().map(|row| row.of_participants.map(|bound| bound.to_string()));
    let of_participants = of_participants.collect::<StringArray>();
    let times = rows.iter().map(|row| row.time).collect::<TimestampMillisecondArray>();
    let records = || rows.iter().map(|row| row.record.as_ref());
    let withheld = records().map(|record| record.map(|record| record.withheld as i64)).collect::<Int64Array>();
    let loss = records().map(|record| record.map(|record| record.information_loss)).collect::<Float64Array>();
    let achieved = records().map(|record| record?.beliefs.as_ref()?.achieved).collect::<Float64Array>();
    let columns: Vec<ArrayRef> = vec![
        count(&|row| row.announcement.number),
        Arc::new(times.with_timezone("UTC")),
        text(|row| &row.announcement.method),
        text(|row| &row.announcement.parameters),
        figure(|figures| figures.rows),
        figure(|figures| figures.groups),
        figure(|figures| figures.counterfeits),
        Arc::new(readers),
        Arc::new(of_participants),
        Arc::new(withheld),
        Arc::new(loss),
        Arc::new(achieved),
    ];
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
}
