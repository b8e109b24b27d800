//! Readers who know this code and all quasi-identifiers.

use std::collections::HashMap;

use rand::seq::SliceRandom;

use super::*;

/// Feature of a table by everybody's possible values, whatever people and values are called.
type Feature = (Vec<(usize, usize)>, Vec<Vec<usize>>);

/// Computes the feature; `may[p]` has a bit for each value that person `p` may have, `others` are tables to compare with.
fn feature(table: &[i32], may: &[u32], others: &[&Vec<i32>]) -> Feature {
    let of_person = |p: usize| {
        let theirs = || (0..table.len()).filter(move |&q| may[p] >> table[q] & 1 == 1);
        let mutual = theirs().filter(|&q| may[q] >> table[p] & 1 == 1).count();
        (mutual, theirs().map(|q| (may[p] & may[q]).count_ones() as usize).sum())
    };
    let mut of_people: Vec<(usize, usize)> = (0..table.len()).map(of_person).collect();
    of_people.sort_unstable();
    let exchanged = |other: &&Vec<i32>| {
        let mut pairs: BTreeMap<(i32, i32), usize> = BTreeMap::new();
        table.iter().zip(*other).for_each(|(&a, &b)| *pairs.entry((a, b)).or_default() += 1);
        let mut counts: Vec<usize> = pairs.into_values().collect();
        counts.sort_unstable();
        counts
    };
    let mut of_others: Vec<Vec<usize>> = others.iter().map(exchanged).collect();
    of_others.sort_unstable();
    (of_people, of_others)
}

/// Numbers of tables with a feature that were true, and that could have been.
#[derive(Default)]
struct Learned(HashMap<Feature, [usize; 2]>);

impl Learned {
    fn add(&mut self, feature: Feature, is_true: bool) {
        let counts = self.0.entry(feature).or_default();
        counts[0] += usize::from(is_true);
        counts[1] += 1;
    }

    fn chance(&self, feature: &Feature) -> f64 {
        self.0.get(feature).map_or(0.0, |counts| counts[0] as f64 / counts[1] as f64)
    }
}

/// Checks that a reader does no better than guessing: five standard deviations.
fn assert_no_better_than(rate: f64, l: usize, tests: usize, what: &str) {
    let chance = 1.0 / l as f64;
    assert!(rate < chance + 5.0 * (chance * (1.0 - chance) / tests as f64).sqrt(), "l = {l}, {what}: {rate}");
}

/// Returns how often a reader is right who is shown all `l` worlds. The reader has learned from other draws what the true one looks like.
fn advantage(places: &[i32], values: &[i32], l: usize, draws: usize) -> f64 {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut table = values.to_vec();
    let mut shown = || {
        table.shuffle(&mut rng);
        let people = People {
            first: 0,
            quasi: vec![places.iter().copied().map(Some).collect()],
            sensitive: table.clone(),
            other: Vec::new(),
        };
        let made = partners(&run(&worlds_of(l), &people, &people.all(), None, false, rng.random()).unwrap());
        let mut worlds: Vec<Vec<i32>> =
            (0..l - 1).map(|i| made.values().map(|partners| table[partners[i] as usize]).collect()).collect();
        worlds.push(table.clone());
        worlds.sort_unstable();
        let may: Vec<u32> =
            (0..table.len()).map(|p| worlds.iter().fold(0, |values, world| values | 1 << world[p])).collect();
        let features: Vec<(bool, Feature)> = worlds
            .iter()
            .map(|world| {
                let others: Vec<&Vec<i32>> = worlds.iter().filter(|other| *other != world).collect();
                (*world == table, feature(world, &may, &others))
            })
            .collect();
        features
    };
    let mut learned = Learned::default();
    for _ in 0..draws {
        shown().into_iter().for_each(|(is_true, feature)| learned.add(feature, is_true));
    }
    let is_right = |features: Vec<(bool, Feature)>| {
        features
            .into_iter()
            .max_by(|a, b| learned.chance(&a.1).total_cmp(&learned.chance(&b.1)))
            .is_some_and(|best| best.0)
    };
    (0..draws).filter(|_| is_right(shown())).count() as f64 / draws as f64
}

/// Also if values repeat, and where people lie so that they can be cut apart. (Exactly: `mondrian::enumeration`.)
#[test]
fn worlds_are_equally_likely() {
    const DRAWS: usize = 600;
    for l in [2, 3, 4, 5] {
        let most = l as i32;
        let different: Vec<i32> = (0..most + 2).collect();
        let repeated: Vec<i32> = (0..most).flat_map(|value| [value, value]).collect();
        let one_twice: Vec<i32> = (0..2 * most).map(|value| value.max(1)).collect();
        let mut rng = ChaCha20Rng::seed_from_u64(l as u64);
        let random = loop {
            let values: Vec<i32> = (0..2 * most + 1).map(|_| rng.random_range(0..most + 1)).collect();
            let people = People { sensitive: values.clone(), ..People::default() };
            if diversity(&people) >= l {
                break values;
            }
        };
        for values in [different, repeated, one_twice, random] {
            let n = values.len();
            let apart: Vec<i32> = (0..n).map(|i| if i < l { 0 } else { i as i32 }).collect();
            for places in [vec![1; n], apart] {
                let rate = advantage(&places, &values, l, DRAWS);
                assert_no_better_than(rate, l, DRAWS, &format!("{values:?} at {places:?}"));
            }
        }
    }
}

/// Lists all ways to give everybody a value that they may have, and another one.
fn tables(may: &[u32], so_far: &mut Vec<i32>, found: &mut Vec<Vec<i32>>) {
    let Some(next) = may.get(so_far.len()) else { return found.push(so_far.clone()) };
    for value in 0..may.len() as i32 {
        if next >> value & 1 == 1 && !so_far.contains(&value) {
            so_far.push(value);
            tables(may, so_far, found);
            so_far.pop();
        }
    }
}

/// Returns how often a reader names the value of the first of `l + 2` people. All have different values. The reader sees in a release which people
/// every row covers (everybody has a quasi-identifier of their own), and has learned from other releases which of the possible tables are true.
fn seen_in_rows(l: usize, draws: usize, release: impl Fn(&People, u64) -> RecordBatch) -> f64 {
    let n = l + 2;
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut shown = || {
        let mut table: Vec<i32> = (0..n as i32).collect();
        table.shuffle(&mut rng);
        let people = People {
            first: 0,
            quasi: (0..n).map(|j| (0..n).map(|i| Some(i32::from(i == j))).collect()).collect(),
            sensitive: table.clone(),
            other: Vec::new(),
        };
        let columns = people.all();
        let rows = released(&release(&people, rng.random()), &columns);
        let mut may = vec![0_u32; n];
        for (row, &value) in rows.values.iter().enumerate() {
            for (person, may) in may.iter_mut().enumerate() {
                let covers = |(j, [lo, hi]): (usize, &[i64; 2])| (*lo..=*hi).contains(&i64::from(j == person));
                if rows.boxes[row * n..][..n].iter().enumerate().all(covers) {
                    *may |= 1 << (value - 1);
                }
            }
        }
        assert!(may.iter().all(|values| values.count_ones() as usize == l));
        let mut possible = Vec::new();
        tables(&may, &mut Vec::new(), &mut possible);
        let with_feature = |possible: Vec<i32>| (feature(&possible, &may, &[]), possible);
        (table, possible.into_iter().map(with_feature).collect::<Vec<_>>())
    };
    let mut learned = Learned::default();
    for _ in 0..draws {
        let (truth, possible) = shown();
        possible.into_iter().for_each(|(feature, table)| learned.add(feature, table == truth));
    }
    let mut is_right = || {
        let (truth, possible) = shown();
        let mut chances: BTreeMap<i32, f64> = BTreeMap::new();
        possible.iter().for_each(|(feature, table)| *chances.entry(table[0]).or_default() += learned.chance(feature));
        let guess = chances.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        guess.is_some_and(|(value, _)| value == truth[0])
    };
    (0..draws).filter(|_| is_right()).count() as f64 / draws as f64
}

/// A reader is right for one of two if the true world ends a window.
#[test]
fn rows_do_not_tell_the_true_world() {
    const DRAWS: usize = 400;
    for l in [3, 4, 5] {
        let sequential = seen_in_rows(l, DRAWS, |people, seed| {
            let worlds = run(&worlds_of(l), people, &people.all(), None, false, seed).unwrap();
            run(&release_of(100, Loss::Lm), people, &people.all(), Some(&worlds), false, seed ^ 1).unwrap()
        });
        assert_no_better_than(sequential, l, DRAWS, "sequential");
        let method = AnyMethod::NonSequential(NonSequential { l, cuts: Cuts::Tight });
        let projected =
            seen_in_rows(l, DRAWS, |people, seed| run(&method, people, &people.all(), None, false, seed).unwrap());
        assert_no_better_than(projected, l, DRAWS, "non-sequential");
    }
}

/// The reader of this test is a good one: of rows that cover windows of a cycle, which begin or end with their own person, one of two is right.
#[test]
fn windows_would_tell_the_true_world() {
    const DRAWS: usize = 400;
    let release = |people: &People, seed: u64| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let n = people.len();
        let mut cycle: Vec<usize> = (0..n).collect();
        cycle.shuffle(&mut rng);
        let mut batches = Vec::new();
        for place in 0..n {
            let covered: Vec<usize> = (0..3).map(|back| cycle[(place + n - back) % n]).collect();
            let interval = |j: usize| {
                let ends = [i32::from(covered == [j]), i32::from(covered.contains(&j))];
                let [lo, hi] = ends.map(|end| Arc::new(Int32Array::from(vec![end])) as ArrayRef);
                let field = |name: &str| Arc::new(Field::new(name, lo.data_type().clone(), true));
                let interval = StructArray::from(vec![(field("lo"), Arc::clone(&lo)), (field("hi"), hi)]);
                (format!("q{j}"), Arc::new(interval) as ArrayRef)
            };
            let value = Arc::new(Int32Array::from(vec![people.sensitive[cycle[place]]])) as ArrayRef;
            let columns = (0..n).map(interval).chain([("s".to_owned(), value)]);
            batches.push(RecordBatch::try_from_iter(columns).unwrap());
        }
        concat_batches(&batches[0].schema(), &batches).unwrap()
    };
    let rate = seen_in_rows(3, DRAWS, release);
    assert!(rate > 0.45, "{rate}");
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
        let worlds = run(&worlds_of(4), &people, &people.all(), None, false, seed).unwrap();
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
