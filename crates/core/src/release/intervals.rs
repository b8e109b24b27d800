//! Published intervals, in as few bytes as the greatest code of a quasi-identifier needs.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::microdata::{Code, Codes, Microdata, RowCodes};

/// Groups whose intervals are made together.
const GROUPS: usize = 64;

/// Least and greatest published code of each group and quasi-identifier.
#[derive(Debug, Clone, Default)]
pub struct Intervals(
    /// Of a group the two ends of one quasi-identifier after the other.
    RowCodes,
);

impl Intervals {
    /// Makes the intervals of so many groups, with codes of at most `most`; on all cores. `fill` is given the first of some groups
    /// and a place for each of their `d` intervals, all of them `[u32::MAX, 0]`. `None` if one stays empty, or has a greater code.
    pub fn made<S>(
        d: usize,
        groups: usize,
        most: u32,
        init: impl Fn() -> S + Send + Sync,
        fill: impl Fn(&mut S, usize, &mut [[u32; 2]]) + Send + Sync,
    ) -> Option<Self> {
        fn all<C: Code, S>(
            d: usize,
            groups: usize,
            most: u32,
            init: impl Fn() -> S + Send + Sync,
            fill: impl Fn(&mut S, usize, &mut [[u32; 2]]) + Send + Sync,
        ) -> Option<Vec<C>> {
            let mut ends = vec![C::default(); groups * d * 2];
            let chunks = ends.par_chunks_mut(GROUPS * d * 2).enumerate();
            let fits = chunks.try_for_each_init(init, |state, (chunk, ends)| {
                let mut wide = vec![[u32::MAX, 0]; ends.len() / 2];
                fill(state, chunk * GROUPS, &mut wide);
                ends.iter_mut().zip(wide.as_flattened()).for_each(|(end, &code)| *end = C::of(code.min(C::MOST)));
                wide.iter().all(|&[lo, hi]| lo <= hi && hi <= most).then_some(())
            });
            fits.map(|()| ends)
        }
        if d == 0 {
            return Some(Self::default());
        }
        let ends = match Codes::bytes_of(most as usize + 1) {
            1 => Codes::Bytes(all(d, groups, most, init, fill)?),
            2 => Codes::Short(all(d, groups, most, init, fill)?),
            _ => Codes::Wide(all(d, groups, most, init, fill)?),
        };
        Some(Self(RowCodes::from_codes(2 * d, ends)))
    }

    /// Collects the intervals of members that have their own, one member after the other.
    ///
    /// # Errors
    /// When one is empty or has a value that is not in the domain, which no method may publish.
    pub fn of_members(microdata: &Microdata, boxes: &[[u32; 2]]) -> Result<Self> {
        let d = microdata.quasi.len();
        let copy =
            |(): &mut (), first: usize, out: &mut [[u32; 2]]| out.copy_from_slice(&boxes[first * d..][..out.len()]);
        let made = Self::made(d, boxes.len() / d.max(1), microdata.greatest_code(), || (), copy);
        made.ok_or_else(|| Error::internal("an interval that is empty, or has a value that is not in the domain"))
    }

    /// Returns true if these are of so many groups, each with `d` of them.
    pub fn are_of(&self, groups: usize, d: usize) -> bool {
        self.0.are_of(groups, 2 * d)
    }

    /// Changes those of some groups at a time, on all cores. `change` is given the first of these groups and the intervals of all of them, whose codes
    /// may become no greater than `most` was when they were made. False if one had no room, which made others wrong, too.
    #[must_use]
    pub fn change(&mut self, change: impl Fn(usize, &mut [[u32; 2]]) + Sync) -> bool {
        self.0.change(GROUPS, |first, ends| change(first, ends.as_chunks_mut().0))
    }

    /// Returns true if `is` holds for all groups, some at a time as by [`change`](Self::change).
    pub fn all(&self, is: impl Fn(usize, &[[u32; 2]]) -> bool + Sync) -> bool {
        let groups = 0..self.0.rows() as u32;
        groups.into_par_iter().step_by(GROUPS).all(|first| {
            let groups: Vec<u32> = (first..self.0.rows() as u32).take(GROUPS).collect();
            is(first as usize, self.copied(&groups).as_chunks().0)
        })
    }

    /// Copies the ends of some groups' intervals, group after group, on all cores.
    pub fn copied(&self, groups: &[u32]) -> Vec<u32> {
        self.0.copied(groups)
    }

    /// Returns true if none are published.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the intervals of a group, one for each quasi-identifier. The group must exist.
    #[inline]
    pub fn of(&self, group: u32) -> impl Iterator<Item = [u32; 2]> + Clone + '_ {
        let mut ends = self.0.of(group);
        std::iter::from_fn(move || Some([ends.next()?, ends.next()?]))
    }

    /// Appends the intervals of some groups to `near`, group after group: quicker than one group at a time.
    pub fn append_to(&self, near: &mut Vec<u32>, groups: impl Iterator<Item = u32>) {
        self.0.append_to(near, groups);
    }

    /// Appends the intervals of other groups.
    pub fn append(&mut self, more: Self) {
        self.0.append(more.0);
    }

    /// Collects the intervals of groups with `d` quasi-identifiers, one group after the other.
    pub fn of_groups(d: usize, intervals: &[[u32; 2]]) -> Self {
        Self(RowCodes::of_rows(2 * d, intervals.as_flattened().iter().copied()))
    }

    /// Returns all of them.
    pub fn to_vec(&self) -> Vec<[u32; 2]> {
        let ends: Vec<u32> = self.0.iter().collect();
        ends.as_chunks().0.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals are what they were made of. They have any width, one chunk and several, and parts of different widths.
    #[test]
    fn intervals_are_what_they_were_made_of() {
        for most in [9, 255, 256, 65_535, 65_536, u32::MAX] {
            for (d, groups) in [(1, 1), (3, GROUPS), (2, 5 * GROUPS + 1)] {
                let interval = |at: usize| {
                    let lo = (at as u32).wrapping_mul(2_654_435_761) % most;
                    [lo, if at.is_multiple_of(3) { most } else { lo + (most - lo) / 2 }]
                };
                let fill = |(): &mut (), first: usize, out: &mut [[u32; 2]]| {
                    assert!(out.iter().all(|interval| *interval == [u32::MAX, 0]));
                    out.iter_mut().zip(first * d..).for_each(|(out, at)| *out = interval(at));
                };
                let made = Intervals::made(d, groups, most, || (), fill).unwrap();
                let expected: Vec<[u32; 2]> = (0..d * groups).map(interval).collect();
                assert_eq!(made.to_vec(), expected);
                let of = |group: usize| expected[group * d..][..d].iter().copied();
                assert!((0..groups).all(|group| made.of(group as u32).eq(of(group))));
                let mut near = vec![7];
                made.append_to(&mut near, [0, groups as u32 - 1].into_iter());
                let expected_near: Vec<u32> = of(0).chain(of(groups - 1)).flatten().collect();
                assert_eq!(near[1..], expected_near);
                assert_eq!(
                    made.copied(&[groups as u32 - 1, 0]),
                    of(groups - 1).chain(of(0)).flatten().collect::<Vec<_>>()
                );
                assert!(made.are_of(groups, d) && !made.are_of(groups + 1, d));
                let are_right = |first: usize, some: &[[u32; 2]]| *some == expected[first * d..][..some.len()];
                assert!(made.all(are_right));
                assert!(!made.all(|first, some| first + some.len() / d < groups));
                let mut changed = made.clone();
                let fits = changed.change(|first, some| {
                    assert!(are_right(first, some));
                    some.iter_mut().zip(first * d..).for_each(|(interval, at)| interval[1] -= at as u32 % 2);
                });
                assert!(fits);
                let expected_changed = expected.iter().zip(0..).map(|(&[lo, hi], at): (_, u32)| [lo, hi - at % 2]);
                assert!(changed.to_vec().into_iter().eq(expected_changed));
                // One end of the last group that there is no room for is told.
                let room = [255, 65_535, u32::MAX].into_iter().find(|&room| most <= room).unwrap_or(most);
                for (greatest, fits) in [(room, true), (room.saturating_add(1), room == u32::MAX)] {
                    let last = |first: usize, some: &mut [[u32; 2]]| {
                        if first + some.len() / d == groups {
                            some[some.len() - 1][1] = greatest;
                        }
                    };
                    assert_eq!(made.clone().change(last), fits);
                }
                let mut both = Intervals::of_groups(d, &vec![[3, 300]; d]);
                both.append(made);
                assert_eq!(both.to_vec(), [vec![[3, 300]; d], expected].concat());
            }
        }
        assert!(Intervals::made(0, 5, 0, || (), |(), _, _| {}).unwrap().is_empty());
        let all_but_the_last = |(): &mut (), first: usize, out: &mut [[u32; 2]]| {
            out.iter_mut().zip(first..).filter(|(_, at)| *at < 99).for_each(|(out, _)| *out = [0, 1]);
        };
        assert!(Intervals::made(1, 0, 1, || (), all_but_the_last).unwrap().is_empty());
        assert!(Intervals::made(1, 99, 1, || (), all_but_the_last).is_some());
        assert!(Intervals::made(1, 99, 0, || (), all_but_the_last).is_none(), "a code that there is no room for");
        assert!(Intervals::made(1, 100, 1, || (), all_but_the_last).is_none());
    }
}
