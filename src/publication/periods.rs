//! Periods: which step of a law of changes a snapshot is of. Whoever publishes says it with each of them: a period in which nothing has changed
//! is then published, too, and two releases of one period are told from two steps. If nobody said it, a release that is missing would tell that
//! nothing has changed, and the next one that something has, while counterfeits change with releases only.

use std::fmt;

use chrono::{Datelike, NaiveDate, Weekday};
use datafusion::common::Result;

use super::open::OpenPublication;
use super::record::Record;
use super::spec::Publication;
use crate::error::refusal;
use crate::methods::state::MOST_STEPS;

/// Name of the option and of the setting.
pub(crate) const PERIOD: &str = "period";

/// A day, week or month, counted from the first one of 1970 or about then; or a whole number from 1.
///
/// # Errors
/// When it is none of these, or a number that is a day, week or month without hyphens, of which a year's last is many before the next one's first.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let text = text.trim();
    if let Some(counted) = calendar(text) {
        return Ok(counted);
    }
    let number = text.parse::<u64>().ok().filter(|number| (1..=u64::from(u32::MAX)).contains(number));
    let number = number.ok_or_else(|| {
        refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} must be the day ('2026-01-31'), week ('2026-W05') or month ('2026-01') that the snapshot is of, or a whole number from 1 that is \
             one higher for each step of the law of changes; in quotes, as in SET anonymize.{PERIOD} = '2026-01-31'"
        )
    })?;
    let hyphens = match text.len() {
        8 => NaiveDate::parse_from_str(text, "%Y%m%d").ok().map(|day| day.to_string()),
        6 => Some(format!("{0}-{1}' or '{0}-W{1}", &text[..4], &text[4..])),
        _ => None,
    };
    let is_year = text.get(..4).and_then(|year| year.parse().ok()).is_some_and(|year| (1900..2200).contains(&year));
    match hyphens.filter(|_| is_year) {
        Some(written) => Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} is counted one by one, and as numbers {text} and what comes after the end of its month or year are many apart; write '{written}'"
        )),
        None => Ok(number),
    }
}

/// Days since 1970 began, weeks (ISO 8601) since the one in which it did, or months since the one before.
fn calendar(text: &str) -> Option<u64> {
    let (year, rest) = text.split_once('-')?;
    let year = year.parse::<i32>().ok().filter(|_| year.len() == 4)?;
    let days = |day: NaiveDate| day.signed_duration_since(NaiveDate::default()).num_days();
    let counted = match rest.strip_prefix(['W', 'w']) {
        Some(week) => {
            let monday = NaiveDate::from_isoywd_opt(year, week.parse().ok()?, Weekday::Mon)?;
            days(monday).div_euclid(7) + 2
        }
        None if rest.contains('-') => days(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?),
        None => {
            let month = rest.parse::<i64>().ok().filter(|month| (1..=12).contains(month) && rest.len() == 2)?;
            i64::from(year - 1970) * 12 + month
        }
    };
    u64::try_from(counted).ok().filter(|&counted| counted > 0)
}

/// The periods of earlier releases, and that of the next one, where values change by a law from period to period.
///
/// # Errors
/// When nobody says which it is, or it is so far from that of the newest release that it counts something else.
pub(crate) fn of_releases(open: &OpenPublication, publication: &Publication) -> Result<Option<(Vec<u64>, u64)>> {
    if !publication.spec.counts_periods() {
        return Ok(None);
    }
    // Of versions that did not ask for it, every release is one.
    let periods = |newest: &Record| match newest.periods.is_empty() {
        true => (1..=newest.number).collect(),
        false => newest.periods.clone(),
    };
    let earlier: Vec<u64> = open.newest().map(periods).unwrap_or_default();
    let next = earlier.last().map_or_else(|| "2026-01-31".to_owned(), |newest| Named(newest + 1).alone());
    let Some(period) = publication.period else {
        let newest = match earlier.last() {
            Some(newest) => format!("; the newest release is of {}", Named(*newest)),
            None => String::new(),
        };
        return Err(refusal!(
            "publication",
            argument PERIOD,
            "values change by a law, and nobody says which day, week or month this snapshot is of{newest}. Say it with each, also where nothing \
             has changed, by SET anonymize.{PERIOD} = '{next}' for example: else a snapshot that is not published would tell readers that nobody's \
             value has changed. Nothing was published"
        ));
    };
    match earlier.last() {
        Some(newest) if period.saturating_sub(*newest) > u64::from(MOST_STEPS) => Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} is {}, and the newest release is of {}; so many steps are not followed. A publication goes on with what it counts, be it days or \
             other numbers, '{next}' for example. Nothing was published",
            Named(period),
            Named(*newest)
        )),
        _ => Ok(Some((earlier, period))),
    }
}

/// # Errors
/// When the next release is of a period before that of an earlier one, or may be.
pub(crate) fn check_order(open: &OpenPublication, publication: &Publication) -> Result<()> {
    let Some((earlier, period)) = of_releases(open, publication)? else { return Ok(()) };
    // Nobody knows which period releases without one were of.
    let unsaid = open.newest().is_some_and(|newest| newest.periods.is_empty());
    match earlier.last() {
        Some(newest) if period < *newest || unsaid && period == *newest => Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} is {}, and the newest release is of {}; releases come in the order of their periods{}. Nothing was published",
            Named(period),
            Named(*newest),
            if unsaid { ", and this one is of a later one than those that did not say theirs" } else { "" }
        )),
        _ => Ok(()),
    }
}

/// As a number, and as a day where it can be one.
pub(super) struct Named(pub(super) u64);

impl Named {
    fn day(&self) -> Option<NaiveDate> {
        let days = i32::try_from(self.0).ok()?;
        let day = NaiveDate::from_num_days_from_ce_opt(NaiveDate::default().num_days_from_ce().checked_add(days)?);
        day.filter(|day| (1990..2100).contains(&day.year()))
    }

    /// As it can be written.
    fn alone(&self) -> String {
        self.day().map_or_else(|| self.0.to_string(), |day| day.to_string())
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.day() {
            Some(day) => write!(f, "{} ({day})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_days_are_read() {
        let read = ["1", " 14 ", "1970-01-02", "2026-11-28", "4294967295"].map(|text| parse(text).unwrap());
        assert_eq!(read, [1, 14, 1, 20_785, 4_294_967_295]);
        for next in [
            ["2026-11-30", "2026-12-01"],
            ["2026-12-31", "2027-01-01"],
            ["2026-12", "2027-01"],
            ["2026-W53", "2027-W01"],
            ["2025-W52", "2026-W01"],
            ["1970-W01", "1970-w02"],
        ] {
            let [now, then] = next.map(|text| parse(text).unwrap());
            assert_eq!(then, now + 1, "{next:?}");
        }
        assert_eq!(["1970-01", "1970-W01"].map(|text| parse(text).unwrap()), [1, 1]);
    }

    #[test]
    fn what_is_none_of_them_is_refused() {
        let wrong = [
            "",
            "0",
            "-1",
            "1.5",
            "today",
            "1970-01-01",
            "2026-02-30",
            "4294967296",
            "2026-1",
            "2026-13",
            "2025-W53",
            "1969-12",
            "26-01-31",
        ];
        for text in wrong {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("publication: period must be the day"), "{text}: {error}");
        }
    }

    /// From the last of a month to the first of the next one is a step, and not seventy.
    #[test]
    fn days_and_months_without_hyphens_are_refused() {
        for (text, written) in
            [("20261130", "'2026-11-30'"), ("202612", "'2026-12' or '2026-W12'"), ("202652", "'2026-W52'")]
        {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("write '2026-") && error.contains(written), "{error}");
        }
        let numbers = ["20261131", "31001130", "20261", "490000"].map(|text| parse(text).unwrap());
        assert_eq!(numbers, [20_261_131, 31_001_130, 20_261, 490_000]);
    }

    #[test]
    fn periods_are_named_as_what_they_can_be() {
        let named = [14, 20_785, u64::MAX].map(|period| [Named(period).to_string(), Named(period).alone()]);
        assert_eq!(
            named.as_flattened(),
            ["14", "14", "20785 (2026-11-28)", "2026-11-28", "18446744073709551615", "18446744073709551615"]
        );
    }
}
