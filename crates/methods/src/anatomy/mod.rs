//! Anatomy: exact quasi-identifiers beside the sensitive values of their group.
//!
//! # Guarantee
//! In every group no sensitive value makes up more than `1/l` of the rows, and a row tells its group but not which of the
//! group's values is its own (*l-diversity*, frequency form). Whoever knows that somebody is in the table finds the row, which
//! is what the method gives up; the sensitive value stays uncertain with probability at most `1/l`. For one release, and
//! two releases of overlapping data can contradict each other.
//!
//! # Method
//! X. Xiao and Y. Tao, *Anatomy: Simple and Effective Privacy Preservation*, VLDB 2006: groups of rows with different
//! sensitive values, drawn uniformly. Ours are those of m-invariance's assignment (`methods::assignment`) for `m = l`, which
//! takes care of the last rows by construction: `l` rows to a group, and a few more in the last groups, no value twice. Where
//! rows lie plays no part, as in the paper, so nothing can be read from who is together.
//!
//! # Cost
//! O(n log n).

use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::capabilities::CellColumns;
use super::given::{Declared, Trial};
use super::lots::Lots;
use super::parameters::{FunctionSignature, Kind, Parameter};
use super::seen::Seen;
use super::{Against, CellsBy, Method, Monitor, Needs, OfParticipants, Promises, State, assignment};
use crate::error::{Error, Result};
use crate::microdata::{Microdata, of_width};
use crate::release::{Body, Form, Groups, Promise, Release};

#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod tests;

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Anatomy {
    /// Least number of sensitive values in a group, at least 2.
    pub l: usize,
}

impl Anatomy {
    /// Returns the method with groups of at least `l` different values.
    pub fn new(l: usize) -> Self {
        Self { l }
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
        about: "one release with exact quasi-identifiers beside the sensitive values of their group",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("l", Kind::Integer, "5")
                .at_least(2)
                .says("no sensitive value makes up more than 1/l of a group"),
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::WITHIN,
            Parameter::ID,
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::INSENSITIVE,
            Parameter::CELLS,
        ],
        refused: &[],
    };

    const TRIALS: &'static [Trial] =
        &[Trial { parameter: "l", arguments: "{}", form: Form::Anatomy, bounded: true, reader: None, by_values: true }];
}

impl Method for Anatomy {
    fn form(&self) -> Form {
        Form::Anatomy
    }

    fn needs(&self) -> Needs {
        Needs { sensitive: true, ..Needs::default() }
    }

    fn guarantee(&self) -> String {
        format!("{}-diversity (frequency)", self.l)
    }

    fn against(&self) -> Against {
        Against::Program
    }

    /// Returns the bound of its groups: values are dealt uniformly, and no group depends on another.
    fn of_participants(&self) -> OfParticipants {
        OfParticipants::among(self.l.saturating_sub(1))
    }

    fn promises(&self) -> Option<Promises> {
        Some(Promises::of_groups(vec![Promise::Frequency { l: self.l }]))
    }

    /// Cuts cells by identifiers, in which people who are in two parts meet. A publication does not look for them.
    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        match columns.within {
            Some(within) if !columns.remembered || columns.identifier.is_none() => Ok(within),
            _ => columns.by_identifier(),
        }
    }

    /// Adds up each row's place in its value's list, member, and count. The count has a place among the counts,
    /// and nearly every row may have a value of its own.
    fn working_bytes(&self, rows: usize, _quasi: usize) -> usize {
        rows * 96
    }

    /// Anonymizes a table.
    ///
    /// # Errors
    /// [`Error::Refused`] when the most frequent sensitive value makes up more than `1/l` of the rows.
    fn anonymize(
        &self,
        microdata: Microdata,
        _state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        microdata.sensitive()?;
        if self.l == 0 {
            return Err(Error::refused("l must be at least 2"));
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
