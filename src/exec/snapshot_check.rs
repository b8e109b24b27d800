//! The computation of `check_snapshots`: snapshots are looked at as if they were published.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;

use super::computation::{Computation, Resources};
use crate::error::Error;
use crate::publication::{Change, Changes, DryRun, Findings};

const FUNCTION: &str = "check_snapshots";
/// A change that is refused.
const CHANGE: &str = "change";
/// A value that too many new people have.
const FREQUENT: &str = "too frequent among new people";

/// Rows that an INSERT of each snapshot would refuse, had the ones before been published. For the publisher: it has
/// values, and on request identifiers.
///
/// Inputs: the update relation (from, to, ..), if there is one; then the snapshots, oldest first, each with identifier and
/// sensitive value.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotsCheck {
    pub id: FieldRef,
    pub sensitive: FieldRef,
    pub changes: Changes,
    /// True if the first input is the update relation.
    pub updates: bool,
    /// Eligibility: one value may have at most one in so many of the new people, if there is such a limit.
    pub m: Option<u64>,
    /// True if people are listed instead of counted.
    pub people: bool,
}

#[async_trait]
impl Computation for SnapshotsCheck {
    fn names(&self) -> [&'static str; 2] {
        ["CheckSnapshotsExec", FUNCTION]
    }

    fn argument(&self, place: usize) -> &'static str {
        if self.updates && place == 0 { "updates" } else { "a snapshot" }
    }

    fn parameters(&self) -> String {
        format!("changes={:?}, people={}", self.changes, self.people).to_lowercase()
    }

    fn schema(&self) -> SchemaRef {
        let value = |name: &str| Field::new(name, self.sensitive.data_type().clone(), true);
        let count = |name: &str| Field::new(name, DataType::Int64, false);
        let fields = match self.people {
            true => {
                let id = Field::new(self.id.name(), self.id.data_type().clone(), false);
                vec![count("snapshot"), id, value("from_value"), value("to_value")]
            }
            false => {
                let finding = Field::new("finding", DataType::Utf8, false);
                vec![count("snapshot"), finding, value("from_value"), value("to_value"), count("people")]
            }
        };
        Arc::new(Schema::new(fields))
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let named = |error: Error| error.in_function(FUNCTION);
        let rehearsal = DryRun::try_new(Arc::clone(&self.id), Arc::clone(&self.sensitive), self.changes, self.m);
        let mut rehearsal = rehearsal.map_err(named)?;
        for (place, rows) in inputs.into_iter().enumerate() {
            let updates = self.updates && place == 0;
            if !updates {
                rehearsal.begin_snapshot().map_err(named)?;
            }
            let appended = |batch: &RecordBatch| {
                match updates {
                    true => rehearsal.append_updates(batch.column(0), batch.column(1))?,
                    false => rehearsal.append(batch.column(0), batch.column(1))?,
                }
                Ok(rehearsal.size())
            };
            resources.read(rows, appended).await?;
        }
        resources.hold(2 * rehearsal.size())?;
        let found = resources.off_thread(move |_| rehearsal.finish()).await?;
        resources.send(self.table(&found)?).await;
        Ok(())
    }
}

impl SnapshotsCheck {
    fn table(&self, found: &Findings) -> Result<RecordBatch> {
        let of = |values: &ArrayRef, codes: UInt32Array, field: &FieldRef| -> Result<ArrayRef> {
            Ok(cast(&take(values, &codes, None)?, field.data_type())?)
        };
        let value = |codes: UInt32Array| of(found.values.attribute.domain.values(), codes, &self.sensitive);
        let numbers = |numbers: Vec<u64>| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(numbers.into_iter().map(|number| number as i64)))
        };
        let changes = &found.changes;
        let columns = match self.people {
            true => {
                let people = changes.iter().map(|change| change.person).collect();
                vec![
                    numbers(changes.iter().map(|change| u64::from(change.snapshot)).collect()),
                    of(found.people.attribute.domain.values(), people, &self.id)?,
                    value(changes.iter().map(|change| change.values[0]).collect())?,
                    value(changes.iter().map(|change| change.values[1]).collect())?,
                ]
            }
            false => {
                let alike: Vec<&[Change]> =
                    changes.chunk_by(|a, b| (a.snapshot, a.values) == (b.snapshot, b.values)).collect();
                let frequent = &found.frequent;
                let snapshots = alike.iter().map(|of| of[0].snapshot).chain(frequent.iter().map(|of| of.snapshot));
                let people = alike.iter().map(|of| of.len() as u64).chain(frequent.iter().map(|of| of.people));
                let findings = alike.iter().map(|_| CHANGE).chain(frequent.iter().map(|_| FREQUENT));
                let from = alike.iter().map(|of| Some(of[0].values[0])).chain(frequent.iter().map(|_| None));
                let to = alike.iter().map(|of| of[0].values[1]).chain(frequent.iter().map(|of| of.value));
                vec![
                    numbers(snapshots.map(u64::from).collect()),
                    Arc::new(StringArray::from_iter_values(findings)),
                    value(from.collect())?,
                    value(to.collect())?,
                    numbers(people.collect()),
                ]
            }
        };
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
