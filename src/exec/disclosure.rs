//! The operator that infers what a reader of releases can.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use rayon::prelude::*;
use tokio::sync::mpsc::Sender;

use super::work::without_values;
use crate::error::Error;
use crate::risk::{Disclosure, EvidenceBuilder, Findings, KnownColumns, ReleaseColumns, Sets, Strength, Wanted};

const FUNCTION: &str = "disclosure";

/// Column of the result: the number of the release.
const RELEASE: &str = "release";
/// Column of the result: what the person can have by the release alone.
const CANDIDATES: &str = "candidates";
/// Column of the result: what is left in view of all releases.
const REMAINING: &str = "remaining";
/// Column of the result: how many are left.
const REMAINING_COUNT: &str = "remaining_count";
/// Column of the result: probability of the true value.
const RISK: &str = "risk";
/// Column of the result: whether one is left.
const VULNERABLE: &str = "vulnerable";

/// Infers from releases what everybody's sensitive value can be.
///
/// ```text
/// DisclosureExec: releases=2, strength=cover, quasi=[age, zip], sensitive=disease
///   <what is known: identifier, quasi-identifiers.., true sensitive value, number of the release; as far as there are any>
///   <release 1: lo and hi of each quasi-identifier, sensitive value or list of values and counts, group, identifier>
///   <release 2>
///   <updates: from, to, probability>                             (optional)
///   <hierarchies: attribute, leaf, level1, level2, ..>           (optional)
/// ```
///
/// Reads all inputs, then sends its rows in pieces of some thousand people as they are asked for.
#[derive(Debug, Clone)]
pub struct DisclosureExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    question: Question,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

/// What is asked: plain data.
#[derive(Debug, Clone)]
pub struct Question {
    /// What the reader sees.
    pub strength: Strength,
    /// Identifier.
    pub id: FieldRef,
    /// Quasi-identifiers, with the types that they have in all inputs.
    pub quasi: Vec<FieldRef>,
    /// Sensitive attribute.
    pub sensitive: FieldRef,
    /// Columns of what is known.
    pub known: KnownColumns,
    /// Columns of each release.
    pub releases: Vec<ReleaseColumns>,
    /// Whether there is an update relation.
    pub updates: bool,
    /// Whether there are hierarchies.
    pub hierarchies: bool,
}

impl Question {
    /// Columns of the result.
    pub fn schema(&self) -> SchemaRef {
        let item = Arc::new(Field::new_list_field(self.sensitive.data_type().clone(), true));
        let list = |name: &str| Field::new(name, DataType::List(Arc::clone(&item)), false);
        Arc::new(Schema::new(vec![
            Field::new(self.id.name(), self.id.data_type().clone(), false),
            Field::new(RELEASE, DataType::Int64, false),
            list(CANDIDATES),
            list(REMAINING),
            Field::new(REMAINING_COUNT, DataType::Int64, false),
            Field::new(RISK, DataType::Float64, true),
            Field::new(VULNERABLE, DataType::Boolean, false),
        ]))
    }
}

impl DisclosureExec {
    /// An operator over what is known, the releases, and as far as there are any, updates and hierarchies. `schema` lists the
    /// wanted columns of the question's schema.
    ///
    /// # Errors
    /// When an input never ends, or there are more or fewer than the question says.
    pub fn try_new(inputs: Vec<Arc<dyn ExecutionPlan>>, question: Question, schema: SchemaRef) -> Result<Self> {
        if inputs.iter().any(|plan| plan.boundedness().is_unbounded()) {
            return plan_err!("{FUNCTION}: an input never ends; releases are finite tables");
        }
        let expected = 1 + question.releases.len() + usize::from(question.updates) + usize::from(question.hierarchies);
        if inputs.len() != expected {
            return internal_err!("{FUNCTION} with {} inputs instead of {expected}", inputs.len());
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { inputs, question, metrics, properties: Arc::new(properties) })
    }
}

impl DisplayAs for DisclosureExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { strength, quasi, sensitive, releases, .. } = &self.question;
        let quasi = quasi.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        let strength = format!("{strength:?}").to_lowercase();
        let (releases, sensitive) = (releases.len(), sensitive.name());
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "DisclosureExec: releases={releases}, strength={strength}, quasi=[{quasi}], sensitive={sensitive}"
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "releases={releases}\nstrength={strength}\nquasi=[{quasi}]\nsensitive={sensitive}")
            }
        }
    }
}

impl ExecutionPlan for DisclosureExec {
    fn name(&self) -> &'static str {
        "DisclosureExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.inputs.len()])
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
        Ok(Arc::new(Self::try_new(children, self.question.clone(), self.schema())?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("DisclosureExec has one partition, not {partition}");
        }
        let start = |plan: &Arc<dyn ExecutionPlan>| match plan.output_partitioning().partition_count() {
            1 => plan.execute(0, Arc::clone(&context)),
            count => internal_err!("an input with {count} partitions instead of one"),
        };
        let streams = self.inputs.iter().map(start).collect::<Result<Vec<_>>>()?;
        let schema = self.schema();
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), 2);
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let answer = Answer {
            question: self.question.clone(),
            schema: Arc::clone(&schema),
            metrics: metrics.clone(),
            memory: MemoryConsumer::new("DisclosureExec").register(context.memory_pool()),
            output: builder.tx(),
        };
        builder.spawn(answer.give(streams));
        let rows = builder.build().inspect(move |batch| {
            if let Ok(batch) = batch {
                metrics.record_output(batch.num_rows());
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// One execution.
struct Answer {
    question: Question,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    memory: MemoryReservation,
    output: Sender<Result<RecordBatch>>,
}

impl Answer {
    async fn give(self, streams: Vec<SendableRecordBatchStream>) -> Result<()> {
        let named = |error: Error| error.in_function(FUNCTION);
        let Question { id, quasi, sensitive, known, releases, updates, .. } = &self.question;
        let builder = EvidenceBuilder::try_new(Arc::clone(id), quasi.clone(), Arc::clone(sensitive));
        let mut builder = builder.map_err(named)?;
        for (place, mut stream) in streams.into_iter().enumerate() {
            // What is known, releases, updates, hierarchies.
            let release = place.checked_sub(1).and_then(|number| releases.get(number));
            if let Some(columns) = release {
                builder.begin_release(*columns);
            }
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(without_values)?;
                let _timer = self.metrics.elapsed_compute().timer();
                let appended = match (place, release) {
                    (0, _) => builder.append_known(&batch, *known),
                    (_, Some(_)) => builder.append_release(&batch),
                    (place, None) if *updates && place == releases.len() + 1 => builder.append_updates(&batch),
                    _ => builder.append_hierarchies(&batch),
                };
                appended.map_err(named)?;
                self.memory.try_resize(builder.size())?;
            }
        }
        // Put in order, in other vectors.
        self.memory.try_resize(2 * builder.size())?;
        let work = move || self.infer(builder).map_err(named);
        SpawnedTask::spawn_blocking(work).join_unwind().await.unwrap_or_else(|_| Err(named(Error::Cancelled)))
    }

    /// Everything that computes, on a thread that may block.
    fn infer(&self, builder: EvidenceBuilder) -> crate::error::Result<()> {
        let timer = self.metrics.elapsed_compute().timer();
        let disclosure = Disclosure::try_new(builder.finish()?, self.question.strength)?;
        drop(timer);
        let lists = self.schema.fields().iter().any(|field| matches!(field.data_type(), DataType::List(_)));
        let wanted = if lists { Wanted::Values } else { Wanted::Sizes };
        let pieces: Vec<usize> = (0..disclosure.pieces()).collect();
        for round in pieces.chunks(rayon::current_num_threads()) {
            let timer = self.metrics.elapsed_compute().timer();
            let batches = round.par_iter().map(|&piece| self.batch(&disclosure, &disclosure.piece(piece, wanted)));
            let batches = batches.collect::<crate::error::Result<Vec<_>>>()?;
            drop(timer);
            for batch in batches {
                if self.output.blocking_send(Ok(batch)).is_err() {
                    return Ok(()); // Nobody wants the rest.
                }
            }
        }
        Ok(())
    }

    fn batch(&self, disclosure: &Disclosure, findings: &Findings) -> crate::error::Result<RecordBatch> {
        let evidence = disclosure.evidence();
        let left = || (0..findings.remaining.len()).map(|row| findings.remaining.size(row));
        let columns = self.schema.fields().iter().map(|field| -> crate::error::Result<ArrayRef> {
            Ok(match field.name().as_str() {
                RELEASE => Arc::new(Int64Array::from_iter_values(findings.releases.iter().map(|&n| n as i64))),
                CANDIDATES => lists(&findings.candidates, evidence.values(), field.data_type())?,
                REMAINING => lists(&findings.remaining, evidence.values(), field.data_type())?,
                REMAINING_COUNT => Arc::new(Int64Array::from_iter_values(left().map(|count| count as i64))),
                RISK => Arc::new(findings.risk.iter().copied().collect::<Float64Array>()),
                VULNERABLE => Arc::new(left().map(|count| Some(count == 1)).collect::<BooleanArray>()),
                _ => cast(&evidence.ids(&UInt32Array::from(findings.people.clone()))?, field.data_type())?,
            })
        });
        let columns = columns.collect::<crate::error::Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(findings.people.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// Sets of values as lists.
fn lists(sets: &Sets, values: &ArrayRef, data_type: &DataType) -> crate::error::Result<ArrayRef> {
    let DataType::List(item) = data_type else { return Err(Error::internal("a set that is not a list")) };
    let values = take(values, &UInt32Array::from(sets.values.clone()), None)?;
    let values = if values.data_type() == item.data_type() { values } else { cast(&values, item.data_type())? };
    let lengths = (0..sets.len()).map(|place| sets.size(place));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, None)?))
}
