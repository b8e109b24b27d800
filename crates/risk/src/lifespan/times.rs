//! Releases of one period: nobody's value changes between them, so that a person has in all of them what is left of their candidates together.

use super::super::{UpdateGraph, Version};

/// Returns what is left of a person's candidates, release by release in ascending order; `time` tells when a release was made, in steps of the update
/// relation. `None` if no history of values explains all of them.
pub(super) fn versions_at(
    graph: &mut UpdateGraph<'_>,
    layers: &[(u64, &[(u32, f64)])],
    time: impl Fn(u64) -> u64,
) -> Option<Vec<Version>> {
    let mut merged: Vec<(u64, Vec<(u32, f64)>)> = Vec::new();
    for &(release, candidates) in layers {
        match merged.last_mut().filter(|(at, _)| *at == time(release)) {
            // With the weights of both.
            Some((_, before)) => before.retain_mut(|(value, weight)| {
                let same = candidates.iter().find(|(candidate, _)| candidate == value);
                same.map(|(_, other)| *weight *= other).is_some()
            }),
            None => merged.push((time(release), candidates.to_vec())),
        }
    }
    if merged.iter().any(|(_, candidates)| candidates.is_empty()) {
        return None;
    }
    let versions = graph.versions_of(merged.iter().map(|(at, candidates)| (*at, candidates.as_slice())))?;
    let of_release = |&(release, _): &(u64, &[(u32, f64)])| {
        let at = versions.iter().find(|version| version.release == time(release))?;
        Some(Version { release, candidates: at.candidates.clone() })
    };
    Some(layers.iter().filter_map(of_release).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::{Update, Updates};
    use super::*;

    /// Two values that become each other with a tenth: of two releases of one day what is in one of them only is not left, and three days are three steps.
    #[test]
    fn values_stay_within_a_period_and_change_between() {
        let rows = [(0, 1), (1, 0)].map(|(from, to)| Update::probable(from, to, 0.1));
        let updates = Updates::try_new(3, &rows).unwrap();
        let both: &[(u32, f64)] = &[(0, 0.5), (1, 0.5)];
        let (one, other): (&[(u32, f64)], &[(u32, f64)]) = (&[(0, 0.5), (2, 0.5)], &[(1, 1.0)]);
        let mut graph = UpdateGraph::new(&updates);
        let mut found = |layers: &[(u64, &[(u32, f64)])], times: [u64; 3]| {
            let versions = versions_at(&mut graph, layers, |release| times[release as usize - 1]);
            versions.map(|versions| {
                versions.iter().map(|version| (version.release, version.candidates.clone())).collect::<Vec<_>>()
            })
        };
        let same = found(&[(1, both), (2, one)], [7, 7, 9]).unwrap();
        assert_eq!(same, [(1, vec![(0, 1.0)]), (2, vec![(0, 1.0)])]);
        assert_eq!(found(&[(1, one), (2, other)], [7, 7, 9]), None, "nothing is in both");
        // From 0 on the first day to 1: with 0.1 in a step, with 0.1 * 0.9 * 2 in two.
        let risk = |found: Option<Vec<(u64, Vec<(u32, f64)>)>>| {
            found.unwrap()[1].1.iter().find(|(value, _)| *value == 1).unwrap().1
        };
        let after_one = risk(found(&[(1, one), (2, both)], [7, 8, 9]));
        let after_two = risk(found(&[(1, one), (3, both)], [7, 8, 9]));
        assert!((after_one - 0.1).abs() < 1e-9 && (after_two - 0.18).abs() < 1e-9, "{after_one} {after_two}");
    }
}
