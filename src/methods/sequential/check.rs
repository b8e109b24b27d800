//! The last look at a release before a row leaves: definitions, word by word.

use rayon::prelude::*;

use super::matching::{Matched, carried, classes};
use crate::error::{Error, Result};
use crate::methods::seen::Seen;
use crate::microdata::{Attribute, Microdata};

/// For each world, every row is of one person, with the values that the person carries there and inside of what the row publishes; and
/// with `diverse`, everybody carries different sensitive values in all worlds.
pub(super) fn check(
    microdata: &Microdata,
    partners: &[u32],
    width: usize,
    matched: &Matched,
    diverse: bool,
) -> Result<()> {
    let (n, d) = (microdata.rows, microdata.quasi.len());
    let broken =
        |what: &str| Err(Error::internal(format!("the release failed its own check ({what}); nothing was published")));
    if matched.people.len() != width + 1 || !matched.boxes.are_of(n, d) || partners.len() != n * width {
        return broken("rows missing");
    }
    let is_value = |([_, hi], attribute): (&[u32; 2], &Attribute)| (*hi as usize) < attribute.domain.len();
    let can_publish =
        |boxes: &[[u32; 2]]| microdata.can_publish(boxes) && boxes.iter().zip(&microdata.quasi).all(is_value);
    if !matched.boxes.all(|_, boxes| boxes.chunks_exact(d).all(can_publish)) {
        return broken("a value that cannot be published");
    }
    let classes = classes(microdata);
    for (world, people) in matched.people.iter().enumerate() {
        if !Seen::once(n, people.iter().copied()).is_some_and(|seen| seen.is_all()) {
            return broken("a world in which somebody has no row");
        }
        let fits = |((row, &person), boxes): ((usize, &u32), &[[u32; 2]])| {
            let covers = |(&[lo, hi], code): (&[u32; 2], u32)| lo <= code && code <= hi;
            matched.classes[row] == classes[carried(partners, width, world, person) as usize]
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
    match !diverse || microdata.sensitive.is_none() || (0..n as u32).into_par_iter().all(differ) {
        true => Ok(()),
        false => broken("a person with a sensitive value in two worlds"),
    }
}
