//! Planning for a cluster: the plan that one process would run, opened so that the engine sees what it reads, cut into stages by the engine,
//! and looked at again before it is run.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, plan_err};
use datafusion::config::{ConfigOptions, ExecutionOptions};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_distributed::{DistributedConfig, DistributedExec, display_plan_ascii};

use super::finish_after_write::finish_after_write;
use super::stages::{self, Unshippable};
use crate::exec::{HiddenExec, Notices, PlanFuture, as_operator, boxed_method, spread};

type Planner = Arc<dyn QueryPlanner + Send + Sync>;

#[derive(Debug)]
pub(super) struct Local;

impl Local {
    /// Returns the host's own, or DataFusion's.
    pub(super) fn of(host: Option<Planner>) -> Planner {
        host.unwrap_or_else(|| Arc::new(Self))
    }
}

#[async_trait]
impl QueryPlanner for Local {
    boxed_method! {<'l, 's> fn create_physical_plan(
        &self,
        logical: &'l LogicalPlan,
        session: &'s dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.planned(logical, session)
    }}
}

impl Local {
    fn planned<'a>(&'a self, logical: &'a LogicalPlan, session: &'a dyn Session) -> PlanFuture<'a> {
        Box::pin(async move { DefaultPhysicalPlanner::default().create_physical_plan(logical, session).await })
    }
}

/// Planner for the engine: it plans for one process with everything open, and lets several tasks make releases in cells.
#[derive(Debug)]
pub(super) struct Opened(pub Planner);

#[async_trait]
impl QueryPlanner for Opened {
    boxed_method! {<'l, 's> fn create_physical_plan(
        &self,
        logical: &'l LogicalPlan,
        session: &'s dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.planned(logical, session)
    }}
}

impl Opened {
    fn planned<'a>(&'a self, logical: &'a LogicalPlan, session: &'a dyn Session) -> PlanFuture<'a> {
        Box::pin(async move { opened(self.0.create_physical_plan(logical, session).await?) })
    }
}

fn opened(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().map(|child| opened(Arc::clone(child)));
    let children = children.collect::<Result<Vec<_>>>()?;
    if let Some(operator) = as_operator(plan.as_ref()) {
        let open = operator.opened(children)?;
        return Ok(spread(&open)?.unwrap_or(open));
    }
    let plan = match HiddenExec::of(&plan) {
        Some(hidden) => hidden.opened(),
        None => plan,
    };
    match children.is_empty() {
        true => Ok(plan),
        false => plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute)),
    }
}

#[derive(Debug)]
pub(super) struct ClusterPlanner {
    /// For one process.
    pub local: Planner,
    /// The engine's, around [`Opened`].
    pub distributed: Planner,
}

#[async_trait]
impl QueryPlanner for ClusterPlanner {
    boxed_method! {<'l, 's> fn create_physical_plan(
        &self,
        logical: &'l LogicalPlan,
        session: &'s dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.planned(logical, session)
    }}
}

impl ClusterPlanner {
    fn planned<'a>(&'a self, logical: &'a LogicalPlan, session: &'a dyn Session) -> PlanFuture<'a> {
        Box::pin(async move {
            if let LogicalPlan::Explain(explain) = logical {
                let local = self.local.create_physical_plan(logical, session).await?;
                if !explain.logical_optimization_succeeded {
                    return Ok(local);
                }
                let plan = self.plan(&explain.plan, session).await?;
                return Ok(explained(&local, plan.as_ref()).unwrap_or(local));
            }
            self.plan(logical, session).await
        })
    }
}

impl ClusterPlanner {
    async fn plan(&self, logical: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.distributed.create_physical_plan(logical, session).await?;
        let ours = plan.exists(|node| Ok(as_operator(node.as_ref()).is_some()))?;
        if !plan.exists(|node| Ok(node.is::<DistributedExec>()))? {
            // Nothing to distribute. Ours are as in one process, and closed.
            return match ours {
                true => self.local.create_physical_plan(logical, session).await,
                false => Ok(plan),
            };
        }
        if DistributedConfig::from_session_config(session.config())?.dynamic_task_count {
            // Stages are cut while the plan runs, where nobody looks at them again.
            return match ours {
                true => plan_err!(
                    "releases are not made with numbers of tasks that are found while a plan runs; SET distributed.dynamic_task_count = false"
                ),
                false => Ok(plan),
            };
        }
        if !plan.is::<DistributedExec>() && publishes(&plan) {
            // EXPLAIN ANALYZE waits for the metrics of workers; one that is lost by then would fail what was published.
            return self.local.create_physical_plan(logical, session).await;
        }
        let guarded = match unsent(session.config_options()) {
            None => stages::guarded(&plan, session)?,
            Some(setting) => Err(Unshippable(setting.to_owned())),
        };
        match guarded {
            Ok(plan) => Ok(finish_after_write(plan)),
            Err(Unshippable(node)) => {
                let notices = session.config().get_extension::<Notices>();
                if let Some(notices) = notices {
                    notices
                        .tell(&format!("{node} cannot be sent to workers, so the statement runs on the coordinator"));
                }
                self.local.create_physical_plan(logical, session).await
            }
        }
    }
}

/// Returns a setting by which functions compute other values than with the workers' default.
fn unsent(options: &ConfigOptions) -> Option<&'static str> {
    let default = ExecutionOptions::default();
    if options.execution.time_zone != default.time_zone {
        return Some("setting datafusion.execution.time_zone");
    }
    (options.execution.enable_ansi_mode != default.enable_ansi_mode)
        .then_some("setting datafusion.execution.enable_ansi_mode")
}

fn publishes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    #[cfg(feature = "publication")]
    return plan.is::<crate::exec::PublishExec>() || plan.children().into_iter().any(publishes);
    #[cfg(not(feature = "publication"))]
    return {
        let _ = plan;
        false
    };
}

/// Returns the text of EXPLAIN for a distributed plan, in place of the local plan.
fn explained(local: &Arc<dyn ExecutionPlan>, plan: &dyn ExecutionPlan) -> Option<Arc<dyn ExecutionPlan>> {
    let explain = local.downcast_ref::<ExplainExec>()?;
    if !plan.is::<DistributedExec>() {
        return None;
    }
    let text = display_plan_ascii(plan, false);
    let mut found = false;
    let plans = explain.stringified_plans().iter().map(|known| match known.plan_type {
        PlanType::FinalPhysicalPlan => {
            found = true;
            StringifiedPlan::new(PlanType::FinalPhysicalPlan, text.as_str())
        }
        _ => known.clone(),
    });
    let plans: Vec<StringifiedPlan> = plans.collect();
    found.then(|| Arc::new(ExplainExec::new(explain.schema(), plans, explain.verbose())) as _)
}
