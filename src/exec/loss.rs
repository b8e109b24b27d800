//! The operator that measures information loss.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use rayon::prelude::*;

use crate::error::Error;
use crate::microdata::{ColumnEncoder, Hierarchies, Loss, LossBuilder};

const FUNCTION: &str = "information_loss";
/// In place of an attribute's name: all of them.
const OVERALL: &str = "*";

/// Measures the information loss of a release.
///
/// ```text
/// InformationLossExec: attributes=[age, zip]
///   <original: the attributes>
///   <release: lo and hi of each attribute; then, if there are groups, their numbers.
///    Or, of a perturbed release, the original and the published value of each attribute>
///   <hierarchies: attribute, leaf, level1, level2, ..>           (optional)
/// ```
///
/// Holds the distinct values and intervals, not the rows.
#[derive(Debug, Clone)]
pub struct InformationLossExec {
    original: Arc<dyn ExecutionPlan>,
    release: Arc<dyn ExecutionPlan>,
    hierarchies: Option<Arc<dyn ExecutionPlan>>,
    pairs: bool,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl InformationLossExec {
    /// Columns of the result: the attribute (`*` for all), the number of its values, the losses, of a perturbed release the mean
    /// distance instead, and for all of a release
    /// with groups their mean size and the discernibility (the sum of their squared sizes).
    pub fn schema() -> SchemaRef {
        let float = |name: &str| Field::new(name, DataType::Float64, true);
        Arc::new(Schema::new(vec![
            Field::new("attribute", DataType::Utf8, false),
            Field::new("domain", DataType::Int64, true),
            float("lm"),
            float("em"),
            float("iloss"),
            float("ncp"),
            float("distance"),
            float("mean_group_size"),
            Field::new("discernibility", DataType::Int64, true),
        ]))
    }

    /// `pairs` says that the release has originals and published values instead of intervals.
    ///
    /// # Errors
    /// When an input never ends, or their columns do not fit.
    pub fn try_new(
        original: Arc<dyn ExecutionPlan>,
        release: Arc<dyn ExecutionPlan>,
        hierarchies: Option<Arc<dyn ExecutionPlan>>,
        pairs: bool,
    ) -> Result<Self> {
        if [&original, &release].into_iter().chain(&hierarchies).any(|plan| plan.boundedness().is_unbounded()) {
            return plan_err!("{FUNCTION}: the input never ends");
        }
        let attributes = original.schema().fields().len();
        if !(2 * attributes..=2 * attributes + 1).contains(&release.schema().fields().len()) {
            return internal_err!("{FUNCTION}: a release with other columns than the original");
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Self::schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { original, release, hierarchies, pairs, metrics, properties: Arc::new(properties) })
    }

    fn attributes(&self) -> Vec<FieldRef> {
        self.original.schema().fields().iter().cloned().collect()
    }
}

impl DisplayAs for InformationLossExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.attributes().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "InformationLossExec: attributes=[{names}]")
            }
            DisplayFormatType::TreeRender => writeln!(f, "attributes=[{names}]"),
        }
    }
}

impl ExecutionPlan for InformationLossExec {
    fn name(&self) -> &'static str {
        "InformationLossExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        [&self.original, &self.release].into_iter().chain(&self.hierarchies).collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.children().len()])
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.children().len() {
            return internal_err!("InformationLossExec cannot gain or lose an input");
        }
        let mut children = children.into_iter();
        let (Some(original), Some(release), hierarchies) = (children.next(), children.next(), children.next()) else {
            return internal_err!("InformationLossExec has two inputs or three");
        };
        Ok(Arc::new(Self::try_new(original, release, hierarchies, self.pairs)?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("InformationLossExec has one partition, not {partition}");
        }
        let start = |plan: &Arc<dyn ExecutionPlan>| plan.execute(0, Arc::clone(&context));
        let streams = Streams {
            original: start(&self.original)?,
            release: start(&self.release)?,
            hierarchies: self.hierarchies.as_ref().map(start).transpose()?,
            pairs: self.pairs,
        };
        let attributes = self.attributes();
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let result = futures::stream::once(async move { measure(streams, attributes, metrics, &context).await });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Self::schema(), result)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

struct Streams {
    original: SendableRecordBatchStream,
    release: SendableRecordBatchStream,
    hierarchies: Option<SendableRecordBatchStream>,
    pairs: bool,
}

async fn measure(
    mut streams: Streams,
    attributes: Vec<FieldRef>,
    metrics: BaselineMetrics,
    context: &TaskContext,
) -> Result<RecordBatch> {
    let named = |error: Error| error.in_function(FUNCTION);
    let memory = MemoryConsumer::new("InformationLossExec").register(context.memory_pool());
    let names: Vec<String> = attributes.iter().map(|field| field.name().clone()).collect();
    let builders = attributes.into_iter().map(LossBuilder::try_new).collect::<crate::error::Result<Vec<_>>>();
    let mut builders = builders.map_err(named)?;
    let size = |builders: &[LossBuilder]| builders.iter().map(LossBuilder::size).sum::<usize>();
    while let Some(batch) = streams.original.next().await {
        let batch = batch?;
        let _timer = metrics.elapsed_compute().timer();
        for (builder, column) in builders.iter_mut().zip(batch.columns()) {
            builder.append_original(column).map_err(named)?;
        }
        memory.try_resize(size(&builders))?;
    }
    let mut groups = None;
    while let Some(batch) = streams.release.next().await {
        let batch = batch?;
        let _timer = metrics.elapsed_compute().timer();
        for (builder, ends) in builders.iter_mut().zip(batch.columns().chunks_exact(2)) {
            builder.append_released(&ends[0], &ends[1]).map_err(named)?;
        }
        if let [.., numbers] = batch.columns()
            && batch.num_columns() > 2 * builders.len()
        {
            if groups.is_none() {
                let field = Arc::clone(&batch.schema().fields()[batch.num_columns() - 1]);
                groups = Some(Groups { encoder: ColumnEncoder::try_new(field).map_err(named)?, sizes: Vec::new() });
            }
            if let Some(groups) = &mut groups {
                groups.append(numbers).map_err(named)?;
            }
        }
        memory.try_resize(size(&builders) + groups.as_ref().map_or(0, Groups::size))?;
    }
    // Sorted once more as the losses are computed.
    let held = 2 * (size(&builders) + groups.as_ref().map_or(0, Groups::size));
    memory.try_resize(held)?;
    let hierarchies = match streams.hierarchies {
        None => None,
        Some(mut rows) => {
            let mut hierarchies = Hierarchies::new(names.iter());
            while let Some(batch) = rows.next().await {
                hierarchies.append(&batch?).map_err(named)?;
                memory.try_resize(held + hierarchies.size())?;
            }
            Some(hierarchies)
        }
    };
    let (elapsed, pairs) = (metrics.elapsed_compute().clone(), streams.pairs);
    // Sorting large domains takes its time; not on a thread that drives other tasks.
    let finish = move || {
        let _timer = elapsed.timer();
        let hierarchies = hierarchies.map(Hierarchies::finish).transpose().map_err(named)?;
        let measured = |builder: LossBuilder| match pairs {
            true => builder.finish_pairs(hierarchies.as_ref()).map(|(values, mean)| Measured(values, None, mean)),
            false => builder.finish(hierarchies.as_ref()).map(|(values, loss)| Measured(values, loss, None)),
        };
        let losses = builders.into_par_iter().map(measured);
        let losses = losses.collect::<crate::error::Result<Vec<_>>>().map_err(named)?;
        table(&names, &losses, groups.as_ref())
    };
    let batch = SpawnedTask::spawn_blocking(finish).join_unwind().await;
    let batch = batch.unwrap_or_else(|_| Err(Error::Cancelled.in_function(FUNCTION)))?;
    drop(memory);
    metrics.record_output(batch.num_rows());
    Ok(batch)
}

/// How many rows each group has.
struct Groups {
    encoder: ColumnEncoder,
    sizes: Vec<u64>,
}

impl Groups {
    fn append(&mut self, numbers: &ArrayRef) -> crate::error::Result<()> {
        let mut codes = Vec::new();
        self.encoder.intern(numbers, &mut codes)?;
        let groups = codes.iter().max().map_or(0, |most| most + 1);
        if groups > self.sizes.len() {
            self.sizes.resize(groups, 0);
        }
        codes.iter().for_each(|&code| self.sizes[code] += 1);
        Ok(())
    }

    fn size(&self) -> usize {
        self.encoder.size() + self.sizes.capacity() * size_of::<u64>()
    }
}

/// Number of values of an attribute; what intervals lose; how far published values are from the originals.
struct Measured(usize, Option<Loss>, Option<f64>);

/// One row per attribute and one for all of them.
fn table(names: &[String], losses: &[Measured], groups: Option<&Groups>) -> Result<RecordBatch> {
    let column = |of: fn(&Measured) -> Option<f64>| -> ArrayRef {
        let each = losses.iter().map(of);
        let all: Option<f64> = each.clone().sum();
        let mean = all.map(|sum| sum / losses.len() as f64);
        Arc::new(each.chain([mean]).collect::<Float64Array>())
    };
    let overall = names.len();
    let only_overall = |value: Option<f64>| (0..=overall).map(move |row| value.filter(|_| row == overall));
    let rows = groups.map(|groups| groups.sizes.iter().sum::<u64>());
    let mean = groups.zip(rows).map(|(groups, rows)| rows as f64 / groups.sizes.len() as f64);
    let squares = groups.map(|groups| groups.sizes.iter().map(|&size| i128::from(size).pow(2)).sum::<i128>());
    let squares = squares.map(|squares| i64::try_from(squares).unwrap_or(i64::MAX));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(names.iter().map(String::as_str).chain([OVERALL]).map(Some).collect::<StringArray>()),
        Arc::new(losses.iter().map(|measured| Some(measured.0 as i64)).chain([None]).collect::<Int64Array>()),
        column(|measured| measured.1.map(|loss| loss.lm)),
        column(|measured| measured.1.map(|loss| loss.em)),
        column(|measured| measured.1.map(|loss| loss.iloss)),
        column(|measured| measured.1.map(|loss| loss.ncp)),
        column(|measured| measured.2),
        Arc::new(only_overall(mean).collect::<Float64Array>()),
        Arc::new((0..=overall).map(|row| squares.filter(|_| row == overall)).collect::<Int64Array>()),
    ];
    Ok(RecordBatch::try_new(InformationLossExec::schema(), columns)?)
}
