//! Checks that worlds are shifts of rings: a reader cannot tell the true one.
//!
//! Where everybody carries what belongs to somebody so many places on in a ring, one ring for all worlds, the worlds look the same from
//! each of them. In a window of consecutive places they do not: the true one is an end.

/// Place that stands for none.
const NONE: usize = usize::MAX;
/// Of the ways to go round a ring, so many are tried. At least one of five goes through all places.
const TRIED: usize = 256;

/// Counts the people who are not in a ring with their partners. `partners` has for everybody whose values they
/// carry in each world but the true one; `values` what everybody has, or nothing if that is not known.
///
/// People are in a ring if there is a cyclic order of some, with different values, such that everybody's partner in a world is the same number of
/// places on, another number in each world.
pub fn people_outside_rings(partners: &[Vec<usize>], values: &[u64]) -> usize {
    let mut place = vec![NONE; partners.len()];
    let mut seen = vec![false; partners.len()];
    let mut outside = 0;
    for first in 0..partners.len() {
        if seen[first] {
            continue;
        }
        let reached = Reached::from(first, partners, &mut seen);
        if !reached.is_ring(partners, values, &mut place) {
            outside += reached.people.len();
        }
        reached.people.iter().for_each(|&person| place[person] = NONE);
    }
    outside
}

/// People whose values somebody carries in some world, or whose they carry, and so on.
struct Reached {
    /// From the first one on.
    people: Vec<usize>,
    /// For each of them, the predecessor's place in `people` and the world of this partnership.
    by: Vec<(usize, usize)>,
    /// True if all partners are people.
    whole: bool,
}

impl Reached {
    fn from(first: usize, partners: &[Vec<usize>], seen: &mut [bool]) -> Self {
        let mut reached = Self { people: vec![first], by: vec![(0, 0)], whole: true };
        seen[first] = true;
        let mut at = 0;
        while let Some(&person) = reached.people.get(at) {
            for (world, &partner) in partners[person].iter().enumerate() {
                match seen.get_mut(partner) {
                    Some(seen) if !*seen => {
                        *seen = true;
                        reached.people.push(partner);
                        reached.by.push((at, world));
                    }
                    Some(_) => {}
                    None => reached.whole = false,
                }
            }
            at += 1;
        }
        reached
    }

    /// Returns true if these people are a ring; `place` is as long as there are people, all without a place.
    fn is_ring(&self, partners: &[Vec<usize>], values: &[u64], place: &mut [usize]) -> bool {
        let size = self.people.len();
        let width = partners[self.people[0]].len();
        if !self.whole || self.people.iter().any(|&person| partners[person].len() != width) {
            return false;
        }
        // Nobody else is their partner, who was reached from elsewhere.
        self.people.iter().for_each(|&person| place[person] = 0);
        if self.people.iter().any(|&person| partners[person].iter().any(|&partner| place[partner] == NONE)) {
            return false;
        }
        let mut of_values: Vec<u64> = self.people.iter().filter_map(|&person| values.get(person).copied()).collect();
        of_values.sort_unstable();
        if of_values.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
        (1..size.min(TRIED + 1)).any(|step| self.goes_round(step, partners, place)) && {
            let shifts: Vec<usize> = partners[self.people[0]].iter().map(|&partner| place[partner]).collect();
            let mut sorted = shifts.clone();
            sorted.sort_unstable();
            let differ = sorted.windows(2).all(|pair| pair[0] != pair[1]) && sorted.first() != Some(&0);
            let moves = |&person: &usize| {
                let ends = partners[person].iter().map(|&partner| place[partner]);
                ends.eq(shifts.iter().map(|shift| (place[person] + shift) % size))
            };
            differ && self.people.iter().all(moves)
        }
    }

    /// Returns true if one way round passes all people; they get places by it then. It takes the first one to the one at `step` at once.
    fn goes_round(&self, step: usize, partners: &[Vec<usize>], place: &mut [usize]) -> bool {
        // The worlds that lead there, the last one first.
        let mut path = Vec::new();
        let mut at = step;
        while at != 0 {
            path.push(self.by[at].1);
            at = self.by[at].0;
        }
        self.people.iter().for_each(|&person| place[person] = NONE);
        let mut person = self.people[0];
        for next in 0..self.people.len() {
            if std::mem::replace(&mut place[person], next) != NONE {
                return false;
            }
            person = path.iter().rev().fold(person, |person, &world| partners[person][world]);
        }
        person == self.people[0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lists the rings one after the other: of so many people each, with these shifts.
    fn rings(rings: &[(usize, &[usize])]) -> Vec<Vec<usize>> {
        let mut partners = Vec::new();
        for &(size, shifts) in rings {
            let first = partners.len();
            partners.extend((0..size).map(|place| shifts.iter().map(|shift| first + (place + shift) % size).collect()));
        }
        partners
    }

    proptest! {
        /// Shifts of rings are found by any names, and lost if partners are exchanged.
        #[test]
        fn shifts_of_rings_are_found(
            sizes in prop::collection::vec((4_usize..13, prop::sample::subsequence((1..12).collect::<Vec<usize>>(), 3)), 1..5),
            seed in any::<u64>(), exchanged in any::<[usize; 2]>(), world in 0_usize..3,
        ) {
            use rand::SeedableRng;
            use rand::seq::SliceRandom;
            let sizes: Vec<_> = sizes.iter().filter(|(size, shifts)| shifts.iter().all(|shift| shift < size)).collect();
            let plain = rings(&sizes.iter().map(|(size, shifts)| (*size, shifts.as_slice())).collect::<Vec<_>>());
            let mut name: Vec<usize> = (0..plain.len()).collect();
            name.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(seed));
            let mut partners = vec![Vec::new(); plain.len()];
            for (person, of_person) in plain.iter().enumerate() {
                partners[name[person]] = of_person.iter().map(|&partner| name[partner]).collect();
            }
            prop_assert_eq!(people_outside_rings(&partners, &[]), 0);
            if partners.is_empty() {
                return Ok(());
            }
            let [a, b] = exchanged.map(|person| person % partners.len());
            if partners[a][world] != partners[b][world] {
                let (of_a, of_b) = (partners[a][world], partners[b][world]);
                partners[a][world] = of_b;
                partners[b][world] = of_a;
                prop_assert!(people_outside_rings(&partners, &[]) > 0);
            }
        }
    }

    #[test]
    fn what_is_no_ring_is_found() {
        let values = |values: &[u64]| people_outside_rings(&rings(&[(3, &[1, 2]), (4, &[3, 1])]), values);
        assert_eq!(values(&[]), 0);
        assert_eq!(values(&[0, 1, 2, 0, 1, 2, 3]), 0);
        assert_eq!(values(&[0, 1, 2, 0, 1, 2, 0]), 4, "a value twice in a ring");
        assert_eq!(people_outside_rings(&rings(&[(3, &[1, 1])]), &[]), 3, "the same world twice");
        assert_eq!(people_outside_rings(&rings(&[(3, &[0, 1])]), &[]), 3, "the true world once more");
        // A shift that alone does not go round, and together with the other one does.
        assert_eq!(people_outside_rings(&rings(&[(6, &[2, 3]), (12, &[4, 6])]), &[]), 0);
        // Two pairs that exchange, and exchange with each other: all worlds look the same, but that is no ring.
        let square = vec![vec![1, 2, 3], vec![0, 3, 2], vec![3, 0, 1], vec![2, 1, 0]];
        assert_eq!(people_outside_rings(&square, &[]), 4);
        // Example 4.1 of Shmueli and Tassa: permutations in windows of four of five people.
        let sigma = [[1, 3, 4, 0, 2], [3, 2, 0, 4, 1], [2, 4, 3, 1, 0]];
        let window: Vec<Vec<usize>> = (0..5).map(|person| sigma.iter().map(|sigma| sigma[person]).collect()).collect();
        assert_eq!(people_outside_rings(&window, &[]), 5);
        assert!(people_outside_rings(&[vec![1, 2], vec![0, 9]], &[]) > 0, "a partner who is nobody");
    }
}
