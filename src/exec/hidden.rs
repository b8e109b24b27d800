//! Inputs of operators, shown without the data in them.
//!
//! The engine puts values of the data into its errors (a failing cast prints what it failed on), into the statistics that EXPLAIN
//! prints (smallest and greatest values of a column), and into filters that it makes while it runs (the range of a join's keys). So
//! every plan that one of our operators reads from is wrapped, node by node, by [`hide`]: it runs as it would, and looks as it did
//! before it ran, with numbers of rows and nothing else of its statistics.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::metrics::{Metric, MetricsSet};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use super::casts::Casts;
use super::files::{Files, with_every_value};
use crate::error::{failed_cast, is_conversion, without_values};

/// Origin of a plan, for errors: the call whose input it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Name of the function.
    pub function: String,
    /// The argument, as in "the input" or "argument previous".
    pub argument: String,
    /// Names that the query has for tables and files, to name files as written.
    pub names: Vec<String>,
}

/// Hides the data that a plan would show. What is hidden already stays as it is.
///
/// A node that refuses hidden children is hidden as a leaf, with all that is below it inside.
/// Fails when a node of the plan cannot take its own children.
pub(crate) fn hide(plan: &Arc<dyn ExecutionPlan>, origin: &Arc<Origin>) -> Result<Arc<dyn ExecutionPlan>> {
    if is_hidden(plan) {
        return Ok(Arc::clone(plan));
    }
    hide_node(plan, origin, true)
}

/// Returns true if nothing of a plan is to be seen: it is hidden, below nodes that move rows and look into none.
fn is_hidden(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if HiddenExec::of(plan).is_some() {
        return true;
    }
    (brings_rows(plan.as_ref()) || moves_rows(plan.as_ref())) && plan.children().into_iter().all(is_hidden)
}

/// Returns true if a node moves rows and looks into none.
pub(crate) fn moves_rows(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortPreservingMergeExec>()
        // With a limit it makes a filter, of values.
        || plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none())
}

/// Returns true if rows come from elsewhere here, on a worker of a cluster: the engine must find the node, and where they come from they are hidden.
fn brings_rows(plan: &dyn ExecutionPlan) -> bool {
    #[cfg(feature = "distributed")]
    return datafusion_distributed::NetworkBoundaryExt::is_network_boundary(plan);
    #[cfg(not(feature = "distributed"))]
    return {
        let _ = plan;
        false
    };
}

fn hide_node(plan: &Arc<dyn ExecutionPlan>, origin: &Arc<Origin>, root: bool) -> Result<Arc<dyn ExecutionPlan>> {
    if HiddenExec::of(plan).is_some() || brings_rows(plan.as_ref()) {
        return Ok(Arc::clone(plan));
    }
    let children = plan.children();
    let shown = Shown::of(plan.as_ref());
    let (mut whole, mut files) = (false, None);
    let inner = if children.is_empty() {
        files = Files::of(plan, &origin.names);
        with_every_value(plan)
    } else {
        let children = children.into_iter().map(|child| hide_node(child, origin, false));
        let children = children.collect::<Result<Vec<_>>>()?;
        // A scan of a Delta table with deletion vectors looks at the types of its children and takes only those that it knows.
        match replace_children_if_necessary(Arc::clone(plan), children) {
            Ok(inner) => inner,
            Err(_) => {
                whole = true;
                files = files_below(plan, &origin.names);
                Arc::clone(plan).transform_up(|node| Ok(changed(&node, with_every_value(&node))))?.data
            }
        }
    };
    let (origin, properties) = (Arc::clone(origin), Arc::clone(plan.properties()));
    let casts = Casts::of(plan.as_ref());
    Ok(Arc::new(HiddenExec { inner, origin, root, open: false, whole, files, casts, shown, properties }))
}

/// Returns the files of the first scan below a node.
fn files_below(plan: &Arc<dyn ExecutionPlan>, names: &[String]) -> Option<Files> {
    Files::of(plan, names).or_else(|| plan.children().into_iter().find_map(|child| files_below(child, names)))
}

fn changed(before: &Arc<dyn ExecutionPlan>, after: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    let same = Arc::ptr_eq(before, &after);
    Transformed::new_transformed(after, !same)
}

/// A node of a plan that an operator reads from. It has the name and the looks of the node in it, runs it and has its metrics;
/// statistics of columns are unknown, and errors have no values.
///
/// Optimizer rules take it for a node that they do not know: what is in it was optimized when it was planned. An engine that
/// ships plans sends what [`revealed`](Self::revealed) returns, and operators that are made anew from it hide it again.
#[derive(Clone)]
pub struct HiddenExec {
    inner: Arc<dyn ExecutionPlan>,
    origin: Arc<Origin>,
    /// True if the operator reads from this node.
    root: bool,
    /// True if searchers for a node find the one in here. A planner that distributes plans must.
    open: bool,
    /// True if the node in here keeps its children to itself.
    whole: bool,
    files: Option<Files>,
    casts: Option<Casts>,
    shown: Shown,
    properties: Arc<PlanProperties>,
}

impl HiddenExec {
    /// Returns the plan as what hides another one, if it is. (Asked by its type, an open one says what is in it.)
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Self> {
        (plan.as_ref() as &dyn Any).downcast_ref()
    }

    /// Returns true if an operator reads from it. So its errors are told without values.
    #[cfg(feature = "distributed")]
    pub(crate) fn is_root(&self) -> bool {
        self.root
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Returns the same node, which tells the type of the node in it.
    #[cfg(feature = "distributed")]
    pub(crate) fn opened(&self) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { open: true, ..self.clone() })
    }

    /// Returns the plan that is hidden, whole.
    ///
    /// # Errors
    /// When a node of the plan cannot take its own children.
    pub fn revealed(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let reveal = |child: &Arc<dyn ExecutionPlan>| match Self::of(child) {
            Some(hidden) => hidden.revealed(),
            None => Ok(Arc::clone(child)),
        };
        let children = self.children().into_iter().map(reveal).collect::<Result<Vec<_>>>()?;
        match children.is_empty() {
            true => Ok(Arc::clone(&self.inner)),
            false => replace_children_if_necessary(Arc::clone(&self.inner), children),
        }
    }

    fn around(&self, inner: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let properties = match self.children().is_empty() {
            true => Arc::clone(&self.properties),
            false => Arc::clone(inner.properties()),
        };
        Arc::new(Self { inner, properties, ..self.clone() })
    }

    /// Keeps only numbers of rows.
    fn of_rows(&self, statistics: &Statistics) -> Arc<Statistics> {
        let unknown = Statistics::new_unknown(self.schema().as_ref());
        Arc::new(Statistics { num_rows: statistics.num_rows, ..unknown })
    }
}

/// Display of a node before it ran.
#[derive(Clone)]
struct Shown {
    default: Arc<str>,
    verbose: Arc<str>,
    tree: Arc<str>,
}

impl Shown {
    fn of(plan: &dyn ExecutionPlan) -> Self {
        if let Some(text) = constants(plan) {
            let text: Arc<str> = text.into();
            return Self { default: Arc::clone(&text), verbose: Arc::clone(&text), tree: "".into() };
        }
        let text = |t: DisplayFormatType| -> Arc<str> { Looks(plan, t).to_string().into() };
        Self {
            default: text(DisplayFormatType::Default),
            verbose: text(DisplayFormatType::Verbose),
            tree: text(DisplayFormatType::TreeRender),
        }
    }
}

/// Names aggregates that are constants. They can be answered from statistics while a query is planned: `max(age)` is a constant then, and a value of the data.
fn constants(plan: &dyn ExecutionPlan) -> Option<String> {
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let revealed = |plan: &Arc<dyn ExecutionPlan>| match HiddenExec::of(plan) {
        Some(hidden) => hidden.inner.is::<PlaceholderRowExec>(),
        None => plan.is::<PlaceholderRowExec>(),
    };
    if !revealed(projection.input()) {
        return None;
    }
    let names: Vec<String> =
        plan.schema().fields().iter().map(|field| format!("constant as {}", field.name())).collect();
    Some(format!("ProjectionExec: expr=[{}]", names.join(", ")))
}

struct Looks<'a>(&'a dyn ExecutionPlan, DisplayFormatType);

impl fmt::Display for Looks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(self.1, f)
    }
}

impl fmt::Debug for HiddenExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HiddenExec").field("name", &self.inner.name()).finish_non_exhaustive()
    }
}

impl DisplayAs for HiddenExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match t {
            DisplayFormatType::Default => &self.shown.default,
            DisplayFormatType::Verbose => &self.shown.verbose,
            DisplayFormatType::TreeRender => &self.shown.tree,
        })
    }
}

impl ExecutionPlan for HiddenExec {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        self.open.then_some(self.inner.as_ref())
    }

    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        if self.whole { Vec::new() } else { self.inner.children() }
    }

    // What is below was planned as it must be. Without requirements nothing is put between these nodes any more, and no sort is pushed
    // through a node whose columns the rule does not know.

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::UnspecifiedDistribution; self.children().len()])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![None; self.children().len()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.dynamic_expressions_produced()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.whole {
            return Ok(self);
        }
        let inner = Arc::clone(&self.inner).replace_children(children, options)?;
        Ok(self.around(inner))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = Arc::clone(&self.inner).reset_state()?;
        Ok(self.around(inner))
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn ExecutionPlan>> {
        self.inner.with_new_state(state).map(|inner| self.around(inner))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stream = self.inner.execute(partition, context);
        if !self.root && self.files.is_none() && self.casts.is_none() {
            return stream;
        }
        let (origin, files, casts) = (Arc::clone(&self.origin), self.files.clone(), self.casts.clone());
        let hidden = move |error| {
            if let Some(casts) = casts.as_ref().filter(|_| is_conversion(&error)) {
                return failed_cast(&origin.function, &origin.argument, &casts.columns(), casts.cure().as_deref());
            }
            let file = files.as_ref().map(Files::to_string);
            without_values(error, &origin.function, &origin.argument, file.as_deref())
        };
        let stream = stream.map_err(&hidden)?;
        let rows = stream.map(move |batch| batch.map_err(&hidden));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        // Labels can be expressions, and these constants that are values of the data.
        let mut unlabelled = MetricsSet::new();
        for metric in self.inner.metrics()?.iter() {
            let copy = Metric::new(metric.value().clone(), metric.partition()).with_type(metric.metric_type());
            let copy = match metric.metric_category() {
                Some(category) => copy.with_category(category),
                None => copy,
            };
            unlabelled.push(Arc::new(copy));
        }
        Some(unlabelled)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        if self.whole { Vec::new() } else { self.inner.child_stats_requests(partition) }
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        // Not even an error is worth showing for an estimate.
        let statistics = match self.whole {
            true => StatisticsContext::new().compute(self.inner.as_ref(), args),
            false => self.inner.statistics_from_inputs(input_stats, args),
        };
        Ok(statistics.map_or_else(
            |_| Arc::new(Statistics::new_unknown(self.schema().as_ref())),
            |statistics| self.of_rows(&statistics),
        ))
    }
}
