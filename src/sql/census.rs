//! `census(rows, seed)`: synthetic census microdata, streamed.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use super::arguments::Arguments;
use super::options::AnonymizeOptions;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::microdata::census::{self, BLOCK, Census};

const ROWS: Parameter = Parameter::required("rows", Kind::Integer, "100000").at_least(0).says("how many people");
const SEED: Parameter =
    Parameter::optional("seed", Kind::Integer, "42").at_least(0).or(0).says("the same seed, the same people");

pub(super) static SIGNATURE: FunctionSignature =
    FunctionSignature { name: "census", about: "synthetic census microdata", refused: &[], parameters: &[ROWS, SEED] };

/// Parts that can be made in parallel. The rows do not depend on it.
const PARTITIONS: usize = 16;

#[expect(clippy::needless_pass_by_value, reason = "tables of other functions keep their arguments")]
pub(super) fn table(arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let rows = arguments.integer_or_default(&ROWS)? as u64;
    let seed = arguments.integer_or_default(&SEED)? as u64;
    let schema = census::schema();
    let blocks = rows.div_ceil(BLOCK as u64);
    let parts = blocks.clamp(1, PARTITIONS as u64);
    let partitions = (0..parts).map(|part| -> Arc<dyn PartitionStream> {
        let blocks = part * blocks / parts..(part + 1) * blocks / parts;
        Arc::new(Part { census: Census::new(rows, seed), blocks, schema: Arc::clone(&schema) })
    });
    Ok(Arc::new(StreamingTable::try_new(Arc::clone(&schema), partitions.collect())?))
}

#[derive(Debug)]
struct Part {
    census: Census,
    blocks: std::ops::Range<u64>,
    schema: SchemaRef,
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let census = self.census;
        let batches = futures::stream::iter(
            self.blocks.clone().map(move |block| census.block(block).map_err(|error| error.in_function("census"))),
        );
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
