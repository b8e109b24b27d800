//! Measuring how accurate estimates are.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use super::Seed;
use super::computation::{Computation, Resources};
use crate::estimate::{Answer, Collector, Distribution, OriginalColumn, Prior, ReleaseBatch, Workload};
use crate::microdata::Hierarchies;

const FUNCTION: &str = "query_accuracy";

/// Random queries over an original table and over its release.
///
/// Inputs: the original's attributes; the release's attributes (the value, or `lo`, `hi` and, of measured ones, `nulls`, or
/// the histogram), then as far as there are any the number of the group, its size and its counterfeits; hierarchies, if any; margins
/// (attribute, value, share), if any.
#[derive(Debug, Clone)]
pub(crate) struct QueryAccuracy {
    pub workload: Workload,
    /// Quasi-identifiers, then the sensitive attribute if it is there.
    pub columns: Vec<OriginalColumn>,
    pub sensitive: bool,
    /// True if the release has numbers of groups.
    pub numbers: bool,
    /// True if it has sizes and counterfeits of groups.
    pub counts: bool,
    /// True if these are of the whole release.
    pub alone: bool,
    /// True if hierarchies, and margins from elsewhere, are among the inputs.
    pub hierarchies: bool,
    pub prior: bool,
    /// Distribution of values over intervals.
    pub distribution: Distribution,
    pub seed: Seed,
}

impl QueryAccuracy {
    /// Returns the columns of the result: the query's number, its true answer, the estimate, and how far that is off, relative to the truth.
    pub(crate) fn schema() -> SchemaRef {
        let float = |name: &str| Field::new(name, DataType::Float64, false);
        let query = Field::new("query", DataType::Int64, false);
        Arc::new(Schema::new(vec![query, float("actual"), float("estimate"), float("relative_error")]))
    }
}

#[async_trait]
impl Computation for QueryAccuracy {
    fn names(&self) -> [&'static str; 2] {
        ["QueryAccuracyExec", FUNCTION]
    }

    fn argument(&self, place: usize) -> &'static str {
        let last = if self.hierarchies { "hierarchies" } else { "prior" };
        ["original", "release", last, "prior"].get(place).copied().unwrap_or("an input")
    }

    fn parameters(&self) -> String {
        let Workload { queries, selectivity, aggregate, predicates } = &self.workload;
        let predicates = predicates.map_or_else(|| "all".to_owned(), |number| number.to_string());
        let distribution = match (self.distribution, self.prior) {
            (Distribution::Uniform, _) => ", distribution=uniform",
            (Distribution::Fitted, true) => ", with prior",
            (Distribution::Fitted, false) => "",
        };
        format!(
            "queries={queries}, selectivity={selectivity}, aggregate={aggregate:?}, predicates={predicates}{distribution}"
        )
    }

    fn schema(&self) -> SchemaRef {
        Self::schema()
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let mut inputs = inputs.into_iter();
        let (Some(original), Some(release)) = (inputs.next(), inputs.next()) else {
            return internal_err!("{FUNCTION}: inputs are missing");
        };
        let sums = self.workload.aggregate != crate::estimate::Aggregate::Count;
        let collector = Collector::try_new(self.columns.clone(), self.sensitive, sums, self.numbers, self.distribution);
        let mut collector = collector.map_err(|error| error.in_function(FUNCTION))?;
        let appended = |batch: &RecordBatch| collector.append_original(batch.columns()).map(|()| collector.size());
        resources.read(original, appended).await?;
        let appended = |batch: &RecordBatch| {
            collector.append_released(&self.columns_of(batch), batch.num_rows()).map(|()| collector.size())
        };
        resources.read(release, appended).await?;
        let hierarchies = if self.hierarchies { inputs.next() } else { None };
        let names = self.columns.iter().map(|column| column.field.name());
        let hierarchies = resources.hierarchies(hierarchies, names, collector.size()).await?;
        let mut prior = None;
        if let Some(mut rows) = inputs.next() {
            let prior = prior.get_or_insert_with(Prior::default);
            while let Some(batch) = rows.next().await {
                prior.append(&batch?)?;
                resources.hold(collector.size() + prior.size())?;
            }
        }
        let (workload, seed) = (self.workload.clone(), self.seed.bytes());
        let answers = resources.off_thread(move |monitor| {
            let hierarchies = hierarchies.map(Hierarchies::finish).transpose()?;
            collector.finish(hierarchies.as_ref(), prior.as_ref())?.answers(&workload, seed, monitor)
        });
        resources.send(table(&answers.await?)?).await;
        Ok(())
    }
}

impl QueryAccuracy {
    fn columns_of<'a>(&self, batch: &'a RecordBatch) -> ReleaseBatch<'a> {
        let mut rest = batch.columns();
        let counts = match rest {
            [before @ .., size, counterfeits] if self.counts => {
                rest = before;
                Some((size, counterfeits))
            }
            _ => None,
        };
        let group = match rest {
            [before @ .., number] if self.numbers => {
                rest = before;
                Some(number)
            }
            _ => None,
        };
        ReleaseBatch { attributes: rest, group, counts, alone: self.alone }
    }
}

fn table(answers: &[Answer]) -> Result<RecordBatch> {
    let float =
        |of: fn(&Answer) -> f64| -> ArrayRef { Arc::new(answers.iter().map(of).map(Some).collect::<Float64Array>()) };
    let columns = vec![
        Arc::new(Int64Array::from_iter_values(1..=answers.len() as i64)) as ArrayRef,
        float(|answer| answer.actual),
        float(|answer| answer.estimate),
        float(|answer| (answer.actual - answer.estimate).abs() / answer.actual.abs()),
    ];
    Ok(RecordBatch::try_new(QueryAccuracy::schema(), columns)?)
}
