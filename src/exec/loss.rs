//! The operator that measures information loss.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use rayon::prelude::*;

use super::computation::{Computation, Resources};
use crate::microdata::{ColumnEncoder, Hierarchies, Loss, LossBuilder};

const FUNCTION: &str = "information_loss";
/// Attribute name that stands for all attributes.
const OVERALL: &str = "*";

/// Measures the information loss of a release.
///
/// Inputs: the original's attributes; of the release, lo and hi of each attribute and then, if there are groups, their numbers
/// (or, of a perturbed release, the original and the published value of each attribute); hierarchies (attribute, leaf, levels), if any.
#[derive(Debug, Clone)]
pub(crate) struct InformationLoss {
    pub attributes: Vec<FieldRef>,
    /// True if the release has originals and published values instead of intervals.
    pub pairs: bool,
}

impl InformationLoss {
    /// Returns the columns of the result: the attribute (`*` for all), the number of its values, the losses, of a perturbed release the mean
    /// distance instead, and for all of a release with groups their mean size and the discernibility (the sum of their
    /// squared sizes).
    fn schema() -> SchemaRef {
        let float = |name: &str| Field::new(name, DataType::Float64, true);
        Arc::new(Schema::new(vec![
            Field::new("attribute", DataType::Utf8, false),
            Field::new("domain", DataType::Int64, true),
            float("lm"),
            float("em"),
            float("iloss"),
            float("ncp"),
            float("distance"),
            float("mean_group_size"),
            Field::new("discernibility", DataType::Int64, true),
        ]))
    }

    fn names(&self) -> Vec<String> {
        self.attributes.iter().map(|field| field.name().clone()).collect()
    }
}

#[async_trait]
impl Computation for InformationLoss {
    fn names(&self) -> [&'static str; 2] {
        ["InformationLossExec", FUNCTION]
    }

    fn argument(&self, place: usize) -> &'static str {
        ["original", "release", "hierarchies"].get(place).copied().unwrap_or("an input")
    }

    fn parameters(&self) -> String {
        format!("attributes=[{}]", self.names().join(", "))
    }

    fn schema(&self) -> SchemaRef {
        Self::schema()
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let mut inputs = inputs.into_iter();
        let (Some(original), Some(release)) = (inputs.next(), inputs.next()) else {
            return internal_err!("{FUNCTION}: inputs are missing");
        };
        let builders = self.attributes.iter().cloned().map(LossBuilder::try_new);
        let builders = builders.collect::<crate::error::Result<Vec<_>>>();
        let mut builders = builders.map_err(|error| error.in_function(FUNCTION))?;
        let size = |builders: &[LossBuilder]| builders.iter().map(LossBuilder::size).sum::<usize>();
        let appended = |batch: &RecordBatch| {
            let mut columns = builders.iter_mut().zip(batch.columns());
            columns.try_for_each(|(builder, column)| builder.append_original(column))?;
            Ok(size(&builders))
        };
        resources.read(original, appended).await?;
        let mut groups: Option<Groups> = None;
        let appended = |batch: &RecordBatch| {
            for (builder, ends) in builders.iter_mut().zip(batch.columns().chunks_exact(2)) {
                builder.append_released(&ends[0], &ends[1])?;
            }
            if let Some(numbers) = batch.columns().get(2 * builders.len()) {
                let groups = match &mut groups {
                    Some(groups) => groups,
                    none => none.insert(Groups::try_new(&batch.schema().fields()[2 * builders.len()])?),
                };
                groups.append(numbers)?;
            }
            Ok(size(&builders) + groups.as_ref().map_or(0, Groups::size))
        };
        resources.read(release, appended).await?;
        // Sorted once more as the losses are computed.
        let held = 2 * (size(&builders) + groups.as_ref().map_or(0, Groups::size));
        resources.hold(held)?;
        let names = self.names();
        let hierarchies = resources.hierarchies(inputs.next(), names.iter(), held).await?;
        let pairs = self.pairs;
        // Sorting large domains takes its time.
        let losses = resources.off_thread(move |_| {
            let hierarchies = hierarchies.map(Hierarchies::finish).transpose()?;
            let measured = |builder: LossBuilder| match pairs {
                true => builder.finish_pairs(hierarchies.as_ref()).map(|(values, mean)| Measured(values, None, mean)),
                false => builder.finish(hierarchies.as_ref()).map(|(values, loss)| Measured(values, loss, None)),
            };
            builders.into_par_iter().map(measured).collect::<crate::error::Result<Vec<_>>>()
        });
        resources.send(table(&names, &losses.await?, groups.as_ref())?).await;
        Ok(())
    }
}

/// Numbers of rows of the groups.
struct Groups {
    encoder: ColumnEncoder,
    sizes: Vec<u64>,
}

impl Groups {
    fn try_new(field: &FieldRef) -> crate::error::Result<Self> {
        Ok(Self { encoder: ColumnEncoder::try_new(Arc::clone(field))?, sizes: Vec::new() })
    }

    fn append(&mut self, numbers: &ArrayRef) -> crate::error::Result<()> {
        let mut codes = Vec::new();
        self.encoder.intern(numbers, &mut codes)?;
        let groups = codes.iter().max().map_or(0, |most| most + 1);
        if groups > self.sizes.len() {
            self.sizes.resize(groups, 0);
        }
        codes.iter().for_each(|&code| self.sizes[code] += 1);
        Ok(())
    }

    fn size(&self) -> usize {
        self.encoder.size() + self.sizes.capacity() * size_of::<u64>()
    }
}

/// Number of values of an attribute; what intervals lose; how far published values are from the originals.
struct Measured(usize, Option<Loss>, Option<f64>);

/// Makes a table of one row per attribute and one for all of them.
fn table(names: &[String], losses: &[Measured], groups: Option<&Groups>) -> Result<RecordBatch> {
    let column = |of: fn(&Measured) -> Option<f64>| -> ArrayRef {
        let each = losses.iter().map(of);
        let all: Option<f64> = each.clone().sum();
        let mean = all.map(|sum| sum / losses.len() as f64);
        Arc::new(each.chain([mean]).collect::<Float64Array>())
    };
    let overall = names.len();
    let only_overall = |value: Option<f64>| (0..=overall).map(move |row| value.filter(|_| row == overall));
    let rows = groups.map(|groups| groups.sizes.iter().sum::<u64>());
    let mean = groups.zip(rows).map(|(groups, rows)| rows as f64 / groups.sizes.len() as f64);
    let squares = groups.map(|groups| groups.sizes.iter().map(|&size| i128::from(size).pow(2)).sum::<i128>());
    let squares = squares.map(|squares| i64::try_from(squares).unwrap_or(i64::MAX));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(names.iter().map(String::as_str).chain([OVERALL]).map(Some).collect::<StringArray>()),
        Arc::new(losses.iter().map(|measured| Some(measured.0 as i64)).chain([None]).collect::<Int64Array>()),
        column(|measured| measured.1.map(|loss| loss.lm)),
        column(|measured| measured.1.map(|loss| loss.em)),
        column(|measured| measured.1.map(|loss| loss.iloss)),
        column(|measured| measured.1.map(|loss| loss.ncp)),
        column(|measured| measured.2),
        Arc::new(only_overall(mean).collect::<Float64Array>()),
        Arc::new((0..=overall).map(|row| squares.filter(|_| row == overall)).collect::<Int64Array>()),
    ];
    Ok(RecordBatch::try_new(InformationLoss::schema(), columns)?)
}
