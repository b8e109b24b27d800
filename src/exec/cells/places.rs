//! Cells by place: a table is looked at once to find out where cuts are, and read again to say of each row in which cell it is.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, RecordBatch, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::CrossJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use rand::Rng;

use super::sample::{SAMPLED, Sampled, Sampler};
use super::{AnonymizeJob, CELL};
use crate::error::Error;
use crate::exec::inputs::Survey;
use crate::exec::whole_input::{counted, spawn_compute};
use crate::exec::{Job, WholeInputExec};
use crate::methods::mondrian::{PlacePrinciple, PlaceSample, places};
use crate::methods::{AnyMethod, Monitor};
use crate::microdata::{ColumnEncoder, Encoded, Hierarchies, Layout, Order, PlaceRouter, PlaceTree, given_order};

/// Name of the column of the tree, and of the function that reads it.
const PLACES: &str = "places";
const NAME: &str = "anonymize_place";

/// Finds out where the cells of a table are: one row, with a tree of cuts.
///
/// ```text
/// PlacesExec: cells=64, quasi=[age, zip]
///   <microdata>
///   <hierarchies>  (optional)
/// ```
pub(super) type PlacesExec = WholeInputExec<Places>;

/// The job of finding cells.
#[derive(Debug)]
pub(super) struct Places {
    job: AnonymizeJob,
    layout: Layout,
    cells: u32,
    hierarchies: bool,
}

/// The microdata with the cell of each row behind its columns, by place.
///
/// # Errors
/// When the survey is of another table.
pub(super) fn with_place(
    microdata: Arc<dyn ExecutionPlan>,
    survey: Survey,
    job: &AnonymizeJob,
    layout: &Layout,
    cells: u32,
) -> Result<Arc<dyn ExecutionPlan>> {
    if survey.microdata.schema() != microdata.schema() {
        return internal_err!("places of another table");
    }
    let hierarchies = survey.hierarchies.is_some();
    let inputs = [survey.microdata].into_iter().chain(survey.hierarchies).map(one_partition);
    let places = Places { job: job.clone(), layout: layout.clone(), cells, hierarchies };
    let places: Arc<dyn ExecutionPlan> = Arc::new(PlacesExec::over(Arc::new(places), inputs.collect())?);
    let schema = microdata.schema();
    // One row, which the engine gives to every batch of rows.
    let joined: Arc<dyn ExecutionPlan> = Arc::new(CrossJoinExec::new(places, microdata));
    let column = |name: &str, place: usize| Arc::new(Column::new(name, place)) as Arc<dyn PhysicalExpr>;
    let first = layout.identifier.iter().len();
    let quasi = layout.quasi.iter().enumerate().map(|(place, field)| column(field.name(), 1 + first + place));
    let arguments: Vec<Arc<dyn PhysicalExpr>> = std::iter::once(column(PLACES, 0)).chain(quasi).collect();
    let returned = Arc::new(Field::new(CELL, DataType::UInt32, false));
    let function = Arc::new(ScalarUDF::new_from_impl(CellByPlace::new(layout.quasi.clone())));
    let cell = ScalarFunctionExpr::new(NAME, function, arguments, returned, Arc::new(ConfigOptions::default()));
    let own = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(place, field)| (column(field.name(), 1 + place), field.name().clone()));
    let columns: Vec<_> = own.chain([(Arc::new(cell) as Arc<dyn PhysicalExpr>, CELL.to_owned())]).collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, joined)?))
}

fn one_partition(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

impl Job for Places {
    fn operator(&self) -> &'static str {
        "PlacesExec"
    }

    fn function(&self) -> &str {
        self.job.method.name()
    }

    fn argument(&self, place: usize) -> &'static str {
        if place == 0 { "the input" } else { "hierarchies" }
    }

    fn facts(&self) -> Result<Vec<String>, fmt::Error> {
        let quasi: Vec<&str> = self.layout.quasi.iter().map(|field| field.name().as_str()).collect();
        Ok(vec![format!("cells={}", self.cells), format!("quasi=[{}]", quasi.join(", "))])
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new(PLACES, DataType::BinaryView, false)]))
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut inputs = inputs.into_iter();
        let (Some(mut rows), mut trees) = (inputs.next(), inputs.next()) else {
            return internal_err!("places of no table");
        };
        let (layout, method, cells) = (self.layout.clone(), self.job.method.clone(), self.cells);
        if trees.is_some() != self.hierarchies {
            return internal_err!("hierarchies that are not expected");
        }
        let key = self.job.seed.rng_of_cell(u32::MAX).random();
        let held = MemoryConsumer::new("PlacesExec").register(context.memory_pool());
        let metrics = BaselineMetrics::new(metrics, 0);
        let elapsed = metrics.elapsed_compute().clone();
        let schema = self.schema();
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), 1);
        let output = builder.tx();
        builder.spawn(async move {
            let named = |error: Error| error.in_function(method.name());
            let mut sampler = Sampler::try_new(rows.schema(), key, SAMPLED).map_err(named)?;
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                let _timer = elapsed.timer();
                sampler.append(&batch).map_err(named)?;
                held.try_resize(sampler.size())?;
            }
            drop(rows);
            let mut hierarchies =
                trees.is_some().then(|| Hierarchies::new(layout.quasi.iter().map(|field| field.name())));
            if let (Some(trees), Some(hierarchies)) = (&mut trees, &mut hierarchies) {
                while let Some(batch) = trees.next().await {
                    hierarchies.append(&batch?).map_err(named)?;
                }
            }
            // While the tree is made, the sample exists as codes as well.
            held.try_resize(3 * sampler.size())?;
            let function = method.name().to_owned();
            let tree = move |_: &Monitor| {
                let _timer = elapsed.timer();
                tree(sampler.finish()?, hierarchies, &layout, &method, cells)
            };
            let tree = spawn_compute(function, Monitor::default(), tree).await?;
            let row: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([tree.as_slice()]));
            let _ = output.send(Ok(RecordBatch::try_new(schema, vec![row])?)).await;
            Ok(())
        });
        Ok(counted(self.schema(), builder.build(), metrics))
    }
}

/// The tree of a sample, as bytes.
fn tree(
    sampled: Sampled,
    hierarchies: Option<Hierarchies>,
    layout: &Layout,
    method: &AnyMethod,
    cells: u32,
) -> crate::error::Result<Vec<u8>> {
    let hierarchies = hierarchies.map(Hierarchies::finish).transpose()?;
    let Some(l) = method.place_diversity() else { return Err(Error::internal("places of a method without any")) };
    let column = |field: &FieldRef, hierarchies: Option<&Hierarchies>| -> crate::error::Result<Encoded> {
        let values = sampled.rows.column_by_name(field.name());
        let values = values.ok_or_else(|| Error::internal("a sample of other columns"))?;
        let mut encoder = ColumnEncoder::try_new(FieldRef::clone(field))?;
        encoder.append(values)?;
        encoder.finish(Order::of(field.name(), hierarchies, given_order(field)?.as_deref()))
    };
    let quasi = layout.quasi.iter().map(|field| column(field, hierarchies.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let sensitive = match (&layout.sensitive, l) {
        (Some(field), Some(_)) => Some(column(field, None)?),
        _ => None,
    };
    let in_sample: usize = sampled.weights.iter().map(|weight| *weight as usize).sum();
    // Rows of the sample that stand for the rows of a group.
    let least = method.least_rows().saturating_mul(in_sample).div_ceil(sampled.of.max(1));
    let sample = PlaceSample { quasi, sensitive, weights: sampled.weights };
    let cuts = places(&sample, PlacePrinciple { least, l }, cells)?;
    let attributes: Vec<_> = sample.quasi.into_iter().map(|column| column.attribute).collect();
    PlaceTree::try_new(&cuts, &attributes)?.to_bytes()
}

/// `anonymize_place(places, quasi..)`: the cell of a row. Not a function of SQL: only plans have it.
struct CellByPlace {
    signature: Signature,
    quasi: Vec<FieldRef>,
    /// The tree that was read last: all rows have the same.
    router: Mutex<Option<(Vec<u8>, Arc<PlaceRouter>)>>,
}

impl CellByPlace {
    fn new(quasi: Vec<FieldRef>) -> Self {
        let signature = Signature::any(1 + quasi.len(), Volatility::Immutable);
        Self { signature, quasi, router: Mutex::new(None) }
    }

    fn router(&self, tree: &[u8]) -> crate::error::Result<Arc<PlaceRouter>> {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        match &*router {
            Some((of, known)) if of == tree => Ok(Arc::clone(known)),
            _ => {
                let fields = self.quasi.iter().map(AsRef::as_ref);
                let read = Arc::new(PlaceRouter::try_new(PlaceTree::from_bytes(tree)?, fields)?);
                *router = Some((tree.to_vec(), Arc::clone(&read)));
                Ok(read)
            }
        }
    }
}

impl fmt::Debug for CellByPlace {
    /// Without the tree, which has values of the data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellByPlace").field("quasi", &self.quasi).finish_non_exhaustive()
    }
}

impl PartialEq for CellByPlace {
    fn eq(&self, other: &Self) -> bool {
        self.quasi == other.quasi
    }
}

impl Eq for CellByPlace {}

impl Hash for CellByPlace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.quasi.hash(state);
    }
}

impl ScalarUDFImpl for CellByPlace {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some((trees, columns)) = arrays.split_first() else { return internal_err!("places without a tree") };
        let Some(trees) = trees.as_binary_view_opt() else { return internal_err!("places of another type") };
        if trees.is_empty() {
            return Ok(ColumnarValue::Array(Arc::new(UInt32Array::from(Vec::<u32>::new()))));
        }
        let cells = self.router(trees.value(0)).and_then(|router| router.cells(columns, args.number_rows));
        Ok(ColumnarValue::Array(Arc::new(cells.map_err(|error| error.in_function(NAME))?)))
    }
}
