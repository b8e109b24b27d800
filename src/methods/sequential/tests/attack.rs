//! Readers who know this code and all quasi-identifiers.

use super::*;

/// Chance of a reader who knows this code, all quasi-identifiers and both worlds of every person to say which is the true one, on average
/// over all tables of four people with different values, and over draws of worlds for l = 2.
fn advantage(order: Order) -> f64 {
    const DRAWS: u64 = 1500;
    let mut seen: BTreeMap<[Vec<i32>; 2], [usize; 2]> = BTreeMap::new();
    let mut table: Vec<i32> = vec![0, 1, 2, 3];
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for draw in 0..24 * DRAWS {
        rand::seq::SliceRandom::shuffle(table.as_mut_slice(), &mut rng);
        let people = People {
            first: 0,
            quasi: vec![vec![Some(1), Some(2), Some(4), Some(8)]],
            sensitive: table.clone(),
            other: Vec::new(),
        };
        let worlds = run(&worlds_of(2, order), &people, &people.all(), None, false, draw).unwrap();
        let partners = partners(&worlds);
        let fake: Vec<i32> = (0..4).map(|id| table[partners[&id][0] as usize]).collect();
        let mut both = [table.clone(), fake];
        both.sort_unstable();
        let which = usize::from(both[1] == table);
        seen.entry(both).or_default()[which] += 1;
    }
    let right: usize = seen.values().map(|counts| counts[0].max(counts[1])).sum();
    right as f64 / (24 * DRAWS) as f64
}

/// With a fixed start and direction it would be certain. Guesses on few draws each are right a little more often than they should be.
#[test]
fn worlds_are_nearly_equally_likely() {
    let (greedy, random) = (advantage(Order::Greedy), advantage(Order::Random));
    assert!(random < 0.53, "{random}");
    assert!(greedy < 0.60, "{greedy}");
}

/// A reader who knows all quasi-identifiers takes everybody for the narrowest row that covers them. In all worlds somebody's row is as narrow,
/// so that the guess is right in one of `l` worlds, at best.
#[test]
fn the_narrowest_row_is_not_ones_own() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let (mut right, mut all) = (0, 0);
    for seed in 0..24 {
        let column =
            |rng: &mut ChaCha20Rng, values: i32| (0..600).map(|_| rng.random_range(0..values)).collect::<Vec<_>>();
        let quasi = [40, 12, 5].map(|values| column(&mut rng, values).into_iter().map(Some).collect());
        let people = People { first: 0, quasi: quasi.to_vec(), sensitive: column(&mut rng, 12), other: Vec::new() };
        let worlds = run(&worlds_of(4, Order::Greedy), &people, &people.all(), None, false, seed).unwrap();
        let columns = people.all();
        let release = run(&release_of(60, Loss::Lm), &people, &columns, Some(&worlds), false, seed).unwrap();
        let rows = released(&release, &columns);
        let sensitive = release.column_by_name("s").unwrap().as_primitive::<Int32Type>();
        for i in 0..people.len() {
            let covers = |&row: &usize| {
                let boxes = rows.boxes[row * 3..][..3].iter();
                boxes
                    .zip(&people.quasi)
                    .all(|([lo, hi], column)| (*lo..=*hi).contains(&i64::from(column[i].unwrap_or(-1))))
            };
            let width = |&row: &usize| rows.boxes[row * 3..][..3].iter().map(|[lo, hi]| hi - lo).sum::<i64>();
            let guess = (0..people.len()).filter(covers).min_by_key(width).unwrap();
            right += usize::from(sensitive.value(guess) == people.sensitive[i]);
            all += 1;
        }
    }
    let rate = right as f64 / all as f64;
    // Five standard deviations.
    assert!(rate < 0.25 + 5.0 * (0.25 * 0.75 / all as f64).sqrt(), "{rate}");
}
