//! The sensitive-attribute update graph (SUG): what a reader infers of one record from all releases that had it.
//!
//! F. Li and S. Zhou 2008 (m-Distinct), Section III. A node is a value that the record can have in a release, weighing its
//! share of the candidates; an edge is an update that can happen between two releases, weighing its probability. What the
//! record really went through is a *path*. A path weighs the product of its nodes and edges, and the *disclosure risk* of a
//! value in a release is the share of all weight that passes its node. The paper enumerates paths; forward and backward sums
//! give the same in time linear in the edges. Later releases change the risk of earlier ones.
//!
//! With the identity as update relation this is the intersection attack on m-invariance.

use super::Updates;

/// The candidates of a record in one release.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Number of the release, or any time that counts the snapshots: a record that is in 3 and 5 missed one.
    pub release: u64,
    /// Codes of the record's possible values by this release alone, with weights above 0. Only ratios of weights count.
    /// No value twice.
    pub candidates: Vec<(u32, f64)>,
}

impl Layer {
    /// Makes equally likely candidates, as in a group with no value twice.
    pub fn uniform(release: u64, values: impl ExactSizeIterator<Item = u32>) -> Self {
        let weight = 1.0 / values.len().max(1) as f64;
        Self { release, candidates: values.map(|value| (value, weight)).collect() }
    }
}

/// Rest of a layer: the nodes of the feasible sub-graph and their disclosure risks, which sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Number of the release.
    pub release: u64,
    /// Codes of the record's possible values by all releases, in the layer's order, with risks.
    pub candidates: Vec<(u32, f64)>,
}

impl Version {
    /// Returns the probability that the record has this value; 0 if it cannot.
    pub fn risk(&self, value: u32) -> f64 {
        self.candidates.iter().find(|(candidate, _)| *candidate == value).map_or(0.0, |(_, risk)| *risk)
    }
}

/// Computes risks. Keeps its working memory from record to record: one number per value.
#[derive(Debug)]
pub struct UpdateGraph<'a> {
    updates: &'a Updates,
    identity: bool,
    /// Place of each value in a layer.
    place: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

/// A layer with sums. In place of a release that the record missed stands a layer of all values it can have had.
struct Sums {
    /// Release of a layer that was given.
    release: Option<u64>,
    values: Vec<u32>,
    weights: Vec<f64>,
    /// Weight of all paths from the first layer through each node, up to a factor. The node's own weight is included.
    forward: Vec<f64>,
    /// True for each node with such a path; sums of many small weights can vanish.
    reached: Vec<bool>,
}

impl<'a> UpdateGraph<'a> {
    /// Returns a graph over the values of this relation.
    pub fn new(updates: &'a Updates) -> Self {
        Self { updates, identity: updates.is_identity(), place: vec![NOWHERE; updates.values()] }
    }

    /// Returns the feasible sub-graph of a record and the risk of each of its nodes. `layers` are in ascending order of releases; the
    /// release in `Layer` tells how many were missed in between, over which updates are composed: P to the power of their
    /// number and one.
    ///
    /// `None` if no path leads through all layers: no record can have been in all of these releases, so whoever says so is
    /// wrong.
    pub fn versions(&mut self, layers: &[Layer]) -> Option<Vec<Version>> {
        self.versions_of(layers.iter().map(|layer| (layer.release, layer.candidates.as_slice())))
    }

    /// Finds the versions of layers that are pairs of release and candidates.
    pub(super) fn versions_of<'b>(
        &mut self,
        layers: impl Iterator<Item = (u64, &'b [(u32, f64)])>,
    ) -> Option<Vec<Version>> {
        let mut layers = layers.peekable();
        let first = layers.next();
        let Some((release, candidates)) = first.filter(|_| layers.peek().is_none()) else {
            return self.sums(first.into_iter().chain(layers));
        };
        // Most records are asked about in one release: every candidate is a path.
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let candidates: Vec<(u32, f64)> = candidates.iter().map(|(value, weight)| (*value, weight / total)).collect();
        (!candidates.is_empty()).then(|| vec![Version { release, candidates }])
    }

    fn sums<'b>(&mut self, layers: impl Iterator<Item = (u64, &'b [(u32, f64)])>) -> Option<Vec<Version>> {
        let mut sums: Vec<Sums> = Vec::new();
        for (release, candidates) in layers {
            // Whatever happened in between: every value can have followed, all equally probable.
            let between = !self.identity && !self.updates.is_any();
            if let Some(before) = sums.last().and_then(|sums| sums.release).filter(|_| between) {
                for _ in before + 1..release {
                    let missed = self.missed(sums.last()?);
                    sums.push(self.step(sums.last(), missed));
                }
            }
            let given = Sums {
                release: Some(release),
                values: candidates.iter().map(|(value, _)| *value).collect(),
                weights: candidates.iter().map(|(_, weight)| *weight).collect(),
                forward: Vec::new(),
                reached: Vec::new(),
            };
            let next = self.step(sums.last(), given);
            sums.push(next);
        }
        self.backward(&sums)
    }

    /// Returns all values that can follow those of a layer.
    fn missed(&mut self, before: &Sums) -> Sums {
        let mut values = Vec::new();
        for (&value, _) in before.values.iter().zip(&before.reached).filter(|(_, reached)| **reached) {
            for (next, _) in self.updates.cus(value) {
                if self.place[next as usize] == NOWHERE {
                    self.place[next as usize] = 0;
                    values.push(next);
                }
            }
        }
        values.iter().for_each(|&value| self.place[value as usize] = NOWHERE);
        values.sort_unstable();
        Sums { release: None, weights: vec![1.0; values.len()], values, forward: Vec::new(), reached: Vec::new() }
    }

    /// Computes the forward sums of the layer after `before`.
    fn step(&mut self, before: Option<&Sums>, mut layer: Sums) -> Sums {
        match before {
            None => {
                layer.forward.clone_from(&layer.weights);
                layer.reached = vec![true; layer.values.len()];
            }
            Some(before) if self.updates.is_any() => {
                let reached = before.forward.iter().zip(&before.reached).filter(|(_, reached)| **reached);
                let sum: f64 = reached.map(|(sum, _)| sum).sum();
                layer.forward = layer.weights.iter().map(|weight| sum * weight).collect();
                layer.reached = vec![before.reached.contains(&true); layer.values.len()];
            }
            Some(before) => {
                layer.forward = vec![0.0; layer.values.len()];
                layer.reached = vec![false; layer.values.len()];
                self.mark(&layer.values);
                for ((&value, &sum), &reached) in before.values.iter().zip(&before.forward).zip(&before.reached) {
                    for (next, probability) in self.updates.cus(value).filter(|_| reached) {
                        let place = self.place[next as usize] as usize;
                        if let Some(to) = layer.forward.get_mut(place) {
                            *to += sum * probability;
                            layer.reached[place] = true;
                        }
                    }
                }
                self.unmark(&layer.values);
                layer.forward.iter_mut().zip(&layer.weights).for_each(|(sum, weight)| *sum *= weight);
            }
        }
        normalize(&mut layer.forward);
        layer
    }

    fn backward(&mut self, sums: &[Sums]) -> Option<Vec<Version>> {
        let mut versions = Vec::new();
        // Weight of all paths from each node of the layer to the last layer, the node not included; and whether there are any.
        let mut after: Option<(&Sums, Vec<f64>, Vec<bool>)> = None;
        for layer in sums.iter().rev() {
            let mut backward = vec![1.0; layer.values.len()];
            let mut leads = layer.reached.clone();
            if let Some((next, sums, alive)) = after.as_ref().filter(|_| self.updates.is_any()) {
                let ways = next.weights.iter().zip(sums).zip(alive).filter(|(_, alive)| **alive);
                let sum: f64 = ways.map(|((weight, sum), _)| weight * sum).sum();
                backward.fill(sum);
                leads.iter_mut().for_each(|leads| *leads &= alive.contains(&true));
            } else if let Some((next, sums, alive)) = &after {
                self.mark(&next.values);
                for ((&value, sum), leads) in layer.values.iter().zip(&mut backward).zip(&mut leads) {
                    *sum = 0.0;
                    let mut any = false;
                    for (to, probability) in self.updates.cus(value) {
                        let place = self.place[to as usize] as usize;
                        if alive.get(place) == Some(&true) {
                            *sum += probability * next.weights[place] * sums[place];
                            any = true;
                        }
                    }
                    *leads &= any;
                }
                self.unmark(&next.values);
            }
            normalize(&mut backward);
            if !leads.contains(&true) {
                return None;
            }
            if let Some(release) = layer.release {
                let through = layer.forward.iter().zip(&backward).map(|(forward, backward)| forward * backward);
                let alive: Vec<(u32, f64)> = (layer.values.iter().copied().zip(through).zip(&leads))
                    .filter_map(|(node, leads)| leads.then_some(node))
                    .collect();
                let total: f64 = alive.iter().map(|(_, through)| through).sum();
                let candidates = alive.into_iter().map(|(value, through)| (value, through / total)).collect();
                versions.push(Version { release, candidates });
            }
            after = Some((layer, backward, leads));
        }
        versions.reverse();
        Some(versions)
    }

    fn mark(&mut self, values: &[u32]) {
        values.iter().zip(0..).for_each(|(&value, place)| self.place[value as usize] = place);
    }

    fn unmark(&mut self, values: &[u32]) {
        values.iter().for_each(|&value| self.place[value as usize] = NOWHERE);
    }
}

/// Scales so that the greatest is 1: products over many releases would vanish.
fn normalize(sums: &mut [f64]) {
    let most = sums.iter().copied().fold(0.0, f64::max);
    if most > 0.0 {
        sums.iter_mut().for_each(|sum| *sum /= most);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::Update;
    use super::*;

    /// Returns every path through the layers with its weight, by the definition: products of nodes and edges, edges over missed
    /// releases by all ways through all values.
    fn paths(updates: &Updates, layers: &[Layer]) -> Vec<(Vec<u32>, f64)> {
        let Some((last, before)) = layers.split_last() else { return vec![(vec![], 1.0)] };
        let steps = before.last().map_or(0, |layer| last.release - layer.release);
        let mut found = Vec::new();
        for (path, weight) in paths(updates, before) {
            let mut reach: BTreeMap<u32, f64> = path.last().map(|&value| (value, 1.0)).into_iter().collect();
            for _ in 0..steps {
                let mut next = BTreeMap::new();
                for (value, weight) in reach {
                    updates.cus(value).for_each(|(to, p)| *next.entry(to).or_insert(0.0) += weight * p);
                }
                reach = next;
            }
            for &(value, node) in &last.candidates {
                let edge = if path.is_empty() { Some(1.0) } else { reach.get(&value).copied() };
                if let Some(edge) = edge {
                    found.push(([path.clone(), vec![value]].concat(), weight * edge * node));
                }
            }
        }
        found
    }

    /// Returns the risks by the definition: shares of the paths that pass.
    fn by_paths(updates: &Updates, layers: &[Layer]) -> Option<Vec<Version>> {
        let paths = paths(updates, layers);
        let total: f64 = paths.iter().map(|(_, weight)| weight).sum();
        (!paths.is_empty()).then(|| {
            let version = |(i, layer): (usize, &Layer)| {
                let through = |value: u32| -> Option<(u32, f64)> {
                    let mut passing = paths.iter().filter(|(path, _)| path[i] == value).peekable();
                    passing.peek()?;
                    Some((value, passing.map(|(_, weight)| weight).sum::<f64>() / total))
                };
                let candidates = layer.candidates.iter().filter_map(|(value, _)| through(*value)).collect();
                Version { release: layer.release, candidates }
            };
            layers.iter().enumerate().map(version).collect()
        })
    }

    fn close(a: &[Version], b: &[Version]) -> bool {
        a.iter().zip(b).all(|(a, b)| {
            let near = |((v, x), (w, y)): (&(u32, f64), &(u32, f64))| v == w && (x - y).abs() < 1e-9;
            a.release == b.release
                && a.candidates.len() == b.candidates.len()
                && a.candidates.iter().zip(&b.candidates).all(near)
        })
    }

    /// Example 4, with nodes around it that lead nowhere. Codes: layer 1 has 0, 1, 2 (and 9), layer 2 has 0, 3, 4, 2 (and 8),
    /// layer 3 has 0, 5, 6, 7, 2 (and 9).
    #[test]
    fn example_4_of_the_paper() {
        let rows = [
            Update::probable(1, 3, 0.5),
            Update::probable(1, 4, 0.5),
            Update::probable(3, 5, 1.0),
            Update::probable(4, 6, 0.5),
            Update::probable(4, 7, 0.5),
        ];
        let updates = Updates::try_new(10, &rows).unwrap();
        let layer = |release, values: &[u32], weight: f64| Layer {
            release,
            candidates: values.iter().map(|&value| (value, weight)).collect(),
        };
        let layers = [
            layer(1, &[0, 1, 2, 9], 1.0 / 3.0),
            layer(2, &[0, 3, 4, 2, 8], 1.0 / 3.0),
            layer(3, &[0, 5, 6, 7, 2, 9], 1.0 / 2.0),
        ];
        let weights: Vec<f64> = paths(&updates, &layers).into_iter().map(|(_, weight)| weight).collect();
        let expected = [1.0 / 18.0, 1.0 / 36.0, 1.0 / 72.0, 1.0 / 72.0, 1.0 / 18.0];
        assert_eq!(weights.len(), expected.len());
        assert!(weights.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{weights:?}");

        let versions = UpdateGraph::new(&updates).versions(&layers).unwrap();
        let risks = [versions[0].risk(1), versions[1].risk(4), versions[2].risk(6)];
        assert!(risks.iter().zip([1.0 / 3.0, 1.0 / 6.0, 1.0 / 12.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{risks:?}");
        assert_eq!(versions[0].candidates.len(), 3, "9 leads nowhere");
        assert_eq!(versions[1].candidates.len(), 4, "nothing leads to 8");
        assert_eq!(versions[2].risk(9), 0.0);
    }

    /// Figure 1 of the paper: Julia's first disease is certain after the second release, her second one is not.
    #[test]
    fn a_later_release_discloses_an_earlier_value() {
        let (dyspepsia, pneumonia, cancer) = (0, 1, 2);
        let updates =
            Updates::try_new(3, &[Update::possible(pneumonia, cancer), Update::possible(cancer, pneumonia)]).unwrap();
        let first = Layer::uniform(1, [dyspepsia, pneumonia].into_iter());
        let second = Layer::uniform(2, [cancer, pneumonia].into_iter());
        let mut graph = UpdateGraph::new(&updates);
        let alone = graph.versions(std::slice::from_ref(&first)).unwrap();
        assert_eq!(alone[0].risk(pneumonia), 0.5);
        let both = graph.versions(&[first, second]).unwrap();
        assert_eq!(both[0].candidates, [(pneumonia, 1.0)]);
        assert_eq!((both[1].risk(cancer), both[1].risk(pneumonia)), (0.5, 0.5));
    }

    #[test]
    fn with_the_identity_it_is_intersection() {
        let updates = Updates::identity(4);
        let layers = [Layer::uniform(1, [0, 1, 2].into_iter()), Layer::uniform(7, [1, 2, 3].into_iter())];
        let mut graph = UpdateGraph::new(&updates);
        let versions = graph.versions(&layers).unwrap();
        assert!(versions.iter().all(|version| version.candidates == [(1, 0.5), (2, 0.5)]));
        let apart = [Layer::uniform(1, [0].into_iter()), Layer::uniform(2, [1].into_iter())];
        assert_eq!(graph.versions(&apart), None);
    }

    /// A thousand releases of ten values: plain products of weights would be 1e-1000.
    #[test]
    fn long_lives_do_not_vanish() {
        let updates = Updates::identity(10);
        let layers: Vec<Layer> = (0..1000).map(|release| Layer::uniform(release, 0..10_u32)).collect();
        let versions = UpdateGraph::new(&updates).versions(&layers).unwrap();
        assert!(versions.iter().all(|version| (version.risk(3) - 0.1).abs() < 1e-9));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Forward and backward sums are the sums over all paths.
        #[test]
        fn sums_agree_with_the_definition(
            rows in prop::collection::vec((0..5_u32, 0..5_u32), 0..12),
            layers in prop::collection::vec((1..4_u64, prop::collection::btree_map(0..5_u32, 1..9_u32, 1..5)), 1..5),
        ) {
            let rows: Vec<Update> = rows.into_iter().map(|(from, to)| Update::possible(from, to)).collect();
            let updates = Updates::try_new(5, &rows).unwrap();
            let mut release = 0;
            let layers: Vec<Layer> = layers
                .into_iter()
                .map(|(step, weights)| {
                    release += step;
                    let candidates = weights.into_iter().map(|(value, weight)| (value, f64::from(weight))).collect();
                    Layer { release, candidates }
                })
                .collect();
            match (UpdateGraph::new(&updates).versions(&layers), by_paths(&updates, &layers)) {
                (Some(found), Some(expected)) => prop_assert!(close(&found, &expected), "{found:?} {expected:?}"),
                (found, expected) => prop_assert_eq!(found, expected),
            }
        }
    }
}
