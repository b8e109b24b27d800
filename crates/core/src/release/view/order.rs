//! The order in which rows leave.

use std::ops::Range;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::microdata::{drawn_at_once, room, shuffle};
use crate::release::Groups;

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

/// Index by which leaving rows are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// A place in a group.
    Members,
    /// The row of the microdata at that place: of releases that look at nothing else of it, for a look in random order costs more than what is made of it.
    Rows,
}

impl Leaves {
    fn at(self, groups: &Groups, member: u32) -> u32 {
        match self {
            Self::Members => member,
            Self::Rows => groups.members[member as usize],
        }
    }
}

/// A member and its group, side by side: to look groups up by members in random order would cost more than all that is made of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Leaving {
    /// The member, or its row.
    pub member: u32,
    pub group: u32,
}

/// Members in the order they leave, each with its group.
#[derive(Debug)]
pub(super) enum Order {
    /// All of them in one group, of number 0.
    Alone(Vec<u32>),
    /// Members of several groups.
    InGroups(Vec<Leaving>),
}

impl Order {
    /// Returns the number of rows that leave.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Alone(members) => members.len(),
            Self::InGroups(leaving) => leaving.len(),
        }
    }

    /// Returns all of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Leaving> + '_ {
        self.part(0..self.len())
    }

    /// Returns the rows from one place to before another.
    pub(super) fn part(&self, places: Range<usize>) -> impl Iterator<Item = Leaving> + Clone + '_ {
        // Of one kind, and none of the other.
        let (alone, leaving): (&[u32], &[Leaving]) = match self {
            Self::Alone(members) => (&members[places], &[]),
            Self::InGroups(leaving) => (&[], &leaving[places]),
        };
        alone.iter().map(|&member| Leaving { member, group: 0 }).chain(leaving.iter().copied())
    }
}

/// Groups whose members are listed at a time.
const GROUPS: usize = 1 << 12;

/// From one member whose group is known to the next.
const BLOCK: usize = 16;

/// The group of any member, by that of some.
#[derive(Debug)]
pub(super) struct GroupOf(Vec<u32>);

impl GroupOf {
    pub(super) fn new(groups: &Groups) -> Self {
        let mut of_blocks = Vec::with_capacity(groups.members.len().div_ceil(BLOCK));
        for group in 0..groups.len() {
            let end = groups.range(group).end;
            while of_blocks.len() * BLOCK < end {
                of_blocks.push(group as u32);
            }
        }
        Self(of_blocks)
    }

    /// Returns the group of a member.
    pub(super) fn at(&self, groups: &Groups, member: u32) -> u32 {
        let mut group = self.0[member as usize / BLOCK];
        while groups.starts[group as usize + 1] <= member {
            group += 1;
        }
        group
    }
}

/// Draws the order of all members or their rows, and the published numbers of groups.
pub(super) fn draw(groups: &Groups, leaves: Leaves, order: RowOrder, rng: &mut impl Rng) -> (Order, Vec<u32>) {
    // Whatever the order, the same is drawn, so that a seed's release is the same.
    if order == RowOrder::Groups
        && let Some(draws) = drawn_at_once(groups.members.len(), rng)
    {
        let numbers = numbers(groups, rng);
        let in_turn = in_turn(&numbers);
        let shuffled = |chunk: usize, members: &mut [Leaving]| {
            let mut rng = ChaCha20Rng::from_seed(draws);
            // Streams of their own: others of this seed make the random order.
            rng.set_stream(1 << 32 | chunk as u64);
            members.chunk_by_mut(|a, b| a.group == b.group).for_each(|members| members.shuffle(&mut rng));
        };
        return (Order::InGroups(listed(groups, leaves, &in_turn, shuffled)), numbers);
    }
    if groups.len() == 1 {
        // In the order of its number they are in any order, too.
        let mut members: Vec<u32> = (0..groups.members.len() as u32).map(|member| leaves.at(groups, member)).collect();
        shuffle(&mut members, rng);
        return (Order::Alone(members), numbers(groups, rng));
    }
    let as_they_are: Vec<u32> = (0..groups.len() as u32).collect();
    let mut leaving = listed(groups, leaves, &as_they_are, |_, _| {});
    shuffle(&mut leaving, rng);
    let numbers = numbers(groups, rng);
    if order == RowOrder::Groups {
        leaving.sort_by_key(|leaving| numbers[leaving.group as usize]);
    }
    (Order::InGroups(leaving), numbers)
}

fn numbers(groups: &Groups, rng: &mut impl Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (1..=groups.len() as u32).collect();
    shuffle(&mut numbers, rng);
    numbers
}

/// Returns the groups in the order of their numbers.
fn in_turn(numbers: &[u32]) -> Vec<u32> {
    let mut groups = vec![0; numbers.len()];
    numbers.iter().enumerate().for_each(|(group, &number)| groups[number as usize - 1] = group as u32);
    groups
}

/// Lists the members of groups, one group after the other; `then` puts those of some groups, which have a number, in order.
fn listed(
    groups: &Groups,
    leaves: Leaves,
    in_turn: &[u32],
    then: impl Fn(usize, &mut [Leaving]) + Sync,
) -> Vec<Leaving> {
    let mut leaving: Vec<Leaving> = room(groups.members.len());
    let mut pieces = Vec::with_capacity(in_turn.len().div_ceil(GROUPS));
    let mut left = leaving.as_mut_slice();
    for chunk in in_turn.chunks(GROUPS) {
        let (here, after) = left.split_at_mut(chunk.iter().map(|&group| groups.range(group as usize).len()).sum());
        pieces.push((chunk, here));
        left = after;
    }
    pieces.into_par_iter().enumerate().for_each(|(number, (chunk, places))| {
        let mut next = places.iter_mut();
        for &group in chunk {
            for (member, place) in groups.range(group as usize).zip(&mut next) {
                *place = Leaving { member: leaves.at(groups, member as u32), group };
            }
        }
        then(number, places);
    });
    leaving
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the groups of 1 to 4 members.
    fn groups(number: usize) -> Groups {
        let mut starts = vec![0];
        (0..number).for_each(|group| starts.push(starts[group] + 1 + (group * 7 % 4) as u32));
        let members = (0..starts[number]).rev().collect();
        Groups { starts, members, ..Groups::default() }
    }

    fn drawn(groups: &Groups, order: RowOrder, seed: u64, threads: usize) -> (Vec<[u32; 2]>, Vec<u32>) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let drawn = |leaves| pool.install(|| draw(groups, leaves, order, &mut ChaCha20Rng::seed_from_u64(seed)));
        let (leaving, numbers) = drawn(Leaves::Members);
        assert_eq!(leaving.len(), groups.members.len());
        // Their rows leave in the same order.
        let (rows, _) = drawn(Leaves::Rows);
        let row_of = |leaving: Leaving| (groups.members[leaving.member as usize], leaving.group);
        assert!(rows.iter().map(|row| (row.member, row.group)).eq(leaving.iter().map(row_of)));
        assert_eq!(
            matches!(leaving, Order::Alone(_)),
            groups.len() == 1 && (order == RowOrder::Random || leaving.len() < 10)
        );
        (leaving.iter().map(|leaving| [leaving.member, leaving.group]).collect(), numbers)
    }

    #[test]
    fn everybody_leaves_once_and_the_same_on_any_number_of_threads() {
        for number in [0, 1, 2, 1000, 60_000] {
            let groups = groups(number);
            let group_of = GroupOf::new(&groups);
            let random = drawn(&groups, RowOrder::Random, 3, 2);
            for order in [RowOrder::Random, RowOrder::Groups] {
                let (leaving, numbers) = drawn(&groups, order, 3, 1);
                assert!(numbers == random.1 && leaving == drawn(&groups, order, 3, 4).0, "{number}");
                let mut sorted = leaving.clone();
                sorted.sort_unstable();
                assert!(sorted.iter().map(|[member, _]| *member).eq(0..groups.members.len() as u32));
                for [member, group] in leaving {
                    assert!(groups.range(group as usize).contains(&(member as usize)));
                    assert_eq!(group_of.at(&groups, member), group);
                }
            }
            let (leaving, numbers) = drawn(&groups, RowOrder::Groups, 3, 2);
            assert!(leaving.is_sorted_by_key(|[_, group]| numbers[*group as usize]));
        }
    }

    /// Members of one group leave in the same order as with its number.
    #[test]
    fn members_of_one_group_leave_as_any_others() {
        for members in [5_u32, 70_000] {
            let groups = Groups { starts: vec![0, members], members: (0..members).collect(), ..Groups::default() };
            let (alone, numbers) = drawn(&groups, RowOrder::Random, 5, 2);
            let mut leaving = listed(&groups, Leaves::Members, &[0], |_, _| {});
            shuffle(&mut leaving, &mut ChaCha20Rng::seed_from_u64(5));
            assert!(alone.into_iter().eq(leaving.iter().map(|leaving| [leaving.member, leaving.group])));
            assert_eq!(numbers, [1]);
        }
    }

    /// Each member of a group comes first as often as any other.
    #[test]
    fn members_of_a_group_come_in_any_order() {
        for number in [20_000, 60_000] {
            let groups = groups(number);
            let (leaving, _) = drawn(&groups, RowOrder::Groups, 11, 2);
            let mut first = [[0_u32; 4]; 5];
            for members in leaving.chunk_by(|a, b| a[1] == b[1]) {
                let range = groups.range(members[0][1] as usize);
                first[range.len()][members[0][0] as usize - range.start] += 1;
            }
            for (size, first) in first.iter().enumerate().skip(1) {
                let all: u32 = first.iter().sum();
                let expected = f64::from(all) / size as f64;
                let chi: f64 =
                    first[..size].iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
                // With at most 3 degrees of freedom: in less than one of a million samples.
                assert!(chi < 31.0 && first[size..].iter().all(|&count| count == 0), "{first:?}");
            }
        }
    }
}
