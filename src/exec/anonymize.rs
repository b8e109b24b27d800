//! The operator in a physical plan.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, EvaluationType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use serde::{Deserialize, Serialize};

use super::{Seed, run};
use crate::methods::Method;
use crate::microdata::Layout;
use crate::release::View;

/// What the operator does: plain data, so that a distributed engine can ship it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The method and its parameters.
    pub method: Method,
    /// Who the released rows are for.
    pub view: View,
    /// The randomness of this release.
    pub seed: Seed,
}

/// Anonymizes its input.
///
/// ```text
/// AnonymizeExec: method=m_invariant, m=10, .., quasi=[age, zip], sensitive=disease, view=public
///   <microdata: identifier, quasi-identifiers.., sensitive attribute>
///   <earlier private releases: identifier, signature>            (optional)
/// ```
///
/// A pipeline breaker with one output partition. The whole of both inputs is read, encoded as it arrives and charged to the
/// memory pool; the method then runs on blocking threads and rayon; batches of the release follow in random order.
/// Nothing above changes what is read below: the operator supports neither filter, nor limit, nor sort push-down, and its
/// projection is applied to the release.
#[derive(Debug, Clone)]
pub struct AnonymizeExec {
    input: Arc<dyn ExecutionPlan>,
    previous: Option<Arc<dyn ExecutionPlan>>,
    job: Job,
    layout: Layout,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl AnonymizeExec {
    /// An operator over microdata (columns in the order of a [`Layout`]) and earlier private releases. `schema` lists the
    /// columns of the release that are wanted.
    ///
    /// # Errors
    /// When the input has no such layout or never ends.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        previous: Option<Arc<dyn ExecutionPlan>>,
        job: Job,
        schema: SchemaRef,
    ) -> Result<Self> {
        let name = job.method.name();
        let layout = Layout::try_from_schema(&input.schema()).map_err(|error| error.in_function(name))?;
        for plan in std::iter::once(&input).chain(&previous) {
            if plan.boundedness().is_unbounded() {
                return plan_err!("{name}: the input never ends; a release needs a finite table");
            }
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        )
        .with_evaluation_type(EvaluationType::Eager);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { input, previous, job, layout, metrics, properties: Arc::new(properties) })
    }

    /// What the operator does.
    pub fn job(&self) -> &Job {
        &self.job
    }
}

impl DisplayAs for AnonymizeExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quasi = self.layout.quasi.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        let mut facts = vec![("method", self.job.method.name().to_owned())];
        let parameters = self.job.method.parameters().map_err(|_| fmt::Error)?;
        for (name, value) in &parameters {
            facts.push((name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        facts.push(("quasi", format!("[{quasi}]")));
        facts.push(("sensitive", self.layout.sensitive.name().clone()));
        facts.push(("view", format!("{:?}", self.job.view).to_lowercase()));
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let facts: Vec<_> = facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "AnonymizeExec: {}", facts.join(", "))
            }
            DisplayFormatType::TreeRender => facts.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}")),
        }
    }
}

impl ExecutionPlan for AnonymizeExec {
    fn name(&self) -> &'static str {
        "AnonymizeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        std::iter::once(&self.input).chain(&self.previous).collect()
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
            return internal_err!("AnonymizeExec cannot gain or lose an input");
        }
        let mut children = children.into_iter();
        let (Some(input), previous, None) = (children.next(), children.next(), children.next()) else {
            return internal_err!("AnonymizeExec has one or two inputs");
        };
        Ok(Arc::new(Self::try_new(input, previous, self.job.clone(), self.schema())?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("AnonymizeExec has one partition, not {partition}");
        }
        let input = self.input.execute(0, Arc::clone(&context))?;
        let previous = self.previous.as_ref().map(|plan| plan.execute(0, Arc::clone(&context))).transpose()?;
        let inputs = run::Inputs { layout: self.layout.clone(), microdata: input, previous };
        run::run(inputs, self.job.clone(), self.schema(), &self.metrics, &context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
