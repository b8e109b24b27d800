//! Draw of the rows of a value for the steps of an assignment. A plain draw, as in m-invariance's paper, and it must stay one.
//!
//! It is tempting to draw rows that lie close together: groups would be tighter. But then the choice depends on where the
//! rows of a value lie, so on who has the value; a reader who knows everyone's quasi-identifiers and this code can rule
//! out all assignments of values under which other rows would have been chosen. (Rows at even distances along a
//! space-filling curve made groups 1% tighter and gave most people of a release away.) With a uniform draw, any permutation
//! of the values inside a bucket explains the release equally well, and nobody's value is likelier than `1/m`.

use super::assignment::Step;
use super::lots::Lots;
use crate::release::COUNTERFEIT;

/// Rows of every value in the order in which they are dealt.
pub(super) struct Dealt<'a> {
    lines: Vec<Vec<u32>>,
    steps: &'a [Step],
}

/// Rows for a place in the signature of a step.
pub(super) struct Hand<'a> {
    /// Number of the step.
    pub step: usize,
    /// The place.
    pub place: usize,
    /// Rows and counterfeits.
    dealt: &'a [u32],
}

impl Hand<'_> {
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.dealt.iter().copied().filter(|&row| row != COUNTERFEIT)
    }
}

/// Deals out the rows of each value, and as many counterfeits as `padding` says.
pub(super) fn deal<'a>(
    mut lines: Vec<Vec<u32>>,
    padding: &[usize],
    steps: &'a [Step],
    lots: &mut impl Lots,
) -> Dealt<'a> {
    for (rows, &padding) in lines.iter_mut().zip(padding) {
        rows.resize(rows.len() + padding, COUNTERFEIT);
        lots.shuffle_rows(rows);
    }
    Dealt { lines, steps }
}

impl Dealt<'_> {
    /// Deals every place of every step its rows, step after step. No row is in two hands.
    pub(super) fn hands(&self) -> Vec<Hand<'_>> {
        let mut left: Vec<&[u32]> = self.lines.iter().map(Vec::as_slice).collect();
        let mut hands = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            for (place, &value) in step.signature.iter().enumerate() {
                let line = &mut left[value as usize];
                let (after, dealt) = line.split_at(line.len() - step.rows);
                *line = after;
                hands.push(Hand { step: number, place, dealt });
            }
        }
        hands
    }
}
