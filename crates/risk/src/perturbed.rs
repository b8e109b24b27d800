//! Inferences of a reader from a release whose rows look like rows: values were replaced at random, and nothing tells which.
//!
//! The reader knows all quasi-identifiers of a person and looks for the rows that have them. Using more of them finds fewer rows, but more
//! often not the right one. So the reader of the model uses each with probability `P_match` (MuCo, Section 5.1), at least one of
//! them, and takes one of the matches: *identity disclosure* is the chance that it is the person's own row, *attribute
//! disclosure* the share of matches with the person's sensitive value. Both are means over all people, 0 where nothing matches.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};

/// More quasi-identifiers than this have too many subsets.
const MOST_QUASI: usize = 12;
/// Instead of a number: no released row is like this.
const NONE: u32 = u32::MAX;
/// Levels of the recursion whose two sides go to different threads.
const PARALLEL_LEVELS: usize = 4;

/// A perturbed release beside its originals.
#[derive(Debug, Clone, Copy)]
pub struct Perturbed<'a> {
    quasi: usize,
    original: &'a [u32],
    released: &'a [u32],
    sensitive: &'a [u32],
}

/// Inferences of a reader on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerturbedDisclosure {
    /// Probability with which the reader uses each quasi-identifier.
    pub p_match: f64,
    /// Chance that the reader takes the right row, 0 to 1.
    pub identity: f64,
    /// Mean share of the right sensitive value among the matches, 0 to 1.
    pub attribute: f64,
}

impl<'a> Perturbed<'a> {
    /// Takes the codes of `quasi` quasi-identifiers, row after row, original and published. They are of the same people
    /// in the same order; equal codes are equal values. And a code of each person's sensitive value.
    ///
    /// # Errors
    /// When there are too many quasi-identifiers, or none, or the lengths differ.
    pub fn try_new(quasi: usize, original: &'a [u32], released: &'a [u32], sensitive: &'a [u32]) -> Result<Self> {
        if !(1..=MOST_QUASI).contains(&quasi) {
            return Err(Error::refused(format!(
                "{quasi} quasi-identifiers: disclosure looks at all subsets of them, and can do so for 1 to {MOST_QUASI}; choose some"
            )));
        }
        match original.len() == released.len() && original.len() == sensitive.len() * quasi {
            true => Ok(Self { quasi, original, released, sensitive }),
            false => Err(Error::internal("a perturbed release with other rows than the original")),
        }
    }

    /// Computes the average inferences of readers with these probabilities of using a quasi-identifier. Exact: every
    /// subset is looked at. Takes 2^d times as long as one look at the rows.
    pub fn disclosure(&self, p_match: &[f64]) -> Vec<PerturbedDisclosure> {
        let rows = self.sensitive.len() as f64;
        let sums: Sums = self.subsets(&Sums::default);
        let mean = |p: f64, sums: &[f64; MOST_QUASI + 1]| {
            let sum: f64 = self.weights(p).iter().zip(sums).map(|(weight, sum)| weight * sum).sum();
            if rows > 0.0 { sum / rows } else { 0.0 }
        };
        let of = |&p_match: &f64| PerturbedDisclosure {
            p_match,
            identity: mean(p_match, &sums.identity),
            attribute: mean(p_match, &sums.attribute),
        };
        p_match.iter().map(of).collect()
    }

    /// Returns the same of every person, for one such reader: identity and attribute disclosure.
    pub fn people(&self, p_match: f64) -> Vec<[f64; 2]> {
        let weights = self.weights(p_match);
        let people: LinkedPeople =
            self.subsets(&|| LinkedPeople { weights, each: vec![[0.0; 2]; self.sensitive.len()] });
        people.each
    }

    /// Returns the bytes that looking at so many people needs: tallies of the parts that have threads of their own and of the path to them, and what
    /// they number.
    pub fn people_bytes(rows: usize) -> usize {
        let tallies = (1 << PARALLEL_LEVELS) + MOST_QUASI;
        rows * (tallies * size_of::<[f64; 2]>() + rayon::current_num_threads() * MOST_QUASI * 2 * size_of::<u32>())
    }

    /// Returns the probability of each subset of so many quasi-identifiers, if it is not empty.
    fn weights(&self, p: f64) -> [f64; MOST_QUASI + 1] {
        let d = self.quasi;
        let something = 1.0 - (1.0 - p).powi(d as i32);
        std::array::from_fn(|size| match size {
            0 => 0.0,
            size if size > d || p <= 0.0 => 0.0,
            size => p.powi(size as i32) * (1.0 - p).powi((d - size) as i32) / something,
        })
    }

    fn subsets<T: Tally>(&self, make: &(impl Fn() -> T + Sync)) -> T {
        let rows = self.sensitive.len();
        match rows {
            0 => make(),
            _ => self.from(0, 0, &vec![0; rows], &vec![0; rows], make),
        }
    }

    /// Tallies the subsets that go on from one of `size` among the first `next` quasi-identifiers. `known` and `seen`
    /// number what released rows and originals have in it.
    fn from<T: Tally>(
        &self,
        next: usize,
        size: usize,
        known: &[u32],
        seen: &[u32],
        make: &(impl Fn() -> T + Sync),
    ) -> T {
        if next == self.quasi {
            let mut tally = make();
            if size > 0 {
                self.of_subset(size, known, seen, &mut tally);
            }
            return tally;
        }
        let without = || self.from(next + 1, size, known, seen, make);
        let with = || {
            let (known, seen) = self.refine(next, known, seen);
            self.from(next + 1, size + 1, &known, &seen, make)
        };
        let (without, with) = if next < PARALLEL_LEVELS { rayon::join(without, with) } else { (without(), with()) };
        without.plus(&with)
    }

    /// Returns the numbers with one more quasi-identifier.
    fn refine(&self, j: usize, known: &[u32], seen: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let at = |codes: &[u32], row: usize| codes[row * self.quasi + j];
        let refined = known.iter().enumerate().map(|(row, &number)| {
            let next = numbers.len() as u32;
            *numbers.entry((number, at(self.released, row))).or_insert(next)
        });
        let refined = refined.collect();
        let find = |(row, &number): (usize, &u32)| match number {
            NONE => NONE,
            _ => numbers.get(&(number, at(self.original, row))).copied().unwrap_or(NONE),
        };
        (refined, seen.iter().enumerate().map(find).collect())
    }

    fn of_subset(&self, size: usize, known: &[u32], seen: &[u32], tally: &mut impl Tally) {
        let mut matches = vec![0_u32; known.iter().max().map_or(0, |most| *most as usize + 1)];
        let mut right: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for (&number, &value) in known.iter().zip(self.sensitive) {
            matches[number as usize] += 1;
            *right.entry((number, value)).or_default() += 1;
        }
        for (row, (&number, &own)) in seen.iter().zip(known).enumerate().filter(|(_, (seen, _))| **seen != NONE) {
            let rows = f64::from(matches[number as usize]);
            let value = self.sensitive[row];
            let identity = f64::from(u8::from(number == own)) / rows;
            let attribute = right.get(&(number, value)).map_or(0.0, |&count| f64::from(count) / rows);
            tally.add(size, row, [identity, attribute]);
        }
    }
}

/// Sum over subsets and people.
trait Tally: Send {
    /// Adds the identity and attribute disclosure of a person by a subset of this size.
    fn add(&mut self, size: usize, row: usize, found: [f64; 2]);
    fn plus(self, other: &Self) -> Self;
}

/// Sums over people and subsets, by the size of the subset.
#[derive(Default)]
struct Sums {
    identity: [f64; MOST_QUASI + 1],
    attribute: [f64; MOST_QUASI + 1],
}

impl Tally for Sums {
    fn add(&mut self, size: usize, _row: usize, [identity, attribute]: [f64; 2]) {
        self.identity[size] += identity;
        self.attribute[size] += attribute;
    }

    fn plus(mut self, other: &Self) -> Self {
        self.identity.iter_mut().zip(other.identity).for_each(|(sum, more)| *sum += more);
        self.attribute.iter_mut().zip(other.attribute).for_each(|(sum, more)| *sum += more);
        self
    }
}

/// Weighted sums over subsets, person by person.
struct LinkedPeople {
    weights: [f64; MOST_QUASI + 1],
    each: Vec<[f64; 2]>,
}

impl Tally for LinkedPeople {
    fn add(&mut self, size: usize, row: usize, found: [f64; 2]) {
        self.each[row].iter_mut().zip(found).for_each(|(sum, found)| *sum += self.weights[size] * found);
    }

    fn plus(mut self, other: &Self) -> Self {
        for (sums, more) in self.each.iter_mut().zip(&other.each) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes by the words of the model: every person, every subset, every row.
    fn naive(release: &Perturbed<'_>, p: f64) -> (f64, f64) {
        let (d, rows) = (release.quasi, release.sensitive.len());
        let (mut identity, mut attribute) = (0.0, 0.0);
        for person in 0..rows {
            for subset in 1_u32..1 << d {
                let uses = |j: &usize| subset >> j & 1 == 1;
                let size = subset.count_ones() as i32;
                let weight = p.powi(size) * (1.0 - p).powi(d as i32 - size) / (1.0 - (1.0 - p).powi(d as i32));
                let is_match = |row: &usize| {
                    (0..d).filter(uses).all(|j| release.released[row * d + j] == release.original[person * d + j])
                };
                let matches: Vec<usize> = (0..rows).filter(is_match).collect();
                let right = matches.iter().filter(|&&row| release.sensitive[row] == release.sensitive[person]).count();
                if !matches.is_empty() {
                    identity += weight * f64::from(u8::from(matches.contains(&person))) / matches.len() as f64;
                    attribute += weight * right as f64 / matches.len() as f64;
                }
            }
        }
        (identity / rows as f64, attribute / rows as f64)
    }

    proptest! {
        #[test]
        fn as_by_definition(
            rows in prop::collection::vec((prop::array::uniform4((0_u32..3, 0_u32..3)), 0_u32..3), 1..20), p in 0.05..=1.0,
        ) {
            let of = |which: fn(&(u32, u32)) -> u32| -> Vec<u32> {
                rows.iter().flat_map(|(codes, _)| codes.iter().map(which)).collect()
            };
            let (original, released) = (of(|pair| pair.0), of(|pair| pair.1));
            let sensitive: Vec<u32> = rows.iter().map(|(_, value)| *value).collect();
            let release = Perturbed::try_new(4, &original, &released, &sensitive).unwrap();
            let found = release.disclosure(&[p])[0];
            let (identity, attribute) = naive(&release, p);
            prop_assert!((found.identity - identity).abs() < 1e-9, "{found:?} {identity}");
            prop_assert!((found.attribute - attribute).abs() < 1e-9, "{found:?} {attribute}");
            let people = release.people(p);
            let mean = |which: usize| people.iter().map(|found| found[which]).sum::<f64>() / people.len() as f64;
            prop_assert!((mean(0) - identity).abs() < 1e-9 && (mean(1) - attribute).abs() < 1e-9);
        }
    }

    /// Nothing was changed and everybody is different: whoever uses everything finds everybody. All are alike: nobody is found.
    #[test]
    fn extremes() {
        let (values, nobody, sensitive) = ([0, 1, 2, 3, 4, 5], [9; 6], [0, 0, 1]);
        let found = Perturbed::try_new(2, &values, &values, &sensitive).unwrap().disclosure(&[1.0, 0.0]);
        assert_eq!((found[0].identity, found[0].attribute), (1.0, 1.0));
        assert_eq!((found[1].identity, found[1].attribute), (0.0, 0.0));
        let found = Perturbed::try_new(2, &values, &nobody, &sensitive).unwrap().disclosure(&[0.5]);
        assert_eq!((found[0].identity, found[0].attribute), (0.0, 0.0));
        let alike = Perturbed::try_new(2, &nobody, &nobody, &sensitive).unwrap().disclosure(&[0.5]);
        assert!((alike[0].identity - 1.0 / 3.0).abs() < 1e-12);
        assert!((alike[0].attribute - 5.0 / 9.0).abs() < 1e-12);
        assert!(Perturbed::try_new(13, &[], &[], &[]).is_err());
        assert!(Perturbed::try_new(2, &[], &[], &[]).unwrap().disclosure(&[0.5])[0].identity == 0.0);
    }
}
