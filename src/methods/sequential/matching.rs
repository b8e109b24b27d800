//! One release: rows that are consistent with every world (Algorithm 2).

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::assign::Assigning;
use super::cycles::better;
use super::measure::Measure;
use super::parts::{Cutting, Near};
use crate::error::{Error, Result};
use crate::methods::Monitor;
use crate::methods::assignment::by_value;
use crate::microdata::Microdata;

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

/// People who are given the rows of a release, in one world.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Given {
    /// Of each row.
    pub people: Vec<u32>,
    /// What each row loses with that person in it.
    pub losses: Vec<f32>,
}

/// A row, its person, and what it loses.
#[derive(Clone, Copy)]
struct Pair {
    row: u32,
    person: u32,
    loss: f32,
}

/// Draws for each class by itself, so that they are the same on any number of cores.
struct LotsOfClasses([u8; 32]);

impl LotsOfClasses {
    fn new(rng: &mut impl Rng) -> Self {
        Self(rng.random())
    }

    fn of(&self, class: usize) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(self.0);
        rng.set_stream(class as u64);
        rng
    }
}

impl Given {
    fn set(&mut self, pairs: &[Vec<Pair>]) {
        for &Pair { row, person, loss } in pairs.iter().flatten() {
            self.people[row as usize] = person;
            self.losses[row as usize] = loss;
        }
    }
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
            boxes: microdata.quasi_codes.iter().map(|code| [code, code]).collect(),
            classes: donors.iter().map(|&donor| of_row[donor as usize]).collect(),
            people: vec![Vec::new(); self.width + 1],
        };
        if microdata.sensitive.is_none() && microdata.other.is_empty() {
            // Everybody can have their own row in every world.
            matched.people.fill(everybody);
            return Ok(matched);
        }
        let mut rows = everybody.clone();
        let rows: Vec<&[u32]> = by_value(&mut rows, &matched.classes).into_iter().map(|rows| &*rows).collect();
        for &world in others {
            let (lots, lots_of_linked) = (LotsOfClasses::new(rng), LotsOfClasses::new(rng));
            // Every row has the values of somebody. Who carries them in this world lies near that person, by all columns.
            let (given, mut linked) = rayon::join(
                || self.matched(&matched, &of_row, world, &rows, &lots),
                || self.linked(&matched, &donors, world),
            );
            let given = given?;
            let [of_matched, of_linked] = [&given, &linked].map(|given| self.added(&matched.boxes, &given.losses));
            if of_linked < WORTH_IT * of_matched {
                self.improve(&matched, &mut linked, &rows, &lots_of_linked)?;
            }
            let people = better(given, &linked);
            cover(microdata, &mut matched.boxes, &people);
            matched.people[world] = people;
        }
        matched.people[first] = everybody;
        Ok(matched)
    }

    fn carried(&self, world: usize, person: u32) -> u32 {
        carried(self.partners, self.width, world, person)
    }

    /// Rows of each class with the people whose values are of that class in a world, in parts from the same corner, the best for each part.
    fn matched(
        &self,
        matched: &Matched,
        of_row: &[u32],
        world: usize,
        rows: &[&[u32]],
        lots: &LotsOfClasses,
    ) -> Result<Given> {
        let mut everybody: Vec<u32> = (0..self.microdata.rows as u32).collect();
        let class_in: Vec<u32> =
            everybody.par_iter().map(|&person| of_row[self.carried(world, person) as usize]).collect();
        let people = by_value(&mut everybody, &class_in);
        let agree = |(rows, people): (&&[u32], &&mut [u32])| {
            rows.len() == people.len() && matched.classes[rows[0] as usize] == class_in[people[0] as usize]
        };
        if rows.len() != people.len() || !rows.iter().zip(&people).all(agree) {
            return Err(Error::internal("a world with other values than the release; nothing was published"));
        }
        let cutting = self.cutting();
        let pairs = rows.par_iter().zip(people).enumerate().map(|(class, (rows, people))| {
            self.monitor.check()?;
            let near = Near::new(self.microdata, &matched.boxes, rows, people);
            let parts = cutting.cut(&near, rows, &mut lots.of(class))?;
            self.pairs(&near, parts.iter().collect(), rows, people)
        });
        let pairs: Vec<Vec<Pair>> = pairs.collect::<Result<_>>()?;
        let n = self.microdata.rows;
        let mut given = Given { people: vec![0; n], losses: vec![0.0; n] };
        given.set(&pairs);
        Ok(given)
    }

    /// For each row the person who carries the values of its donor in a world: what the baseline would do.
    fn linked(&self, matched: &Matched, donors: &[u32], world: usize) -> Given {
        let mut carrier = vec![0; self.microdata.rows];
        (0..self.microdata.rows as u32).for_each(|person| carrier[self.carried(world, person) as usize] = person);
        let people: Vec<u32> = donors.par_iter().map(|&donor| carrier[donor as usize]).collect();
        Given { losses: self.losses(&matched.boxes, &people), people }
    }

    /// Exchanges people between rows of the same class that lie close together.
    fn improve(&self, matched: &Matched, given: &mut Given, rows: &[&[u32]], lots: &LotsOfClasses) -> Result<()> {
        let cutting = self.cutting();
        let pairs = rows.par_iter().enumerate().map(|(class, rows)| {
            self.monitor.check()?;
            let people: Vec<u32> = rows.iter().map(|&row| given.people[row as usize]).collect();
            let near = Near::new(self.microdata, &matched.boxes, rows, &people);
            let parts = cutting.cut_rows(&near, rows, &mut lots.of(class))?;
            self.pairs(&near, parts.iter().collect(), rows, &people)
        });
        let pairs: Vec<Vec<Pair>> = pairs.collect::<Result<_>>()?;
        given.set(&pairs);
        Ok(())
    }

    /// The best pairs in each part of a class of these rows and people.
    fn pairs(&self, near: &Near, parts: Vec<(&[u32], &[u32])>, rows: &[u32], people: &[u32]) -> Result<Vec<Pair>> {
        let d = self.microdata.quasi.len();
        let assigning = Assigning { microdata: self.microdata, measure: self.measure };
        let of_part = |(of_rows, of_people): (&[u32], &[u32])| -> Result<Vec<Pair>> {
            self.monitor.check()?;
            let (boxes, codes) = (near.boxes_of(of_rows), near.codes_of(of_people));
            let chosen = assigning.assign(&boxes, &codes)?;
            let pair = |((&row, around), chosen): ((&u32, &[[u32; 2]]), u32)| Pair {
                row: rows[row as usize],
                person: people[of_people[chosen as usize] as usize],
                loss: self.measure.with(around, codes[chosen as usize * d..][..d].iter().copied()),
            };
            Ok(of_rows.iter().zip(boxes.chunks_exact(d)).zip(chosen).map(pair).collect())
        };
        let pairs: Vec<Vec<Pair>> = parts.into_par_iter().map(of_part).collect::<Result<_>>()?;
        Ok(pairs.concat())
    }

    fn cutting(&self) -> Cutting<'_> {
        Cutting { microdata: self.microdata, measure: self.measure, most: self.p }
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
}

/// Widens every row's box to hold a person.
fn cover(microdata: &Microdata, boxes: &mut [[u32; 2]], people: &[u32]) {
    let d = microdata.quasi.len();
    boxes.par_chunks_mut(d).zip(people).with_min_len(1024).for_each(|(boxes, &person)| {
        for ((interval, code), attribute) in boxes.iter_mut().zip(microdata.quasi_of(person)).zip(&microdata.quasi) {
            if code < interval[0] || code > interval[1] {
                *interval = attribute.closure([interval[0].min(code), interval[1].max(code)]);
            }
        }
    });
}
