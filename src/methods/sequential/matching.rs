//! One release: rows that are consistent with every world (Algorithm 2).

use lapjv::lapjv;
use ndarray::Array2;
use rand::Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::measure::Measure;
use super::parts::{Cutting, Part};
use crate::error::{Error, Result};
use crate::methods::Monitor;
use crate::microdata::Microdata;

/// Losses as whole numbers: sums over 1,000 rows and 64 attributes of 32 bits each stay far below 2^53, up to which doubles are exact.
const UNIT: f64 = (1_u64 << 26) as f64;

/// In place of somebody: nobody.
const NONE: u32 = u32::MAX;

/// Released rows, and who has each of them in each world.
pub(super) struct Matched {
    /// Published values, row after row.
    pub boxes: Vec<[u32; 2]>,
    /// Class of each row's values that travel.
    pub classes: Vec<u32>,
    /// For each world, the true one first, the person of each row.
    pub people: Vec<Vec<u32>>,
}

/// The values that travel, as numbers: of each row, the class of rows with the same sensitive value and the same others.
pub(super) fn classes(microdata: &Microdata) -> Vec<u32> {
    let key = |row: u32| (microdata.sensitive_codes.get(row as usize), microdata.other_of(row));
    let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
    rows.par_sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
    let mut classes = vec![0; rows.len()];
    for (class, rows) in rows.chunk_by(|&a, &b| key(a) == key(b)).enumerate() {
        rows.iter().for_each(|&row| classes[row as usize] = class as u32);
    }
    classes
}

/// Row whose travelling values a person carries in a world.
#[inline]
pub(super) fn carried(partners: &[u32], width: usize, world: usize, person: u32) -> u32 {
    match world {
        0 => person,
        world => partners[person as usize * width + world - 1],
    }
}

/// What a release is made of.
pub(super) struct Matching<'a> {
    pub microdata: &'a Microdata,
    /// `width` rows for every row of the microdata.
    pub partners: &'a [u32],
    pub width: usize,
    pub measure: &'a Measure,
    /// Most rows that are matched exactly at a time.
    pub p: usize,
    pub monitor: &'a Monitor,
}

/// Linked rows that lose less than this many times what matched ones do are matched as well.
const WORTH_IT: f64 = 1.25;

impl Matching<'_> {
    /// Starts from a world drawn at random, and generalizes its rows until they are consistent with the others, too, in random order: in
    /// each world, everybody gets a row with the values that travel with them there, so that little is added to the loss.
    pub(super) fn release(&self, rng: &mut impl Rng) -> Result<Matched> {
        let microdata = self.microdata;
        let of_row = classes(microdata);
        let mut order: Vec<usize> = (0..=self.width).collect();
        order.shuffle(rng);
        let Some((&first, others)) = order.split_first() else { return Err(Error::internal("a release of no world")) };
        let everybody: Vec<u32> = (0..microdata.rows as u32).collect();
        let donors: Vec<u32> = everybody.iter().map(|&person| self.carried(first, person)).collect();
        let mut matched = Matched {
            boxes: microdata.quasi_codes.iter().map(|&code| [code, code]).collect(),
            classes: donors.iter().map(|&donor| of_row[donor as usize]).collect(),
            people: vec![Vec::new(); self.width + 1],
        };
        if microdata.sensitive.is_none() && microdata.other.is_empty() {
            // Everybody can have their own row in every world.
            matched.people.fill(everybody);
            return Ok(matched);
        }
        matched.people[first] = everybody;
        for &world in others {
            let mut people = self.matched(&matched, &of_row, world, rng)?;
            // Every row has the values of somebody. Who carries them in this world lies near that person, by all columns.
            let mut linked = self.linked(&donors, world);
            let [of_matched, of_linked] = [&people, &linked].map(|people| self.added(&matched.boxes, people));
            if of_linked < WORTH_IT * of_matched {
                self.improve(&matched, &mut linked, rng)?;
            }
            people = self.better(&matched.boxes, people, &linked);
            cover(microdata, &mut matched.boxes, &people);
            matched.people[world] = people;
        }
        Ok(matched)
    }

    fn carried(&self, world: usize, person: u32) -> u32 {
        carried(self.partners, self.width, world, person)
    }

    /// Rows of each class with the people whose values are of that class in a world, in parts from the same corner, the best for each part.
    fn matched(&self, matched: &Matched, of_row: &[u32], world: usize, rng: &mut impl Rng) -> Result<Vec<u32>> {
        let class_in = |person: u32| of_row[self.carried(world, person) as usize];
        // In random order, so that ties are.
        let (mut rows, mut people) = (self.shuffled(rng), self.shuffled(rng));
        rows.par_sort_by_key(|&row| matched.classes[row as usize]);
        people.par_sort_by_key(|&person| class_in(person));
        let mut sides = Vec::new();
        let mut left = people.as_mut_slice();
        for rows in rows.chunk_by_mut(|&a, &b| matched.classes[a as usize] == matched.classes[b as usize]) {
            let (people, after) = left.split_at_mut(rows.len());
            let class = matched.classes[rows[0] as usize];
            if people.iter().any(|&person| class_in(person) != class) {
                return Err(Error::internal("a world with other values than the release; nothing was published"));
            }
            sides.push((rows, people));
            left = after;
        }
        let cutting = self.cutting(matched);
        let cut = |(rows, people)| -> Result<Vec<Part<'_>>> {
            self.monitor.check()?;
            let mut parts = Vec::new();
            cutting.cut(rows, people, &mut parts);
            Ok(parts)
        };
        let parts: Vec<Vec<Part<'_>>> = sides.into_par_iter().map(cut).collect::<Result<_>>()?;
        let parts: Vec<Part<'_>> = parts.into_iter().flatten().collect();
        let assigned = parts.par_iter().map(|&(rows, people)| self.assign(&matched.boxes, rows, people));
        let assigned: Vec<Vec<u32>> = assigned.collect::<Result<_>>()?;
        let mut persons = vec![0; self.microdata.rows];
        for ((rows, _), people) in parts.iter().zip(assigned) {
            rows.iter().zip(people).for_each(|(&row, person)| persons[row as usize] = person);
        }
        Ok(persons)
    }

    /// For each row the person who carries the values of its donor in a world: what the baseline would do.
    fn linked(&self, donors: &[u32], world: usize) -> Vec<u32> {
        let mut carrier = vec![0; self.microdata.rows];
        (0..self.microdata.rows as u32).for_each(|person| carrier[self.carried(world, person) as usize] = person);
        donors.iter().map(|&donor| carrier[donor as usize]).collect()
    }

    /// Exchanges people between rows of the same class that lie close together.
    fn improve(&self, matched: &Matched, people: &mut [u32], rng: &mut impl Rng) -> Result<()> {
        let mut rows = self.shuffled(rng);
        rows.par_sort_by_key(|&row| matched.classes[row as usize]);
        let classes = rows.chunk_by_mut(|&a, &b| matched.classes[a as usize] == matched.classes[b as usize]);
        let cutting = self.cutting(matched);
        let cut = |rows| -> Result<Vec<&[u32]>> {
            self.monitor.check()?;
            let mut parts = Vec::new();
            cutting.cut_rows(rows, &mut parts);
            Ok(parts)
        };
        let parts: Vec<Vec<&[u32]>> = classes.collect::<Vec<_>>().into_par_iter().map(cut).collect::<Result<_>>()?;
        let parts: Vec<&[u32]> = parts.into_iter().flatten().collect();
        let now = &*people;
        let assigned = parts.par_iter().map(|&rows| {
            let people: Vec<u32> = rows.iter().map(|&row| now[row as usize]).collect();
            self.assign(&matched.boxes, rows, &people)
        });
        let assigned: Vec<Vec<u32>> = assigned.collect::<Result<_>>()?;
        for (rows, of_rows) in parts.iter().zip(assigned) {
            rows.iter().zip(of_rows).for_each(|(&row, person)| people[row as usize] = person);
        }
        Ok(())
    }

    /// Of two ways to give people rows, the one that loses less, for each smallest set of rows to which both give the same people: from a row
    /// to its person's row the other way, and on until it closes.
    fn better(&self, boxes: &[[u32; 2]], mut one: Vec<u32>, other: &[u32]) -> Vec<u32> {
        const SEEN: u32 = u32::MAX;
        let mut row_of_other = vec![0; other.len()];
        other.iter().enumerate().for_each(|(row, &person)| row_of_other[person as usize] = row as u32);
        let mut cycle = Vec::new();
        for first in 0..other.len() as u32 {
            if row_of_other[other[first as usize] as usize] == SEEN {
                continue;
            }
            cycle.clear();
            let (mut row, mut saved) = (first, 0.0);
            loop {
                let person = one[row as usize];
                let loss = |person| f64::from(self.loss(boxes, row, person));
                saved += loss(person) - loss(other[row as usize]);
                cycle.push(row);
                row = std::mem::replace(&mut row_of_other[person as usize], SEEN);
                if row == first || row == SEEN {
                    break;
                }
            }
            if saved > 0.0 {
                cycle.iter().for_each(|&row| one[row as usize] = other[row as usize]);
            }
        }
        one
    }

    fn shuffled(&self, rng: &mut impl Rng) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.microdata.rows as u32).collect();
        rows.shuffle(rng);
        rows
    }

    fn cutting<'b>(&'b self, matched: &'b Matched) -> Cutting<'b> {
        Cutting { microdata: self.microdata, measure: self.measure, boxes: &matched.boxes, most: self.p }
    }

    /// Loss of a row that covers a person, too.
    fn loss(&self, boxes: &[[u32; 2]], row: u32, person: u32) -> f32 {
        let d = self.microdata.quasi.len();
        self.measure.with(&boxes[row as usize * d..][..d], self.microdata.quasi_of(person))
    }

    /// What people add to the loss of their rows.
    fn added(&self, boxes: &[[u32; 2]], people: &[u32]) -> f64 {
        let d = self.microdata.quasi.len();
        let of_row = |(row, &person): (usize, &u32)| {
            f64::from(self.loss(boxes, row as u32, person) - self.measure.sum(&boxes[row * d..][..d]))
        };
        people.iter().enumerate().map(of_row).sum()
    }

    /// For each row of a part its person: the assignment with the least loss.
    pub(super) fn assign(&self, boxes: &[[u32; 2]], rows: &[u32], people: &[u32]) -> Result<Vec<u32>> {
        self.monitor.check()?;
        let d = self.microdata.quasi.len();
        let mut chosen = self.exact(boxes, rows, people);
        let mut taken = vec![false; people.len()];
        chosen.iter().filter(|&&place| place != NONE).for_each(|&place| taken[place as usize] = true);
        let open: Vec<usize> = (0..rows.len()).filter(|&place| chosen[place] == NONE).collect();
        let free: Vec<u32> = (0..people.len() as u32).filter(|&place| !taken[place as usize]).collect();
        let mut costs = Vec::with_capacity(open.len() * free.len());
        for &place in &open {
            let around = &boxes[rows[place] as usize * d..][..d];
            // What the row loses already is the same whoever it gets.
            let before = self.measure.sum(around);
            let added = |&place: &u32| {
                let codes = self.microdata.quasi_of(people[place as usize]);
                (f64::from((self.measure.with(around, codes) - before).max(0.0)) * UNIT).round()
            };
            costs.extend(free.iter().map(added));
        }
        for (&row, place) in open.iter().zip(least(open.len(), costs)?) {
            chosen[row] = free[place as usize];
        }
        Ok(chosen.into_iter().map(|place| people[place as usize]).collect())
    }

    /// Places of the people whom rows already are, for rows that are single values; `NONE` for others.
    ///
    /// By the loss metric, no assignment is better than the best of those that begin so. Let a row `x` have somebody else, `y`, and a row
    /// `b` somebody who is `x`. If they exchange, `x` loses nothing, and `b` with `y` loses at most what `b` with `x` and `x` with `y` lost, since
    /// lengths of intervals that meet in `x` add up, and of nodes above `x` one holds the other. Entropies need not.
    fn exact(&self, boxes: &[[u32; 2]], rows: &[u32], people: &[u32]) -> Vec<u32> {
        let mut chosen = vec![NONE; rows.len()];
        if !self.measure.adds_up() {
            return chosen;
        }
        let d = self.microdata.quasi.len();
        let around = |place: u32| &boxes[rows[place as usize] as usize * d..][..d];
        let codes = |place: u32| self.microdata.quasi_of(people[place as usize]);
        let mut points: Vec<u32> = (0..rows.len() as u32).collect();
        points.retain(|&place| around(place).iter().all(|[lo, hi]| lo == hi));
        // Both keep the order in which they came, which is random, among those that are alike.
        points.sort_by(|&a, &b| around(a).cmp(around(b)));
        let mut free: Vec<u32> = (0..people.len() as u32).collect();
        free.sort_by(|&a, &b| codes(a).cmp(codes(b)));
        let mut free = free.into_iter().peekable();
        for row in points {
            let at = around(row).iter().map(|[lo, _]| lo);
            while free.next_if(|&place| codes(place).iter().lt(at.clone())).is_some() {}
            if let Some(place) = free.next_if(|&place| codes(place).iter().eq(at.clone())) {
                chosen[row as usize] = place;
            }
        }
        chosen
    }
}

/// Widens every row's box to hold a person.
fn cover(microdata: &Microdata, boxes: &mut [[u32; 2]], people: &[u32]) {
    let d = microdata.quasi.len();
    boxes.par_chunks_mut(d).zip(people).with_min_len(1024).for_each(|(boxes, &person)| {
        for ((interval, &code), attribute) in boxes.iter_mut().zip(microdata.quasi_of(person)).zip(&microdata.quasi) {
            if code < interval[0] || code > interval[1] {
                *interval = attribute.closure([interval[0].min(code), interval[1].max(code)]);
            }
        }
    });
}

/// For each row of a square matrix of whole numbers its column in an assignment with the least sum.
pub(super) fn least(n: usize, costs: Vec<f64>) -> Result<Vec<u32>> {
    if n < 2 {
        return Ok(vec![0; n]);
    }
    let costs = Array2::from_shape_vec((n, n), costs).map_err(|_| Error::internal("costs that are no square"))?;
    let (columns, _) = lapjv(&costs).map_err(|_| Error::internal("an assignment that was not found"))?;
    Ok(columns.into_iter().map(|column| column as u32).collect())
}
