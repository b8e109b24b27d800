//! A part, matched: for each row its person, so that as little as possible is lost.

use super::MOST_PART;
use super::linear_assignment::{Matrix, least};
use super::measure::Measure;
use crate::error::Result;
use crate::microdata::Microdata;

/// Person number that stands for nobody.
const NONE: u32 = u32::MAX;

/// Matcher of parts.
pub(super) struct Assigning<'a> {
    pub microdata: &'a Microdata,
    pub measure: &'a Measure,
}

impl Assigning<'_> {
    /// Returns for each row of a part the number of its person: the assignment with the least loss. `boxes` are those
    /// of the rows, and `codes` those of as many people, one after the other.
    ///
    /// # Errors
    /// An internal one when there is no assignment, which is a bug.
    pub(super) fn assign(&self, boxes: &[[u32; 2]], codes: &[u32]) -> Result<Vec<u32>> {
        let mut chosen = self.exact(boxes, codes);
        let mut taken = vec![false; chosen.len()];
        chosen.iter().filter(|&&person| person != NONE).for_each(|&person| taken[person as usize] = true);
        let all = 0..chosen.len();
        let open: Vec<usize> = all.clone().filter(|&row| chosen[row] == NONE).collect();
        let free: Vec<usize> = all.filter(|&person| !taken[person]).collect();
        let costs = self.costs(boxes, codes, &open, &free);
        for (&row, person) in open.iter().zip(least(&costs)?) {
            chosen[row] = free[person as usize] as u32;
        }
        Ok(chosen)
    }

    /// Computes each person's addition to the loss of each of as many rows.
    fn costs(&self, boxes: &[[u32; 2]], codes: &[u32], rows: &[usize], people: &[usize]) -> Matrix {
        let d = self.microdata.quasi.len();
        let codes = |j: usize| people.iter().map(move |&person| codes[person * d + j]);
        let columns: Vec<Vec<u32>> = (0..d).map(|j| codes(j).collect()).collect();
        let places: Vec<Vec<f32>> = (0..d).map(|j| codes(j).map(|code| code as f32).collect()).collect();
        let mut matrix = Matrix::new(rows.len());
        for (number, row) in rows.iter().enumerate() {
            let around = &boxes[row * d..][..d];
            let costs = matrix.row_mut(number);
            for (j, ((&interval, codes), places)) in around.iter().zip(&columns).zip(&places).enumerate() {
                self.measure.add(j, interval, codes, places, costs);
            }
        }
        matrix.round(self.measure.most());
        matrix
    }

    /// Returns the numbers of rows' own people, for rows of single values; `NONE` for others.
    ///
    /// By the loss metric, no assignment is better than the best of those that begin so. Let a row `x` have somebody else, `y`, and a row
    /// `b` somebody who is `x`. If they exchange, `x` loses nothing, and `b` with `y` loses at most what `b` with `x` and `x` with `y` lost, since
    /// lengths of intervals that meet in `x` add up, and of nodes above `x` one holds the other. Entropies need not.
    fn exact(&self, boxes: &[[u32; 2]], codes: &[u32]) -> Vec<u32> {
        let d = self.microdata.quasi.len();
        let n = codes.len() / d;
        let mut chosen = vec![NONE; n];
        // One number for each combination of values, with the place below it; where there are too many, all rows are as well matched at cost.
        let sizes = self.microdata.quasi.iter().map(|attribute| attribute.domain.len() as u64);
        let all = sizes.clone().try_fold(MOST_PART as u64 + 1, u64::checked_mul);
        if !self.measure.adds_up() || all.is_none() || n > MOST_PART {
            return chosen;
        }
        let key = |place: usize, codes: &mut dyn Iterator<Item = u32>| {
            let one = codes.zip(sizes.clone()).fold(0, |key, (code, size)| key * size + u64::from(code));
            one * (MOST_PART as u64 + 1) + place as u64
        };
        let points = boxes.chunks_exact(d).enumerate().filter(|(_, around)| around.iter().all(|[lo, hi]| lo == hi));
        let mut points: Vec<u64> =
            points.map(|(place, around)| key(place, &mut around.iter().map(|[lo, _]| *lo))).collect();
        if points.is_empty() {
            return chosen;
        }
        let people = codes.chunks_exact(d).enumerate();
        let mut free: Vec<u64> = people.map(|(place, codes)| key(place, &mut codes.iter().copied())).collect();
        // Both keep the order in which they came, which is random, among those that are alike.
        points.sort_unstable();
        free.sort_unstable();
        let split = |key: u64| (key / (MOST_PART as u64 + 1), (key % (MOST_PART as u64 + 1)) as u32);
        let mut free = free.into_iter().map(split).peekable();
        for (at, row) in points.into_iter().map(split) {
            while free.next_if(|&(other, _)| other < at).is_some() {}
            if let Some((_, person)) = free.next_if(|&(other, _)| other == at) {
                chosen[row as usize] = person;
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use pathfinding::kuhn_munkres::kuhn_munkres_min;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::super::Loss;
    use super::super::tests::{People, encoded};
    use super::*;

    /// Taking people for rows that they already are, first, costs nothing by the loss metric: against an assignment of all at once.
    #[test]
    fn exact_matches_first_are_as_good() {
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        for flat in [false, true] {
            for _ in 0..40 {
                let rows = 40;
                let column =
                    |rng: &mut ChaCha20Rng| (0..rows).map(|_| Some(rng.random_range(0..6))).collect::<Vec<_>>();
                let people = People {
                    first: 0,
                    quasi: vec![column(&mut rng), column(&mut rng)],
                    sensitive: vec![1; rows],
                    other: Vec::new(),
                };
                let microdata = encoded(&people, flat);
                let measure = Measure::new(Loss::Lm, &microdata);
                let assigning = Assigning { microdata: &microdata, measure: &measure };
                // Half of the rows are boxes.
                let mut boxes: Vec<[u32; 2]> = Vec::new();
                for row in 0..rows as u32 {
                    let (a, b) = (microdata.quasi_of(row), microdata.quasi_of(rng.random_range(0..rows as u32)));
                    let b = if row % 2 == 0 { a.clone() } else { b };
                    boxes.extend(
                        a.zip(b)
                            .zip(&microdata.quasi)
                            .map(|((a, b), attribute)| attribute.closure([a.min(b), a.max(b)])),
                    );
                }
                let all: Vec<u32> = (0..rows as u32).collect();
                let mut others = all.clone();
                others.shuffle(&mut rng);
                let codes: Vec<u32> = others[..20].iter().flat_map(|&person| microdata.quasi_of(person)).collect();
                let chosen = assigning.assign(&boxes[..20 * 2], &codes).unwrap();
                let loss = |row: u32, person: u32| {
                    f64::from(measure.with(boxes[row as usize * 2..][..2].iter().copied(), microdata.quasi_of(person)))
                };
                let own: f64 =
                    all[..20].iter().zip(&chosen).map(|(&row, &person)| loss(row, others[person as usize])).sum();
                let weight = |(i, j): (usize, usize)| (loss(all[i], others[j]) * 1e6).round() as i64;
                let least = kuhn_munkres_min(&pathfinding::matrix::Matrix::from_fn(20, 20, weight)).0 as f64 / 1e6;
                assert!((own - least).abs() < 1e-3, "{own} {least}");
            }
        }
    }
}
