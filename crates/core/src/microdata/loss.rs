//! Information loss of a release against the table it was made of.
//!
//! An interval `v` of an attribute with the domain `A`, both as sets of values (of the leaves, where there is a hierarchy),
//! loses
//! - LM, the loss metric: `(|v| - 1) / (|A| - 1)` (Iyengar, KDD 2002);
//! - EM, the entropy measure: the entropy in bits of the original value given `v`, by the frequencies in the original table
//!   (Gionis and Tassa, ESA 2007);
//! - ILoss: `(|v| - 1) / |A|` (Xiao and Tao, SIGMOD 2006);
//! - NCP, the normalized certainty penalty: of numbers and times the length of `v` over that of the domain, of categories
//!   `|v| / |A|`, and 0 for a single value (Xu et al., KDD 2006). The domain is that of the original table; what an interval
//!   holds beyond it does not count. NULL lies one mean gap between values below the least value.
//!
//! Of a release, each is the mean over its rows; overall, the mean over attributes as well. Rows whose values were replaced lose the
//! distance between the two values ([`Distance`]) as a share of the greatest in the original.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::FieldRef;
use rustc_hash::FxHashMap;

use super::encoder::given_order;
use super::{Attribute, ColumnEncoder, Distance, Encoded, Hierarchies, Order};
use crate::error::{Error, Result, thousands};

/// Losses of one attribute, or of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Loss metric, 0 to 1.
    pub lm: f64,
    /// Entropy measure, in bits.
    pub em: f64,
    /// ILoss, 0 to 1.
    pub iloss: f64,
    /// Normalized certainty penalty, 0 to 1.
    pub ncp: f64,
}

/// Collects one attribute of an original table and of its release.
pub struct LossBuilder {
    encoder: ColumnEncoder,
    field: FieldRef,
    /// Rows of the original by provisional code.
    original: Vec<u64>,
    /// Rows of the release by provisional codes of the ends.
    released: FxHashMap<[u32; 2], u64>,
    codes: [Vec<usize>; 2],
}

impl LossBuilder {
    /// Returns a builder for an attribute of this name and type.
    ///
    /// # Errors
    /// When the type cannot be grouped by.
    pub fn try_new(field: FieldRef) -> Result<Self> {
        let encoder = ColumnEncoder::try_new(FieldRef::clone(&field))?;
        Ok(Self { encoder, field, original: Vec::new(), released: FxHashMap::default(), codes: Default::default() })
    }

    /// Appends values of the original.
    ///
    /// # Errors
    /// When grouping fails.
    pub fn append_original(&mut self, values: &ArrayRef) -> Result<()> {
        let codes = &mut self.codes[0];
        self.encoder.intern(values, codes)?;
        for &code in &*codes {
            if code >= self.original.len() {
                self.original.resize(code + 1, 0);
            }
            self.original[code] += 1;
        }
        Ok(())
    }

    /// Appends intervals of the release, both ends included.
    ///
    /// # Errors
    /// When grouping fails.
    pub fn append_released(&mut self, lo: &ArrayRef, hi: &ArrayRef) -> Result<()> {
        let [los, his] = &mut self.codes;
        self.encoder.intern(lo, los)?;
        self.encoder.intern(hi, his)?;
        debug_assert_eq!(lo.len(), hi.len());
        for (&lo, &hi) in los.iter().zip(&*his) {
            *self.released.entry([lo as u32, hi as u32]).or_default() += 1;
        }
        Ok(())
    }

    /// Returns the bytes held.
    pub fn size(&self) -> usize {
        let pair = size_of::<([u32; 2], u64)>() + 1;
        self.encoder.size() + self.original.capacity() * size_of::<u64>() + self.released.capacity() * pair
    }

    /// Encodes the attribute, the rows of the original, and the ends of the release's rows.
    fn encode(self, hierarchies: Option<&Hierarchies>) -> Result<Collected> {
        let given = given_order(&self.field)?;
        let order = Order::of(self.field.name(), hierarchies, given.as_deref());
        let Encoded { attribute, ranks, .. } = self.encoder.finish(order)?;
        let mut original = vec![0; attribute.domain.len()];
        for (count, &rank) in self.original.iter().zip(&ranks) {
            original[rank as usize] = *count;
        }
        // In an order of their own, so that sums do not depend on that of a hash table.
        let released = self.released.into_iter().map(|(ends, rows)| (ends.map(|end| ranks[end as usize]), rows));
        let mut released: Vec<([u32; 2], u64)> = released.collect();
        released.sort_unstable();
        Ok(Collected { attribute, original, released })
    }

    /// Compares original values with published ones of the same rows, both appended as ends. Returns the number of values of the attribute,
    /// and the mean distance over the rows, as a share of the greatest distance in the original; `None` if there are no rows.
    ///
    /// # Errors
    /// When there are not as many pairs as rows of the original.
    pub fn finish_pairs(self, hierarchies: Option<&Hierarchies>) -> Result<(usize, Option<f64>)> {
        let Collected { attribute, original, released } = self.encode(hierarchies)?;
        let (rows, all) = (released.iter().map(|(_, rows)| rows).sum::<u64>(), original.iter().sum::<u64>());
        if rows != all {
            return Err(Error::refused(format!(
                "the original has {} rows, but {} pairs of rows have the same identifier; the release must have every row of the \
                 original once",
                thousands(all as usize),
                thousands(rows as usize)
            )));
        }
        let distance = Distance::of(&attribute)?;
        let occurring: Vec<u32> = (0..original.len() as u32).filter(|&code| original[code as usize] > 0).collect();
        let widest = distance.widest(&occurring).max(f64::MIN_POSITIVE);
        let share =
            |([before, after], count): &([u32; 2], u64)| *count as f64 * (distance.between(*before, *after) / widest);
        let mean = released.iter().map(share).sum::<f64>() / rows as f64;
        Ok((Measure::new(&attribute, &original)?.values(), (rows > 0).then_some(mean)))
    }

    /// Returns the number of values of the attribute, and its rows' mean loss. `None` if there are no rows.
    ///
    /// # Errors
    /// When intervals are not intervals in the order of the domain, or hold no value of the original.
    pub fn finish(self, hierarchies: Option<&Hierarchies>) -> Result<(usize, Option<Loss>)> {
        let Collected { attribute, original, released } = self.encode(hierarchies)?;
        let name = attribute.field.name();
        let measure = Measure::new(&attribute, &original)?;
        let (mut sum, mut rows, mut torn, mut empty) = ([0.0; 4], 0, 0, 0);
        for ([lo, hi], count) in released {
            rows += count;
            if lo > hi {
                torn += count;
            } else if measure.rows(lo, hi) == 0 {
                empty += count;
            } else {
                let losses = measure.losses(lo, hi);
                sum.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += count as f64 * loss);
            }
        }
        if torn > 0 {
            return Err(Error::refused(format!(
                "in {} rows of the release, lo comes after hi in the order of {name}; if the release was made with \
                 hierarchies, pass the same hierarchies => ..",
                thousands(torn as usize)
            )));
        }
        if empty > 0 {
            return Err(Error::refused(format!(
                "in {} rows of the release, no value of the original's {name} lies between lo and hi; is it a release of this \
                 table?",
                thousands(empty as usize)
            )));
        }
        let [lm, em, iloss, ncp] = sum.map(|sum| sum / rows as f64);
        Ok((measure.values(), (rows > 0).then_some(Loss { lm, em, iloss, ncp })))
    }
}

struct Collected {
    attribute: Attribute,
    original: Vec<u64>,
    released: Vec<([u32; 2], u64)>,
}

struct Measure<'a> {
    attribute: &'a Attribute,
    /// Values up to each code; those that do not occur count if they are leaves.
    values: Vec<usize>,
    /// Rows up to each code, and their weight in entropies.
    rows: Vec<u64>,
    weights: Vec<f64>,
    /// Places of the least and the greatest value of the original.
    ends: [f64; 2],
    places: Vec<f64>,
}

impl<'a> Measure<'a> {
    fn new(attribute: &'a Attribute, original: &[u64]) -> Result<Self> {
        let places = attribute.domain.places()?;
        let place = |code: Option<usize>| code.map_or(0.0, |code| places[code]);
        let occurs = |count: &u64| *count > 0;
        let ends = [place(original.iter().position(occurs)), place(original.iter().rposition(occurs))];
        let mut measure = Self { attribute, values: vec![0], rows: vec![0], weights: vec![0.0], ends, places };
        let (mut values, mut rows, mut weight) = (0, 0, 0.0);
        for (code, &count) in original.iter().enumerate() {
            // Leaves belong to the domain even if they do not occur; NULL, which is nobody's leaf, if it does.
            let is_leaf = attribute.hierarchy.is_some() && !(code == 0 && attribute.domain.has_null());
            values += usize::from(count > 0 || is_leaf);
            rows += count;
            weight += if count > 0 { count as f64 * (count as f64).log2() } else { 0.0 };
            measure.values.push(values);
            measure.rows.push(rows);
            measure.weights.push(weight);
        }
        Ok(measure)
    }

    fn values(&self) -> usize {
        self.values[self.values.len() - 1]
    }

    fn rows(&self, lo: u32, hi: u32) -> u64 {
        self.rows[hi as usize + 1] - self.rows[lo as usize]
    }

    /// Computes LM, EM, ILoss and NCP.
    fn losses(&self, lo: u32, hi: u32) -> [f64; 4] {
        let all = self.values() as f64;
        let held = (self.values[hi as usize + 1] - self.values[lo as usize]) as f64;
        let (lm, iloss) = match held > 1.0 {
            true => ((held - 1.0) / (all - 1.0), (held - 1.0) / all),
            false => (0.0, 0.0),
        };
        let rows = self.rows(lo, hi) as f64;
        let entropy = rows.log2() - (self.weights[hi as usize + 1] - self.weights[lo as usize]) / rows;
        let domain = &self.attribute.domain;
        let ncp = if domain.is_measured() && self.attribute.hierarchy.is_none() {
            let [least, greatest] = self.ends;
            let within = |code: u32| self.places[code as usize].clamp(least, greatest);
            (within(hi) - within(lo)) / (greatest - least).max(f64::MIN_POSITIVE)
        } else if held > 1.0 {
            held / all
        } else {
            0.0
        };
        [lm, entropy.max(0.0), iloss, ncp]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, StringArray};
    use datafusion::arrow::datatypes::Field;

    use super::*;

    fn loss(original: &ArrayRef, lo: &ArrayRef, hi: &ArrayRef) -> Result<(usize, Option<Loss>)> {
        let field = Arc::new(Field::new("x", original.data_type().clone(), true));
        let mut builder = LossBuilder::try_new(field).unwrap();
        builder.append_original(original).unwrap();
        builder.append_released(lo, hi).unwrap();
        builder.finish(None)
    }

    fn numbers(values: &[i32]) -> ArrayRef {
        Arc::new(Int32Array::from(values.to_vec()))
    }

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    /// By hand: values 10, 20, 20, 40, released as [10, 20] twice, [20, 40] and [40, 40].
    #[test]
    fn numbers_by_hand() {
        let released = (numbers(&[10, 10, 20, 40]), numbers(&[20, 20, 40, 40]));
        let (values, loss) = loss(&numbers(&[10, 20, 20, 40]), &released.0, &released.1).unwrap();
        let loss = loss.unwrap();
        assert_eq!(values, 3);
        assert_eq!(loss.lm, 3.0 * 0.5 / 4.0);
        assert!((loss.iloss - 3.0 / 3.0 / 4.0).abs() < 1e-12);
        assert!((loss.ncp - (10.0 + 10.0 + 20.0) / 30.0 / 4.0).abs() < 1e-7);
        // One value of one row against one of two: H(1/3).
        let h = -(1.0_f64 / 3.0) * (1.0_f64 / 3.0).log2() - (2.0_f64 / 3.0) * (2.0_f64 / 3.0).log2();
        assert!((loss.em - 3.0 * h / 4.0).abs() < 1e-12);
    }

    #[test]
    fn categories_by_hand() {
        let (_, loss) =
            loss(&texts(&["a", "b", "c", "d"]), &texts(&["a", "a", "c", "d"]), &texts(&["b", "b", "c", "d"])).unwrap();
        let loss = loss.unwrap();
        assert!((loss.lm - 2.0 / 3.0 / 4.0).abs() < 1e-12);
        assert_eq!(loss.ncp, 0.25);
        assert_eq!(loss.em, 0.5);
    }

    /// Ends that are no values of the original, as other tools publish: 20 and 40 in [0, 30] and [31, 100].
    #[test]
    fn lengths_count_within_the_original() {
        let released = (numbers(&[0, 31]), numbers(&[30, 100]));
        let loss = loss(&numbers(&[20, 40]), &released.0, &released.1).unwrap().1.unwrap();
        assert_eq!((loss.lm, loss.em), (0.0, 0.0));
        assert!((loss.ncp - (10.0 + 9.0) / 20.0 / 2.0).abs() < 1e-6, "{}", loss.ncp);
    }

    #[test]
    fn pairs_by_hand() {
        let pairs = |original: &ArrayRef, before: &ArrayRef, after: &ArrayRef| {
            let field = Arc::new(Field::new("x", original.data_type().clone(), true));
            let mut builder = LossBuilder::try_new(field).unwrap();
            builder.append_original(original).unwrap();
            builder.append_released(before, after).unwrap();
            builder.finish_pairs(None)
        };
        let (x, y) = (numbers(&[10, 20, 20, 40]), numbers(&[20, 10, 20, 20]));
        let (values, distance) = pairs(&x, &x, &y).unwrap();
        assert_eq!(values, 3);
        assert!((distance.unwrap() - 40.0 / 30.0 / 4.0).abs() < 1e-12);
        // Different categories are one apart, however far in the alphabet.
        let (x, y) = (texts(&["a", "b", "c", "c"]), texts(&["c", "b", "c", "b"]));
        assert_eq!(pairs(&x, &x, &y).unwrap(), (3, Some(0.5)));
        let error = pairs(&x, &texts(&["a"]), &texts(&["b"])).unwrap_err().to_string();
        assert!(error.contains("the original has 4 rows, but 1 pairs"), "{error}");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let error = loss(&numbers(&[1, 2, 3]), &numbers(&[2]), &numbers(&[1])).unwrap_err().to_string();
        assert!(error.starts_with("in 1 rows of the release, lo comes after hi in the order of x"), "{error}");
        let error = loss(&numbers(&[1, 2, 3]), &numbers(&[5]), &numbers(&[7])).unwrap_err().to_string();
        assert!(error.contains("no value of the original's x lies between"), "{error}");
        assert_eq!(loss(&numbers(&[1]), &numbers(&[]), &numbers(&[])).unwrap(), (1, None));
        assert_eq!(loss(&numbers(&[1]), &numbers(&[1]), &numbers(&[1])).unwrap().1.unwrap().lm, 0.0);
    }
}
