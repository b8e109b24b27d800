//! Audits of publications, and their failed checks counted for whoever runs a script.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "publication")]
pub(crate) use self::publication::PublicationAudit;

/// Counts the failed checks of all audits of a session. Put one into the session's configuration
/// (`SessionConfig::with_extension`) and look at it when the queries have run.
#[derive(Debug, Clone, Default)]
pub struct FailedAudits(Arc<AtomicUsize>);

impl FailedAudits {
    /// Counts the failed checks so far. A query that asks for some of the checks runs all.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(feature = "publication")]
mod publication {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use async_trait::async_trait;
    use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use datafusion::common::Result;
    use datafusion::execution::SendableRecordBatchStream;
    use futures::TryStreamExt;
    use futures::future::BoxFuture;

    use super::FailedAudits;
    use crate::exec::boxed_futures::boxed_method;
    use crate::exec::computation::{Computation, Resources};
    use crate::publication::Audit;
    use crate::risk::Check;

    /// The checks of a publication, made when they are asked for.
    ///
    /// Inputs: the publisher's update relation, if there is one.
    #[derive(Debug, Clone)]
    pub(crate) struct PublicationAudit {
        pub audit: Audit,
    }

    #[async_trait]
    impl Computation for PublicationAudit {
        fn names(&self) -> [&'static str; 2] {
            ["AuditExec", "audit"]
        }

        fn argument(&self, _place: usize) -> &'static str {
            "updates"
        }

        fn parameters(&self) -> String {
            let who = if self.audit.private.is_some() { "publisher" } else { "reader" };
            format!("as={who}")
        }

        fn schema(&self) -> SchemaRef {
            Arc::new(Schema::new(vec![
                Field::new("release", DataType::Int64, true),
                Field::new("check", DataType::Utf8, false),
                Field::new("passed", DataType::Boolean, false),
                Field::new("figures", DataType::Utf8, false),
            ]))
        }

        boxed_method! {<'r> fn compute(
            &self,
            inputs: Vec<SendableRecordBatchStream>,
            resources: &'r Resources,
        ) -> Result<()> {
            self.audited(inputs, resources)
        }}
    }

    impl PublicationAudit {
        fn audited<'a>(
            &'a self,
            inputs: Vec<SendableRecordBatchStream>,
            resources: &'a Resources,
        ) -> BoxFuture<'a, Result<()>> {
            Box::pin(async move {
                let mut updates = None;
                for input in inputs {
                    let batches: Vec<RecordBatch> = input.try_collect().await?;
                    resources.hold(batches.iter().map(RecordBatch::get_array_memory_size).sum())?;
                    updates = Some(batches);
                }
                // Its future is large.
                let checks = Box::pin(self.audit.clone().run(updates, &resources.context)).await?;
                if let Some(audits) = resources.context.session_config().get_extension::<FailedAudits>() {
                    audits.0.fetch_add(checks.iter().filter(|check| !check.passed).count(), Ordering::SeqCst);
                }
                resources.send(table(self.schema(), &checks)?).await;
                Ok(())
            })
        }
    }

    fn table(schema: SchemaRef, checks: &[Check]) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(checks.iter().map(|check| check.release.map(|release| release as i64)).collect::<Int64Array>()),
            Arc::new(StringArray::from_iter_values(checks.iter().map(|check| &check.name))),
            Arc::new(checks.iter().map(|check| Some(check.passed)).collect::<BooleanArray>()),
            Arc::new(StringArray::from_iter_values(checks.iter().map(|check| &check.figures))),
        ];
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
