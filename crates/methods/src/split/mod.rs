//! Split of a balanced bucket of `h` rows per list into `h` groups. Groups have one row per list.
//!
//! Binary splits: with each list sorted by one attribute, the first `k` rows of every list form one side. m-Invariance's paper
//! (Section 4.3)
//! tries every attribute and every `k` at every split and takes the one with the least
//! `|B1| * sum_j len_j(B1) + |B2| * sum_j len_j(B2)`. That is done here once buckets are small enough to stay in cache
//! ([`fine`]); larger ones are halved at the medians of the attribute that shrinks most ([`coarse`]), which keeps the
//! depth logarithmic.
//!
//! Counterfeits have no quasi-identifiers. The paper sorts them first, which drags them to the low end of an attribute; here
//! they stand evenly between the rows, from a random place on, and extend nothing.

mod coarse;
mod fine;
mod median;
mod secret;

pub(super) use coarse::{Node, PARALLEL_FROM, best_attribute, split as sorted};
pub(super) use median::Spare;
use rayon::prelude::*;
#[cfg(test)]
pub(super) use secret::Choose;
pub(super) use secret::Secret;

use super::extent::{FOUR, Position, fours, in_width};
use crate::Monitor;
use crate::error::{Error, Result};
use crate::microdata::Microdata;

/// Way to split a bucket.
pub(super) trait Splitter: Sync {
    /// Data that it looks at of every row. Rows carry it, for to look it up by the row would miss the cache at every level of the splits.
    type Tag: Tag;

    /// Returns the tag of a row.
    fn tag(&self, microdata: &Microdata, row: u32) -> Self::Tag;

    /// Splits a bucket into groups; group `g` of `s` members goes to `members[g * s..][..s]`, in the order of the lists, with
    /// [`COUNTERFEIT`](crate::release::COUNTERFEIT) where a list has no row for it.
    fn split<const W: usize>(
        &self,
        microdata: &Microdata,
        node: Node<'_, W, Self::Tag>,
        members: &mut [u32],
        spare: &mut Spare<W, Self::Tag>,
        monitor: &Monitor,
    );
}

/// Anything small.
pub(super) trait Tag: Copy + Default + Send + Sync {}

impl<T: Copy + Default + Send + Sync> Tag for T {}

/// Any row of a list goes with any row of another.
pub(super) struct Sorted;

impl Splitter for Sorted {
    type Tag = ();

    fn tag(&self, _microdata: &Microdata, _row: u32) {}

    fn split<const W: usize>(
        &self,
        microdata: &Microdata,
        node: Node<'_, W, ()>,
        members: &mut [u32],
        spare: &mut Spare<W, ()>,
        monitor: &Monitor,
    ) {
        sorted(microdata.quasi.len(), node, members, spare, monitor);
    }
}

/// Splits all buckets into as many groups as they are high. Returns the rows of the groups, bucket after bucket.
pub(super) fn split(
    microdata: &Microdata,
    lists: &Lists,
    heights: &[usize],
    secret: Secret,
    splitter: &impl Splitter,
    monitor: &Monitor,
) -> Result<Vec<u32>> {
    in_width!(microdata.quasi.len(), split_wide(microdata, lists, heights, secret, splitter, monitor))
}

/// Returns the bytes of a row on its way through the splits.
pub(super) fn item_bytes<S: Splitter>(quasi: usize, _splitter: &S) -> usize {
    size_of::<u32>() + fours(quasi) * FOUR * size_of::<Place>() + size_of::<S::Tag>()
}

/// Returns the bytes of the room to put lists in order, in all threads. The longest lists of the buckets that are split at a time have so many rows together:
/// there is room for a list and, as rows may change sides, of a copy; and other threads take room for the halves that they split. A row has `item` bytes.
fn spare_bytes(rows: usize, item: usize) -> usize {
    let halves = 2 + rayon::current_num_threads().ilog2() as usize;
    halves * rows.saturating_mul(item + size_of::<Place>())
}

fn split_wide<const W: usize>(
    microdata: &Microdata,
    lists: &Lists,
    heights: &[usize],
    secret: Secret,
    splitter: &impl Splitter,
    monitor: &Monitor,
) -> Result<Vec<u32>> {
    for (number, &height) in heights.iter().enumerate() {
        if lists.of(number).any(|list| list.len() > height) {
            return Err(Error::internal("a bucket with more rows in a list than groups"));
        }
    }
    let sizes = || heights.iter().enumerate().map(|(number, height)| lists.of(number).len() * height);
    let total: usize = sizes().sum();
    if total >= u32::MAX as usize {
        return Err(Error::refused("a release of more than four billion rows and counterfeits is not supported"));
    }
    let mut longest: Vec<usize> =
        (0..heights.len()).map(|number| lists.of(number).map(<[u32]>::len).max().unwrap_or(0)).collect();
    longest.sort_unstable_by_key(|&rows| std::cmp::Reverse(rows));
    let spare = spare_bytes(
        longest.iter().take(rayon::current_num_threads()).sum(),
        item_bytes(microdata.quasi.len(), splitter),
    );
    let values: usize = microdata.quasi.iter().map(|attribute| attribute.domain.len()).sum();
    monitor.charge(spare + values * size_of::<Place>())?;
    let places: Vec<Vec<Place>> =
        microdata.quasi.iter().map(|attribute| places(attribute.domain.positions())).collect();
    let mut members = vec![0; total];
    let mut work = Vec::with_capacity(heights.len());
    let mut left = members.as_mut_slice();
    for (number, size) in sizes().enumerate() {
        let (members, after) = left.split_at_mut(size);
        if size > 0 {
            work.push((number, members));
        }
        left = after;
    }
    work.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    work.into_par_iter().for_each(|(number, members)| {
        let mut items = items::<W, _>(microdata, lists.of(number).collect(), &places, splitter);
        let lists = items.iter_mut().map(Vec::as_mut_slice).collect();
        let node = Node { lists, height: heights[number], secret: secret.of_bucket(number) };
        splitter.split(microdata, node, members, &mut Spare::default(), monitor);
    });
    monitor.check()?;
    Ok(members)
}

/// Returns the rows of lists, block of the table after block: rows of a list stand in their order, as a rule, far from each other, and those of other
/// lists lie between them.
fn items<const W: usize, S: Splitter>(
    microdata: &Microdata,
    mut lists: Vec<&[u32]>,
    places: &[Vec<Place>],
    splitter: &S,
) -> Vec<Vec<Item<W, S::Tag>>> {
    /// Greatest number of rows of a block, if each list's are worth a look.
    const BLOCK: usize = 1 << 14;
    const OF_LIST: usize = 32;
    let mut items: Vec<Vec<Item<W, S::Tag>>> = lists.iter().map(|rows| Vec::with_capacity(rows.len())).collect();
    let (d, mut near) = (microdata.quasi.len(), Vec::new());
    let all: usize = lists.iter().map(|rows| rows.len()).sum();
    let worth_it = (OF_LIST * lists.len()).saturating_mul(microdata.rows) / all.max(1);
    let block = worth_it.max(BLOCK);
    for end in (0..microdata.rows).step_by(block).map(|start| start + block) {
        let is_last = end >= microdata.rows;
        for (items, rows) in items.iter_mut().zip(&mut lists) {
            let beyond = if is_last { None } else { rows.iter().position(|&row| row as usize >= end) };
            let (here, after) = rows.split_at(beyond.unwrap_or(rows.len()));
            near.clear();
            microdata.quasi_codes.append_to(&mut near, here.iter().copied());
            let codes = |place: usize| &near[place * d..][..d];
            let item = |(place, &row)| Item::new(places, row, codes(place), splitter.tag(microdata, row));
            items.extend(here.iter().enumerate().map(item));
            *rows = after;
        }
    }
    items
}

/// Place of a value in its domain, from end to end in 2^16 steps. Two bytes and not four: what rows carry through
/// the splits is what these take their time for.
pub(crate) type Place = i16;

/// Returns the places of positions from 0 to 1, which ascend. Each is about a step beyond the one before, however near values lie to each other, for a
/// very great one must not make all others alike; up to half of the steps go there, so that of more than 32,768 values neighbours may share a place, and
/// are cut like equal ones.
fn places(positions: &[f32]) -> Vec<Place> {
    let last = positions.len().saturating_sub(1).max(1) as f32;
    let by_rank = (last / f32::from(u16::MAX)).min(0.5);
    let place = |(rank, position): (usize, &f32)| position * (1.0 - by_rank) + rank as f32 / last * by_rank;
    positions.iter().enumerate().map(|at| Place::of_place(place(at))).collect()
}

/// A row and where it lies: its place in each quasi-identifier's domain. Places beyond the number of quasi-identifiers are the same for all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<const W: usize, T> {
    pub row: u32,
    /// Tag that its [`Splitter`] looks at.
    pub tag: T,
    pub at: [[Place; FOUR]; W],
}

/// Place of all rows in attributes that do not exist.
const NOWHERE: Place = 0;

impl<const W: usize, T: Tag> Item<W, T> {
    /// Returns its place in an attribute's domain.
    #[inline]
    pub(crate) fn place(&self, attribute: usize) -> Place {
        self.at[attribute / FOUR][attribute % FOUR]
    }

    /// Returns a whole number to sort rows by an attribute, then by number, without branches. Rows that lie together come by their number in a list.
    #[inline]
    pub(crate) fn key(&self, attribute: usize, number: u16) -> u32 {
        self.place(attribute).key() << 16 | u32::from(number)
    }

    /// Makes an item; `places` are those of each quasi-identifier's codes.
    fn new(places: &[Vec<Place>], row: u32, codes: &[u32], tag: T) -> Self {
        let mut at = [[NOWHERE; FOUR]; W];
        for ((at, places), &code) in at.as_flattened_mut().iter_mut().zip(places).zip(codes) {
            *at = places[code as usize];
        }
        Self { row, tag, at }
    }
}

/// Parts of all rows for each core, where lists are filled; and that a part has at least so many rows, and so many for each list.
const PARTS: usize = 4;
const PART_ROWS: usize = 1 << 14;
const PART_LISTS: usize = 8;

/// The rows of all buckets, one list per bucket and value, side by side.
pub(super) struct Lists {
    rows: Vec<u32>,
    /// Start of each list in `rows`.
    starts: Vec<u32>,
    /// First list of each bucket, and the number of all lists.
    buckets: Vec<usize>,
}

impl Lists {
    /// Makes lists; `buckets` has the first list of each bucket, then the number of lists. Of the table's rows, those
    /// that `list_of` tells a list for are in that, ascending.
    pub(super) fn new(buckets: Vec<usize>, rows: usize, list_of: impl Fn(u32) -> Option<usize> + Sync) -> Result<Self> {
        let Some(&all) = buckets.last() else { return Err(Error::internal("lists without an end")) };
        // Parts of the rows on all cores: first how many of each list, and then which. As many parts as have many more rows than there are lists.
        let most = rows / (PART_ROWS + PART_LISTS * all) + 1;
        let part = rows.div_ceil(most.min(PARTS * rayon::current_num_threads())).max(1);
        let parts: Vec<_> = (0..rows).step_by(part).map(|start| start as u32..rows.min(start + part) as u32).collect();
        let counts = parts.par_iter().map(|part| {
            let mut counts = vec![0_u32; all];
            part.clone().filter_map(&list_of).for_each(|list| counts[list] += 1);
            counts
        });
        let counts: Vec<Vec<u32>> = counts.collect();
        let mut starts = vec![0_u32; all + 1];
        for list in 0..all {
            starts[list + 1] = starts[list] + counts.iter().map(|counts| counts[list]).sum::<u32>();
        }
        let mut rows = vec![0; starts[all] as usize];
        let mut places: Vec<Vec<_>> = parts.iter().map(|_| Vec::with_capacity(all)).collect();
        let mut left = rows.as_mut_slice();
        for list in 0..all {
            for (places, counts) in places.iter_mut().zip(&counts) {
                let (of_part, after) = left.split_at_mut(counts[list] as usize);
                places.push(of_part.iter_mut());
                left = after;
            }
        }
        let filled = parts.into_par_iter().zip(places).all(|(part, mut places)| {
            let mut rows = part.filter_map(|row| Some((row, list_of(row)?)));
            rows.all(|(row, list)| places[list].next().map(|place| *place = row).is_some())
        });
        match filled {
            true => Ok(Self { rows, starts, buckets }),
            false => Err(Error::internal("rows whose list was another one before")),
        }
    }

    /// Returns the same of these lists, which have their rows in any order.
    pub(super) fn of_rows(buckets: Vec<usize>, lists: &[&[u32]]) -> Result<Self> {
        if buckets.last() != Some(&lists.len()) {
            return Err(Error::internal("lists without an end"));
        }
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(lists.iter().map(|rows| {
            end += rows.len() as u32;
            end
        }));
        Ok(Self { rows: lists.concat(), starts, buckets })
    }

    /// Returns the lists of a bucket.
    pub(super) fn of(&self, bucket: usize) -> impl ExactSizeIterator<Item = &[u32]> {
        let lists = self.buckets[bucket]..self.buckets[bucket + 1];
        lists.map(|list| &self.rows[self.starts[list] as usize..self.starts[list + 1] as usize])
    }
}

/// Counts the rows among the first `k` of `h` places when rows and counterfeits alternate. There are `rows` of the
/// former and `h - rows` of the latter, evenly. `offset` below `h` says where the pattern starts.
#[inline]
pub(super) fn rows_among(k: usize, h: usize, rows: usize, offset: usize) -> usize {
    k - (k * (h - rows) + offset) / h
}

#[cfg(test)]
mod tests {
    use super::{Item, Lists, Place, Sorted, items, rows_among};
    use crate::microdata::{Codes, Microdata, RowCodes};

    /// Over several blocks, whatever order the rows of a list are in.
    #[test]
    fn rows_of_lists_keep_their_order() {
        let rows = 50_000;
        let microdata = Microdata {
            rows: rows as usize,
            people: None,
            quasi: Vec::new(),
            quasi_codes: RowCodes::default(),
            sensitive: None,
            sensitive_codes: Codes::default(),
            within: None,
            other: Vec::new(),
            other_codes: Vec::new(),
            updates: None,
        };
        let lists: [Vec<u32>; 4] = [
            (0..rows).step_by(3).collect(),
            (0..rows).rev().step_by(5).collect(),
            vec![rows - 1, 0, 20_000, 1],
            Vec::new(),
        ];
        let items = items::<1, _>(&microdata, lists.iter().map(Vec::as_slice).collect(), &[], &Sorted);
        for (list, items) in lists.iter().zip(items) {
            assert!(items.iter().map(|item| item.row).eq(list.iter().copied()));
        }
    }

    /// Rows of a list ascend, on any number of cores. Rows and lists are few and many, and some lists are empty.
    #[test]
    fn lists_have_their_rows_in_order() {
        for (rows, all) in [(0, 3), (1, 1), (1000, 7), (1000, 5000), (200_000, 7), (200_000, 3000)] {
            let list_of = |row: u32| {
                let list = row.wrapping_mul(2_654_435_761) as usize % (all + 1);
                (list < all && list % 5 != 3).then_some(list)
            };
            let filled = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| Lists::new(vec![0, all / 2, all], rows, list_of)).unwrap()
            };
            let expected = |list: usize| (0..rows as u32).filter(move |&row| list_of(row) == Some(list));
            let (one, five) = (filled(1), filled(5));
            for lists in [&one, &five] {
                assert_eq!(lists.of(0).len() + lists.of(1).len(), all);
                let few = (0..all).step_by(1 + all / 10).chain([all - 1]);
                let found: Vec<&[u32]> = lists.of(0).chain(lists.of(1)).collect();
                few.into_iter().for_each(|list| assert!(found[list].iter().copied().eq(expected(list)), "{list}"));
            }
            assert_eq!(one.rows, five.rows);
        }
    }

    /// From end to end, in order, and keys with them.
    #[test]
    fn places_are_steps_from_end_to_end() {
        let positions: Vec<f32> = (0..=1000).map(|step| step as f32 / 1000.0).collect();
        let places = super::places(&positions);
        assert_eq!((places[0], places[1000]), (Place::MIN, Place::MAX));
        assert!(places.windows(2).all(|pair| (65..=66).contains(&(i32::from(pair[1]) - i32::from(pair[0])))));
        // One value far beyond all others, which stay apart.
        let far: Vec<f32> = (0..1000).map(|value| value as f32 / 1e9).chain([1.0]).collect();
        let apart = super::places(&far);
        assert!(apart.windows(2).all(|pair| pair[0] < pair[1]) && apart[1000] == Place::MAX);
        let key = |place: Place, number| Item::<1, ()> { row: 0, tag: (), at: [[0, place, 0, 0]] }.key(1, number);
        assert!(places.windows(2).all(|pair| key(pair[0], u16::MAX) < key(pair[1], 0)));
        assert_eq!(key(places[500], 7) as u16, 7);
    }

    #[test]
    fn counterfeits_alternate_evenly_and_completely() {
        for h in 1..12 {
            for rows in 0..=h {
                for offset in 0..h {
                    assert_eq!(rows_among(h, h, rows, offset), rows);
                    let steps = (0..h).map(|k| rows_among(k + 1, h, rows, offset) - rows_among(k, h, rows, offset));
                    assert!(steps.clone().all(|step| step <= 1));
                    assert_eq!(rows_among(0, h, rows, offset), 0);
                }
            }
        }
    }
}
