//! Close groups: neighbours of one cohort, who share a group in all releases.
//!
//! The *cohort* of a release are its new people. The method cuts the cohort by quasi-identifiers, with cuts that all worlds decide
//! ([`fair`](super::mondrian)). The rings of the leaves are the groups: `m` people or a few more, all with different values. A ring never changes.
//! A later release publishes a ring while one of its people is present. It publishes all values of the ring, with counterfeits for absent people.
//!
//! [`Reader::Stranger`] tests cuts in `m` worlds, and puts neighbours of a leaf into one ring. A reader who knows nobody's value gives each value of a
//! group at most `1/m` (theorem A of `docs/theory.md`). [`Reader::Participant`] tests cuts in all rearrangements inside of rings, and draws rings uniformly
//! in each leaf. The bound then also holds for a reader who knows the values of any people outside of the group (theorem B).
//!
//! Three methods publish such groups, each in a form of its own: `m_invariant` the ranges of those present, `anatomy` their exact quasi-identifiers beside
//! the values of the ring, and `muco` rows that are dealt inside of the ring. All of them leave the same ledger, [`Rings`](super::StateKind::Rings).

mod check;
#[cfg(test)]
pub(crate) mod histories;

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub(crate) use self::check::{check_rings, stay_together};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Microdata, of_width};
use crate::mondrian::{self, Cuts, Source};
use crate::release::{COUNTERFEIT, Groups};
use crate::rings::Worlds;
use crate::secrets::Secrets;
use crate::state::Signatures;
use crate::{Monitor, WHERE_VALUES_CHANGE, assignment};

/// Choice of the people who share a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// Neighbours of one cohort, the same in all releases.
    #[default]
    Close,
    /// People of the whole table with one signature. The groups are made anew for every release, as in the paper.
    Cohort,
}

impl Grouping {
    /// Returns the mode of releases without the parameter.
    pub(crate) fn unsaid() -> Self {
        Self::Cohort
    }

    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Self::unsaid()
    }
}

/// The best informed reader for whom close groups keep the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// Knows nobody's value, not even their own.
    #[default]
    Stranger,
    /// Knows values of people outside of the group, and their own.
    Participant,
}

impl Reader {
    pub(crate) fn is_stranger(&self) -> bool {
        *self == Self::Stranger
    }

    fn worlds(self) -> Worlds {
        match self {
            Self::Stranger => Worlds::Shifts,
            Self::Participant => Worlds::All,
        }
    }
}

/// Facts about a method that publishes close groups.
pub(crate) trait CloseMethod: Sync {
    /// Returns the least number of different values in a ring.
    fn least(&self) -> usize;

    /// Returns the name of the argument with this number.
    fn parameter(&self) -> &'static str;

    /// Returns the best informed reader for whom rings keep the bound.
    fn reader(&self) -> Reader {
        Reader::Stranger
    }

    /// Returns the way to cut the cohort.
    fn cuts(&self) -> Cuts {
        Cuts::Tight
    }

    /// Returns the bytes that some counterfeits take.
    fn counterfeit_bytes(&self, counterfeits: usize, quasi: usize) -> usize;

    /// Makes groups of ineligible new people, and counts the rows that are withheld. `None` if the method refuses such people.
    ///
    /// # Errors
    /// Fails when the method cannot publish these people, and when memory is short.
    fn ineligible(
        &self,
        _microdata: &Microdata,
        _monitor: &Monitor,
        _source: &impl Source,
    ) -> Result<Option<(Groups, usize)>> {
        Ok(None)
    }
}

/// Refuses values that are not what they were: a value that changes in a group beside counterfeits, which do not change, is known to be a person's.
pub(crate) fn refuse_changed(people: usize) -> Error {
    Error::refused(format!(
        "{} people have another sensitive value than the one that they were published with, which must stay: next to counterfeits, whose values \
         stay, a value that changes is a person's. Correct these rows. {WHERE_VALUES_CHANGE}",
        thousands(people)
    ))
}

/// Maker of the groups of a release: rings of earlier releases, and rings of new people.
pub(crate) struct CloseGroups<'a, M, S> {
    pub method: &'a M,
    pub microdata: &'a Microdata,
    pub known: &'a Signatures,
    /// Columns that are hidden each by itself, if they are several.
    pub secrets: Option<&'a Secrets>,
    pub source: &'a S,
    /// Random part of the numbers of new rings; the same for releases of one seed.
    pub first: i64,
    pub monitor: &'a Monitor,
}

impl<M: CloseMethod, S: Source> CloseGroups<'_, M, S> {
    /// Makes the groups, numbers new rings, and counts the rows that are withheld.
    ///
    /// # Errors
    /// When a person has another value than before. When one value makes up more than `1/m` of the new people, and the method refuses such people.
    pub(crate) fn groups(&self) -> Result<(Groups, Range<i64>, usize)> {
        let rows = self.microdata.rows as u32;
        let fresh: Vec<u32> = (0..rows).filter(|&row| self.known.number_of(row as usize).is_none()).collect();
        let mut groups = self.returning(rows as usize - fresh.len())?;
        if fresh.is_empty() {
            return Ok((groups, 0..0, 0));
        }
        let all = fresh.len() == self.microdata.rows;
        let part = if all { None } else { Some(self.microdata.part(&fresh)) };
        let (mut drawn, withheld) = self.drawn(part.as_ref().unwrap_or(self.microdata))?;
        let somebody = drawn.members.iter().find(|&&row| row != COUNTERFEIT).map(|&row| fresh[row as usize]);
        let new = new_numbers(self.microdata, self.first, somebody, drawn.len())?;
        drawn.rings = new.clone().collect();
        groups.append(drawn, &fresh, None);
        Ok((groups, new, withheld))
    }

    /// Returns the rings of earlier releases with people present, of whom there are `people`.
    ///
    /// A ring has the present person of each of its values, or a counterfeit.
    ///
    /// # Errors
    /// When a person has another value than before, and when memory is short.
    fn returning(&self, people: usize) -> Result<Groups> {
        let Self { microdata, known, .. } = *self;
        let mut groups = Groups { starts: vec![0], ..Groups::default() };
        if people == 0 {
            return Ok(groups);
        }
        let ring_of = |row: u32| known.number_of(row as usize).map(|ring| (ring, row));
        let mut present: Vec<(u32, u32)> = (0..microdata.rows as u32).into_par_iter().filter_map(ring_of).collect();
        let changed = |&(ring, row): &(u32, u32)| {
            let value = microdata.sensitive_codes.at(row);
            known.is_changed(row as usize) || known.all()[ring as usize].binary_search(&value).is_err()
        };
        let changed = present.par_iter().filter(|person| changed(person)).count();
        if changed > 0 {
            return Err(refuse_changed(changed));
        }
        present.par_sort_unstable();
        let rings = present.chunk_by(|a, b| a.0 == b.0).map(|ring| ring[0].0);
        let members: usize = rings.map(|ring| known.all()[ring as usize].len()).sum();
        self.monitor.charge(self.method.counterfeit_bytes(members.saturating_sub(people), microdata.quasi.len()))?;
        groups.members.reserve_exact(members);
        groups.sensitive.reserve_exact(members);
        for ring in present.chunk_by(|a, b| a.0 == b.0) {
            let (number, start) = (ring[0].0 as usize, groups.members.len());
            let signature = &known.all()[number];
            groups.sensitive.extend_from_slice(signature);
            groups.members.resize(start + signature.len(), COUNTERFEIT);
            for &(_, row) in ring {
                let place = signature.binary_search(&microdata.sensitive_codes.at(row)).unwrap_or_default();
                if std::mem::replace(&mut groups.members[start + place], row) != COUNTERFEIT {
                    return Err(Error::internal("two people of a ring with one value; nothing was published"));
                }
            }
            groups.starts.push(groups.members.len() as u32);
            groups.rings.push(*known.rings().get(number).ok_or_else(|| Error::internal("signatures without rings"))?);
        }
        Ok(groups)
    }

    /// Draws rings of new people, and counts the rows that are withheld.
    fn drawn(&self, microdata: &Microdata) -> Result<(Groups, usize)> {
        let Self { method, secrets, source, monitor, known, .. } = *self;
        let (m, worlds) = (method.least(), method.reader().worlds());
        let what = if known.all().is_empty() { "rows" } else { "new rows" };
        let most = most_frequent(microdata)?;
        if let Some(secrets) = secrets {
            secrets.check_eligible(method.parameter(), m, what, &microdata.sensitive_codes)?;
        } else if !assignment::is_eligible(most, microdata.rows, m) {
            if let Some(made) = method.ineligible(microdata, monitor, source)? {
                return Ok(made);
            }
            assignment::check_eligible(what, microdata.rows, most, m, microdata.sensitive()?.field.name())?;
        }
        let rings = mondrian::leaves_by(microdata, m, worlds, method.cuts(), source, monitor)?.rings;
        if !of_width!(&microdata.sensitive_codes, codes => rings.are_rings(microdata.rows, m, codes)) {
            return Err(Error::internal("rings that are none; nothing was published"));
        }
        let mut members = rings.people;
        // The people of a group stand in the order of its signature.
        let mut left = members.as_mut_slice();
        let mut start = 0;
        let mut parts = Vec::with_capacity(rings.ends.len());
        for &end in &rings.ends {
            let (ring, after) = left.split_at_mut((end - start) as usize);
            parts.push(ring);
            (left, start) = (after, end);
        }
        parts.into_par_iter().with_min_len(1 << 8).for_each(|ring| {
            ring.sort_unstable_by_key(|&row| microdata.sensitive_codes.at(row));
        });
        let sensitive = microdata.sensitive_of(&members);
        let starts = std::iter::once(0).chain(rings.ends).collect();
        Ok((Groups { starts, members, sensitive, ..Groups::default() }, 0))
    }
}

/// Returns numbers of new rings or regions, which ascend from a random first one.
///
/// The first number depends on the identifier of `somebody`, a new person who is published. A person is new only once, so other releases and cells of one
/// seed have other numbers.
///
/// # Errors
/// When Arrow cannot hash an identifier.
pub(crate) fn new_numbers(
    microdata: &Microdata,
    first: i64,
    somebody: Option<u32>,
    wanted: usize,
) -> Result<Range<i64>> {
    // A public release alone is made without identifiers. Nobody can continue it, and its numbers are not shown.
    let salt = match (&microdata.people, somebody) {
        (Some(people), Some(row)) => people.salt(row)?,
        _ => 0,
    };
    let first = (first ^ salt) >> 1;
    Ok(first..first + wanted as i64)
}

/// Returns the number of rows with the most frequent value.
pub(crate) fn most_frequent(microdata: &Microdata) -> Result<usize> {
    let mut counts = vec![0; microdata.sensitive()?.domain.len()];
    microdata.sensitive_codes.iter().for_each(|code| counts[code as usize] += 1);
    Ok(counts.into_iter().max().unwrap_or(0))
}
