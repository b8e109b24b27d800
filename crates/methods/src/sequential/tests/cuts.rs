//! Parts of a class.

use super::super::parts::Cutting;
use super::*;

/// Cuts a class of all rows, on both sides and on one. Some rows are published as boxes. Of both the parts.
fn parts(people: &People, flat: bool) -> (Microdata, [Vec<(Vec<u32>, Vec<u32>)>; 2]) {
    let rows = people.len() as u32;
    let microdata = encoded(people, flat);
    let measure = Measure::new(Loss::Lm, &microdata);
    let mut boxes: Vec<[u32; 2]> = Vec::new();
    for row in 0..rows {
        let other = if row % 3 == 0 { row * 7 % rows } else { row };
        for ((a, b), attribute) in microdata.quasi_of(row).zip(microdata.quasi_of(other)).zip(&microdata.quasi) {
            boxes.push(attribute.closure([a.min(b), a.max(b)]));
        }
    }
    let all: Vec<u32> = (0..rows).collect();
    let boxes = Intervals::of_members(&microdata, &boxes).unwrap();
    let cutting = Cutting { microdata: &microdata, measure: &measure, most: 100 };
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let parts = [cutting.cut(&boxes, &all, &all, &mut rng), cutting.cut_rows(&boxes, &all, |row| row, &mut rng)];
    let parts = parts.map(|parts| parts.iter().map(|(rows, people)| (rows.to_vec(), people.to_vec())).collect());
    (microdata, parts)
}

/// Of any number of quasi-identifiers, with hierarchies and without: everybody is in one part, and so is every row; what spreads over the
/// table spreads less over a part.
#[test]
fn parts_are_of_everybody_and_of_neighbours() {
    let rows = 1500_usize;
    for quasi in [1, 2, 4, 6, 12, 20, 64] {
        for flat in [false, true] {
            let column =
                |j: usize| (0..rows).map(|row| Some(((row * (2 * j + 7)) % 31 + 40 * (row % 2)) as i32)).collect();
            let people = People {
                first: 0,
                quasi: (0..quasi).map(column).collect(),
                sensitive: vec![1; rows],
                other: Vec::new(),
            };
            let (microdata, [both, alone]) = parts(&people, flat);
            assert!(alone.iter().all(|(rows, people)| rows == people));
            for (name, parts) in [("both", &both), ("alone", &alone)] {
                let [mut of_rows, mut of_people] = [Vec::new(), Vec::new()];
                for (rows, people) in parts {
                    assert!(rows.len() == people.len() && (1..=100).contains(&rows.len()), "{name} {}", rows.len());
                    of_rows.extend_from_slice(rows);
                    of_people.extend_from_slice(people);
                }
                of_rows.sort_unstable();
                of_people.sort_unstable();
                assert!(of_rows.iter().copied().eq(0..rows as u32), "{name} {quasi} {flat}");
                assert!(of_people.iter().copied().eq(0..rows as u32), "{name} {quasi} {flat}");
            }
            // The two halves of the people lie far apart in every column.
            let is_mixed = |people: &[u32]| {
                let low = people.iter().filter(|&&person| microdata.quasi_at(person, 0) < 31).count();
                low > 0 && low < people.len()
            };
            assert!(both.iter().filter(|(_, people)| is_mixed(people)).count() <= both.len() / 4, "{quasi} {flat}");
        }
    }
}

/// Of very many values, what a column spreads counts as much as in another one.
#[test]
fn a_large_domain_is_cut_as_a_small_one() {
    let rows = 140_000_usize;
    let column = |factor: usize, values: usize| (0..rows).map(|row| Some((row * factor % values) as i32)).collect();
    let people = People {
        first: 0,
        quasi: vec![column(77_773, rows), column(7919, 1000)],
        sensitive: vec![1; rows],
        other: Vec::new(),
    };
    let (microdata, [both, _]) = parts(&people, false);
    let spread = |j: usize| {
        let of_part = |(_, people): &(Vec<u32>, Vec<u32>)| {
            let codes = || people.iter().map(|&person| microdata.quasi_at(person, j));
            f64::from(codes().max().unwrap() - codes().min().unwrap()) / (microdata.quasi[j].domain.len() - 1) as f64
        };
        both.iter().map(of_part).sum::<f64>() / both.len() as f64
    };
    let (large, small) = (spread(0), spread(1));
    assert!(large < 0.1 && small < 0.1, "{large} {small}");
    assert!((0.4..2.5).contains(&(large / small)), "{large} {small}");
}
