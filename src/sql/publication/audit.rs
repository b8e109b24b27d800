//! `audit(publication)`: whether it keeps its promises.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use super::release::PUBLICATION;
use super::table::PublicationTable;
use crate::exec::FailedAudits;
use crate::publication::Audit;
use crate::risk::Check;
use crate::sql::arguments::Arguments;
use crate::sql::function::RelationFunction;
use crate::sql::options::AnonymizeOptions;
use crate::sql::signature::Signature;

/// The checks of a publication.
#[derive(Debug)]
pub(super) struct AuditFunction;

static SIGNATURE: Signature = Signature { name: "audit", parameters: &[PUBLICATION] };

impl RelationFunction for AuditFunction {
    fn signature(&self) -> &'static Signature<'static> {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let plan = arguments.relation(PUBLICATION.name)?;
        let audit = PublicationTable::with(&plan, SIGNATURE.name, |publication| {
            Ok(Audit { public: publication.public.clone(), private: publication.private().cloned() })
        })?;
        let schema = schema();
        let checks = Checks { audit, schema: Arc::clone(&schema) };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(checks)])?))
    }
}

/// The checks, made when they are asked for.
#[derive(Debug)]
struct Checks {
    audit: Audit,
    schema: SchemaRef,
}

impl PartitionStream for Checks {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (audit, schema) = (self.audit.clone(), Arc::clone(&self.schema));
        let checks = async move {
            let checks = audit.run(&context).await?;
            FailedAudits::note(&context, checks.iter().filter(|check| !check.passed).count());
            batch(&schema, &checks)
        };
        let checks = futures::stream::once(Box::pin(checks));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), checks))
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("release", DataType::Int64, true),
        Field::new("check", DataType::Utf8, false),
        Field::new("passed", DataType::Boolean, false),
        Field::new("figures", DataType::Utf8, false),
    ]))
}

fn batch(schema: &SchemaRef, checks: &[Check]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(checks.iter().map(|check| check.release.map(|release| release as i64)).collect::<Int64Array>()),
        Arc::new(StringArray::from_iter_values(checks.iter().map(|check| &check.name))),
        Arc::new(checks.iter().map(|check| Some(check.passed)).collect::<BooleanArray>()),
        Arc::new(StringArray::from_iter_values(checks.iter().map(|check| &check.figures))),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
