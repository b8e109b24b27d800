//! The machine's clock, which dates releases for their readers.

use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::common::Result;

use crate::error::refusal;

/// Seconds that clocks of machines differ by, commonly.
const COMMON: i64 = 60;

/// Returns the time that it shows.
#[expect(clippy::disallowed_methods, reason = "logs date their commits; what is published does not depend on it")]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

/// Fails when the clock is before 1970, which no log can say.
pub(super) fn check(now: SystemTime) -> Result<()> {
    match now.duration_since(UNIX_EPOCH) {
        Ok(_) => Ok(()),
        Err(_) => Err(refusal!(
            "publication",
            "the clock of this machine is before 1970, and releases are dated by it; set the clock, and run the statement again. Nothing was published"
        )),
    }
}

/// Returns the notice for the publisher if the newest release seems made after `now`. Its time is `then`, in milliseconds since 1970.
pub(super) fn behind(newest: u64, then: i64, now: SystemTime) -> Option<String> {
    let now = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    let seconds = (then - now) / 1000;
    (seconds > COMMON).then(|| {
        format!(
            "publication: the clock of this machine is {seconds} seconds before the time of release {newest}; the time that releases(..) shows of this one \
             is before it, too"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clocks_that_are_wrong_are_told() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert!(check(now).is_ok());
        assert!(check(UNIX_EPOCH - Duration::from_secs(1)).unwrap_err().to_string().contains("before 1970"));
        assert_eq!(behind(3, 1_000_000_000, now), None);
        assert_eq!(behind(3, 1_000_059_000, now), None);
        assert!(behind(3, 1_000_061_000, now).unwrap().contains("61 seconds before the time of release 3"));
    }
}
