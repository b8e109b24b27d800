//! Periods: which step of a law of changes a snapshot is of. Whoever publishes says it with each of them: a period in which nothing has changed
//! is then published, too, and two releases of one period are told from two steps. If nobody said it, a release that is missing would tell that
//! nothing has changed, and the next one that something has, while counterfeits change with releases only.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, Months, NaiveDate, TimeDelta, Utc, Weekday};
use datafusion::common::{DataFusionError, Result};
use serde::{Deserialize, Serialize};

use super::open::OpenPublication;
use super::record::Record;
use super::spec::Publication;
use crate::error::{refusal, thousands};
use crate::methods::state::MOST_STEPS;

/// Name of the option and of the setting.
pub(crate) const PERIOD: &str = "period";

/// What a publication counts, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PeriodUnit {
    /// Steps of the law, from 1.
    Number,
    /// Days since 1970 began.
    Day,
    /// Weeks (ISO 8601), of which that in which 1970 began is the first.
    Week,
    /// Months, of which January 1970 is the first.
    Month,
    /// Quarters of years, of which the first of 1970 is the first.
    Quarter,
}

impl fmt::Display for PeriodUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Day => "days",
            Self::Week => "weeks",
            Self::Month => "months",
            Self::Quarter => "quarters",
        })
    }
}

/// Which period a snapshot is of; made of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Period {
    /// What is counted.
    pub unit: PeriodUnit,
    /// One higher for each step.
    pub number: u64,
}

impl Period {
    /// The one after it.
    pub(super) fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }

    /// The first day of it; `None` of numbers, and of what no calendar has.
    fn first_day(self) -> Option<NaiveDate> {
        let since_1970 = |days: i64| NaiveDate::default().checked_add_signed(TimeDelta::try_days(days)?);
        let after_1970 =
            |months: i64| NaiveDate::default().checked_add_months(Months::new(u32::try_from(months).ok()?));
        let number = i64::try_from(self.number).ok()?;
        match self.unit {
            PeriodUnit::Number => None,
            PeriodUnit::Day => since_1970(number),
            // That Monday was the 29th of December 1969.
            PeriodUnit::Week => since_1970(number.checked_sub(1)?.checked_mul(7)?.checked_sub(3)?),
            PeriodUnit::Month => after_1970(number.checked_sub(1)?),
            PeriodUnit::Quarter => after_1970(number.checked_sub(1)?.checked_mul(3)?),
        }
    }

    /// Whether it has not begun anywhere.
    fn is_to_come(self) -> bool {
        let tomorrow = Utc::now().date_naive().succ_opt();
        self.first_day().zip(tomorrow).is_some_and(|(first, tomorrow)| first > tomorrow)
    }
}

/// As option `period` is written: `2026-01-31`, `2026-W05`, `2026-01`, `2026-Q1` or a whole number from 1.
impl FromStr for Period {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        parse(text)
    }
}

/// As it is written.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.unit, self.first_day()) {
            (PeriodUnit::Day, Some(day)) => write!(f, "{day}"),
            (PeriodUnit::Week, Some(day)) => write!(f, "{}", day.format("%G-W%V")),
            (PeriodUnit::Month, Some(day)) => write!(f, "{}", day.format("%Y-%m")),
            (PeriodUnit::Quarter, Some(day)) => write!(f, "{}-Q{}", day.format("%Y"), day.quarter()),
            _ => write!(f, "{}", self.number),
        }
    }
}

/// A day, week, month or quarter, or a whole number from 1.
///
/// # Errors
/// When it is none of these, or a number that is a day, week or month without hyphens, of which a year's last is many before the next one's first.
pub(crate) fn parse(text: &str) -> Result<Period> {
    let text = text.trim();
    if let Some(period) = calendar(text) {
        return Ok(period);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|number| is_number && (1..=u64::from(u32::MAX)).contains(number));
    let number = number.ok_or_else(|| {
        refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} must be the day ('2026-01-31'), week ('2026-W05'), month ('2026-01') or quarter ('2026-Q1') that the snapshot is of, or a whole number from 1 that is \
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
        None => Ok(Period { unit: PeriodUnit::Number, number }),
    }
}

/// What is written as in a calendar.
fn calendar(text: &str) -> Option<Period> {
    let (year, rest) = text.split_once('-')?;
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| text.parse::<i64>().ok().filter(|_| digits(text, 2));
    let of_year = year.parse::<i32>().ok().filter(|_| digits(year, 4))?;
    let days = |day: NaiveDate| day.signed_duration_since(NaiveDate::default()).num_days();
    if let Some(quarter) = rest.strip_prefix(['Q', 'q']) {
        let quarter = quarter.parse::<i64>().ok().filter(|number| digits(quarter, 1) && (1..=4).contains(number))?;
        let number = u64::try_from(i64::from(of_year - 1970) * 4 + quarter).ok().filter(|&number| number > 0)?;
        return Some(Period { unit: PeriodUnit::Quarter, number });
    }
    let (unit, counted) = match (rest.strip_prefix(['W', 'w']), rest.split_once('-')) {
        (Some(week), _) => {
            let monday = NaiveDate::from_isoywd_opt(of_year, u32::try_from(number(week)?).ok()?, Weekday::Mon)?;
            (PeriodUnit::Week, days(monday).div_euclid(7) + 2)
        }
        (None, Some((month, day))) if digits(month, 2) && digits(day, 2) => {
            (PeriodUnit::Day, days(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?))
        }
        (None, Some(_)) => return None,
        (None, None) => {
            let month = number(rest).filter(|month| (1..=12).contains(month))?;
            (PeriodUnit::Month, i64::from(of_year - 1970) * 12 + month)
        }
    };
    let number = u64::try_from(counted).ok().filter(|&counted| counted > 0)?;
    Some(Period { unit, number })
}

/// What the newest release is of. Of versions that did not ask for it, every release is one of its own.
fn newest_period(newest: &Record, otherwise: PeriodUnit) -> Period {
    match newest.periods.last() {
        Some(&number) => Period { unit: newest.unit.unwrap_or(otherwise), number },
        None => Period { unit: PeriodUnit::Number, number: newest.number },
    }
}

/// The periods of earlier releases, and that of the next one, where values change from period to period and somebody says which it is.
///
/// # Errors
/// When nobody says it and a bound needs it, or earlier releases have it; or it counts something else than that of the newest release.
pub(crate) fn of_releases(open: &OpenPublication, publication: &Publication) -> Result<Option<(Vec<u64>, u64)>> {
    if !publication.spec.may_count_periods() {
        return Ok(None);
    }
    let newest = open.newest();
    let are_said = newest.is_some_and(|newest| !newest.periods.is_empty());
    let Some(period) = publication.period else {
        if !are_said && !publication.spec.counts_periods() {
            return Ok(None);
        }
        let newest = newest.map(|newest| newest_period(newest, PeriodUnit::Number));
        let (example, newest) = match newest {
            Some(newest) => (newest.next().to_string(), format!("; the newest release is of {newest}")),
            None => ("2026-01-31".to_owned(), String::new()),
        };
        return Err(refusal!(
            "publication",
            argument PERIOD,
            "values change from period to period, and nobody says which day, week, month or quarter this snapshot is of{newest}. Say it with each, also where \
             nothing has changed, by SET anonymize.{PERIOD} = '{example}' for example: else a snapshot that is not published would tell readers that \
             nobody's value has changed. Nothing was published"
        ));
    };
    if period.is_to_come() {
        return Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} {period} is in the future, and after it nothing of an earlier one could be published. Nothing was published"
        ));
    }
    let Some(record) = newest else { return Ok(Some((Vec::new(), period.number))) };
    let newest = newest_period(record, period.unit);
    if newest.unit != period.unit || period.number.saturating_sub(newest.number) > u64::from(MOST_STEPS) {
        let what = match newest.unit == period.unit {
            true => format!("more than {} steps", thousands(MOST_STEPS as usize)),
            false => "something else".to_owned(),
        };
        return Err(refusal!(
            "publication",
            argument PERIOD,
            "{PERIOD} {period} is {what} after that of the newest release, {newest}. A publication counts one thing for good, this one {}: '{}' is the \
             next one. Nothing was published",
            newest.unit,
            newest.next()
        ));
    }
    let earlier = if are_said { record.periods.clone() } else { (1..=record.number).collect() };
    Ok(Some((earlier, period.number)))
}

/// Returns what the publisher is told who does not say the period of a snapshot that could have one: at first, and when it is too late.
pub(super) fn unsaid(publication: &Publication, number: u64) -> Option<String> {
    let spec = &publication.spec;
    if publication.period.is_some() || number > 2 || !spec.may_count_periods() || spec.counts_periods() {
        return None;
    }
    let when = if number == 1 { "from the second release on" } else { "from this release on" };
    Some(format!(
        "publication: this snapshot does not say which period it is of, so that {when} `reader` is the paper's: whether a value could change between two \
         releases is not known. Say it with each snapshot from the first on, for example SET anonymize.{PERIOD} = '2026-01' (a day, week, month or quarter)"
    ))
}

/// Checks that a release may be of this period. Where values are not held within a period (`m_distinct` without `exact`), a period has one release: of a
/// second one, whatever changes beside values that stay is a counterfeit's.
///
/// # Errors
/// When the next release is of a period before that of an earlier one, or may be; or of the same one, where a period has one release.
pub(crate) fn check_order(open: &OpenPublication, publication: &Publication) -> Result<()> {
    of_releases(open, publication)?;
    let (Some(newest), Some(period)) = (open.newest(), publication.period) else { return Ok(()) };
    if !publication.spec.may_count_periods() {
        return Ok(());
    }
    // Nobody knows which period releases without one were of.
    let unsaid = newest.periods.is_empty();
    let newest = newest_period(newest, period.unit);
    if period.number == newest.number && !unsaid && !publication.spec.counts_periods() {
        return Err(refusal!(
            "publication",
            argument PERIOD,
            "the newest release is of {period}, too, and m_distinct without exact publishes one snapshot of a period: in a second one, whatever changes is \
             a counterfeit's. Nothing was published; INSERT the next snapshot in its own period: SET anonymize.{PERIOD} = '{}'; several snapshots of a period \
             take a publication with 'exact' 'true', or 'method' 'dynamic', from the start",
            period.next()
        ));
    }
    if period.number > newest.number || period.number == newest.number && !unsaid {
        return Ok(());
    }
    Err(refusal!(
        "publication",
        argument PERIOD,
        "{PERIOD} is {period}, and the newest release is of {newest}; releases come in the order of their periods{}. Nothing was published",
        if unsaid { ", and this one is of a later one than those that did not say theirs" } else { "" }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_days_are_read() {
        let read = ["1", " 14 ", "1970-01-02", "2026-11-28", "4294967295"].map(|text| parse(text).unwrap().number);
        assert_eq!(read, [1, 14, 1, 20_785, 4_294_967_295]);
        for next in [
            ["2026-11-30", "2026-12-01"],
            ["2026-12-31", "2027-01-01"],
            ["2026-12", "2027-01"],
            ["2026-W53", "2027-W01"],
            ["2025-W52", "2026-W01"],
            ["1970-W01", "1970-W02"],
            ["1970-01", "1970-02"],
            ["1970-Q1", "1970-Q2"],
            ["2025-Q4", "2026-Q1"],
            ["41", "42"],
        ] {
            let [now, then] = next.map(|text| parse(text).unwrap());
            assert_eq!(then, now.next(), "{next:?}");
            assert_eq!([now, then].map(|period| period.to_string()), next);
        }
        assert_eq!(
            ["1970-01", "1970-W01", "1970-w01", "1970-q1"].map(|text| parse(text).unwrap().number),
            [1, 1, 1, 1]
        );
    }

    #[test]
    fn what_is_to_come_is_known() {
        for (days, format, to_come) in [
            (0, "%Y-%m-%d", false),
            (3, "%Y-%m-%d", true),
            (0, "%G-W%V", false),
            (9, "%G-W%V", true),
            (0, "%Y-%m", false),
            (33, "%Y-%m", true),
        ] {
            let day =
                Utc::now().date_naive().checked_add_days(chrono::Days::new(days)).unwrap().format(format).to_string();
            assert_eq!(parse(&day).unwrap().is_to_come(), to_come, "{day}");
        }
        assert!(!parse("4294967295").unwrap().is_to_come());
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
            "2026-W3",
            "2026-3-2",
            "2026-Q0",
            "2026-Q5",
            "2026-Q01",
            "1969-Q4",
            "2026-+4",
            "+14",
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
        let numbers = ["20261131", "31001130", "20261", "490000"].map(|text| parse(text).unwrap().number);
        assert_eq!(numbers, [20_261_131, 31_001_130, 20_261, 490_000]);
    }
}
