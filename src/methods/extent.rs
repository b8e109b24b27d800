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
