//! Which groups cover which people: the join of points and boxes.
//!
//! People who know somebody's quasi-identifiers know a *point*; a released row shows a *box*. The join walks down a tree of the
//! points, each node cut at the median of its widest attribute, and takes along the boxes that cut through the node's
//! bounding box. A box that lies around the whole node counts once for all of its points, one beside it for none. So the work
//! follows the borders of boxes and not the number of pairs, and dense covers cost no more than thin ones. Nothing is kept
//! but the path to the node.

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
}

impl Boxes {
    /// Sensitive values of a group and their shares.
    pub(super) fn group(&self, group: u32) -> &[(u32, f64)] {
        &self.shares[self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
    }

    fn ends(&self, place: u32) -> &[[u32; 2]] {
        &self.ends[place as usize * self.quasi..][..self.quasi]
    }
}

/// What the covering rows say: values, each with the number of covering rows that have it (by the shares of their groups).
pub(super) type Candidates = Vec<(u32, f64)>;

/// Joins points with the boxes of a release. Its working memory is one number per sensitive value.
pub(super) struct Join<'a> {
    boxes: &'a Boxes,
    /// Points, `quasi` codes each.
    points: &'a [u32],
    /// Greatest code of each attribute, and one more.
    domains: &'a [u32],
    counts: Vec<f64>,
    touched: Vec<u32>,
    found: Vec<Candidates>,
}

impl<'a> Join<'a> {
    /// Candidates of each point, whose codes stand one after the other. `domains` are the numbers of codes of the attributes,
    /// `values` that of sensitive values.
    pub(super) fn candidates(
        boxes: &'a Boxes,
        points: &'a [u32],
        domains: &'a [u32],
        values: usize,
    ) -> Vec<Candidates> {
        let number = points.len() / boxes.quasi.max(1);
        let mut join = Self {
            boxes,
            points,
            domains,
            counts: vec![0.0; values],
            touched: Vec::new(),
            found: vec![Vec::new(); number],
        };
        let mut order: Vec<u32> = (0..number as u32).collect();
        let all: Vec<u32> = (0..boxes.group.len() as u32).collect();
        if number > 0 {
            join.descend(&mut order, &all, &[]);
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

    /// `inherited` are the candidates by the boxes around a node above.
    fn descend(&mut self, points: &mut [u32], boxes: &[u32], inherited: &[(u32, f64)]) {
        let bounds = self.bounds(points);
        let (mut around, mut through) = (Vec::new(), Vec::new());
        for &place in boxes {
            let ends = self.boxes.ends(place).iter().zip(&bounds);
            // Both are walked whole: three outcomes from two flags, without a branch per attribute.
            let (mut beside, mut inside) = (false, true);
            for (&[lo, hi], &[least, greatest]) in ends {
                beside |= lo > greatest || hi < least || lo > hi;
                inside &= lo <= least && greatest <= hi;
            }
            match (beside, inside) {
                (true, _) => {}
                (false, true) => around.push(place),
                (false, false) => through.push(place),
            }
        }
        let merged = if around.is_empty() { None } else { Some(self.merge(inherited, &around)) };
        let inherited = merged.as_deref().unwrap_or(inherited);
        if through.is_empty() {
            for &point in &*points {
                self.found[point as usize] = inherited.to_vec();
            }
            return;
        }
        let (left, right) = self.cut(points, &bounds);
        self.descend(left, &through, inherited);
        self.descend(right, &through, inherited);
    }

    /// Candidates so far and those by more boxes.
    fn merge(&mut self, inherited: &[(u32, f64)], boxes: &[u32]) -> Candidates {
        let (counts, touched) = (&mut self.counts, &mut self.touched);
        let mut add = |value: u32, count: f64| {
            let sum = &mut counts[value as usize];
            if *sum == 0.0 {
                touched.push(value);
            }
            *sum += count;
        };
        inherited.iter().for_each(|&(value, count)| add(value, count));
        for &place in boxes {
            let rows = f64::from(self.boxes.rows[place as usize]);
            let group = self.boxes.group(self.boxes.group[place as usize]);
            group.iter().for_each(|&(value, share)| add(value, share * rows));
        }
        touched.drain(..).map(|value| (value, std::mem::take(&mut counts[value as usize]))).collect()
    }

    /// Two parts of the points of a node, some boxes of which do not lie around all of them; so they are not all one point.
    fn cut<'p>(&self, points: &'p mut [u32], bounds: &[[u32; 2]]) -> (&'p mut [u32], &'p mut [u32]) {
        let width = |j: usize| f64::from(bounds[j][1] - bounds[j][0]) / f64::from(self.domains[j].max(1));
        let widest = (0..bounds.len()).max_by(|&a, &b| width(a).total_cmp(&width(b)).then(b.cmp(&a))).unwrap_or(0);
        let middle = points.len() / 2;
        let (_, &mut median, _) = points.select_nth_unstable_by_key(middle, |&point| self.code(point, widest));
        let mut pivot = self.code(median, widest);
        if pivot == bounds[widest][0] {
            pivot += 1;
        }
        // Codes below the pivot come first.
        points.sort_unstable_by_key(|&point| (self.code(point, widest) >= pivot, point));
        let below = points.partition_point(|&point| self.code(point, widest) < pivot);
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

    /// Boxes with any ends, points, and the numbers of codes.
    fn instance() -> impl Strategy<Value = (Boxes, Vec<u32>, Vec<u32>)> {
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
                (boxes, points.concat(), vec![codes; quasi])
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_join_agrees_with_all_pairs((boxes, points, domains) in instance()) {
            let found = Join::candidates(&boxes, &points, &domains, 6);
            let expected = by_pairs(&boxes, &points);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.into_iter().zip(expected) {
                let values = found.len();
                let found: BTreeMap<u32, f64> = found.into_iter().collect();
                prop_assert_eq!(found.len(), values, "a value twice");
                prop_assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found, expected);
                prop_assert!(found.values().zip(expected.values()).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}
