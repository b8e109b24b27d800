//! Tests of the people whom rows are given, and of boxes that hold them.

use super::super::Loss;
use super::super::tests::{People, append_flat, builder, encoded};
use super::*;

const ROWS: usize = 800;
const CLASSES: usize = 4;

/// People with values 0 and 1 or 2 and 3, each linked to somebody. The link is to the other value. Those of 0 and 1
/// are linked to a neighbour, those of 2 and 3 to anybody.
struct Table {
    microdata: Microdata,
    partners: Vec<u32>,
}

impl Table {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut column = || -> Vec<Option<i32>> {
            let mut column: Vec<i32> = (0..ROWS).map(|_| rng.random_range(0..1000)).collect();
            column.chunks_exact_mut(CLASSES).for_each(|four| four[1] = four[0] + 20 * rng.random_range(0..2) - 10);
            column.into_iter().map(Some).collect()
        };
        let quasi = (0..6).map(|_| column()).collect();
        let sensitive = (0..ROWS).map(|row| (row % CLASSES) as i32).collect();
        let microdata = encoded(&People { first: 0, quasi, sensitive, other: Vec::new() }, false);
        let mut row_of = vec![0; ROWS];
        let arrival = &microdata.people.as_ref().unwrap().arrival;
        (0..).zip(arrival).for_each(|(row, &arrival)| row_of[arrival as usize] = row);
        let mut partners = vec![0; ROWS];
        for four in 0..ROWS / CLASSES {
            let other = (four * 37 + 11) % (ROWS / CLASSES);
            for (one, other) in [(four * 4, four * 4 + 1), (four * 4 + 2, other * 4 + 3)] {
                partners[row_of[one] as usize] = row_of[other];
                partners[row_of[other] as usize] = row_of[one];
            }
        }
        Self { microdata, partners }
    }
}

/// Every class is given people in the way that loses less. For each class the losses are computed if everybody is linked, and if everybody is matched.
#[test]
fn every_class_is_given_people_in_the_way_that_loses_less() {
    let Table { microdata, partners } = Table::new();
    let measure = Measure::new(Loss::Lm, &microdata);
    let monitor = Monitor::default();
    let of_row = classes(&microdata);
    let everybody: Vec<u32> = (0..ROWS as u32).collect();
    let mut all = everybody.clone();
    let rows: Vec<&[u32]> = by_value(&mut all, &of_row).into_iter().map(|rows| &*rows).collect();
    let begun = Begun { of_row: &of_row, donors: &everybody, rows: &rows };
    let matched = Matched { boxes: points(&microdata).unwrap(), classes: of_row.clone(), people: vec![Vec::new(); 2] };
    // Parts of one row have nobody to exchange.
    for p in [1, 4, 100] {
        let matching =
            Matching { microdata: &microdata, partners: &partners, width: 1, measure: &measure, p, monitor: &monitor };
        let added = |given: &Given| matching.added(&matched.boxes, &given.losses, &rows);
        let linked = matching.linked(&matched, &everybody, 1);
        let of_linked = added(&linked);
        let mut by_parts = linked.clone();
        by_parts.take(matching.matched(1, &matched, &begun, &[true; CLASSES], &LotsOfClasses([7; 32])).unwrap());
        let of_matched = added(&by_parts);
        let people_of = |hopeless: &mut [bool]| {
            let mut rng = ChaCha20Rng::seed_from_u64(5);
            let people = matching.people_of(1, &matched, &begun, hopeless, &mut rng).unwrap();
            let losses = matching.losses(&matched.boxes, &people);
            let given = Given { losses, people };
            (added(&given), given.people)
        };
        let mut hopeless = [false; CLASSES];
        let (losses, people) = people_of(&mut hopeless);
        let mut sorted = people.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, everybody);
        for class in 0..CLASSES {
            let [linked, matched] = [of_linked[class], of_matched[class]];
            // Draws differ, so that matched parts are not quite these.
            let most = 1.3 * linked.min(matched) + 0.02 * linked.max(matched);
            assert!(losses[class] <= most, "{p} {losses:?} {of_linked:?} {of_matched:?}");
            assert!(hopeless[class] || 1.2 * HOPELESS * linked >= matched, "{p} {of_linked:?} {of_matched:?}");
            assert!(!hopeless[class] || 0.8 * HOPELESS * linked < matched, "{p} {of_linked:?} {of_matched:?}");
        }
        assert!(p > 1 || hopeless == [true, true, false, false], "{of_linked:?} {of_matched:?}");
        // Classes that are hopeless stay linked.
        for kept in 0..CLASSES {
            let mut hopeless = std::array::from_fn::<_, CLASSES, _>(|class| class == kept);
            let (losses, people) = people_of(&mut hopeless);
            assert!(losses[kept] <= of_linked[kept] * (1.0 + 1e-6), "{p} {losses:?} {of_linked:?}");
            let stay = rows[kept].iter().all(|&row| people[row as usize] == linked.people[row as usize]);
            assert!(p > 1 || stay);
        }
    }
}

/// Checks the box of each row, alone and with another person.
fn are_covered(microdata: &Microdata) {
    let n = microdata.rows as u32;
    let reversed: Vec<u32> = (0..n).rev().collect();
    let mut boxes = points(microdata).unwrap();
    let codes = |row: u32| microdata.quasi_of(row);
    assert!((0..n).all(|row| boxes.of(row).eq(codes(row).map(|code| [code, code]))));
    cover(microdata, &mut boxes, &reversed).unwrap();
    for (row, other) in (0..n).zip(reversed) {
        let both = codes(row).zip(codes(other)).zip(&microdata.quasi);
        let expected = both.map(|((a, b), attribute)| attribute.closure([a.min(b), a.max(b)]));
        assert!(boxes.of(row).eq(expected), "{row}");
    }
}

/// Around the numbers of values that have room in one byte and in two.
#[test]
fn boxes_reach_the_greatest_code() {
    let people = |rows: usize| People {
        first: 0,
        quasi: vec![(0..rows as i32).map(Some).collect(), (0..rows as i32).map(|row| Some(row % 2)).collect()],
        sensitive: (0..rows as i32).map(|row| row % 3).collect(),
        other: Vec::new(),
    };
    for rows in [255, 256, 257, 65_535, 65_536, 65_537] {
        for flat in [false, true] {
            let microdata = encoded(&people(rows), flat);
            assert_eq!(microdata.greatest_code() as usize, rows - 1);
            are_covered(&microdata);
        }
    }
    // Leaves that no row has.
    let people = people(200);
    let mut builder = builder(&people, &people.all(), None, false).unwrap().1;
    append_flat(&mut builder, [(0, (0..300).collect())].into_iter()).unwrap();
    let microdata = builder.finish([1, 2]).unwrap().0;
    assert_eq!(microdata.quasi[0].domain.len(), 300);
    are_covered(&microdata);
}
