//! Parameters that take one of a few words: which there are, and what each means, said once.

use super::arguments::Arguments;
use super::signature::Parameter;
use crate::estimate::Distribution;

/// The words of a parameter and their meanings. The first is what holds if the parameter is left out.
#[derive(Debug)]
pub(super) struct Choice<T: 'static, const N: usize> {
    name: &'static str,
    words: [&'static str; N],
    meanings: [T; N],
    example: &'static str,
}

impl<T: Copy, const N: usize> Choice<T, N> {
    /// Declares pairs of words and meanings, with one of the words as an example.
    pub(super) const fn new(name: &'static str, pairs: [(&'static str, T); N], example: &'static str) -> Self {
        let (mut words, mut meanings) = ([""; N], [pairs[0].1; N]);
        let mut place = 0;
        while place < N {
            (words[place], meanings[place]) = pairs[place];
            place += 1;
        }
        Self { name, words, meanings, example }
    }

    /// Returns the choice as a parameter that may be left out.
    pub(super) const fn parameter(&'static self) -> Parameter {
        Parameter::word(self.name, &self.words, self.example)
    }

    /// Returns the choice of a call, if it has one.
    pub(super) fn given(&self, arguments: &Arguments) -> Option<T> {
        let word = arguments.word(self.name)?;
        // Arguments are bound by the same list of words.
        let place = self.words.iter().position(|known| *known == word)?;
        Some(self.meanings[place])
    }

    /// Returns the choice of a call, or else the first.
    pub(super) fn of(&self, arguments: &Arguments) -> T {
        self.given(arguments).unwrap_or(self.meanings[0])
    }
}

pub(super) static DISTRIBUTION: Choice<Distribution, 2> =
    Choice::new("distribution", [("fitted", Distribution::Fitted), ("uniform", Distribution::Uniform)], "'uniform'");
