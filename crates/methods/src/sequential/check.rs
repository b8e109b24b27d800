//! The last look at a release before a row leaves: definitions, word by word.

use rayon::prelude::*;

use super::matching::{Matched, carried};
use crate::Monitor;
use crate::error::{Error, Result};
use crate::microdata::{Attribute, Microdata};
use crate::seen::Seen;

/// Checks every world. Each row is of one person, with the values that the person carries there and inside of what
/// the row publishes; and everybody carries different sensitive values in all worlds.
///
/// A row publishes the values of its person in the true world. They are compared themselves, and not by the classes that rows were matched by: what
/// is wrong with these would be wrong here, too.
pub(super) fn check(
    microdata: &Microdata,
    partners: &[u32],
    width: usize,
    matched: &Matched,
    monitor: &Monitor,
) -> Result<()> {
    let (n, d) = (microdata.rows, microdata.quasi.len());
    let broken =
        |what: &str| Err(Error::internal(format!("the release failed its own check ({what}); nothing was published")));
    if matched.people.len() != width + 1 || !matched.boxes.are_of(n, d) || partners.len() != n * width {
        return broken("rows missing");
    }
    let is_value = |([_, hi], attribute): (&[u32; 2], &Attribute)| (*hi as usize) < attribute.domain.len();
    // Nodes are looked up by values, so that these come first.
    let can_publish =
        |boxes: &[[u32; 2]]| boxes.iter().zip(&microdata.quasi).all(is_value) && microdata.can_publish(boxes);
    if !matched.boxes.all(|_, boxes| boxes.chunks_exact(d).all(can_publish)) {
        return broken("a value that cannot be published");
    }
    let is_alike = |one: u32, other: u32| {
        (microdata.sensitive.is_none() || microdata.sensitive_codes.at(one) == microdata.sensitive_codes.at(other))
            // Of no columns there is nothing to compare, which takes long: some processors look at an address where no memory is.
            && (microdata.other.is_empty() || microdata.other_of(one) == microdata.other_of(other))
    };
    let truth = &matched.people[0];
    for (world, people) in matched.people.iter().enumerate() {
        monitor.check()?;
        if !Seen::once(n, people.iter().copied()).is_some_and(|seen| seen.is_all()) {
            return broken("a world in which somebody has no row");
        }
        let fits = |((row, &person), boxes): ((usize, &u32), &[[u32; 2]])| {
            let covers = |(&[lo, hi], code): (&[u32; 2], u32)| lo <= code && code <= hi;
            is_alike(truth[row], carried(partners, width, world, person))
                && boxes.iter().zip(microdata.quasi_of(person)).all(covers)
        };
        let fit =
            |first: usize, boxes: &[[u32; 2]]| (first..).zip(&people[first..]).zip(boxes.chunks_exact(d)).all(fits);
        if !matched.boxes.all(fit) {
            return broken("a row that is not its person's in a world");
        }
    }
    let value = |person: u32, world: usize| microdata.sensitive_codes.at(carried(partners, width, world, person));
    let differ =
        |person: u32| (0..=width).all(|world| (0..world).all(|other| value(person, world) != value(person, other)));
    match microdata.sensitive.is_none() || (0..n as u32).into_par_iter().all(differ) {
        true => Ok(()),
        false => broken("a person with a sensitive value in two worlds"),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::super::matching::Matching;
    use super::super::measure::{Loss, Measure};
    use super::super::tests::{People, encoded};
    use super::*;
    use crate::release::Intervals;

    /// Several pieces of rows, and one that is not whole.
    const ROWS: usize = 330;
    const L: usize = 3;
    const VALUES: [u32; 2] = [300, 3];

    struct Released {
        microdata: Microdata,
        partners: Vec<u32>,
        boxes: Vec<[u32; 2]>,
        people: Vec<Vec<u32>>,
    }

    impl Released {
        /// Makes people in rings of three, and a column that travels. Hierarchies are there or not.
        fn new(flat: bool) -> Self {
            let column = |of: fn(usize) -> usize| (0..ROWS).map(|row| Some(of(row) as i32)).collect();
            let people = People {
                first: 0,
                quasi: vec![column(|row| row * 7 % 300), column(|row| row / 3 % 3)],
                sensitive: (0..ROWS).map(|row| (row % L) as i32).collect(),
                other: vec![(0..ROWS).map(|row| (row % L) as i32).collect()],
            };
            let microdata = encoded(&people, flat);
            let arrival = &microdata.people.as_ref().unwrap().arrival;
            let mut row_of = vec![0; ROWS];
            (0..).zip(arrival).for_each(|(row, &arrival)| row_of[arrival as usize] = row);
            let partner = |&arrival: &u32, step: usize| {
                let arrival = arrival as usize;
                row_of[arrival / L * L + (arrival + step) % L]
            };
            let partners: Vec<u32> = arrival
                .iter()
                .flat_map(|of| (1..L).map(move |step| (of, step)))
                .map(|(of, step)| partner(of, step))
                .collect();
            let measure = Measure::new(Loss::Lm, &microdata);
            let monitor = Monitor::default();
            let matching = Matching {
                microdata: &microdata,
                partners: &partners,
                width: L - 1,
                measure: &measure,
                p: 20,
                monitor: &monitor,
            };
            let matched = matching.release(&mut ChaCha20Rng::seed_from_u64(4)).unwrap();
            let Matched { boxes, people, .. } = matched;
            Self { boxes: boxes.to_vec(), people, partners, microdata }
        }

        /// Returns the complaint of the check after a change.
        fn after(&self, change: impl FnOnce(&mut Self)) -> String {
            let microdata = Self::empty();
            let Self { partners, boxes, people, .. } = self;
            let mut changed =
                Self { microdata, partners: partners.clone(), boxes: boxes.clone(), people: people.clone() };
            change(&mut changed);
            let Self { partners, boxes, people, .. } = changed;
            // Classes are those that rows are matched by, and none of the check's business.
            let matched = Matched { boxes: Intervals::of_groups(2, &boxes), classes: vec![0; ROWS], people };
            check(&self.microdata, &partners, L - 1, &matched, &Monitor::default())
                .map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        }

        fn empty() -> Microdata {
            encoded(&People { quasi: vec![Vec::new(); 2], other: vec![Vec::new()], ..People::default() }, false)
        }

        /// Returns the boxes that hold everybody.
        fn wide() -> Vec<[u32; 2]> {
            VALUES.map(|values| [0, values - 1]).repeat(ROWS)
        }
    }

    /// Each broken promise is found, in the first rows of pieces and the last.
    #[test]
    fn wrong_releases_are_found() {
        for flat in [false, true] {
            let released = Released::new(flat);
            let after = |change: &dyn Fn(&mut Released)| released.after(change);
            assert_eq!(after(&|_| {}), "fine");
            let not_theirs = "not its person's in a world";
            let unpublishable = "a value that cannot be published";
            for row in [0, 64, ROWS - 1] {
                let at = 2 * row;
                let [lo, hi] = released.boxes[at];
                assert!(lo < hi, "{row}");
                let too_narrow = if flat { unpublishable } else { not_theirs };
                for narrower in [[lo + 1, hi], [lo, hi - 1]] {
                    assert!(after(&|of| of.boxes[at] = narrower).contains(too_narrow), "{row} {narrower:?}");
                }
                assert!(after(&|of| of.boxes[at] = [lo, lo]).contains(not_theirs));
                assert!(after(&|of| of.boxes[at] = [hi, lo]).contains(unpublishable));
                // There is such a code, but not of this attribute.
                for beyond in [[0, 5], [5, 5]] {
                    assert!(after(&|of| of.boxes[at + 1] = beyond).contains(unpublishable), "{row} {beyond:?}");
                }
                assert!(after(&|of| of.boxes[at] = [lo, VALUES[0]]).contains(unpublishable));
                for world in 0..L {
                    let value = |person: u32| {
                        released.microdata.sensitive_codes.at(carried(&released.partners, L - 1, world, person))
                    };
                    let people = &released.people[world];
                    let other = (0..ROWS).find(|&other| value(people[other]) != value(people[row])).unwrap();
                    let exchanged = |of: &mut Released| {
                        of.boxes = Released::wide();
                        of.people[world].swap(row, other);
                    };
                    assert!(after(&exchanged).contains(not_theirs), "{row} {world}");
                    let twice = |of: &mut Released| of.people[world][row] = of.people[world][other];
                    assert!(after(&twice).contains("somebody has no row"), "{row} {world}");
                }
            }
            assert_eq!(after(&|of| of.boxes = Released::wide()), "fine");
            for less in [1, 2] {
                assert!(after(&|of| of.boxes.truncate(2 * (ROWS - less))).contains("rows missing"));
            }
            assert!(after(&|of| of.people.truncate(L - 1)).contains("rows missing"));
            assert!(after(&|of| of.partners.truncate(ROWS * (L - 1) - 1)).contains("rows missing"));
        }
    }

    /// Everybody carries their own values in two worlds: consistent with all of them, and no two are different.
    #[test]
    fn values_that_do_not_differ_are_found() {
        let released = Released::new(false);
        for (first, last) in [(0, 1), (0, 2), (1, 2)] {
            let alike = |of: &mut Released| {
                let own = |person: usize, world: usize| match world {
                    0 => person as u32,
                    world => of.partners[person * (L - 1) + world - 1],
                };
                let mut partners = of.partners.clone();
                (0..ROWS).for_each(|person| partners[person * (L - 1) + last - 1] = own(person, first));
                of.partners = partners;
                of.people[last] = of.people[first].clone();
                of.boxes = Released::wide();
            };
            assert!(released.after(alike).contains("a sensitive value in two worlds"), "{first} {last}");
        }
    }

    /// A column that travels with the sensitive one is compared, too.
    #[test]
    fn other_values_of_a_row_are_found() {
        let mut released = Released::new(false);
        released.boxes = Released::wide();
        let carriers = &released.people[1];
        let first = carriers[0];
        released.microdata.other_codes[carried(&released.partners, L - 1, 1, first) as usize] ^= 1;
        assert!(released.after(|_| {}).contains("not its person's in a world"));
    }
}
