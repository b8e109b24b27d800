//! Periods: which step of a law of changes a snapshot is of. Whoever publishes says it with each of them: a period in which nothing has changed
//! is then published, too, and two releases of one period are told from two steps. If nobody said it, a release that is missing would tell that
//! nothing has changed, and the next one that something has, while counterfeits change with releases only.

use std::fmt;

use chrono::{Datelike, NaiveDate};
use datafusion::common::Result;

use super::open::OpenPublication;
use super::record::Record;
use super::spec::Publication;
use crate::error::refusal;

/// Name of the option and of the setting.
pub(crate) const PERIOD: &str = "period";

/// A whole number from 1, or a day: the days since 1970 then.
///
/// # Errors
/// When it is neither, or a number that is a day without hyphens, of which months are not 31 steps long.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let text = text.trim();
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        && let Ok(days @ 1..) = u64::try_from(day.signed_duration_since(NaiveDate::default()).num_days())
    {
        return Ok(days);
    }
    let number = text.parse::<u64>().ok().filter(|number| (1..=u64::from(u32::MAX)).contains(number));
    let number = number.ok_or_else(|| {
        refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} must be a day, such as '2026-01-31', or a whole number from 1: that of the week or month that the snapshot is of, one \
             higher for each step of the law of changes"
        )
    })?;
    let digits = text.len() == 8 && (1900..2200).contains(&(number / 10_000));
    match NaiveDate::parse_from_str(text, "%Y%m%d") {
        Ok(day) if digits => Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} is counted one by one, and as a number {text} is many steps before the first of the next month; write '{day}'"
        )),
        _ => Ok(number),
    }
}

/// The periods of earlier releases, and that of the next one, where values change by a law from period to period.
///
/// # Errors
/// When nobody says which it is.
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
    let Some(period) = publication.period else {
        let newest = match earlier.last() {
            Some(newest) => format!(", the newest release is of {}", Named(*newest)),
            None => String::new(),
        };
        return Err(refusal!(
            "publication",
            argument PERIOD,
            "values change by a law, and nobody says which day, week or month this snapshot is of{newest}. Say it with each, also where nothing \
             has changed: SET anonymize.{PERIOD} = '2026-01-31', or '14' where no days are counted; or declare the publication with option {PERIOD}. \
             Else a snapshot that is not published would tell readers that nobody's value has changed. Nothing was published"
        ));
    };
    Ok(Some((earlier, period)))
}

/// # Errors
/// When the next release is of a period before that of an earlier one.
pub(crate) fn check_order(periods: Option<&(Vec<u64>, u64)>) -> Result<()> {
    match periods.and_then(|(earlier, period)| Some((earlier.last()?, period))) {
        Some((newest, period)) if period < newest => Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} is {}, and the newest release is of {}; releases come in the order of their periods. Nothing was published",
            Named(*period),
            Named(*newest)
        )),
        _ => Ok(()),
    }
}

/// As a number, and as a day where it can be one.
struct Named(u64);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let day = i32::try_from(self.0).ok().and_then(|days| {
            NaiveDate::from_num_days_from_ce_opt(NaiveDate::default().num_days_from_ce().checked_add(days)?)
        });
        match day.filter(|day| (1990..2100).contains(&day.year())) {
            Some(day) => write!(f, " ({day})"),
            None => Ok(()),
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
        let next = ["2026-11-30", "2026-12-01"].map(|text| parse(text).unwrap());
        assert_eq!(next[1] - next[0], 1);
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "0", "-1", "1.5", "today", "1970-01-01", "2026-02-30", "4294967296", "2026-1"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("publication: period must be a day"), "{text}: {error}");
        }
    }

    /// From the last of a month to the first of the next one is a step, and not seventy.
    #[test]
    fn days_without_hyphens_are_refused() {
        let error = parse("20261130").unwrap_err().to_string();
        assert!(error.contains("write '2026-11-30'"), "{error}");
        assert_eq!([parse("20261131").unwrap(), parse("31001130").unwrap()], [20_261_131, 31_001_130]);
    }

    #[test]
    fn periods_are_named_as_what_they_can_be() {
        assert_eq!(
            [14, 20_785, u64::MAX].map(|period| Named(period).to_string()),
            ["14", "20785 (2026-11-28)", "18446744073709551615"]
        );
    }
}
