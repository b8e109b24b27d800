//! Of two ways to give people rows, the better one for each cycle: from a row to the row that its person has the other way, and on until it closes.
//!
//! Such a walk goes all over the memory, every step waits for the one before, and most rows are on a few long cycles. So walks begin at many rows
//! at once, each ends where another one began, and they are put together afterwards.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::matching::Given;
use crate::microdata::room;

/// Rows per beginning of a walk.
const ROWS: usize = 1 << 10;
/// Walks that a thread makes at a time, a step of each in turn.
const AT_ONCE: usize = 16;
/// The number of no walk.
const NONE: u32 = u32::MAX;

/// For each row the next one, and what it loses less the other way: side by side, as they are looked up together.
type Steps = [(u32, f32)];

/// The walk that goes through each row.
struct WalkOf(Vec<AtomicU32>);

impl WalkOf {
    fn row(&self, row: u32) -> u32 {
        self.0[row as usize].load(Ordering::Relaxed)
    }

    fn set(&self, row: u32, walk: u32) {
        self.0[row as usize].store(walk, Ordering::Relaxed);
    }
}

/// Savings of a walk's rows the other way, and its end: the first row of the next walk.
#[derive(Clone, Copy)]
struct Walked {
    saved: f64,
    end: u32,
}

/// Returns the person of each row: the other way for each smallest set of rows to which both give the same people, if less is lost by that.
pub(super) fn better(one: Given, other: &Given) -> Vec<u32> {
    let rows = one.people.len();
    let steps = steps(&one, other);
    let walk_of = WalkOf((0..rows).into_par_iter().with_min_len(1024).map(|_| AtomicU32::new(NONE)).collect());
    let starts: Vec<u32> = (0..rows).step_by(ROWS).map(|row| row as u32).collect();
    (0..).zip(&starts).for_each(|(walk, &row)| walk_of.set(row, walk));
    let chunks = starts.par_chunks(AT_ONCE).enumerate();
    let walked =
        chunks.flat_map_iter(|(chunk, starts)| side_by_side((chunk * AT_ONCE) as u32, starts, &steps, &walk_of));
    let mut walked: Vec<Walked> = walked.collect();
    // Rows that have one person both ways are cycles by themselves: there may be many, and all are one walk here.
    let mut by_itself = None;
    // Cycles on which no walk began, which are short as a rule.
    for row in (0..rows as u32).filter(|&row| steps[row as usize].0 == row) {
        if walk_of.row(row) == NONE {
            walk_of.set(row, *by_itself.get_or_insert(walked.len() as u32));
        }
    }
    walked.extend(by_itself.map(|_| Walked { saved: 0.0, end: 0 }));
    for row in 0..rows as u32 {
        if walk_of.row(row) == NONE {
            let walk = walked.len() as u32;
            walk_of.set(row, walk);
            walked.extend(side_by_side(walk, &[row], &steps, &walk_of));
        }
    }
    let is_better = whole_cycles(&walked, |row| walk_of.row(row));
    let both = one.people.into_par_iter().zip(&other.people).enumerate().with_min_len(1024);
    both.map(|(row, (one, other))| if is_better[walk_of.row(row as u32) as usize] { *other } else { one }).collect()
}

fn steps(one: &Given, other: &Given) -> Vec<(u32, f32)> {
    let row_of_other: Vec<AtomicU32> = room(other.people.len());
    other.people.par_iter().enumerate().with_min_len(1024).for_each(|(row, &person)| {
        row_of_other[person as usize].store(row as u32, Ordering::Relaxed);
    });
    let next = |person: u32| row_of_other[person as usize].load(Ordering::Relaxed);
    let losses = one.losses.par_iter().zip(&other.losses);
    let both = one.people.par_iter().zip(losses).with_min_len(1024);
    both.map(|(&person, (one, other))| (next(person), one - other)).collect()
}

/// Walks from rows to where other walks began, or they themselves. The first of them has this number.
fn side_by_side(first: u32, starts: &[u32], steps: &Steps, walk_of: &WalkOf) -> Vec<Walked> {
    let mut walked = vec![Walked { saved: 0.0, end: 0 }; starts.len()];
    let mut going: Vec<(usize, u32)> = starts.iter().copied().enumerate().collect();
    while !going.is_empty() {
        going.retain_mut(|(number, row)| {
            let (next, saved) = steps[*row as usize];
            walked[*number].saved += f64::from(saved);
            // Nobody but itself can be on the way, but for where walks began.
            let goes_on = walk_of.row(next) == NONE;
            if goes_on {
                walk_of.set(next, first + *number as u32);
                *row = next;
            } else {
                walked[*number].end = next;
            }
            goes_on
        });
    }
    walked
}

/// Returns true for each walk whose cycle loses less the other way. `walk_of` tells the walk that begins at a row.
fn whole_cycles(walked: &[Walked], walk_of: impl Fn(u32) -> u32) -> Vec<bool> {
    let mut is_better = vec![None; walked.len()];
    let mut cycle = Vec::new();
    for first in 0..walked.len() {
        let (mut walk, mut saved) = (first, 0.0);
        cycle.clear();
        while is_better[walk].is_none() {
            is_better[walk] = Some(false);
            cycle.push(walk);
            saved += walked[walk].saved;
            walk = walk_of(walked[walk].end) as usize;
        }
        cycle.iter().for_each(|&walk| is_better[walk] = Some(saved > 0.0));
    }
    is_better.into_iter().map(|is_better| is_better == Some(true)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    proptest! {
        /// Everybody has one row, and no exchange of people loses less. The test compares all ways to choose, where there are few.
        #[test]
        fn of_two_ways_the_best_of_each_cycle(
            (one, other) in (1_usize..12).prop_flat_map(|n| {
                let people = Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle();
                let losses = prop::collection::vec((0_u8..50).prop_map(f32::from), n);
                let way = (people, losses).prop_map(|(people, losses)| Given { people, losses });
                (way.clone(), way)
            }),
        ) {
            let n = one.people.len();
            let mut least = f32::INFINITY;
            for choice in 0..1_usize << n {
                let way = |row: usize| if choice >> row & 1 == 0 { &one } else { &other };
                let mut people: Vec<u32> = (0..n).map(|row| way(row).people[row]).collect();
                people.sort_unstable();
                if people.into_iter().eq(0..n as u32) {
                    least = least.min((0..n).map(|row| way(row).losses[row]).sum());
                }
            }
            let (people_of_one, losses) = (one.people.clone(), one.losses.clone());
            let people = better(one, &other);
            let loss = |row: usize| {
                let of_one = (people[row] == people_of_one[row]).then_some(losses[row]);
                let of_other = (people[row] == other.people[row]).then_some(other.losses[row]);
                of_one.into_iter().chain(of_other).fold(f32::INFINITY, f32::min)
            };
            prop_assert!((0..n).map(loss).sum::<f32>() <= least);
            let mut sorted = people.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..n as u32));
        }
    }

    /// Walks put together are those round each cycle, on any number of threads. There are many rows, on a few long cycles or on many short ones.
    #[test]
    fn walks_that_are_put_together_are_those_round_cycles() {
        const ROWS_OF_ALL: usize = 50_000;
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for long in [true, false] {
            let mut way = || {
                let mut people: Vec<u32> = (0..ROWS_OF_ALL as u32).collect();
                people.chunks_mut(if long { ROWS_OF_ALL } else { 7 }).for_each(|people| people.shuffle(&mut rng));
                // Sums of whole numbers are the same in any order.
                let losses = (0..ROWS_OF_ALL).map(|_| rng.random_range(0..50) as f32).collect();
                Given { people, losses }
            };
            let (one, other) = (way(), way());
            let mut row_of_other = vec![0; ROWS_OF_ALL];
            (0..).zip(&other.people).for_each(|(row, &person)| row_of_other[person as usize] = row);
            let mut expected = one.people.clone();
            let mut seen = vec![false; ROWS_OF_ALL];
            for first in 0..ROWS_OF_ALL {
                let (mut row, mut saved, mut cycle) = (first, 0.0, Vec::new());
                while !std::mem::replace(&mut seen[row], true) {
                    saved += one.losses[row] - other.losses[row];
                    cycle.push(row);
                    row = row_of_other[one.people[row] as usize] as usize;
                }
                if saved > 0.0 {
                    cycle.into_iter().for_each(|row| expected[row] = other.people[row]);
                }
            }
            for threads in [1, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert_eq!(pool.install(|| better(one.clone(), &other)), expected);
            }
        }
    }
}
