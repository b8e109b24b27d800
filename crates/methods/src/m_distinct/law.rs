//! The law of changes: how probable each value is to follow another one after so many releases.
//!
//! Counterfeits go on by this law, so it must be the one that is drawn from: a law has whole numbers for weights, and one number is drawn below their sum.
//! Weights are parts of [`WHOLE`], in which probabilities of five decimals, and of many fractions, are exact; others are off by less than
//! one part in 10^14.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result, thousands};
use crate::lots::Lots;
use crate::microdata::Updates;

/// Sum of a law's weights, as two factors that can be drawn below. They are 2^7 3^2 5^5 7 11 13, and 2^16.
const FACTORS: [u64; 2] = [3_603_600_000, 1 << 16];
const WHOLE: u64 = FACTORS[0] * FACTORS[1];

/// Distribution of values: ascending values, and for each the sum of the weights up to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Law {
    values: Box<[u32]>,
    sums: Box<[u64]>,
}

impl Law {
    /// Makes a law of probabilities that sum to 1; the largest takes what rounding leaves.
    fn new(row: &[(u32, f64)]) -> Result<Self> {
        let wrong = || Error::internal("probabilities that do not sum to 1");
        let mut weights: Vec<u64> =
            row.iter().map(|&(_, probability)| ((probability * WHOLE as f64).round() as u64).max(1)).collect();
        let total: u64 = weights.iter().sum();
        let largest = weights.iter_mut().max().ok_or_else(wrong)?;
        *largest = (*largest + WHOLE).checked_sub(total).filter(|weight| *weight > 0).ok_or_else(wrong)?;
        let common = weights.iter().fold(WHOLE, |common, &weight| divisor(common, weight));
        let mut sum = 0;
        let sums = weights.iter().map(|weight| {
            sum += weight / common;
            sum
        });
        Ok(Self { sums: sums.collect(), values: row.iter().map(|&(value, _)| value).collect() })
    }

    /// Returns the values that are possible, ascending.
    #[cfg(test)]
    fn values(&self) -> &[u32] {
        &self.values
    }

    pub(super) fn has(&self, value: u32) -> bool {
        self.values.binary_search(&value).is_ok()
    }

    pub(super) fn draw(&self, lots: &mut impl Lots) -> u32 {
        let whole = self.sums.last().copied().unwrap_or(1);
        let first = divisor(whole, FACTORS[0]);
        let rest = whole / first;
        let mut below = |n: u64| if n > 1 { lots.below(n as usize) as u64 } else { 0 };
        let drawn = below(first) * rest + below(rest);
        let place = self.sums.partition_point(|&sum| sum <= drawn);
        self.values.get(place).copied().unwrap_or_default()
    }

    /// Returns the weight of each value, and of all together.
    #[cfg(test)]
    pub(super) fn weights(&self) -> (Vec<(u32, u64)>, u64) {
        let before = std::iter::once(0).chain(self.sums.iter().copied());
        let weights =
            self.values.iter().zip(self.sums.iter().zip(before)).map(|(&value, (sum, before))| (value, sum - before));
        (weights.collect(), self.sums.last().copied().unwrap_or(0))
    }
}

/// Values that are possible, ascending, with their probabilities.
type Row = Vec<(u32, f64)>;

/// All laws that were asked for. Equal ones have one number, whatever they follow from.
#[derive(Debug)]
pub(super) struct Laws {
    /// Distribution that follows each value at the next release.
    next: Vec<Row>,
    /// Distribution that follows a value after so many releases; the latest that was asked for.
    latest: FxHashMap<u32, (u32, Row)>,
    /// Numbers by value and releases.
    asked: FxHashMap<(u32, u32), u32>,
    numbers: FxHashMap<Law, u32>,
    list: Vec<Law>,
    /// For sums of rows.
    sums: Vec<f64>,
}

impl Laws {
    /// Reads the laws of a relation over so many values. A value without rows stays as it is; so does one for the rest of its probabilities.
    /// Fails when there are values that can change and nobody says how probable that is.
    pub(super) fn new(updates: Option<&Updates>, values: usize) -> Result<Self> {
        let mut next: Vec<Row> = vec![Row::new(); values];
        let mut unsaid = 0;
        let pairs = updates.map_or(&[][..], |updates| &updates.pairs);
        for (place, &(from, to)) in pairs.iter().enumerate() {
            let said = updates.and_then(|updates| updates.probabilities.get(place).copied().flatten());
            match said {
                Some(probability) => next[from as usize].push((to, probability)),
                None => unsaid += usize::from(from != to),
            }
        }
        if unsaid > 0 {
            return Err(Error::refused(format!(
                "`updates` has {} rows of changes without a probability; the law of changes must be known, so say how \
                 probable each of them is",
                thousands(unsaid)
            )));
        }
        for (value, row) in (0..).zip(&mut next) {
            let stays = row.binary_search_by_key(&value, |&(to, _)| to);
            // Whoever reads `updates` has seen that sums are right.
            if let Err(place) = stays {
                let rest = 1.0 - row.iter().map(|&(_, probability)| probability).sum::<f64>();
                row.insert(place, (value, rest));
            }
        }
        Ok(Self {
            sums: vec![0.0; values],
            next,
            latest: FxHashMap::default(),
            asked: FxHashMap::default(),
            numbers: FxHashMap::default(),
            list: Vec::new(),
        })
    }

    /// Returns the number of the law of what follows a value after so many releases; after none it is the value itself. Cheapest if asked for in order of
    /// these.
    /// Fails when probabilities do not sum to 1, which reading them has refused.
    pub(super) fn after(&mut self, value: u32, releases: u32) -> Result<u32> {
        if let Some(&number) = self.asked.get(&(value, releases)) {
            return Ok(number);
        }
        if releases == 0 {
            let law = Law::new(&[(value, 1.0)])?;
            return Ok(self.numbered(law, (value, 0)));
        }
        let begun = self.latest.remove(&value).filter(|(before, _)| *before <= releases);
        let (mut before, mut row) = begun.unwrap_or_else(|| (1, self.next[value as usize].clone()));
        while before < releases {
            row = self.step(&row);
            before += 1;
        }
        let law = Law::new(&row)?;
        self.latest.insert(value, (releases, row));
        Ok(self.numbered(law, (value, releases)))
    }

    /// Returns the number of a law, which was asked for.
    fn numbered(&mut self, law: Law, asked: (u32, u32)) -> u32 {
        let new = self.list.len() as u32;
        let number = *self.numbers.entry(law).or_insert_with_key(|law| {
            self.list.push(law.clone());
            new
        });
        self.asked.insert(asked, number);
        number
    }

    /// Returns the number of a law that was asked for before.
    pub(super) fn asked(&self, value: u32, releases: u32) -> Option<u32> {
        self.asked.get(&(value, releases)).copied()
    }

    pub(super) fn bytes(&self) -> usize {
        let of_rows = |rows: usize| rows * size_of::<(u32, f64)>();
        let next: usize = self.next.iter().map(|row| of_rows(row.len()) + size_of::<Row>()).sum();
        let latest: usize = self.latest.values().map(|(_, row)| of_rows(row.len() + 2)).sum();
        let laws: usize = self.list.iter().map(|law| 2 * of_rows(law.values.len() + 2)).sum();
        next + latest + laws + of_rows(self.asked.len() + self.sums.len())
    }

    pub(super) fn law(&self, number: u32) -> &Law {
        &self.list[number as usize]
    }

    /// Returns the same a release later.
    fn step(&mut self, row: &[(u32, f64)]) -> Row {
        let mut values = Vec::new();
        for &(value, share) in row {
            for &(to, probability) in &self.next[value as usize] {
                let sum = &mut self.sums[to as usize];
                if *sum == 0.0 {
                    values.push(to);
                }
                *sum += share * probability;
            }
        }
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(|value| (value, std::mem::take(&mut self.sums[value as usize]))).collect()
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::choices::{Every, Share};

    /// Makes laws of rows: value, its successor, probability.
    fn laws(rows: &[(u32, u32, f64)], values: usize) -> Laws {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| (row.0, row.1));
        let updates = Updates {
            pairs: rows.iter().map(|row| (row.0, row.1)).collect(),
            probabilities: rows.iter().map(|row| Some(row.2)).collect(),
        };
        Laws::new(Some(&updates), values).unwrap()
    }

    fn shares(laws: &mut Laws, value: u32, releases: u32) -> Vec<(u32, Share)> {
        let number = laws.after(value, releases).unwrap();
        let (weights, whole) = laws.law(number).weights();
        weights.into_iter().map(|(value, weight)| (value, Share::new(weight.into(), whole.into()))).collect()
    }

    #[test]
    fn laws_are_powers() {
        let mut laws = laws(&[(0, 1, 0.25), (1, 0, 0.5), (2, 1, 0.1), (2, 2, 0.9)], 4);
        let share = Share::new;
        assert_eq!(shares(&mut laws, 0, 1), [(0, share(3, 4)), (1, share(1, 4))]);
        assert_eq!(shares(&mut laws, 0, 2), [(0, share(11, 16)), (1, share(5, 16))]);
        assert_eq!(shares(&mut laws, 0, 3), [(0, share(43, 64)), (1, share(21, 64))]);
        // Again, and from the beginning.
        assert_eq!(shares(&mut laws, 0, 2), [(0, share(11, 16)), (1, share(5, 16))]);
        assert_eq!(shares(&mut laws, 2, 1), [(1, share(1, 10)), (2, share(9, 10))]);
        assert_eq!(shares(&mut laws, 2, 2), [(0, share(1, 20)), (1, share(7, 50)), (2, share(81, 100))]);
        assert_eq!(shares(&mut laws, 3, 7), [(3, share(1, 1))]);
        // In the same period nothing changes, and later on everything goes on from there.
        assert_eq!(shares(&mut laws, 1, 0), [(1, share(1, 1))]);
        assert_eq!(shares(&mut laws, 1, 1), [(0, share(1, 2)), (1, share(1, 2))]);
    }

    /// Values with equal successors are one kind, and so are constant ones. A constant one does not depend on how long ago it was.
    #[test]
    fn equal_laws_have_one_number() {
        let pairs = (0..10).flat_map(|a| (0..10).filter(move |b| *b != a).map(move |b| (a, b, 0.1)));
        let mut laws = laws(&pairs.collect::<Vec<_>>(), 11);
        let numbers =
            [(0, 1), (3, 1), (9, 1), (0, 2), (7, 5)].map(|(value, releases)| laws.after(value, releases).unwrap());
        assert_eq!(numbers, [0; 5]);
        assert_eq!(laws.after(10, 1).unwrap(), 1);
        assert_eq!(laws.law(0).values(), (0..10).collect::<Vec<u32>>());
        assert!(laws.law(0).has(4) && !laws.law(0).has(10));
    }

    #[test]
    fn draws_follow_the_law() {
        let mut laws = laws(&[(0, 1, 0.25), (0, 2, 1.0 / 3.0)], 3);
        let number = laws.after(0, 1).unwrap();
        let law = laws.law(number).clone();
        let drawn = Every::new(0).law(|mut every| law.draw(&mut every));
        let share = Share::new;
        assert_eq!(drawn, BTreeMap::from([(0, share(5, 12)), (1, share(1, 4)), (2, share(1, 3))]));
    }

    #[test]
    fn changes_without_probabilities_are_refused() {
        let updates = Updates { pairs: vec![(0, 0), (0, 1), (2, 2)], probabilities: vec![None, None, Some(1.0)] };
        let text = Laws::new(Some(&updates), 3).unwrap_err().to_string();
        assert!(text.contains("1 rows of changes without a probability"), "{text}");
        let stays = Updates { pairs: vec![(0, 0)], probabilities: Vec::new() };
        assert!(Laws::new(Some(&stays), 3).is_ok());
        assert!(Laws::new(None, 3).is_ok());
    }

    /// Any probabilities, however small.
    #[test]
    fn every_possible_value_has_a_weight() {
        let mut laws = laws(&[(0, 1, 1e-300), (0, 2, 0.123_456_789_012_345)], 3);
        for releases in [1, 2, 50] {
            let number = laws.after(0, releases).unwrap();
            let (weights, whole) = laws.law(number).weights();
            assert_eq!((weights.len(), weights.iter().map(|(_, weight)| weight).sum::<u64>()), (3, whole));
            assert!(whole <= WHOLE && WHOLE.is_multiple_of(whole));
        }
    }
}
