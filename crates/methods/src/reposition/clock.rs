//! Clock that tells the snapshot of a time, and the beginning of a snapshot.

use serde::{Deserialize, Serialize};

/// Rule by which times are cut into snapshots. Snapshots are numbered so that the one with the epoch (or with 0) is number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Clock {
    /// So many units of the time column's own: numbers, days of a date, seconds or less of a timestamp.
    Units(i64),
    /// So many months, of a column with so many units a day.
    Months {
        /// Number of months.
        months: i64,
        /// Units of a day.
        day: i64,
    },
}

impl Clock {
    /// Returns the number of the snapshot that a time belongs to.
    pub fn snapshot(self, time: i64) -> i64 {
        match self {
            Self::Units(units) => time.div_euclid(units.max(1)),
            Self::Months { months, day } => month_of(time.div_euclid(day.max(1))).div_euclid(months.max(1)),
        }
    }

    /// Returns the beginning of a snapshot; `None` if that is out of range.
    pub fn begin(self, snapshot: i64) -> Option<i64> {
        match self {
            Self::Units(units) => snapshot.checked_mul(units.max(1)),
            Self::Months { months, day } => {
                let month = i128::from(snapshot) * i128::from(months.max(1));
                let begin = first_day_of(month) * i128::from(day.max(1));
                i64::try_from(begin).ok()
            }
        }
    }
}

/// Returns the months since January 1970 of a day since then, in the Gregorian calendar. The calendar repeats after 400 years, and its years are
/// easiest counted from March (`H. Hinnant, chrono-compatible low-level date algorithms`).
fn month_of(day: i64) -> i64 {
    let (era, of_era) =
        ((i128::from(day) + 719_468).div_euclid(146_097), (i128::from(day) + 719_468).rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // 0 is March.
    let month = (5 * of_year + 2) / 153;
    ((year + era * 400) * 12 + month + 2 - 1970 * 12) as i64
}

/// Returns the day since 1970 that a month since January 1970 begins with.
fn first_day_of(month: i128) -> i128 {
    let from_march = month + 1970 * 12 - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let days = of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5;
    era * 146_097 + days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_cut_downwards() {
        let week = Clock::Units(7);
        assert_eq!([-8, -7, -1, 0, 6, 7].map(|time| week.snapshot(time)), [-2, -1, -1, 0, 0, 1]);
        assert_eq!(week.begin(-1), Some(-7));
        assert_eq!(week.begin(i64::MAX), None);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let month = Clock::Months { months: 1, day: 1 };
        // 1970-01-01, 1970-01-31, 1970-02-01, 1969-12-31, 2000-02-29, 2000-03-01.
        assert_eq!([0, 30, 31, -1, 11_016, 11_017].map(|day| month.snapshot(day)), [0, 0, 1, -1, 361, 362]);
        let seconds = Clock::Months { months: 3, day: 86_400 };
        assert_eq!(seconds.begin(1), Some(90 * 86_400));
        for day in (-800_000..800_000).step_by(7) {
            let snapshot = month.snapshot(day);
            let (begin, next) = (month.begin(snapshot).unwrap(), month.begin(snapshot + 1).unwrap());
            assert!(begin <= day && day < next && (28..=31).contains(&(next - begin)), "day {day}");
        }
    }
}
