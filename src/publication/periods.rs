//! Periods: which step of a law of changes a snapshot is of. Whoever publishes says it with each of them: a period in which nothing has changed
//! is then published, too, and two releases of one period are told from two steps. If nobody said it, a release that is missing would tell that
//! nothing has changed, and the next one that something has, while counterfeits change with releases only.

use datafusion::common::Result;

use super::open::OpenPublication;
use super::period::{PERIOD, Period, PeriodUnit};
use super::record::Record;
use super::spec::Publication;
use crate::error::{refusal, thousands};
use crate::methods::state::MOST_STEPS;

/// Returns the period of the newest release. Where nobody said it, every release is one of its own.
fn newest_period(newest: &Record, otherwise: PeriodUnit) -> Period {
    match newest.periods.last() {
        Some(&number) => Period { unit: newest.unit.unwrap_or(otherwise), number },
        None => Period { unit: PeriodUnit::Number, number: newest.number },
    }
}

/// Returns the periods of earlier releases and of the next one. `None` unless values change from period to period and somebody says which it is.
/// Fails when nobody says it and a bound needs it, or earlier releases have it; or it counts something else than that of the newest release.
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

/// Returns the notice for a publisher who says no period of a snapshot. It comes at first, and when it is too late.
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

/// Checks that a release may be of this period, after [`of_releases`]. Where values are not held within a period (`m_distinct`
/// without `exact`), a period has one release: of a second one, whatever changes beside values that stay is a counterfeit's.
/// Fails when the next release is of a period before that of an earlier one, or may be; or of the same one, where a period has one release.
pub(super) fn check_order(open: &OpenPublication, publication: &Publication) -> Result<()> {
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
