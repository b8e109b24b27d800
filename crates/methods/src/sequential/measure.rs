//! Loss of a generalized value.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::microdata::{Attribute, Hierarchy, Microdata};

/// The loss to minimize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// The loss metric: `(|v| - 1) / (|A| - 1)` for a value `v` of an attribute with the domain `A`.
    #[default]
    Lm,
    /// The entropy measure: the entropy in bits of the original value given `v`, by the frequencies in the table.
    Em,
}

/// Domains up to this size have all losses in a table.
const TABLED: usize = 256;

/// Losses of the intervals of every quasi-identifier.
pub(super) struct Measure {
    scales: Vec<Scale>,
}

struct Scale {
    values: usize,
    hierarchy: Option<Arc<Hierarchy>>,
    /// Rows with codes below each code, and the sum of `n log2 n` over those codes; empty for the loss metric.
    below: Vec<(f64, f64)>,
    /// Loss of one more value, where every one more loses as much: by the loss metric without a hierarchy.
    step: Option<f32>,
    /// Loss of the smallest published value that holds the codes `lo` to `hi`, at `lo * values + hi`; empty for large domains.
    table: Vec<f32>,
}

impl Measure {
    pub(super) fn new(loss: Loss, microdata: &Microdata) -> Self {
        let scale = |(j, attribute): (usize, &Attribute)| {
            let counts = || {
                let mut counts = vec![0_u32; attribute.domain.len()];
                let codes = (0..microdata.rows as u32).map(|row| microdata.quasi_at(row, j));
                codes.for_each(|code| counts[code as usize] += 1);
                counts
            };
            Scale::new(attribute, if loss == Loss::Em { counts() } else { Vec::new() })
        };
        Self { scales: microdata.quasi.iter().enumerate().map(scale).collect() }
    }

    /// Returns the loss of quasi-identifier `j`'s smallest published value with codes `lo` to `hi`.
    #[inline]
    pub(super) fn of(&self, j: usize, [lo, hi]: [u32; 2]) -> f32 {
        let scale = &self.scales[j];
        match scale.table.is_empty() {
            true => scale.loss(lo, hi) as f32,
            false => scale.table[lo as usize * scale.values + hi as usize],
        }
    }

    /// Returns true if losses of values that meet add up: the loss metric. What a value loses is at most the sum of what two losses are.
    pub(super) fn adds_up(&self) -> bool {
        self.scales.iter().all(|scale| scale.below.is_empty())
    }

    #[inline]
    pub(super) fn sum(&self, intervals: impl Iterator<Item = [u32; 2]>) -> f32 {
        intervals.enumerate().map(|(j, interval)| self.of(j, interval)).sum()
    }

    /// Returns the losses of the smallest box around a box and a point, summed up.
    #[inline]
    pub(super) fn with(&self, intervals: impl Iterator<Item = [u32; 2]>, codes: impl Iterator<Item = u32>) -> f32 {
        self.sum(intervals.zip(codes).map(|([lo, hi], code)| [lo.min(code), hi.max(code)]))
    }

    pub(super) fn most(&self) -> f32 {
        let whole = |(j, scale): (usize, &Scale)| self.of(j, [0, scale.values.saturating_sub(1) as u32]);
        self.scales.iter().enumerate().map(whole).sum()
    }

    /// Adds to each cost the loss of an interval that holds one more code. It is of quasi-identifier `j`. `places` are the codes once more.
    pub(super) fn add(&self, j: usize, [lo, hi]: [u32; 2], codes: &[u32], places: &[f32], costs: &mut [f32]) {
        if let Some(step) = self.scales[j].step {
            let (lo, hi) = (lo as f32, hi as f32);
            let above_0 = |number: f32| if number > 0.0 { number } else { 0.0 };
            // One of the two is 0.
            let add = |(cost, &place): (&mut f32, &f32)| *cost += (above_0(lo - place) + above_0(place - hi)) * step;
            return costs.iter_mut().zip(places).for_each(add);
        }
        let before = self.of(j, [lo, hi]);
        for (cost, &code) in costs.iter_mut().zip(codes) {
            let added = self.of(j, [lo.min(code), hi.max(code)]) - before;
            *cost += if added > 0.0 { added } else { 0.0 };
        }
    }

    /// Returns the width of an interval, 0 to 1, whatever the loss.
    pub(super) fn width(&self, j: usize, lo: f32, hi: f32) -> f32 {
        (hi - lo) / (self.scales[j].values.max(2) - 1) as f32
    }
}

impl Scale {
    fn new(attribute: &Attribute, counts: Vec<u32>) -> Self {
        let values = attribute.domain.len();
        let mut below = Vec::new();
        if !counts.is_empty() {
            below.push((0.0, 0.0));
            let mut sums = (0.0, 0.0);
            for count in counts.into_iter().map(f64::from) {
                sums.0 += count;
                sums.1 += if count > 0.0 { count * count.log2() } else { 0.0 };
                below.push(sums);
            }
        }
        let is_even = below.is_empty() && attribute.hierarchy.is_none();
        let step = is_even.then(|| 1.0 / (values.max(2) - 1) as f32);
        let mut scale = Self { values, hierarchy: attribute.hierarchy.clone(), below, step, table: Vec::new() };
        if values <= TABLED {
            let mut table = vec![0.0; values * values];
            for lo in 0..values {
                for hi in lo..values {
                    table[lo * values + hi] = scale.loss(lo as u32, hi as u32) as f32;
                }
            }
            scale.table = table;
        }
        scale
    }

    #[inline(never)]
    fn loss(&self, lo: u32, hi: u32) -> f64 {
        let [lo, hi] = self.hierarchy.as_ref().map_or([lo, hi], |hierarchy| hierarchy.closure(lo, hi));
        if lo == hi {
            return 0.0;
        }
        if self.below.is_empty() {
            return f64::from(hi - lo) / (self.values.max(2) - 1) as f64;
        }
        let ((rows, sum), (rows_below, sum_below)) = (self.below[hi as usize + 1], self.below[lo as usize]);
        let rows = rows - rows_below;
        if rows > 0.0 { (rows.log2() - (sum - sum_below) / rows).max(0.0) } else { 0.0 }
    }
}
