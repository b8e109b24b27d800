//! Enumeration of all draws of `delta => 'equal'` with exact weights, for every assignment of values. The reader is
//! shown the groups, knows all quasi-identifiers and this code, and combines all columns.

use std::collections::BTreeMap;

use crate::Monitor;
use crate::choices::{Every, Share, alone, orders};
use crate::mondrian::Cuts;
use crate::sample::Table;
use crate::state::Signatures;

/// A group: who is in it, and its rows: quasi-identifiers and sensitive value.
type Group = (Vec<u32>, Vec<(Vec<u32>, u32)>);

/// Infers the greatest ratio of a value's probability to one of the group's size. It returns also the least size of
/// a group, and how many things can be seen.
fn infer(quasi: &[&[i32]], values: &[i32], l: usize, cuts: Cuts) -> (Share, Share, usize) {
    let column = |column: &&[i32]| column.iter().copied().map(Some).collect();
    let mut worlds: BTreeMap<Vec<Group>, Vec<(Vec<i32>, Share)>> = BTreeMap::new();
    for world in orders(values) {
        let sensitive = Some(world.clone());
        let table = Table { quasi: quasi.iter().map(column).collect(), sensitive, ids: true, ..Table::default() };
        let microdata = table.encode([1, 2]).unwrap().0;
        let arrival = microdata.people.as_ref().unwrap().arrival.clone();
        let monitor = Monitor::default();
        let law = Every::new(0).law(|every| {
            let (method, known) = (super::Muco::equal(l, cuts).unwrap(), Signatures::default());
            let mut groups = super::equal::groups(&microdata, &known, &method, (&every, 1), &monitor).unwrap();
            // The reader knows the numbers of rings, which deals follow from, as they have nothing to do with values.
            for group in 0..groups.len() {
                let members = groups.members[groups.range(group)].iter();
                groups.rings[group] = members.map(|&row| i64::from(arrival[row as usize])).min().unwrap();
            }
            let perturbed = super::equal::deal(&microdata, &groups, &monitor).unwrap();
            let of_group = |group: usize| -> Group {
                let range = groups.range(group);
                let mut people: Vec<u32> =
                    groups.members[range.clone()].iter().map(|&row| arrival[row as usize]).collect();
                people.sort_unstable();
                let rows = range.map(|place| (perturbed.codes.of(place as u32).collect(), groups.sensitive[place]));
                let mut rows: Vec<(Vec<u32>, u32)> = rows.collect();
                rows.sort_unstable();
                (people, rows)
            };
            let mut seen: Vec<Group> = (0..groups.len()).map(of_group).collect();
            seen.sort_unstable();
            seen
        });
        for (seen, share) in law {
            worlds.entry(seen).or_default().push((world.clone(), share));
        }
    }
    let (mut most, mut times, outcomes) = (Share::NONE, Share::NONE, worlds.len());
    for (seen, worlds) in worlds {
        let sum = |worlds: &mut dyn Iterator<Item = &(Vec<i32>, Share)>| {
            worlds.fold(Share::NONE, |sum, (_, share)| sum.plus(*share))
        };
        let total = sum(&mut worlds.iter());
        for (people, _) in &seen {
            for &person in people {
                for &value in values {
                    let with = sum(&mut worlds.iter().filter(|(world, _)| world[person as usize] == value)).of(total);
                    let of_group = with.times(Share::new(people.len() as u128, 1));
                    most = if with.is_more_than(most) { with } else { most };
                    times = if of_group.is_more_than(times) { of_group } else { times };
                }
            }
        }
    }
    (most, times, outcomes)
}

/// A table that is not cut is one group: everybody has each of its values with the same probability, exactly.
#[test]
fn a_group_tells_nothing_of_its_rows() {
    for (quasi, values) in [(&[&[0, 1, 2][..], &[5, 5, 9]], &[0, 1, 2][..]), (&[&[0, 1, 9], &[0, 9, 1]], &[3, 4, 5])] {
        let (most, times, outcomes) = alone(|| infer(quasi, values, 2, Cuts::Tight));
        assert_eq!((most, times), (Share::new(1, 3), Share::new(1, 1)));
        assert!(outcomes > 0);
    }
}

/// With cuts that were made and cuts that were not: nobody's value is likelier than `1/l`.
#[test]
fn nobodys_value_is_likelier_than_one_of_l() {
    let cases: [(&[&[i32]], &[i32]); 4] = [
        (&[&[0, 1, 2, 3]], &[0, 0, 1, 2]),
        (&[&[0, 0, 1, 9]], &[0, 0, 1, 1]),
        (&[&[0, 1, 0, 9], &[3, 3, 0, 0]], &[0, 0, 1, 2]),
        (&[&[0, 0, 4, 5, 6]], &[0, 0, 1, 1, 2]),
    ];
    for cuts in [Cuts::Tight, Cuts::Median] {
        for (quasi, values) in cases {
            let (most, _, outcomes) = alone(|| infer(quasi, values, 2, cuts));
            assert!(!most.is_more_than(Share::new(1, 2)), "{quasi:?} {values:?}: {most:?}");
            println!("{outcomes} outcomes, at most {most:?}");
        }
    }
}
