//! Distance between two values of an attribute.

use std::sync::Arc;

use super::encoder::ORDER_KEY;
use super::{Attribute, Hierarchy};
use crate::error::Result;

/// Distances between the values of an attribute, by their codes.
#[derive(Debug, Clone)]
pub enum Distance {
    /// Numbers, dates, times, and categories in a given order: the difference of places. Those of numbers are the numbers
    /// themselves, unless some are NULL or not finite; then NULL lies one mean gap below the least.
    Line(Arc<[f64]>),
    /// Categories: different values are one apart.
    Apart,
    /// Leaves of a hierarchy: the height of the smallest node that holds both, as a share of the height of the root.
    Tree(Arc<Hierarchy>),
}

impl Distance {
    /// Returns the distance of an attribute.
    ///
    /// # Errors
    /// When Arrow cannot read values as numbers although their type is numeric.
    pub fn of(attribute: &Attribute) -> Result<Self> {
        if let Some(hierarchy) = &attribute.hierarchy {
            return Ok(Self::Tree(Arc::clone(hierarchy)));
        }
        if attribute.field.metadata().contains_key(ORDER_KEY) {
            return Ok(Self::Line((0..attribute.domain.len() as u32).map(f64::from).collect()));
        }
        match attribute.domain.is_measured() {
            true => Ok(Self::Line(attribute.domain.coordinates()?.into())),
            false => Ok(Self::Apart),
        }
    }

    /// Returns the distance of two values.
    #[inline]
    pub fn between(&self, a: u32, b: u32) -> f64 {
        match self {
            Self::Line(places) => (places[a as usize] - places[b as usize]).abs(),
            Self::Apart => f64::from(u8::from(a != b)),
            Self::Tree(hierarchy) => hierarchy.height(a, b) as f64 / hierarchy.levels().max(1) as f64,
        }
    }

    /// Returns the first and last code of the range of these ascending values. This is all values between them, or all
    /// leaves of the smallest node that holds them. `None` where nothing lies between values.
    pub fn range(&self, codes: &[u32]) -> Option<[u32; 2]> {
        let (&first, &last) = codes.first().zip(codes.last())?;
        match self {
            Self::Line(_) => Some([first, last]),
            Self::Apart => None,
            Self::Tree(hierarchy) => Some(hierarchy.closure(first, last)),
        }
    }

    /// Returns the greatest distance between two of these values, which ascend.
    pub fn widest(&self, codes: &[u32]) -> f64 {
        match (self, codes) {
            (_, [] | [_]) => 0.0,
            (Self::Line(_) | Self::Tree(_), [first, .., last]) => self.between(*first, *last),
            (Self::Apart, _) => 1.0,
        }
    }
}
