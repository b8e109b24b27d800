//! Plans against brute force, and on random tables.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::choices::Every;

/// Secrets of values that are pairs.
fn secrets(pairs: &[[u32; 2]]) -> Secrets {
    let of = |column: usize| pairs.iter().map(|pair| pair[column]).collect();
    Secrets { names: vec!["a".into(), "b".into()], of_value: [of(0), of(1)] }
}

/// Returns the plan of a table of pairs.
fn planned(table: &BTreeMap<[u32; 2], usize>, l: usize, lots: &mut impl Lots) -> Result<Vec<Vec<[u32; 2]>>> {
    let pairs: Vec<[u32; 2]> = table.keys().copied().collect();
    let counts: Vec<usize> = table.values().copied().collect();
    let values: Vec<u32> = (0..pairs.len() as u32).collect();
    let steps = plan(Some(&secrets(&pairs)), &values, &counts, l, lots)?;
    assert!(steps.iter().all(|step| step.rows == 1));
    Ok(steps.iter().map(|step| step.signature.iter().map(|&value| pairs[value as usize]).collect()).collect())
}

fn is_eligible(table: &BTreeMap<[u32; 2], usize>, l: usize) -> bool {
    let people: usize = table.values().sum();
    [0, 1].into_iter().all(|column: usize| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        table.iter().for_each(|(pair, count)| *counts.entry(pair[column]).or_default() += count);
        counts.into_values().all(|count| count * l <= people)
    })
}

/// Checks that rings of at least `l` have everybody and no conflicts. Rings are equally large, but for one person.
fn assert_plan(table: &BTreeMap<[u32; 2], usize>, l: usize, rings: &[Vec<[u32; 2]>]) {
    let people: usize = table.values().sum();
    assert_eq!(rings.len(), people / l);
    let mut placed: BTreeMap<[u32; 2], usize> = BTreeMap::new();
    for ring in rings {
        assert!((people / rings.len()..=people.div_ceil(rings.len())).contains(&ring.len()) && ring.len() >= l);
        for (place, one) in ring.iter().enumerate() {
            assert!(ring[..place].iter().all(|other| one[0] != other[0] && one[1] != other[1]), "{ring:?}");
            *placed.entry(*one).or_default() += 1;
        }
    }
    assert_eq!(placed, *table);
}

/// Tries all ways to put people into groups without conflicts. Returns true if groups of at least `l` exist.
fn exists(people: &[[u32; 2]], l: usize, groups: &mut Vec<Vec<[u32; 2]>>) -> bool {
    let Some((one, others)) = people.split_first() else { return groups.iter().all(|group| group.len() >= l) };
    let missing: usize = groups.iter().map(|group| l.saturating_sub(group.len())).sum();
    if missing > people.len() {
        return false;
    }
    for place in 0..groups.len() {
        if groups[place].iter().all(|other| one[0] != other[0] && one[1] != other[1]) {
            groups[place].push(*one);
            let found = exists(others, l, groups);
            groups[place].pop();
            if found {
                return true;
            }
        }
    }
    groups.push(vec![*one]);
    let found = exists(others, l, groups);
    groups.pop();
    found
}

/// Calls `f` with all tables of so many people over a grid of pairs.
fn tables(
    people: usize,
    pairs: &[[u32; 2]],
    table: &mut BTreeMap<[u32; 2], usize>,
    f: &mut impl FnMut(&BTreeMap<[u32; 2], usize>),
) {
    let Some((pair, others)) = pairs.split_first() else {
        if people == 0 {
            f(table);
        }
        return;
    };
    for count in 0..=people {
        if count > 0 {
            table.insert(*pair, count);
        }
        tables(people - count, others, table, f);
        table.remove(pair);
    }
}

/// A plan exists exactly if no secret of either column occurs more than `n / l` times; then one is found.
#[test]
fn plans_exist_if_and_only_if_shares_allow() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let pairs: Vec<[u32; 2]> = (0..3).flat_map(|a| (0..3).map(move |b| [a, b])).collect();
    let (mut found, mut none) = (0, 0);
    for people in 2..=6 {
        tables(people, &pairs, &mut BTreeMap::new(), &mut |table| {
            let all: Vec<[u32; 2]> =
                table.iter().flat_map(|(pair, &count)| std::iter::repeat_n(*pair, count)).collect();
            for l in [2, 3] {
                let eligible = is_eligible(table, l);
                assert_eq!(exists(&all, l, &mut Vec::new()), eligible, "{table:?} {l}");
                match planned(table, l, &mut rng) {
                    Ok(rings) => assert_plan(table, l, &rings),
                    Err(_) => assert!(!eligible, "{table:?} {l}"),
                }
                *(if eligible { &mut found } else { &mut none }) += 1;
            }
        });
    }
    assert!(found > 1000 && none > 1000, "{found} {none}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn eligible_tables_are_planned(
        l in 2_usize..7, sides in [1_u32..40, 1_u32..40], people in 1_usize..600, skew in 1_u32..4, seed in any::<u64>(),
    ) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut table: BTreeMap<[u32; 2], usize> = BTreeMap::new();
        for _ in 0..people {
            let pair = sides.map(|side| (0..skew).map(|_| rng.random_range(0..side)).min().unwrap_or(0));
            *table.entry(pair).or_default() += 1;
        }
        match planned(&table, l, &mut rng) {
            Ok(rings) => assert_plan(&table, l, &rings),
            Err(_) => prop_assert!(!is_eligible(&table, l)),
        }
    }

    /// Every secret of both columns occurs exactly as often as there are rings.
    #[test]
    fn tight_tables_are_planned(l in 2_usize..9, rings in 1_usize..90, seed in any::<u64>()) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut second: Vec<u32> = (0..l as u32).flat_map(|secret| std::iter::repeat_n(secret, rings)).collect();
        rng.arrange(&mut second);
        let mut table: BTreeMap<[u32; 2], usize> = BTreeMap::new();
        for (person, b) in second.into_iter().enumerate() {
            *table.entry([(person / rings) as u32, b]).or_default() += 1;
        }
        assert_plan(&table, l, &planned(&table, l, &mut rng).unwrap());
    }
}

/// Plans depend on counts and lots alone: tables whose secrets have other names have the same laws of plans.
#[test]
fn names_of_secrets_do_not_matter() {
    let table = BTreeMap::from([([0, 0], 1), ([0, 1], 1), ([1, 1], 1), ([2, 0], 1), ([1, 2], 2)]);
    let renamed = |[a, b]: [u32; 2]| [(a + 1) % 3, 2 - b];
    let law = |table: &BTreeMap<[u32; 2], usize>, name: &dyn Fn([u32; 2]) -> [u32; 2]| {
        Every::new(0).law(|mut every| {
            let mut rings = planned(table, 2, &mut every).unwrap();
            rings.iter_mut().for_each(|ring| {
                ring.iter_mut().for_each(|pair| *pair = name(*pair));
                ring.sort_unstable();
            });
            rings.sort_unstable();
            rings
        })
    };
    let other = table.iter().map(|(pair, count)| (renamed(*pair), *count)).collect();
    let expected = law(&table, &renamed);
    assert!(expected.len() > 1);
    assert_eq!(law(&other, &|pair| pair), expected);
}

#[test]
fn shares_that_are_too_great_are_refused() {
    let secrets = secrets(&[[0, 0], [0, 1], [1, 2], [2, 3]]);
    let eligible = Codes::narrowed(vec![0, 1, 2, 3]);
    assert!(secrets.check_eligible("m", 2, "rows", &eligible).is_ok());
    let error = secrets.check_eligible("m", 3, "rows", &eligible).unwrap_err().to_string();
    assert!(error.contains("value of a makes up 50.00%") && error.contains("composite(a, b)"), "{error}");
    assert!(secrets.are_apart(&[0, 2, 3]) && !secrets.are_apart(&[0, 1]));
    assert_eq!(secrets.occurrences(&[0, 1, 3]), [2, 1, 1, 1, 1]);
}
