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

use super::work::Streams;
use super::{Origin, Seed, hide, run};
use crate::methods::Method;
use crate::microdata::{Layout, Roles};
use crate::release::View;

/// What the operator does: plain data, so that a distributed engine can ship it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The method and its parameters.
    pub method: Method,
    /// Which columns are what.
    pub roles: Roles,
    /// Who the released rows are for.
    pub view: View,
    /// The randomness of this release.
    pub seed: Seed,
}

/// Anonymizes its input.
///
/// ```text
/// AnonymizeExec: method=m_invariant, m=10, .., quasi=[age, zip], sensitive=disease, view=public
///   <microdata: identifier, quasi-identifiers.., sensitive attribute, within; as far as there are any>
///   <earlier private releases: identifier, signature[, release]> (optional)
///   <hierarchies: attribute, leaf, level1, level2, ..>           (optional)
///   <updates: from_value, to_value[, probability]>               (optional)
/// ```
///
/// A pipeline breaker with one output partition. The whole of all inputs is read, encoded as it arrives and charged to the
/// memory pool; the method then runs on blocking threads and rayon; batches of the release follow in random order.
/// Nothing above changes what is read below: the operator supports neither filter, nor limit, nor sort push-down, and its
/// projection is applied to the release.
#[derive(Debug, Clone)]
pub struct AnonymizeExec {
    inputs: Inputs,
    job: Job,
    layout: Layout,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

/// What the operator reads.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The columns with roles, in the order of [`Roles::columns`].
    pub microdata: Arc<dyn ExecutionPlan>,
    /// Identifier and signature of earlier private releases, and their numbers where later signatures count.
    pub previous: Option<Arc<dyn ExecutionPlan>>,
    /// Attribute, leaf and levels, as texts.
    pub hierarchies: Option<Arc<dyn ExecutionPlan>>,
    /// Which sensitive values can become which: the value, what it can become, and the probability if that is known.
    pub updates: Option<Arc<dyn ExecutionPlan>>,
}

impl Inputs {
    pub(super) fn plans(&self) -> impl Iterator<Item = &Arc<dyn ExecutionPlan>> {
        std::iter::once(&self.microdata).chain(&self.previous).chain(&self.hierarchies).chain(&self.updates)
    }

    /// The same inputs from other plans, in the order of [`plans`](Self::plans).
    pub(super) fn replaced(&self, plans: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        if plans.len() != self.plans().count() {
            return internal_err!("an operator cannot gain or lose an input");
        }
        let mut plans = plans.into_iter();
        let mut next = |there: bool| if there { plans.next() } else { None };
        let Some(microdata) = next(true) else { return internal_err!("an operator without an input") };
        let previous = next(self.previous.is_some());
        let hierarchies = next(self.hierarchies.is_some());
        Ok(Self { microdata, previous, hierarchies, updates: next(self.updates.is_some()) })
    }

    /// The same inputs without the data that they would show.
    pub(super) fn hidden(self, function: &str) -> Result<Self> {
        let hidden = |plan: &Arc<dyn ExecutionPlan>, argument: &str| {
            hide(
                plan,
                &Arc::new(Origin { function: function.to_owned(), argument: argument.to_owned(), names: Vec::new() }),
            )
        };
        let if_given =
            |plan: Option<Arc<dyn ExecutionPlan>>, argument: &str| plan.map(|plan| hidden(&plan, argument)).transpose();
        Ok(Self {
            microdata: hidden(&self.microdata, "the input")?,
            previous: if_given(self.previous, "previous")?,
            hierarchies: if_given(self.hierarchies, "hierarchies")?,
            updates: if_given(self.updates, "updates")?,
        })
    }

    /// Starts all of them.
    pub(super) fn start(&self, layout: Layout, context: &Arc<TaskContext>) -> Result<Streams> {
        let start = |plan: &Arc<dyn ExecutionPlan>| match plan.output_partitioning().partition_count() {
            1 => plan.execute(0, Arc::clone(context)),
            // A ledger that is read in part would be a breach.
            count => internal_err!("an input with {count} partitions instead of one"),
        };
        Ok(Streams {
            layout,
            microdata: start(&self.microdata)?,
            previous: self.previous.as_ref().map(start).transpose()?,
            hierarchies: self.hierarchies.as_ref().map(start).transpose()?,
            updates: self.updates.as_ref().map(start).transpose()?,
        })
    }
}

impl AnonymizeExec {
    /// An operator over these inputs, which are [hidden](hide). `schema` lists the columns of the release that are wanted.
    ///
    /// # Errors
    /// When an input never ends, or the columns of the microdata are not those of the job's roles.
    pub fn try_new(inputs: Inputs, job: Job, schema: SchemaRef) -> Result<Self> {
        let name = job.method.name();
        let inputs = inputs.hidden(name)?;
        let layout =
            Layout::try_new(&inputs.microdata.schema(), &job.roles).map_err(|error| error.in_function(name))?;
        for plan in inputs.plans() {
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
        Ok(Self { inputs, job, layout, metrics, properties: Arc::new(properties) })
    }

    /// What the operator does.
    pub fn job(&self) -> &Job {
        &self.job
    }
}

impl DisplayAs for AnonymizeExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show("AnonymizeExec", Vec::new(), &self.job.method, &self.layout, t, f)?;
        let view = format!("{:?}", self.job.view).to_lowercase();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, ", view={view}"),
            DisplayFormatType::TreeRender => writeln!(f, "view={view}"),
        }
    }
}

/// How an operator that runs a method shows itself: facts of its own, then the method and the columns.
pub(super) fn show(
    operator: &str,
    own: Vec<(&str, String)>,
    method: &Method,
    layout: &Layout,
    t: DisplayFormatType,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let quasi = layout.quasi.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
    let mut facts = own;
    facts.push(("method", method.name().to_owned()));
    let parameters = method.parameters().map_err(|_| fmt::Error)?;
    for (name, value) in &parameters {
        facts.push((name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    facts.push(("quasi", format!("[{quasi}]")));
    facts.extend(layout.sensitive.iter().map(|field| ("sensitive", field.name().clone())));
    facts.extend(layout.within.iter().map(|field| ("within", field.name().clone())));
    match t {
        DisplayFormatType::Default | DisplayFormatType::Verbose => {
            let facts: Vec<_> = facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
            write!(f, "{operator}: {}", facts.join(", "))
        }
        DisplayFormatType::TreeRender => facts.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}")),
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
        self.inputs.plans().collect()
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
        let inputs = self.inputs.replaced(children)?;
        Ok(Arc::new(Self::try_new(inputs, self.job.clone(), self.schema())?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("AnonymizeExec has one partition, not {partition}");
        }
        let inputs = self.inputs.start(self.layout.clone(), &context)?;
        run::run(inputs, self.job.clone(), self.schema(), &self.metrics, &context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
