//! Anatomy: exact quasi-identifiers beside the sensitive values of their group.
//!
//! # Guarantee
//! In every group no sensitive value makes up more than `1/l` of the rows, and a row tells its group but not which of the
//! group's values is its own (*l-diversity*, frequency form). Whoever knows that somebody is in the table finds the row, which
//! is what the method gives up; the sensitive value stays uncertain with probability at most `1/l`. Groups of the whole table
//! ([`Grouping::Cohort`], the default) are for one release, and two releases of overlapping data can contradict each other.
//!
//! [`Grouping::Close`] is for releases of people who come and go: the groups are rings for ever (`close`), as those of `m_invariant`. A
//! release has a row for each person present, with exact quasi-identifiers. Beside it stands the list of all values of the ring, those of absent people
//! included: *counterfeits*, which have no row. A group says how many it has, and not which values they are. So a release is a function of rings with their
//! values, of who is present, and of quasi-identifiers, and the bound is `1/l` in view of all releases (theorems A and B of `docs/theory.md`).
//!
//! # Method
//! X. Xiao and Y. Tao, *Anatomy: Simple and Effective Privacy Preservation*, VLDB 2006: groups of rows with different
//! sensitive values, drawn uniformly. Ours are those of m-invariance's assignment (`methods::assignment`) for `m = l`, which
//! takes care of the last rows by construction: `l` rows to a group, and a few more in the last groups, no value twice. Where
//! rows lie plays no part, as in the paper, so nothing can be read from who is together.
//!
//! # Cost
//! O(n log n).

use datafusion::common::Result as EngineResult;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::capabilities::CellColumns;
use super::close::{CloseGroups, CloseMethod, Grouping, Reader, check_rings};
use super::given::{Declared, Given, Trial};
use super::lots::Lots;
use super::mondrian::{self, Source, Streams};
use super::parameters::{FunctionSignature, Kind, Parameter};
use super::seen::Seen;
use super::state::Signatures;
use super::{
    Against, CellsBy, Foreseen, Method, Monitor, Needs, OfParticipants, Promises, State, StateKind, assignment, balance,
};
use crate::error::{Error, Result};
use crate::microdata::{Microdata, of_width};
use crate::release::{Body, Form, Groups, Lineage, Promise, Release};

#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod tests;

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Anatomy {
    /// Least number of sensitive values in a group, at least 2.
    pub l: usize,
    /// Choice of the people who share a group. Only those of [`Grouping::Close`] go on in later releases.
    #[serde(default = "Grouping::unsaid", skip_serializing_if = "Grouping::is_unsaid")]
    pub groups: Grouping,
    /// The best informed reader for whom close groups keep the bound.
    #[serde(default, skip_serializing_if = "Reader::is_stranger")]
    pub reader: Reader,
}

impl Anatomy {
    setters! {
        /// Sets the choice of the people who share a group.
        with_groups(groups: Grouping);
        /// Sets the best informed reader for whom close groups keep the bound.
        with_reader(reader: Reader);
    }

    /// Returns the method with groups of at least `l` different values.
    pub fn new(l: usize) -> Self {
        Self { l, groups: Grouping::Cohort, reader: Reader::default() }
    }

    /// Returns close groups of all rows, beside what is known of some of them; `first` is the random part of the numbers of new rings.
    fn draw_close(
        &self,
        microdata: &Microdata,
        known: &Signatures,
        monitor: &Monitor,
        (source, first): (&impl Source, i64),
    ) -> Result<Groups> {
        if microdata.quasi.is_empty() {
            return Err(Error::refused("there is no quasi-identifier in the table; a release needs one"));
        }
        balance::check_signatures("l", self.l, known)?;
        let close = CloseGroups { method: self, microdata, known, secrets: None, source, first, monitor };
        let (groups, new, _) = monitor.phase("grouping", || close.groups())?;
        monitor.phase("check", || check_rings(microdata, &groups, known, &new, self.l))?;
        Ok(groups)
    }

    /// Returns the groups of rows with different values; `rows` lists the rows of each value that occurs.
    fn group(&self, microdata: &Microdata, rows: &mut [&mut [u32]], lots: &mut impl Lots) -> Result<Groups> {
        let mut groups = Groups { starts: vec![0], ..Groups::default() };
        groups.members.reserve_exact(microdata.rows);
        assignment::deal(rows, self.l, lots, |rows| {
            groups.members.extend_from_slice(rows);
            groups.starts.push(groups.members.len() as u32);
        })?;
        groups.sensitive = microdata.sensitive_of(&groups.members);
        Ok(groups)
    }

    fn check(&self, microdata: &Microdata, groups: &Groups) -> Result<()> {
        let broken = || {
            (0..groups.len()).into_par_iter().with_min_len(1024).find_map_any(|group| {
                let range = groups.range(group);
                let (members, values) = (&groups.members[range.clone()], &groups.sensitive[range]);
                if members.iter().zip(values).any(|(&row, &value)| microdata.sensitive_codes.at(row) != value) {
                    return Some("a row with another's sensitive value");
                }
                let mut most = 0;
                groups.for_each_value(group, |_, count| most = count.max(most));
                ((most as usize).saturating_mul(self.l) > members.len()).then_some("a group that is not l-diverse")
            })
        };
        let once = || match Seen::once(microdata.rows, groups.members.iter().copied()) {
            None => Some("a row in two places"),
            Some(seen) => (!seen.is_all()).then_some("a row missing"),
        };
        if !groups.are_whole() || groups.sensitive.len() != groups.members.len() {
            return Err(Error::internal(
                "the release failed its own check (members without a group); nothing was published",
            ));
        }
        let (misplaced, broken) = rayon::join(once, broken);
        if let Some(what) = misplaced.or(broken) {
            return Err(Error::internal(format!("the release failed its own check ({what}); nothing was published")));
        }
        Ok(())
    }
}

impl Declared for Anatomy {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "anatomy",
        about: "a release with exact quasi-identifiers beside the sensitive values of their group",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("l", Kind::Integer, "5")
                .at_least(2)
                .says("no sensitive value makes up more than 1/l of a group"),
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::WITHIN,
            Parameter::ID,
            Parameter::word("groups", &["cohort", "close"], "'close'").says(
                "who shares a group: people of the whole table, in one release; or neighbours who come together, for ever, so that people may be in \
                 several releases",
            ),
            Parameter::word("reader", &["stranger", "participant"], "'participant'").says(
                "with groups 'close', for whom the bound holds: a reader who knows nobody's value, or also one who knows their own and others' values",
            ),
            Parameter::PREVIOUS,
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::INSENSITIVE,
            Parameter::CELLS,
        ],
        refused: &[],
    };

    const TRIALS: &'static [Trial] =
        &[Trial { parameter: "l", arguments: "{}", form: Form::Anatomy, bounded: true, reader: None, by_values: true }];

    /// # Errors
    /// When a reader is named whom groups of the whole table do not ask for.
    fn of(given: &Given<'_>) -> EngineResult<Self> {
        let method: Self = given.parameters()?;
        if method.groups == Grouping::Cohort && given.is_given("reader") {
            return Err(given.refused(
                "reader",
                format!(
                    "groups of the whole table keep one bound for all readers: leave reader out, or write {}",
                    given.write("groups", "'close'")
                ),
            ));
        }
        Ok(method)
    }
}

impl CloseMethod for Anatomy {
    fn least(&self) -> usize {
        self.l
    }

    fn parameter(&self) -> &'static str {
        "l"
    }

    fn reader(&self) -> Reader {
        self.reader
    }

    /// Returns the bytes of a counterfeit: its place among the members, and its value.
    fn counterfeit_bytes(&self, counterfeits: usize, _quasi: usize) -> usize {
        counterfeits.saturating_mul(16)
    }
}

impl Method for Anatomy {
    fn form(&self) -> Form {
        Form::Anatomy
    }

    fn state(&self) -> Option<StateKind> {
        match self.groups {
            Grouping::Close => Some(StateKind::Rings),
            Grouping::Cohort => None,
        }
    }

    /// Needs an identifier where people are remembered.
    fn needs(&self) -> Needs {
        Needs { id: self.groups == Grouping::Close, sensitive: true, ..Needs::default() }
    }

    fn guarantee(&self) -> String {
        match self.groups {
            Grouping::Close => format!("{}-diversity over releases", self.l),
            Grouping::Cohort => format!("{}-diversity (frequency)", self.l),
        }
    }

    fn against(&self) -> Against {
        match self.reader {
            Reader::Participant => Against::Participant,
            Reader::Stranger => Against::Program,
        }
    }

    /// Returns the bound of groups that do not depend on each other. Values of groups of the cohort are dealt uniformly.
    fn of_participants(&self) -> OfParticipants {
        let others = self.l.saturating_sub(1);
        match (self.groups, self.reader) {
            (Grouping::Cohort, _) => OfParticipants::among(others),
            (Grouping::Close, Reader::Participant) => OfParticipants::always_among(others),
            (Grouping::Close, Reader::Stranger) => OfParticipants::NONE,
        }
    }

    fn foresees(&self) -> Foreseen {
        match self.groups {
            Grouping::Close => Foreseen::ByValues { least: Some(self.l) },
            Grouping::Cohort => Foreseen::ByItself,
        }
    }

    fn promises(&self) -> Option<Promises> {
        Some(match self.groups {
            Grouping::Close => Promises::of_signatures(self.l, Lineage::Invariant),
            Grouping::Cohort => Promises::of_groups(vec![Promise::Frequency { l: self.l }]),
        })
    }

    /// Cuts cells by identifiers, in which people who are in two parts meet. A publication does not look for them in groups of the cohort.
    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        match columns.within {
            Some(within)
                if self.groups == Grouping::Cohort && (!columns.remembered || columns.identifier.is_none()) =>
            {
                Ok(within)
            }
            _ => columns.by_identifier(),
        }
    }

    fn not_repositioned(&self) -> Option<(&'static str, &'static str)> {
        (self.groups == Grouping::Close).then_some((
            "groups",
            "snapshots are made eligible as a whole, not the new people in them, so a snapshot could be refused, and none could be published after \
             it: leave groups out, for records of people who are in one snapshot each",
        ))
    }

    /// Adds up the bytes of each row. In groups of the cohort, a row has its place in its value's list, member, and count. The count has a place among the
    /// counts, and nearly every row may have a value of its own. In close groups it has its positions, and its place in the ring.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        match self.groups {
            Grouping::Close => {
                rows * (mondrian::leaves_with_worlds_bytes(quasi) + 16) + mondrian::axes_bytes(rows, quasi)
            }
            Grouping::Cohort => rows * 96,
        }
    }

    /// Anonymizes a table.
    ///
    /// # Errors
    /// [`Error::Refused`] when the most frequent sensitive value makes up more than `1/l` of the rows, in close groups of those that are new; and there when
    /// a person has another value than before.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        microdata.sensitive()?;
        if self.l == 0 {
            return Err(Error::refused("l must be at least 2"));
        }
        if self.groups == Grouping::Close {
            let (source, first) = (Streams(rng.random()), rng.random());
            let groups = self.draw_close(&microdata, state.signatures()?, monitor, (&source, first))?;
            return Ok(Release { microdata, groups, body: Body::Histogram, withheld: 0 });
        }
        let codes = &microdata.sensitive_codes;
        // Rows stand in the order of a keyed hash; within a value they stay so until they are shuffled.
        let mut rows = of_width!(codes, codes => assignment::ByValue::new(codes));
        let mut rows = rows.pieces();
        let most = rows.iter().map(|rows| rows.len()).max().unwrap_or(0);
        let name = microdata.sensitive()?.field.name();
        assignment::check_eligible("rows", microdata.rows, most, self.l, name)?;
        let groups = monitor.phase("assignment", || self.group(&microdata, &mut rows, rng))?;
        monitor.phase("check", || self.check(&microdata, &groups))?;
        Ok(Release { microdata, groups, body: Body::Histogram, withheld: 0 })
    }
}
