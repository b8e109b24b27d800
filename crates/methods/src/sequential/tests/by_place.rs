//! Large tables, whose rows stand in the order of where they lie.

use super::*;
use crate::microdata::MANY;

/// From so many rows on they do, and not before; everybody keeps their partners.
#[test]
fn large_tables_are_put_in_order_by_place() {
    for (rows, by_place) in [(MANY - 2, false), (MANY, true)] {
        let column = |step: usize| (0..rows).map(|row| Some((row * step % 30_011 % 97) as i32)).collect::<Vec<_>>();
        let people = People {
            first: 0,
            quasi: vec![column(7919), column(104_729)],
            sensitive: (0..rows).map(|row| (row * 31 % 11) as i32).collect(),
            other: vec![(0..rows).map(|row| (row % 5) as i32).collect()],
        };
        let all = people.all();
        // Most have worlds before the others come.
        let first = run(&worlds_of(3), &people.truncated(rows / 4 * 3), &all, None, false, 4).unwrap();
        let more = run(&worlds_of(3), &people, &all, Some(&first), false, 4).unwrap();
        let worlds = concat_batches(&first.schema(), [&first, &more]).unwrap();
        let partners = partners(&worlds);
        assert_eq!((partners.len(), outside_rings(&people, &partners)), (rows, 0));
        let (microdata, state) = builder(&people, &all, Some(&worlds), false).unwrap().1.finish([5, 6]).unwrap();
        assert_eq!(microdata.by_place().into_iter().eq(0..rows as u32), by_place);
        let known = state.worlds().unwrap();
        let of_people = microdata.people.as_ref().unwrap();
        let ids = of_people.identifiers.as_primitive::<Int64Type>();
        let id = |row: u32| ids.value(of_people.arrival[row as usize] as usize);
        for row in 0..rows as u32 {
            let found: Vec<i64> = known.of(row).unwrap().iter().map(|&partner| id(partner)).collect();
            assert_eq!(found, partners[&id(row)]);
            assert!(known.is_sealed(row));
        }
        let released = run(&release_of(20, Loss::Lm), &people, &all, Some(&worlds), false, 5).unwrap();
        assert_eq!(released.num_rows(), rows);
        // By the checker that shares no code with the method.
        let rows = super::released(&released, &all);
        for i in 0..3 {
            let world = world(&people, &all, |id| if i == 0 { id } else { partners[&id][i - 1] });
            assert!(world.is_consistent(&rows, 2), "{i}");
        }
    }
}
