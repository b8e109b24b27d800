//! Choice of the recommendation: the most protection whose price is acceptable.

use super::bench::TableRoles;
use super::measure::Measured;
use super::settings::Tried;

/// Returns for each setting the reason why it is recommended, if it is. `error` is the acceptable median error of counts.
pub(super) fn recommend(measured: &[Measured], people: &TableRoles, error: f64) -> Vec<Option<String>> {
    let mut recommended = vec![None; measured.len()];
    // Where rows are not known to be people, no bound of any method is known to hold.
    if !people.has_id {
        return recommended;
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    // The next release's people must be eligible as well, and m stays: not all that this table allows.
    let roomy = |m: usize| m * 4 <= people.largest * 3 || m == 2;
    let lasting = |row: &Measured| {
        let method = row.setting.method;
        method.has_memory() && method.is_bounded() && method.reader().is_none() && roomy(row.setting.value)
    };
    if let Some((stranger, acceptable)) = best(measured, lasting, error) {
        let place = better_informed(measured, stranger, error).unwrap_or(stranger);
        let row = &measured[place];
        let (m, off) = (row.setting.value, percent(row.error.unwrap_or_default()));
        let bound = match place == stranger {
            true => format!("a stranger (who knows nobody's value) infers none with a probability above 1/{m}"),
            false => format!(
                "who knows others' values infers none outside of their own group with a probability above 1/{m}, and that costs less than twice the \
                 error of a bound for strangers"
            ),
        };
        recommended[place] = Some(match acceptable {
            true => format!(
                "if it will be published again: the largest m that was tried with a median error of counts of at most {} in a first release and in a \
                 second one whose people are half new (here {off}), and with room below {}, the largest m that this table allows; {bound}, beside all \
                 releases that know of each other",
                percent(error),
                people.largest
            ),
            false => format!(
                "if it will be published again: no m keeps the median error of counts at {} in a first and a second release; this one has the least \
                 error, {off}",
                percent(error)
            ),
        });
    }
    // Once: the largest bound that is acceptable, at the least error.
    let coarse = |method: Tried| !method.is_exact() || people.exact.is_empty();
    let bounded = |row: &Measured| {
        let method = row.setting.method;
        method.is_bounded() && !method.has_memory() && coarse(method)
    };
    if let Some((place, acceptable)) = best(measured, bounded, error) {
        let row = &measured[place];
        let (l, off) = (row.setting.value, percent(row.error.unwrap_or_default()));
        let at_risk = match row.at_risk {
            Some(share) => format!("; published twice, {} of those who stayed would be given away", percent(share)),
            None => String::new(),
        };
        let why = match acceptable {
            true => format!(
                "the largest l that was tried with a median error of counts of at most {} (here {off})",
                percent(error)
            ),
            false => format!(
                "no l keeps the median error of counts at {}; this one has the least error, {off}",
                percent(error)
            ),
        };
        let exact = match row.setting.method.is_exact() {
            true => "; anatomy publishes everybody's quasi-identifiers as they are, so readers see who is in the table",
            false => "",
        };
        recommended[place] = Some(format!(
            "if it is published once and never again: of the methods for one release with a bound of 1/l, {why}; l = {l}{at_risk}{exact}"
        ));
    }
    recommended
}

/// Finds the same method and value for a better informed reader, if the error allows.
///
/// The error must be acceptable, at most `error`, and less than twice that of the stranger's setting.
fn better_informed(measured: &[Measured], stranger: usize, error: f64) -> Option<usize> {
    let Measured { setting, error: Some(off), .. } = measured[stranger] else { return None };
    measured.iter().position(|row| {
        let other = row.setting;
        let same = other.value == setting.value && other.method.name() == setting.method.name();
        same && other.method.reader().is_some() && row.error.is_some_and(|more| more <= error && more < 2.0 * off)
    })
}

/// Finds the acceptable setting with the largest value, and the least error among several. Without an acceptable
/// one, finds that with the least error. And whether it is acceptable.
fn best(measured: &[Measured], of: impl Fn(&Measured) -> bool, error: f64) -> Option<(usize, bool)> {
    let candidates = measured.iter().enumerate().filter(|(_, row)| of(row));
    let candidates: Vec<(usize, usize, f64, bool)> = candidates
        .filter_map(|(place, row)| {
            let off = row.error?;
            // Without a second release nobody knows what that costs.
            let known = !row.setting.method.has_memory() || row.counterfeits.is_some();
            Some((place, row.setting.value, off, off <= error && known))
        })
        .collect();
    let acceptable = candidates.iter().filter(|(.., acceptable)| *acceptable);
    let largest = acceptable.max_by(|a, b| a.1.cmp(&b.1).then(b.2.total_cmp(&a.2)));
    let least = || candidates.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    largest.or_else(least).map(|&(place, .., acceptable)| (place, acceptable))
}

#[cfg(test)]
mod tests {
    use super::super::settings::Setting;
    use super::*;
    use crate::microdata::Several;

    fn people(has_id: bool) -> TableRoles {
        let (quasi, sensitive) = (vec!["age".to_owned()], vec!["disease".to_owned()]);
        TableRoles {
            id: "id".to_owned(),
            has_id,
            quasi,
            sensitive,
            several: Several::Each,
            exact: Vec::new(),
            largest: 20,
        }
    }

    fn row(method: Tried, value: usize, error: f64, counterfeits: usize) -> Measured {
        let setting = Setting { method, value };
        let counterfeits = method.has_memory().then_some(counterfeits);
        Measured { setting, loss: Some(0.1), error: Some(error), counterfeits, at_risk: Some(0.25), note: None }
    }

    fn recommended(measured: &[Measured], has_id: bool) -> Vec<(Tried, usize)> {
        let all = recommend(measured, &people(has_id), 0.1).into_iter().zip(measured);
        all.filter(|(text, _)| text.is_some()).map(|(_, row)| (row.setting.method, row.setting.value)).collect()
    }

    #[test]
    fn the_largest_acceptable_one() {
        let mut all = vec![
            row(Tried::of("m_invariant", "m"), 2, 0.01, 0),
            row(Tried::of("m_invariant", "m"), 4, 0.09, 200),
            row(Tried::of("m_invariant", "m"), 5, 0.12, 0),
            row(Tried::of("m_invariant", "m"), 7, 0.11, 0),
            row(Tried::of("anatomy", "l"), 4, 0.08, 0),
            row(Tried::of("mondrian", "l"), 4, 0.07, 0),
            row(Tried::of("mondrian", "l"), 5, 0.2, 0),
            row(Tried::of("mondrian", "k"), 4, 0.001, 0),
            row(Tried::of("muco", "1/delta"), 4, 0.001, 0),
        ];
        assert_eq!(recommended(&all, true), [(Tried::of("m_invariant", "m"), 4), (Tried::of("mondrian", "l"), 4)]);
        // Without an identifier nothing shows that rows are people.
        assert_eq!(recommended(&all, false), []);
        let text = recommend(&all, &people(true), 0.1)[5].clone().unwrap();
        assert!(text.contains("published once") && text.contains("7.0 %") && text.contains("25.0 %"), "{text}");
        // The largest one, also where the error of another is less.
        all.push(row(Tried::of("anatomy", "l"), 7, 0.1, 0));
        assert_eq!(recommended(&all, true), [(Tried::of("m_invariant", "m"), 4), (Tried::of("anatomy", "l"), 7)]);
        // Anatomy publishes every quasi-identifier as it is.
        let singled_out = TableRoles { exact: vec!["dob".to_owned()], ..people(true) };
        let rows: Vec<usize> = recommend(&all, &singled_out, 0.1)
            .iter()
            .enumerate()
            .filter_map(|(i, text)| text.as_ref().map(|_| i))
            .collect();
        assert_eq!(rows, [1, 5]);
        all.pop();
        // What was not measured is not recommended.
        all[1].error = None;
        all[5].error = None;
        assert_eq!(recommended(&all, true), [(Tried::of("m_invariant", "m"), 2), (Tried::of("anatomy", "l"), 4)]);
    }

    /// A bound for participants is taken if it costs less than twice the error. Both settings have the same m.
    #[test]
    fn a_bound_for_participants_where_it_is_cheap() {
        let of = |participants: f64| {
            let all = [
                row(Tried::of("m_invariant", "m"), 4, 0.02, 9),
                row(Tried::of("m_invariant", "m (participant)"), 4, participants, 9),
                row(Tried::of("m_invariant", "m (participant)"), 5, 0.01, 9),
            ];
            let recommended = recommend(&all, &people(true), 0.1);
            recommended.iter().position(Option::is_some).unwrap()
        };
        assert_eq!([0.039, 0.041].map(of), [1, 0]);
        assert_eq!(of(0.2), 0);
    }

    /// The next release's people must be eligible as well.
    #[test]
    fn there_is_room_below_the_largest_m() {
        let all = [2, 3, 4, 5].map(|m| row(Tried::of("m_invariant", "m"), m, 0.01, 0));
        let tight = TableRoles { largest: 5, ..people(true) };
        let place = recommend(&all, &tight, 0.1).iter().position(Option::is_some).unwrap();
        assert_eq!(all[place].setting.value, 3);
        // Less than 2 there is nothing.
        let tighter = TableRoles { largest: 2, ..people(true) };
        let place = recommend(&all[..1], &tighter, 0.1).iter().position(Option::is_some);
        assert_eq!(place, Some(0));
    }

    #[test]
    fn the_least_error_where_none_is_acceptable() {
        let all = [
            row(Tried::of("m_invariant", "m"), 2, 0.2, 0),
            row(Tried::of("m_invariant", "m"), 3, 0.3, 0),
            row(Tried::of("anatomy", "l"), 2, 0.4, 0),
        ];
        assert_eq!(recommended(&all, true), [(Tried::of("m_invariant", "m"), 2), (Tried::of("anatomy", "l"), 2)]);
        let text = recommend(&all, &people(true), 0.1)[0].clone().unwrap();
        assert!(text.contains("no m keeps"), "{text}");
    }
}
