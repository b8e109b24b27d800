//! A period: the day, week, month or quarter that a snapshot is of, or a number.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, Months, NaiveDate, TimeDelta, Utc, Weekday};
use datafusion::common::{DataFusionError, Result};
use serde::{Deserialize, Serialize};

use crate::error::refusal;

/// Name of the option and of the setting.
pub(crate) const PERIOD: &str = "period";

/// Unit that a publication counts in, for good.
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

/// Period of a snapshot; made of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Period {
    /// Unit that is counted.
    pub unit: PeriodUnit,
    /// Number of the period, one higher for each step.
    pub number: u64,
}

impl Period {
    pub(super) fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }

    /// Returns the first day of it; `None` of numbers, and of what no calendar has.
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

    /// Returns true if it has not begun anywhere.
    pub(super) fn is_to_come(self) -> bool {
        let tomorrow = Utc::now().date_naive().succ_opt();
        self.first_day().zip(tomorrow).is_some_and(|(first, tomorrow)| first > tomorrow)
    }
}

/// Reads option `period`: `2026-01-31`, `2026-W05`, `2026-01`, `2026-Q1` or a whole number from 1.
impl FromStr for Period {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        parse(text)
    }
}

/// Writes the period as option `period` is written.
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

/// Returns a day, week, month or quarter, or a whole number from 1.
/// Fails when it is none of these, or a number that is a day, week or month without hyphens, of which a year's last is many before the next one's first.
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

/// Reads a period that is written as in a calendar.
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

    /// The last of a month and the first of the next are one step apart.
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
