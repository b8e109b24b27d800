//! Random orders of rows.

use rand::Rng;
use rand::seq::SliceRandom;

/// Puts items in random order.
pub fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    items.shuffle(rng);
}

/// Puts each of some lists in random order.
pub fn shuffle_each<T>(lists: &mut [&mut [T]], rng: &mut impl Rng) {
    lists.iter_mut().for_each(|list| list.shuffle(rng));
}
