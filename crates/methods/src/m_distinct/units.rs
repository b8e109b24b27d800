//! Units that the assignment of new rows takes for values: values, or sets of them of which a group can hold one.
//!
//! A group must be one that can go on *whatever allowed change happens*: with everybody in the entry of their label, whoever has
//! a new value must find values for all other entries that are different from it and from each other. Call a set of values that
//! can become each other and nothing else an *end*. A group can always go on if no more of its values can come to an end than
//! that end has values: then the entries that are not of the person who changed each have a value of their own in some
//! end. The other way round, when its people come to an end with too few values one after the other, the last has no place.
//! If values change within classes, every class is an end, and the different values of a group are few enough by
//! themselves. Otherwise all values that can come to the same small end make one unit. Groups of new rows have fewer than `2 m`
//! values, so an end with as many is none to care about.

use super::relation::Relation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Single values.
    Values,
    /// Values that can come to the same small end.
    Ends,
    /// Values that can become alike.
    Components,
}

/// Units for the assignment, with the units that can be in a group with each.
#[derive(Debug)]
pub(super) struct Units {
    pub what: What,
    pub unit_of: Vec<u32>,
    /// Number of the value set that is the entry of a unit's rows.
    pub entries: Vec<u32>,
}

impl Units {
    /// Makes the units of a relation: components if first groups are to be disjoint, else units by ends. Where the
    /// relation leaves fewer than `m` of these, no group can go on for ever, and every value is a unit.
    pub(super) fn new(relation: &mut Relation, m: usize, disjoint: bool) -> Self {
        if disjoint {
            let (unit_of, entries) = relation.components();
            return Self { what: What::Components, unit_of, entries };
        }
        if !relation.is_of_classes() {
            let units = Self::by_ends(relation, m.saturating_mul(2) - 1);
            if units.entries.len() >= m {
                return units;
            }
        }
        let values = 0..relation.values() as u32;
        Self {
            what: What::Values,
            entries: values.clone().map(|value| relation.set_of(value)).collect(),
            unit_of: values.collect(),
        }
    }

    /// Unites the values with the same end, if they are fewer than `most` values. There must be others than the end's own.
    fn by_ends(relation: &mut Relation, most: usize) -> Self {
        let values = relation.values();
        let is_end = |relation: &Relation, number: u32| {
            relation.set(number).iter().all(|&value| relation.set_of(value) == number)
        };
        // A small end stands for all that can come to it.
        let mut parent: Vec<u32> = (0..values as u32).collect();
        for value in 0..values as u32 {
            for &other in relation.candidates(value) {
                let number = relation.set_of(other);
                let end = relation.set(number);
                if number != relation.set_of(value) && end.len() < most && is_end(relation, number) {
                    end.iter().chain([&value]).for_each(|&linked| link(&mut parent, end[0], linked));
                }
            }
        }
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); values];
        (0..values as u32).for_each(|value| members[root(&mut parent, value) as usize].push(value));
        let (mut unit_of, mut entries) = (vec![0; values], Vec::new());
        for members in members.into_iter().filter(|members| !members.is_empty()) {
            members.iter().for_each(|&value| unit_of[value as usize] = entries.len() as u32);
            entries.push(match members.as_slice() {
                &[value] => relation.set_of(value),
                _ => relation.number(members),
            });
        }
        Self { what: What::Ends, unit_of, entries }
    }

    pub(super) fn sums(&self, of_value: impl Fn(usize) -> usize) -> Vec<usize> {
        let mut sums = vec![0; self.entries.len()];
        for (value, &unit) in self.unit_of.iter().enumerate() {
            sums[unit as usize] += of_value(value);
        }
        sums
    }
}

fn root(parent: &mut [u32], mut value: u32) -> u32 {
    while parent[value as usize] != value {
        parent[value as usize] = parent[parent[value as usize] as usize];
        value = parent[value as usize];
    }
    value
}

fn link(parent: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parent, a), root(parent, b));
    // The smaller number, so that units are in the order of their first values.
    parent[a.max(b) as usize] = a.min(b);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::representatives;
    use super::*;
    use crate::microdata::Updates;

    fn relation(values: usize, pairs: &[(u32, u32)]) -> Relation {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        pairs.dedup();
        Relation::new(Some(&Updates { pairs, ..Updates::default() }), values, true).unwrap()
    }

    #[test]
    fn courses_that_end_alike_are_units_and_classes_are_not() {
        // 0 becomes 1; 2, 3 and 4 become each other; 5 stays.
        let pairs = [(0, 1), (2, 3), (3, 4), (4, 2)];
        let units = Units::new(&mut relation(6, &pairs), 2, false);
        assert_eq!((units.what, units.unit_of.as_slice()), (What::Ends, [0, 0, 1, 2, 3, 4].as_slice()));
        // The end has fewer values than a group of 2 * 3 - 1.
        let units = Units::new(&mut relation(7, &[&pairs[..], &[(6, 2)]].concat()), 3, false);
        assert_eq!(units.unit_of, [0, 0, 1, 1, 1, 2, 1]);
        let units = Units::new(&mut relation(7, &[&pairs[..], &[(6, 2)]].concat()), 2, false);
        assert_eq!(units.unit_of, [0, 0, 1, 2, 3, 4, 5], "an end of three values has room for all groups of m = 2");
        let units = Units::new(&mut relation(2, &[(0, 1)]), 2, false);
        assert_eq!((units.what, units.unit_of.as_slice()), (What::Values, [0, 1].as_slice()));
        assert_eq!(Units::new(&mut relation(4, &[(2, 3), (3, 2)]), 2, false).what, What::Values);
    }

    /// Returns true if a group can go on after each change of its people.
    fn goes_on(relation: &Relation, values: &[u32], seen: &mut std::collections::BTreeSet<Vec<u32>>) -> bool {
        if !seen.insert(values.to_vec()) {
            return true;
        }
        let next: Vec<Vec<u32>> = values.iter().fold(vec![vec![]], |all, &value| {
            let longer = |begun: &Vec<u32>| {
                let free = relation.candidates(value).iter().filter(|next| !begun.contains(next));
                free.map(|&next| [begun.as_slice(), &[next]].concat()).collect::<Vec<_>>()
            };
            all.iter().flat_map(longer).collect()
        });
        let stuck = (0..values.len()).any(|label| {
            let others: Vec<&[u32]> = (0..values.len())
                .filter(|&other| other != label)
                .map(|other| relation.candidates(values[other]))
                .collect();
            relation.candidates(values[label]).iter().any(|&value| !representatives::exists(&others, &[value]))
        });
        !stuck && next.iter().all(|next| goes_on(relation, next, seen))
    }

    proptest! {
        /// Groups of one value per unit can go on for ever.
        #[test]
        fn groups_of_units_go_on(
            pairs in prop::collection::vec((0_u32..6, 0_u32..6), 0..10),
            m in 2_usize..4,
            draws in prop::collection::vec(any::<prop::sample::Index>(), 5),
        ) {
            let mut relation = relation(6, &pairs);
            let units = Units::new(&mut relation, m, false);
            prop_assume!(units.what == What::Ends || relation.is_of_classes());
            let mut open: Vec<u32> = (0..6).collect();
            let mut group = Vec::new();
            for draw in draws.iter().take(2 * m - 1) {
                if open.is_empty() {
                    break;
                }
                let value = *draw.get(&open);
                group.push(value);
                open.retain(|&other| units.unit_of[other as usize] != units.unit_of[value as usize]);
            }
            prop_assert!(goes_on(&relation, &group, &mut Default::default()), "{group:?}");
        }
    }
}
