//! Which groups cover which people: the join of points and boxes.
//!
//! People who know somebody's quasi-identifiers know a *point*; a released row shows a *box*. The join walks down a tree of the
//! points, each node cut at the median of an attribute, and takes along the boxes that cut through the node's
//! bounding box. A box that lies around the whole node counts once for all of its points, one beside it for none. So the work
//! follows the borders of boxes and not the number of pairs, and dense covers cost no more than thin ones. Nothing is kept
//! but the path to the node: counts of values are taken back on the way up.

/// Boxes of a release in codes, and the sensitive values of their groups.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    /// Number of attributes.
    pub quasi: usize,
    /// Ends of each box and attribute, both included: box `b`, attribute `j` at `b * quasi + j`. The greater end may come
    /// first, in which case nothing is covered.
    pub ends: Vec<[u32; 2]>,
    /// Group of each box.
    pub group: Vec<u32>,
    /// Rows of the release that show the box.
    pub rows: Vec<u32>,
    /// First entry of each group in `shares`, and one more.
    pub starts: Vec<u32>,
    /// Sensitive values of each group, ascending, and which share of its rows has them.
    pub shares: Vec<(u32, f64)>,
    /// How many of its rows have each of the values.
    pub counted: Vec<u32>,
    /// The values alone, which take less room, and of each group the share if all of its values have the same.
    pub packed: (Vec<u32>, Vec<Option<f64>>),
}

impl Boxes {
    /// Sensitive values of a group and their shares.
    pub(super) fn group(&self, group: u32) -> &[(u32, f64)] {
        &self.shares[self.range(group)]
    }

    /// Sensitive values of a group and how many of its rows have them.
    pub(super) fn counts(&self, group: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.range(group);
        self.shares[range.clone()].iter().map(|(value, _)| *value).zip(self.counted[range].iter().copied())
    }

    fn range(&self, group: u32) -> std::ops::Range<usize> {
        self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize
    }

    /// To be called once all boxes are there.
    pub(super) fn pack(&mut self) {
        let values = self.shares.iter().map(|(value, _)| *value).collect();
        let even = |group: u32| {
            let shares = self.group(group);
            let (_, first) = *shares.first()?;
            shares.iter().all(|(_, share)| *share == first).then_some(first)
        };
        let even = (0..self.starts.len() as u32 - 1).map(even).collect();
        self.packed = (values, even);
    }

    /// Calls `f` with the sensitive values of a box and the rows that have them.
    #[inline]
    fn for_each(&self, place: u32, mut f: impl FnMut(u32, f64)) {
        let (group, rows) = (self.group[place as usize], f64::from(self.rows[place as usize]));
        match self.packed.1[group as usize] {
            Some(share) => self.packed.0[self.range(group)].iter().for_each(|&value| f(value, share * rows)),
            None => self.group(group).iter().for_each(|&(value, share)| f(value, share * rows)),
        }
    }
}

/// What the covering rows say of each point: lists of values, each with the number of covering rows that have it (by the shares of
/// their groups).
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Number of each point's list. Points may share lists.
    list: Vec<u32>,
    /// First entry of each list, and one more.
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Candidates {
    /// Those of a point, in no order.
    pub(super) fn of(&self, point: u32) -> &[(u32, f64)] {
        let list = self.list[point as usize] as usize;
        &self.entries[self.starts[list]..self.starts[list + 1]]
    }
}

/// Joins points with the boxes of a release.
pub(super) struct Join<'a> {
    boxes: &'a Boxes,
    /// Points, `quasi` codes each.
    points: &'a [u32],
    /// Boxes that cut through the nodes of the path, node after node, and their ends.
    places: Vec<u32>,
    ends: Vec<[u32; 2]>,
    /// Boxes around the nodes of the path.
    around: Vec<u32>,
    /// Of each value, the rows of these boxes, and how many of the boxes have it.
    counts: Vec<(f64, u32)>,
    /// Values with counts, in the order in which they got them.
    touched: Vec<u32>,
    found: Candidates,
}

impl<'a> Join<'a> {
    /// Candidates of each point, whose codes stand one after the other. `values` is the number of
    /// sensitive values.
    pub(super) fn candidates(boxes: &'a Boxes, points: &'a [u32], values: usize) -> Candidates {
        let number = points.len() / boxes.quasi.max(1);
        let mut join = Self {
            boxes,
            points,
            places: (0..boxes.group.len() as u32).collect(),
            ends: boxes.ends.clone(),
            around: Vec::new(),
            counts: vec![(0.0, 0); values],
            touched: Vec::new(),
            found: Candidates { list: vec![0; number], starts: vec![0], entries: Vec::new() },
        };
        let mut order: Vec<u32> = (0..number as u32).collect();
        if number > 0 {
            join.descend(&mut order, 0);
        }
        join.found
    }

    fn code(&self, point: u32, attribute: usize) -> u32 {
        self.points[point as usize * self.boxes.quasi + attribute]
    }

    fn bounds(&self, points: &[u32]) -> Vec<[u32; 2]> {
        let mut bounds = vec![[u32::MAX, 0]; self.boxes.quasi];
        for &point in points {
            let codes = &self.points[point as usize * self.boxes.quasi..][..self.boxes.quasi];
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
        let d = self.boxes.quasi;
        let (last, around, touched) = (self.places.len(), self.around.len(), self.touched.len());
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
                (false, true) => self.count(self.places[place]),
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
            self.report(points);
        } else {
            let (left, right) = self.cut(points, &bounds, &borders);
            self.descend(left, last);
            self.descend(right, last);
        }
        self.places.truncate(last);
        self.ends.truncate(last * d);
        while self.around.len() > around {
            self.uncount();
        }
        self.touched.truncate(touched);
    }

    /// Counts the rows of a box.
    fn count(&mut self, place: u32) {
        self.around.push(place);
        let (counts, touched) = (self.counts.as_mut_slice(), &mut self.touched);
        self.boxes.for_each(place, |value, rows| {
            let (sum, boxes) = &mut counts[value as usize];
            if *boxes == 0 {
                touched.push(value);
            }
            *sum += rows;
            *boxes += 1;
        });
    }

    /// Takes back the last box.
    fn uncount(&mut self) {
        let Some(place) = self.around.pop() else { return };
        let counts = self.counts.as_mut_slice();
        self.boxes.for_each(place, |value, rows| {
            let (sum, boxes) = &mut counts[value as usize];
            *boxes -= 1;
            // No remainders of rounding where nothing is left.
            *sum = if *boxes == 0 { 0.0 } else { *sum - rows };
        });
    }

    /// The counts are those of these points.
    fn report(&mut self, points: &[u32]) {
        let list = self.found.starts.len() as u32 - 1;
        points.iter().for_each(|&point| self.found.list[point as usize] = list);
        let entries = self.touched.iter().map(|&value| (value, self.counts[value as usize].0));
        self.found.entries.extend(entries);
        self.found.starts.push(self.found.entries.len());
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Every point with every box.
    fn by_pairs(boxes: &Boxes, points: &[u32]) -> Vec<BTreeMap<u32, f64>> {
        let covers = |place: usize, point: &[u32]| {
            let ends = &boxes.ends[place * boxes.quasi..][..boxes.quasi];
            ends.iter().zip(point).all(|([lo, hi], code)| lo <= code && code <= hi)
        };
        let candidates = |point: &[u32]| {
            let mut found = BTreeMap::new();
            for place in (0..boxes.group.len()).filter(|&place| covers(place, point)) {
                for &(value, share) in boxes.group(boxes.group[place]) {
                    *found.entry(value).or_insert(0.0) += share * f64::from(boxes.rows[place]);
                }
            }
            found
        };
        points.chunks_exact(boxes.quasi).map(candidates).collect()
    }

    /// Boxes with any ends, and points.
    fn instance() -> impl Strategy<Value = (Boxes, Vec<u32>)> {
        (1..4_usize, 2..9_u32).prop_flat_map(|(quasi, codes)| {
            let ends = prop::collection::vec((0..codes, 0..codes), quasi);
            let group = prop::collection::vec((0..6_u32, 1..3_u32), 1..4);
            let boxes = prop::collection::vec((ends, 1..4_u32, group), 0..12);
            let points = prop::collection::vec(prop::collection::vec(0..codes, quasi), 0..25);
            (boxes, points).prop_map(move |(made, points)| {
                let mut boxes = Boxes { quasi, starts: vec![0], ..Boxes::default() };
                for (number, (ends, rows, group)) in (0..).zip(made) {
                    boxes.ends.extend(ends.into_iter().map(|(lo, hi)| [lo, hi]));
                    boxes.group.push(number);
                    boxes.rows.push(rows);
                    let group: BTreeMap<u32, u32> = group.into_iter().collect();
                    let total = f64::from(group.values().sum::<u32>());
                    boxes.shares.extend(group.into_iter().map(|(value, count)| (value, f64::from(count) / total)));
                    boxes.starts.push(boxes.shares.len() as u32);
                }
                boxes.pack();
                (boxes, points.concat())
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_join_agrees_with_all_pairs((boxes, points) in instance()) {
            let found = Join::candidates(&boxes, &points, 6);
            let expected = by_pairs(&boxes, &points);
            for (point, expected) in (0..).zip(expected) {
                let values = found.of(point);
                prop_assert_eq!(values.len(), expected.len(), "a value twice, or another number of them");
                let found: BTreeMap<u32, f64> = values.iter().copied().collect();
                prop_assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found, expected);
                prop_assert!(found.values().zip(expected.values()).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}
