//! The relation function `releases(publication)`: what was published, and when.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use url::Url;

use super::release::PUBLICATION;
use super::table::PublicationTable;
use crate::exec::PlanFuture;
use crate::publication::{Figures, Reader, ReleaseRow};
use crate::sql::arguments::Arguments;
use crate::sql::opaque::{OpaqueTable, Relation, Wanted};
use crate::sql::options::AnonymizeOptions;
use crate::sql::signature::FunctionSignature;

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "releases",
    about: "the releases of a publication",
    refused: &[],
    parameters: &[PUBLICATION],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let plan = arguments.relation(PUBLICATION.name)?;
    PublicationTable::with(&plan, SIGNATURE.name, |publication| {
        let (public, private) = (publication.public.clone(), publication.private().cloned());
        let runtime = Arc::clone(&publication.runtime);
        Ok(Arc::new(OpaqueTable(ListedReleases { public, private, runtime })) as Arc<dyn TableProvider>)
    })
}

/// The list of releases of a publication, read when it is scanned.
struct ListedReleases {
    public: Url,
    /// Location of the ledger, if this is the publisher's.
    private: Option<Url>,
    runtime: Arc<RuntimeEnv>,
}

impl Relation for ListedReleases {
    fn function(&self) -> &str {
        SIGNATURE.name
    }

    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn plan<'a>(&'a self, _session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            let rows = match Reader::open(&self.public, &self.runtime).await? {
                Some(reader) => reader.releases(self.private.as_ref(), &self.runtime).await?,
                None => Vec::new(),
            };
            let schema = schema();
            let rows = batch(&schema, &rows)?;
            let plan: Arc<dyn ExecutionPlan> =
                MemorySourceConfig::try_new_exec(&[vec![rows]], schema, wanted.projection.cloned())?;
            Ok(plan)
        })
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
