//! Cells by place: the first cuts of a table that is larger than memory, chosen by a sample of it.
//!
//! They are the top of the method's own recursion, which looks at samples of large parts anyway: each part is cut in two of the wanted
//! sizes, at the boundary that comes nearest, in the attribute where this saves most. With `l`, as everywhere in the method, a cut is made
//! only if both sides are diverse; in a sample, with something to spare. What each cell keeps is checked in the cell, on all of its rows.

use rustc_hash::FxHashMap;

use super::Diversity;
use super::axis::Axis;
use crate::error::Result;
use crate::microdata::{Encoded, PlaceCut};

/// Least rows of a sample on each side of a cut.
const LEAST: usize = 1000;
/// By how much sides of a sample must be more diverse than groups.
const MARGIN: f64 = 1.2;

/// Different rows that stand for a table.
pub struct PlaceSample {
    /// The quasi-identifiers.
    pub quasi: Vec<Encoded>,
    /// The sensitive attribute, where it matters.
    pub sensitive: Option<Encoded>,
    /// Number of rows of the table like each.
    pub weights: Vec<u32>,
}

/// Principle that both sides of a cut must keep.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlacePrinciple {
    /// Least number of rows of a side, if a trusted sample needs fewer.
    pub least: usize,
    /// Least diversity, and what that means.
    pub l: Option<(usize, Diversity)>,
}

impl PlacePrinciple {
    /// Returns true if rows with so many of each value are diverse enough.
    fn holds(self, counts: impl Iterator<Item = f64> + Clone) -> bool {
        let Some((l, diversity)) = self.l else { return true };
        let wanted = l as f64 * MARGIN;
        let rows: f64 = counts.clone().sum();
        match diversity {
            Diversity::Frequency => counts.fold(0.0, f64::max) * wanted <= rows,
            Diversity::Distinct => counts.count() as f64 >= wanted,
            Diversity::Entropy => {
                let entropy: f64 = counts.map(|count| count / rows).map(|share| -share * share.ln()).sum();
                entropy >= wanted.ln()
            }
        }
    }
}

/// Cuts a sample into equal cells, as many as it allows and are wanted. They have about as many rows each. The first cut is the root.
///
/// # Errors
/// When a hierarchy has too many leaves.
pub fn places(sample: &PlaceSample, principle: PlacePrinciple, cells: u32) -> Result<Vec<PlaceCut>> {
    let rows = sample.weights.len();
    let axes = sample.quasi.iter().map(|column| Axis::try_new(&column.attribute, rows)).collect::<Result<Vec<_>>>()?;
    let mut trunk = Trunk { sample, axes, principle, cuts: Vec::new() };
    trunk.cut((0..rows as u32).collect(), 0, cells);
    Ok(trunk.cuts)
}

struct Trunk<'a> {
    sample: &'a PlaceSample,
    axes: Vec<Axis<f32>>,
    principle: PlacePrinciple,
    cuts: Vec<PlaceCut>,
}

/// A box around rows, and how many there are.
#[derive(Clone)]
struct Side {
    rows: f64,
    ends: Vec<[f32; 2]>,
}

impl Trunk<'_> {
    /// Cuts rows into cells from the number `first`; returns the place of the node.
    fn cut(&mut self, rows: Vec<u32>, first: u32, cells: u32) -> usize {
        let place = self.cuts.len();
        self.cuts.push(PlaceCut::Cell(first));
        let below = cells / 2;
        let Some((attribute, last)) = self.best(&rows, f64::from(below) / f64::from(cells.max(1)), cells) else {
            return place;
        };
        let codes = &self.sample.quasi[attribute].codes;
        let (left, right): (Vec<u32>, Vec<u32>) = rows.into_iter().partition(|&row| codes.at(row) <= last);
        let left = self.cut(left, first, below);
        let right = self.cut(right, first + below, cells - below);
        self.cuts[place] = PlaceCut::Cut { attribute, last, below: left, above: right };
        place
    }

    /// Returns the cut that leaves the least loss, if one may be made: the attribute, and the last code below.
    fn best(&self, rows: &[u32], share: f64, cells: u32) -> Option<(usize, u32)> {
        if cells < 2 {
            return None;
        }
        let mut found: Vec<(f64, usize, u32)> = Vec::new();
        for (attribute, axis) in self.axes.iter().enumerate() {
            let Some(last) = self.boundary(attribute, axis, rows, share) else { continue };
            let codes = &self.sample.quasi[attribute].codes;
            let (mut below, mut above) = (self.nothing(), self.nothing());
            for &row in rows {
                let side = if codes.at(row) <= last { &mut below } else { &mut above };
                self.widen(side, row);
            }
            if below.rows.min(above.rows) >= self.principle.least.max(LEAST) as f64 {
                found.push((self.loss(&below) + self.loss(&above), attribute, last));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        found.into_iter().map(|(_, attribute, last)| (attribute, last)).find(|&cut| self.may_be_made(rows, cut))
    }

    /// Returns the boundary between two values nearest to the share of rows wanted below.
    fn boundary(&self, attribute: usize, axis: &Axis<f32>, rows: &[u32], share: f64) -> Option<u32> {
        let codes = &self.sample.quasi[attribute].codes;
        let mut weights: FxHashMap<u32, f64> = FxHashMap::default();
        for &row in rows {
            *weights.entry(codes.at(row)).or_default() += f64::from(self.sample.weights[row as usize]);
        }
        let mut values: Vec<(u32, f64)> = weights.into_iter().collect();
        values.sort_unstable_by_key(|(code, _)| *code);
        let (lowest, greatest) = (values.first()?.0, values.last()?.0);
        let allowed = axis.boundaries(axis.at(lowest), axis.at(greatest));
        let wanted = share * values.iter().map(|(_, rows)| rows).sum::<f64>();
        let mut below = 0.0;
        let mut best: Option<(f64, u32)> = None;
        for pair in values.windows(2) {
            below += pair[0].1;
            // Where there is a hierarchy, its nodes stay whole: a boundary between two of them lies anywhere between values that occur.
            let (here, next) = (axis.at(pair[0].0), axis.at(pair[1].0));
            let last = match &allowed {
                None => Some(pair[0].0),
                Some(ends) => ends.iter().find(|end| (here..next).contains(end)).map(|end| *end as u32),
            };
            let Some(last) = last else { continue };
            let miss = f64::abs(below - wanted);
            if best.is_none_or(|(least, _)| miss < least) {
                best = Some((miss, last));
            }
        }
        best.map(|(_, last)| last)
    }

    fn may_be_made(&self, rows: &[u32], (attribute, last): (usize, u32)) -> bool {
        let Some(sensitive) = &self.sample.sensitive else { return true };
        let codes = &self.sample.quasi[attribute].codes;
        let mut counts: [FxHashMap<u32, f64>; 2] = Default::default();
        for &row in rows {
            let side = usize::from(codes.at(row) > last);
            let count = counts[side].entry(sensitive.codes.at(row)).or_default();
            *count += f64::from(self.sample.weights[row as usize]);
        }
        // In the order of codes, so that sums are the same every time.
        counts.into_iter().all(|counts| {
            let mut counts: Vec<(u32, f64)> = counts.into_iter().collect();
            counts.sort_unstable_by_key(|(code, _)| *code);
            self.principle.holds(counts.iter().map(|(_, count)| *count))
        })
    }

    fn nothing(&self) -> Side {
        Side { rows: 0.0, ends: vec![[f32::INFINITY, f32::NEG_INFINITY]; self.axes.len()] }
    }

    fn widen(&self, side: &mut Side, row: u32) {
        side.rows += f64::from(self.sample.weights[row as usize]);
        for ((end, axis), column) in side.ends.iter_mut().zip(&self.axes).zip(&self.sample.quasi) {
            let at = axis.at(column.codes.at(row));
            *end = [end[0].min(at), end[1].max(at)];
        }
    }

    fn loss(&self, side: &Side) -> f64 {
        let lengths = self.axes.iter().zip(&side.ends).map(|(axis, &ends)| f64::from(axis.extent(ends)));
        side.rows * lengths.sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::microdata::{ColumnEncoder, Order};

    fn encoded(values: impl Iterator<Item = i32>) -> Encoded {
        let mut encoder = ColumnEncoder::try_new(Arc::new(Field::new("x", DataType::Int32, true))).unwrap();
        encoder.append(&(Arc::new(values.collect::<Int32Array>()) as ArrayRef)).unwrap();
        encoder.finish(Order::ByValue).unwrap()
    }

    /// Returns the rows of the table in each cell.
    fn sizes(sample: &PlaceSample, cuts: &[PlaceCut], cells: usize) -> Vec<u32> {
        let mut sizes = vec![0; cells];
        for (row, weight) in sample.weights.iter().enumerate() {
            let mut place = 0;
            let cell = loop {
                match cuts[place] {
                    PlaceCut::Cell(cell) => break cell,
                    PlaceCut::Cut { attribute, last, below, above } => {
                        place = if sample.quasi[attribute].codes.at(row as u32) <= last { below } else { above };
                    }
                }
            };
            sizes[cell as usize] += weight;
        }
        sizes
    }

    #[test]
    fn cells_are_of_about_the_same_size() {
        let quasi = vec![encoded((0..20_000).map(|row| row % 997)), encoded((0..20_000).map(|row| row / 100))];
        let sample = PlaceSample { quasi, sensitive: None, weights: vec![3; 20_000] };
        for cells in [2_u32, 3, 7, 16] {
            let cuts = places(&sample, PlacePrinciple::default(), cells).unwrap();
            let sizes = sizes(&sample, &cuts, cells as usize);
            assert!(sizes.iter().all(|&size| size.abs_diff(60_000 / cells) < 60_000 / cells / 10), "{sizes:?}");
        }
    }

    /// A heavy row counts as what it stands for.
    #[test]
    fn weights_count() {
        let quasi = vec![encoded(0..4000)];
        let weights = (0..4000).map(|row| if row < 1000 { 3 } else { 1 }).collect();
        let sample = PlaceSample { quasi, sensitive: None, weights };
        let cuts = places(&sample, PlacePrinciple::default(), 2).unwrap();
        assert_eq!(cuts[0], PlaceCut::Cut { attribute: 0, last: 999, below: 1, above: 2 });
    }

    /// The value of all low ages is the same: no cut may tell who has it.
    #[test]
    fn sides_are_diverse() {
        let ages = encoded((0..8000).map(|row| row / 100));
        let shuffled = encoded((0..8000).map(|row| row * 37 % 101));
        let sensitive = encoded((0..8000).map(|row| if row < 4000 { 0 } else { row % 7 }));
        let mut sample = PlaceSample { quasi: vec![ages], sensitive: Some(sensitive), weights: vec![1; 8000] };
        let diverse = PlacePrinciple { l: Some((2, Diversity::Distinct)), ..PlacePrinciple::default() };
        assert_eq!(places(&sample, diverse, 4).unwrap(), [PlaceCut::Cell(0)]);
        // Another attribute may be cut.
        sample.quasi.push(shuffled);
        let cuts = places(&sample, diverse, 4).unwrap();
        assert!(matches!(cuts[0], PlaceCut::Cut { attribute: 1, .. }), "{cuts:?}");
        for (diversity, l, holds) in
            [(Diversity::Frequency, 2, true), (Diversity::Frequency, 3, false), (Diversity::Entropy, 2, true)]
        {
            let principle = PlacePrinciple { l: Some((l, diversity)), ..PlacePrinciple::default() };
            assert_eq!(principle.holds([40.0, 30.0, 30.0].into_iter()), holds, "{diversity:?}");
        }
    }

    #[test]
    fn small_tables_stay_whole() {
        let sample = PlaceSample { quasi: vec![encoded(0..1500)], sensitive: None, weights: vec![1; 1500] };
        assert_eq!(places(&sample, PlacePrinciple::default(), 8).unwrap(), [PlaceCut::Cell(0)]);
        let nothing = PlaceSample { quasi: vec![encoded(0..0)], sensitive: None, weights: Vec::new() };
        assert_eq!(places(&nothing, PlacePrinciple::default(), 8).unwrap(), [PlaceCut::Cell(0)]);
    }
}
