//! Update relation: candidate update sets (the paper's CUS) of all values, and value sets by number.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result, thousands};
use crate::microdata::Updates;

/// The update relation, reflexive and transitive.
#[derive(Debug)]
pub(super) struct Relation {
    /// Value sets, each ascending: the candidate update sets, and others that were [numbered](Self::number) later.
    sets: Vec<Box<[u32]>>,
    numbers: FxHashMap<Box<[u32]>, u32>,
    /// Number of each value's candidate update set.
    set_of: Vec<u32>,
    classes: bool,
}

impl Relation {
    /// Returns the relation over so many values. Every value can stay as it is; one without pairs can do nothing else.
    /// Fails when it is not transitive and is not to be closed, or cannot be because the missing pairs have no probability.
    pub(super) fn new(updates: Option<&Updates>, values: usize, close: bool) -> Result<Self> {
        let (relation, missing) = Self::read(updates, values, close)?;
        if missing > 0 && updates.is_some_and(Updates::weighted) {
            return Err(Error::refused(format!(
                "`updates` has probabilities and lacks {} pairs to be transitive, and what is added with close_updates would \
                 have none; add these pairs with theirs, or leave out the probabilities",
                thousands(missing)
            )));
        }
        Ok(relation)
    }

    /// Returns the same of values that change by a law: what takes several releases follows from it, and need not be listed.
    ///
    /// # Errors
    /// Never, but that it is read as other relations are.
    pub(super) fn with_law(updates: Option<&Updates>, values: usize) -> Result<Self> {
        Self::read(updates, values, true).map(|(relation, _)| relation)
    }

    /// Reads the closed relation, and counts missing pairs. They are refused unless they are to be added.
    fn read(updates: Option<&Updates>, values: usize, close: bool) -> Result<(Self, usize)> {
        let mut relation =
            Self { sets: Vec::new(), numbers: FxHashMap::default(), set_of: Vec::with_capacity(values), classes: true };
        let pairs = updates.map_or(&[][..], |updates| &updates.pairs);
        let becomes = |value: u32| {
            let start = pairs.partition_point(|&(from, _)| from < value);
            pairs[start..].iter().take_while(move |&&(from, _)| from == value).map(|&(_, to)| to)
        };
        let (mut missing, mut seen, mut open) = (0, FxHashSet::default(), Vec::new());
        for value in 0..values as u32 {
            seen.clear();
            open.push(value);
            seen.insert(value);
            seen.extend(becomes(value));
            let direct = seen.len();
            open.extend(becomes(value).filter(|&to| to != value));
            while let Some(next) = open.pop() {
                open.extend(becomes(next).filter(|&to| seen.insert(to)));
            }
            missing += seen.len() - direct;
            let mut set: Vec<u32> = seen.iter().copied().collect();
            set.sort_unstable();
            let number = relation.number(set);
            relation.set_of.push(number);
        }
        if missing > 0 && !close {
            return Err(Error::refused(format!(
                "`updates` is not transitive: {} pairs are missing, where a value can become a second one and that a third, but \
                 not the first one the third; add them (close_updates => true does). To see them: SELECT a.from_value, \
                 b.to_value FROM updates a JOIN updates b ON a.to_value = b.from_value WHERE a.from_value <> b.to_value EXCEPT \
                 SELECT from_value, to_value FROM updates",
                thousands(missing)
            )));
        }
        relation.classes = (0..values as u32).all(|value| {
            let number = relation.set_of(value);
            relation.set(number).iter().all(|&other| relation.set_of(other) == number)
        });
        Ok((relation, missing))
    }

    /// Makes the relation in which every value can become every other.
    pub(super) fn any(values: usize) -> Self {
        let mut relation =
            Self { sets: Vec::new(), numbers: FxHashMap::default(), set_of: vec![0; values], classes: true };
        relation.number((0..values as u32).collect());
        relation
    }

    pub(super) fn values(&self) -> usize {
        self.set_of.len()
    }

    /// Returns the number of a value's candidate update set.
    pub(super) fn set_of(&self, value: u32) -> u32 {
        self.set_of[value as usize]
    }

    /// Returns the values that a value can become, ascending.
    pub(super) fn candidates(&self, value: u32) -> &[u32] {
        self.set(self.set_of(value))
    }

    pub(super) fn set(&self, number: u32) -> &[u32] {
        &self.sets[number as usize]
    }

    /// Returns true if a value is in the set of a number.
    pub(super) fn has(&self, number: u32, value: u32) -> bool {
        self.set(number).binary_search(&value).is_ok()
    }

    /// Returns the number of a set; `set` is ascending.
    pub(super) fn number(&mut self, set: Vec<u32>) -> u32 {
        let set = set.into_boxed_slice();
        if let Some(&number) = self.numbers.get(&set) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    /// Returns the kind of a group with these values: the numbers of their candidate update sets, in the same order.
    pub(super) fn kind(&self, values: &[u32]) -> Box<[u32]> {
        values.iter().map(|&value| self.set_of(value)).collect()
    }

    /// Returns true if any two candidate update sets are equal or have nothing in common: values change within classes.
    pub(super) fn is_of_classes(&self) -> bool {
        self.classes
    }

    /// Links the values by candidate update sets that overlap: the component of each value, and the values of each component,
    /// by number. Values of different components will never be alike.
    pub(super) fn components(&mut self) -> (Vec<u32>, Vec<u32>) {
        const NONE: u32 = u32::MAX;
        let values = self.values() as u32;
        if values > 0 && self.candidates(0).len() == values as usize {
            // What one value can become are all: no need to look at the others, of which there may be many.
            return (vec![0; values as usize], vec![self.set_of(0)]);
        }
        let mut links: Vec<Vec<u32>> = vec![Vec::new(); values as usize];
        for value in 0..values {
            for &other in self.candidates(value).iter().filter(|&&other| other != value) {
                links[value as usize].push(other);
                links[other as usize].push(value);
            }
        }
        let (mut component_of, mut sets) = (vec![NONE; values as usize], Vec::new());
        for value in 0..values {
            if component_of[value as usize] != NONE {
                continue;
            }
            let component = sets.len() as u32;
            let (mut open, mut set) = (vec![value], Vec::new());
            component_of[value as usize] = component;
            while let Some(next) = open.pop() {
                set.push(next);
                for &other in &links[next as usize] {
                    if component_of[other as usize] == NONE {
                        component_of[other as usize] = component;
                        open.push(other);
                    }
                }
            }
            set.sort_unstable();
            sets.push(self.number(set));
        }
        (component_of, sets)
    }
}

/// Returns the common values of two ascending sets.
pub(super) fn common(a: &[u32], b: &[u32]) -> Vec<u32> {
    a.iter().copied().filter(|value| b.binary_search(value).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(pairs: &[(u32, u32)], values: usize, close: bool, weighted: bool) -> Result<Relation> {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        let probabilities = if weighted { vec![Some(0.1); pairs.len()] } else { Vec::new() };
        Relation::new(Some(&Updates { pairs, probabilities }), values, close)
    }

    #[test]
    fn every_value_can_stay_and_those_without_pairs_must() {
        let identity = Relation::new(None, 3, false).unwrap();
        assert_eq!(identity.candidates(1), [1]);
        assert!(identity.is_of_classes());
        let relation = relation(&[(0, 1)], 3, false, false).unwrap();
        assert_eq!([relation.candidates(0), relation.candidates(1), relation.candidates(2)], [&[0, 1][..], &[1], &[2]]);
        assert!(!relation.is_of_classes());
    }

    #[test]
    fn missing_pairs_are_refused_or_added() {
        let text = relation(&[(0, 1), (1, 2), (2, 3)], 4, false, false).unwrap_err().to_string();
        assert!(text.contains("3 pairs are missing"), "{text}");
        let closed = relation(&[(0, 1), (1, 2), (2, 3)], 4, true, false).unwrap();
        assert_eq!(closed.candidates(0), [0, 1, 2, 3]);
        assert!(relation(&[(0, 1), (1, 2)], 3, true, true).unwrap_err().to_string().contains("has probabilities"));
        // A cycle closes to a class.
        let cycle = relation(&[(0, 1), (1, 2), (2, 0)], 4, true, false).unwrap();
        assert!(cycle.is_of_classes());
        assert_eq!(cycle.set_of(0), cycle.set_of(2));
    }

    #[test]
    fn any_update_is_one_class() {
        let mut any = Relation::any(3);
        let mut listed = relation(&[(0, 1), (1, 2), (2, 0)], 3, true, false).unwrap();
        for relation in [&any, &listed] {
            assert!(relation.is_of_classes());
            assert!((0..3).all(|value| relation.candidates(value) == [0, 1, 2]));
        }
        assert_eq!(any.components(), listed.components());
        assert_eq!(Relation::any(0).components(), (Vec::new(), Vec::new()));
        // Not quadratic in the values.
        let (component_of, sets) = Relation::any(1_000_000).components();
        assert_eq!((component_of.len(), sets.len()), (1_000_000, 1));
    }

    #[test]
    fn components_hold_whatever_may_become_alike() {
        // 0 and 1 can both become 2.
        let mut relation = relation(&[(0, 2), (1, 2)], 4, false, false).unwrap();
        let (component_of, sets) = relation.components();
        assert_eq!(component_of, [0, 0, 0, 1]);
        assert_eq!(relation.set(sets[0]), [0, 1, 2]);
    }
}
