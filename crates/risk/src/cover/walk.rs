//! Walk down a tree of points with the boxes that cut its nodes. It goes on along the lines that are left.
//!
//! Points on a line differ in one attribute only, the *axis*. Each node of the tree is cut at the median of another attribute, and takes
//! along the boxes that cut through the node's bounding box elsewhere than across the axis. A box that lies around the whole node counts once for
//! all of its points, one beside it for none; one that ends only along the axis waits for the lines of the node. A line is gone along
//! from end to end, and on the way each of its boxes is entered once and left once, whatever number of points it covers. So
//! the work follows the borders of boxes and not the number of pairs, and dense covers cost little more than thin ones.

use rustc_hash::FxHashSet;

/// Observer that counts on the way.
pub(super) trait Visitor {
    /// Notes a box that lies around all points reported until it is left.
    fn enter(&mut self, place: u32);

    /// Notes that a box that was entered is left.
    fn leave(&mut self, place: u32);

    /// Reports points that exactly the boxes cover that were entered and not left.
    fn report(&mut self, points: &[u32]);
}

pub(super) struct Walk<'a, V> {
    attributes: usize,
    /// Attribute in which points of a line differ, if there are lines to speak of.
    axis: Option<usize>,
    /// Points, `attributes` codes each.
    points: &'a [u32],
    /// Boxes that cut through the nodes of the path, node after node, and their ends.
    places: Vec<u32>,
    ends: Vec<[u32; 2]>,
    /// Boxes around the nodes of the path.
    around: Vec<u32>,
    /// Boxes around the nodes of the path but for the axis, and their ends there.
    waiting: Vec<(u32, [u32; 2])>,
    line: Line,
    visitor: V,
}

/// A line: the codes of its points, in order, and its boxes by the first point that they cover, and by the first that they cover no more.
#[derive(Default)]
struct Line {
    codes: Vec<u32>,
    first: Vec<(u32, u32)>,
    end: Vec<(u32, u32)>,
    /// Boxes, with the first point that each covers and the first behind that.
    covers: Vec<(u32, [u32; 2])>,
    /// Of each code from the least to the greatest, how many points have lesser ones; empty where codes are far apart.
    ranks: Vec<u32>,
    starts: Vec<u32>,
}

impl<'a, V: Visitor> Walk<'a, V> {
    /// Shows the visitor all points with the boxes that cover them. Codes of points stand one after the other; `ends`
    /// of box `b` and attribute `j` stand at `b * attributes + j`.
    pub(super) fn run(attributes: usize, points: &'a [u32], ends: Vec<[u32; 2]>, boxes: usize, visitor: V) -> V {
        let number = points.len() / attributes.max(1);
        let places = (0..boxes as u32).collect();
        let axis = axis(points, attributes);
        let (around, waiting, line) = (Vec::new(), Vec::new(), Line::default());
        let mut walk = Self { attributes, axis, points, places, ends, around, waiting, line, visitor };
        let mut order: Vec<u32> = (0..number as u32).collect();
        if number > 0 {
            walk.descend(&mut order, 0);
        }
        walk.visitor
    }

    fn code(&self, point: u32, attribute: usize) -> u32 {
        self.points[point as usize * self.attributes + attribute]
    }

    fn bounds(&self, points: &[u32]) -> Vec<[u32; 2]> {
        let mut bounds = vec![[u32::MAX, 0]; self.attributes];
        for &point in points {
            let codes = &self.points[point as usize * self.attributes..][..self.attributes];
            for ([lo, hi], &code) in bounds.iter_mut().zip(codes) {
                *lo = code.min(*lo);
                *hi = code.max(*hi);
            }
        }
        bounds
    }

    /// Descends to the points of a node; `first` is the first box that cuts through the node above.
    fn descend(&mut self, points: &mut [u32], first: usize) {
        let bounds = self.bounds(points);
        let (d, axis) = (self.attributes, self.axis);
        let (last, around, waiting) = (self.places.len(), self.around.len(), self.waiting.len());
        let mut borders = vec![0_u32; d];
        for place in first..last {
            let ends = &self.ends[place * d..][..d];
            // All attributes are looked at: outcomes from flags, without a branch for each.
            let (mut beside, mut inside) = (false, true);
            for (attribute, (&[lo, hi], &[least, greatest])) in ends.iter().zip(&bounds).enumerate() {
                beside |= lo > greatest || hi < least || lo > hi;
                inside &= Some(attribute) == axis || (lo <= least && greatest <= hi);
            }
            if beside {
                continue;
            }
            let along = axis.map(|axis| (ends[axis], bounds[axis]));
            let along = along.filter(|([lo, hi], [least, greatest])| lo > least || greatest > hi);
            if !inside {
                let borders = borders.iter_mut().zip(ends.iter().zip(&bounds));
                borders.for_each(|(count, ([lo, hi], [least, most]))| *count += u32::from(lo > least || hi < most));
                self.places.push(self.places[place]);
                self.ends.extend_from_within(place * d..(place + 1) * d);
            } else if let Some((ends, _)) = along {
                self.waiting.push((self.places[place], ends));
            } else {
                self.around.push(self.places[place]);
                self.visitor.enter(self.places[place]);
            }
        }
        if self.places.len() == last {
            self.go_along(points);
        } else {
            let (left, right) = self.cut(points, &bounds, &borders);
            self.descend(left, last);
            self.descend(right, last);
        }
        self.places.truncate(last);
        self.ends.truncate(last * d);
        self.waiting.truncate(waiting);
        for place in self.around.drain(around..) {
            self.visitor.leave(place);
        }
    }

    /// Splits a node's points into two, between which some boxes end off the axis. So they are not all on one line. Cut
    /// is the attribute in which most boxes have a border in the node: the others would go to both sides.
    fn cut<'p>(&self, points: &'p mut [u32], bounds: &[[u32; 2]], borders: &[u32]) -> (&'p mut [u32], &'p mut [u32]) {
        let wide = (0..bounds.len()).filter(|&j| Some(j) != self.axis && bounds[j][0] < bounds[j][1]);
        let attribute = wide.max_by_key(|&j| (borders[j], bounds[j][1] - bounds[j][0])).unwrap_or(0);
        let middle = points.len() / 2;
        let (_, &mut median, _) = points.select_nth_unstable_by_key(middle, |&point| self.code(point, attribute));
        let mut pivot = self.code(median, attribute);
        if pivot == bounds[attribute][0] {
            pivot += 1;
        }
        // Codes below the pivot come first.
        points.sort_unstable_by_key(|&point| (self.code(point, attribute) >= pivot, point));
        let below = points.partition_point(|&point| self.code(point, attribute) < pivot);
        points.split_at_mut(below)
    }

    /// Shows the points of a line, or of several that the same boxes cover: together as long as no box begins or ends between them.
    fn go_along(&mut self, points: &mut [u32]) {
        let Some(axis) = self.axis.filter(|_| !self.waiting.is_empty()) else { return self.visitor.report(points) };
        points.sort_unstable_by_key(|&point| (self.code(point, axis), point));
        let mut line = std::mem::take(&mut self.line);
        line.codes.clear();
        line.codes.extend(points.iter().map(|&point| self.code(point, axis)));
        line.arrange(&self.waiting);
        let (mut enters, mut leaves) = (line.first.iter().peekable(), line.end.iter().peekable());
        let mut shown = 0;
        while shown < points.len() {
            while let Some((_, place)) = enters.next_if(|(at, _)| *at as usize == shown) {
                self.visitor.enter(*place);
            }
            let until = |next: Option<&&(u32, u32)>| next.map_or(points.len(), |(at, _)| *at as usize);
            let end = until(enters.peek()).min(until(leaves.peek()));
            self.visitor.report(&points[shown..end]);
            while let Some((_, place)) = leaves.next_if(|(at, _)| *at as usize == end) {
                self.visitor.leave(*place);
            }
            shown = end;
        }
        self.line = line;
    }
}

impl Line {
    /// Puts the boxes that cover points of the line in order.
    fn arrange(&mut self, boxes: &[(u32, [u32; 2])]) {
        let Self { codes, first, end, covers, ranks, starts } = self;
        first.clear();
        end.clear();
        ranks.clear();
        let (Some(&least), Some(&most)) = (codes.first(), codes.last()) else { return };
        if ((most - least) as usize) < 4 * boxes.len() {
            ranks.reserve_exact((most - least) as usize + 1);
            let mut lesser = 0;
            for code in least..=most {
                ranks.push(lesser as u32);
                lesser += codes[lesser..].iter().take_while(|&&other| other == code).count();
            }
        }
        let below = |limit: u32| match ranks.get(limit.wrapping_sub(least) as usize) {
            _ if limit <= least => 0,
            _ if limit > most => codes.len(),
            Some(&lesser) => lesser as usize,
            None => codes.partition_point(|&code| code < limit),
        };
        covers.clear();
        for &(place, [lo, hi]) in boxes {
            let covered = below(lo)..if hi >= most { codes.len() } else { below(hi + 1) };
            if !covered.is_empty() {
                covers.push((place, [covered.start as u32, covered.end as u32]));
            }
        }
        by_point(covers, 0, codes.len(), starts, first);
        by_point(covers, 1, codes.len(), starts, end);
    }
}

/// Sorts boxes by one of their two points, by counting: as a rule boxes are many and points few. `starts` is scratch.
fn by_point(
    boxes: &[(u32, [u32; 2])],
    which: usize,
    points: usize,
    starts: &mut Vec<u32>,
    sorted: &mut Vec<(u32, u32)>,
) {
    starts.clear();
    starts.resize(points + 2, 0);
    boxes.iter().for_each(|(_, ends)| starts[ends[which] as usize + 1] += 1);
    for point in 0..=points {
        starts[point + 1] += starts[point];
    }
    sorted.clear();
    sorted.resize(boxes.len(), (0, 0));
    for &(place, ends) in boxes {
        let next = &mut starts[ends[which] as usize];
        sorted[*next as usize] = (ends[which], place);
        *next += 1;
    }
}

/// Returns the attribute without which the fewest points are left: that of the fewest and longest lines. None, if most lines would be single points; a
/// tree of all attributes is better then.
fn axis(points: &[u32], attributes: usize) -> Option<usize> {
    let lines = |axis: usize| {
        let others = |point: &[u32]| [&point[..axis], &point[axis + 1..]].concat();
        points.chunks_exact(attributes).map(others).collect::<FxHashSet<_>>().len()
    };
    let (fewest, axis) = (0..attributes).map(|axis| (lines(axis), axis)).min()?;
    (2 * fewest * attributes <= points.len()).then_some(axis)
}
