//! The smallest box around some rows, in as many dimensions as there are quasi-identifiers.
//!
//! Positions of a row are handled in vectors of a fixed width, so that inner loops compile to a few instructions.

/// Width of the vectors for so many quasi-identifiers.
pub(super) fn width(quasi: usize) -> usize {
    quasi.next_power_of_two().max(4)
}

/// Calls `$function::<W>(..)` for the width of `$quasi` quasi-identifiers; refuses more than are supported.
macro_rules! in_width {
    ($quasi:expr, $function:ident($($argument:expr),*)) => {
        match $crate::methods::extent::width($quasi) {
            4 => $function::<4>($($argument),*),
            8 => $function::<8>($($argument),*),
            16 => $function::<16>($($argument),*),
            32 => $function::<32>($($argument),*),
            64 => $function::<64>($($argument),*),
            _ => Err($crate::error::Error::refused(format!(
                "{} quasi-identifiers are too many: at most 64 are supported",
                $quasi
            ))),
        }
    };
}
pub(super) use in_width;

/// Least and greatest position in each dimension. Dimensions beyond the number of quasi-identifiers are 0 for all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<const W: usize> {
    pub lo: [f32; W],
    pub hi: [f32; W],
}

impl<const W: usize> Extent<W> {
    /// Around nothing.
    pub(super) const NONE: Self = Self { lo: [f32::INFINITY; W], hi: [f32::NEG_INFINITY; W] };

    #[inline]
    pub(super) fn widen(&mut self, at: &[f32; W]) {
        self.join(at, at);
    }

    /// Widens it if `inside`, without a branch: which side of a cut a row is on is a coin's toss, which a branch would mispredict.
    #[inline]
    pub(super) fn widen_if(&mut self, inside: bool, at: &[f32; W]) {
        let mask = 0_u32.wrapping_sub(u32::from(inside));
        let or = |at: f32, nothing: f32| f32::from_bits(at.to_bits() & mask | nothing.to_bits() & !mask);
        self.join(&at.map(|at| or(at, f32::INFINITY)), &at.map(|at| or(at, f32::NEG_INFINITY)));
    }

    /// The box around both.
    #[inline]
    #[must_use]
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.join(&other.lo, &other.hi);
        self
    }

    #[inline]
    fn join(&mut self, other_lo: &[f32; W], other_hi: &[f32; W]) {
        // Not f32::min and max: positions are never NaN, and a comparison is one instruction.
        for ((lo, hi), (&other_lo, &other_hi)) in
            self.lo.iter_mut().zip(&mut self.hi).zip(other_lo.iter().zip(other_hi))
        {
            *lo = if other_lo < *lo { other_lo } else { *lo };
            *hi = if other_hi > *hi { other_hi } else { *hi };
        }
    }

    /// Sum of the lengths; 0 around nothing.
    #[inline]
    pub(super) fn lengths(&self) -> f32 {
        self.hi.iter().zip(&self.lo).map(|(hi, lo)| hi - lo).sum::<f32>().max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widened_only_where_it_is_said() {
        let (mut around, mut expected) = (Extent::<4>::NONE, Extent::<4>::NONE);
        for row in 0..50_u8 {
            let at = [1, 3, 7, 11].map(|step| f32::from(row * step % 13));
            around.widen_if(row % 3 == 1, &at);
            if row % 3 == 1 {
                expected.widen(&at);
            }
            assert_eq!((around.lo, around.hi), (expected.lo, expected.hi));
        }
    }
}
