//! Phase 3, the rows: new rows are dealt out to the buckets of the steps.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::division::Division;
use crate::assignment::Step;
use crate::deal::deal;
use crate::lots::Lots;

/// Puts all new rows, and counterfeits by `padding`, into buckets. `padding` has their number for each value.
pub(super) fn assign(division: &mut Division, steps: &[Step], padding: &[usize], lots: &mut impl Lots) {
    if padding.iter().any(|&count| count > 0) {
        // Padding leaves no slack: the most frequent value is in every step, and all its rows are real. A bucket of such
        // steps has a value without counterfeits, and so a real row in every group; merged with an old bucket, whose
        // complete value may be another, it might have none.
        division.close_old_buckets();
    }
    let lines = std::mem::take(&mut division.new);
    let mut buckets = Vec::with_capacity(steps.len());
    for step in steps {
        let bucket = division.bucket(&step.signature);
        division.buckets[bucket as usize].height += step.rows;
        buckets.push(bucket);
    }
    let dealt = deal(lines, padding, steps, lots);
    // Rows of a hand are all over the memory: on one core, this would take as long as to draw them.
    let bucket_of: Vec<AtomicU32> = std::mem::take(&mut division.bucket_of).into_iter().map(AtomicU32::new).collect();
    dealt.hands().into_par_iter().for_each(|hand| {
        hand.rows().for_each(|row| bucket_of[row as usize].store(buckets[hand.step], Ordering::Relaxed));
    });
    division.bucket_of = bucket_of.into_iter().map(AtomicU32::into_inner).collect();
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::super::tests::{encode, in_a_row};
    use super::*;

    /// The draw of the first bucket does not look at positions. Over many draws, every row is there equally often, and
    /// every pair of neighbours as often together as any other pair.
    #[test]
    fn the_draw_does_not_look_at_positions() {
        const DRAWS: u64 = 4000;
        let rows = in_a_row(40);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut chosen = [0_f64; 20];
        let (mut neighbours, mut pairs) = (0.0, 0.0);
        for key in 0..DRAWS {
            let (microdata, state) = encode(&rows, &Default::default(), key).unwrap();
            let mut division = Division::new(&microdata, state.signatures().unwrap()).unwrap();
            // Half of the rows of each value in one bucket, half in another.
            let step = || Step { signature: [0, 1].into(), rows: 10 };
            assign(&mut division, &[step()], &[0, 0], &mut rng);
            let mut first = [false; 20];
            for row in 0..microdata.rows {
                if microdata.sensitive_codes.at(row as u32) == 0 && division.bucket_of[row] == 0 {
                    first[microdata.quasi_at(row as u32, 0) as usize / 2] = true;
                }
            }
            assert_eq!(first.iter().filter(|&&is| is).count(), 10);
            for (count, is) in chosen.iter_mut().zip(first) {
                *count += f64::from(u8::from(is));
            }
            neighbours += first.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
            pairs += 19.0;
        }
        let deviation = |count: f64, of: f64, p: f64| (count - of * p) / (of * p * (1.0 - p)).sqrt();
        for count in chosen {
            assert!(deviation(count, DRAWS as f64, 0.5).abs() < 4.5, "{chosen:?}");
        }
        // Two of twenty are both among ten with probability 10/20 * 9/19; neighbours in one draw depend on each other, which
        // the wider bound allows for.
        assert!(deviation(neighbours, pairs, 0.5 * 9.0 / 19.0).abs() < 6.0, "{neighbours} of {pairs}");
    }
}
