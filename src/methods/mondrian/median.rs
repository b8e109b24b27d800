//! The paper's cuts: at the median of the attribute with the greatest spread.

use super::axis::Axis;
use super::cut::{Cut, Item, Spare};
use crate::methods::extent::Extent;

/// Cuts in the order they are to be tried in: attributes by their spread; for each the boundary between two values that is
/// nearest to the median, then the other boundary of the median's value, then (relaxed) the median itself, with the rows of
/// its value on both sides. Along a hierarchy, only the boundary between two children that is nearest.
pub(super) fn cuts<const W: usize>(axes: &[Axis], items: &[Item<W>], extent: &Extent<W>, least: usize) -> Vec<Cut> {
    let spread = |j: usize| axes[j].extent(extent.lo[j], extent.hi[j]);
    let mut attributes: Vec<usize> = (0..axes.len()).filter(|&j| extent.lo[j] < extent.hi[j]).collect();
    attributes.sort_by(|&a, &b| spread(b).total_cmp(&spread(a)).then(a.cmp(&b)));
    let mut at = Vec::with_capacity(items.len());
    attributes.into_iter().flat_map(|j| of_attribute(&axes[j], j, items, extent, least, &mut at)).collect()
}

fn of_attribute<const W: usize>(
    axis: &Axis,
    attribute: usize,
    items: &[Item<W>],
    extent: &Extent<W>,
    least: usize,
    at: &mut Vec<f32>,
) -> Vec<Cut> {
    let half = items.len() / 2;
    let up_to = |to: f32, spare: Spare| Cut { attribute, from: extent.lo[attribute], to, spare };
    at.clear();
    at.extend(items.iter().map(|item| item.at[attribute]));
    if let Some(boundaries) = axis.boundaries(extent.lo[attribute], extent.hi[attribute]) {
        at.sort_unstable_by(f32::total_cmp);
        let below = |boundary: &f32| at.partition_point(|at| at <= boundary);
        let sides = |boundary: &f32| (least..=items.len() - least).contains(&below(boundary));
        let nearest = boundaries.into_iter().filter(sides).min_by_key(|boundary| below(boundary).abs_diff(half));
        return nearest.map(|boundary| up_to(boundary, Spare::NONE)).into_iter().collect();
    }
    let median = *at.select_nth_unstable_by(half, f32::total_cmp).1;
    let before = at.iter().copied().filter(|&at| at < median).fold(f32::NEG_INFINITY, f32::max);
    let below = at.iter().filter(|&&at| at < median).count();
    let up_to_median = at.iter().filter(|&&at| at <= median).count();
    let mut boundaries = [(below, before), (up_to_median, median)];
    boundaries.sort_by_key(|(rows, _)| rows.abs_diff(half));
    let strict = boundaries.into_iter().filter(|(rows, _)| (least..=items.len() - least).contains(rows));
    let mut cuts: Vec<Cut> = strict.map(|(_, to)| up_to(to, Spare::NONE)).collect();
    if half >= least && below < half && half < up_to_median {
        cuts.push(up_to(median, Spare { rows: up_to_median - half, from: median, to: median }));
    }
    cuts
}
