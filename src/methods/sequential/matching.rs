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

/// Starts from a world drawn at random, and generalizes its rows until they are consistent with the others, too, in random order: in each
/// world, everybody gets a row with the values that travel with them there, so that as little as possible is added to the loss.
/// `partners` has `width` rows for every row of the microdata; parts of at most `p` rows are matched exactly.
pub(super) fn release(
    microdata: &Microdata,
    partners: &[u32],
    width: usize,
    measure: &Measure,
    p: usize,
    monitor: &Monitor,
    rng: &mut impl Rng,
) -> Result<Matched> {
    let n = microdata.rows;
    let of_row = classes(microdata);
    let class_in = |world: usize, person: u32| of_row[carried(partners, width, world, person) as usize];
    let mut order: Vec<usize> = (0..=width).collect();
    order.shuffle(rng);
    let Some((&first, others)) = order.split_first() else { return Err(Error::internal("a release of no world")) };
    let everybody: Vec<u32> = (0..n as u32).collect();
    let mut matched = Matched {
        boxes: microdata.quasi_codes.iter().map(|&code| [code, code]).collect(),
        classes: everybody.iter().map(|&person| class_in(first, person)).collect(),
        people: vec![Vec::new(); width + 1],
    };
    matched.people[first] = everybody;
    // Then everybody can have their own row in every world.
    let same_for_all = microdata.sensitive.is_none() && microdata.other.is_empty();
    for &world in others {
        if same_for_all {
            matched.people[world] = matched.people[first].clone();
            continue;
        }
        // Rows of a class, and people whose values are of that class in this world; in random order, so that ties are.
        let shuffled = |rng: &mut _| -> Vec<u32> {
            let mut rows: Vec<u32> = (0..n as u32).collect();
            rows.shuffle(rng);
            rows
        };
        let (mut rows, mut people) = (shuffled(rng), shuffled(rng));
        rows.par_sort_by_key(|&row| matched.classes[row as usize]);
        people.par_sort_by_key(|&person| class_in(world, person));
        let mut sides = Vec::new();
        let mut left = people.as_mut_slice();
        for rows in rows.chunk_by_mut(|&a, &b| matched.classes[a as usize] == matched.classes[b as usize]) {
            let (people, after) = left.split_at_mut(rows.len());
            let class = matched.classes[rows[0] as usize];
            if people.iter().any(|&person| class_in(world, person) != class) {
                return Err(Error::internal("a world with other values than the release; nothing was published"));
            }
            sides.push((rows, people));
            left = after;
        }
        let cutting = Cutting { microdata, measure, boxes: &matched.boxes, most: p };
        let cut = |(rows, people)| -> Result<Vec<Part<'_>>> {
            monitor.check()?;
            let mut parts = Vec::new();
            cutting.cut(rows, people, &mut parts);
            Ok(parts)
        };
        let parts: Vec<Vec<Part<'_>>> = sides.into_par_iter().map(cut).collect::<Result<_>>()?;
        let parts: Vec<Part<'_>> = parts.into_iter().flatten().collect();
        let boxes = &matched.boxes;
        let assigned = parts.par_iter().map(|&part| {
            monitor.check()?;
            assign(microdata, measure, boxes, part)
        });
        let assigned: Vec<Vec<u32>> = assigned.collect::<Result<_>>()?;
        let mut persons = vec![0; n];
        for ((rows, people), places) in parts.iter().zip(assigned) {
            rows.iter().zip(places).for_each(|(&row, place)| persons[row as usize] = people[place as usize]);
        }
        cover(microdata, &mut matched.boxes, &persons);
        matched.people[world] = persons;
    }
    Ok(matched)
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

/// For each row of a part, the place of its person: the assignment with the least loss.
fn assign(microdata: &Microdata, measure: &Measure, boxes: &[[u32; 2]], (rows, people): Part<'_>) -> Result<Vec<u32>> {
    let (n, d) = (rows.len(), microdata.quasi.len());
    if n == 1 {
        return Ok(vec![0]);
    }
    let mut costs = Vec::with_capacity(n * n);
    for &row in rows {
        let around = &boxes[row as usize * d..][..d];
        // What the row loses already is the same whoever it gets.
        let before = measure.sum(around);
        let added = |&person: &u32| f64::from(measure.with(around, microdata.quasi_of(person)) - before).max(0.0);
        costs.extend(people.iter().map(|person| (added(person) * UNIT).round()));
    }
    least(n, costs)
}

/// For each row of a square matrix of whole numbers its column in an assignment with the least sum.
pub(super) fn least(n: usize, costs: Vec<f64>) -> Result<Vec<u32>> {
    let costs = Array2::from_shape_vec((n, n), costs).map_err(|_| Error::internal("costs that are no square"))?;
    let (columns, _) = lapjv(&costs).map_err(|_| Error::internal("an assignment that was not found"))?;
    Ok(columns.into_iter().map(|column| column as u32).collect())
}
