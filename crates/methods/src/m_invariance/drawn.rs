//! Releases whose new people draw their signatures: what they keep over chains, and what a reader infers who enumerates all draws.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::enumeration::{History, Inferred, assert_exact, is_eligible};
use super::tests::{Earlier, Known, Row, chains, encode_beside, private, verify};
use super::*;
use crate::choices::{Share, alone, orders};
use crate::error::Error;

fn drawn(m: usize) -> MInvariance {
    MInvariance::of_cohort(m).with_assignment(Assignment::Drawn)
}

/// Returns a release beside those of people of whom some came with the first one.
pub(super) fn publish(
    rows: &[Row],
    known: &Known,
    first: &BTreeSet<i64>,
    domain: &[String],
    m: usize,
    seed: u64,
) -> Result<Release> {
    let release = |id: i64| if first.contains(&id) { 1 } else { 2 };
    let earlier = Earlier { known, release: Some(&release), ring: None, regions: false, each: false, domain };
    let (microdata, state) = encode_beside(rows, None, &earlier, seed)?;
    drawn(m).anonymize(microdata, &state, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Once there is a first release, none is refused. Signatures stay those that there were or could have been from the beginning, and each
    /// has as many groups as it has people of its most frequent value.
    #[test]
    fn no_later_release_is_refused((snapshots, m) in chains(), seed in any::<u64>()) {
        let domain: Vec<String> = (0..9).map(|value| format!("v{value}")).collect();
        let (mut known, mut first) = (Known::new(), BTreeSet::new());
        for snapshot in snapshots {
            let release = match publish(&snapshot, &known, &first, &domain, m, seed) {
                Ok(release) => release,
                Err(Error::Refused(_)) if known.is_empty() => continue,
                Err(error) => panic!("{error}"),
            };
            let counterfeits = release.counterfeits();
            prop_assert_eq!(release.withheld, 0);
            verify(&private(release, seed), &snapshot, &mut known, m, 0);
            if first.is_empty() {
                first = known.keys().copied().collect();
            }
            let signatures: BTreeSet<&BTreeSet<String>> = first.iter().map(|id| &known[id]).collect();
            let seen: BTreeSet<&String> = signatures.iter().copied().flatten().collect();
            let mut counts: BTreeMap<&BTreeSet<String>, BTreeMap<&String, usize>> = BTreeMap::new();
            for row in &snapshot {
                let signature = &known[&row.0];
                prop_assert!(signatures.contains(signature) || signature.iter().any(|value| !seen.contains(value)));
                *counts.entry(signature).or_default().entry(&row.2).or_default() += 1;
            }
            let places = counts.iter().map(|(signature, counts)| signature.len() * counts.values().max().unwrap());
            prop_assert_eq!(counterfeits, places.sum::<usize>() - snapshot.len());
        }
    }

    #[test]
    fn draws_depend_neither_on_the_order_of_arrival_nor_on_threads((snapshots, m) in chains(), seed in any::<u64>()) {
        let domain: Vec<String> = (0..9).map(|value| format!("v{value}")).collect();
        let mut known = Known::new();
        let Ok(release) = publish(&snapshots[0], &known, &BTreeSet::new(), &domain, m, seed) else { return Ok(()) };
        verify(&private(release, seed), &snapshots[0], &mut known, m, 0);
        let first: BTreeSet<i64> = known.keys().copied().collect();
        let Some(second) = snapshots.get(1).filter(|_| !first.is_empty()) else { return Ok(()) };
        let backward: Vec<Row> = second.iter().rev().cloned().collect();
        let release = publish(second, &known, &first, &domain, m, seed).unwrap();
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = one.install(|| publish(&backward, &known, &first, &domain, m, seed)).unwrap();
        prop_assert_eq!(private(release, seed), private(alone, seed));
    }
}

fn row(id: i64, value: &str) -> Row {
    (id, vec![Some(id as i32)], value.to_owned())
}

/// Values that the first release does not know are refused, and releases of other modes.
#[test]
fn what_the_first_release_does_not_know_is_refused() {
    let set = |values: &str| values.chars().map(String::from).collect::<BTreeSet<_>>();
    let known: Known = [(1, "ab"), (2, "ab"), (3, "ac"), (4, "ac")].map(|(id, values)| (id, set(values))).into();
    let all = BTreeSet::from([1, 2, 3, 4]);
    let text = |rows: &[Row], known: &Known, first: &BTreeSet<i64>, domain: &[String]| {
        publish(rows, known, first, domain, 2, 0).unwrap_err().to_string()
    };
    let rows = [row(5, "a"), row(6, "a"), row(7, "a")];
    let release = publish(&rows, &known, &all, &[], 2, 0).unwrap();
    assert_eq!(release.groups.sensitive.len(), 6);
    let unseen = text(&[row(5, "a"), row(6, "z"), row(7, "z")], &known, &all, &[]);
    assert!(unseen.contains("no signature for 1 of the values") && unseen.contains("2 of the new rows"), "{unseen}");
    let domain = ["a", "b", "c", "y", "z"].map(String::from);
    let release = publish(&[row(6, "z")], &known, &all, &domain, 2, 0).unwrap();
    assert_eq!((release.groups.len(), release.groups.sensitive.len()), (1, 2));
    // One value alone is beside the most frequent one.
    let release = publish(&[row(6, "z")], &known, &all, &["z".to_owned()], 2, 0).unwrap();
    let name = release.microdata.sensitive.as_ref().unwrap().domain.values().clone();
    use datafusion::arrow::array::AsArray;
    let names: Vec<&str> =
        release.groups.sensitive.iter().map(|&code| name.as_string_view().value(code as usize)).collect();
    assert_eq!(names, ["a", "z"]);
    let uneven = text(&rows, &known, &BTreeSet::from([1, 2, 3]), &[]);
    assert!(uneven.contains("not all of the first release"), "{uneven}");
    let foreign = text(&rows, &known, &BTreeSet::from([1, 2]), &[]);
    assert!(foreign.contains("1 signatures in `previous` are not those of the first release"), "{foreign}");
}

/// Returns the counts of the first release, with those of other declared values.
fn reference(first: &[u8], domain: &[u8], m: usize) -> Vec<(u8, u128)> {
    let mut counts: BTreeMap<u8, u128> = BTreeMap::new();
    first.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    let mut frequent: Vec<u8> = counts.keys().copied().collect();
    frequent.sort_by_key(|value| (u128::MAX - counts[value], *value));
    let unseen: Vec<u8> = domain.iter().copied().filter(|value| !counts.contains_key(value)).collect();
    if !unseen.is_empty() {
        let beside = m.saturating_sub(unseen.len());
        for value in frequent.into_iter().take(beside).chain(unseen) {
            *counts.entry(value).or_default() += 1;
        }
    }
    counts.into_iter().collect()
}

/// Draws any history whose later people have values by the law of the first.
fn any_history(releases: usize, within: bool, rng: &mut ChaCha20Rng) -> History {
    loop {
        let m = if rng.random_bool(0.8) { 2 } else { 3 };
        let letters = m as u8 + rng.random_range(0..2);
        let size = rng.random_range(m..=4);
        let mut cohorts: Vec<Vec<u8>> = vec![(0..size).map(|_| b'a' + rng.random_range(0..letters)).collect()];
        let mut domain: Vec<u8> = Vec::new();
        if rng.random_bool(0.3) {
            domain = (b'a'..b'a' + letters + rng.random_range(0..2)).collect();
        }
        let law = reference(&cohorts[0], &domain, m);
        let mut present = vec![(0..size).collect::<Vec<_>>()];
        let mut all = size;
        for _ in 1..releases {
            let size = rng.random_range(0..=if releases > 2 { 2 } else { 3 });
            cohorts.push(vec![b'?'; size]);
            present.push((0..all).filter(|_| rng.random_bool(0.5)).chain(all..all + size).collect());
            all += size;
        }
        let later = all - cohorts[0].len();
        let worlds = orders(&cohorts[0]).len() * law.len().pow(later as u32);
        let draws: u128 = law.iter().map(|(_, people)| *people).max().unwrap_or(1).pow(later as u32);
        let nobody = present.iter().any(Vec::is_empty);
        if later == 0 || worlds > 150 || draws > 16 || nobody || !is_eligible(&cohorts[0], m) {
            continue;
        }
        let place = |rng: &mut ChaCha20Rng| vec![rng.random_range(0..6)];
        let places = (0..releases).map(|_| (0..all).map(|_| place(rng)).collect()).collect();
        let parts = within.then(|| (0..releases).map(|_| (0..all).map(|_| rng.random_range(0..2)).collect()).collect());
        return History { present, places, parts, law, domain, ..History::of(drawn(m), cohorts) };
    }
}

fn histories(releases: usize, within: bool, wanted: usize) -> Vec<(History, Inferred)> {
    let mut rng = ChaCha20Rng::seed_from_u64(10 + releases as u64);
    let mut found = Vec::new();
    while found.len() < wanted {
        let history = any_history(releases, within, &mut rng);
        let inferred = alone(|| history.infer());
        if inferred.outcomes > 0 {
            found.push((history, inferred));
        }
    }
    found
}

#[test]
fn drawn_releases_are_exact_together() {
    assert!(assert_exact(&histories(2, false, 40)) > 150);
}

/// People who were away come back.
#[test]
fn three_drawn_releases_are_exact_together() {
    assert!(assert_exact(&histories(3, false, 20)) > 150);
}

#[test]
fn drawn_releases_within_parts_are_exact_together() {
    assert!(assert_exact(&histories(2, true, 20)) > 50);
}

/// Makes so many people after a first release of others who have left.
fn newcomers(first: &[u8], people: usize, law: Vec<(u8, u128)>) -> History {
    let (before, all) = (first.len(), first.len() + people);
    let places = (0..2).map(|_| (0..all).map(|person| vec![person as i32]).collect()).collect();
    let present = vec![(0..before).collect(), (before..all).collect()];
    History { present, places, law, ..History::of(drawn(2), vec![first.to_vec(), vec![b'?'; people]]) }
}

/// Another law than the first release's changes the odds. By it a is twice as likely as b, where the first release has one of each: odds of one newcomer are
/// those of the law. Those of three, of whom nobody is beside another, are multiplied: they have the same value, and who knows one knows all.
#[test]
fn another_law_changes_the_odds() {
    let law = vec![(b'a', 2), (b'b', 1)];
    let most = |people: usize| alone(|| newcomers(b"ab", people, law.clone()).infer().most);
    assert_eq!(most(1), Share::new(2, 1).times(Share::new(2, 3)));
    assert_eq!(most(3), Share::new(2, 1).times(Share::new(8, 9)));
    assert!(alone(|| newcomers(b"ab", 3, reference(b"ab", &[], 2)).infer().exact));
}

/// Draws only where a batch is not eligible: that it was drawn then tells that it was not. Two people in one group of a and b, and
/// one beside a counterfeit for c: were that one not a, the three would have different values and would have been put together.
#[test]
fn draws_as_a_fallback_make_certain() {
    let history = newcomers(b"aabc", 3, reference(b"aabc", &[], 2));
    assert!(alone(|| history.infer().exact));
    let fallback = History { fallback: true, ..history };
    assert_eq!(alone(|| fallback.infer().most), Share::new(2, 1));
}

/// A reader who knows how many of a later batch have each value: of one person that is the value.
#[test]
fn known_counts_of_later_people_tell() {
    let history = newcomers(b"ab", 1, Vec::new());
    let history = History { cohorts: vec![b"ab".to_vec(), b"a".to_vec()], ..history };
    assert_eq!(alone(|| history.infer().most), Share::new(2, 1));
}
