//! The order in which rows leave.

use rand::Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::release::{COUNTERFEIT, Groups};

/// Order in which the rows of a release leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RowOrder {
    /// All orders are equally likely.
    #[default]
    Random,
    /// By the number of the group, which is random; all orders are equally likely in which the rows of a group can stand. It is what sorting makes of
    /// a random order, and what a reader who sees the numbers can make as well, so that it tells nothing.
    Groups,
}

impl RowOrder {
    /// Returns true if all orders are equally likely.
    #[doc(hidden)]
    pub fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub member: u32,
    pub group: u32,
}

/// Draws the order in which members leave, and the published number of each group. Without `counterfeits` only people leave.
///
/// Draws are the same whatever the order, so that a seed makes one release.
pub(super) fn draw(
    groups: &Groups,
    counterfeits: bool,
    order: RowOrder,
    rng: &mut impl Rng,
) -> (Vec<Leaving>, Vec<u32>) {
    let mut leaving = Vec::with_capacity(groups.members.len());
    for group in 0..groups.len() {
        let leaves = |member: &usize| counterfeits || groups.members[*member] != COUNTERFEIT;
        let members = groups.range(group).filter(leaves);
        leaving.extend(members.map(|member| Leaving { member: member as u32, group: group as u32 }));
    }
    if !counterfeits && !groups.rings.is_empty() {
        // Members stand in the order of their values, and the same seed shuffles fewer of them alike once somebody has left. Rows stand by identifier.
        leaving.par_sort_unstable_by_key(|leaving| groups.members[leaving.member as usize]);
    }
    leaving.shuffle(rng);
    let mut numbers: Vec<u32> = (1..=groups.len() as u32).collect();
    numbers.shuffle(rng);
    if order == RowOrder::Groups {
        leaving.par_sort_by_key(|leaving| numbers[leaving.group as usize]);
    }
    (leaving, numbers)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// Returns the groups of 1 to 4 members.
    fn groups(number: usize) -> Groups {
        let mut starts = vec![0];
        (0..number).for_each(|group| starts.push(starts[group] + 1 + (group * 7 % 4) as u32));
        let members = (0..starts[number]).rev().collect();
        Groups { starts, members, ..Groups::default() }
    }

    fn drawn(groups: &Groups, order: RowOrder, seed: u64) -> (Vec<[u32; 2]>, Vec<u32>) {
        let (leaving, numbers) = draw(groups, true, order, &mut ChaCha20Rng::seed_from_u64(seed));
        (leaving.iter().map(|leaving| [leaving.member, leaving.group]).collect(), numbers)
    }

    #[test]
    fn everybody_leaves_once() {
        for number in [0, 1, 2, 1000] {
            let groups = groups(number);
            let random = drawn(&groups, RowOrder::Random, 3);
            for order in [RowOrder::Random, RowOrder::Groups] {
                let (leaving, numbers) = drawn(&groups, order, 3);
                assert_eq!(numbers, random.1);
                let mut sorted = leaving.clone();
                sorted.sort_unstable();
                assert!(sorted.iter().map(|[member, _]| *member).eq(0..groups.members.len() as u32));
                for &[member, group] in &leaving {
                    assert!(groups.range(group as usize).contains(&(member as usize)));
                    assert_eq!(groups.group_of(member), group);
                }
                if order == RowOrder::Groups {
                    assert!(leaving.is_sorted_by_key(|[_, group]| numbers[*group as usize]));
                }
            }
        }
    }

    /// Only people leave where counterfeits have no rows.
    #[test]
    fn counterfeits_stay() {
        let mut groups = groups(100);
        groups.members.iter_mut().step_by(3).for_each(|row| *row = COUNTERFEIT);
        let (leaving, numbers) = draw(&groups, false, RowOrder::Groups, &mut ChaCha20Rng::seed_from_u64(5));
        let mut left: Vec<u32> = leaving.iter().map(|leaving| leaving.member).collect();
        left.sort_unstable();
        let people = |member: &u32| groups.members[*member as usize] != COUNTERFEIT;
        assert!(left.into_iter().eq((0..groups.members.len() as u32).filter(people)));
        assert_eq!(numbers.len(), 100);
    }

    /// Orders rows of rings by identifiers before the shuffle, not by values.
    #[test]
    fn the_order_of_people_has_nothing_to_do_with_values() {
        let rows = |mirrored: bool| {
            let mut groups = groups(100);
            groups.rings = (0..100).collect();
            if mirrored {
                (0..100).for_each(|group| {
                    groups.members[groups.starts[group] as usize..groups.starts[group + 1] as usize].reverse();
                });
            }
            let (leaving, _) = draw(&groups, false, RowOrder::Groups, &mut ChaCha20Rng::seed_from_u64(5));
            leaving.iter().map(|leaving| groups.members[leaving.member as usize]).collect::<Vec<_>>()
        };
        assert_eq!(rows(false), rows(true));
    }

    /// Each member of a group comes first as often as any other.
    #[test]
    fn members_of_a_group_come_in_any_order() {
        let groups = groups(20_000);
        let (leaving, _) = drawn(&groups, RowOrder::Groups, 11);
        let mut first = [[0_u32; 4]; 5];
        for members in leaving.chunk_by(|a, b| a[1] == b[1]) {
            let range = groups.range(members[0][1] as usize);
            first[range.len()][members[0][0] as usize - range.start] += 1;
        }
        for (size, first) in first.iter().enumerate().skip(1) {
            let all: u32 = first.iter().sum();
            let expected = f64::from(all) / size as f64;
            let chi: f64 = first[..size].iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
            // With at most 3 degrees of freedom: in less than one of a million samples.
            assert!(chi < 31.0 && first[size..].iter().all(|&count| count == 0), "{first:?}");
        }
    }
}
