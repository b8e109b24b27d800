//! Which rows of a value go to which step of an assignment. A plain draw, as in m-invariance's paper, and it must stay one.
//!
//! It is tempting to draw rows that lie close together: groups would be tighter. But then the choice depends on where the
//! rows of a value lie, so on who has the value; a reader who knows everyone's quasi-identifiers and this code can rule
//! out all assignments of values under which other rows would have been chosen. (Rows at even distances along a
//! space-filling curve made groups 1% tighter and gave most people of a release away.) With a uniform draw, any permutation
//! of the values inside a bucket explains the release equally well, and nobody's value is likelier than `1/m`.

use super::assignment::Step;
use super::lots::Lots;
use crate::release::COUNTERFEIT;

/// Deals out the rows of each value, and as many counterfeits as `padding` says. Calls `put` with the number of the step, the
/// place in its signature, and a row; not for counterfeits.
pub(super) fn deal(
    mut lines: Vec<Vec<u32>>,
    padding: &[usize],
    steps: &[Step],
    lots: &mut impl Lots,
    mut put: impl FnMut(usize, usize, u32),
) {
    for (rows, &padding) in lines.iter_mut().zip(padding) {
        rows.resize(rows.len() + padding, COUNTERFEIT);
        lots.shuffle_rows(rows);
    }
    for (number, step) in steps.iter().enumerate() {
        for (place, &value) in step.signature.iter().enumerate() {
            let line = &mut lines[value as usize];
            for row in line.drain(line.len() - step.rows..).filter(|&row| row != COUNTERFEIT) {
                put(number, place, row);
            }
        }
    }
}
