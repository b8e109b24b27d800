//! Consistency of a world with a release: everybody can have a row of their own in it.

/// A release whose rows are generalized one by one.
#[derive(Debug, Clone, Default)]
pub struct ReleasedRows {
    /// Least and greatest published value of each quasi-identifier, row after row. Any numbers in the order of the values do.
    pub boxes: Vec<[i64; 2]>,
    /// Values of each row that are published as they are, as a number.
    pub values: Vec<u64>,
}

/// World that a reader thinks possible: quasi-identifiers and verbatim values of everybody.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Quasi-identifiers, person after person.
    pub quasi: Vec<i64>,
    /// Values of each person that are published as they are, numbered as in the release.
    pub values: Vec<u64>,
}

const NOBODY: usize = usize::MAX;

impl World {
    /// Returns true if people can have one row each that fits them. Every row has the values of its person, and its box
    /// holds the `quasi` quasi-identifiers.
    ///
    /// Augmenting paths, shortest first (Hopcroft and Karp, 1973), among the people and rows with the same values. Quadratic in their
    /// number in memory.
    pub fn is_consistent(&self, release: &ReleasedRows, quasi: usize) -> bool {
        let sorted = |values: &[u64]| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by_key(|&i| values[i]);
            order
        };
        let (people, rows) = (sorted(&self.values), sorted(&release.values));
        if people.len() != rows.len() || people.iter().zip(&rows).any(|(&p, &r)| self.values[p] != release.values[r]) {
            return false;
        }
        let mut start = 0;
        people.chunk_by(|&a, &b| self.values[a] == self.values[b]).all(|people| {
            let rows = &rows[start..start + people.len()];
            start += people.len();
            let covers = |person: usize, row: usize| {
                let codes = &self.quasi[person * quasi..][..quasi];
                release.boxes[row * quasi..][..quasi].iter().zip(codes).all(|([lo, hi], code)| lo <= code && code <= hi)
            };
            let edges = |&person: &usize| (0..rows.len()).filter(|&place| covers(person, rows[place])).collect();
            Matching::new(people.iter().map(edges).collect()).becomes_perfect()
        })
    }
}

/// People and rows as many, and which rows each of the people can have.
struct Matching {
    edges: Vec<Vec<usize>>,
    row_of: Vec<usize>,
    person_of: Vec<usize>,
    level: Vec<usize>,
}

impl Matching {
    fn new(edges: Vec<Vec<usize>>) -> Self {
        let n = edges.len();
        Self { edges, row_of: vec![NOBODY; n], person_of: vec![NOBODY; n], level: vec![NOBODY; n] }
    }

    fn becomes_perfect(mut self) -> bool {
        while self.row_of.contains(&NOBODY) {
            self.find_levels();
            let mut next = vec![0; self.edges.len()];
            let free: Vec<usize> = (0..self.edges.len()).filter(|&person| self.row_of[person] == NOBODY).collect();
            if free.into_iter().filter(|&person| self.augment(person, &mut next)).count() == 0 {
                return false;
            }
        }
        true
    }

    /// Finds the distances of people from people without a row.
    fn find_levels(&mut self) {
        let mut queue: Vec<usize> = Vec::new();
        for (person, &row) in self.row_of.iter().enumerate() {
            self.level[person] = if row == NOBODY { 0 } else { NOBODY };
            if row == NOBODY {
                queue.push(person);
            }
        }
        let mut at = 0;
        while let Some(&person) = queue.get(at) {
            at += 1;
            for &row in &self.edges[person] {
                let other = self.person_of[row];
                if other != NOBODY && self.level[other] == NOBODY {
                    self.level[other] = self.level[person] + 1;
                    queue.push(other);
                }
            }
        }
    }

    /// Finds a free row for somebody along the levels.
    fn augment(&mut self, first: usize, next: &mut [usize]) -> bool {
        let mut path = vec![first];
        while let Some(&person) = path.last() {
            let Some(&row) = self.edges[person].get(next[person]) else {
                path.pop();
                if let Some(&before) = path.last() {
                    next[before] += 1;
                }
                continue;
            };
            let other = self.person_of[row];
            if other == NOBODY {
                for person in path {
                    let row = self.edges[person][next[person]];
                    self.row_of[person] = row;
                    self.person_of[row] = person;
                    next[person] += 1;
                }
                return true;
            }
            match self.level[other] == self.level[person] + 1 {
                true => path.push(other),
                false => next[person] += 1,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use pathfinding::kuhn_munkres::kuhn_munkres;
    use pathfinding::matrix::Matrix;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a solver of another kind.
        #[test]
        fn perfect_matchings_are_found(n in 1_usize..9, bits in prop::collection::vec(any::<bool>(), 64)) {
            let edges: Vec<Vec<usize>> = (0..n).map(|i| (0..n).filter(|j| bits[i * 8 + j % 8]).collect()).collect();
            let weight = |(i, j): (usize, usize)| i32::from(edges[i].contains(&j));
            let most = kuhn_munkres(&Matrix::from_fn(n, n, weight)).0;
            prop_assert_eq!(Matching::new(edges).becomes_perfect(), most == n as i32);
        }
    }

    #[test]
    fn boxes_and_values_decide() {
        let release = ReleasedRows { boxes: vec![[1, 2], [2, 2]], values: vec![7, 7] };
        let world = |quasi: [i64; 2], values: [u64; 2]| World { quasi: quasi.to_vec(), values: values.to_vec() };
        assert!(world([2, 1], [7, 7]).is_consistent(&release, 1));
        assert!(!world([1, 1], [7, 7]).is_consistent(&release, 1));
        assert!(!world([1, 2], [7, 8]).is_consistent(&release, 1));
    }
}
