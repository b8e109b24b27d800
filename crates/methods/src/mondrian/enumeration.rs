//! Enumeration of all draws for every way to give out the values, with exact weights. The reader is shown leaves,
//! rings and all worlds.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::fair::{Fair, Leaves};
use super::*;
use crate::choices::{Every, Share, orders};
use crate::sample::Table;

/// View of a reader: members of leaves, rings in order, and tables, one of them true.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    leaves: Vec<Vec<u32>>,
    rings: Vec<Vec<u32>>,
    worlds: Vec<Vec<u32>>,
}

impl Shown {
    fn of(leaves: &Leaves, values: &[u32], l: usize) -> Self {
        let mut start = 0;
        let of_leaf = |&end: &u32| {
            let mut rows = leaves.rings.people[std::mem::replace(&mut start, end as usize)..end as usize].to_vec();
            rows.sort_unstable();
            rows
        };
        let mut shown =
            Self { leaves: leaves.ends.iter().map(of_leaf).collect(), rings: Vec::new(), worlds: Vec::new() };
        for (ring, _) in leaves.rings.iter() {
            let mut ring = ring.to_vec();
            let first = ring.iter().enumerate().min_by_key(|(_, row)| **row).map_or(0, |(place, _)| place);
            ring.rotate_left(first);
            shown.rings.push(ring);
        }
        for world in 0..l {
            let mut table = vec![0; values.len()];
            leaves.rings.each(world, |row, whose| table[row as usize] = values[whose as usize]);
            shown.worlds.push(table);
        }
        shown.leaves.sort_unstable();
        shown.rings.sort_unstable();
        shown.worlds.sort_unstable();
        shown
    }
}

/// Probability of each view of a reader, by the true table.
type Law = BTreeMap<Shown, BTreeMap<Vec<u32>, Share>>;

/// Computes the law of `quasi`, column by column. The first so many choices are always the first ones, for those of ties that do not matter.
fn law(quasi: &[&[i32]], values: &[u32], l: usize, least: usize, cuts: Cuts, ties: usize) -> Law {
    let column = |column: &&[i32]| column.iter().copied().map(Some).collect();
    let table = Table { quasi: quasi.iter().map(column).collect(), ..Table::default() };
    let microdata = table.encode([1, 2]).unwrap().0;
    let monitor = Monitor::default();
    let of_table = |values: Vec<u32>| {
        let (microdata, monitor, values_of) = (&microdata, &monitor, &values);
        let codes = &values.iter().copied().collect();
        let seen = Every::new(ties).law(|every| {
            let source = &every;
            let fair = Fair {
                microdata,
                values: codes,
                secrets: None,
                l,
                worlds: Worlds::Shifts,
                sure: 0.0,
                least,
                without_rings: false,
                cuts,
                source,
                monitor,
            };
            Shown::of(&fair.leaves().unwrap(), values_of, l)
        });
        (values, seen)
    };
    let of_tables: Vec<_> = orders(values).into_par_iter().map(of_table).collect();
    let mut law = Law::new();
    for (table, seen) in of_tables {
        for (shown, share) in seen {
            law.entry(shown).or_default().insert(table.clone(), share);
        }
    }
    law
}

/// Checks that the `l` worlds, and nothing else, explain each view equally well. Returns how many of the things
/// shown have several leaves, and how many one.
fn exact(quasi: &[&[i32]], values: &[u32], l: usize, least: usize, cuts: Cuts, ties: usize) -> [usize; 2] {
    let mut leaves = [0; 2];
    for (shown, shares) in law(quasi, values, l, least, cuts, ties) {
        assert_eq!(shares.len(), l, "{shown:?}: {shares:?}");
        assert!(shares.keys().eq(&shown.worlds), "{shown:?}: {shares:?}");
        let first = shares.values().next();
        assert!(shares.values().all(|share| Some(share) == first), "{shown:?}: {shares:?}");
        leaves[usize::from(shown.leaves.len() == 1)] += 1;
    }
    leaves
}

/// A single ring, as long as can be, has equally likely worlds. A window of consecutive people would give the true world away.
#[test]
fn all_worlds_of_a_ring_are_equally_likely() {
    for (people, l) in [(3, 2), (4, 3), (5, 3), (4, 4), (5, 4), (5, 5)] {
        let values: Vec<u32> = (0..people).collect();
        let places: Vec<i32> = (0..people as i32).collect();
        // All values are alike, and all of them are in the ring: ties do not matter.
        let [cut, whole] = exact(&[&places], &values, l, l, Cuts::Tight, people as usize - 1);
        assert!(cut == 0 && whole > 0);
    }
}

/// Cuts that were made and cuts that were not, with values that repeat.
#[test]
fn all_worlds_of_leaves_are_equally_likely() {
    let cases: [(&[&[i32]], &[u32]); 6] = [
        (&[&[0, 1, 2, 3]], &[0, 0, 1, 2]),
        (&[&[0, 0, 1, 9]], &[0, 0, 1, 1]),
        (&[&[0, 0, 4, 5, 6]], &[0, 0, 1, 1, 2]),
        (&[&[0, 1, 0, 1, 9], &[3, 3, 0, 0, 0]], &[0, 0, 1, 1, 2]),
        (&[&[0, 0, 1, 7, 8, 9]], &[0, 0, 0, 1, 1, 1]),
        (&[&[0, 0, 1, 1, 1, 1]], &[0, 0, 1, 1, 2, 2]),
    ];
    for cuts in [Cuts::Tight, Cuts::Median] {
        let mut all = [0; 2];
        for (quasi, values) in cases {
            let [cut, whole] = exact(quasi, values, 2, 2, cuts, 0);
            all = [all[0] + cut, all[1] + whole];
        }
        assert!(all[0] > 0 && all[1] > 0, "{all:?}");
    }
}

/// The same where leaves must be larger than diversity asks for.
#[test]
fn all_worlds_of_large_leaves_are_equally_likely() {
    let (places, values) = (&[0, 0, 1, 7, 8, 9], &[0, 0, 1, 1, 2, 2]);
    for cuts in [Cuts::Tight, Cuts::Median] {
        let [cut, whole] = exact(&[places], values, 2, 3, cuts, 0);
        assert!(cut > 0 && whole > 0);
        for shown in law(&[places], values, 2, 3, cuts, 0).into_keys() {
            assert!(shown.leaves.iter().all(|leaf| leaf.len() >= 3), "{shown:?}");
        }
    }
}
