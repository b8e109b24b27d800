//! Mondrian: one table, anonymized once, by recursive cuts.
//!
//! # Guarantee
//! Of any combination of
//! - *k-anonymity*: every group has at least `k` rows (of as many people only if every row is about somebody else, which is
//!   checked where there is an identifier);
//! - *l-diversity*: in every group no sensitive value makes up more than `1/l` of the rows ([`Diversity::Frequency`]), or there
//!   are at least `l` different ones ([`Diversity::Distinct`]), or their entropy is at least `ln l` ([`Diversity::Entropy`]);
//! - *t-closeness*: the distribution of sensitive values in every group is within distance `t` of that in the whole table
//!   (earth mover's distance: for numbers and times by rank, for categories with all values equally far apart). The whole is
//!   the part, where a table is anonymized part by part.
//!
//! For one release. Two releases of overlapping data can contradict each other, whatever `k`, `l` and `t` are; that is what
//! [m-invariance](super::m_invariance) is for. And a reader who knows that cuts are made where both sides keep the
//! principle can sometimes reason from a cut that was not made (the *minimality attack*, Wong et al., VLDB 2007): with `k`
//! alone, where no cut looks at sensitive values, there is nothing to reason from; nor with `l` where cuts are [fair](Mondrian::fair).
//!
//! # Method
//! K. LeFevre, D. DeWitt and R. Ramakrishnan, *Mondrian Multidimensional K-Anonymity*, ICDE 2006; l-diversity after A. Machanavajjhala et al., ICDE 2006;
//! t-closeness after N. Li, T. Li and S. Venkatasubramanian, ICDE 2007. The whole table is cut in two, and each part again, while both parts keep the
//! principle. [`Cuts::Median`] is the paper's choice of cuts. [`Cuts::Tight`] takes the cut that loses least instead, of all places in all attributes;
//! also single values, or nodes of a hierarchy, against the rest, which binary cuts in an order cannot express. Where too few rows lie on one side, rows
//! that lie on the cut fill up (*relaxed* cuts).
//!
//! # Cost
//! O(n log n) rows looked at, times the square of the number of quasi-identifiers in parts below a thousand rows; larger
//! parts are cut by a sample. Parallel over parts.

mod axis;
mod check;
mod cut;
mod fair;
mod grow;
mod median;
mod places;
mod principle;
mod tight;

#[cfg(test)]
mod attack;
#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod tests;

use datafusion::common::Result as EngineResult;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

pub(super) use self::axis::bytes as axes_bytes;
use self::fair::Fair;
pub(super) use self::fair::{Leaves, Source, Streams};
pub use self::places::PlacePrinciple;
pub use self::places::{PlaceSample, places};
use super::capabilities::{CellColumns, FAIR_IN_CELLS};
use super::given::{Declared, Given, Trial};
use super::parameters::{FunctionSignature, Kind, Parameter};
use super::rings::Worlds;
use super::secrets::{self, Secrets};
use super::{Against, CellsBy, Method, Monitor, Needs, Promises, Share, State};
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::{Body, Form, Groups, Promise, Release};

/// Meaning of l-diversity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Diversity {
    /// The most frequent sensitive value makes up at most `1/l` of a group.
    #[default]
    Frequency,
    /// A group has at least `l` different sensitive values. The weakest form: one of them may be nearly everybody's.
    Distinct,
    /// The entropy of the sensitive values of a group is at least `ln l`.
    Entropy,
}

/// Sets the choice of cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cuts {
    /// The cut that loses least.
    #[default]
    Tight,
    /// At the median of the attribute with the greatest spread, as in the paper.
    Median,
}

impl Cuts {
    /// Returns the cuts that were asked for, and whether all worlds decide on them.
    ///
    /// # Errors
    /// When the word is none of these, which is a bug.
    pub(super) fn of(given: &Given<'_>) -> EngineResult<(Self, bool)> {
        match given.word("cuts") {
            Some("fair") => Ok((Self::Tight, true)),
            _ => Ok((given.meaning("cuts")?.unwrap_or_default(), false)),
        }
    }
}

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Mondrian {
    /// Least number of rows in a group. With 1 and no `l`, groups of a single row are allowed.
    pub k: usize,
    /// Least diversity of a group, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l: Option<usize>,
    /// Meaning of diversity; [`Diversity::Frequency`] if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diversity: Option<Diversity>,
    /// Greatest distance of a group from the whole, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<Share>,
    /// Sets the choice of cuts.
    pub cuts: Cuts,
    /// True if all worlds decide cuts: cuts that were not made tell nothing. With `l` of [`Diversity::Frequency`], and
    /// without `t`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fair: bool,
}

impl Mondrian {
    setters! {
        /// Least diversity of a group, if it matters.
        with_l(l: Option<usize>);
        /// Sets the meaning of diversity.
        with_diversity(diversity: Option<Diversity>);
        /// Greatest distance of a group from the whole, if it matters.
        with_t(t: Option<Share>);
        /// Sets the choice of cuts.
        with_cuts(cuts: Cuts);
        /// Lets all worlds decide cuts.
        with_fair(fair: bool);
    }

    /// Makes k-anonymity alone.
    pub fn new(k: usize) -> Self {
        Self { k, l: None, diversity: None, t: None, cuts: Cuts::default(), fair: false }
    }

    /// Starts and members of the groups.
    fn groups(&self, microdata: &Microdata, seed: [u8; 32], monitor: &Monitor) -> Result<(Vec<u32>, Vec<u32>)> {
        let principle = principle::Principle::try_new(self, microdata)?;
        if !self.fair {
            return grow::grow(microdata, &principle, monitor);
        }
        let (Some(l), None, Diversity::Frequency) = (self.l, self.t, self.diversity.unwrap_or_default()) else {
            return Err(Error::refused(FAIR.to_owned()));
        };
        let (values, source) = (&microdata.sensitive_codes, Streams(seed));
        let least = self.k.max(l);
        let (cuts, worlds) = (self.cuts, Worlds::Shifts);
        // Rings are closer than leaves, and as safe; where k asks for more people than l, only leaves have as many.
        let without_rings = self.k > l;
        let secrets = Secrets::of(microdata.sensitive()?)?;
        let secrets = secrets.as_ref();
        secrets.map_or(Ok(()), |secrets| secrets.check_eligible("l", l, "rows", values))?;
        let (sure, source) = (0.0, &source);
        let fair = Fair { microdata, values, secrets, l, worlds, least, sure, without_rings, cuts, source, monitor };
        let Leaves { ends, rings, .. } = fair.leaves()?;
        let ends = if without_rings { ends } else { rings.ends };
        Ok((std::iter::once(0).chain(ends).collect(), rings.people))
    }
}

impl Declared for Mondrian {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "mondrian",
        about: "one release with ranges: k-anonymity, l-diversity, t-closeness",
        parameters: &[
            Parameter::INPUT,
            Parameter::optional("k", Kind::Integer, "10")
                .at_least(2)
                .says("least number of rows in a group")
                .otherwise("none"),
            Parameter::optional("l", Kind::Integer, "5")
                .at_least(2)
                .says("diversity of a group's sensitive values")
                .otherwise("none"),
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::word("diversity", &["frequency", "distinct", "entropy"], "'distinct'").says("what l means"),
            Parameter::optional("t", Kind::Number, "0.2")
                .says("greatest distance of a group's sensitive values from the table's, 0 to 1")
                .otherwise("none"),
            Parameter::HIERARCHIES,
            Parameter::WITHIN,
            Parameter::FAIR_CUTS,
            Parameter::ID,
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::INSENSITIVE,
            Parameter::CELLS,
        ],
        refused: &[],
    };

    const TRIALS: &'static [Trial] = &[
        Trial {
            parameter: "l",
            arguments: "l => {}",
            form: Form::Intervals,
            bounded: true,
            reader: None,
            by_values: true,
        },
        Trial {
            parameter: "k",
            arguments: "k => {}",
            form: Form::Intervals,
            bounded: false,
            reader: None,
            by_values: false,
        },
    ];

    fn of(given: &Given<'_>) -> EngineResult<Self> {
        let (k, l) = (given.integer("k"), given.integer("l"));
        let t = given.number("t").map(|t| Share::try_new("t", t)).transpose();
        let t = t.map_err(|error| error.in_function(Self::SIGNATURE.name))?;
        if k.is_none() && l.is_none() && t.is_none() {
            return Err(given.refused_together(format!(
                "give k (rows in a group), l (diversity of a group), t (how far its values may be from the table's) or several of them, for \
                 example {}",
                given.write("k", "10")
            )));
        }
        // What t allows alone may be groups of one row, which hide nobody.
        let least = if l.is_none() { 2 } else { 1 };
        let diversity = given.meaning("diversity")?.or_else(|| l.map(|_| Diversity::default()));
        if diversity.is_some() && l.is_none() {
            return Err(given.refused_together(format!(
                "diversity says what l means, but there is no l; give it, for example {}",
                given.write("l", "5")
            )));
        }
        let (cuts, fair) = Cuts::of(given)?;
        if fair && (l.is_none() || t.is_some() || diversity.is_some_and(|diversity| diversity != Diversity::Frequency))
        {
            let why = format!(
                "{} needs l, with diversity 'frequency' (the default) and without t: fair cuts hide what a cut that was not made tells \
                 of values that make up more than 1/l; with k alone no cut looks at values",
                given.write("cuts", "'fair'")
            );
            return Err(given.refused("cuts", why));
        }
        Ok(Self { k: k.unwrap_or(least), l, diversity, t, cuts, fair })
    }
}

impl Method for Mondrian {
    fn form(&self) -> Form {
        Form::Intervals
    }

    fn needs(&self) -> Needs {
        Needs { sensitive: self.l.is_some() || self.t.is_some(), ..Needs::default() }
    }

    /// Takes several columns without `l` and `t`, which bound no sensitive value at all.
    fn hides_each(&self, columns: usize) -> Result<(), &'static str> {
        match (self.l, self.t) {
            (None, None) => Ok(()),
            _ if self.fair => secrets::check_columns(columns),
            _ => {
                Err("without cuts => 'fair' it bounds the combination of several sensitive columns, not each by itself")
            }
        }
    }

    fn guarantee(&self) -> String {
        let mut parts = vec![format!("{}-anonymity", self.k)];
        parts
            .extend(self.l.map(|l| format!("{l}-diversity ({:?})", self.diversity.unwrap_or_default()).to_lowercase()));
        parts.extend(self.t.map(|t| format!("{}-closeness", t.get())));
        parts.join(", ")
    }

    /// Returns the reader: k looks at no sensitive value.
    fn against(&self) -> Against {
        Against::program_if(self.fair || (self.l.is_none() && self.t.is_none()))
    }

    fn promises(&self) -> Option<Promises> {
        let l = self.l.map(|l| match self.diversity.unwrap_or_default() {
            Diversity::Frequency => Promise::Frequency { l },
            Diversity::Distinct => Promise::Distinct { l },
            Diversity::Entropy => Promise::Entropy { l },
        });
        let t = self.t.map(|t| Promise::Close { t: t.get() });
        Some(Promises::of_groups([Promise::Anonymous { k: self.k }].into_iter().chain(l).chain(t).collect()))
    }

    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        match columns.within {
            Some(within) => Ok(within),
            None if self.t.is_some() => Err(CLOSE_IN_CELLS),
            None if self.fair => Err(FAIR_IN_CELLS),
            None => Ok(CellsBy::Place),
        }
    }

    fn place_principle(&self) -> Option<PlacePrinciple> {
        let l = self.l.map(|l| (l, self.diversity.unwrap_or_default()));
        Some(PlacePrinciple { least: self.k.max(self.l.unwrap_or(1)), l })
    }

    /// Adds up the bytes of each row, and room to cut a part. Each row has its positions, and its place, its value, its
    /// group and its share of the intervals in the release.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        let fair = if self.fair { leaves_with_worlds_bytes(quasi) } else { 0 };
        rows * (leaves_bytes(quasi) + 16 + 8 * quasi / self.k.max(1) + fair) + axes_bytes(rows, quasi)
    }

    /// Anonymizes a table.
    ///
    /// # Errors
    /// [`Error::Refused`] when the table as a whole does not keep the principle.
    fn anonymize(
        &self,
        microdata: Microdata,
        _state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        let (groups, intervals) = monitor.phase("cuts", || {
            // Draws of releases that need none stay as they were.
            let seed = if self.fair { rng.random() } else { [0; 32] };
            let (starts, members) = self.groups(&microdata, seed, monitor)?;
            let sensitive = microdata.sensitive_of(&members);
            let groups = Groups { starts, members, sensitive, ..Groups::default() };
            let intervals = Release::cover(&microdata, &groups)?;
            Ok((groups, intervals))
        })?;
        monitor.phase("check", || check::check(&microdata, &groups, &intervals, self))?;
        Ok(Release { microdata, groups, body: Body::Grouped { intervals }, withheld: 0 })
    }
}

/// Says why releases with `t` are not made in cells.
const CLOSE_IN_CELLS: &str =
    "a release with t cannot be made in cells: no cell knows the distribution of the whole table; leave t or cells out";

/// Conditions of fair cuts.
const FAIR: &str = "cuts => 'fair' needs l (of diversity 'frequency', the default) and cannot be with t: what it takes from a reader is what \
                    cuts tell of values that make up more than 1/l; with k alone, cuts tell nothing of values anyway";

/// Cuts the rows into diverse parts until no cut is left: starts and members. In no part does a sensitive value
/// make up more than `1/l` of the rows.
///
/// # Errors
/// When the table as a whole is not such a part.
pub(super) fn leaves(microdata: &Microdata, l: usize, cuts: Cuts, monitor: &Monitor) -> Result<(Vec<u32>, Vec<u32>)> {
    let params = Mondrian { l: Some(l), cuts, ..Mondrian::new(1) };
    grow::grow(microdata, &principle::Principle::try_new(&params, microdata)?, monitor)
}

/// Returns the bytes of a row while a table is cut into [`leaves`].
pub(super) fn leaves_bytes(quasi: usize) -> usize {
    // With room for the smaller side of a cut; where there are many rows, for a part of it.
    grow::item_bytes(quasi) * 3 / 2
}

/// Cuts leaves that tell a reader their values only, with `l` worlds in rings inside. No value may make up more
/// than `1/l` of all rows. Cuts are tried once each: see `fair`.
///
/// # Errors
/// When there are too many quasi-identifiers, or leaves of a hierarchy; when memory is short.
pub(super) fn leaves_with_worlds(
    microdata: &Microdata,
    l: usize,
    cuts: Cuts,
    seed: [u8; 32],
    monitor: &Monitor,
) -> Result<Leaves> {
    leaves_by(microdata, l, Worlds::Shifts, cuts, &Streams(seed), monitor)
}

/// Returns the same, with draws from elsewhere.
///
/// # Errors
/// As for [`leaves_with_worlds`].
pub(super) fn leaves_by(
    microdata: &Microdata,
    l: usize,
    worlds: Worlds,
    cuts: Cuts,
    source: &impl Source,
    monitor: &Monitor,
) -> Result<Leaves> {
    let (values, secrets) = (&microdata.sensitive_codes, Secrets::of(microdata.sensitive()?)?);
    let (secrets, sure) = (secrets.as_ref(), 0.0);
    Fair { microdata, values, secrets, l, worlds, least: l, sure, without_rings: false, cuts, source, monitor }.leaves()
}

/// Cuts leaves of at least so many rows, whose people are grouped anew by signature. Rings say everybody's signature. A cut is tried if its chance to
/// pass is at least `sure`.
///
/// # Errors
/// As for [`leaves_with_worlds`].
pub(super) fn regions(
    microdata: &Microdata,
    l: usize,
    (least, sure): (usize, f32),
    source: &impl Source,
    monitor: &Monitor,
) -> Result<Leaves> {
    let (values, worlds, cuts) = (&microdata.sensitive_codes, Worlds::Renamings, Cuts::Tight);
    let least = least.max(l);
    Fair { microdata, values, secrets: None, l, worlds, least, sure, without_rings: false, cuts, source, monitor }
        .leaves()
}

/// Returns the bytes of a row while a table is cut into [`leaves_with_worlds`]. These are for its way through the cuts, with room to cut, its value, its place
/// among those of its value (twice while they are sorted), its place in a ring and its shifts, what the odds of cuts are kept in, and its side.
pub(super) fn leaves_with_worlds_bytes(quasi: usize) -> usize {
    grow::item_bytes(quasi) * 3 / 2 + size_of::<[u32; 8]>() + 1
}
