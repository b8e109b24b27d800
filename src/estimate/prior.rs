//! Known distributions of attributes from elsewhere, such as the margins that a statistics office publishes.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, internal_err};

use super::ends::check_shares;

/// Shares of the values of attributes.
#[derive(Debug, Default)]
pub(crate) struct Prior {
    of: BTreeMap<String, (Vec<String>, Vec<f64>)>,
    bytes: usize,
}

impl Prior {
    /// Appends rows: attribute and value, as texts, and share. Rows without an attribute or a value say nothing.
    /// Fails when a share is not a number from 0 on.
    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let [attribute, value, share] = batch.columns() else { return internal_err!("margins of other columns") };
        let (attribute, value) = (attribute.as_string_view(), value.as_string_view());
        let share: &Float64Array = share.as_primitive::<Float64Type>();
        check_shares(share.iter().zip(value.iter()).filter_map(|(share, value)| value.map(|_| share)))?;
        for row in (0..batch.num_rows()).filter(|&row| attribute.is_valid(row) && value.is_valid(row)) {
            let (values, shares) = self.of.entry(attribute.value(row).to_owned()).or_default();
            values.push(value.value(row).to_owned());
            shares.push(share.value(row));
            self.bytes += value.value(row).len() + 32;
        }
        Ok(())
    }

    /// Returns the bytes held.
    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// Returns the shares of these values of an attribute, 0 where none is given; `None` if none is given for any.
    /// Fails when what was given is no value of the attribute's type.
    pub(super) fn shares(&self, attribute: &str, data_type: &DataType, values: &ArrayRef) -> Result<Option<Vec<f64>>> {
        let Some((given, shares)) = self.of.get(attribute) else { return Ok(None) };
        // There and back, so that a value is written in one way.
        let text = |values: &ArrayRef| cast(&cast(values, data_type)?, &DataType::Utf8);
        let given = text(&(std::sync::Arc::new(StringArray::from_iter_values(given)) as ArrayRef))?;
        let mut by_value: HashMap<&str, f64> = HashMap::new();
        for (value, share) in given.as_string::<i32>().iter().zip(shares) {
            if let Some(value) = value {
                *by_value.entry(value).or_default() += share;
            }
        }
        let values = text(values)?;
        let values = values.as_string::<i32>().iter();
        let shares: Vec<f64> =
            values.map(|value| value.and_then(|value| by_value.get(value)).copied().unwrap_or(0.0)).collect();
        Ok(shares.iter().any(|&share| share > 0.0).then_some(shares))
    }
}
