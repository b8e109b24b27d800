//! Down a tree of points, with the boxes that cut through its nodes.
//!
//! Each node of the tree is cut at the median of an attribute, and takes along the boxes that cut through the node's bounding
//! box. A box that lies around the whole node counts once for all of its points, one beside it for none. So the work
//! follows the borders of boxes and not the number of pairs, and dense covers cost no more than thin ones. Nothing is kept
//! but the path to the node: what boxes were counted is taken back on the way up.

/// What is counted on the way.
pub(super) trait Visitor {
    /// What is kept to go back to.
    type Mark;

    /// What to go back to when the boxes entered from here on have been left.
    fn mark(&self) -> Self::Mark;

    /// A box lies around all points of the node.
    fn enter(&mut self, place: u32);

    /// The last box that was entered is taken back.
    fn leave(&mut self, place: u32);

    /// All boxes entered since the mark have been left.
    fn restore(&mut self, mark: Self::Mark);

    /// These points are covered by the boxes that were entered, and by no others.
    fn report(&mut self, points: &[u32]);
}

/// A walk over points and boxes.
pub(super) struct Walk<'a, V> {
    /// Number of attributes.
    attributes: usize,
    /// Points, `attributes` codes each.
    points: &'a [u32],
    /// Boxes that cut through the nodes of the path, node after node, and their ends.
    places: Vec<u32>,
    ends: Vec<[u32; 2]>,
    /// Boxes around the nodes of the path.
    around: Vec<u32>,
    visitor: V,
}

impl<'a, V: Visitor> Walk<'a, V> {
    /// Shows the visitor all points, whose codes stand one after the other, with the boxes that cover them: `ends` of box `b` and
    /// attribute `j` stand at `b * attributes + j`.
    pub(super) fn run(attributes: usize, points: &'a [u32], ends: Vec<[u32; 2]>, boxes: usize, visitor: V) -> V {
        let number = points.len() / attributes.max(1);
        let places = (0..boxes as u32).collect();
        let mut walk = Self { attributes, points, places, ends, around: Vec::new(), visitor };
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

    /// `first` is the first of the boxes that cut through the node above.
    fn descend(&mut self, points: &mut [u32], first: usize) {
        let bounds = self.bounds(points);
        let d = self.attributes;
        let (last, around, mark) = (self.places.len(), self.around.len(), self.visitor.mark());
        let mut borders = vec![0_u32; d];
        for place in first..last {
            // All attributes are looked at: three outcomes from two flags, without a branch for each.
            let (mut beside, mut inside) = (false, true);
            for (&[lo, hi], &[least, greatest]) in self.ends[place * d..][..d].iter().zip(&bounds) {
                beside |= lo > greatest || hi < least || lo > hi;
                inside &= lo <= least && greatest <= hi;
            }
            match (beside, inside) {
                (true, _) => {}
                (false, true) => {
                    self.around.push(self.places[place]);
                    self.visitor.enter(self.places[place]);
                }
                (false, false) => {
                    let ends = self.ends[place * d..][..d].iter().zip(&bounds);
                    let borders = borders.iter_mut().zip(ends);
                    borders.for_each(|(count, ([lo, hi], [least, most]))| *count += u32::from(lo > least || hi < most));
                    self.places.push(self.places[place]);
                    self.ends.extend_from_within(place * d..(place + 1) * d);
                }
            }
        }
        if self.places.len() == last {
            self.visitor.report(points);
        } else {
            let (left, right) = self.cut(points, &bounds, &borders);
            self.descend(left, last);
            self.descend(right, last);
        }
        self.places.truncate(last);
        self.ends.truncate(last * d);
        while self.around.len() > around {
            if let Some(place) = self.around.pop() {
                self.visitor.leave(place);
            }
        }
        self.visitor.restore(mark);
    }

    /// Two parts of the points of a node, some boxes of which do not lie around all of them; so they are not all one point. Cut is the
    /// attribute in which most boxes have a border in the node: the others would go to both sides.
    fn cut<'p>(&self, points: &'p mut [u32], bounds: &[[u32; 2]], borders: &[u32]) -> (&'p mut [u32], &'p mut [u32]) {
        let wide = (0..bounds.len()).filter(|&j| bounds[j][0] < bounds[j][1]);
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
}
