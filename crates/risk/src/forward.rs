//! The forward filter of a reader who knows the law of changes: from what was believed of people at their last releases to what
//! is believed of them after one more, group by group.
//!
//! What a later release tells of the value that somebody had *then* is not looked at: after every release it is the value of now that counts.

use super::belief::{Changes, posterior};

/// Beliefs about a person when they were published last.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// The values of their group, each once.
    pub values: &'a [u32],
    /// Probability of each of the values.
    pub shares: &'a [f64],
    /// Number of releases since then.
    pub releases: u32,
}

/// Computes the probability of each value of a group for each member person. Before the first release of a person
/// every value is as probable. There can be more values than members: the others are counterfeits', of whom nothing
/// is known either. Where the ways to give out the values are too many to be counted, everybody is looked at alone.
pub fn believed_after(changes: &Changes, values: &[u32], members: &[Option<Before<'_>>]) -> Vec<Vec<f64>> {
    let even = || vec![1.0 / values.len() as f64; values.len()];
    if members.iter().all(Option::is_none) {
        return members.iter().map(|_| even()).collect();
    }
    let weights: Vec<Vec<f64>> = members
        .iter()
        .map(|member| match member {
            Some(before) => changes.weights(before.values, before.shares, before.releases, values),
            None => even(),
        })
        .collect();
    posterior(&weights, values.len()).unwrap_or_else(|| weights.into_iter().map(|row| alone(row, even)).collect())
}

/// Returns the beliefs about a person whose group is not looked at.
fn alone(mut row: Vec<f64>, even: impl Fn() -> Vec<f64>) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    // What is left can be too small for a number.
    if !(sum > 0.0 && sum.is_finite()) {
        return even();
    }
    row.iter_mut().for_each(|weight| *weight /= sum);
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::updates::{Update, Updates};
    use super::*;

    /// Values `0..VALUES`, two and two of a class.
    const VALUES: u32 = 6;

    /// Returns the probability of one value becoming another in so many releases, over all ways.
    fn reached(law: &Updates, from: u32, to: u32, releases: u32) -> f64 {
        match releases {
            0 => f64::from(u8::from(from == to)),
            _ => law.cus(from).map(|(next, share)| share * reached(law, next, to, releases - 1)).sum(),
        }
    }

    /// Returns all ways to give out places to members.
    fn ways(members: usize, places: usize) -> Vec<Vec<usize>> {
        (0..members).fold(vec![Vec::new()], |ways, _| {
            let longer = |way: &Vec<usize>| {
                let free = (0..places).filter(|place| !way.contains(place)).collect::<Vec<_>>();
                free.into_iter().map(|place| [way.as_slice(), &[place]].concat()).collect::<Vec<_>>()
            };
            ways.iter().flat_map(longer).collect()
        })
    }

    /// A group: its people, and its values.
    type Group = (Vec<usize>, Vec<u32>);

    fn groups() -> impl Strategy<Value = Vec<Group>> {
        let people = Just((0..6).collect::<Vec<usize>>()).prop_shuffle();
        let values = prop::collection::vec(Just((0..VALUES).collect::<Vec<u32>>()).prop_shuffle(), 3);
        let sizes = prop::collection::vec((2_usize..4, 1_usize..4), 3);
        (people, values, sizes).prop_map(|(people, values, sizes)| {
            let mut people = people.into_iter();
            let group = |((size, members), values): ((usize, usize), Vec<u32>)| {
                (people.by_ref().take(members.min(size)).collect::<Vec<_>>(), values[..size].to_vec())
            };
            sizes.into_iter().zip(values).map(group).filter(|(members, _)| !members.is_empty()).collect()
        })
    }

    proptest! {
        /// Two or three small releases give the same as going through all ways and changes. People come, are absent and
        /// return, and there are counterfeits.
        #[test]
        fn it_is_what_all_ways_and_changes_say(
            releases in prop::collection::vec(groups(), 2..4),
            change in prop::collection::vec(0.01..0.99_f64, VALUES as usize),
        ) {
            let pairs: Vec<Update> = (0..VALUES).map(|value| Update::probable(value, value ^ 1, change[value as usize])).collect();
            // And every value can become the first one of the next class, so that all can be reached.
            let pairs: Vec<Update> = pairs.into_iter().flat_map(|pair| {
                let half = pair.probability.unwrap() / 2.0;
                [Update::probable(pair.from, pair.to, half), Update::probable(pair.from, (pair.from / 2 * 2 + 2) % VALUES, half)]
            }).collect();
            let law = Updates::try_new(VALUES as usize, &pairs).unwrap();
            let mut changes = Changes::new(law.clone());
            // Of everybody: the release, the values and the shares; as found, and as enumerated.
            let mut found: BTreeMap<usize, (usize, Vec<u32>, Vec<f64>)> = BTreeMap::new();
            let mut enumerated = found.clone();
            for (number, groups) in releases.iter().enumerate() {
                let (before, said) = (found.clone(), enumerated.clone());
                for (members, values) in groups {
                    members.iter().filter_map(|person| before.get(person)).for_each(|(last, values, _)| {
                        changes.prepare(values, (number - last) as u32);
                    });
                    let believed: Vec<_> = members.iter().map(|person| before.get(person).map(|(last, values, shares)| {
                        Before { values, shares, releases: (number - last) as u32 }
                    })).collect();
                    let after = believed_after(&changes, values, &believed);
                    // One by one: who has which value, and which one each of them had before.
                    let mut weight_of = vec![vec![0.0; values.len()]; members.len()];
                    for way in ways(members.len(), values.len()) {
                        let mut weight = 1.0;
                        for (person, &place) in members.iter().zip(&way) {
                            weight *= said.get(person).map_or(1.0, |(last, before, shares)| {
                                let from = before.iter().zip(shares);
                                from.map(|(&from, share)| share * reached(&law, from, values[place], (number - last) as u32)).sum()
                            });
                        }
                        for (member, &place) in way.iter().enumerate() {
                            weight_of[member][place] += weight;
                        }
                    }
                    for (member, &person) in members.iter().enumerate() {
                        let total: f64 = weight_of[member].iter().sum();
                        // A value that nobody can have is in no group that a method makes.
                        prop_assume!(total > 0.0);
                        let shares: Vec<f64> = weight_of[member].iter().map(|weight| weight / total).collect();
                        prop_assert!(shares.iter().zip(&after[member]).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?} {after:?}");
                        enumerated.insert(person, (number, values.clone(), shares));
                        found.insert(person, (number, values.clone(), after[member].clone()));
                    }
                }
            }
        }
    }

    #[test]
    fn new_people_have_all_values_alike_and_large_groups_are_looked_at_one_by_one() {
        let rows = [Update::probable(0, 1, 0.25), Update::probable(1, 0, 0.25)];
        let mut changes = Changes::new(Updates::try_new(14, &rows).unwrap());
        let values: Vec<u32> = (1..14).collect();
        assert_eq!(believed_after(&changes, &values, &[None]), [vec![1.0 / 13.0; 13]]);
        changes.prepare(&[0, 2], 1);
        let before = Before { values: &[0, 2], shares: &[0.5, 0.5], releases: 1 };
        // 0 has become 1, with a quarter, or 2 has stayed.
        let after = believed_after(&changes, &values, &[Some(before), None]);
        assert!((after[0][0] - 0.2).abs() < 1e-12 && (after[0][1] - 0.8).abs() < 1e-12, "{after:?}");
        assert!(after[1].iter().all(|share| (share - 1.0 / 13.0).abs() < 1e-12), "{after:?}");
        // Who cannot have any of the values by the law is one who could have all of them.
        let nobody = believed_after(&changes, &values[3..], &[Some(before)]);
        assert!(nobody[0].iter().all(|share| (share - 0.1).abs() < 1e-12), "{nobody:?}");
    }
}
