//! Beliefs about people's values, release after release, of a reader who knows probabilities of changes.
//!
//! The reader knows which group holds whom, and believes of every member, from the releases before, that they had each value of their last group with some
//! probability. By the law of changes this says how probable each value of the group now is for each of them. A group has each value once and no value is
//! two people's, so what is believed afterwards is the share of the ways to give out the values one to one, each weighed by the product of its
//! probabilities: quotients of permanents. Members are taken for independent of each other before: what people of different groups tell of each other is
//! left out, so that this is what such a reader can believe, and not the most that anybody can.

use rustc_hash::FxHashMap;

use super::updates::Updates;

/// Most values of a group whose ways are counted: their number grows with `2^values`.
pub(crate) const MOST_VALUES: usize = 12;

/// Distribution of a value after so many releases.
#[derive(Debug)]
pub struct Changes {
    updates: Updates,
    /// By value and releases: values that are possible, ascending, with their probabilities.
    rows: FxHashMap<(u32, u32), Vec<(u32, f64)>>,
}

impl Changes {
    /// Begins with a law.
    pub fn new(updates: Updates) -> Self {
        Self { updates, rows: FxHashMap::default() }
    }

    /// Computes what is asked for later: what follows these values after so many releases.
    pub fn prepare(&mut self, values: &[u32], releases: u32) {
        for &value in values {
            if self.rows.contains_key(&(value, releases)) {
                continue;
            }
            // The longest way that is known, or none.
            let known = (1..releases).rev().find(|before| self.rows.contains_key(&(value, *before))).unwrap_or(0);
            let mut row = self.rows.get(&(value, known)).cloned().unwrap_or_else(|| vec![(value, 1.0)]);
            for _ in known..releases {
                row = self.step(&row);
            }
            self.rows.insert((value, releases), row);
        }
    }

    /// Returns the bytes held, roughly.
    pub fn size(&self) -> usize {
        self.rows
            .values()
            .map(|row| size_of::<((u32, u32), Vec<(u32, f64)>)>() + row.capacity() * size_of::<(u32, f64)>())
            .sum()
    }

    fn step(&self, row: &[(u32, f64)]) -> Vec<(u32, f64)> {
        let mut next: Vec<(u32, f64)> = row
            .iter()
            .flat_map(|&(value, share)| self.updates.cus(value).map(move |(to, probability)| (to, share * probability)))
            .collect();
        next.sort_unstable_by_key(|&(to, _)| to);
        next.dedup_by(|again, first| {
            let same = again.0 == first.0;
            if same {
                first.1 += again.1;
            }
            same
        });
        next
    }

    fn probability(&self, from: u32, releases: u32, to: u32) -> f64 {
        let row = self.rows.get(&(from, releases)).map_or(&[][..], Vec::as_slice);
        row.binary_search_by_key(&to, |&(value, _)| value).map_or(0.0, |place| row[place].1)
    }

    /// Returns the probability of each of `values` now, from earlier values with such shares. These were a person's so
    /// many releases ago. That number of releases must be [prepared](Self::prepare).
    pub fn weights(&self, before: &[u32], shares: &[f64], releases: u32, values: &[u32]) -> Vec<f64> {
        let of = |&to: &u32| {
            let sum = before.iter().zip(shares).map(|(&from, share)| share * self.probability(from, releases, to));
            sum.sum::<f64>()
        };
        values.iter().map(of).collect()
    }
}

/// Returns the probability of each value for each member of a group, from those before. `None` if there are too
/// many values or members, or there is no way to give them out.
pub(crate) fn posterior(weights: &[Vec<f64>], values: usize) -> Option<Vec<Vec<f64>>> {
    let members = weights.len();
    if values > MOST_VALUES || members > values {
        return None;
    }
    // A factor of all of somebody's weights makes no difference, and products stay in range.
    let scaled: Vec<Vec<f64>> = weights
        .iter()
        .map(|row| {
            let most = row.iter().copied().fold(0.0, f64::max);
            row.iter().map(|weight| if most > 0.0 { weight / most } else { 0.0 }).collect()
        })
        .collect();
    // Sums over the ways in which the first members have just these values: as many members as there are values. Sets come after
    // those that they contain.
    let size = 1_usize << values;
    let mut first = vec![0.0; size];
    first[0] = 1.0;
    let free = |taken: usize| ones(!taken & (size - 1));
    for taken in 0..size {
        let Some(row) = scaled.get(taken.count_ones() as usize).filter(|_| first[taken] > 0.0) else { continue };
        for value in free(taken) {
            first[taken | 1 << value] += first[taken] * row[value];
        }
    }
    let are_all = |taken: usize| taken.count_ones() as usize == members;
    let total: f64 = (0..size).filter(|&taken| are_all(taken)).map(|taken| first[taken]).sum();
    if total <= 0.0 {
        return None;
    }
    // Of all ways for the other members, who leave these values alone: backward.
    let mut rest = vec![1.0; size];
    let mut shares = vec![vec![0.0; values]; members];
    for taken in (0..size).rev() {
        let member = taken.count_ones() as usize;
        let Some(row) = scaled.get(member) else { continue };
        let mut ways = 0.0;
        for value in free(taken) {
            let with = row[value] * rest[taken | 1 << value];
            ways += with;
            shares[member][value] += first[taken] * with / total;
        }
        rest[taken] = ways;
    }
    Some(shares)
}

/// Returns the places of the ones, ascending.
fn ones(mut set: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        place
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::updates::Update;
    use super::*;

    /// Finds all ways to give out values to members from this one on.
    fn ways(weights: &[Vec<f64>], chosen: &mut Vec<usize>, share: f64, found: &mut Vec<(Vec<usize>, f64)>) {
        let Some(row) = weights.get(chosen.len()) else { return found.push((chosen.clone(), share)) };
        for (value, weight) in row.iter().enumerate() {
            if !chosen.contains(&value) {
                chosen.push(value);
                ways(weights, chosen, share * weight, found);
                chosen.pop();
            }
        }
    }

    proptest! {
        #[test]
        fn shares_are_those_of_all_ways(
            weights in (1_usize..6).prop_flat_map(|values| {
                prop::collection::vec(prop::collection::vec(prop_oneof![Just(0.0), 0.001..1.0_f64], values), 1..values + 1)
            }),
        ) {
            let values = weights[0].len();
            let mut all = Vec::new();
            ways(&weights, &mut Vec::new(), 1.0, &mut all);
            let total: f64 = all.iter().map(|(_, share)| share).sum();
            let found = posterior(&weights, values);
            prop_assert_eq!(found.is_some(), total > 0.0);
            for (member, shares) in found.into_iter().flatten().enumerate() {
                for (value, share) in shares.into_iter().enumerate() {
                    let with: f64 = all.iter().filter(|(chosen, _)| chosen[member] == value).map(|(_, share)| share).sum();
                    prop_assert!((with / total - share).abs() < 1e-9);
                }
            }
        }
    }

    /// The example of the documentation: two groups {a1, b1} and {a2, b2}, then somebody of each meets the other, with a1 and b2; 95 % stay.
    #[test]
    fn people_of_two_groups_tell_of_each_other() {
        let rows = [(0, 1), (1, 0), (2, 3), (3, 2)].map(|(from, to)| Update::probable(from, to, 0.05));
        let mut changes = Changes::new(Updates::try_new(4, &rows).unwrap());
        let [first, second] = [[0, 2], [1, 3]];
        [first, second].iter().for_each(|group| changes.prepare(group, 1));
        let even = [0.5, 0.5];
        let weights = [first, second].map(|group| changes.weights(&group, &even, 1, &[0, 3]));
        let found = posterior(&weights, 2).unwrap();
        assert!((found[0][0] - 0.95 * 0.95 / (0.95 * 0.95 + 0.05 * 0.05)).abs() < 1e-12, "{found:?}");
        // People of one kind tell nothing.
        let weights = [first, first].map(|group| changes.weights(&group, &even, 1, &[0, 3]));
        assert_eq!(posterior(&weights, 2).unwrap(), [[0.5, 0.5], [0.5, 0.5]]);
    }

    #[test]
    fn changes_add_up_over_releases() {
        let rows = [Update::probable(0, 1, 0.25), Update::probable(1, 0, 0.5)];
        let mut changes = Changes::new(Updates::try_new(3, &rows).unwrap());
        for releases in [3, 1, 2] {
            changes.prepare(&[0, 2], releases);
        }
        let weights = |changes: &Changes, releases| changes.weights(&[0, 2], &[0.5, 0.5], releases, &[0, 1, 2]);
        assert_eq!(weights(&changes, 1), [0.375, 0.125, 0.5]);
        assert_eq!(weights(&changes, 2), [0.343_75, 0.156_25, 0.5]);
        assert_eq!(weights(&changes, 3), [0.335_937_5, 0.164_062_5, 0.5]);
    }

    #[test]
    fn large_groups_are_left_out() {
        assert!(posterior(&[vec![1.0; 13]], 13).is_none());
        assert!(posterior(&[vec![1.0], vec![1.0]], 1).is_none());
        assert_eq!(
            posterior(&vec![vec![0.5; 12]; 12], 12).unwrap()[11]
                .iter()
                .filter(|share| (**share - 1.0 / 12.0).abs() < 1e-9)
                .count(),
            12
        );
    }
}
