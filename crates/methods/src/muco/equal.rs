//! Groups in which every row is as likely to be anybody's as the others: `delta => 'equal'`.
//!
//! Groups are rings for ever ([`close`](super::super::close)). A release shows a ring while one of its people is present: a row for each value of the ring, in
//! which every quasi-identifier is dealt among the people who are present. So the rows are as likely whoever of the ring has which value, also to a reader
//! who knows the ring, all quasi-identifiers of its people, and this code, and combines all columns. Rows stand for values, and those of absent people are
//! *counterfeits*. Values keep their counts in a ring of which everybody is present, so that sums and means of one column are those of the table. What
//! columns have to do with each other is left between rings only.
//!
//! The deal keeps rows that come out as they were by chance. If it replaced them, a row would tell whose it is not.
//!
//! # Deal
//! The deal follows from the number of the ring, the place of a value in the ring, and the people present, by a keyed hash. All rows and people of a ring
//! are pairs, in the order of their hashes. A pair is dealt if its row shows nobody yet, and its person is shown no more often than the others. So rows are
//! repeated in later releases where nobody of the ring comes or goes, and where somebody does, most of them. Nothing of it depends on who has which value:
//! a reader who knew all hashes would learn nothing of values. The number of the ring, which is random and secret, hides who is together.

use rayon::prelude::*;

use super::Muco;
use crate::close::{CloseGroups, check_rings};
use crate::error::{Error, Result};
use crate::microdata::{Microdata, RowCodes, keyed_number, salts};
use crate::mondrian::Source;
use crate::release::{COUNTERFEIT, Groups, Perturbed};
use crate::state::Signatures;
use crate::{Monitor, balance};

/// Groups dealt at a time.
const CHUNK: usize = 64;
/// Mark of a row that shows no person yet.
const NOBODY: u32 = u32::MAX;

/// Makes the groups of a release: new people in rings of `l` or more, and known rings.
///
/// # Errors
/// When one value makes up more than `1/l` of the new people, or somebody has another one than before.
pub(super) fn groups(
    microdata: &Microdata,
    known: &Signatures,
    method: &Muco,
    (source, first): (&impl Source, i64),
    monitor: &Monitor,
) -> Result<Groups> {
    if microdata.quasi.is_empty() {
        return Err(Error::refused("there is no quasi-identifier in the table; a release needs one"));
    }
    balance::check_signatures("l", method.l, known)?;
    let close = CloseGroups { method, microdata, known, secrets: None, source, first, monitor };
    let (groups, new, _) = monitor.phase("grouping", || close.groups())?;
    monitor.phase("check", || check_rings(microdata, &groups, known, &new, method.l))?;
    Ok(groups)
}

/// Deals the values of every group.
///
/// # Errors
/// When the check fails, and cancelling.
pub(super) fn deal(microdata: &Microdata, groups: &Groups, monitor: &Monitor) -> Result<Perturbed> {
    let dealt = monitor.phase("drawing", || deal_all(microdata, groups, monitor))?;
    monitor.phase("check", || check(microdata, groups, &dealt))?;
    Ok(dealt)
}

fn deal_all(microdata: &Microdata, groups: &Groups, monitor: &Monitor) -> Result<Perturbed> {
    let d = microdata.quasi.len();
    let salts = match &microdata.people {
        Some(people) => {
            let all = salts(&people.identifiers)?;
            people.arrival.iter().map(|&arrival| all[arrival as usize] as u64).collect()
        }
        // Nobody can continue a release without identifiers.
        None => (0..microdata.rows as u64).collect::<Vec<u64>>(),
    };
    let chunks: Vec<usize> = (0..groups.len()).step_by(CHUNK).collect();
    let deal_chunk = |first: usize| {
        monitor.check()?;
        let (mut dealt, mut codes, mut deal) = (Perturbed::default(), Vec::new(), Deal::default());
        for group in first..groups.len().min(first + CHUNK) {
            let members = &groups.members[groups.range(group)];
            let people: Vec<u32> = members.iter().copied().filter(|&row| row != COUNTERFEIT).collect();
            let of_people: Vec<u64> = people.iter().map(|&row| salts[row as usize]).collect();
            let start = codes.len();
            codes.resize(start + members.len() * d, 0);
            for j in 0..d {
                let shown = deal.column([groups.rings[group] as u64, j as u64], members.len(), &of_people);
                let places = codes[start..].iter_mut().skip(j).step_by(d);
                places.zip(shown).for_each(|(code, &whose)| *code = microdata.quasi_at(people[whose as usize], j));
            }
            let published = codes[start..].chunks_exact(d).zip(members).filter(|(_, row)| **row != COUNTERFEIT);
            let same = published.filter(|(codes, row)| codes.iter().copied().eq(microdata.quasi_of(**row)));
            dealt.unchanged += same.count();
            let varies = people.windows(2).any(|pair| microdata.quasi_of(pair[0]).ne(microdata.quasi_of(pair[1])));
            dealt.unchangeable += usize::from(!varies);
        }
        dealt.codes = RowCodes::narrowed(d, codes);
        Ok(dealt)
    };
    let dealt: Vec<Result<Perturbed>> = chunks.into_par_iter().map(deal_chunk).collect();
    let mut all = Perturbed::default();
    for dealt in dealt {
        all.append(dealt?);
    }
    Ok(all)
}

/// Room to deal a column of a ring.
#[derive(Debug, Default)]
struct Deal {
    /// Hash, row and person of all pairs.
    pairs: Vec<(u64, u32, u32)>,
    /// Person that each row shows.
    shown: Vec<u32>,
    /// True for people who are shown in this round.
    taken: Vec<bool>,
}

impl Deal {
    /// Returns the person that each row shows. `key` has the ring and the column, and `people` are numbers of the people, the same for ever.
    fn column(&mut self, key: [u64; 2], rows: usize, people: &[u64]) -> &[u32] {
        let Self { pairs, shown, taken } = self;
        pairs.clear();
        for row in 0..rows {
            let with =
                |(place, &person): (usize, &u64)| (keyed_number(key, [row as u64, person]), row as u32, place as u32);
            pairs.extend(people.iter().enumerate().map(with));
        }
        pairs.sort_unstable();
        shown.clear();
        shown.resize(rows, NOBODY);
        let mut left = if people.is_empty() { 0 } else { rows };
        while left > 0 {
            taken.clear();
            taken.resize(people.len(), false);
            for &(_, row, person) in &*pairs {
                if shown[row as usize] == NOBODY && !taken[person as usize] {
                    shown[row as usize] = person;
                    taken[person as usize] = true;
                    left -= 1;
                }
            }
        }
        shown
    }
}

/// Checks the rows before one leaves: in every group and column, the values of the people present, each as often as the others or once more.
fn check(microdata: &Microdata, groups: &Groups, perturbed: &Perturbed) -> Result<()> {
    let d = microdata.quasi.len();
    let broken = |group: usize| {
        let range = groups.range(group);
        let people: Vec<u32> =
            groups.members[range.clone()].iter().copied().filter(|&row| row != COUNTERFEIT).collect();
        let mut published = Vec::with_capacity(range.len() * d);
        perturbed.codes.append_to(&mut published, range.start as u32..range.end as u32);
        let (least, most) = (range.len() / people.len().max(1), range.len().div_ceil(people.len().max(1)));
        (0..d).any(|j| {
            let mut own: Vec<u32> = people.iter().map(|&row| microdata.quasi_at(row, j)).collect();
            let mut shown: Vec<u32> = published.iter().skip(j).step_by(d).copied().collect();
            own.sort_unstable();
            shown.sort_unstable();
            let count = |code: u32| shown.partition_point(|&c| c <= code) - shown.partition_point(|&c| c < code);
            let wrong = |run: &[u32]| !(run.len() * least..=run.len() * most).contains(&count(run[0]));
            shown.iter().any(|code| own.binary_search(code).is_err()) || own.chunk_by(|a, b| a == b).any(wrong)
        })
    };
    let whole = perturbed.codes.are_of(groups.members.len(), d);
    let all = (0..groups.len()).into_par_iter().with_min_len(64);
    match whole && !all.map(broken).any(|broken| broken) {
        true => Ok(()),
        false => Err(Error::internal(
            "the release failed its own check (a group with other values than its own); nothing was published",
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Shows each person as often as the others, or once more.
        #[test]
        fn a_column_shows_everybody_alike(rows in 1_usize..20, absent in 0_usize..19, ring in any::<u64>(), column in 0..4_u64) {
            let people: Vec<u64> = (0..rows.saturating_sub(absent).max(1) as u64).map(|person| person * 77).collect();
            let shown = |people: &[u64]| {
                let mut deal = Deal::default();
                let shown = deal.column([ring, column], rows, people);
                shown.iter().map(|&place| people[place as usize]).collect::<Vec<u64>>()
            };
            let dealt = shown(&people);
            for person in &people {
                let times = dealt.iter().filter(|shown| *shown == person).count();
                prop_assert!((rows / people.len()..=rows.div_ceil(people.len())).contains(&times));
            }
            let other: Vec<u64> = people.iter().rev().copied().collect();
            prop_assert_eq!(shown(&other), dealt);
        }
    }

    /// All deals of a ring are about as likely over rings. Two columns are independent, and who leaves changes few rows.
    #[test]
    fn deals_are_like_drawn_ones() {
        const RINGS: u64 = 24_000;
        let people = [3, 1_000_003, u64::MAX - 5];
        let mut counts = std::collections::BTreeMap::<[Vec<u32>; 2], u32>::new();
        let mut deal = Deal::default();
        for ring in 0..RINGS {
            let columns = [0, 1].map(|column| deal.column([ring, column], 3, &people).to_vec());
            *counts.entry(columns).or_default() += 1;
        }
        let expected = RINGS as f64 / 36.0;
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(counts.len() == 36 && chi < 90.0, "{chi}");
        let (mut same, people) = (0, (0..8).collect::<Vec<u64>>());
        for ring in 0..1000 {
            let before = deal.column([ring, 0], 8, &people).to_vec();
            same += deal
                .column([ring, 0], 8, &people[..7])
                .iter()
                .zip(before)
                .filter(|(now, before)| **now == *before)
                .count();
        }
        // At most 7 of 8 can stay.
        assert!(same > 5 * 1000, "{same}");
    }
}
