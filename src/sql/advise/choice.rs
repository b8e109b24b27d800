//! Choice of the recommendation: the most protection whose price is acceptable.

use super::bench::TableRoles;
use super::measure::Measured;
use super::settings::Tried;

/// The share of counterfeits in a second release that is acceptable. It is one of a great change: half the people are new.
const COUNTERFEITS: f64 = 0.1;

/// Returns for each setting the reason why it is recommended, if it is. `error` is the acceptable median error of counts.
pub(super) fn recommend(measured: &[Measured], people: &TableRoles, error: f64, rows: usize) -> Vec<Option<String>> {
    let mut recommended = vec![None; measured.len()];
    // Where rows are not known to be people, no bound of any method is known to hold.
    if !people.has_id {
        return recommended;
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    // Two thirds of the people are in the second release.
    let second = rows - rows / 3;
    // The next release's people must be eligible as well, and m stays: not all that this table allows.
    let roomy = |m: usize| m * 4 <= people.largest * 3 || m == 2;
    let lasting = |row: &Measured| {
        let method = row.setting.method;
        method.has_memory() && method.is_bounded() && roomy(row.setting.value)
    };
    if let Some((place, acceptable)) = best(measured, lasting, error, second) {
        let row = &measured[place];
        let (m, off) = (row.setting.value, percent(row.error.unwrap_or_default()));
        recommended[place] = Some(match acceptable {
            true => format!(
                "if it will be published again: the largest m that was tried with a median error of counts of at most {} (here {off}) and \
                 at most {} of counterfeits in second releases whose people are half new, and with room below {}, the largest m that this \
                 table allows; a stranger (who knows nobody's value) infers none with a probability above 1/{m}, beside all releases that know of each other",
                percent(error),
                percent(COUNTERFEITS),
                people.largest
            ),
            false => format!(
                "if it will be published again: no m keeps the median error of counts at {} and counterfeits at {}; this one has the least \
                 error, {off}",
                percent(error),
                percent(COUNTERFEITS)
            ),
        });
    }
    // Once: the largest bound that is acceptable, at the least error.
    let coarse = |method: Tried| !method.is_exact() || people.exact.is_empty();
    let bounded = |row: &Measured| {
        let method = row.setting.method;
        method.is_bounded() && !method.has_memory() && coarse(method)
    };
    if let Some((place, acceptable)) = best(measured, bounded, error, second) {
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

/// Finds the acceptable setting with the largest value, and the least error among several. Without an acceptable
/// one, finds that with the least error. And whether it is acceptable.
fn best(measured: &[Measured], of: impl Fn(&Measured) -> bool, error: f64, second: usize) -> Option<(usize, bool)> {
    let few = |count: usize| count as f64 <= COUNTERFEITS * second as f64;
    let candidates = measured.iter().enumerate().filter(|(_, row)| of(row));
    let candidates: Vec<(usize, usize, f64, bool)> = candidates
        .filter_map(|(place, row)| {
            let off = row.error?;
            let known = !row.setting.method.has_memory() || row.counterfeits.is_some();
            Some((place, row.setting.value, off, off <= error && known && row.counterfeits.is_none_or(few)))
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

    fn people(has_id: bool) -> TableRoles {
        let (quasi, sensitive) = (vec!["age".to_owned()], vec!["disease".to_owned()]);
        TableRoles { id: "id".to_owned(), has_id, quasi, sensitive, exact: Vec::new(), largest: 20 }
    }

    fn row(method: Tried, value: usize, error: f64, counterfeits: usize) -> Measured {
        let setting = Setting { method, value };
        let counterfeits = method.has_memory().then_some(counterfeits);
        Measured { setting, loss: Some(0.1), error: Some(error), counterfeits, at_risk: Some(0.25), note: None }
    }

    fn recommended(measured: &[Measured], has_id: bool) -> Vec<(Tried, usize)> {
        let all = recommend(measured, &people(has_id), 0.1, 3000).into_iter().zip(measured);
        all.filter(|(text, _)| text.is_some()).map(|(_, row)| (row.setting.method, row.setting.value)).collect()
    }

    #[test]
    fn the_largest_acceptable_one() {
        let mut all = vec![
            row(Tried::of("m_invariant", "m"), 2, 0.01, 0),
            row(Tried::of("m_invariant", "m"), 4, 0.09, 200),
            row(Tried::of("m_invariant", "m"), 5, 0.09, 201),
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
        let text = recommend(&all, &people(true), 0.1, 3000)[5].clone().unwrap();
        assert!(text.contains("published once") && text.contains("7.0 %") && text.contains("25.0 %"), "{text}");
        // The largest one, also where the error of another is less.
        all.push(row(Tried::of("anatomy", "l"), 7, 0.1, 0));
        assert_eq!(recommended(&all, true), [(Tried::of("m_invariant", "m"), 4), (Tried::of("anatomy", "l"), 7)]);
        // Anatomy publishes every quasi-identifier as it is.
        let singled_out = TableRoles { exact: vec!["dob".to_owned()], ..people(true) };
        let rows: Vec<usize> = recommend(&all, &singled_out, 0.1, 3000)
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

    /// The next release's people must be eligible as well.
    #[test]
    fn there_is_room_below_the_largest_m() {
        let all = [2, 3, 4, 5].map(|m| row(Tried::of("m_invariant", "m"), m, 0.01, 0));
        let tight = TableRoles { largest: 5, ..people(true) };
        let place = recommend(&all, &tight, 0.1, 3000).iter().position(Option::is_some).unwrap();
        assert_eq!(all[place].setting.value, 3);
        // Less than 2 there is nothing.
        let tighter = TableRoles { largest: 2, ..people(true) };
        let place = recommend(&all[..1], &tighter, 0.1, 3000).iter().position(Option::is_some);
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
        let text = recommend(&all, &people(true), 0.1, 3000)[0].clone().unwrap();
        assert!(text.contains("no m keeps"), "{text}");
    }
}
