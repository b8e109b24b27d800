//! The top of what a worker runs for one of our operators: errors leave the worker without values of the data.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use crate::error::{AnonymizeError, without_values};
use crate::exec::{Origin, hide};

/// Passes rows on. Errors are told without values if it is known whose input this is, and in a way that survives the journey.
#[derive(Debug)]
pub(super) struct GuardExec {
    input: Arc<dyn ExecutionPlan>,
    guards: Guards,
}

/// Treatment of errors.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Guards {
    /// Origin of the input, if its errors are to be told without values.
    pub origin: Option<Arc<Origin>>,
    /// True if what is above is elsewhere.
    pub travels: bool,
}

impl GuardExec {
    /// Makes the node as the coordinator puts it into a plan.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, guards: Guards) -> Self {
        Self { input, guards }
    }

    /// Makes the node as a worker runs it, with the plan hidden below.
    /// Fails when a node of the plan cannot take its own children.
    pub(super) fn over(input: &Arc<dyn ExecutionPlan>, guards: Guards) -> Result<Self> {
        let input = match &guards.origin {
            Some(origin) => hide(input, origin)?,
            None => Arc::clone(input),
        };
        Ok(Self { input, guards })
    }

    pub(super) fn guards(&self) -> &Guards {
        &self.guards
    }
}

impl DisplayAs for GuardExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = self.guards.origin.as_ref().map(|origin| format!("{} of {}", origin.argument, origin.function));
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "GuardExec: {}", what.as_deref().unwrap_or("errors"))
            }
            DisplayFormatType::TreeRender => what.map_or(Ok(()), |what| writeln!(f, "{what}")),
        }
    }
}

impl ExecutionPlan for GuardExec {
    fn name(&self) -> &str {
        "GuardExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(input), None) => Ok(Arc::new(Self::new(input, self.guards.clone()))),
            _ => internal_err!("GuardExec has one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Guards { origin, travels } = self.guards.clone();
        let guarded = move |error: DataFusionError| {
            let error = match &origin {
                Some(origin) => without_values(error, &origin.function, &origin.argument, None),
                None => error,
            };
            if travels { for_the_journey(error) } else { error }
        };
        let rows = self.input.execute(partition, context).map_err(&guarded)?;
        let schema = rows.schema();
        let rows = rows.map(move |batch| batch.map_err(&guarded));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Mark of an error of ours while it travels: the engine sends errors of other crates as their text.
const TRAVELS: &str = "datafusion-anonymize: ";

/// Returns the error, so that what kind it is arrives with it.
fn for_the_journey(error: DataFusionError) -> DataFusionError {
    match AnonymizeError::of(&error).map(AnonymizeError::to_json) {
        Some(Ok(json)) => DataFusionError::Context(format!("{TRAVELS}{json}"), Box::new(error)),
        _ => error,
    }
}

/// Returns the error of ours that has travelled in another one.
pub(super) fn after_the_journey(error: &DataFusionError) -> Option<AnonymizeError> {
    match error {
        DataFusionError::Context(text, inner) => {
            let own = text.strip_prefix(TRAVELS).and_then(AnonymizeError::from_json);
            own.or_else(|| after_the_journey(inner))
        }
        DataFusionError::Shared(inner) => after_the_journey(inner),
        DataFusionError::Diagnostic(_, inner) => after_the_journey(inner),
        _ => None,
    }
}
