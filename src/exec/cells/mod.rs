//! The operator that makes a release cell by cell. So a table may be larger than memory.
//!
//! Rows stand in the order of their cells, which the engine sees to: its sort spills. A cell is read, anonymized as if it was the whole
//! table, released and forgotten, and then comes the next one.

mod by_cell;
mod function;
mod places;
mod refusals;
mod sample;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Sender;

pub(in crate::exec) use by_cell::{ByCell, people_again};
pub(crate) use function::cell_function;
#[cfg(feature = "distributed")]
pub(crate) use places::place_function;
#[cfg(feature = "distributed")]
pub(in crate::exec) use places::{Places, PlacesExec};
pub(in crate::exec) use refusals::Refusals;

use self::places::with_place;
use super::inputs::{InputKinds, Inputs, Streams, facts};
use super::release_stream::{ReleaseSink, check_trees};
use super::whole_input::counted;
use super::work::Work;
use super::{AnonymizeJob, Job, Seed, WholeInputExec};
use crate::error::{Asked, Error};
use crate::methods::{AnyMethod, CellsBy};
use crate::microdata::Layout;
use crate::release::RowOrder;

/// Name of the column that the operator's inputs have behind their own.
const CELL: &str = "cell";

/// Number of cells of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CellCount {
    /// Number of cells, at least 1.
    pub cells: u32,
    /// Rows of the table, as far as they are known when it is planned.
    pub expected_rows: Option<usize>,
    /// Reason for the number in EXPLAIN, if nobody has said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Makes a release cell by cell.
///
/// ```text
/// CellsExec: method=m_invariant, m=10, .., view=public, cells=64
///   <microdata: as for AnonymizeExec, and the cell; in the order of cells>
///   <earlier releases: the columns of the method's kind of state, and the cell; in the order of cells> (optional)
///   <hierarchies>                                                          (optional)
///   <updates>                                                              (optional)
///   <counts of rows, and of identifiers that are NULL or repeated>         (optional)
///   <values of the whole table, of cells by place>                         (optional)
/// ```
///
/// One output partition. The cell of a row is `anonymize_cell(identifier, cells)`, the same for ever; for methods without state
/// within a column it is that of this column's value; for methods whose groups are of people who are close together, it is by place: the
/// table is looked at once before it is read. The memory of a cell is reserved before inputs are polled.
pub type CellsExec = WholeInputExec<Cells>;

/// A job, and in how many cells it is done.
#[derive(Debug)]
pub struct Cells {
    pub(in crate::exec) job: AnonymizeJob,
    pub(in crate::exec) count: CellCount,
    pub(in crate::exec) inputs: InputKinds,
    pub(in crate::exec) layout: Layout,
    pub(in crate::exec) schema: SchemaRef,
    /// Spread over a cluster: several tasks make the release at once, each its own cells.
    pub(in crate::exec) spread: bool,
}

impl CellsExec {
    /// Returns an operator over these inputs, which are hidden ([`HiddenExec`](crate::HiddenExec)) and get their cells here. `schema` lists the columns of
    /// the release that are wanted.
    ///
    /// # Errors
    /// When an input never ends, the columns of the microdata are not those of the job's roles, or the method has no cells.
    pub fn try_new(inputs: Inputs, job: AnonymizeJob, count: CellCount, schema: SchemaRef) -> Result<Self> {
        let layout = Layout::try_new(&inputs.microdata.schema(), &job.roles)
            .map_err(|error| error.in_function(job.method.name()))?;
        let inputs = in_cells(inputs, &job, &layout, false, count.cells)?;
        let (inputs, plans) = inputs.into_plans();
        Self::over(Arc::new(Cells { job, count, inputs, layout, schema, spread: false }), plans)
    }

    /// Returns the number of cells of the release.
    pub fn cells(&self) -> &CellCount {
        &self.the_job().count
    }
}

pub(crate) fn expected_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    statistics.ok()?.num_rows.get_value().copied()
}

/// Returns the inputs with the cell of each row behind the columns that they have. `remembered` is whether it is for a publication.
pub(super) fn in_cells(
    mut inputs: Inputs,
    job: &AnonymizeJob,
    layout: &Layout,
    remembered: bool,
    cells: u32,
) -> Result<Inputs> {
    match (job.method.cells_by(layout, remembered)?, &inputs.survey) {
        (CellsBy::Column(by), None) => {
            inputs.microdata = with_cell(inputs.microdata, by, cells)?;
            if let Some((kind, previous)) = inputs.previous {
                // Their first column is the identifier.
                inputs.previous = Some((kind, with_cell(previous, 0, cells)?));
            }
            Ok(inputs)
        }
        (CellsBy::Place, Some(_)) => with_place(inputs, job, layout, cells),
        _ => Err(Error::internal("a survey of cells that are no places").in_function(job.method.name())),
    }
}

fn with_cell(plan: Arc<dyn ExecutionPlan>, by: usize, cells: u32) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        (Arc::new(Column::new(field.name(), place)) as Arc<dyn PhysicalExpr>, field.name().clone())
    });
    let function = cell_function();
    let arguments: Vec<Arc<dyn PhysicalExpr>> = vec![
        Arc::new(Column::new(schema.field(by).name(), by)),
        Arc::new(Literal::new(ScalarValue::Int64(Some(i64::from(cells))))),
    ];
    let returned = Arc::new(Field::new(CELL, DataType::UInt32, false));
    let name = function.name().to_owned();
    let cell = ScalarFunctionExpr::new(&name, function, arguments, returned, Arc::new(ConfigOptions::default()));
    let columns: Vec<_> = columns.chain([(Arc::new(cell) as Arc<dyn PhysicalExpr>, CELL.to_owned())]).collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
}

/// Returns the order that an input with cells must have.
pub(super) fn by_cell(input: &Schema) -> Option<PhysicalSortExpr> {
    let place = input.fields().len().checked_sub(1)?;
    let options = SortOptions { descending: false, nulls_first: false };
    Some(PhysicalSortExpr::new(Arc::new(Column::new(input.field(place).name(), place)), options))
}

/// Draws the tags that stand in the numbers of groups in place of the cell.
pub(super) fn tags(seed: &Seed, cells: u32) -> Vec<u32> {
    let mut tags: Vec<u32> = (0..cells).collect();
    tags.shuffle(&mut seed.rng());
    tags
}

impl CellCount {
    /// Makes so many cells of a table of so many rows.
    pub fn new(cells: u32, expected_rows: Option<usize>) -> Self {
        Self { cells, expected_rows, reason: None }
    }

    /// Returns the same with a reason.
    #[must_use]
    pub fn because(self, reason: Option<String>) -> Self {
        Self { reason, ..self }
    }

    /// Returns the bytes that are reserved for a cell before anything is read: what a cell is expected to take, and never more than half of the pool.
    pub(super) fn reserved(&self, method: &AnyMethod, layout: &Layout, pool: &dyn MemoryPool) -> usize {
        let MemoryLimit::Finite(limit) = pool.memory_limit() else { return 0 };
        let half = limit / 2;
        // Cells are not of one size; and what stands in text columns is unknown.
        let cell = |rows: usize| bytes(method, layout, rows / self.cells as usize * 5 / 4);
        self.expected_rows.map_or(half, |rows| cell(rows).min(half))
    }
}

pub(crate) fn bytes(method: &AnyMethod, layout: &Layout, rows: usize) -> usize {
    // Codes exist twice while rows are put in order, and identifiers, too, with hashes and places.
    let codes =
        (layout.quasi.len() + layout.sensitive.iter().len() + layout.within.iter().len()) * 2 * size_of::<u32>();
    let identifiers = layout.identifier.as_ref().map_or(0, |id| {
        let width = id.data_type().primitive_width().unwrap_or(2 * size_of::<u128>());
        2 * width + size_of::<(u64, u32)>()
    });
    let state = if method.state().is_some() { 2 * identifiers } else { 0 };
    rows * (codes + identifiers + state) + method.as_method().working_bytes(rows, layout.quasi.len())
}

impl Job for Cells {
    fn operator(&self) -> &'static str {
        "CellsExec"
    }

    fn function(&self) -> &str {
        self.job.method.name()
    }

    fn argument(&self, place: usize) -> &'static str {
        self.inputs.argument(place, &self.job.method)
    }

    fn facts(&self) -> Result<Vec<String>, fmt::Error> {
        let mut facts = facts(&self.job.method, &self.layout)?;
        facts.push(format!("view={:?}", self.job.view).to_lowercase());
        let reason = self.count.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        facts.push(format!("cells={}{reason}", self.count.cells));
        Ok(facts)
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn input_order(&self, place: usize, input: &Schema) -> Option<PhysicalSortExpr> {
        if self.inputs.has_cells(place) { by_cell(input) } else { None }
    }

    fn is_spread(&self) -> bool {
        self.spread
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let inputs = self.inputs.streams(inputs, self.layout.clone())?;
        let mut work = Work::new("CellsExec", self.job.method.clone(), &self.layout, metrics, context);
        let floor = self.count.reserved(&self.job.method, &self.layout, context.memory_pool().as_ref());
        work.set_floor(floor).map_err(|error| in_a_cell(error, self.job.method.name(), self.count.cells))?;
        let baseline = work.metrics.baseline.clone();
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let running = Running {
            work: Arc::new(work),
            seed: self.job.seed.clone(),
            cells: self.count.cells,
            schema: Arc::clone(&self.schema),
            metrics: metrics.clone(),
            context: Arc::clone(context),
        };
        let output = builder.tx();
        builder.spawn(async move { Box::pin(running.run(inputs, output)).await });
        Ok(counted(Arc::clone(&self.schema), builder.build(), baseline))
    }
}

/// Execution of the operator.
struct Running {
    work: Arc<Work>,
    seed: Seed,
    cells: u32,
    schema: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
    context: Arc<TaskContext>,
}

impl Running {
    async fn run(self, inputs: Streams, output: Sender<Result<RecordBatch>>) -> Result<()> {
        let Self { work, seed, cells, schema, metrics, context } = self;
        let mut inputs = ByCell::try_new(inputs, cells, &work, &context).await?;
        let tags = tags(&seed, cells);
        let cells_released = MetricBuilder::new(&metrics).counter("cells_released", 0);
        let largest_cell = MetricBuilder::new(&metrics).gauge("largest_cell", 0);
        let batch_size = context.session_config().batch_size();
        let sink = Arc::new(ReleaseSink {
            schema: Arc::clone(&schema),
            order: RowOrder::Random,
            batch_size,
            output,
            teller: None,
        });
        let mut checked = false;
        let mut refusals = Refusals::of(cells);
        while let Some((cell, mut snapshot)) =
            inputs.next(&work).await.map_err(|error| in_a_cell(error, work.method.name(), cells))?
        {
            if !std::mem::replace(&mut checked, true) {
                check_trees(&mut snapshot.microdata, &schema).map_err(|error| error.in_function(work.method.name()))?;
            }
            largest_cell.set_max(snapshot.microdata.rows());
            let (to, tag) = (Arc::clone(&sink), tags.get(cell as usize).copied());
            let made = refusals.make(&work, snapshot, seed.rng_of_cell(cell), move |work, snapshot, rng, monitor| {
                to.publish(work, snapshot, rng, tag, monitor)
            });
            if made.await?.is_some() {
                cells_released.add(1);
            }
            if sink.output.is_closed() {
                return Ok(());
            }
        }
        refusals.check(work.method.name(), Asked::Call)
    }
}

/// Adds advice to an error of memory. Smaller cells may do where it does not suffice for a cell; fewer at a time may do where it does not suffice for sorts.
pub(super) fn in_a_cell(error: DataFusionError, function: &str, cells: u32) -> DataFusionError {
    let DataFusionError::ResourcesExhausted(text) = error.find_root() else { return error };
    if cells == 1 {
        return error;
    }
    let more = cells.saturating_mul(2);
    // The engine's error says no more of who asked than its name; some pools list others after it.
    let asked = text.split("with top memory consumers").next().unwrap_or_default();
    let sorts = match asked.contains("ExternalSorter") {
        true => "; so do fewer sorts at a time (SET datafusion.execution.target_partitions = 1)",
        false => "",
    };
    let text =
        format!("{text}\n{function}: a cell does not fit; smaller ones take less memory (cells => {more}){sorts}");
    DataFusionError::ResourcesExhausted(text)
}
