//! Parquet files of a local disk that are in the order of time, one after the other.
//!
//! What is written as it happens is in order within a file, and from one file to the next. To see that takes the column of times alone, which is a small part
//! of most files. Then all of their rows are read in that order, and nothing need be held before the first of them can go on.

use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use super::files::scan_of;
use super::reposition_job::REPOSITION;
use super::sort_by_time::ends;
use super::{HiddenExec, Origin, hide};
use crate::error::{AnonymizeError, ErrorKind};

/// Batches that are read before they are asked for.
const AHEAD: usize = 2;

/// An input that reads Parquet files, each row by itself: it may be read twice, and in parts.
pub(super) struct Files {
    plan: Arc<dyn ExecutionPlan>,
    origin: Arc<Origin>,
    /// Files, or parts of them.
    files: Vec<PartitionedFile>,
    /// Column of times.
    place: usize,
}

impl Files {
    /// `None` of an input that is anything else. `place` is its column of times.
    ///
    /// # Errors
    /// When a node of the plan cannot take its own children.
    pub(super) fn of(input: &Arc<dyn ExecutionPlan>, place: usize) -> Result<Option<Self>> {
        let mut input = input;
        while let Some(coalesced) = input.downcast_ref::<CoalescePartitionsExec>().filter(|plan| plan.fetch().is_none())
        {
            input = coalesced.input();
        }
        let Some(hidden) = HiddenExec::of(input) else { return Ok(None) };
        let (plan, origin) = (hidden.revealed()?, Arc::clone(hidden.origin()));
        Ok(files_of(&plan).map(|files| Self { plan, origin, files, place }))
    }

    /// The rows in the order of time, if files are in it once they come in the right order.
    ///
    /// # Errors
    /// Those of reading; and later, when rows come in another order than their times did.
    pub(super) async fn in_turn(
        self,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let Some(order) = self.order(context).await? else { return Ok(None) };
        MetricBuilder::new(metrics).counter("files_in_order", 0).add(order.len());
        let files = order.into_iter().map(|file| self.files[file].clone()).collect();
        let rows = hide(&self.over(&[FileGroup::new(files)])?, &self.origin)?.execute(0, Arc::clone(context))?;
        Ok(Some(checked(spawn_buffered(rows, AHEAD), self.place)))
    }

    /// The files in the order of their times, if each is in it, and none begins before another one ends.
    async fn order(&self, context: &Arc<TaskContext>) -> Result<Option<Vec<usize>>> {
        let times = hide(&self.times()?, &self.origin)?;
        let read = |file: usize| {
            let rows = times.execute(file, Arc::clone(context));
            let read = SpawnedTask::spawn(async move { ends_of(rows?).await });
            async move { read.join_unwind().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))? }
        };
        let side_by_side = context.session_config().target_partitions();
        let mut read = futures::stream::iter(0..self.files.len()).map(read).buffered(side_by_side);
        let mut found = Vec::with_capacity(self.files.len());
        while let Some(times) = read.next().await {
            match times {
                // Without a filter a time may fail to be computed. What is wrong otherwise is said when all is read.
                Err(_) | Ok(Times::Unordered) => return Ok(None),
                Ok(Times::None) => found.push((None, found.len())),
                Ok(Times::Between(first, last)) => found.push((Some((first, last)), found.len())),
            }
        }
        // Those without rows come first.
        found.sort_unstable();
        let ends: Vec<_> = found.iter().filter_map(|(ends, _)| *ends).collect();
        let in_order = ends.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        Ok(in_order.then(|| found.into_iter().map(|(_, file)| file).collect()))
    }

    /// A plan that reads times alone, with a partition for each file. Times of all rows: if these are in order, those that a filter leaves are, too, and it need
    /// not read the columns that it looks at.
    fn times(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let each: Vec<FileGroup> = self.files.iter().map(|file| FileGroup::new(vec![file.clone()])).collect();
        let plan = self.over(&each)?;
        let plan = plan.transform_up(without_filter).data()?;
        let name = plan.schema().field(self.place).name().clone();
        let time = ProjectionExpr::new(Arc::new(Column::new(&name, self.place)), name);
        let plan = Arc::new(ProjectionExec::try_new([time], plan)?);
        // Once to make one projection of two, and once to hand that to the scan.
        let (rule, options) = (ProjectionPushdown::new(), ConfigOptions::default());
        rule.optimize(rule.optimize(plan, &options)?, &options)
    }

    /// The plan with files in these groups, each of which is a partition.
    fn over(&self, groups: &[FileGroup]) -> Result<Arc<dyn ExecutionPlan>> {
        let over = |node: Arc<dyn ExecutionPlan>| {
            let (Some(exec), Some(scan)) = (node.downcast_ref::<DataSourceExec>(), scan_of(&node)) else {
                return Ok(Transformed::no(node));
            };
            let scan = FileScanConfigBuilder::from(scan.clone())
                .with_output_partitioning(None)
                .with_file_groups(groups.to_vec())
                // No file is read by another partition that has nothing to do.
                .with_preserve_order(true)
                .build();
            Ok(Transformed::yes(Arc::new(exec.clone().with_data_source(Arc::new(scan))) as Arc<dyn ExecutionPlan>))
        };
        Arc::clone(&self.plan).transform_up(over).data()
    }
}

/// What a filter reads, with the columns that it lets through.
fn without_filter(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
    let input = Arc::clone(filter.input());
    let Some(places) = filter.projection().as_deref() else { return Ok(Transformed::yes(input)) };
    let schema = input.schema();
    let columns: Vec<ProjectionExpr> = places
        .iter()
        .map(|&place| {
            let name = schema.field(place).name();
            ProjectionExpr::new(Arc::new(Column::new(name, place)), name.clone())
        })
        .collect();
    Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(columns, input)?)))
}

/// The rows, as long as they come in order: files may have given way to others since their times were read.
fn checked(rows: SendableRecordBatchStream, place: usize) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = futures::stream::try_unfold((rows, None), move |(mut rows, last)| async move {
        let Some(batch) = rows.try_next().await? else { return Ok(None) };
        if batch.num_rows() == 0 {
            return Ok(Some((batch, (rows, last))));
        }
        match ends(&batch, place).await {
            Some((first, end)) if last <= Some(first) => Ok(Some((batch, (rows, Some(end))))),
            _ => {
                let changed = "files of the input were replaced while they were read; run the statement again";
                Err(AnonymizeError::new(REPOSITION, ErrorKind::Input, changed.to_owned()).into())
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// The files of a plan that reads them row by row, all of them, and the same ones each time.
fn files_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Vec<PartitionedFile>> {
    if plan.fetch().is_some() {
        return None;
    }
    if let Some(scan) = scan_of(plan) {
        // To read the times of other formats takes as long as to read all.
        let source = scan.file_source();
        let volatile =
            source.projection().is_some_and(|columns| columns.iter().any(|column| is_volatile(&column.expr)));
        // Of a store that is far away many files are read at a time, for each takes a while to come.
        let near = scan.object_store_url.as_str().starts_with("file:");
        return (near && source.is::<ParquetSource>() && !volatile)
            .then(|| scan.file_groups.iter().flat_map(FileGroup::iter).cloned().collect());
    }
    let same_each_time = match (plan.downcast_ref::<ProjectionExec>(), plan.downcast_ref::<FilterExec>()) {
        (Some(projection), _) => !projection.expr().iter().any(|column| is_volatile(&column.expr)),
        (_, Some(filter)) => !is_volatile(filter.predicate()),
        _ => plan.is::<CooperativeExec>(),
    };
    match plan.children().as_slice() {
        [child] if same_each_time => files_of(child),
        _ => None,
    }
}

/// The times of a file.
enum Times {
    Unordered,
    None,
    /// From the first to the last.
    Between(i64, i64),
}

async fn ends_of(mut times: SendableRecordBatchStream) -> Result<Times> {
    let mut found = Times::None;
    while let Some(batch) = times.try_next().await? {
        if batch.num_rows() == 0 {
            continue;
        }
        found = match (found, ends(&batch, 0).await) {
            (Times::None, Some((first, last))) => Times::Between(first, last),
            (Times::Between(first, before), Some((next, last))) if before <= next => Times::Between(first, last),
            _ => return Ok(Times::Unordered),
        };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::object_store::memory::InMemory;
    use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    /// A session with files of `t` and `row`, which is `t` in words; each in groups of 1000 rows.
    async fn with_files(files: &[(&str, Vec<Option<i64>>)], partitions: usize) -> (SessionContext, tempfile::TempDir) {
        let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(300);
        config.options_mut().optimizer.repartition_file_min_size = 0;
        let context = SessionContext::new_with_config(config);
        let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(300);
        config.options_mut().execution.parquet.max_row_group_size = 1000;
        let writer = SessionContext::new_with_config(config);
        let folder = tempfile::tempdir().unwrap();
        for (name, times) in files {
            let times: Int64Array = times.iter().copied().collect();
            let batch = RecordBatch::try_from_iter([("t", Arc::new(times) as _)]).unwrap();
            writer.register_batch("rows", batch).unwrap();
            let place = folder.path().join(name);
            let copy = format!("COPY (SELECT t, 'at ' || t AS words FROM rows) TO '{}'", place.display());
            writer.sql(&copy).await.unwrap().collect().await.unwrap();
            writer.deregister_table("rows").unwrap();
        }
        register(&context, folder.path(), "PARQUET").await;
        (context, folder)
    }

    async fn register(context: &SessionContext, folder: &Path, format: &str) {
        let create = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{}/'", folder.display());
        context.sql(&create).await.unwrap().collect().await.unwrap();
    }

    /// What an operator reads of a query: hidden, and in one partition.
    async fn files(context: &SessionContext, query: &str) -> Option<Files> {
        let plan = context.sql(query).await.unwrap().create_physical_plan().await.unwrap();
        let plan = hide(&plan, &Arc::default()).unwrap();
        let place = plan.schema().index_of("t").unwrap();
        Files::of(&(Arc::new(CoalescePartitionsExec::new(plan)) as _), place).unwrap()
    }

    /// Times in the order that they come in, with their words checked; `None` if they are not in order.
    async fn in_turn(context: &SessionContext, query: &str) -> Option<Vec<i64>> {
        let files = files(context, query).await.unwrap();
        let metrics = ExecutionPlanMetricsSet::new();
        let rows = files.in_turn(&metrics, &context.task_ctx()).await.unwrap();
        assert_eq!(metrics.clone_inner().sum_by_name("files_in_order").is_some(), rows.is_some());
        let rows: Vec<RecordBatch> = rows?.try_collect().await.unwrap();
        let mut found = Vec::new();
        for batch in rows {
            let times = batch.column_by_name("t").unwrap().as_primitive::<Int64Type>();
            found.extend_from_slice(times.values());
            if let Some(words) = batch.column_by_name("words") {
                let words = datafusion::arrow::compute::cast(words, &DataType::Utf8).unwrap();
                let words = words.as_string::<i32>();
                assert!(times.values().iter().zip(words).all(|(time, word)| word.unwrap() == format!("at {time}")));
            }
        }
        Some(found)
    }

    fn times(range: std::ops::Range<i64>) -> Vec<Option<i64>> {
        range.map(|time| Some(time / 3)).collect()
    }

    /// Whatever they are called, however many read them and in how many pieces.
    #[tokio::test(flavor = "multi_thread")]
    async fn files_come_in_the_order_of_their_times() {
        let written = [
            ("later.parquet", times(5000..12_000)),
            ("more.parquet", times(12_000..12_001)),
            ("now.parquet", vec![Some(4000); 700]),
            ("no one.parquet", vec![]),
            ("old.parquet", times(-3000..5000)),
        ];
        let mut all: Vec<i64> = written.iter().flat_map(|(_, times)| times.iter().copied().flatten()).collect();
        all.sort_unstable();
        for partitions in [1, 2, 7] {
            let (context, _folder) = with_files(&written, partitions).await;
            let of = async |query| in_turn(&context, query).await.unwrap();
            assert_eq!(of("SELECT * FROM t").await, all);
            assert_eq!(of("SELECT words, 3 * t + 1 AS s, t FROM t").await, all);
            let some: Vec<i64> = all.iter().copied().filter(|time| time % 7 == 2).collect();
            assert_eq!(of("SELECT t FROM t WHERE t % 7 = 2").await, some);
            let some: Vec<i64> = all.iter().copied().filter(|time| *time > 1000).collect();
            assert_eq!(of("SELECT words, t FROM t WHERE t > 1000 AND words <> 'at'").await, some);
        }
    }

    /// Whatever else is read, or looked at by a filter, times are read by themselves.
    #[tokio::test(flavor = "multi_thread")]
    async fn times_are_read_alone() {
        let (context, _folder) =
            with_files(&[("b.parquet", times(0..3000)), ("a.parquet", times(3000..4000))], 2).await;
        for pushdown in [false, true] {
            let set = format!("SET datafusion.execution.parquet.pushdown_filters = {pushdown}");
            context.sql(&set).await.unwrap().collect().await.unwrap();
            for query in [
                "SELECT * FROM t",
                "SELECT words, t FROM t WHERE words <> 'at 7'",
                "SELECT t, words || t AS more FROM t WHERE words LIKE '%1%'",
                "SELECT t FROM (SELECT t, words || 'x' AS more FROM t WHERE t > 5) WHERE more < 'at 5'",
            ] {
                let plan = files(&context, query).await.unwrap().times().unwrap();
                let shown = displayable(plan.as_ref()).indent(false).to_string();
                assert!(shown.contains("projection=[t],") && !shown.contains("FilterExec"), "{query}: {shown}");
                let mut expected: Vec<i64> = context
                    .sql(&format!("SELECT t FROM ({query}) ORDER BY t"))
                    .await
                    .unwrap()
                    .collect()
                    .await
                    .unwrap()
                    .iter()
                    .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                expected.sort_unstable();
                assert_eq!(in_turn(&context, query).await.unwrap(), expected, "{query}");
            }
        }
        // The time of a row that the filter leaves out cannot be computed.
        let query = "SELECT 7 / (t - 5) AS t FROM t WHERE t <> 5";
        assert_eq!(in_turn(&context, query).await, None);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_time_may_be_computed() {
        let (context, _folder) =
            with_files(&[("b.parquet", times(0..3000)), ("a.parquet", times(3000..4000))], 2).await;
        let falling = "SELECT -t AS t FROM t";
        assert_eq!(in_turn(&context, falling).await, None);
        let days = in_turn(&context, "SELECT t / 10 AS t FROM t").await.unwrap();
        assert_eq!(days, (0..4000).map(|row| row / 3 / 10).collect::<Vec<i64>>());
    }

    /// The time may be a column of the folders' names, which no file has.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_time_may_be_that_of_a_folder() {
        let written = [
            ("day=12/a.parquet", times(0..2000)),
            ("day=3/b.parquet", times(0..10)),
            ("day=3/c.parquet", times(0..1500)),
            ("day=-1/d.parquet", times(7..9)),
        ];
        let (context, folder) = with_files(&written, 2).await;
        let create = format!(
            "CREATE EXTERNAL TABLE days (t BIGINT, words VARCHAR, day BIGINT) STORED AS PARQUET PARTITIONED BY (day) LOCATION '{}/'",
            folder.path().display()
        );
        context.sql(&create).await.unwrap().collect().await.unwrap();
        let days = [vec![-1; 2], vec![3; 1510], vec![12; 2000]].concat();
        assert_eq!(in_turn(&context, "SELECT day AS t FROM days").await.unwrap(), days);
        assert_eq!(
            in_turn(&context, "SELECT day AS t FROM days WHERE words <> 'at 5' AND day > 5").await.unwrap().len(),
            1997
        );
        // Those of the files overlap.
        assert_eq!(in_turn(&context, "SELECT words, t FROM days").await, None);
    }

    /// Whatever column is damaged, the error comes of reading all rows.
    #[tokio::test(flavor = "multi_thread")]
    async fn damaged_files_are_errors_when_all_is_read() {
        for (column, times_are_read) in [(0, false), (1, true)] {
            let written = [("a.parquet", times(0..3000)), ("b.parquet", times(3000..6000))];
            let (context, folder) = with_files(&written, 2).await;
            let path = folder.path().join("b.parquet");
            let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
            let (start, length) = reader.metadata().row_group(1).column(column).byte_range();
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[start as usize..(start + length) as usize].fill(0xff);
            std::fs::write(&path, bytes).unwrap();
            let read = files(&context, "SELECT * FROM t").await.unwrap();
            let rows = read.in_turn(&ExecutionPlanMetricsSet::new(), &context.task_ctx()).await.unwrap();
            assert_eq!(rows.is_some(), times_are_read);
            if let Some(rows) = rows {
                rows.try_collect::<Vec<RecordBatch>>().await.unwrap_err();
            }
            context.sql("SELECT * FROM t").await.unwrap().collect().await.unwrap_err();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_in_another_order_is_not_read_in_turn() {
        let mut late = times(0..2500);
        late[2400] = Some(5);
        let mut unknown = times(0..10);
        unknown[9] = None;
        for written in [
            vec![("a.parquet", late)],
            vec![("a.parquet", unknown)],
            vec![("a.parquet", times(0..1000)), ("b.parquet", times(900..2000))],
        ] {
            let (context, _folder) = with_files(&written, 2).await;
            assert_eq!(in_turn(&context, "SELECT * FROM t").await, None);
        }
    }

    /// Other rows each time, rows that are made of several, and formats of which all must be read for one column.
    #[tokio::test(flavor = "multi_thread")]
    async fn some_inputs_are_read_once() {
        let (context, _folder) =
            with_files(&[("a.parquet", times(0..3000)), ("b.parquet", times(3000..4000))], 2).await;
        for query in [
            "SELECT t, random() AS r FROM t",
            "SELECT * FROM t WHERE random() < 0.5",
            "SELECT * FROM t LIMIT 5",
            "SELECT t FROM t GROUP BY t",
            "SELECT t FROM t UNION ALL SELECT t FROM t",
            "SELECT * FROM (VALUES (1), (2)) AS v(t)",
        ] {
            assert!(files(&context, query).await.is_none(), "{query}");
        }
        // From a store that may be far away.
        let url = ObjectStoreUrl::parse("memory://far").unwrap();
        context.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
        let copy = "COPY t TO 'memory://far/t/' STORED AS PARQUET";
        context.sql(copy).await.unwrap().collect().await.unwrap();
        let far = "CREATE EXTERNAL TABLE far STORED AS PARQUET LOCATION 'memory://far/t/'";
        context.sql(far).await.unwrap().collect().await.unwrap();
        assert!(files(&context, "SELECT * FROM far").await.is_none());
        assert!(files(&context, "SELECT * FROM t").await.is_some());
        let folder = tempfile::tempdir().unwrap();
        let copy = format!("COPY t TO '{}/' STORED AS CSV", folder.path().display());
        context.sql(&copy).await.unwrap().collect().await.unwrap();
        context.deregister_table("t").unwrap();
        register(&context, folder.path(), "CSV").await;
        assert!(files(&context, "SELECT * FROM t").await.is_none());
    }

    #[tokio::test]
    async fn rows_in_another_order_than_their_times_had_are_an_error() {
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Int64, true)]));
        let read = async |batches: &[Vec<Option<i64>>]| {
            let batch = |times: &Vec<Option<i64>>| {
                let times = times.iter().copied().collect::<Int64Array>();
                RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(times)]).map_err(Into::into)
            };
            let batches: Vec<_> = batches.iter().map(batch).collect();
            let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), futures::stream::iter(batches));
            checked(Box::pin(rows), 0).try_collect::<Vec<RecordBatch>>().await
        };
        assert_eq!(read(&[times(0..10), vec![], times(9..20)]).await.unwrap().len(), 3);
        for batches in [vec![times(3..10), times(0..3)], vec![times(0..3), vec![Some(2), Some(1)]], vec![vec![None]]] {
            let error = read(&batches).await.unwrap_err();
            let DataFusionError::External(error) = error else { panic!("{error}") };
            let error = error.downcast_ref::<AnonymizeError>().unwrap();
            assert!(error.to_string().contains("replaced while they were read"), "{error}");
        }
    }
}
