//! The smallest box around some rows, in as many dimensions as there are quasi-identifiers.
//!
//! Positions of a row are handled four at a time, in vectors of a fixed width, so that inner loops compile to a few instructions.

use wide::{i16x8, i32x4};

use crate::error::Error;

/// Dimensions that are handled at a time.
pub(super) const FOUR: usize = 4;

/// Returns the number of fours for so many quasi-identifiers. For more than sixteen, as many as for 64: few tables
/// have so many, and all that cuts and splits is compiled for each width.
pub(super) fn fours(quasi: usize) -> usize {
    match quasi.next_power_of_two().max(FOUR) / FOUR {
        8 => 16,
        fours => fours,
    }
}

/// Calls `$function::<W>(..)` for the fours of `$quasi` quasi-identifiers; refuses more than are supported.
macro_rules! in_width {
    ($quasi:expr, $function:ident($($argument:expr),*)) => {
        match $crate::extent::fours($quasi) {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            4 => $function::<4>($($argument),*),
            16 => $function::<16>($($argument),*),
            _ => Err($crate::extent::too_many($quasi)),
        }
    };
}
pub(super) use in_width;

/// Returns the fours that what is rarely called has for so many quasi-identifiers: more than needed, so that it is compiled for few widths.
pub(super) fn rare_fours(quasi: usize) -> usize {
    fours(quasi).max(2)
}

/// Calls like [`in_width`], for code that is rarely called.
macro_rules! in_rare_width {
    ($quasi:expr, $function:ident($($argument:expr),*)) => {
        match $crate::extent::rare_fours($quasi) {
            2 => $function::<2>($($argument),*),
            4 => $function::<4>($($argument),*),
            16 => $function::<16>($($argument),*),
            _ => Err($crate::extent::too_many($quasi)),
        }
    };
}
pub(super) use in_rare_width;

pub(super) const MOST: usize = 64;

pub(super) fn too_many(quasi: usize) -> Error {
    Error::refused(format!("{quasi} quasi-identifiers are too many: at most {MOST} are supported"))
}

/// Position of a value: a place in a domain, from one end to the other, or a whole number, as codes are.
pub(super) trait Position: Copy + PartialOrd + Default + Send + Sync + 'static {
    /// Least and greatest position in each of four dimensions.
    type Box: Copy + Send + Sync;

    /// Below and above which there is none.
    const ENDS: [Self; 2];

    /// A box around nothing.
    const NOTHING: Self::Box;

    /// Converts a place in a domain, 0 to 1.
    fn of_place(place: f32) -> Self;

    fn of_number(number: u32) -> Self;

    /// Returns the number that has this position.
    fn number(self) -> u32;

    /// Ascends with positions.
    fn key(self) -> u32;

    /// Returns the box around a box and a point.
    fn widened(around: Self::Box, at: [Self; FOUR]) -> Self::Box;

    /// Returns the box around two boxes.
    fn joined(one: Self::Box, other: Self::Box) -> Self::Box;

    /// Returns the ends of a box in one of its dimensions.
    fn ends(around: &Self::Box, dimension: usize) -> [Self; 2];

    /// Returns the sum of the lengths of boxes, as shares of their domains. Positions are places then; 0 around nothing.
    fn lengths(boxes: &[Self::Box]) -> f32;
}

/// Mask that turns the upper half of eight numbers round.
const UPPER: i16x8 = i16x8::new([0, 0, 0, 0, -1, -1, -1, -1]);

/// Places in 2^16 steps, and as many numbers. A box is one vector, of least places and, turned round, of greatest ones: then the box around two is
/// the lesser of both in all lanes. And rows that carry their positions with them are half as large as with any wider type.
impl Position for i16 {
    type Box = i16x8;

    const ENDS: [Self; 2] = [Self::MIN, Self::MAX];
    const NOTHING: i16x8 = i16x8::MAX;

    #[inline]
    fn of_place(place: f32) -> Self {
        Self::of_number((place * f32::from(u16::MAX)).round() as u32)
    }

    #[inline]
    fn of_number(number: u32) -> Self {
        (number as i32 + i32::from(Self::MIN)) as Self
    }

    #[inline]
    fn number(self) -> u32 {
        (i32::from(self) - i32::from(Self::MIN)) as u32
    }

    #[inline]
    fn key(self) -> u32 {
        self.number()
    }

    #[inline]
    fn widened(around: i16x8, [a, b, c, d]: [Self; FOUR]) -> i16x8 {
        around.min(i16x8::new([a, b, c, d, a, b, c, d]) ^ UPPER)
    }

    #[inline]
    fn joined(one: i16x8, other: i16x8) -> i16x8 {
        one.min(other)
    }

    #[inline]
    fn ends(around: &i16x8, dimension: usize) -> [Self; 2] {
        let ends = around.as_array();
        [ends[dimension], !ends[FOUR + dimension]]
    }

    #[inline]
    fn lengths(boxes: &[i16x8]) -> f32 {
        steps(boxes) as f32 / f32::from(u16::MAX)
    }
}

/// Of hierarchies with more leaves, and of domains of more values.
impl Position for f32 {
    type Box = [[Self; FOUR]; 2];

    const ENDS: [Self; 2] = [Self::NEG_INFINITY, Self::INFINITY];
    const NOTHING: Self::Box = [[Self::INFINITY; FOUR], [Self::NEG_INFINITY; FOUR]];

    #[inline]
    fn of_place(place: f32) -> Self {
        place
    }

    #[inline]
    fn of_number(number: u32) -> Self {
        number as Self
    }

    #[inline]
    fn number(self) -> u32 {
        self as u32
    }

    /// Returns the bits, which are in the order of positions, as these are not negative.
    #[inline]
    fn key(self) -> u32 {
        self.to_bits()
    }

    #[inline]
    fn widened(around: Self::Box, at: [Self; FOUR]) -> Self::Box {
        Self::joined(around, [at, at])
    }

    #[inline]
    fn joined([mut lo, mut hi]: Self::Box, [other_lo, other_hi]: Self::Box) -> Self::Box {
        lo.iter_mut().zip(other_lo).for_each(|(lo, other)| *lo = lo.min(other));
        hi.iter_mut().zip(other_hi).for_each(|(hi, other)| *hi = hi.max(other));
        [lo, hi]
    }

    #[inline]
    fn ends([lo, hi]: &Self::Box, dimension: usize) -> [Self; 2] {
        [lo[dimension], hi[dimension]]
    }

    #[inline]
    fn lengths(boxes: &[Self::Box]) -> f32 {
        let length = |[lo, hi]: &Self::Box| hi.iter().zip(lo).map(|(hi, lo)| hi - lo).sum::<Self>();
        boxes.iter().map(length).sum::<Self>().max(0.0)
    }
}

/// Returns the sum of the lengths of boxes, in steps; 0 around nothing. Of 64 dimensions it is below 2^22.
#[inline]
fn steps(boxes: &[i16x8]) -> u32 {
    let sums = boxes.iter().fold(i32x4::ZERO, |sums, ends| sums + ends.dot(i16x8::ONE));
    // A number that is turned round is one less than its negative.
    (-sums.reduce_add() - (FOUR * boxes.len()) as i32).max(0) as u32
}

/// Least and greatest position in each dimension, of which there are `W` times four. Those beyond the number of quasi-identifiers are the same for
/// all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<const W: usize, P: Position>([P::Box; W]);

impl<const W: usize, P: Position> Extent<W, P> {
    /// Around nothing.
    pub(super) const NONE: Self = Self([P::NOTHING; W]);

    #[inline]
    pub(super) fn widen(&mut self, at: &[[P; FOUR]; W]) {
        self.0.iter_mut().zip(at).for_each(|(around, at)| *around = P::widened(*around, *at));
    }

    #[inline]
    #[must_use]
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(around, other)| *around = P::joined(*around, *other));
        self
    }

    #[inline]
    pub(super) fn ends(&self, dimension: usize) -> [P; 2] {
        P::ends(&self.0[dimension / FOUR], dimension % FOUR)
    }

    /// Returns true if it ends where it begins, in all of the first dimensions.
    pub(super) fn is_point(&self, dimensions: usize) -> bool {
        (0..dimensions).map(|dimension| self.ends(dimension)).all(|[lo, hi]| lo == hi)
    }

    /// Returns the sum of the lengths, as shares of the domains, where positions are places; 0 around nothing.
    #[inline]
    pub(super) fn shares(&self) -> f32 {
        P::lengths(&self.0)
    }
}

impl<const W: usize> Extent<W, i16> {
    /// Returns the sum of the lengths, in steps; 0 around nothing. Of 64 dimensions it is below 2^22.
    #[inline]
    pub(super) fn lengths(&self) -> u32 {
        steps(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares boxes of both kinds of positions with the least and greatest numbers.
    fn compare<P: Position + std::fmt::Debug>(points: &[[u16; 8]], split: usize) {
        let at = |point: &[u16; 8]| [0, 1].map(|four| [0, 1, 2, 3].map(|i| P::of_number(point[4 * four + i].into())));
        let around = |points: &[[u16; 8]]| {
            let mut extent = Extent::<2, P>::NONE;
            points.iter().for_each(|point| extent.widen(&at(point)));
            extent
        };
        let (one, other) = points.split_at(split.min(points.len()));
        let (whole, joined) = (around(points), around(one).with(&around(other)));
        let mut sum = 0.0;
        for dimension in 0..8 {
            let numbers = || points.iter().map(|point| point[dimension]);
            let (Some(lo), Some(hi)) = (numbers().min(), numbers().max()) else { continue };
            let expected = [lo, hi].map(|end| P::of_number(end.into()));
            assert_eq!((whole.ends(dimension), joined.ends(dimension)), (expected, expected));
            assert_eq!(expected.map(P::number), [lo, hi].map(u32::from));
            sum += f32::from(hi - lo);
        }
        assert_eq!(whole.is_point(8), points.windows(2).all(|pair| pair[0] == pair[1]) && !points.is_empty());
        let unit = P::of_place(1.0).number() as f32;
        assert!((whole.shares() * unit - sum).abs() <= sum * 1e-5);
    }

    proptest! {
        #[test]
        fn boxes_are_around_their_points(
            points in prop::collection::vec(any::<[u16; 8]>(), 0..6),
            few in prop::collection::vec(prop::array::uniform8(0_u16..3), 1..4),
            split in 0_usize..6,
        ) {
            for points in [&points, &few] {
                compare::<i16>(points, split);
                compare::<f32>(points, split);
            }
        }
    }

    #[test]
    fn ends_and_lengths() {
        let mut extent = Extent::<1, i16>::NONE;
        assert_eq!((extent.lengths(), extent.shares()), (0, 0.0));
        extent.widen(&[[i16::MIN, i16::MAX, 7, 0]]);
        assert!(extent.lengths() == 0 && extent.is_point(4));
        extent.widen(&[[i16::MAX, i16::MIN, 8, 0]]);
        assert_eq!((extent.lengths(), extent.ends(0), extent.ends(2)), (2 * 65_535 + 1, [i16::MIN, i16::MAX], [7, 8]));
        assert!(!extent.is_point(1) && extent.shares() > 2.0);
        assert_eq!([0.0, 1.0].map(i16::of_place), [i16::MIN, i16::MAX]);
    }
}
