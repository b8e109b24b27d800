//! Against whom the bound of a method holds. A reader is a *stranger*, who knows nobody's value, or a *participant*: somebody of the table,
//! who knows their own.

use std::fmt;

/// The best informed reader for whom the bound is proved, of those in `docs/threats.md`. Everybody knows what the
/// ones before know, and nobody's value but for the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Against {
    /// Counts tables that explain the releases as equally likely, as the method's paper does.
    Paper,
    /// Puts together what can be known of all people at once.
    People,
    /// Has this program's source, and takes later people's values for drawn independently. The draws are by the shares of the first release,
    /// and how many people of each value came is not known. Tables are weighed by how likely the program was to publish what it did.
    Law,
    /// Has this program's source, and weighs tables by their probability to give the releases.
    Program,
    /// The same, and knows values of people: their own, and those of others. A participant, no stranger.
    Participant,
}

impl Against {
    /// Returns the reader with this program if `safe`, else the paper's.
    pub(super) fn program_if(safe: bool) -> Self {
        if safe { Self::Program } else { Self::Paper }
    }

    /// Returns the same with what the bound does not cover: beside earlier releases of the same people if it is `alone`, several rows of one person if nobody
    /// is `named`, and what is known of columns that are `kept` as they are.
    pub fn but(self, alone: bool, named: bool, kept: bool) -> String {
        let of_each = if alone { ", of each release by itself" } else { "" };
        let no_value = if kept { ", no insensitive value" } else { "" };
        let if_others = if named { "" } else { ", if every row is another person" };
        format!("{self}{no_value}{of_each}{if_others}")
    }
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "the paper's",
            Self::People => "combines people",
            Self::Law => "knows the program, not the counts",
            Self::Program => "knows the program",
            Self::Participant => "knows the program and others' values",
        })
    }
}

/// The highest probability that a participant reaches of another one's value: `1/(l - 1)`, where that is a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfParticipants {
    /// Other people among whom the value lies.
    among: usize,
    /// True if that holds of all releases together, and not of a first one only.
    lasting: bool,
}

impl fmt::Display for OfParticipants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.among {
            0 | 1 => f.write_str("no bound"),
            among => write!(f, "1/{among}"),
        }
    }
}

impl OfParticipants {
    /// No bound: every probability is possible.
    pub const NONE: Self = Self { among: 1, lasting: false };

    /// Returns the bound of a value that lies among those of so many other people.
    pub(super) fn among(people: usize) -> Self {
        Self { among: people, lasting: false }
    }

    /// Returns the same bound for readers of all releases together.
    pub(super) fn always_among(people: usize) -> Self {
        Self { among: people, lasting: true }
    }

    /// Returns the bound of a release of this number.
    pub fn at(self, number: u64) -> Self {
        if self.lasting || number == 1 { self } else { Self::NONE }
    }
}
