//! Source of uniform choices: a generator, or an enumeration of all choices.
//!
//! What a method promises to a reader who knows its code is a statement about the law of its draws. Where that law can be enumerated, with
//! exact weights, the promise is a test and not an opinion, and it is of the code that makes releases: so that draws by `Lots`.

use rand::Rng;
use rand::seq::SliceRandom;

use super::split::Secret;
use crate::microdata;

/// Uniform choices, independent of each other.
pub(super) trait Lots {
    /// Draws one of `0..n`, each as likely as the others.
    fn below(&mut self, n: usize) -> usize;

    /// Puts items in any order, each as likely as the others; one choice for each place.
    fn arrange<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// Shuffles many items, by fewer numbers.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        self.arrange(items);
    }

    /// Shuffles very many rows, on all cores.
    fn shuffle_rows(&mut self, rows: &mut [u32]) {
        self.shuffle(rows);
    }

    /// Shuffles each of some lists of rows, on all cores if there are many.
    fn shuffle_each(&mut self, lists: &mut [&mut [u32]]) {
        lists.iter_mut().for_each(|rows| self.shuffle(rows));
    }

    /// Chooses so many of the items, any of them, in any order.
    fn choose<'a, T>(&mut self, items: &'a mut [T], wanted: usize) -> &'a [T] {
        for place in 0..wanted {
            let other = place + self.below(items.len() - place);
            items.swap(place, other);
        }
        &items[..wanted]
    }

    /// Draws the secret that decides where counterfeits stand.
    fn secret(&mut self) -> Secret;
}

impl<R: Rng> Lots for R {
    fn below(&mut self, n: usize) -> usize {
        self.random_range(0..n as u32) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        SliceRandom::shuffle(items, self);
    }

    fn shuffle_rows(&mut self, rows: &mut [u32]) {
        microdata::shuffle(rows, self);
    }

    fn shuffle_each(&mut self, lists: &mut [&mut [u32]]) {
        microdata::shuffle_each(lists, self);
    }

    fn choose<'a, T>(&mut self, items: &'a mut [T], wanted: usize) -> &'a [T] {
        items.partial_shuffle(self, wanted).0
    }

    fn secret(&mut self) -> Secret {
        Secret::mixed(self.random())
    }
}
