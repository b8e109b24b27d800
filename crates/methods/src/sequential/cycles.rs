//! Of two ways to give people rows, the better one for each cycle: from a row to the row that its person has the other way, and on until it closes.

/// People who are given the rows of a release, in one world.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Person of each row.
    pub people: Vec<u32>,
    /// Loss of each row with its person.
    pub losses: Vec<f32>,
}

/// Returns the person of each row: the other way for each smallest set of rows to which both give the same people, if less is lost by that.
pub(super) fn better(one: &Given, other: &Given) -> Vec<u32> {
    let mut row_of_other = vec![0; other.people.len()];
    (0..).zip(&other.people).for_each(|(row, &person)| row_of_other[person as usize] = row);
    let mut people = one.people.clone();
    let mut seen = vec![false; people.len()];
    let mut cycle: Vec<usize> = Vec::new();
    for first in 0..people.len() {
        let (mut row, mut saved) = (first, 0.0);
        cycle.clear();
        while !std::mem::replace(&mut seen[row], true) {
            saved += f64::from(one.losses[row] - other.losses[row]);
            cycle.push(row);
            row = row_of_other[one.people[row] as usize];
        }
        if saved > 0.0 {
            cycle.iter().for_each(|&row| people[row] = other.people[row]);
        }
    }
    people
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Everybody has one row, and no exchange of people loses less. The test compares all ways to choose, where there are few.
        #[test]
        fn of_two_ways_the_best_of_each_cycle(
            (one, other) in (1_usize..12).prop_flat_map(|n| {
                let people = Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle();
                let losses = prop::collection::vec((0_u8..50).prop_map(f32::from), n);
                let way = (people, losses).prop_map(|(people, losses)| Given { people, losses });
                (way.clone(), way)
            }),
        ) {
            let n = one.people.len();
            let mut least = f32::INFINITY;
            for choice in 0..1_usize << n {
                let way = |row: usize| if choice >> row & 1 == 0 { &one } else { &other };
                let mut people: Vec<u32> = (0..n).map(|row| way(row).people[row]).collect();
                people.sort_unstable();
                if people.into_iter().eq(0..n as u32) {
                    least = least.min((0..n).map(|row| way(row).losses[row]).sum());
                }
            }
            let (people_of_one, losses) = (one.people.clone(), one.losses.clone());
            let people = better(&one, &other);
            let loss = |row: usize| {
                let of_one = (people[row] == people_of_one[row]).then_some(losses[row]);
                let of_other = (people[row] == other.people[row]).then_some(other.losses[row]);
                of_one.into_iter().chain(of_other).fold(f32::INFINITY, f32::min)
            };
            prop_assert!((0..n).map(loss).sum::<f32>() <= least);
            let mut sorted = people.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..n as u32));
        }
    }
}
