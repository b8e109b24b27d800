//! Findings of a reader in a generalized release by some quasi-identifiers (MuCo, Figure 6).

use std::collections::HashMap;

use datafusion::error::Result;

use super::harness::Harness;
use super::input::quoted;

/// So many people stand for all.
const PEOPLE: usize = 1_000;

/// The release `released` of the table `people`.
#[derive(Debug)]
pub(super) struct Covered {
    groups: Vec<Group>,
    /// Quasi-identifiers and sensitive values of some people.
    people: Vec<(Vec<f64>, i64)>,
}

#[derive(Debug, Default)]
struct Group {
    /// Ranges of the quasi-identifiers.
    ranges: Vec<[f64; 2]>,
    rows: f64,
    /// Rows with each sensitive value.
    values: HashMap<i64, f64>,
}

impl Covered {
    /// Reads values as ranks, so that texts can be compared as well.
    pub(super) async fn read(harness: &Harness) -> Result<Self> {
        let input = &harness.input;
        let (id, value) = (quoted(&input.id), quoted(&input.sensitive[0]));
        let mut ranked = vec![format!("{id} AS person"), format!("dense_rank() OVER (ORDER BY {value}) AS v")];
        for (j, name) in input.quasi.iter().enumerate() {
            ranked.push(format!("dense_rank() OVER (ORDER BY {}) AS q{j}", quoted(name)));
        }
        harness.keep("ranked", &format!("SELECT {} FROM people", ranked.join(", "))).await?;
        let names: Vec<String> = (0..input.quasi.len()).map(|j| format!("q{j}")).collect();
        // A group's range is that of its people: Mondrian's are the smallest.
        let columns = harness
            .columns(&format!(
                "SELECT group_id, v, {} FROM ranked JOIN released ON ranked.person = released.{id} ORDER BY ranked.person",
                names.join(", ")
            ))
            .await?;
        let mut groups: HashMap<i64, Group> = HashMap::new();
        let mut people = Vec::new();
        for row in 0..columns[0].len() {
            let group = groups.entry(columns[0][row] as i64).or_default();
            let (value, point): (i64, Vec<f64>) =
                (columns[1][row] as i64, columns[2..].iter().map(|column| column[row]).collect());
            group.rows += 1.0;
            *group.values.entry(value).or_default() += 1.0;
            group.ranges.resize(point.len(), [f64::INFINITY, f64::NEG_INFINITY]);
            for (range, &at) in group.ranges.iter_mut().zip(&point) {
                *range = [range[0].min(at), range[1].max(at)];
            }
            people.push((point, value));
        }
        let step = people.len().div_ceil(PEOPLE).max(1);
        Ok(Self { groups: groups.into_values().collect(), people: people.into_iter().step_by(step).collect() })
    }

    /// Returns the identity and attribute disclosure, means over people: the reader matches each quasi-identifier with this probability, at least one.
    pub(super) fn disclosure(&self, p: f64) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for (point, value) in &self.people {
            let subsets = 1_usize << point.len();
            // Rows, and rows with the person's value, by the set of quasi-identifiers that they cover.
            let mut rows = vec![[0.0_f64; 2]; subsets];
            for group in &self.groups {
                let covers = |(at, range): (&f64, &[f64; 2])| range[0] <= *at && *at <= range[1];
                let mask = point
                    .iter()
                    .zip(&group.ranges)
                    .enumerate()
                    .map(|(j, pair)| usize::from(covers(pair)) << j)
                    .sum::<usize>();
                rows[mask][0] += group.rows;
                rows[mask][1] += group.values.get(value).copied().unwrap_or(0.0);
            }
            // By the set that they cover at least.
            for bit in (0..point.len()).map(|j| 1 << j) {
                for set in (0..subsets).filter(|set| set & bit == 0) {
                    let more = rows[set | bit];
                    rows[set] = [rows[set][0] + more[0], rows[set][1] + more[1]];
                }
            }
            let chance = |set: usize| {
                let matched = set.count_ones() as i32;
                p.powi(matched) * (1.0 - p).powi(point.len() as i32 - matched)
            };
            let known = 1.0 - chance(0);
            for (set, [rows, same]) in rows.into_iter().enumerate().skip(1) {
                sums[0] += chance(set) / known / rows;
                sums[1] += chance(set) / known * same / rows;
            }
        }
        sums.map(|sum| sum / self.people.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups on one attribute and a second attribute that all share.
    #[test]
    fn matches_by_one_or_both() {
        let group = |lo: f64, hi: f64, values: &[(i64, f64)]| Group {
            ranges: vec![[lo, hi], [1.0, 1.0]],
            rows: values.iter().map(|value| value.1).sum(),
            values: values.iter().copied().collect(),
        };
        let groups = vec![group(1.0, 2.0, &[(1, 1.0), (2, 1.0)]), group(3.0, 4.0, &[(1, 2.0), (3, 2.0)])];
        let covered = Covered { groups, people: vec![(vec![1.0, 1.0], 1)] };
        // Both, or the first: two rows, one with the value; the second alone: six rows, three with the value.
        let [identity, attribute] = covered.disclosure(0.5);
        assert!((identity - (2.0 / 3.0 * 0.5 + 1.0 / 3.0 / 6.0)).abs() < 1e-12, "{identity}");
        assert!((attribute - 0.5).abs() < 1e-12, "{attribute}");
        let [identity, _] = covered.disclosure(1.0);
        assert!((identity - 0.5).abs() < 1e-12, "{identity}");
    }
}
