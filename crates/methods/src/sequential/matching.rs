//! Release of rows that are consistent with every world (Algorithm 2).

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::assign::Assigning;
use super::cycles::{Given, better};
use super::measure::Measure;
use super::parts::{Cutting, Parts};
use crate::Monitor;
use crate::assignment::by_value;
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::Intervals;

/// Released rows, and who has each of them in each world.
pub(super) struct Matched {
    /// Published values of each row.
    pub boxes: Intervals,
    /// Class of each row's values that travel.
    pub classes: Vec<u32>,
    /// For each world, the true one first, the person of each row.
    pub people: Vec<Vec<u32>>,
}

/// Returns the values that travel, as numbers: of each row, the class of rows with the same sensitive value and the same others.
pub(super) fn classes(microdata: &Microdata) -> Vec<u32> {
    if microdata.sensitive.is_some() && microdata.other.is_empty() {
        let mut class_of = Vec::new();
        for code in microdata.sensitive_codes.iter() {
            let code = code as usize;
            class_of.resize(class_of.len().max(code + 1), 0);
            class_of[code] = 1;
        }
        let mut classes = 0;
        class_of.iter_mut().for_each(|class| classes += std::mem::replace(class, classes));
        return microdata.sensitive_codes.iter().map(|code| class_of[code as usize]).collect();
    }
    let value = |row: u32| microdata.sensitive.is_some().then(|| microdata.sensitive_codes.at(row));
    let key = |row: u32| (value(row), microdata.other_of(row));
    let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
    rows.par_sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
    let mut classes = vec![0; rows.len()];
    for (class, rows) in rows.chunk_by(|&a, &b| key(a) == key(b)).enumerate() {
        rows.iter().for_each(|&row| classes[row as usize] = class as u32);
    }
    classes
}

/// Returns the row whose travelling values a person carries in a world.
#[inline]
pub(super) fn carried(partners: &[u32], width: usize, world: usize, person: u32) -> u32 {
    match world {
        0 => person,
        world => partners[person as usize * width + world - 1],
    }
}

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

/// Beginning of a release.
struct Begun<'a> {
    /// The class of everybody's own values.
    of_row: &'a [u32],
    /// People whose values each row of the release has.
    donors: &'a [u32],
    /// The rows of each class.
    rows: &'a [&'a [u32]],
}

/// A row, the person whom it is given, and its loss with that person.
type Gift = (u32, u32, f32);

impl Given {
    /// Gives rows these people.
    fn take(&mut self, gifts: Vec<Gift>) {
        for (row, person, loss) in gifts {
            self.people[row as usize] = person;
            self.losses[row as usize] = loss;
        }
    }
}

/// Rows whose boxes are copied together.
const PIECE: usize = 1 << 12;

/// Draws for each class by itself: they are the same on any number of cores.
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

/// Greatest loss of a class's linked rows for exchanges, in losses of matched ones.
const WORTH_IT: f64 = 1.25;
/// Greatest loss of a class's matched rows, in losses of linked ones, for further matching. Rows are wider in later
/// worlds, and by the loss metric those that are linked lose even less.
const HOPELESS: f64 = 2.0;
/// Inverse of the least loss of the linked rows that matching may save. It is a part of what all lose: that is the most it could save.
const LITTLE: f64 = 10.0;

impl Matching<'_> {
    /// Starts from a world drawn at random, and generalizes its rows for the others. The others come in random order: in
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
            boxes: points(microdata)?,
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
        let begun = Begun { of_row: &of_row, donors: &donors, rows: &rows };
        let mut hopeless = vec![false; rows.len()];
        for &world in others {
            self.monitor.check()?;
            let people = self.people_of(world, &matched, &begun, &mut hopeless, rng)?;
            cover(microdata, &mut matched.boxes, &people)?;
            matched.people[world] = people;
        }
        matched.people[first] = everybody;
        Ok(matched)
    }

    /// Returns the person of each row in a world. Every row has the values of somebody: who carries them in this world, whom the row is *linked* to, lies near
    /// that person, by all columns; or rows are *matched* anew. `hopeless` classes are not matched.
    fn people_of(
        &self,
        world: usize,
        matched: &Matched,
        begun: &Begun<'_>,
        hopeless: &mut [bool],
        rng: &mut impl Rng,
    ) -> Result<Vec<u32>> {
        let (lots, lots_of_linked) = (LotsOfClasses::new(rng), LotsOfClasses::new(rng));
        let mut linked = self.linked(matched, begun.donors, world);
        let of_linked = self.added(&matched.boxes, &linked.losses, begun.rows);
        let is_tried: Vec<bool> =
            of_linked.iter().zip(&*hopeless).map(|(&loss, &hopeless)| loss > 0.0 && !hopeless).collect();
        let of_tried: f64 = of_linked.iter().zip(&is_tried).filter(|of| *of.1).map(|(loss, _)| loss).sum();
        // Classes that are not tried stay linked.
        let mut given = None;
        let mut of_matched = vec![f64::INFINITY; begun.rows.len()];
        if of_tried > 0.0 && LITTLE * of_tried >= of_linked.iter().sum() {
            let mut other = linked.clone();
            other.take(self.matched(world, matched, begun, &is_tried, &lots)?);
            let losses = self.added(&matched.boxes, &other.losses, begun.rows);
            for ((of_matched, loss), _) in of_matched.iter_mut().zip(losses).zip(&is_tried).filter(|of| *of.1) {
                *of_matched = loss;
            }
            given = Some(other);
        }
        let of_both = of_linked.iter().zip(&of_matched);
        let is_worth_it: Vec<bool> =
            of_both.clone().map(|(&linked, &matched)| linked > 0.0 && linked < WORTH_IT * matched).collect();
        let exchanged = self.exchanged(matched, begun, &is_worth_it, &lots_of_linked, &linked)?;
        linked.take(exchanged);
        for (hopeless, (linked, matched)) in hopeless.iter_mut().zip(of_both) {
            *hopeless |= matched.is_finite() && HOPELESS * linked < *matched;
        }
        Ok(match given {
            Some(given) => better(&given, &linked),
            None => linked.people,
        })
    }

    fn carried(&self, world: usize, person: u32) -> u32 {
        carried(self.partners, self.width, world, person)
    }

    /// Gives rows of the tried classes the people with their values in a world. It goes by parts from the same corner,
    /// the best for each part.
    fn matched(
        &self,
        world: usize,
        matched: &Matched,
        begun: &Begun<'_>,
        is_tried: &[bool],
        lots: &LotsOfClasses,
    ) -> Result<Vec<Gift>> {
        let Begun { of_row, rows, .. } = *begun;
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
        let classes = rows.par_iter().zip(people).zip(is_tried).enumerate().filter(|(_, (_, is_tried))| **is_tried);
        let of_classes = classes.map(|(class, ((rows, people), _))| {
            self.monitor.check()?;
            self.gifts(matched, &cutting.cut(&matched.boxes, rows, people, &mut lots.of(class)))
        });
        Ok(of_classes.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Gives each row the person with its donor's values in a world, like the baseline.
    fn linked(&self, matched: &Matched, donors: &[u32], world: usize) -> Given {
        let mut carrier = vec![0; self.microdata.rows];
        (0..self.microdata.rows as u32).for_each(|person| carrier[self.carried(world, person) as usize] = person);
        let people: Vec<u32> = donors.iter().map(|&donor| carrier[donor as usize]).collect();
        Given { losses: self.losses(&matched.boxes, &people), people }
    }

    /// Exchanges people between close rows of a class, and returns the person of each row. Only classes take part for which `is_worth_it` is true.
    fn exchanged(
        &self,
        matched: &Matched,
        begun: &Begun<'_>,
        is_worth_it: &[bool],
        lots: &LotsOfClasses,
        given: &Given,
    ) -> Result<Vec<Gift>> {
        let cutting = self.cutting();
        let classes = begun.rows.par_iter().zip(is_worth_it).enumerate().filter(|(_, (_, is_worth_it))| **is_worth_it);
        let of_classes = classes.map(|(class, (rows, _))| {
            self.monitor.check()?;
            let person = |row: u32| given.people[row as usize];
            self.gifts(matched, &cutting.cut_rows(&matched.boxes, rows, person, &mut lots.of(class)))
        });
        Ok(of_classes.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Returns the best person for each row in each part.
    fn gifts(&self, matched: &Matched, parts: &Parts) -> Result<Vec<Gift>> {
        let d = self.microdata.quasi.len();
        let assigning = Assigning { microdata: self.microdata, measure: self.measure };
        let parts: Vec<(&[u32], &[u32])> = parts.iter().collect();
        let of_parts = parts.into_par_iter().map(|(rows, people)| {
            self.monitor.check()?;
            let (boxes, codes) = (matched.boxes.copied(rows), self.microdata.quasi_codes.copied(people));
            let (boxes, _) = boxes.as_chunks();
            let chosen = assigning.assign(boxes, &codes)?;
            let gift = |((&row, around), chosen): ((&u32, &[[u32; 2]]), u32)| {
                let codes = codes[chosen as usize * d..][..d].iter().copied();
                (row, people[chosen as usize], self.measure.with(around.iter().copied(), codes))
            };
            Ok(rows.iter().zip(boxes.chunks_exact(d)).zip(chosen).map(gift).collect::<Vec<_>>())
        });
        Ok(of_parts.collect::<Result<Vec<_>>>()?.concat())
    }

    fn cutting(&self) -> Cutting<'_> {
        Cutting { microdata: self.microdata, measure: self.measure, most: self.p }
    }

    /// Returns the losses of rows that cover people, too: row `i` covers `people[i]`.
    fn losses(&self, boxes: &Intervals, people: &[u32]) -> Vec<f32> {
        let d = self.microdata.quasi.len();
        let of_piece = |(piece, people): (usize, &[u32])| {
            let mut near = Vec::new();
            boxes.append_to(&mut near, ((piece * PIECE) as u32..).take(people.len()));
            let rows = near.as_chunks().0.chunks_exact(d).zip(people);
            let loss = |(around, &person): (&[[u32; 2]], &u32)| {
                self.measure.with(around.iter().copied(), self.microdata.quasi_of(person))
            };
            rows.map(loss).collect::<Vec<f32>>()
        };
        people.par_chunks(PIECE).enumerate().map(of_piece).collect::<Vec<_>>().concat()
    }

    /// Returns for each class the losses beyond those of its rows alone. By entropies some lose less when they are
    /// widened, and that is nobody's to choose.
    fn added(&self, boxes: &Intervals, losses: &[f32], rows: &[&[u32]]) -> Vec<f64> {
        let d = self.microdata.quasi.len();
        let more = |(&row, around): (&u32, &[[u32; 2]])| {
            f64::from(losses[row as usize] - self.measure.sum(around.iter().copied())).max(0.0)
        };
        let of_piece = |rows: &[u32]| -> f64 {
            let near = boxes.copied(rows);
            rows.iter().zip(near.as_chunks().0.chunks_exact(d)).map(more).sum()
        };
        rows.par_iter().map(|rows| rows.chunks(PIECE).map(of_piece).sum()).collect()
    }
}

/// Returns the box of each row that holds nobody but the person with its number.
///
/// # Errors
/// An internal one when a code is none of the table's, which is a bug.
fn points(microdata: &Microdata) -> Result<Intervals> {
    let fill = |(): &mut (), first: usize, boxes: &mut [[u32; 2]]| {
        let codes = (first as u32..).flat_map(|row| microdata.quasi_of(row));
        boxes.iter_mut().zip(codes).for_each(|(interval, code)| *interval = [code, code]);
    };
    let points = Intervals::made(microdata.quasi.len(), microdata.rows, microdata.greatest_code(), || (), fill);
    points.ok_or_else(|| Error::internal("a row with values that are not in the domain"))
}

/// Widens every row's box to hold a person.
///
/// # Errors
/// An internal one when a box ends at a code that is none of the table's, which is a bug.
fn cover(microdata: &Microdata, boxes: &mut Intervals, people: &[u32]) -> Result<()> {
    let d = microdata.quasi.len();
    let fits = boxes.change(|first, boxes| {
        for (boxes, &person) in boxes.chunks_exact_mut(d).zip(&people[first..]) {
            for ((interval, code), attribute) in boxes.iter_mut().zip(microdata.quasi_of(person)).zip(&microdata.quasi)
            {
                if code < interval[0] || code > interval[1] {
                    *interval = attribute.closure([interval[0].min(code), interval[1].max(code)]);
                }
            }
        }
    });
    if fits { Ok(()) } else { Err(Error::internal("a box that ends at a value that is not in the domain")) }
}

#[cfg(test)]
mod tests;
