//! `information_loss(original, release, ..)`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType, cast};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::arguments::Arguments;
use super::function::RelationFunction;
use super::input::{Input, common_type, plan_if_given};
use super::options::AnonymizeOptions;
use super::signature::{Kind, Parameter, Signature};
use crate::exec::InformationLossExec;
use crate::microdata::Role;
use crate::release::{GROUP_ID, HI, LO, NODE};

/// What a release loses.
#[derive(Debug)]
pub(super) struct InformationLossFunction;

static SIGNATURE: Signature = Signature {
    name: "information_loss",
    parameters: &[
        Parameter::required("original", Kind::Relation, "patients"),
        Parameter::required("release", Kind::Relation, "'release.parquet'"),
        Parameter::QUASI,
        Parameter::HIERARCHIES,
    ],
};

impl RelationFunction for InformationLossFunction {
    fn signature(&self) -> &'static Signature<'static> {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let function = SIGNATURE.name;
        let quasi = arguments.columns("quasi").map(<[String]>::to_vec);
        let original = Input { function, argument: "original", plan: arguments.relation("original")? };
        let release = Input { function, argument: "release", plan: arguments.relation("release")? };
        let hierarchies = match arguments.relation_if_given("hierarchies") {
            Some(plan) => Some(Input { function, argument: "hierarchies", plan }.hierarchies()?),
            None => None,
        };
        let attributes = match quasi {
            Some(names) => names,
            None => released_attributes(release.plan.schema())?,
        };
        let (mut originals, mut ends) = (Vec::new(), Vec::new());
        for name in &attributes {
            let mut column = original.column(name)?;
            let interval = release.column(name)?;
            column.publish(function)?;
            let mut end = release.column(name)?;
            if let Some(lo) = end_of(&interval.field, LO) {
                let nodes = end_of(&interval.field, NODE).is_some();
                if nodes && hierarchies.is_none() {
                    return plan_err!(
                        "{function}: the release was made with hierarchies; pass the same ones: hierarchies => .."
                    );
                }
                if !nodes && hierarchies.is_some() {
                    return plan_err!("{function}: the release was made without hierarchies; leave them out");
                }
                end.field = lo;
            }
            let data_type = common_type(function, &mut column, &end, "release")?;
            let expr = Expr::Column(interval.column);
            for which in [LO, HI] {
                let end =
                    if end_of(&interval.field, which).is_some() { expr.clone().field(which) } else { expr.clone() };
                ends.push(cast(end, data_type.clone()).alias(format!("{name}.{which}")));
            }
            originals.push(column);
        }
        let grouped = release.plan.schema().fields().iter().filter(|field| field.name() == GROUP_ID).count() == 1;
        if grouped && !attributes.iter().any(|name| name == GROUP_ID) {
            ends.push(Expr::Column(Column::from_name(GROUP_ID)));
        }
        let release = LogicalPlanBuilder::from(release.plan).project(ends)?.build()?;
        Ok(Arc::new(LossTable { original: original.project(originals)?, release, hierarchies }))
    }
}

/// The quasi-identifiers of a release: by their metadata, else all columns that are intervals.
fn released_attributes(schema: &DFSchema) -> Result<Vec<String>> {
    let declared =
        |field: &&FieldRef| field.metadata().get(Role::KEY).and_then(|role| Role::parse(role)) == Some(Role::Quasi);
    let interval = |field: &&FieldRef| end_of(field, LO).is_some() && end_of(field, HI).is_some();
    let names = |which: &dyn Fn(&&FieldRef) -> bool| -> Vec<String> {
        schema.fields().iter().filter(|field| which(field)).map(|field| field.name().clone()).collect()
    };
    let attributes = names(&declared);
    let attributes = if attributes.is_empty() { names(&interval) } else { attributes };
    if attributes.is_empty() {
        return plan_err!(
            "{}: release has no columns of intervals {{lo, hi}}; name the columns to compare, for example quasi => (age, zip)",
            SIGNATURE.name
        );
    }
    Ok(attributes)
}

/// A field of an interval.
pub(super) fn end_of(field: &FieldRef, name: &str) -> Option<FieldRef> {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().find(|field| field.name() == name).cloned(),
        _ => None,
    }
}

/// The losses, measured anew by every query.
#[derive(Debug)]
struct LossTable {
    original: LogicalPlan,
    release: LogicalPlan,
    hierarchies: Option<LogicalPlan>,
}

#[async_trait]
impl TableProvider for LossTable {
    fn schema(&self) -> SchemaRef {
        InformationLossExec::schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let original = session.create_physical_plan(&self.original).await?;
        let release = session.create_physical_plan(&self.release).await?;
        let hierarchies = plan_if_given(session, self.hierarchies.as_ref()).await?;
        let plan: Arc<dyn ExecutionPlan> = Arc::new(InformationLossExec::try_new(original, release, hierarchies)?);
        let Some(columns) = projection else { return Ok(plan) };
        let schema = plan.schema();
        let columns = columns.iter().map(|&column| {
            let name = schema.field(column).name().clone();
            let expr = datafusion::physical_expr::expressions::Column::new(&name, column);
            (Arc::new(expr) as Arc<dyn datafusion::physical_expr::PhysicalExpr>, name)
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
    }
}
