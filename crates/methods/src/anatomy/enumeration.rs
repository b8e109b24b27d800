//! Enumeration of all draws for every way to give out the values, with exact weights. The reader has the release,
//! everybody's quasi-identifiers (which are published), how often each value occurs, and this code.

use std::collections::BTreeMap;

use super::Anatomy;
use crate::assignment;
use crate::choices::{Every, Share, orders};
use crate::microdata::of_width;
use crate::sample::Table;

/// Members of a group, and its values.
type Group = (Vec<u32>, Vec<u32>);

/// Checks that everybody has each value of their group with the same probability. It holds also if the value of somebody in another group is known.
fn assert_exact(values: &[i32], l: usize) {
    let mut worlds: BTreeMap<Vec<Group>, Vec<(Vec<i32>, Share)>> = BTreeMap::new();
    for world in orders(values) {
        let places = (0..values.len() as i32).map(Some).collect();
        let table = Table { quasi: vec![places], sensitive: Some(world.clone()), ids: true, ..Table::default() };
        let microdata = table.encode([1, 2]).unwrap().0;
        let arrival = microdata.people.as_ref().unwrap().arrival.clone();
        let law = Every::new(0).law(|mut every| {
            let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
            let mut rows = of_width!(&microdata.sensitive_codes, codes => assignment::by_value(&mut rows, codes));
            let groups = Anatomy::new(l).group(&microdata, &mut rows, &mut every).unwrap();
            let of_group = |group: usize| -> Group {
                let range = groups.range(group);
                let mut people: Vec<u32> =
                    groups.members[range.clone()].iter().map(|&row| arrival[row as usize]).collect();
                let mut values = groups.sensitive[range].to_vec();
                people.sort_unstable();
                values.sort_unstable();
                (people, values)
            };
            let mut seen: Vec<Group> = (0..groups.len()).map(of_group).collect();
            seen.sort_unstable();
            seen
        });
        for (seen, share) in law {
            worlds.entry(seen).or_default().push((world.clone(), share));
        }
    }
    let sum = |worlds: &[(Vec<i32>, Share)], is: &dyn Fn(&[i32]) -> bool| {
        let of = worlds.iter().filter(|(world, _)| is(world));
        of.fold(Share::NONE, |sum, (_, share)| sum.plus(*share))
    };
    for (seen, worlds) in worlds {
        let total = sum(&worlds, &|_| true);
        for (people, of_group) in &seen {
            let even = Share::new(1, people.len() as u128);
            for &person in people {
                // Codes are the values, which are 0, 1, 2 ..
                for value in of_group.iter().map(|&code| code as i32) {
                    let is = |world: &[i32]| world[person as usize] == value;
                    assert_eq!(sum(&worlds, &is).of(total), even, "{seen:?}");
                    for other in (0..values.len()).filter(|&other| !people.contains(&(other as u32))) {
                        for known in values {
                            let given = sum(&worlds, &|world| world[other] == *known);
                            if given != Share::NONE {
                                let both = sum(&worlds, &|world| world[other] == *known && is(world));
                                assert_eq!(both.of(given), even, "{seen:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn groups_tell_nothing_of_each_other() {
    let tables: [(&[i32], usize); 6] = [
        (&[0, 1], 2),
        (&[0, 0, 1, 1], 2),
        (&[0, 0, 1, 2], 2),
        (&[0, 0, 1, 1, 2], 2),
        (&[0, 0, 0, 1, 1, 2], 2),
        (&[0, 0, 1, 1, 2, 2], 3),
    ];
    for (values, l) in tables {
        assert_exact(values, l);
    }
}
