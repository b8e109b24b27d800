//! Numbers of new rows of each value that balance the buckets of returning ones. Counts only.
//!
//! m-Invariance's paper goes bucket by bucket and takes a new row whenever the rest stays eligible, so its result depends on the order
//! of the buckets. The minimum over all orders is easy to find: for `X` rows moved in all, the rest of
//! `N - X` rows is m-eligible when no value keeps more than `T = floor((N - X)/m)`, which asks for at least `n_v - T` and
//! allows at most `min(n_v, need_v)` rows of value `v`.

use serde::{Deserialize, Serialize};

use super::lots::Lots;
use crate::error::{Cures, Error, thousands};
use crate::state::Signatures;

/// Rule by which buckets of returning rows are balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// With new rows where they are to spare, else with counterfeits: as few counterfeits as possible, the paper's aim. A
    /// reader who knows that new rows are spent first can reason from what was *not* filled with one: a counterfeit
    /// beside a person hints at which value was missing, sometimes with certainty.
    Minimal,
    /// With counterfeits only, without a look at the new rows. Closes that channel at the price of more counterfeits: of
    /// m-invariance, whose releases are all made so, a reader who knows this program infers nothing beyond `1/m`.
    #[default]
    Blind,
}

/// Treatment of new rows that are not m-eligible. Their most frequent value makes up more than `1/m` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnIneligible {
    /// Publish nothing and say by how much.
    #[default]
    Refuse,
    /// Add counterfeits of other values. A reader who knows this code can tell that a real row beside such padding
    /// carries the over-represented value.
    Counterfeit,
    /// Leave the surplus rows out; they stay new for the next release. They all carry the over-represented value, so a
    /// reader who knows who was present and finds somebody uncovered learns much: outside the guarantee.
    Withhold,
}

/// Settings of a method of re-publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    /// Least number of different values in a group.
    pub m: usize,
    pub balance: Balance,
    pub on_ineligible: OnIneligible,
}

/// Moves of the new rows of each value, by code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moves {
    /// Rows that go to old buckets.
    pub moved: Vec<usize>,
    /// Counterfeits that join the rows to be assigned.
    pub padding: Vec<usize>,
    /// Rows that stay out of the release.
    pub withheld: Vec<usize>,
}

impl Policy {
    /// Decides for `new[v]` new rows and `need[v]` places in old buckets. `None` when the new rows are not m-eligible
    /// whatever is moved, and the policy says to refuse (or asks for more values than there are).
    pub(super) fn moves(&self, new: &[usize], need: &[usize], lots: &mut impl Lots) -> Option<Moves> {
        let m = self.m;
        let most = self.most(new, need);
        let none = vec![0; new.len()];
        if let Some(moved) = largest_move(new, &most, m, lots) {
            return Some(Moves { moved, padding: none.clone(), withheld: none });
        }
        match self.on_ineligible {
            OnIneligible::Refuse => None,
            _ if new.len() < m => None,
            OnIneligible::Counterfeit => {
                let rest: Vec<usize> = new.iter().zip(&most).map(|(n, moved)| n - moved).collect();
                Some(Moves { moved: most, padding: padding(&rest, m, lots), withheld: none })
            }
            OnIneligible::Withhold => {
                let cap = eligible_cap(new, m);
                let withheld: Vec<usize> =
                    new.iter().zip(&most).map(|(&n, &most)| (n - most).saturating_sub(cap)).collect();
                let kept: Vec<usize> = new.iter().zip(&withheld).map(|(n, withheld)| n - withheld).collect();
                let moved = largest_move(&kept, &most, m, lots)?;
                Some(Moves { moved, padding: none, withheld })
            }
        }
    }

    /// Returns the greatest number of rows of each value that can be moved.
    fn most(&self, new: &[usize], need: &[usize]) -> Vec<usize> {
        match self.balance {
            Balance::Minimal => new.iter().zip(need).map(|(&n, &need)| n.min(need)).collect(),
            Balance::Blind => vec![0; new.len()],
        }
    }

    /// Returns the reason why there are no [`moves`](Self::moves), and what would do. `most` says what the most
    /// frequent one is one of (`value of disease`), `values` how many different ones are to be had.
    pub(super) fn refusal(&self, new: &[usize], need: &[usize], most: &str, values: &str) -> Error {
        self.refusal_or(new, need, most, values, Some(("on_ineligible", "'counterfeit'")))
    }

    /// Returns the same where nobody is padded or left out in any mode.
    pub(super) fn refusal_of_all(&self, new: &[usize], need: &[usize], most: &str, values: &str) -> Error {
        self.refusal_or(new, need, most, values, None)
    }

    fn refusal_or(
        &self,
        new: &[usize],
        need: &[usize],
        most: &str,
        values: &str,
        or: Option<(&'static str, &'static str)>,
    ) -> Error {
        let m = self.m;
        if new.len() < m {
            let few = new.len();
            let text = format!("m = {m} but {values}; every group needs m different ones, so m can be at most {few}");
            let room = self.most(new, need);
            let lower = (2..=few).rev().find(|&m| largest_total(new, &room, m).is_some()).map(|m| ("m", m));
            return Error::unfit(text, Cures { lower, rows: "rows of more values", ..Cures::default() });
        }
        let total: usize = new.iter().sum();
        let distinct = new.iter().filter(|&&count| count > 0).count();
        let greatest = new.iter().max().copied().unwrap_or(0);
        let few = if distinct < m { format!(" (they have only {distinct} different ones)") } else { String::new() };
        let room = self.most(new, need);
        let cures = Cures {
            lower: (2..m).rev().find(|&m| largest_total(new, &room, m).is_some()).map(|m| ("m", m)),
            or,
            rows: "new rows of other values",
            remark: "whoever learns that these rows were refused and sees them published with others later can become certain of \
                     their values",
        };
        let text = format!(
            "the {} new rows are not {m}-eligible: the most frequent {most} makes up {:.2}% of them and at most \
             1/m = {:.2}% is allowed, {} rows too many{few}",
            thousands(total),
            100.0 * greatest as f64 / total as f64,
            100.0 / m as f64,
            thousands(greatest.saturating_sub(total / m)),
        );
        Error::unfit(text, cures)
    }

    /// Fails when earlier releases were made with a smaller m.
    pub(super) fn check_signatures(&self, known: &Signatures) -> crate::error::Result<()> {
        check_signatures("m", self.m, known)
    }
}

/// Checks that known signatures have the values that the parameter of this name asks for.
///
/// # Errors
/// When earlier releases were made with a smaller number.
pub(super) fn check_signatures(parameter: &str, least: usize, known: &Signatures) -> crate::error::Result<()> {
    let lengths = || known.all().iter().map(|signature| signature.len());
    let short = lengths().filter(|&length| length < least).count();
    if short == 0 {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{parameter} = {least} is more than the earlier releases were made with: {} of the {} signatures in `previous` have fewer \
         values; the largest {parameter} that they allow is {}",
        thousands(short),
        thousands(known.all().len()),
        lengths().min().unwrap_or(0),
    )))
}

/// Returns the largest move (`x_v <= most_v`) that leaves m-eligible rows, `None` if there is none.
fn largest_move(new: &[usize], most: &[usize], m: usize, lots: &mut impl Lots) -> Option<Vec<usize>> {
    largest_total(new, most, m).map(|(cap, total)| lowest_peaks(new, most, cap, total, lots))
}

/// Returns the rows of the largest move, and the most rows left of a value. O(V log V + N/m).
fn largest_total(new: &[usize], most: &[usize], m: usize) -> Option<(usize, usize)> {
    let total: usize = new.iter().sum();
    let most_total: usize = most.iter().sum();
    let mut falling = new.to_vec();
    falling.sort_unstable_by(|a, b| b.cmp(a));
    // No value may keep more than `cap`; what cannot be moved must stay.
    let must_stay = new.iter().zip(most).map(|(n, most)| n - most).max().unwrap_or(0);
    let first_cap = must_stay.max((total - most_total) / m);
    let mut above = falling.iter().take_while(|&&n| n > first_cap).count();
    let mut above_total: usize = falling[..above].iter().sum();
    // Feasible totals do not form an interval, so every cap is tried, and with it the largest total that leads to it.
    for cap in first_cap..=total / m {
        while above > 0 && falling[above - 1] <= cap {
            above -= 1;
            above_total -= falling[above];
        }
        let least_total = above_total - above * cap;
        let moved_total = most_total.min(total - m * cap);
        if least_total <= moved_total {
            return Some((cap, moved_total));
        }
    }
    None
}

/// Finds the values that the move takes: the most frequent after it, to a common level. Of those that are on it,
/// some give one row more, which is decided by lot: a reader of the code would know the first ones.
fn lowest_peaks(new: &[usize], most: &[usize], cap: usize, total: usize, lots: &mut impl Lots) -> Vec<usize> {
    let move_to = |level: usize| -> Vec<usize> {
        new.iter().zip(most).map(|(&n, &most)| n.saturating_sub(level.min(cap)).min(most)).collect()
    };
    // The lowest level that moves no more than `total`.
    let (mut low, mut high) = (0, cap);
    while low < high {
        let middle = low.midpoint(high);
        if move_to(middle).iter().sum::<usize>() <= total { high = middle } else { low = middle + 1 }
    }
    let mut moved = move_to(low);
    let rest = total - moved.iter().sum::<usize>();
    if rest > 0 {
        let below = move_to(low.saturating_sub(1));
        let mut peaks: Vec<usize> = (0..new.len()).filter(|&v| below[v] > moved[v]).collect();
        lots.shuffle(&mut peaks);
        peaks.into_iter().take(rest).for_each(|v| moved[v] += 1);
    }
    moved
}

/// Returns the counterfeits that make `rest` m-eligible: with `L` its greatest count, `m * L` rows in all, no value above `L`.
/// Spread over the values in proportion to the room they have, remainders at random.
fn padding(rest: &[usize], m: usize, lots: &mut impl Lots) -> Vec<usize> {
    let greatest = rest.iter().max().copied().unwrap_or(0);
    let total = m.saturating_mul(greatest).saturating_sub(rest.iter().sum());
    let rooms: Vec<usize> = rest.iter().map(|count| greatest - count).collect();
    let room: usize = rooms.iter().sum();
    let share = |room_v: usize| if room == 0 { 0 } else { (total as u128 * room_v as u128 / room as u128) as usize };
    let mut padding: Vec<usize> = rooms.iter().map(|&room_v| share(room_v)).collect();
    let mut left = total - padding.iter().sum::<usize>();
    let mut order: Vec<usize> = (0..rest.len()).collect();
    lots.shuffle(&mut order);
    for v in order {
        let more = left.min(1).min(rooms[v] - padding[v]);
        padding[v] += more;
        left -= more;
    }
    padding
}

/// Returns the largest `T` with m-eligible rows if no value has more than `T` rows.
fn eligible_cap(counts: &[usize], m: usize) -> usize {
    let (mut low, mut high) = (0, counts.iter().max().copied().unwrap_or(0));
    // sum min(n, T) - m T is concave and 0 at T = 0, so the caps that do form an interval.
    while low < high {
        let middle = (low + high).div_ceil(2);
        let kept: usize = counts.iter().map(|&n| n.min(middle)).sum();
        if kept >= m.saturating_mul(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    fn policy(m: usize) -> Policy {
        Policy { m, balance: Balance::Minimal, on_ineligible: OnIneligible::default() }
    }

    fn is_eligible(counts: impl Iterator<Item = usize> + Clone, m: usize) -> bool {
        counts.clone().max().unwrap_or(0) * m <= counts.sum()
    }

    /// Returns all vectors with `x_v <= limits_v`.
    fn every(limits: &[usize]) -> Vec<Vec<usize>> {
        limits.iter().fold(vec![vec![]], |vectors, &limit| {
            let extend =
                |vector: &Vec<usize>| (0..=limit).map(|x| [vector.as_slice(), &[x]].concat()).collect::<Vec<_>>();
            vectors.iter().flat_map(extend).collect()
        })
    }

    proptest! {
        #[test]
        fn moves_are_the_largest_there_are(
            (new, need) in (1_usize..5).prop_flat_map(|values| {
                (prop::collection::vec(0_usize..6, values), prop::collection::vec(0_usize..6, values))
            }),
            m in 2_usize..4,
        ) {
            let mut rng = ChaCha20Rng::seed_from_u64(0);
            let limits: Vec<usize> = new.iter().zip(&need).map(|(&n, &need)| n.min(need)).collect();
            let brute = every(&limits)
                .into_iter()
                .filter(|x| is_eligible(new.iter().zip(x).map(|(n, x)| n - x), m))
                .map(|x| x.iter().sum::<usize>())
                .max();
            let ours = policy(m).moves(&new, &need, &mut rng);
            prop_assert_eq!(ours.as_ref().map(|moves| moves.moved.iter().sum::<usize>()), brute);
            if let Some(ours) = ours {
                prop_assert!(ours.moved.iter().zip(&limits).all(|(x, limit)| x <= limit));
                prop_assert!(is_eligible(new.iter().zip(&ours.moved).map(|(n, x)| n - x), m));
            }
        }

        #[test]
        fn padding_makes_anything_eligible_with_the_least(
            new in prop::collection::vec(0_usize..9, 1..7),
            need in prop::collection::vec(0_usize..4, 7),
            m in 2_usize..5,
        ) {
            let need = &need[..new.len()];
            let params = Policy { on_ineligible: OnIneligible::Counterfeit, ..policy(m) };
            let ours = params.moves(&new, need, &mut ChaCha20Rng::seed_from_u64(1));
            prop_assert_eq!(ours.is_none(), new.len() < m && policy(m).moves(&new, need, &mut ChaCha20Rng::seed_from_u64(1)).is_none());
            if let Some(ours) = ours {
                let after = (0..new.len()).map(|v| new[v] - ours.moved[v] + ours.padding[v]);
                prop_assert!(is_eligible(after, m));
                if ours.padding.iter().any(|&p| p > 0) {
                    // The paper's total: sum need - N + m L.
                    let greatest = new.iter().zip(need).map(|(&n, &need)| n - n.min(need)).max().unwrap();
                    let counterfeits = need.iter().sum::<usize>() - ours.moved.iter().sum::<usize>() + ours.padding.iter().sum::<usize>();
                    prop_assert_eq!(counterfeits, need.iter().sum::<usize>() + m * greatest - new.iter().sum::<usize>());
                }
            }
        }

        #[test]
        fn withholding_leaves_out_as_little_as_possible(
            (new, need) in (1_usize..4).prop_flat_map(|values| {
                (prop::collection::vec(0_usize..6, values), prop::collection::vec(0_usize..4, values))
            }),
            m in 2_usize..4,
        ) {
            let params = Policy { on_ineligible: OnIneligible::Withhold, ..policy(m) };
            prop_assume!(new.len() >= m);
            let ours = params.moves(&new, &need, &mut ChaCha20Rng::seed_from_u64(2)).unwrap();
            let rest = |v: usize| new[v] - ours.moved[v] - ours.withheld[v];
            prop_assert!(is_eligible((0..new.len()).map(rest), m));
            let brute = every(&new)
                .into_iter()
                .filter(|withheld| {
                    let kept: Vec<usize> = new.iter().zip(withheld).map(|(n, w)| n - w).collect();
                    policy(m).moves(&kept, &need, &mut ChaCha20Rng::seed_from_u64(2)).is_some()
                })
                .map(|withheld| withheld.iter().sum::<usize>())
                .min();
            prop_assert_eq!(Some(ours.withheld.iter().sum::<usize>()), brute);
        }
    }

    #[test]
    fn feasible_totals_need_not_be_an_interval() {
        // One new row each of two values, five places for each: moving 0 or 2 is fine, 1 is not.
        let moves = policy(2).moves(&[1, 1], &[5, 5], &mut ChaCha20Rng::seed_from_u64(0)).unwrap();
        assert_eq!(moves.moved, [1, 1]);
    }

    /// Four new rows of different values, and places for three of them: one may go, so that the rest is 3-eligible. Which is drawn.
    #[test]
    fn remainders_go_by_lot() {
        let mut moved = [0; 4];
        for seed in 0..3000 {
            let moves = policy(3).moves(&[1, 1, 1, 1], &[1, 1, 1, 0], &mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
            assert_eq!(moves.moved.iter().sum::<usize>(), 1);
            moved.iter_mut().zip(moves.moved).for_each(|(sum, moved)| *sum += moved);
        }
        assert!(moved[..3].iter().all(|times| (900..1100).contains(times)) && moved[3] == 0, "{moved:?}");
    }

    #[test]
    fn blind_balancing_moves_nothing() {
        let params = Policy { balance: Balance::Blind, ..policy(2) };
        let moves = params.moves(&[3, 3], &[5, 5], &mut ChaCha20Rng::seed_from_u64(0)).unwrap();
        assert_eq!(moves.moved, [0, 0]);
    }
}
