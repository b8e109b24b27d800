//! The operator that makes a release: a method over whole inputs.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use serde::{Deserialize, Serialize};

use super::inputs::{InputKinds, Inputs, facts};
use super::{Job, Seed, WholeInputExec, release_stream};
use crate::methods::AnyMethod;
use crate::microdata::{Layout, Role, Roles};
use crate::release::{GROUP_ID, GROUP_ROLES, RowOrder, View};

/// Job of the operator: plain data, so that a distributed engine can ship it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnonymizeJob {
    /// The method and its parameters.
    pub method: AnyMethod,
    /// Roles of the columns.
    pub roles: Roles,
    /// Audience of the released rows.
    pub view: View,
    /// The randomness of this release.
    pub seed: Seed,
    /// Order in which rows leave.
    #[serde(default, skip_serializing_if = "RowOrder::is_random")]
    pub order: RowOrder,
}

impl AnonymizeJob {
    /// Returns a method on the columns with these roles.
    pub fn new(method: AnyMethod, roles: Roles, view: View, seed: Seed) -> Self {
        Self { method, roles, view, seed, order: RowOrder::Random }
    }
}

/// Anonymizes its input.
///
/// ```text
/// AnonymizeExec: method=m_invariant, m=10, .., quasi=[age, zip], sensitive=disease, view=public
///   <microdata: identifier, quasi-identifiers.., sensitive attribute, within; as far as there are any>
///   <earlier releases: the columns of the method's kind of state> (optional)
///   <hierarchies: attribute, leaf, level1, level2, ..>           (optional)
///   <updates: from_value, to_value[, probability]>               (optional)
/// ```
///
/// A pipeline breaker with one output partition. The whole of all inputs is read, encoded as it arrives and charged to the
/// memory pool; the method then runs on blocking threads and rayon; batches of the release follow in random order, or
/// where the query sorts them by the number of the group, in that order ([`RowOrder`]), so that nothing has to be sorted.
/// Nothing above changes what is read below: the operator supports neither filter nor limit push-down, and its
/// projection is applied to the release.
pub type AnonymizeExec = WholeInputExec<Anonymization>;

/// A job with what it is done to and what is wanted of the result.
#[derive(Debug)]
pub struct Anonymization {
    pub(super) job: AnonymizeJob,
    pub(super) inputs: InputKinds,
    pub(super) layout: Layout,
    pub(super) schema: SchemaRef,
}

impl AnonymizeExec {
    /// Returns an operator over these inputs, which are hidden ([`HiddenExec`](crate::HiddenExec)). `schema` lists the columns of the release that are wanted.
    ///
    /// # Errors
    /// When an input never ends, or the columns of the microdata are not those of the job's roles.
    pub fn try_new(inputs: Inputs, job: AnonymizeJob, schema: SchemaRef) -> Result<Self> {
        let layout = Layout::try_new(&inputs.microdata.schema(), &job.roles)
            .map_err(|error| error.in_function(job.method.name()))?;
        let (inputs, plans): (InputKinds, Vec<Arc<dyn ExecutionPlan>>) = inputs.into_plans();
        Self::over(Arc::new(Anonymization { job, inputs, layout, schema }), plans)
    }

    /// Returns the job of the operator.
    pub fn job(&self) -> &AnonymizeJob {
        &self.the_job().job
    }
}

impl Anonymization {
    /// Returns true if a column is that of the groups' numbers, not just its namesake.
    fn has_numbers_of_groups(&self, column: usize) -> bool {
        let field = self.schema.field(column);
        let is_role = |role: &String| role == GROUP_ROLES[0];
        field.name() == GROUP_ID && field.metadata().get(Role::KEY).is_some_and(is_role)
    }
}

impl Job for Anonymization {
    fn operator(&self) -> &'static str {
        "AnonymizeExec"
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
        if self.output_order().is_some() {
            facts.push(format!("order=[{GROUP_ID}]"));
        }
        Ok(facts)
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn output_order(&self) -> Option<PhysicalSortExpr> {
        if self.job.order == RowOrder::Random {
            return None;
        }
        let column = (0..self.schema.fields().len()).find(|&column| self.has_numbers_of_groups(column))?;
        Some(PhysicalSortExpr::new(Arc::new(Column::new(GROUP_ID, column)), SortOptions::default()))
    }

    /// Returns the job with rows ordered by the group's number, which every row knows anyway.
    fn ordered(&self, order: &[PhysicalSortExpr]) -> Option<Self> {
        let [PhysicalSortExpr { expr, options }] = order else { return None };
        let column = expr.downcast_ref::<Column>()?;
        // There is no NULL among them.
        if options.descending || !self.has_numbers_of_groups(column.index()) {
            return None;
        }
        let job = AnonymizeJob { order: RowOrder::Groups, ..self.job.clone() };
        Some(Self { job, inputs: self.inputs, layout: self.layout.clone(), schema: Arc::clone(&self.schema) })
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let inputs = self.inputs.streams(inputs, self.layout.clone())?;
        let (method, seed) = (self.job.method.clone(), self.job.seed.clone());
        // Where these rows do not have the number, an order by it would tell it. A projection above that leaves it out is the query's own.
        let order = if self.output_order().is_some() { RowOrder::Groups } else { RowOrder::Random };
        Ok(release_stream::run(inputs, method, seed, Arc::clone(&self.schema), order, metrics, context))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;
    use crate::methods::mondrian::Mondrian;

    /// Only where the column is the groups' is there an order by it.
    #[test]
    fn an_order_that_rows_do_not_show_is_none() {
        let input = Arc::new(Schema::new(vec![Field::new("age", DataType::Int32, true)]));
        let number = Field::new(GROUP_ID, DataType::Int64, false);
        let role = [(Role::KEY.to_owned(), GROUP_ROLES[0].to_owned())];
        let of_groups = number.clone().with_metadata(role.into_iter().collect());
        for (columns, is_ordered) in [(vec![of_groups], true), (vec![number], false), (Vec::new(), false)] {
            let mut roles = Roles::default();
            roles.quasi.push("age".to_owned());
            let method = AnyMethod::Mondrian(Mondrian::new(2));
            let mut job = AnonymizeJob::new(method, roles, View::Public, Seed::from_entropy().unwrap());
            job.order = RowOrder::Groups;
            let inputs = Inputs::new(Arc::new(EmptyExec::new(Arc::clone(&input))));
            let plan = AnonymizeExec::try_new(inputs, job, Arc::new(Schema::new(columns))).unwrap();
            let facts = plan.the_job().facts().unwrap();
            assert_eq!(facts.contains(&"order=[group_id]".to_owned()), is_ordered);
            assert_eq!(plan.properties().output_ordering().is_some(), is_ordered);
        }
    }
}
