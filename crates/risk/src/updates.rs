//! The update relation: which sensitive values can follow which from one release to the next.

use crate::error::{Error, Result, thousands};

/// Row of an update relation, over dense codes of sensitive values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// The value before.
    pub from: u32,
    /// The value after.
    pub to: u32,
    /// Probability of the change, above 0 and at most 1; `None` if nobody says.
    pub probability: Option<f64>,
}

impl Update {
    /// Returns an update of which is only known that it can happen.
    pub fn possible(from: u32, to: u32) -> Self {
        Self { from, to, probability: None }
    }

    /// Returns an update with a known probability.
    pub fn probable(from: u32, to: u32, probability: f64) -> Self {
        Self { from, to, probability: Some(probability) }
    }
}

/// Knowledge of a reader about updates. The *candidate update set* (CUS) of a value has the values it can become
/// until the next release, and how probable each is.
///
/// Li and Zhou 2008, Section II. It need not be transitive here: over releases that a record missed, steps are composed.
#[derive(Debug, Clone)]
pub struct Updates {
    /// First entry of each value in `next`, and one more: the number of entries. Empty for the identity.
    starts: Vec<u32>,
    /// Values that can follow, ascending for each value, with their probabilities.
    next: Vec<(u32, f64)>,
    /// Number of values.
    values: usize,
    /// True if every value can become every other, all equally probable; then the lists are empty.
    any: bool,
}

impl Updates {
    /// Makes the relation in which no value ever changes.
    pub fn identity(values: usize) -> Self {
        Self { starts: Vec::new(), next: Vec::new(), values, any: false }
    }

    /// Makes the relation in which every value can become every other, all equally probable.
    pub fn any(values: usize) -> Self {
        Self { any: true, ..Self::identity(values) }
    }

    /// Returns a relation over the codes `0..values`. A value can always stay as it is:
    ///
    /// - without probabilities, all values of a CUS, itself included, are equally probable;
    /// - with probabilities that sum to less than 1, the rest is for staying, unless staying has a row of its own;
    /// - with probabilities that sum to 1 and no row for staying, the value is certain to change.
    ///
    /// # Errors
    /// A code that is none, a probability outside (0, 1], probabilities of one value that sum to more than 1 (or, with a row for
    /// staying, to something else than 1), a value of which some rows have a probability and some have none, a pair with two
    /// different probabilities.
    pub fn try_new(values: usize, rows: &[Update]) -> Result<Self> {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| (row.from, row.to));
        rows.dedup();
        let outside = |row: &Update| row.from.max(row.to) as usize >= values;
        if rows.iter().any(outside) {
            return Err(Error::internal("an update of a value without a code"));
        }
        let mut wrong = Wrong::default();
        let (mut starts, mut next) = (vec![0], Vec::with_capacity(rows.len() + values));
        let mut rest = rows.as_slice();
        for value in 0..values as u32 {
            let (own, others) = rest.split_at(rest.partition_point(|row| row.from == value));
            rest = others;
            wrong.repeated += own.windows(2).filter(|pair| pair[0].to == pair[1].to).count();
            let stays = own.iter().any(|row| row.to == value);
            let given: Vec<f64> = own.iter().filter_map(|row| row.probability).collect();
            if given.is_empty() {
                let size = own.len() + usize::from(!stays);
                let mut cus: Vec<u32> = own.iter().map(|row| row.to).collect();
                if !stays {
                    cus.insert(cus.partition_point(|&to| to < value), value);
                }
                next.extend(cus.into_iter().map(|to| (to, 1.0 / size as f64)));
            } else {
                wrong.mixed += usize::from(given.len() < own.len());
                wrong.outside += given.iter().filter(|p| !(**p > 0.0 && **p <= 1.0)).count();
                let sum: f64 = given.iter().sum();
                let left = 1.0 - sum;
                wrong.sums += usize::from(left < -SLACK || (stays && left > SLACK));
                let mut cus: Vec<(u32, f64)> = own.iter().filter_map(|row| Some((row.to, row.probability?))).collect();
                if !stays && left > SLACK {
                    cus.insert(cus.partition_point(|&(to, _)| to < value), (value, left));
                }
                next.extend(cus);
            }
            starts.push(next.len() as u32);
        }
        wrong.refuse()?;
        Ok(Self { starts, next, values, any: false })
    }

    /// Returns true if no value ever changes.
    pub fn is_identity(&self) -> bool {
        (self.starts.is_empty() && !self.is_any())
            || (!self.any && self.next.len() == self.values && (0..self.values as u32).all(|v| self.follows(v, v)))
    }

    /// Returns true if every value can become every other, all equally probable.
    pub fn is_any(&self) -> bool {
        self.any && self.values > 1
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Returns the values that a value can become, ascending, with probabilities that sum to 1.
    pub fn cus(&self, value: u32) -> impl ExactSizeIterator<Item = (u32, f64)> + Clone + '_ {
        let own = [(value, 1.0)];
        let range = self.starts.get(value as usize..value as usize + 2);
        let whole = range.map(|range| &self.next[range[0] as usize..range[1] as usize]);
        let length = if self.is_any() { self.values } else { whole.map_or(1, <[_]>::len) };
        let share = 1.0 / length as f64;
        (0..length).map(move |place| match whole {
            _ if self.is_any() => (place as u32, share),
            Some(whole) => whole[place],
            None => own[0],
        })
    }

    /// Returns true if one value can follow another.
    pub fn follows(&self, from: u32, to: u32) -> bool {
        self.is_any() || self.cus(from).any(|(next, _)| next == to)
    }

    /// Returns the least transitive relation around this one. Nothing is known of its probabilities.
    ///
    /// # Errors
    /// As for [`try_new`](Self::try_new).
    pub fn closed(&self) -> Result<Self> {
        if self.is_any() {
            return Ok(self.clone());
        }
        let mut rows = Vec::new();
        let mut seen = vec![u32::MAX; self.values];
        for from in 0..self.values as u32 {
            let mut waiting = vec![from];
            while let Some(value) = waiting.pop() {
                for (to, _) in self.cus(value) {
                    if seen[to as usize] != from {
                        seen[to as usize] = from;
                        waiting.push(to);
                        rows.push(Update::possible(from, to));
                    }
                }
            }
        }
        Self::try_new(self.values, &rows)
    }

    /// Returns the pairs that break transitivity: `b` is in the CUS of `a`, its CUS is not. Pairs are `(a, b)`, and the CUS of `b` is no part of that of `a`.
    pub fn intransitive(&self) -> Vec<(u32, u32)> {
        if self.is_any() {
            return Vec::new();
        }
        let breaks = |a: u32, b: u32| self.cus(b).any(|(c, _)| !self.follows(a, c));
        let pairs = (0..self.values as u32).flat_map(|a| self.cus(a).map(move |(b, _)| (a, b)));
        pairs.filter(|&(a, b)| breaks(a, b)).collect()
    }
}

/// Tolerance of sums of probabilities.
const SLACK: f64 = 1e-9;

/// Numbers of wrong rows; messages name no values.
#[derive(Default)]
struct Wrong {
    repeated: usize,
    mixed: usize,
    outside: usize,
    sums: usize,
}

impl Wrong {
    fn refuse(&self) -> Result<()> {
        let found = [
            (self.outside, "probabilities are not above 0 and at most 1"),
            (self.repeated, "pairs have several probabilities"),
            (self.mixed, "values have probabilities for some of their updates and none for others"),
            (self.sums, "values have probabilities that do not sum to 1 (the row for staying may be left out)"),
        ];
        match found.into_iter().find(|(count, _)| *count > 0) {
            Some((count, what)) => Err(Error::refused(format!("updates: {} {what}", thousands(count)))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cus(updates: &Updates, value: u32) -> Vec<(u32, f64)> {
        updates.cus(value).collect()
    }

    #[test]
    fn values_can_stay() {
        let updates = Updates::try_new(3, &[Update::possible(0, 2), Update::probable(1, 0, 0.25)]).unwrap();
        assert_eq!(cus(&updates, 0), [(0, 0.5), (2, 0.5)]);
        assert_eq!(cus(&updates, 1), [(0, 0.25), (1, 0.75)]);
        assert_eq!(cus(&updates, 2), [(2, 1.0)]);
        assert!(!updates.is_identity());
        // 1 becomes 0 and 0 becomes 2, but 1 does not become 2.
        assert_eq!(updates.intransitive(), [(1, 0)]);
    }

    #[test]
    fn closing_adds_what_follows_over_others() {
        let rows = [Update::possible(0, 1), Update::possible(1, 2), Update::possible(2, 0), Update::possible(3, 0)];
        let closed = Updates::try_new(5, &rows).unwrap().closed().unwrap();
        assert!(closed.intransitive().is_empty());
        let reach = |value: u32| closed.cus(value).map(|(to, _)| to).collect::<Vec<_>>();
        assert_eq!([reach(0), reach(1), reach(3), reach(4)], [vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2, 3], vec![4]]);
        assert!(Updates::identity(3).closed().unwrap().is_identity());
    }

    #[test]
    fn the_identity_is_one_however_it_is_written() {
        let written = Updates::try_new(2, &[Update::possible(1, 1)]).unwrap();
        for identity in [Updates::identity(2), written, Updates::try_new(2, &[]).unwrap()] {
            assert!(identity.is_identity());
            assert_eq!(cus(&identity, 1), [(1, 1.0)]);
            assert!(identity.follows(0, 0) && !identity.follows(0, 1));
        }
    }

    #[test]
    fn any_update_is_the_relation_with_all_pairs() {
        let pairs = (0..4).flat_map(|from| (0..4).map(move |to| Update::possible(from, to)));
        let (any, listed) = (Updates::any(4), Updates::try_new(4, &pairs.collect::<Vec<_>>()).unwrap());
        for value in 0..4 {
            assert_eq!(cus(&any, value), cus(&listed, value));
        }
        assert!(any.follows(3, 0) && !any.is_identity() && any.intransitive().is_empty());
        assert!(any.closed().unwrap().is_any());
        assert!(Updates::any(1).is_identity() && Updates::any(0).is_identity());
    }

    #[test]
    fn impossible_probabilities_are_refused_without_values() {
        let refused = |rows: &[Update]| Updates::try_new(2, rows).unwrap_err().to_string();
        let cases = [
            (refused(&[Update::probable(0, 1, 0.0)]), "not above 0"),
            (refused(&[Update::probable(0, 1, f64::NAN)]), "not above 0"),
            (refused(&[Update::probable(0, 1, 0.5), Update::probable(0, 1, 0.25)]), "several probabilities"),
            (refused(&[Update::probable(0, 1, 0.5), Update::possible(0, 0)]), "for some of their updates"),
            (refused(&[Update::probable(0, 1, 0.75), Update::probable(0, 0, 0.75)]), "do not sum to 1"),
            (refused(&[Update::probable(0, 1, 0.25), Update::probable(0, 0, 0.25)]), "do not sum to 1"),
        ];
        for (message, expected) in cases {
            assert!(message.contains(expected), "{message}");
        }
    }
}
