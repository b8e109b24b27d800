//! Cells by place: a table is looked at once to find out where cuts are, and read again to say of each row in which cell it is.

use std::fmt;
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, ListArray, RecordBatch, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::CrossJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, Time};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use parking_lot::Mutex;
use rand::Rng;
use rand::seq::SliceRandom;
use tokio::sync::OnceCell;

use super::sample::{SAMPLED, Sampled, Sampler};
use super::{AnonymizeJob, CELL};
use crate::error::Error;
use crate::exec::inputs::{Inputs, Survey};
use crate::exec::whole_input::{counted, spawn_compute};
use crate::exec::{Job, WholeInputExec};
use crate::methods::mondrian::{PlacePrinciple, PlaceSample, places};
use crate::methods::{AnyMethod, Monitor};
use crate::microdata::{
    ColumnEncoder, Encoded, HashKey, Hierarchies, Layout, Order, PlaceCut, PlaceRouter, PlaceTree, given_order,
    held_type,
};
use crate::scalars::{self, Kept};

/// Name of the column of the tree, and of the function that reads it.
const PLACES: &str = "places";
const NAME: &str = "anonymize_place";

/// Finds out where the cells of a table are: one row, with a tree of cuts, and for each quasi-identifier the values of a sample.
///
/// ```text
/// PlacesExec: cells=64, quasi=[age, zip]
///   <microdata>
///   <hierarchies>  (optional)
/// ```
pub(in crate::exec) type PlacesExec = WholeInputExec<Places>;

#[derive(Debug)]
pub(in crate::exec) struct Places {
    pub(in crate::exec) job: AnonymizeJob,
    layout: Layout,
    pub(in crate::exec) cells: u32,
    pub(in crate::exec) hierarchies: bool,
    found: Mutex<Option<Shared>>,
}

/// Survey that nodes with one job in one process share, and its execution.
#[derive(Debug)]
struct Shared(Weak<TaskContext>, Arc<OnceCell<RecordBatch>>);

impl Places {
    pub(in crate::exec) fn new(job: AnonymizeJob, layout: Layout, cells: u32, hierarchies: bool) -> Self {
        Self { job, layout, cells, hierarchies, found: Mutex::new(None) }
    }

    fn found(&self, context: &Arc<TaskContext>) -> Arc<OnceCell<RecordBatch>> {
        let mut found = self.found.lock();
        if let Some(Shared(of, known)) = &*found
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(context))
        {
            return Arc::clone(known);
        }
        let new = Arc::default();
        *found = Some(Shared(Arc::downgrade(context), Arc::clone(&new)));
        new
    }
}

/// Returns the inputs with the cell of each microdata row behind the columns, by place.
/// Fails when the survey is of another table.
pub(super) fn with_place(mut inputs: Inputs, job: &AnonymizeJob, layout: &Layout, cells: u32) -> Result<Inputs> {
    let Some(surveys) = inputs.survey.take() else { return internal_err!("places that nobody looks for") };
    let schema = inputs.microdata.schema();
    if surveys.iter().any(|survey| survey.microdata.schema() != schema) {
        return internal_err!("places of another table");
    }
    let hierarchies = surveys.iter().all(|survey| survey.hierarchies.is_some());
    let places = Arc::new(Places::new(job.clone(), layout.clone(), cells, hierarchies));
    let node = |survey: Survey| -> Result<Arc<dyn ExecutionPlan>> {
        let inputs = [survey.microdata].into_iter().chain(survey.hierarchies).map(one_partition);
        Ok(Arc::new(PlacesExec::over(Arc::clone(&places), inputs.collect())?))
    };
    let [of_rows, of_cells] = surveys;
    inputs.places = Some(node(of_cells)?);
    let column = |name: &str, place: usize| Arc::new(Column::new(name, place)) as Arc<dyn PhysicalExpr>;
    let tree = vec![(column(PLACES, 0), PLACES.to_owned())];
    let tree: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(tree, node(of_rows)?)?);
    // One row, which the engine gives to every batch of rows.
    let joined: Arc<dyn ExecutionPlan> = Arc::new(CrossJoinExec::new(tree, inputs.microdata));
    let first = layout.identifier.iter().len();
    let quasi = layout.quasi.iter().enumerate().map(|(place, field)| column(field.name(), 1 + first + place));
    let arguments: Vec<Arc<dyn PhysicalExpr>> = std::iter::once(column(PLACES, 0)).chain(quasi).collect();
    let returned = Arc::new(Field::new(CELL, DataType::UInt32, false));
    let cell = ScalarFunctionExpr::new(NAME, place_function(), arguments, returned, Arc::new(ConfigOptions::default()));
    let own = schema.fields().iter().enumerate();
    let own = own.map(|(place, field)| (column(field.name(), 1 + place), field.name().clone()));
    let columns: Vec<_> = own.chain([(Arc::new(cell) as Arc<dyn PhysicalExpr>, CELL.to_owned())]).collect();
    inputs.microdata = Arc::new(ProjectionExec::try_new(columns, joined)?);
    Ok(inputs)
}

/// Returns the values of quasi-identifiers that were found.
/// Fails when nothing was.
pub(super) fn values_of(places: &[RecordBatch], quasi: usize) -> Result<Vec<ArrayRef>> {
    let row = places.iter().find(|batch| batch.num_rows() > 0);
    let lists = row.map(|row| row.columns()[1..].iter().map(|list| Some(list.as_list_opt::<i32>()?.value(0))));
    match lists.and_then(Iterator::collect::<Option<Vec<ArrayRef>>>) {
        Some(values) if values.len() == quasi => Ok(values),
        _ => internal_err!("places without values"),
    }
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
        let tree = Field::new(PLACES, DataType::BinaryView, false);
        let values = self.layout.quasi.iter().map(|field| {
            let item = Field::new_list_field(held_type(field.data_type()), true);
            Field::new_list(field.name(), item, false)
        });
        Arc::new(Schema::new(std::iter::once(tree).chain(values).collect::<Vec<_>>()))
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut inputs = inputs.into_iter();
        let (Some(rows), trees) = (inputs.next(), inputs.next()) else {
            return internal_err!("places of no table");
        };
        if trees.is_some() != self.hierarchies {
            return internal_err!("hierarchies that are not expected");
        }
        let metrics = BaselineMetrics::new(metrics, 0);
        let mut rng = self.job.seed.rng_of_cell(u32::MAX);
        let key = rng.random();
        // Rows leave cell by cell: in an order that has nothing to do with where they lie.
        let mut numbers: Vec<u32> = (0..self.cells).collect();
        numbers.shuffle(&mut rng);
        let survey = Surveyor {
            layout: self.layout.clone(),
            method: self.job.method.clone(),
            numbers,
            schema: self.schema(),
            key,
            held: MemoryConsumer::new("PlacesExec").register(context.memory_pool()),
            elapsed: metrics.elapsed_compute().clone(),
        };
        let found = self.found(context);
        let row = futures::stream::once(async move {
            let row = found.get_or_try_init(|| Box::pin(survey.look(rows, trees))).await?;
            Ok(row.clone())
        });
        Ok(counted(self.schema(), row, metrics))
    }
}

struct Surveyor {
    layout: Layout,
    method: AnyMethod,
    /// Numbers of the cells, by place.
    numbers: Vec<u32>,
    schema: SchemaRef,
    key: HashKey,
    held: MemoryReservation,
    elapsed: Time,
}

impl Surveyor {
    async fn look(
        self,
        mut rows: SendableRecordBatchStream,
        trees: Option<SendableRecordBatchStream>,
    ) -> Result<RecordBatch> {
        let named = |error: Error| error.in_function(self.method.name());
        let columns = self.columns().map_err(named)?;
        let schema = Arc::new(rows.schema().project(&columns)?);
        let mut sampler = Sampler::try_new(schema, self.key, SAMPLED).map_err(named)?;
        while let Some(batch) = rows.next().await {
            let batch = batch?.project(&columns)?;
            let _timer = self.elapsed.timer();
            sampler.append(&batch).map_err(named)?;
            self.held.try_resize(sampler.size())?;
        }
        drop(rows);
        let mut hierarchies = None;
        if let Some(mut trees) = trees {
            let names = self.layout.quasi.iter().map(|field| field.name());
            let all = hierarchies.insert(Hierarchies::new(names));
            while let Some(batch) = trees.next().await {
                all.append(&batch?).map_err(named)?;
            }
        }
        // While the tree is made, the sample exists as codes as well.
        self.held.try_resize(3 * sampler.size())?;
        let function = self.method.name().to_owned();
        spawn_compute(function, Monitor::default(), move |_| {
            let _timer = self.elapsed.timer();
            self.found(sampler.finish()?, hierarchies)
        })
        .await
    }

    /// Returns the places of the columns that cuts may depend on: the quasi-identifiers, and with `l` the sensitive column. Rows that differ in other
    /// columns alone are one row of the sample, so that cells with `k` alone follow from quasi-identifiers.
    fn columns(&self) -> crate::error::Result<Vec<usize>> {
        let layout = &self.layout;
        let first = layout.identifier.iter().len();
        let end = first + layout.quasi.len();
        let sensitive = if self.principle()?.l.is_some() { layout.sensitive.iter().len() } else { 0 };
        Ok((first..end + sensitive).collect())
    }

    fn principle(&self) -> crate::error::Result<PlacePrinciple> {
        self.method.as_method().place_principle().ok_or_else(|| Error::internal("places of a method without any"))
    }

    fn found(&self, sampled: Sampled, hierarchies: Option<Hierarchies>) -> crate::error::Result<RecordBatch> {
        let (layout, principle) = (&self.layout, self.principle()?);
        let hierarchies = hierarchies.map(Hierarchies::finish).transpose()?;
        let column = |field: &FieldRef, hierarchies: Option<&Hierarchies>| -> crate::error::Result<Encoded> {
            let values = sampled.rows.column_by_name(field.name());
            let values = values.ok_or_else(|| Error::internal("a sample of other columns"))?;
            let mut encoder = ColumnEncoder::try_new(FieldRef::clone(field))?;
            encoder.append(values)?;
            encoder.finish(Order::of(field.name(), hierarchies, given_order(field)?.as_deref()))
        };
        let quasi = layout.quasi.iter().map(|field| column(field, hierarchies.as_ref()));
        let quasi = quasi.collect::<crate::error::Result<Vec<_>>>()?;
        let sensitive = match (&layout.sensitive, principle.l) {
            (Some(field), Some(_)) => Some(column(field, None)?),
            _ => None,
        };
        let in_sample: usize = sampled.weights.iter().map(|weight| *weight as usize).sum();
        // Rows of the sample that stand for the rows of a group.
        let least = principle.least.saturating_mul(in_sample).div_ceil(sampled.of.max(1));
        let sample = PlaceSample { quasi, sensitive, weights: sampled.weights };
        let mut cuts = places(&sample, PlacePrinciple { least, ..principle }, self.numbers.len() as u32)?;
        for cut in &mut cuts {
            if let PlaceCut::Cell(cell) = cut {
                *cell = self.numbers[*cell as usize];
            }
        }
        let attributes: Vec<_> = sample.quasi.into_iter().map(|column| column.attribute).collect();
        let tree = PlaceTree::try_new(&cuts, &attributes)?.to_bytes()?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(BinaryViewArray::from_iter_values([tree.as_slice()]))];
        for (attribute, field) in attributes.iter().zip(&self.schema.fields()[1..]) {
            let DataType::List(item) = field.data_type() else {
                return Err(Error::internal("values that are no list"));
            };
            // That somewhere else it is NULL is nothing to a cell where it is not.
            let null = usize::from(attribute.domain.has_null());
            let values = attribute.domain.values().slice(null, attribute.domain.len() - null);
            let offsets = OffsetBuffer::from_lengths([values.len()]);
            columns.push(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, None)?));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// Returns `anonymize_place(places, quasi..)`: the cell of a row. Not a function of SQL: only plans have it. Workers of a cluster know it by its name.
pub(crate) fn place_function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(CellByPlace::default()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CellByPlace {
    signature: Signature,
    /// Of the tree that was read last: all rows of a release have the same.
    known: Kept<Arc<Known>>,
}

struct Known {
    tree: Vec<u8>,
    quasi: Vec<FieldRef>,
    router: PlaceRouter,
}

impl Default for CellByPlace {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable), known: Kept::default() }
    }
}

impl ScalarUDFImpl for CellByPlace {
    scalars::declared!(self: NAME => DataType::UInt32);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((tree, columns)) = args.args.split_first() else { return internal_err!("places without a tree") };
        if args.number_rows == 0 {
            return Ok(ColumnarValue::Array(Arc::new(UInt32Array::from(Vec::<u32>::new()))));
        }
        // One tree for all rows, and not a copy for each.
        let trees = match tree {
            ColumnarValue::Scalar(tree) => tree.to_array()?,
            ColumnarValue::Array(trees) => Arc::clone(trees),
        };
        let Some(trees) = trees.as_binary_view_opt() else { return internal_err!("places of another type") };
        let columns = scalars::columns(columns, args.number_rows)?;
        let quasi = args.arg_fields.get(1..).unwrap_or_default();
        let tree = trees.value(0);
        let made = || {
            let router = PlaceTree::from_bytes(tree)
                .and_then(|tree| PlaceRouter::try_new(tree, quasi.iter().map(AsRef::as_ref)));
            let router = router.map_err(|error| error.in_function(NAME))?;
            Ok(Arc::new(Known { tree: tree.to_vec(), quasi: quasi.to_vec(), router }))
        };
        let known = self.known.get_or_make(|known| known.tree == tree && known.quasi == quasi, made)?;
        let cells = known.router.cells(&columns, args.number_rows).map_err(|error| error.in_function(NAME))?;
        Ok(ColumnarValue::Array(Arc::new(cells)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let field: FieldRef = Arc::new(Field::new("c1", DataType::Int32, true));
        let mut encoder = ColumnEncoder::try_new(field).unwrap();
        let ages: ArrayRef = Arc::new(datafusion::arrow::array::Int32Array::from(vec![10, 20, 30]));
        encoder.append(&ages).unwrap();
        let attribute = encoder.finish(Order::ByValue).unwrap().attribute;
        let cuts = [PlaceCut::Cut { attribute: 0, last: 1, below: 1, above: 2 }, PlaceCut::Cell(3), PlaceCut::Cell(7)];
        let tree = PlaceTree::try_new(&cuts, &[attribute]).unwrap().to_bytes().unwrap();
        let tree = ScalarValue::BinaryView(Some(tree));
        for age in [15, 25] {
            constants_are_columns(&place_function(), &[tree.clone(), ScalarValue::from(age)], &[]);
        }
    }
}
