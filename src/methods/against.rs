//! Against whom the bound of a method holds. A reader is a *stranger*, who knows nobody's value, or a *participant*: somebody of the table,
//! who knows their own.

use std::fmt;

use super::AnyMethod;
use super::balance::{Balance, OnIneligible};
use super::m_invariance::{Assignment, MInvariance};

/// The best informed stranger for whom the bound of a release is proved, of those in `docs/threats.md`: everybody knows what the ones before
/// know, and nobody's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Against {
    /// Counts tables that explain the releases as equally likely, as the method's paper does.
    Paper,
    /// Puts together what can be known of all people at once.
    People,
    /// Has the source of this program, and weighs tables by how likely it was to publish what it did; takes the values of whoever came
    /// after the first release for drawn independently by its shares, and does not know how many people of each value came.
    Law,
    /// Has the source of this program, and weighs tables by how likely it was to publish what it did.
    Program,
}

impl Against {
    /// The same with what the bound does not cover: beside earlier releases of the same people if it is `alone`, several rows of one person if nobody
    /// is `named`, and what is known of columns that are `kept` as they are.
    pub(crate) fn but(self, alone: bool, named: bool, kept: bool) -> String {
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
        })
    }
}

/// The highest probability that a participant reaches of another one's value in a first release: `1/(l - 1)`, where that is a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfParticipants {
    /// Other people among whom the value lies.
    among: usize,
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
    /// No probability is excluded.
    pub(crate) const NONE: Self = Self { among: 1 };
}

impl MInvariance {
    /// Whether the people who first appear under a signature are equally many of each of its values, at every release that is made
    /// so: no new row fills a gap, none is padded and none left out.
    pub(crate) fn is_balanced(&self) -> bool {
        self.looks_at_no_gap() && self.assignment == Assignment::Eligible
    }

    /// Whether new people draw their signatures. Each for themselves, so that they are not equally many; but the mode is agreed before the
    /// first release, and holds from then on.
    pub(crate) fn is_drawn(&self) -> bool {
        self.looks_at_no_gap() && self.assignment == Assignment::Drawn
    }

    fn looks_at_no_gap(&self) -> bool {
        self.balance == Balance::Blind && self.on_ineligible == OnIneligible::Refuse
    }
}

impl AnyMethod {
    /// Against whom a release holds that is made so, if all those before were made so, too.
    pub(crate) fn against(&self) -> Against {
        let or_the_papers = |safe: bool| if safe { Against::Program } else { Against::Paper };
        match self {
            Self::MInvariance(method) if method.is_drawn() => Against::Law,
            Self::MInvariance(method) => or_the_papers(method.is_balanced()),
            Self::MDistinct(method) if method.exact => Against::Program,
            Self::Dynamic(_) => Against::Program,
            // That everybody keeps m joint worlds; how probable they are depends on what is known of updates.
            Self::MDistinct(_) => Against::People,
            // k looks at no sensitive value.
            Self::Mondrian(method) => or_the_papers(method.fair || (method.l.is_none() && method.t.is_none())),
            Self::Anatomy(_)
            | Self::NonSequential(_)
            | Self::SequentialWorlds(_)
            | Self::SequentialRelease(_)
            | Self::Sequential(_) => Against::Program,
            Self::Muco(method) => or_the_papers(method.equal),
        }
    }

    /// Returns what a participant can infer of others. Of `anatomy` what its groups say, for values are dealt uniformly and no group depends on
    /// another; in all other methods something ties groups together (`participants`).
    pub(crate) fn of_participants(&self) -> OfParticipants {
        match self {
            Self::Anatomy(method) => OfParticipants { among: method.l.saturating_sub(1) },
            _ => OfParticipants::NONE,
        }
    }
}
