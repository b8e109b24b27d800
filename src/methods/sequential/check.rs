//! The last look at a release before a row leaves: definitions, word by word.

use rayon::prelude::*;

use super::matching::{Matched, carried, classes};
use crate::error::{Error, Result};
use crate::methods::seen::Seen;
use crate::microdata::Microdata;

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
    if matched.people.len() != width + 1 || matched.boxes.len() != n * d || partners.len() != n * width {
        return broken("rows missing");
    }
    if !matched.boxes.par_chunks_exact(d).all(|boxes| microdata.can_publish(boxes)) {
        return broken("a value that cannot be published");
    }
    let classes = classes(microdata);
    for (world, people) in matched.people.iter().enumerate() {
        if !Seen::once(n, people.iter().copied()).is_some_and(|seen| seen.is_all()) {
            return broken("a world in which somebody has no row");
        }
        let fits = |(row, &person): (usize, &u32)| {
            let covers = |(&[lo, hi], code): (&[u32; 2], u32)| lo <= code && code <= hi;
            matched.classes[row] == classes[carried(partners, width, world, person) as usize]
                && matched.boxes[row * d..][..d].iter().zip(microdata.quasi_of(person)).all(covers)
        };
        if !people.par_iter().enumerate().all(fits) {
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
