//! Rings: small sets of people with different sensitive values in a cyclic order, and worlds made of them by shifts.
//!
//! In world `i`, the person at place `j` of a ring carries the value of place `j + shift_i`. A ring has `l` different shifts, and that of the true world
//! is 0. All cyclic orders of a ring's people are equally likely, and so are all sets of `l - 1` other shifts. The people of a ring depend on how often
//! values occur, and on a uniform draw.
//!
//! Suppose that another of the `l` worlds is the true one. The same people then come into the same rings, in the same order, with the same probability.
//! The shifts, counted from that world, are a translate of this set, and as likely. So a reader who sees all `l` worlds gives each of them `1/l`, if all
//! ways to give out the values were equally likely before.
//!
//! A window of `l` consecutive places, as in Shmueli and Tassa's Algorithm 1, is not such a set. The true world is always one of its two ends, whatever
//! `l` is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Monitor;
use super::assignment::{self, Step};
use super::lots::Lots;
use super::secrets::{self, Secrets};
use super::seen::Seen;
use super::split::{self, Lists, Secret, Sorted};
use crate::error::{Error, Result};
use crate::microdata::{Code, Microdata, room};

/// Least number of rings for one core.
const PIECE: usize = 1 << 8;

/// Rings of some people, and the shifts of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rings {
    /// People, ring after ring, each in its cyclic order.
    pub people: Vec<u32>,
    /// End of each ring.
    pub ends: Vec<u32>,
    /// `l - 1` different shifts of each ring, from 1 on, world by world. They are at most its size less 1.
    pub shifts: Vec<u32>,
    /// Worlds beside the true one: `l - 1`.
    pub width: usize,
}

/// Rings of the people of a part, who are numbered from 0.
pub(super) struct DrawnRings {
    pub rings: Rings,
    /// Columns that are hidden each by itself. One, if the bound is of values.
    columns: Vec<Column>,
}

/// Secrets of people in a column.
struct Column {
    /// Number of everybody's secret among those that occur.
    of_person: Vec<u32>,
    /// Number of those that occur.
    secrets: usize,
}

impl Column {
    /// Numbers these secrets of people.
    fn of(secrets: impl Iterator<Item = u32>) -> Self {
        let mut number_of = FxHashMap::default();
        let of_person = secrets.map(|secret| {
            let next = number_of.len() as u32;
            *number_of.entry(secret).or_insert(next)
        });
        Self { of_person: of_person.collect(), secrets: number_of.len() }
    }
}

impl DrawnRings {
    /// Draws rings of people with these values. No value, and with `secrets` no secret, may make up more than `1/l`.
    ///
    /// A plan decides how many people of each value go into rings of the same values: the assignment of m-invariance, or [`secrets`]. Which people of a
    /// value go there is a uniform draw. Each ring has worlds beside the true one as [`Worlds::drawn`] says.
    pub(super) fn draw(
        values: Vec<u32>,
        secrets: Option<&Secrets>,
        l: usize,
        worlds: Worlds,
        lots: &mut impl Lots,
    ) -> Result<Self> {
        let apart: Vec<Column> = secrets.map_or_else(Vec::new, |secrets| {
            secrets.columns().map(|of| Column::of(values.iter().map(|&value| of[value as usize]))).collect()
        });
        let mut people = assignment::ByValue::new(&values);
        let mut lines = people.pieces();
        let occurring: Vec<u32> = lines.iter().map(|line| values[line[0] as usize]).collect();
        // Numbers in the place of values.
        let mut value_of = values;
        for (number, line) in (0..).zip(&lines) {
            line.iter().for_each(|&person| value_of[person as usize] = number);
        }
        let mut dealt = Dealt::of(&mut lines, (secrets, &occurring), l, lots)?;
        let number: usize = dealt.steps.iter().map(|step| step.rows).sum();
        let width = worlds.drawn(l);
        let mut rings = Rings {
            people: Vec::with_capacity(value_of.len()),
            ends: Vec::with_capacity(number),
            shifts: Vec::with_capacity(number * width),
            width,
        };
        let mut steps = std::mem::take(&mut dealt.steps);
        let is_common = worlds == Worlds::Renamings;
        if is_common {
            steps = heights(steps).into_iter().map(|(signature, rows)| Step { signature, rows }).collect();
        }
        let mut shifts = Vec::new();
        for mut step in steps {
            // Where a ring begins does not matter, so that the first may stay.
            if is_common {
                lots.arrange(&mut step.signature[1..]);
                draw_shifts(step.signature.len(), width, lots, &mut shifts);
            }
            for _ in 0..step.rows {
                let start = rings.people.len();
                for &value in &step.signature {
                    rings.people.extend_from_slice(dealt.take(value, 1)?);
                }
                if !is_common {
                    lots.arrange(&mut rings.people[start + 1..]);
                    draw_shifts(step.signature.len(), width, lots, &mut shifts);
                }
                rings.ends.push(rings.people.len() as u32);
                rings.shifts.extend_from_slice(&shifts);
            }
        }
        let all = rings.people.len() == value_of.len();
        let alone = Column { of_person: value_of, secrets: occurring.len() };
        match all {
            true => Ok(Self { rings, columns: if apart.is_empty() { vec![alone] } else { apart } }),
            false => Err(Error::internal("people without a ring")),
        }
    }

    /// Returns true if both sides are diverse in all worlds.
    ///
    /// A side is diverse if no secret of any column makes up more than `1/l` of it.
    pub(super) fn are_diverse(&self, inside: &[bool], l: usize, worlds: Worlds) -> bool {
        let within = inside.iter().filter(|&&inside| inside).count();
        let most = [(inside.len() - within) / l, within / l];
        self.columns.iter().all(|column| match worlds {
            Worlds::Shifts | Worlds::Renamings => self.are_diverse_in_shifts(column, inside, l, most),
            Worlds::All => self.are_diverse_in_all(column, inside, most),
        })
    }

    /// Returns true if both sides are diverse in all rearrangements inside of rings.
    ///
    /// A ring with people on a side can bring each of its secrets to that side, once. `most` has the greatest count of a secret outside and inside.
    fn are_diverse_in_all(&self, column: &Column, inside: &[bool], most: [usize; 2]) -> bool {
        let mut counts = vec![[0_usize; 2]; column.secrets];
        for (ring, _) in self.rings.iter() {
            let within = ring.iter().filter(|&&person| inside[person as usize]).count();
            let touched = [usize::from(within < ring.len()), usize::from(within > 0)];
            for &person in ring {
                let of_secret = &mut counts[column.of_person[person as usize] as usize];
                of_secret.iter_mut().zip(touched).for_each(|(count, touched)| *count += touched);
            }
        }
        counts.iter().flat_map(|counts| counts.iter().zip(most)).all(|(&count, most)| count <= most)
    }

    fn are_diverse_in_shifts(&self, column: &Column, inside: &[bool], l: usize, most: [usize; 2]) -> bool {
        // The people of a ring lie all over the memory, so one pass counts several worlds. It has at most as many pairs of counts as there are people.
        let values = column.secrets.max(1);
        let at_once = (inside.len() / values).clamp(1, l);
        let mut counts = vec![[0_u32; 2]; at_once * values];
        let mut near: Vec<(u32, bool)> = Vec::new();
        (0..l).step_by(at_once).all(|first| {
            counts.fill([0; 2]);
            for (ring, shifts) in self.rings.iter() {
                near.clear();
                near.extend(ring.iter().map(|&person| (column.of_person[person as usize], inside[person as usize])));
                let shifts = std::iter::once(0).chain(shifts.iter().map(|&shift| shift as usize)).skip(first);
                for (counts, shift) in counts.chunks_exact_mut(values).zip(shifts) {
                    let (before, after) = near.split_at(shift);
                    for ((_, inside), (value, _)) in near.iter().zip(after.iter().chain(before)) {
                        counts[*value as usize][usize::from(*inside)] += 1;
                    }
                }
            }
            counts.iter().flat_map(|counts| counts.iter().zip(most)).all(|(&count, most)| count as usize <= most)
        })
    }
}

/// Rearrangements of values in which both sides of a cut must be diverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worlds {
    /// The `l` worlds, which shift all rings at once. For readers who know nobody's value.
    Shifts,
    /// `l` worlds, which rename the values of each signature for all of its rings.
    ///
    /// For the same readers, where the people of a signature are grouped anew.
    Renamings,
    /// All rearrangements inside of rings, of each ring by itself. For readers who also know values of some people.
    All,
}

impl Worlds {
    /// Returns the number of worlds to draw beside the true one, for groups of `l`.
    pub(super) fn drawn(self, l: usize) -> usize {
        match self {
            Self::Shifts | Self::Renamings => l - 1,
            Self::All => 0,
        }
    }
}

/// Draw of the people of rings: steps by counts, and people of each value in random order.
struct Dealt<'a> {
    steps: Vec<Step>,
    left: Vec<&'a [u32]>,
}

impl<'a> Dealt<'a> {
    /// Draws the steps of lists of people. Each list is of one of these values.
    fn of(
        lines: &'a mut [&mut [u32]],
        (secrets, values): (Option<&Secrets>, &[u32]),
        l: usize,
        lots: &mut impl Lots,
    ) -> Result<Self> {
        let counts: Vec<usize> = lines.iter().map(|line| line.len()).collect();
        let steps = secrets::plan(secrets, values, &counts, l, lots)?;
        lines.iter_mut().for_each(|line| lots.arrange(line));
        Ok(Self { steps, left: lines.iter().map(|line| &**line).collect() })
    }

    /// Takes so many people of a value who were not taken yet.
    fn take(&mut self, value: u32, people: usize) -> Result<&'a [u32]> {
        let left = &mut self.left[value as usize];
        let from =
            left.len().checked_sub(people).ok_or_else(|| Error::internal("more people in rings than there are"))?;
        let (rest, taken) = left.split_at(from);
        *left = rest;
        Ok(taken)
    }
}

/// Returns the number of rings of each signature.
fn heights(steps: Vec<Step>) -> BTreeMap<Box<[u32]>, usize> {
    let mut heights = BTreeMap::new();
    for step in steps {
        *heights.entry(step.signature).or_default() += step.rows;
    }
    heights
}

/// Draws different shifts of a ring.
fn draw_shifts(size: usize, number: usize, lots: &mut impl Lots, shifts: &mut Vec<u32>) {
    shifts.clear();
    if number == 0 {
        return;
    }
    shifts.extend(1..size as u32);
    for place in 0..number {
        let other = place + lots.below(size - 1 - place);
        shifts.swap(place, other);
    }
    shifts.truncate(number);
}

impl Rings {
    /// Returns rings of rows that lie close together.
    ///
    /// The rows of a signature (a set of values) go into rings as m-invariance puts them into groups. A uniform draw decides which rows go under which
    /// signature. The split treats the lists of a signature alike, so everything else commutes with a renaming of the signature's values. So one
    /// cyclic order of the values, and one set of shifts, serve all rings of a signature. A world is such a renaming, and explains the rings as well as the
    /// true world does.
    pub(super) fn close(
        microdata: &Microdata,
        rows: &mut [u32],
        (secrets, values): (Option<&Secrets>, &[impl Code]),
        l: usize,
        lots: &mut impl Lots,
        monitor: &Monitor,
    ) -> Result<Self> {
        let all = rows.len();
        let mut lines = assignment::by_value(rows, values);
        let occurring: Vec<u32> = lines.iter().map(|line| values[line[0] as usize].wide()).collect();
        let mut dealt = Dealt::of(&mut lines, (secrets, &occurring), l, lots)?;
        let heights = heights(std::mem::take(&mut dealt.steps));
        let mut buckets = vec![0];
        let mut lists: Vec<&[u32]> = Vec::new();
        for (signature, &height) in &heights {
            for &value in signature {
                lists.push(dealt.take(value, height)?);
            }
            buckets.push(lists.len());
        }
        let lists = Lists::of_rows(buckets, &lists)?;
        let (signatures, heights): (Vec<Box<[u32]>>, Vec<usize>) = heights.into_iter().unzip();
        // Without counterfeits there is nothing to be decided by a secret.
        let groups = split::split(microdata, &lists, &heights, Secret::mixed(0), &Sorted, monitor)?;
        let mut rings = Self { people: Vec::with_capacity(all), width: l - 1, ..Self::default() };
        let (mut left, mut shifts) = (groups.as_slice(), Vec::new());
        for (signature, height) in signatures.iter().zip(heights) {
            let size = signature.len();
            let mut order: Vec<usize> = (0..size).collect();
            lots.arrange(&mut order[1..]);
            draw_shifts(size, l - 1, lots, &mut shifts);
            let (groups, after) = left.split_at(size * height);
            left = after;
            for group in groups.chunks_exact(size) {
                rings.people.extend(order.iter().map(|&place| group[place]));
                rings.ends.push(rings.people.len() as u32);
                rings.shifts.extend_from_slice(&shifts);
            }
        }
        match rings.people.len() == all {
            true => Ok(rings),
            false => Err(Error::internal("rows without a ring")),
        }
    }

    /// Calls `f` with each person and the person whose values they carry in a world. World 0 is the true one.
    pub(super) fn each(&self, world: usize, mut f: impl FnMut(u32, u32)) {
        for (ring, shifts) in self.iter() {
            let shift = world.checked_sub(1).map_or(0, |world| shifts[world] as usize);
            let (before, after) = ring.split_at(shift);
            ring.iter().zip(after.iter().chain(before)).for_each(|(&person, &whose)| f(person, whose));
        }
    }

    /// Returns whose values each person carries in every other world, person after person. There are `rows` people. Everybody must be in one ring.
    pub(super) fn partners(&self, rows: usize) -> Vec<u32> {
        let partners: Vec<AtomicU32> = room(rows * self.width);
        (0..self.ends.len()).into_par_iter().with_min_len(PIECE).for_each(|number| {
            let (ring, shifts) = self.ring(number);
            for (place, &person) in ring.iter().enumerate() {
                let of_person = &partners[person as usize * self.width..][..self.width];
                for (partner, &shift) in of_person.iter().zip(shifts) {
                    let other = place + shift as usize;
                    let other = if other < ring.len() { other } else { other - ring.len() };
                    partner.store(ring[other], Ordering::Relaxed);
                }
            }
        });
        // In their place.
        partners.into_iter().map(AtomicU32::into_inner).collect()
    }

    /// Returns the rings, each with its shifts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        (0..self.ends.len()).map(|number| self.ring(number))
    }

    fn ring(&self, number: usize) -> (&[u32], &[u32]) {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        (&self.people[start..self.ends[number] as usize], &self.shifts[number * self.width..][..self.width])
    }

    /// Returns true if these are rings of `rows` rows, each with at least `l` people.
    ///
    /// Every row must be in one ring. The values of a ring must differ, and so must its shifts.
    pub(super) fn are_rings(&self, rows: usize, l: usize, values: &[impl Code]) -> bool {
        let once = Seen::once(rows, self.people.iter().copied()).is_some_and(|seen| seen.is_all());
        let ends = self.ends.windows(2).all(|ends| ends[0] < ends[1]);
        let whole = self.ends.last().copied().unwrap_or(0) as usize == rows;
        if !once || !ends || !whole || self.shifts.len() != self.ends.len() * self.width {
            return false;
        }
        let is_ring = |sorted: &mut Vec<u32>, number: usize| {
            let (ring, shifts) = self.ring(number);
            let mut differ = |items: &mut dyn Iterator<Item = u32>| {
                sorted.clear();
                sorted.extend(items);
                sorted.sort_unstable();
                sorted.windows(2).all(|pair| pair[0] < pair[1])
            };
            ring.len() >= l
                && differ(&mut ring.iter().map(|&row| values[row as usize].wide()))
                && differ(&mut shifts.iter().copied())
                && shifts.iter().all(|shift| (1..ring.len() as u32).contains(shift))
        };
        let rings = (0..self.ends.len()).into_par_iter().with_min_len(PIECE);
        rings.map_init(Vec::new, is_ring).all(|is_ring| is_ring)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    proptest! {
        #[test]
        fn eligible_values_make_rings(counts in prop::collection::vec(1_usize..20, 2..12), l in 2_usize..6, seed in any::<u64>()) {
            prop_assume!(counts.iter().max().unwrap() * l <= counts.iter().sum());
            let values: Vec<u32> = (0..).zip(&counts).flat_map(|(value, &count)| std::iter::repeat_n(value, count)).collect();
            let drawn = DrawnRings::draw(values.clone(), None, l, Worlds::Shifts, &mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
            prop_assert!(drawn.rings.are_rings(values.len(), l, &values));
            prop_assert_eq!(drawn.columns[0].secrets, counts.len());
            // Every world is the true one with values dealt anew, and nobody has a value in two of them.
            let mut carried = vec![Vec::new(); values.len()];
            for world in 0..l {
                let mut dealt = Vec::new();
                drawn.rings.each(world, |person, whose| {
                    dealt.push(whose);
                    carried[person as usize].push(values[whose as usize]);
                });
                dealt.sort_unstable();
                prop_assert!(dealt.iter().copied().eq(0..values.len() as u32));
            }
            let partners = drawn.rings.partners(values.len());
            let carries = |person: usize| partners[person * (l - 1)..][..l - 1].iter().map(|&partner| values[partner as usize]);
            prop_assert!(carried.iter().enumerate().all(|(person, carried)| carries(person).eq(carried[1..].iter().copied())));
            for values in &mut carried {
                values.sort_unstable();
                values.dedup();
                prop_assert_eq!(values.len(), l);
            }
            let whole = vec![true; values.len()];
            prop_assert!(drawn.are_diverse(&whole, l, Worlds::Shifts));
            // Sides drawn anew, and those that keep rings together: against counts of each world by itself.
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            for drawn_anew in [true, false] {
                let mut inside = vec![false; values.len()];
                for (ring, _) in drawn.rings.iter() {
                    let of_ring: bool = rng.random();
                    ring.iter().for_each(|&person| {
                        inside[person as usize] = if drawn_anew { rng.random() } else { of_ring };
                    });
                }
                let diverse = (0..l).all(|world| {
                    let mut seen: HashMap<(u32, bool), usize> = HashMap::new();
                    drawn.rings.each(world, |person, whose| {
                        *seen.entry((values[whose as usize], inside[person as usize])).or_default() += 1;
                    });
                    let side = |of: bool| inside.iter().filter(|&&inside| inside == of).count();
                    seen.into_iter().all(|((_, of), count)| count * l <= side(of))
                });
                prop_assert_eq!(drawn.are_diverse(&inside, l, Worlds::Shifts), diverse);
            }
        }
    }

    /// Cyclic orders and shifts are uniform: six orders of four people, three pairs.
    #[test]
    fn orders_and_shifts_are_uniform() {
        const DRAWS: usize = 36_000;
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let mut seen: HashMap<(Vec<u32>, Vec<u32>), usize> = HashMap::new();
        for _ in 0..DRAWS {
            let mut rings = DrawnRings::draw(vec![4, 1, 7, 0], None, 3, Worlds::Shifts, &mut rng).unwrap().rings;
            let first = rings.people.iter().position(|&person| person == 0).unwrap();
            rings.people.rotate_left(first);
            *seen.entry((rings.people, rings.shifts)).or_default() += 1;
        }
        assert_eq!(seen.len(), 36);
        // Five standard deviations.
        assert!(seen.values().all(|count| count.abs_diff(DRAWS / 36) < 160), "{seen:?}");
    }

    /// A fault in the last ring is found, with rings for each core.
    #[test]
    fn one_of_many_is_no_ring() {
        let number = 5 * PIECE + 1;
        let rings = Rings {
            people: (0..3 * number as u32).rev().collect(),
            ends: (1..=number as u32).map(|ring| 3 * ring).collect(),
            shifts: (0..number as u32).flat_map(|ring| [1 + ring % 2, 2 - ring % 2]).collect(),
            width: 2,
        };
        let values: Vec<u32> = (0..3 * number as u32).map(|person| person % 3).collect();
        assert!(rings.are_rings(values.len(), 3, &values));
        let partners = rings.partners(values.len());
        for (ring, (people, shifts)) in rings.iter().enumerate() {
            for (place, &person) in people.iter().enumerate() {
                let expected = shifts.iter().map(|&shift| people[(place + shift as usize) % 3]);
                assert!(partners[2 * person as usize..][..2].iter().copied().eq(expected), "{ring}");
            }
        }
        // The last ring is of the first people.
        let mut alike = values.clone();
        alike[0] = 1;
        assert!(!rings.are_rings(alike.len(), 3, &alike));
        let mut twice = rings.clone();
        *twice.people.last_mut().unwrap() = 2;
        assert!(!twice.are_rings(values.len(), 3, &values));
        let mut as_they_are = rings;
        *as_they_are.shifts.last_mut().unwrap() = 0;
        assert!(!as_they_are.are_rings(values.len(), 3, &values));
    }

    #[test]
    fn a_side_with_a_value_too_often_is_found_in_any_world() {
        // Two rings of two, whose people exchange values.
        let rings = Rings { people: vec![0, 1, 2, 3], ends: vec![2, 4], shifts: vec![1, 1], width: 1 };
        let columns = |of: &[u32]| vec![Column::of(of.iter().copied())];
        let drawn = |value_of: [u32; 4]| DrawnRings { rings: rings.clone(), columns: columns(&value_of) };
        let sides = [true, false, true, false];
        assert!(drawn([0, 1, 1, 0]).are_diverse(&sides, 2, Worlds::Shifts));
        assert!(!drawn([0, 1, 0, 1]).are_diverse(&sides, 2, Worlds::Shifts), "in the true world");
        // Three rings of two: only in the other world are both who stand inside of the same value.
        let rings = Rings { people: (0..6).collect(), ends: vec![2, 4, 6], shifts: vec![1; 3], width: 1 };
        let drawn = DrawnRings { rings, columns: columns(&[0, 2, 1, 2, 0, 1]) };
        assert!(!drawn.are_diverse(&[true, false, true, false, false, false], 2, Worlds::Shifts));
        assert!(drawn.are_diverse(&[true, true, false, false, false, false], 2, Worlds::Shifts));
    }

    #[test]
    fn what_are_no_rings_is_found() {
        let values = [0_u8, 1, 2, 3, 0, 1];
        let right = Rings { people: vec![0, 1, 2, 3, 4, 5], ends: vec![3, 6], shifts: vec![1, 2, 2, 1], width: 2 };
        assert!(right.are_rings(6, 3, &values));
        let wrong = |change: fn(&mut Rings)| {
            let mut rings = right.clone();
            change(&mut rings);
            assert!(!rings.are_rings(6, 3, &values), "{rings:?}");
        };
        wrong(|rings| rings.people[0] = 5);
        wrong(|rings| rings.people.swap(0, 3));
        wrong(|rings| rings.people.swap(2, 4));
        wrong(|rings| rings.shifts[0] = 2);
        wrong(|rings| rings.shifts[0] = 3);
        wrong(|rings| rings.shifts[1] = 0);
        wrong(|rings| rings.ends = vec![2, 6]);
        wrong(|rings| rings.ends = vec![3]);
        assert!(!right.are_rings(7, 3, &[0_u8; 7]));
    }
}
