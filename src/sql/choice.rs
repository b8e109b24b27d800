//! Parameters that take one of a few words: which there are, and what each means, said once.

use super::arguments::Arguments;
use super::signature::{Kind, Parameter, Preset};
use crate::estimate::Distribution;
use crate::methods::m_invariance::{Assignment, Balance, OnIneligible};
use crate::methods::mondrian::Cuts;

/// The words of a parameter and their meanings. The first is what holds if the parameter is left out.
#[derive(Debug)]
pub(super) struct Choice<T: 'static, const N: usize> {
    name: &'static str,
    words: [&'static str; N],
    meanings: [T; N],
    example: &'static str,
}

impl<T: Copy, const N: usize> Choice<T, N> {
    /// Pairs of words and meanings, and one of the words as one would write it.
    pub(super) const fn new(name: &'static str, pairs: [(&'static str, T); N], example: &'static str) -> Self {
        let (mut words, mut meanings) = ([""; N], [pairs[0].1; N]);
        let mut place = 0;
        while place < N {
            (words[place], meanings[place]) = pairs[place];
            place += 1;
        }
        Self { name, words, meanings, example }
    }

    /// As a parameter that may be left out.
    pub(super) const fn parameter(&'static self) -> Parameter {
        let mut parameter = Parameter::optional(self.name, Kind::Word(&self.words), self.example);
        parameter.default = Preset::Word(self.words[0]);
        parameter
    }

    /// What was chosen, if anything was.
    pub(super) fn given(&self, arguments: &Arguments) -> Option<T> {
        let word = arguments.word(self.name)?;
        // Arguments are bound by the same list of words.
        let place = self.words.iter().position(|known| *known == word)?;
        Some(self.meanings[place])
    }

    /// What was chosen, or else the first.
    pub(super) fn of(&self, arguments: &Arguments) -> T {
        self.given(arguments).unwrap_or(self.meanings[0])
    }
}

// Choices that mean the same everywhere.

/// How returning rows are balanced.
pub(super) static BALANCE: Choice<Balance, 2> =
    Choice::new("balance", [("blind", Balance::Blind), ("minimal", Balance::Minimal)], "'minimal'");
/// What to do with new rows that are not m-eligible.
pub(super) static ON_INELIGIBLE: Choice<OnIneligible, 3> = Choice::new(
    "on_ineligible",
    [
        ("refuse", OnIneligible::Refuse),
        ("counterfeit", OnIneligible::Counterfeit),
        ("withhold", OnIneligible::Withhold),
    ],
    "'counterfeit'",
);
/// Under which signatures new rows go.
pub(super) static ASSIGNMENT: Choice<Assignment, 2> =
    Choice::new("assignment", [("eligible", Assignment::Eligible), ("drawn", Assignment::Drawn)], "'drawn'");
/// How a table is cut into groups.
pub(super) static CUTS: Choice<Cuts, 2> =
    Choice::new("cuts", [("tight", Cuts::Tight), ("median", Cuts::Median)], "'median'");
/// How a table is cut into groups, and whether all worlds decide.
pub(super) static FAIR_CUTS: Choice<(Cuts, bool), 3> = Choice::new(
    "cuts",
    [("tight", (Cuts::Tight, false)), ("median", (Cuts::Median, false)), ("fair", (Cuts::Tight, true))],
    "'fair'",
);
/// How values are spread over intervals.
pub(super) static DISTRIBUTION: Choice<Distribution, 2> =
    Choice::new("distribution", [("fitted", Distribution::Fitted), ("uniform", Distribution::Uniform)], "'uniform'");
