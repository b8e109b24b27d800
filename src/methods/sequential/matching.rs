//! One release: rows that are consistent with every world (Algorithm 2).

use rand::Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::MOST_PART;
use super::lap::{Matrix, least};
use super::measure::Measure;
use super::parts::{Cutting, Part};
use crate::error::{Error, Result};
use crate::methods::Monitor;
use crate::methods::assignment::by_value;
use crate::microdata::{Microdata, shuffle};

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
    if microdata.sensitive.is_some() && microdata.other.is_empty() {
        let mut class_of = Vec::new();
        for &code in &microdata.sensitive_codes {
            let code = code as usize;
            class_of.resize(class_of.len().max(code + 1), 0);
            class_of[code] = 1;
        }
        let mut classes = 0;
        class_of.iter_mut().for_each(|class| classes += std::mem::replace(class, classes));
        return microdata.sensitive_codes.iter().map(|&code| class_of[code as usize]).collect();
    }
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
        let donors: Vec<u32> = everybody.par_iter().map(|&person| self.carried(first, person)).collect();
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
            let people = self.matched(&matched, &of_row, world, rng)?;
            // Every row has the values of somebody. Who carries them in this world lies near that person, by all columns.
            let mut linked = self.linked(&donors, world);
            let of_people = self.losses(&matched.boxes, &people);
            let [of_matched, of_linked] =
                [&of_people, &self.losses(&matched.boxes, &linked)].map(|losses| self.added(&matched.boxes, losses));
            if of_linked < WORTH_IT * of_matched {
                self.improve(&matched, &mut linked, rng)?;
            }
            let of_linked = self.losses(&matched.boxes, &linked);
            let people = better(people, &linked, |row| f64::from(of_people[row]) - f64::from(of_linked[row]));
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
        let everybody = 0..self.microdata.rows as u32;
        let class_in: Vec<u32> =
            everybody.into_par_iter().map(|person| of_row[self.carried(world, person) as usize]).collect();
        // In random order, so that ties are.
        let (mut rows, mut people) = (self.shuffled(rng), self.shuffled(rng));
        let (rows, people) = rayon::join(|| by_value(&mut rows, &matched.classes), || by_value(&mut people, &class_in));
        let agree = |(rows, people): (&&mut [u32], &&mut [u32])| {
            rows.len() == people.len() && matched.classes[rows[0] as usize] == class_in[people[0] as usize]
        };
        if rows.len() != people.len() || !rows.iter().zip(&people).all(agree) {
            return Err(Error::internal("a world with other values than the release; nothing was published"));
        }
        let sides: Vec<(&mut [u32], &mut [u32])> = rows.into_iter().zip(people).collect();
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
        donors.par_iter().map(|&donor| carrier[donor as usize]).collect()
    }

    /// Exchanges people between rows of the same class that lie close together.
    fn improve(&self, matched: &Matched, people: &mut [u32], rng: &mut impl Rng) -> Result<()> {
        let mut rows = self.shuffled(rng);
        let classes = by_value(&mut rows, &matched.classes);
        let cutting = self.cutting(matched);
        let cut = |rows| -> Result<Vec<&[u32]>> {
            self.monitor.check()?;
            let mut parts = Vec::new();
            cutting.cut_rows(rows, &mut parts);
            Ok(parts)
        };
        let parts: Vec<Vec<&[u32]>> = classes.into_par_iter().map(cut).collect::<Result<_>>()?;
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

    fn shuffled(&self, rng: &mut impl Rng) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.microdata.rows as u32).collect();
        shuffle(&mut rows, rng);
        rows
    }

    fn cutting<'b>(&'b self, matched: &'b Matched) -> Cutting<'b> {
        Cutting { microdata: self.microdata, measure: self.measure, boxes: &matched.boxes, most: self.p }
    }

    /// Losses of rows that cover people, too.
    fn losses(&self, boxes: &[[u32; 2]], people: &[u32]) -> Vec<f32> {
        let d = self.microdata.quasi.len();
        let with = |(around, &person): (&[[u32; 2]], &u32)| self.measure.with(around, self.microdata.quasi_of(person));
        boxes.par_chunks_exact(d).zip(people).with_min_len(1024).map(with).collect()
    }

    /// What these losses are more than those of the rows alone.
    fn added(&self, boxes: &[[u32; 2]], losses: &[f32]) -> f64 {
        // In pieces, so that the sum is the same on any number of threads.
        const PIECE: usize = 1 << 12;
        let d = self.microdata.quasi.len();
        let more = |(around, loss): (&[[u32; 2]], &f32)| f64::from(loss - self.measure.sum(around));
        let pieces = boxes.par_chunks(PIECE * d).zip(losses.par_chunks(PIECE));
        let sums: Vec<f64> = pieces.map(|(boxes, losses)| boxes.chunks_exact(d).zip(losses).map(more).sum()).collect();
        sums.into_iter().sum()
    }

    /// For each row of a part its person: the assignment with the least loss.
    pub(super) fn assign(&self, boxes: &[[u32; 2]], rows: &[u32], people: &[u32]) -> Result<Vec<u32>> {
        self.monitor.check()?;
        let mut chosen = self.exact(boxes, rows, people);
        let mut taken = vec![false; people.len()];
        chosen.iter().filter(|&&place| place != NONE).for_each(|&place| taken[place as usize] = true);
        let open: Vec<usize> = (0..rows.len()).filter(|&place| chosen[place] == NONE).collect();
        let free: Vec<u32> = (0..people.len() as u32).filter(|&place| !taken[place as usize]).collect();
        let costs =
            self.costs(boxes, open.iter().map(|&place| rows[place]), &free.iter().map(|&place| people[place as usize]));
        for (&row, place) in open.iter().zip(least(&costs)?) {
            chosen[row] = free[place as usize];
        }
        Ok(chosen.into_iter().map(|place| people[place as usize]).collect())
    }

    /// What each of so many people adds to the loss of each of as many rows.
    fn costs(
        &self,
        boxes: &[[u32; 2]],
        rows: impl ExactSizeIterator<Item = u32>,
        people: &(impl Iterator<Item = u32> + Clone),
    ) -> Matrix {
        let d = self.microdata.quasi.len();
        let codes = |j: usize| people.clone().map(move |person| self.microdata.quasi_of(person)[j]);
        let columns: Vec<Vec<u32>> = (0..d).map(|j| codes(j).collect()).collect();
        let places: Vec<Vec<f32>> =
            columns.iter().map(|codes| codes.iter().map(|&code| code as f32).collect()).collect();
        let mut matrix = Matrix::new(rows.len());
        for (number, row) in rows.enumerate() {
            let around = &boxes[row as usize * d..][..d];
            let costs = matrix.row_mut(number);
            for (j, ((&interval, codes), places)) in around.iter().zip(&columns).zip(&places).enumerate() {
                self.measure.add(j, interval, codes, places, costs);
            }
        }
        matrix.round(self.measure.most());
        matrix
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
        let around = |row: u32| &boxes[row as usize * d..][..d];
        // One number for each combination of values, with the place below it; where there are too many, all rows are as well matched at cost.
        let sizes = self.microdata.quasi.iter().map(|attribute| attribute.domain.len() as u64);
        let all = sizes.clone().try_fold(MOST_PART as u64 + 1, u64::checked_mul);
        let fits = all.is_some() && rows.len() <= MOST_PART;
        let key = |place: usize, codes: &mut dyn Iterator<Item = u32>| {
            let one = codes.zip(sizes.clone()).fold(0, |key, (code, size)| key * size + u64::from(code));
            one * (MOST_PART as u64 + 1) + place as u64
        };
        let is_point = |row: u32| around(row).iter().all(|[lo, hi]| lo == hi);
        let points = rows.iter().enumerate().filter(|(_, row)| fits && is_point(**row));
        let mut points: Vec<u64> =
            points.map(|(place, &row)| key(place, &mut around(row).iter().map(|[lo, _]| *lo))).collect();
        if points.is_empty() {
            return chosen;
        }
        let codes = people.iter().map(|&person| self.microdata.quasi_of(person)).enumerate();
        let mut free: Vec<u64> = codes.map(|(place, codes)| key(place, &mut codes.iter().copied())).collect();
        // Both keep the order in which they came, which is random, among those that are alike.
        points.sort_unstable();
        free.sort_unstable();
        let split = |key: u64| (key / (MOST_PART as u64 + 1), (key % (MOST_PART as u64 + 1)) as u32);
        let mut free = free.into_iter().map(split).peekable();
        for (at, row) in points.into_iter().map(split) {
            while free.next_if(|&(other, _)| other < at).is_some() {}
            if let Some((_, place)) = free.next_if(|&(other, _)| other == at) {
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

/// Of two ways to give people rows, the one that loses less, for each smallest set of rows to which both give the same people: from a row
/// to its person's row the other way, and on until it closes. `saved` is what a row loses less the other way.
fn better(mut one: Vec<u32>, other: &[u32], saved: impl Fn(usize) -> f64) -> Vec<u32> {
    const SEEN: u32 = u32::MAX;
    let mut row_of_other = vec![0; other.len()];
    other.iter().enumerate().for_each(|(row, &person)| row_of_other[person as usize] = row as u32);
    let mut cycle = Vec::new();
    for first in 0..other.len() as u32 {
        if row_of_other[other[first as usize] as usize] == SEEN {
            continue;
        }
        cycle.clear();
        let (mut row, mut sum) = (first, 0.0);
        loop {
            sum += saved(row as usize);
            cycle.push(row);
            let person = one[row as usize];
            row = std::mem::replace(&mut row_of_other[person as usize], SEEN);
            if row == first || row == SEEN {
                break;
            }
        }
        if sum > 0.0 {
            cycle.iter().for_each(|&row| one[row as usize] = other[row as usize]);
        }
    }
    one
}
