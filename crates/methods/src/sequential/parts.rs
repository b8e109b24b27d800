//! Small parts of a matching: as many released rows as rows of a world, both from the same corner of the table.

use rand::Rng;

use super::measure::Measure;
use crate::error::Result;
use crate::extent::{Extent, FOUR, Position, fours, in_width};
use crate::microdata::{Microdata, copied_rows, shuffle};
use crate::release::Intervals;

/// Released rows of a class, and as many people, by numbers from 0: copies of what they have, side by side. They are looked at many times, and the tables that
/// they come from do not fit into the cache.
pub(super) struct Near {
    d: usize,
    /// Both ends of each interval.
    boxes: Vec<u32>,
    codes: Vec<u32>,
}

/// Numbers of rows and people of a class in the order of parts.
pub(super) struct Parts {
    rows: Vec<u32>,
    people: Vec<u32>,
    lengths: Vec<usize>,
}

/// Way to cut classes.
pub(super) struct Cutting<'a> {
    pub microdata: &'a Microdata,
    pub measure: &'a Measure,
    /// Most rows of a part.
    pub most: usize,
}

/// Sides of more rows are cut on several cores.
const LARGE: usize = 1 << 14;

impl Near {
    /// Copies the boxes of rows and the codes of people. `boxes` are those of all released rows.
    pub(super) fn new(microdata: &Microdata, boxes: &Intervals, rows: &[u32], people: &[u32]) -> Self {
        let d = microdata.quasi.len();
        Self { d, boxes: boxes.copied(rows), codes: microdata.quasi_codes.copied(people) }
    }

    /// Returns both ends of the intervals of some rows, row after row.
    pub(super) fn boxes_of(&self, rows: &[u32]) -> Vec<u32> {
        copied_rows(&self.boxes, 2 * self.d, rows)
    }

    /// Returns the codes of some people, person after person.
    pub(super) fn codes_of(&self, people: &[u32]) -> Vec<u32> {
        copied_rows(&self.codes, self.d, people)
    }
}

impl Parts {
    /// Returns the rows and people of each part.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        let mut start = 0;
        self.lengths.iter().map(move |&length| {
            let range = start..start + length;
            start += length;
            (&self.rows[range.clone()], &self.people[range])
        })
    }
}

/// A row or person, by number, and where it lies: twice the middle, for each quasi-identifier, in two bytes. They move together, so they stand together.
/// Of more than 32,768 values some share a place.
#[derive(Debug, Clone, Copy)]
struct Item<const W: usize> {
    number: u32,
    at: [[i16; FOUR]; W],
}

impl<const W: usize> Item<W> {
    const NONE: Self = Self { number: 0, at: [[0; FOUR]; W] };

    fn new(number: u32, places: impl Iterator<Item = u32>) -> Self {
        let mut item = Self { number, ..Self::NONE };
        item.at.as_flattened_mut().iter_mut().zip(places).for_each(|(at, place)| *at = i16::of_number(place));
        item
    }

    #[inline]
    fn on(&self, j: usize) -> u32 {
        self.at.as_flattened()[j].number()
    }
}

/// Returns the bytes of one.
pub(super) fn item_bytes(quasi: usize) -> usize {
    size_of::<u32>() + fours(quasi) * size_of::<[i16; FOUR]>()
}

/// Some of them, and room for as many.
struct Piece<'a, const W: usize> {
    items: &'a mut [Item<W>],
    room: &'a mut [Item<W>],
}

impl Cutting<'_> {
    /// Cuts both sides alike, in the middle of the widest attribute, into small parts. Where there is an end of a value
    /// near the middle, values stay together. Both sides have nearly the same values, so both sides of a cut have, too.
    /// Rows that tie are in random order. `rows` are those of the class.
    ///
    /// # Errors
    /// When there are more quasi-identifiers than are supported, which are refused before.
    pub(super) fn cut(&self, near: &Near, rows: &[u32], rng: &mut impl Rng) -> Result<Parts> {
        let people = in_random_order(rows.len(), rng);
        self.in_order(near, rows, people, rng)
    }

    /// Cuts rows alone, for parts in which every row keeps the person that it has: the one with its number.
    ///
    /// # Errors
    /// As for [`cut`](Self::cut).
    pub(super) fn cut_rows(&self, near: &Near, rows: &[u32], rng: &mut impl Rng) -> Result<Parts> {
        let parts = self.in_order(near, rows, Vec::new(), rng)?;
        Ok(Parts { people: parts.rows.clone(), ..parts })
    }

    fn in_order(&self, near: &Near, of_class: &[u32], people: Vec<u32>, rng: &mut impl Rng) -> Result<Parts> {
        let rows = in_random_order(of_class.len(), rng);
        if rows.len() <= self.most {
            return Ok(Parts { lengths: vec![rows.len()], rows, people });
        }
        in_width!(near.d, in_order_of(self, near, of_class, (&rows, &people)))
    }

    /// Returns the number of last bits that a place loses to fit into two bytes.
    fn spare_bits(&self, j: usize) -> u32 {
        let greatest = 2 * self.microdata.quasi[j].domain.len().saturating_sub(1) as u64;
        (u64::BITS - greatest.leading_zeros()).saturating_sub(u16::BITS)
    }

    /// Puts some of them in the order of parts, and returns the lengths of these. There may be no people.
    fn halve<const W: usize>(&self, mut rows: Piece<'_, W>, mut people: Piece<'_, W>) -> Vec<usize> {
        let n = rows.items.len();
        if n <= self.most {
            return vec![n];
        }
        let mut middle = self.middle(n);
        if let Some((j, ends)) = self.widest(&rows, &people) {
            let of_rows = Ranks::new(rows.on(j), ends);
            if people.items.is_empty() {
                middle = of_rows.near_middle(middle);
            } else {
                let of_people = Ranks::new(people.on(j), ends);
                middle = of_people.near_middle(middle);
                people.lowest_first(j, middle, &of_people);
            }
            rows.lowest_first(j, middle, &of_rows);
        }
        let (rows, more_rows) = rows.split_at(middle);
        let (people, more_people) = people.split_at(middle);
        let (mut lengths, more) = match n > LARGE {
            true => rayon::join(|| self.halve(rows, people), || self.halve(more_rows, more_people)),
            false => (self.halve(rows, people), self.halve(more_rows, more_people)),
        };
        lengths.extend(more);
        lengths
    }

    /// Returns as many rows as whole parts need.
    fn middle(&self, n: usize) -> usize {
        let pieces = n.div_ceil(self.most);
        n * (pieces / 2) / pieces
    }

    /// Returns the quasi-identifier that spreads most over both sides, and from where to where; `None` if all are alike.
    fn widest<const W: usize>(&self, rows: &Piece<'_, W>, people: &Piece<'_, W>) -> Option<(usize, [u32; 2])> {
        let mut extent = Extent::<W, i16>::NONE;
        rows.items.iter().chain(&*people.items).for_each(|item| extent.widen(&item.at));
        let widths = (0..self.microdata.quasi.len()).map(|j| {
            let ends = extent.ends(j).map(i16::number);
            let [lo, hi] = ends.map(|end| 0.5 * (end << self.spare_bits(j)) as f32);
            (self.measure.width(j, lo, hi), j, ends)
        });
        let widest = widths.filter(|(width, ..)| *width > 0.0).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        widest.map(|(_, j, ends)| (j, ends))
    }
}

/// Returns the rows and people of a class, by numbers, in the order of parts.
fn in_order_of<const W: usize>(
    cutting: &Cutting<'_>,
    near: &Near,
    of_class: &[u32],
    (rows, people): (&[u32], &[u32]),
) -> Result<Parts> {
    let d = near.d;
    let quasi = cutting.microdata.quasi.iter().enumerate();
    let axes: Vec<(bool, u32)> =
        quasi.map(|(j, attribute)| (attribute.hierarchy.is_some(), cutting.spare_bits(j))).collect();
    // Where there is a hierarchy, nodes jump, and their middles say little: there, that of the person whom the row began with, who has the
    // row's number.
    let (boxes, _) = near.boxes.as_chunks();
    let of_row = |&row: &u32| {
        let boxes = boxes[row as usize * d..][..d].iter().zip(&axes).enumerate();
        let center = |(j, (around, &(is_tree, spare))): (usize, (&[u32; 2], &(bool, u32)))| match is_tree {
            true => (2 * cutting.microdata.quasi_at(of_class[row as usize], j)) >> spare,
            false => (around[0] + around[1]) >> spare,
        };
        Item::<W>::new(row, boxes.map(center))
    };
    let of_person = |&person: &u32| {
        let codes = near.codes[person as usize * d..][..d].iter().zip(&axes);
        Item::new(person, codes.map(|(&code, &(_, spare))| (2 * code) >> spare))
    };
    let mut of_rows: Vec<Item<W>> = rows.iter().map(of_row).collect();
    let mut of_people: Vec<Item<W>> = people.iter().map(of_person).collect();
    let [mut room, mut more_room] = [rows, people].map(|numbers| vec![Item::NONE; numbers.len()]);
    let rows = Piece { items: &mut of_rows, room: &mut room };
    let lengths = cutting.halve(rows, Piece { items: &mut of_people, room: &mut more_room });
    let [rows, people] = [of_rows, of_people].map(|items| items.iter().map(|item| item.number).collect());
    Ok(Parts { rows, people, lengths })
}

fn in_random_order(rows: usize, rng: &mut impl Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..rows as u32).collect();
    shuffle(&mut numbers, rng);
    numbers
}

impl<'a, const W: usize> Piece<'a, W> {
    /// Returns the first ones, and the others. There may be none at all.
    fn split_at(self, middle: usize) -> (Self, Self) {
        let middle = middle.min(self.items.len());
        let (items, more) = self.items.split_at_mut(middle);
        let (room, more_room) = self.room.split_at_mut(middle);
        (Piece { items, room }, Piece { items: more, room: more_room })
    }

    /// Returns the places on an axis.
    fn on(&self, j: usize) -> impl ExactSizeIterator<Item = u32> + Clone {
        self.items.iter().map(move |item| item.on(j))
    }

    /// Moves the `cut` that lie lowest by quasi-identifier `j` to the front; both sides keep their order.
    fn lowest_first(&mut self, j: usize, cut: usize, ranks: &Ranks) {
        let Self { items, room } = self;
        if cut == 0 || cut >= items.len() {
            return;
        }
        let Rank { place: last, below, .. } = ranks.at(cut - 1);
        let mut equal = cut - below;
        // Every one is written to both sides, and counts on one: without a branch that would be guessed wrongly half of the time.
        let (mut left, mut right) = (0, 0);
        for at in 0..items.len() {
            let item = items[at];
            let place = item.on(j);
            let is_last = (place == last) & (equal > 0);
            equal -= usize::from(is_last);
            let is_low = is_last | (place < last);
            items[left] = item;
            room[right] = item;
            left += usize::from(is_low);
            right += usize::from(!is_low);
        }
        items[left..].copy_from_slice(&room[..right]);
    }
}

/// Places in order, which are looked up by rank.
enum Ranks {
    /// From a place on, how many lie at it and below.
    Counted {
        first: u32,
        upto: Vec<u32>,
    },
    Sorted(Vec<u32>),
}

/// Place at a rank, number of places below, and number up to there.
struct Rank {
    place: u32,
    below: usize,
    upto: usize,
}

impl Ranks {
    /// Counts places between two ends, both included.
    fn new(places: impl ExactSizeIterator<Item = u32>, [first, last]: [u32; 2]) -> Self {
        let width = (last - first) as usize + 1;
        if width > 4 * places.len() {
            let mut sorted: Vec<u32> = places.collect();
            sorted.sort_unstable();
            return Self::Sorted(sorted);
        }
        let mut upto = vec![0; width];
        places.for_each(|place| upto[(place - first) as usize] += 1);
        let mut sum = 0;
        for count in &mut upto {
            sum += *count;
            *count = sum;
        }
        Self::Counted { first, upto }
    }

    fn len(&self) -> usize {
        match self {
            Self::Counted { upto, .. } => upto.last().map_or(0, |&all| all as usize),
            Self::Sorted(sorted) => sorted.len(),
        }
    }

    /// Returns the place at a rank, which is below the number of places.
    fn at(&self, rank: usize) -> Rank {
        match self {
            Self::Counted { first, upto } => {
                let at = upto.partition_point(|&upto| upto as usize <= rank);
                let below = at.checked_sub(1).map_or(0, |before| upto[before] as usize);
                Rank { place: first + at as u32, below, upto: upto[at] as usize }
            }
            Self::Sorted(sorted) => {
                let place = sorted[rank];
                let below = sorted.partition_point(|&other| other < place);
                Rank { place, below, upto: sorted.partition_point(|&other| other <= place) }
            }
        }
    }

    /// Returns the rank near the middle at which a value ends, else the middle.
    fn near_middle(&self, middle: usize) -> usize {
        let n = self.len();
        if middle == 0 || middle >= n {
            return middle;
        }
        let Rank { below, upto, .. } = self.at(middle);
        let far = n / 4;
        let (before, after) = (middle - below, upto - middle);
        match (below > 0 && before < far, upto < n && after < far) {
            (true, true) if after < before => upto,
            (true, _) => below,
            (false, true) => upto,
            (false, false) => middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against sorting; where places are few they are counted, otherwise sorted.
        #[test]
        fn sides_are_cut_as_if_they_were_sorted(
            places in prop::sample::select(vec![12_u32, 1 << 16])
                .prop_flat_map(|most| prop::collection::vec(0..most, 2..200)),
            middle in 0.0..1.0,
        ) {
            let n = places.len();
            let middle = (n as f64 * middle) as usize;
            let numbers = 0..n as u32;
            // Another axis, by which rows can be told to have kept what is theirs.
            let item = |number: u32| {
                let place = places[number as usize];
                Item::<1>::new(number, [u32::from(u16::MAX) - place, place].into_iter())
            };
            let mut items: Vec<Item<1>> = numbers.clone().rev().map(item).collect();
            let mut sorted: Vec<u32> = numbers.rev().collect();
            sorted.sort_by_key(|&number| places[number as usize]);
            let ends = |place: usize| places[sorted[place - 1] as usize] != places[sorted[place] as usize];
            let near = (0..n / 4).flat_map(|off| [middle.saturating_sub(off), middle + off]);
            let expected = near.filter(|&place| place > 0 && place < n).find(|&place| ends(place)).unwrap_or(middle);
            let bounds = [*places.iter().min().unwrap(), *places.iter().max().unwrap()];
            let mut piece = Piece { items: &mut items, room: &mut vec![Item::NONE; n] };
            let ranks = Ranks::new(piece.on(1), bounds);
            let cut = ranks.near_middle(middle);
            prop_assert!(middle == 0 || cut == expected, "{cut} {expected}");
            piece.lowest_first(1, cut, &ranks);
            let numbers: Vec<u32> = items.iter().map(|item| item.number).collect();
            let [low, of_sorted] = [&numbers[..cut], &sorted[..cut]].map(|low| low.iter().collect::<std::collections::BTreeSet<_>>());
            prop_assert_eq!(low, of_sorted);
            let descends = |numbers: &[u32]| numbers.is_sorted_by(|a, b| a > b);
            prop_assert!(cut == 0 || (descends(&numbers[..cut]) && descends(&numbers[cut..])));
            prop_assert!(items.iter().all(|moved| moved.at == item(moved.number).at));
        }
    }
}
