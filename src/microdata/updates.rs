//! The update relation: which sensitive values can become which, as the publisher declares it.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};

use super::ColumnEncoder;
use crate::error::{Error, Result, thousands};

/// Pairs of codes of the sensitive attribute: the first can become the second before the next release.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Updates {
    /// Ascending, each once.
    pub pairs: Vec<(u32, u32)>,
    /// Whether the publisher gave probabilities, so that no pair can be added without one.
    pub weighted: bool,
}

/// Reads the rows of an update relation.
#[derive(Debug, Default)]
pub struct UpdatesBuilder {
    /// Provisional codes, and the probability where there is one.
    pairs: Vec<(u32, u32, Option<f64>)>,
    from: Vec<usize>,
    to: Vec<usize>,
}

impl UpdatesBuilder {
    /// Appends rows: a value, what it can become, and with what probability if that is known. The values join the domain of
    /// the sensitive attribute, so that codes agree.
    ///
    /// # Errors
    /// NULL, and probabilities that are not positive numbers.
    pub fn append(
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
        let mut bad = 0;
        for (i, (&from, &to)) in self.from.iter().zip(&self.to).enumerate() {
            let weight = probability.map(|column| if column.is_null(i) { f64::NAN } else { column.value(i) });
            bad += usize::from(weight.is_some_and(|weight| !(weight > 0.0 && weight.is_finite())));
            self.pairs.push((from as u32, to as u32, weight));
        }
        match bad {
            0 => Ok(()),
            _ => Err(refused(&format!(
                "has {} rows whose probability is not a number above 0; leave out what cannot happen",
                thousands(bad)
            ))),
        }
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.pairs.capacity() * size_of::<(u32, u32, Option<f64>)>()
    }

    /// Finishes with the final codes of the sensitive attribute ([`Encoded::ranks`](super::Encoded)).
    ///
    /// # Errors
    /// When a pair has two probabilities, or those of a value cannot be made to add up to 1.
    pub fn finish(self, ranks: &[u32]) -> Result<Updates> {
        let code = |code: u32| ranks[code as usize];
        let mut pairs: Vec<_> = self.pairs.into_iter().map(|(a, b, weight)| (code(a), code(b), weight)).collect();
        let weighted = pairs.iter().any(|(.., weight)| weight.is_some());
        pairs.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let contradictions = pairs.windows(2).filter(|pair| {
            let ([a, b], same) = ([pair[0], pair[1]], (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
            same && a.2 != b.2
        });
        let contradictions = contradictions.count();
        if contradictions > 0 {
            return Err(refused(&format!(
                "gives {} pairs of values two different probabilities",
                thousands(contradictions)
            )));
        }
        pairs.dedup_by_key(|&mut (a, b, _)| (a, b));
        // What is missing for 1 is the probability that a value stays as it is, if there is no row for that.
        let impossible = pairs.chunk_by(|a, b| a.0 == b.0).filter(|of_value| {
            let sum: f64 = of_value.iter().filter_map(|(.., weight)| *weight).sum();
            let stays = of_value.iter().any(|(a, b, _)| a == b);
            weighted && (!sum.is_finite() || !stays && sum >= 1.0 - 1e-9)
        });
        match impossible.count() {
            0 => Ok(Updates { pairs: pairs.into_iter().map(|(a, b, _)| (a, b)).collect(), weighted }),
            values => Err(refused(&format!(
                "leaves {} values no probability of staying as they are, which every value must have: add the rows from a \
                 value to itself, or probabilities that add up to less than 1",
                thousands(values)
            ))),
        }
    }
}

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
        assert_eq!(updates, Updates { pairs: vec![(0, 1), (1, 0)], weighted: false });
    }

    #[test]
    fn what_is_wrong_is_said_without_values() {
        let refusal = |rows: Rows<'_>| read(rows, true).unwrap_err().to_string();
        let pair = |weight: f64| (Some("cold"), Some("flu"), Some(weight));
        assert!(refusal(&[(Some("cold"), None, Some(0.5))]).contains("1 rows without a value"));
        for weight in [-0.5, 0.0, f64::NAN, f64::INFINITY] {
            let text = refusal(&[pair(weight)]);
            assert!(text.contains("1 rows whose probability") && !text.contains("cold"), "{text}");
        }
        assert!(refusal(&[(Some("cold"), Some("flu"), None)]).contains("1 rows whose probability"));
        assert!(refusal(&[pair(0.5), pair(0.25)]).contains("two different probabilities"));
        assert!(refusal(&[pair(1.0)]).contains("no probability of staying"));
        assert!(refusal(&[pair(f64::MAX), (Some("cold"), Some("cold"), Some(f64::MAX))]).contains("no probability"));
        assert!(read(&[pair(0.75)], true).unwrap().weighted);
        assert!(read(&[pair(3.0), (Some("cold"), Some("cold"), Some(1.0))], true).is_ok(), "normalized");
    }
}
