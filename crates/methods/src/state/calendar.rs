//! Number of steps of a law of changes between two releases.

use crate::error::{Error, Result, thousands};

/// Steps of the law that somebody can have missed.
pub const MOST_STEPS: u32 = 10_000;

/// Numbers of times that values could change between releases.
pub(super) struct Calendar<'a> {
    /// The number of the release that is made, or the period that it is of.
    now: u64,
    /// The period of each release, by number from 1; without, every release is one.
    periods: Option<&'a [u64]>,
}

impl<'a> Calendar<'a> {
    /// Reads the steps; `number` is that of the release that is made, or follows the last one of `releases`. `None` if there are none.
    /// Fails when it is not known, and the releases are not numbered 1, 2, 3 and so on: then nobody knows how often values could change.
    pub(super) fn new(
        releases: &[i64],
        number: Option<u64>,
        periods: Option<&'a (Vec<u64>, u64)>,
    ) -> Result<Option<Self>> {
        let Some(&last) = releases.iter().max() else { return Ok(None) };
        if let Some((periods, now)) = periods {
            return Ok(Some(Self { now: *now, periods: Some(periods) }));
        }
        if let Some(now) = number {
            return Ok(Some(Self { now, periods: None }));
        }
        let mut numbers = releases.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        match numbers.iter().copied().eq(1..=numbers.len() as i64) {
            true => Ok(Some(Self { now: last as u64 + 1, periods: None })),
            false => Err(Error::refused(
                "`previous` has releases that are not numbered 1, 2, 3 and so on, without gaps: the numbers say how many times a value could change \
                 since. Pass all rows of all earlier private releases, also of people who are not there any more, with column release",
            )),
        }
    }

    /// Returns the number of steps of the law from a release to this one.
    pub(super) fn steps(&self, release: i64) -> Result<u32> {
        let then = match (self.periods, usize::try_from(release)) {
            (None, _) => u64::try_from(release).ok().filter(|then| *then < self.now),
            (Some(periods), Ok(release)) => release.checked_sub(1).and_then(|place| periods.get(place)).copied(),
            (Some(_), Err(_)) => None,
        };
        let steps = then.and_then(|then| self.now.checked_sub(then)).and_then(|steps| u32::try_from(steps).ok());
        let Some(steps) = steps else { return Err(Error::internal("a person who was published in a later release")) };
        match steps <= MOST_STEPS {
            true => Ok(steps),
            false => Err(Error::refused(format!(
                "some people were published more than {} periods ago, over which the law of changes is not followed; begin another publication, or leave them out",
                thousands(MOST_STEPS as usize)
            ))),
        }
    }
}
