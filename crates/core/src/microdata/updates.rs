//! The update relation: which sensitive values can become which, as the publisher declares it.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};

use super::ColumnEncoder;
use crate::error::{Error, Result, thousands};

/// Pairs of codes of the sensitive attribute: the first can become the second before the next release.
#[derive(Debug, Default, PartialEq)]
pub struct Updates {
    /// Ascending, each once.
    pub pairs: Vec<(u32, u32)>,
    /// Probability of each pair, where the publisher says so; empty if of none.
    pub probabilities: Vec<Option<f64>>,
}

impl Updates {
    /// Returns true if the publisher gave probabilities. No pair can be added without one then.
    pub fn weighted(&self) -> bool {
        !self.probabilities.is_empty()
    }
}

/// Reads the rows of an update relation.
#[derive(Debug, Default)]
pub(crate) struct UpdatesBuilder {
    /// Provisional codes, and the probability where there is one.
    pairs: Vec<(u32, u32, Option<f64>)>,
    from: Vec<usize>,
    to: Vec<usize>,
}

impl UpdatesBuilder {
    /// Appends rows: a value, what it can become, and with what probability if that is known. The values join the domain of
    /// the sensitive attribute, so that codes agree.
    /// Fails when a row lacks a value.
    pub(crate) fn append(
        &mut self,
        from: &ArrayRef,
        to: &ArrayRef,
        probability: Option<&ArrayRef>,
        sensitive: &mut ColumnEncoder,
    ) -> Result<()> {
        let nulls = (0..from.len()).filter(|&i| from.is_null(i) || to.is_null(i)).count();
        if nulls > 0 {
            return Err(refused(&format!(
                "has {} rows without a value; every row says which value can become which",
                thousands(nulls)
            )));
        }
        sensitive.intern(from, &mut self.from)?;
        sensitive.intern(to, &mut self.to)?;
        let probability = probability.map(|column| cast(column, &DataType::Float64)).transpose()?;
        let probability = probability.as_ref().map(|column| column.as_primitive::<Float64Type>());
        for (i, (&from, &to)) in self.from.iter().zip(&self.to).enumerate() {
            let weight = probability.filter(|column| column.is_valid(i)).map(|column| column.value(i));
            self.pairs.push((from as u32, to as u32, weight));
        }
        Ok(())
    }

    pub(crate) fn size(&self) -> usize {
        self.pairs.capacity() * size_of::<(u32, u32, Option<f64>)>()
    }

    /// Finishes with the final codes of the sensitive attribute ([`Encoded::ranks`](super::Encoded)).
    ///
    /// # Errors
    /// Probabilities that are not above 0 and at most 1 or do not add up, pairs with two of them, values that have them for some of
    /// their updates only, or that are certain to change.
    pub(crate) fn finish(self, ranks: &[u32]) -> Result<Updates> {
        let code = |code: u32| ranks[code as usize];
        let mut pairs: Vec<_> = self.pairs.into_iter().map(|(a, b, weight)| (code(a), code(b), weight)).collect();
        pairs.sort_by_key(|&(from, to, _)| (from, to));
        pairs.dedup();
        let mut wrong = [
            (0, "probabilities that are not above 0 and at most 1; leave out what cannot happen"),
            (0, "pairs of values with several probabilities"),
            (0, "values with probabilities for some of their updates and none for others"),
            (0, "values whose probabilities do not add up to 1 (the row for staying as it is may be left out)"),
            (0, "values that are certain to change; every value must be able to stay as it is"),
        ];
        for of_value in pairs.chunk_by(|a, b| a.0 == b.0) {
            let weights = || of_value.iter().filter_map(|(.., weight)| *weight);
            let (given, sum) = (weights().count(), weights().sum::<f64>());
            let stays = of_value.iter().any(|(a, b, _)| a == b);
            let found = [
                weights().filter(|weight| !(*weight > 0.0 && *weight <= 1.0)).count(),
                of_value.windows(2).filter(|pair| pair[0].1 == pair[1].1).count(),
                usize::from(0 < given && given < of_value.len()),
                usize::from(given > 0 && (sum > 1.0 + SLACK || stays && sum < 1.0 - SLACK)),
                usize::from(given > 0 && !stays && sum >= 1.0 - SLACK),
            ];
            wrong.iter_mut().zip(found).for_each(|(wrong, found)| wrong.0 += found);
        }
        match wrong.into_iter().find(|(count, _)| *count > 0) {
            Some((count, what)) => Err(refused(&format!("has {} {what}", thousands(count)))),
            None => Ok(Updates {
                probabilities: match pairs.iter().any(|(.., weight)| weight.is_some()) {
                    true => pairs.iter().map(|&(.., weight)| weight).collect(),
                    false => Vec::new(),
                },
                pairs: pairs.into_iter().map(|(a, b, _)| (a, b)).collect(),
            }),
        }
    }
}

/// Tolerance of sums of probabilities.
const SLACK: f64 = 1e-9;

fn refused(what: &str) -> Error {
    Error::refused(format!("`updates` {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, StringArray};
    use datafusion::arrow::datatypes::Field;

    use super::*;
    use crate::microdata::Order;

    type Rows<'a> = &'a [(Option<&'a str>, Option<&'a str>, Option<f64>)];

    fn read(rows: Rows<'_>, weighted: bool) -> Result<Updates> {
        let mut encoder = ColumnEncoder::try_new(Arc::new(Field::new("s", DataType::Utf8, true))).unwrap();
        let from: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<StringArray>());
        let to: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>());
        let weights: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>());
        let mut builder = UpdatesBuilder::default();
        builder.append(&from, &to, weighted.then_some(&weights), &mut encoder)?;
        builder.finish(&encoder.finish(Order::ByValue).unwrap().ranks)
    }

    #[test]
    fn pairs_are_sorted_and_repeated_ones_dropped() {
        let b = (Some("b"), Some("a"), None);
        let updates = read(&[b, (Some("a"), Some("b"), None), b], false).unwrap();
        assert_eq!(updates, Updates { pairs: vec![(0, 1), (1, 0)], probabilities: Vec::new() });
    }

    #[test]
    fn what_is_wrong_is_said_without_values() {
        let refusal = |rows: Rows<'_>| read(rows, true).unwrap_err().to_string();
        let pair = |weight: f64| (Some("cold"), Some("flu"), Some(weight));
        assert!(refusal(&[(Some("cold"), None, Some(0.5))]).contains("1 rows without a value"));
        for weight in [-0.5, 0.0, 1.5, f64::NAN, f64::INFINITY] {
            let text = refusal(&[pair(weight)]);
            assert!(text.contains("1 probabilities") && !text.contains("cold"), "{text}");
        }
        assert!(refusal(&[pair(0.5), pair(0.25)]).contains("several probabilities"));
        assert!(refusal(&[pair(1.0)]).contains("certain to change"));
        let stays = |weight: Option<f64>| (Some("cold"), Some("cold"), weight);
        assert!(refusal(&[pair(0.5), stays(None)]).contains("none for others"));
        assert!(refusal(&[pair(0.5), stays(Some(0.25))]).contains("add up"));
        assert!(refusal(&[pair(0.75), stays(Some(0.5))]).contains("add up"));
        assert!(read(&[pair(0.5), stays(Some(0.5))], true).unwrap().weighted());
        assert!(!read(&[(Some("cold"), Some("flu"), None)], true).unwrap().weighted());
        assert_eq!(read(&[pair(0.75)], true).unwrap().probabilities, [Some(0.75)]);
    }
}
