//! The paper's cuts: at the median of the attribute with the greatest spread.

use super::axis::{Axes, Axis};
use super::cut::{Cut, Item, Spare};
use crate::extent::{Extent, Position};

/// Cuts in the order they are to be tried in: attributes by their spread; for each the boundary between two values that is
/// nearest to the median, then the other boundary of the median's value, then (relaxed) the median itself, with the rows of
/// its value on both sides. Along a hierarchy, only the boundary between two children that is nearest.
pub(super) fn cuts<const W: usize, P: Position>(
    axes: &Axes<P>,
    items: &[Item<W, P>],
    extent: &Extent<W, P>,
    least: usize,
) -> Vec<Cut<P>> {
    let axes = &axes.all;
    let spread = |j: usize| axes[j].extent(extent.ends(j));
    let mut attributes: Vec<usize> = (0..axes.len()).collect();
    attributes.retain(|&attribute| extent.ends(attribute)[0] < extent.ends(attribute)[1]);
    attributes.sort_by(|&a, &b| spread(b).total_cmp(&spread(a)).then(a.cmp(&b)));
    let mut at = Vec::with_capacity(items.len());
    attributes.into_iter().flat_map(|j| of_attribute(&axes[j], j, items, extent, least, &mut at)).collect()
}

fn of_attribute<const W: usize, P: Position>(
    axis: &Axis<P>,
    attribute: usize,
    items: &[Item<W, P>],
    extent: &Extent<W, P>,
    least: usize,
    at: &mut Vec<P>,
) -> Vec<Cut<P>> {
    let ([lo, hi], half) = (extent.ends(attribute), items.len() / 2);
    let up_to = |to: P, spare: Spare<P>| Cut { attribute, from: lo, to, spare };
    at.clear();
    at.extend(items.iter().map(|item| item.on(attribute)));
    if let Some(boundaries) = axis.boundaries(lo, hi) {
        at.sort_unstable_by_key(|at| at.key());
        let below = |boundary: &P| at.partition_point(|at| at <= boundary);
        let sides = |boundary: &P| (least..=items.len() - least).contains(&below(boundary));
        let nearest = boundaries.into_iter().filter(sides).min_by_key(|boundary| below(boundary).abs_diff(half));
        return nearest.map(|boundary| up_to(boundary, Spare::NONE)).into_iter().collect();
    }
    let median = *at.select_nth_unstable_by_key(half, |at| at.key()).1;
    let before = at.iter().copied().filter(|&at| at < median).max_by_key(|at| at.key()).unwrap_or(P::ENDS[0]);
    let below = at.iter().filter(|&&at| at < median).count();
    let up_to_median = at.iter().filter(|&&at| at <= median).count();
    let mut boundaries = [(below, before), (up_to_median, median)];
    boundaries.sort_by_key(|(rows, _)| rows.abs_diff(half));
    let strict = boundaries.into_iter().filter(|(rows, _)| (least..=items.len() - least).contains(rows));
    let mut cuts: Vec<Cut<P>> = strict.map(|(_, to)| up_to(to, Spare::NONE)).collect();
    if half >= least && below < half && half < up_to_median {
        cuts.push(up_to(median, Spare { rows: up_to_median - half, from: median, to: median }));
    }
    cuts
}
