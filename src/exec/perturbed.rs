//! Inferences of a reader from a release whose rows look like rows.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;

use super::computation::{Computation, Resources};
use super::disclosure::identifier;
use crate::error::{Error, Result as OwnResult, thousands};
use crate::microdata::{ColumnEncoder, Order};
use crate::risk::Perturbed;

const FUNCTION: &str = "disclosure";

/// Identity and attribute disclosure of everybody in a perturbed release.
///
/// Input: the release's rows with their originals: identifier, whether the original is there, sensitive value, and of each
/// quasi-identifier the original and the published value.
#[derive(Debug, Clone)]
pub(crate) struct PerturbedComputation {
    /// Probability with which the reader uses each quasi-identifier.
    pub p_match: f64,
    /// Identifier.
    pub id: FieldRef,
    /// Quasi-identifiers.
    pub quasi: Vec<FieldRef>,
    /// Sensitive attribute.
    pub sensitive: FieldRef,
}

#[async_trait]
impl Computation for PerturbedComputation {
    fn names(&self) -> [&'static str; 2] {
        ["PerturbedDisclosureExec", FUNCTION]
    }

    fn argument(&self, _place: usize) -> &'static str {
        "the original or the release"
    }

    fn parameters(&self) -> String {
        let quasi = self.quasi.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        format!("p_match={}, quasi=[{quasi}], sensitive={}", self.p_match, self.sensitive.name())
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![
            identifier(&self.id),
            Field::new("identity", DataType::Float64, false),
            Field::new("attribute", DataType::Float64, false),
        ]))
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let Ok([rows]) = <[_; 1]>::try_from(inputs) else {
            return internal_err!("{FUNCTION}: one input is expected");
        };
        let mut pairs = Pairs::try_new(self).map_err(|error| error.in_function(FUNCTION))?;
        resources.read(rows, |batch| pairs.append(batch).map(|()| pairs.size())).await?;
        resources.hold(2 * pairs.size() + Perturbed::people_bytes(pairs.rows))?;
        let (p_match, schema) = (self.p_match, self.schema());
        let table = resources.off_thread(move |_| pairs.infer(p_match, &schema));
        resources.send(table.await?).await;
        Ok(())
    }
}

/// Rows and their originals, in codes.
struct Pairs {
    ids: ColumnEncoder,
    quasi: Vec<ColumnEncoder>,
    sensitive: ColumnEncoder,
    /// Codes of the originals and of what was published, attribute by attribute.
    codes: Vec<[Vec<u32>; 2]>,
    values: Vec<u32>,
    people: Vec<u32>,
    rows: usize,
    /// Rows without an original, and without an identifier.
    strangers: usize,
    nobodies: usize,
}

impl Pairs {
    fn try_new(question: &PerturbedComputation) -> OwnResult<Self> {
        let encoder = |field: &FieldRef| ColumnEncoder::try_new(FieldRef::clone(field));
        Ok(Self {
            ids: encoder(&question.id)?,
            quasi: question.quasi.iter().map(encoder).collect::<OwnResult<_>>()?,
            sensitive: encoder(&question.sensitive)?,
            codes: vec![Default::default(); question.quasi.len()],
            values: Vec::new(),
            people: Vec::new(),
            rows: 0,
            strangers: 0,
            nobodies: 0,
        })
    }

    fn append(&mut self, batch: &RecordBatch) -> OwnResult<()> {
        let [ids, found, values, ends @ ..] = batch.columns() else {
            return Err(Error::internal("columns are missing"));
        };
        self.rows += batch.num_rows();
        self.nobodies += ids.null_count();
        self.strangers += found.len() - found.as_boolean().true_count();
        let mut codes = Vec::new();
        let mut intern = |encoder: &mut ColumnEncoder, column: &ArrayRef, to: &mut Vec<u32>| -> OwnResult<()> {
            encoder.intern(column, &mut codes)?;
            to.extend(codes.iter().map(|&code| code as u32));
            Ok(())
        };
        intern(&mut self.ids, ids, &mut self.people)?;
        intern(&mut self.sensitive, values, &mut self.values)?;
        for ((encoder, pair), ends) in self.quasi.iter_mut().zip(&mut self.codes).zip(ends.chunks_exact(2)) {
            for (to, column) in pair.iter_mut().zip(ends) {
                intern(encoder, column, to)?;
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let encoders = self.quasi.iter().chain([&self.ids, &self.sensitive]);
        encoders.map(ColumnEncoder::size).sum::<usize>() + self.rows * (8 + 8 * self.quasi.len())
    }

    fn infer(self, p_match: f64, schema: &SchemaRef) -> OwnResult<RecordBatch> {
        let refused = |count: usize, what: &str| match count {
            0 => Ok(()),
            _ => Err(Error::refused(format!("{} rows of the release {what}", thousands(count)))),
        };
        refused(self.nobodies, "have no identifier")?;
        refused(self.strangers, "are of nobody in the original; pass the table that the release was made of")?;
        let encoded = self.ids.finish(Order::ByValue)?;
        let people = encoded.attribute.domain.values();
        refused(
            self.rows.saturating_sub(people.len()),
            "repeat an identifier, in the release or in the original; a person is one row",
        )?;
        let by_row = |which: usize| -> Vec<u32> {
            (0..self.rows).flat_map(|row| self.codes.iter().map(move |pair| pair[which][row])).collect()
        };
        let (original, released) = (by_row(0), by_row(1));
        let found = Perturbed::try_new(self.codes.len(), &original, &released, &self.values)?.people(p_match);
        let codes = self.people.iter().map(|&code| encoded.ranks[code as usize]);
        let ids = take(people, &UInt32Array::from_iter_values(codes), None)?;
        let column =
            |which: usize| -> ArrayRef { Arc::new(Float64Array::from_iter_values(found.iter().map(|f| f[which]))) };
        let columns = vec![cast(&ids, schema.field(0).data_type())?, column(0), column(1)];
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}
