//! Looks at the stages of a plan before the engine sends them. No operator of ours is in several tasks, unless rows
//! come to the task of their cell; errors come without values; and nothing is in them that has no encoding.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};
use datafusion_distributed::{
    BroadcastExec, DistributedCodec, DistributedLeafExec, NetworkBoundary, NetworkBoundaryExt, NetworkBroadcastExec,
    NetworkShuffleExec, Stage,
};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::DeduplicatingProtoConverter;

use super::guard::{GuardExec, Guards};
use crate::exec::{HiddenExec, Origin, as_operator, hide, moves_rows};

/// A node that workers cannot have, by its name.
#[derive(Debug)]
pub(super) struct Unshippable(pub String);

/// Returns the plan with guards at the top of its stages, ready to be run; or what keeps it from being sent.
/// Fails when an operator would see a part of its input, which is a bug.
pub(super) fn guarded(
    plan: &Arc<dyn ExecutionPlan>,
    session: &dyn Session,
) -> Result<Result<Arc<dyn ExecutionPlan>, Unshippable>> {
    let mut look = Look { context: session.task_ctx(), unshippable: None };
    let plan = look.at(plan, Place { tasks: Some(1), origin: None })?;
    Ok(look.unshippable.map_or(Ok(plan), Err))
}

#[derive(Clone)]
struct Place {
    /// Tasks of its stage; `None` where the engine decides for each child of a union.
    tasks: Option<usize>,
    origin: Option<Arc<Origin>>,
}

struct Look {
    context: Arc<TaskContext>,
    unshippable: Option<Unshippable>,
}

impl Look {
    fn at(&mut self, plan: &Arc<dyn ExecutionPlan>, place: Place) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(boundary) = plan.as_network_boundary() {
            let Stage::Local(stage) = boundary.input_stage() else { return Ok(Arc::clone(plan)) };
            let below = Place { tasks: Some(stage.tasks), ..place };
            let inner = self.at(&stage.plan, below.clone())?;
            // Whatever of ours is below on other workers: what kind of error it is must survive each hop.
            let inner = match below.origin.is_some() || has_operator(&inner) {
                true => below_head(&inner, below.origin.as_ref())?,
                false => inner,
            };
            self.try_to_ship(&inner);
            let mut stage = stage.clone();
            stage.plan = inner;
            return Ok(boundary.with_input_stage(Stage::Local(stage))?);
        }
        let leaf = plan.downcast_ref::<DistributedLeafExec>();
        if !is_divisible(leaf.map_or(plan, DistributedLeafExec::original).as_ref()) {
            self.unshippable.get_or_insert_with(|| Unshippable("a scan of these files".to_owned()));
        }
        if let Some(leaf) = leaf {
            return match &place.origin {
                Some(origin) => hidden_variants(leaf, origin),
                None => Ok(Arc::clone(plan)),
            };
        }
        // Each of several tasks takes its own first rows of what is given to all.
        let limited = plan.downcast_ref::<CoalescePartitionsExec>().filter(|all| all.fetch().is_some());
        if place.tasks != Some(1) && limited.is_some_and(|all| all.input().is::<NetworkBroadcastExec>()) {
            self.unshippable
                .get_or_insert_with(|| Unshippable("a LIMIT without an order on one side of a join".to_owned()));
        }
        let operator = as_operator(plan.as_ref());
        if let Some(operator) = operator {
            check(plan, operator.is_spread(), place.tasks)?;
        }
        let isolated = plan.name() == "ChildrenIsolatorUnionExec";
        let children = plan.children().into_iter().enumerate().map(|(number, child)| {
            let mut place = place.clone();
            if isolated {
                place.tasks = None;
            }
            if let Some(operator) = operator {
                let (function, argument) = (operator.function().to_owned(), operator.argument(number).to_owned());
                let unnamed = || Arc::new(Origin { function, argument, names: Vec::new() });
                place.origin = Some(origin_of(child).unwrap_or_else(unnamed));
            }
            let origin = operator.and_then(|_| place.origin.clone());
            let child = self.at(child, place)?;
            Ok(match origin {
                // What hid the input may be gone: the engine puts other joins in place of some.
                Some(origin) => with_root(&child, &origin)?,
                None => child,
            })
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        match children.is_empty() {
            true => Ok(Arc::clone(plan)),
            false => Arc::clone(plan)
                .replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute)),
        }
    }

    /// Encodes a stage and reads it as a worker with this session's functions would.
    fn try_to_ship(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if self.unshippable.is_none() && !self.arrives(plan) {
            let mut worst = plan;
            // What is to blame is as far below as there is a node that does not arrive.
            while let Some(child) = worst.children().into_iter().find(|child| !self.arrives(child)) {
                worst = child;
            }
            self.unshippable = Some(Unshippable(worst.name().to_owned()));
        }
    }

    fn arrives(&self, plan: &Arc<dyn ExecutionPlan>) -> bool {
        // Each task gets its own.
        if let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>() {
            return leaf.variants().first().is_none_or(|variant| self.arrives(variant));
        }
        let specialized = first_task(plan);
        let Ok(plan) = specialized else { return false };
        let codec = DistributedCodec::new_combined_with_user(self.context.session_config());
        let bytes = physical_plan_to_bytes_with_proto_converter(plan, &codec, &DeduplicatingProtoConverter::default());
        bytes.is_ok_and(|bytes| {
            let converter = DeduplicatingProtoConverter::default();
            physical_plan_from_bytes_with_proto_converter(&bytes, &self.context, &codec, &converter).is_ok()
        })
    }
}

/// Returns true if files are read on workers as they are here. The engine divides them by bytes without asking, and of some formats not all that there is
/// to know has an encoding (compression and line ends of CSV, arrays of JSON).
fn is_divisible(plan: &dyn ExecutionPlan) -> bool {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let Some(scan) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) else { return true };
    let csv = (scan.file_source.as_ref() as &dyn Any).downcast_ref::<CsvSource>();
    let plain = csv.map_or_else(|| scan.file_source.file_type() == "parquet", |csv| csv.terminator().is_none());
    // Where partitions are declared to have rows of their own, the engine deals files out as if they had not.
    let free = scan.output_partitioning.is_none();
    plain && free && !scan.file_compression_type.is_compressed() && scan.file_source.supports_repartitioning()
}

/// Returns the plan of its first task, without the stages that are sent elsewhere.
fn first_task(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>() {
        let own = leaf.variants().first();
        return Ok(Arc::clone(own.unwrap_or(plan)));
    }
    let children = plan.children();
    if children.is_empty() {
        return Ok(Arc::clone(plan));
    }
    let children = children.into_iter().map(first_task).collect::<Result<Vec<_>>>()?;
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Returns the input of an operator with a root that tells errors without values. The root is below nodes that move rows.
fn with_root(plan: &Arc<dyn ExecutionPlan>, origin: &Arc<Origin>) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is_network_boundary() || HiddenExec::of(plan).is_some_and(HiddenExec::is_root) {
        return Ok(Arc::clone(plan));
    }
    let moves = moves_rows(plan.as_ref()) || plan.is::<BroadcastExec>();
    if HiddenExec::of(plan).is_some() || !moves {
        let guards = Guards { origin: Some(Arc::clone(origin)), travels: false };
        return Ok(Arc::new(GuardExec::new(Arc::clone(plan), guards)));
    }
    let children = plan.children().into_iter().map(|child| with_root(child, origin)).collect::<Result<Vec<_>>>()?;
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Returns a scan that the engine has divided among tasks, with all parts hidden.
fn hidden_variants(leaf: &DistributedLeafExec, origin: &Arc<Origin>) -> Result<Arc<dyn ExecutionPlan>> {
    let variants = leaf.variants().iter().map(|variant| {
        let hidden = hide(variant, origin)?;
        Ok(HiddenExec::of(&hidden).map_or_else(|| Arc::clone(&hidden), HiddenExec::opened))
    });
    let variants = variants.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(DistributedLeafExec::try_new(Arc::clone(leaf.original()), variants)?))
}

/// # Errors
/// When an operator is in several tasks and rows do not come to the task of their cell.
fn check(plan: &Arc<dyn ExecutionPlan>, spread: bool, tasks: Option<usize>) -> Result<()> {
    if !spread {
        return match tasks {
            Some(2..) => internal_err!("{} in several tasks, over a part of its input each", plan.name()),
            _ => Ok(()),
        };
    }
    if tasks == Some(1) {
        return Ok(());
    }
    let whole = plan.children().into_iter().all(|input| is_exchanged(input) || is_given_to_all(input));
    let microdata = plan.children().first().is_some_and(|input| is_exchanged(input));
    match whole && microdata {
        true => Ok(()),
        false => internal_err!("{} in several tasks, and rows do not come to the task of their cell", plan.name()),
    }
}

/// Returns true if rows come to the task of the cell in their last column.
fn is_exchanged(input: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(sort) = input.downcast_ref::<SortExec>() else { return false };
    let Some(exchange) = sort.input().downcast_ref::<NetworkShuffleExec>() else { return false };
    let cell = exchange.schema().fields().len().saturating_sub(1);
    let by_cell = |partitioning: &Partitioning| match partitioning {
        Partitioning::Hash(by, _) => {
            matches!(by.as_slice(), [one] if one.downcast_ref::<Column>().is_some_and(|column| column.index() == cell))
        }
        _ => false,
    };
    let Stage::Local(stage) = NetworkBoundary::input_stage(exchange) else { return false };
    stage.plan.is::<RepartitionExec>() && by_cell(stage.plan.output_partitioning())
}

fn is_given_to_all(input: &Arc<dyn ExecutionPlan>) -> bool {
    input.downcast_ref::<CoalescePartitionsExec>().is_some_and(|all| all.input().is::<NetworkBroadcastExec>())
}

fn has_operator(plan: &Arc<dyn ExecutionPlan>) -> bool {
    as_operator(plan.as_ref()).is_some() || plan.children().into_iter().any(has_operator)
}

/// Returns the origin that a plan was hidden for. It has the query's names of its files.
fn origin_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<Origin>> {
    match HiddenExec::of(plan) {
        Some(hidden) => Some(Arc::clone(hidden.origin())),
        None => plan.children().into_iter().find_map(origin_of),
    }
}

/// Returns the stage with a guard in it; the engine looks for what exchanges rows at the top.
fn below_head(plan: &Arc<dyn ExecutionPlan>, origin: Option<&Arc<Origin>>) -> Result<Arc<dyn ExecutionPlan>> {
    let guard = |plan: &Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
        Arc::new(GuardExec::new(Arc::clone(plan), Guards { origin: origin.cloned(), travels: true }))
    };
    if !plan.is::<RepartitionExec>() && !plan.is::<BroadcastExec>() {
        return Ok(guard(plan));
    }
    let children = plan.children().into_iter().map(guard).collect();
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
