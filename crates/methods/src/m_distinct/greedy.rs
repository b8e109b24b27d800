//! The paper's own assignment (Algorithms 2 and 3), with labels, to compare ours with: row after row goes into the bucket where
//! its score is best.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::bucket::{Bucket, Buckets, Cell};
use super::relation::Relation;
use super::tests::{History, Known, Pairs, Row, closure, encode, publish};
use super::units::Units;
use super::{MDistinct, OnIneligible, intersect};
use crate::assignment;
use crate::balance::{Balance, Policy};
use crate::microdata::Microdata;
use crate::state::Signatures;

/// A bucket and the box around its rows.
struct Boxed {
    bucket: Bucket,
    ends: Option<Vec<[f32; 2]>>,
}

impl Boxed {
    /// Returns the growth of the box by a row, in lengths: areas are 0 for flat boxes.
    fn growth(&self, at: &[f32]) -> f32 {
        let Some(ends) = &self.ends else { return 1.0 };
        let before: f32 = ends.iter().map(|[lo, hi]| hi - lo).sum();
        let after: f32 = ends.iter().zip(at).map(|([lo, hi], at)| hi.max(*at) - lo.min(*at)).sum();
        (after + 0.01) / (before + 0.01)
    }

    /// Computes Equation 3.
    fn score(&self, entry: usize, value: u32, at: &[f32]) -> f32 {
        let delta = self.bucket.height();
        let grows = self.bucket.frequency(value) == delta || self.bucket.loads[entry] == delta;
        if grows { -self.growth(at) } else { 1.0 / self.growth(at) }
    }

    fn add(&mut self, entry: usize, value: u32, at: &[f32]) {
        self.bucket.add(entry, value, 1);
        let ends = self.ends.get_or_insert_with(|| at.iter().map(|&at| [at, at]).collect());
        ends.iter_mut().zip(at).for_each(|(end, at)| *end = [end[0].min(*at), end[1].max(*at)]);
    }
}

/// Returns the counterfeits that the paper's assignment needs.
fn counterfeits(microdata: &Microdata, known: &Signatures, m: usize) -> usize {
    let values = microdata.sensitive().unwrap().domain.len();
    let mut relation = Relation::new(microdata.updates.as_deref(), values, true).unwrap();
    let mut buckets = Buckets::default();
    let kind = |row: usize, buckets: &mut Buckets, relation: &Relation| {
        let signature = known.number_of(row)? as usize;
        let kind = buckets.number(relation.kind(&known.all()[signature]), relation);
        Some((kind, known.label_of(row)? as usize))
    };
    let kinds: Vec<Option<(usize, usize)>> =
        (0..microdata.rows).map(|row| kind(row, &mut buckets, &relation)).collect();
    // Intersections are found by the gaps that a bucket has.
    for (kind, value) in kinds.iter().zip(microdata.sensitive_codes.iter()) {
        if let Some((kind, entry)) = *kind {
            buckets.list[kind].put(Cell { kind: kind as u32, value, entry }, 1);
        }
    }
    let (shared, _) = intersect::intersections(&mut buckets, &mut relation);
    let empty = |bucket: &Bucket| Boxed { bucket: Bucket::new(bucket.entries.clone(), &relation), ends: None };
    let mut boxed: Vec<Boxed> = buckets.list.iter().map(empty).collect();
    let mut places: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
    for (row, kind) in kinds.iter().enumerate() {
        let shares =
            |number: usize| shared.iter().any(|s| s.bucket == number && s.kinds.contains(&(kind.unwrap().0 as u32)));
        let mut fitting = Vec::new();
        let value = microdata.sensitive_codes.at(row as u32);
        for (number, boxed) in boxed.iter_mut().enumerate() {
            match *kind {
                None => fitting.extend((0..boxed.bucket.entries.len()).map(|entry| (number, entry))),
                Some((own, label)) if own == number || shares(number) => fitting.push((number, label)),
                Some(_) => {}
            }
        }
        fitting.retain(|&(number, entry)| boxed[number].bucket.fits(&relation, entry, value));
        places.push((row, fitting));
    }
    let number_of_buckets = |fitting: &[(usize, usize)]| fitting.chunk_by(|a, b| a.0 == b.0).count();
    places.sort_by_key(|(_, fitting)| number_of_buckets(fitting));
    let units = Units::new(&mut relation, m, false);
    let mut rest = vec![0; units.entries.len()];
    for (row, fitting) in places {
        let value = microdata.sensitive_codes.at(row as u32);
        let codes = microdata.quasi_of(row as u32).zip(&microdata.quasi);
        let at: Vec<f32> = codes.map(|(code, attribute)| attribute.domain.position(code)).collect();
        let score = |&(number, entry): &(usize, usize)| {
            (boxed[number].score(entry, value, &at), std::cmp::Reverse(boxed[number].bucket.loads[entry]))
        };
        let best = fitting.iter().max_by(|a, b| {
            let (a, b) = (score(a), score(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        });
        match best {
            Some(&(number, entry)) => boxed[number].add(entry, value, &at),
            None => rest[units.unit_of[value as usize] as usize] += 1,
        }
    }
    let policy = Policy { m, balance: Balance::Minimal, on_ineligible: OnIneligible::Counterfeit };
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let moves = policy.moves(&rest, &vec![0; rest.len()], &mut rng).unwrap();
    let padded: Vec<usize> = rest.iter().zip(&moves.padding).map(|(rows, padding)| rows + padding).collect();
    assert!(assignment::steps(&padded, m, &mut rng).is_ok());
    boxed.iter().map(|boxed| boxed.bucket.gaps()).sum::<usize>() + moves.padding.iter().sum::<usize>()
}

/// Compares publications of a thousand people with changing values, release after release.
fn compare(pairs: &Pairs, values: usize, seed: u64) -> [usize; 2] {
    let mut runner = TestRunner::deterministic();
    let closed: Vec<(String, String)> = closure(pairs).into_iter().collect();
    let mut draw = |below: usize| (0..below).new_tree(&mut runner).unwrap().current();
    let method = MDistinct { close_updates: true, on_ineligible: OnIneligible::Counterfeit, ..MDistinct::new(3) };
    let mut people: Vec<Row> = Vec::new();
    let (mut history, mut next, mut totals) = (History::new(pairs), 0, [0; 2]);
    for number in 0..4 {
        people.drain(..people.len() / 10);
        for person in people.iter_mut().step_by(3) {
            let becomes: Vec<&String> = closed.iter().filter(|(from, _)| *from == person.2).map(|(_, to)| to).collect();
            if !becomes.is_empty() {
                person.2.clone_from(becomes[draw(becomes.len())]);
            }
        }
        while people.len() < 1000 {
            people.push((next, vec![draw(80) as i32, draw(20) as i32], format!("v{}", draw(values))));
            next += 1;
        }
        let known: Known = history.known.clone();
        let (microdata, state) = encode(&people, &known, pairs, seed).unwrap();
        let release = publish(&people, &known, pairs, &method, seed + number).unwrap();
        totals[0] += release.counterfeits();
        totals[1] += counterfeits(&microdata, state.signatures().unwrap(), method.m);
        history.add(&release, &people, &method);
    }
    assert!(!history.risk().1);
    totals
}

#[test]
fn fewer_counterfeits_than_the_papers_assignment() {
    let name = |value: usize| format!("v{value}");
    let classes = |size: usize| -> Pairs {
        let all = (0..24_usize).flat_map(|a| (0..24).map(move |b| (a, b)));
        all.filter(|(a, b)| a / size == b / size).map(|(a, b)| (name(a), name(b))).collect()
    };
    // Six diseases of four stages that only get worse.
    let worse: Pairs = (6..24).map(|value| (name(value), name(value - 6))).collect();
    for (what, pairs) in [("identity", classes(1)), ("classes of 4", classes(4)), ("courses of 4", worse)] {
        let [ours, papers] = compare(&pairs, 24, 1);
        println!("{what}: {ours} counterfeits in four releases of 1,000, the paper's assignment {papers}");
        assert!(ours <= papers, "{what}: {ours} and {papers}");
    }
}
