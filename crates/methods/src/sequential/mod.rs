//! Sequential l-diversity: the same people, released again and again with other columns.
//!
//! # Guarantee
//! For everybody there are `l` *worlds*: the true table, and `l - 1` in which people have their own quasi-identifiers, but what is
//! sensitive, and what travels with it, of somebody near; over the worlds, everybody has `l` different sensitive values. Every release,
//! whatever its columns, is consistent with all of them: in each world there is a one-to-one assignment of people to released rows in which
//! every row has the values of its person there, quasi-identifiers generalized. So not even a reader who knows everybody's
//! quasi-identifiers and has all releases links somebody to a sensitive value with a probability above `1/l` (Theorem 4.1), **provided the
//! worlds are equally likely to that reader**. They are, exactly, to a reader who knows this code and all parameters, and is even shown all
//! worlds, if all ways to give out the values (with what travels with them) were equally likely to that reader before: see below. Beliefs that tie
//! values to quasi-identifiers, and knowledge of other people's values, are not covered: whoever knows one value that differs from world to
//! world, and the worlds, knows the true one.
//!
//! Values that travel (sensitive, or declared as other) must not change between releases, for the worlds would contradict earlier releases;
//! changed ones are refused. Quasi-identifiers may. New people get worlds among themselves. People who leave would take a row away, and with
//! it the worlds in which others carried their values (*critical absence*): a reader who knows who left learns that the others did not
//! carry the value that is gone. The paper leaves this unsolved. Here whoever leaves stays as a *ghost*, a counterfeit with their values, as
//! long as somebody of their ring is there (`state::ghosts`); each world has as many counterfeits as the true one, and the release says
//! how many. A publication does so by itself; calls are refused unless rows of people who have left are passed on as they were.
//!
//! # Method
//! E. Shmueli and T. Tassa, *Privacy by Diversity in Sequential Releases of Databases*, Information Sciences 2015. Algorithm 2 is `parts` and
//! `matching`; `baseline` is what the paper compares with. `worlds` stands in the place of Algorithm 1, and is ours, for that makes the truth an end
//! of a window of `l` consecutive people in a cycle, so that a reader who sees who can have which row is right for one of two people,
//! whatever `l` is. Here people are dealt into *rings* with different values, in a cyclic order, and a world is a *shift*, one of `l` different ones:
//! the true one is any of them (`rings`). Rings stay for ever. Their buckets come of cuts that are made if they can be made in all
//! worlds, and tried once (`mondrian::fair`): the usual cuts of Mondrian would tell of the true world what was not cut. There
//! is no order of rows that loses little; such an order depends on who has which value, and tells of it.
//!
//! Algorithm 2 treats all worlds alike, whichever is true: it begins with one drawn at random, and takes the others in random order. It differs from the paper
//! in how a matching is cut into parts: the paper clusters
//! the released side and gives each cluster in turn the closest rows of the world, which costs time quadratic in the size of a class and
//! leaves the last cluster with what nobody wanted; here both sides are cut alike. And a row may be *linked* to who carries its own values in a
//! world, whom the baseline would give it, or exchange that person with rows near it, where that loses less. Classes of values that lose much less
//! so in one world are only linked in those that come after. All of that looks at quasi-identifiers, classes and the set of worlds, and never
//! at which of them is true.
//!
//! # Cost
//! O((d + l + log n) n log n) for worlds. O(l n (log n + p^2)) at worst for a release, whichever it is (Theorem 4.4). Parallel over
//! buckets and parts.

mod assign;
mod baseline;
mod check;
mod cycles;
mod linear_assignment;
mod matching;
mod measure;
mod parts;
mod worlds;

#[cfg(test)]
mod tests;

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

pub use self::baseline::NonSequential;
pub use self::measure::Loss;
pub use self::worlds::Worlds;

use self::matching::Matching;
use self::measure::Measure;
use super::given::{Declared, Offered};
use super::mondrian::Cuts;
use super::parameters::{FunctionSignature, Kind, Parameter};
use super::{
    Against, Foreseen, LeftOut, Method, Monitor, Needs, Promises, Remembered, State, StateKind, WHERE_VALUES_CHANGE,
};
use crate::error::{Error, Result, thousands};
use crate::extent::{MOST, too_many};
use crate::microdata::{Codes, Microdata};
use crate::release::{Body, Form, Groups, Intervals, Release};
use crate::state::Partners;

/// Worlds. More than this would cost more memory than the table, many times.
const L: Parameter = Parameter::required("l", Kind::Integer, "5").at_least(2).at_most(1000);
const P: Parameter = Parameter::optional("p", Kind::Integer, "100")
    .at_least(1)
    .at_most(MOST_PART as i64)
    .or(PART as i64)
    .says("most rows that are matched exactly at a time, up to 1000");
const LOSS: Parameter =
    Parameter::word("loss", &["lm", "em"], "'em'").says("what is kept small: the loss metric, or the entropy");
const WORLDS_ARE_WHOLE: &str =
    "the people whose values somebody may carry are drawn from the whole table, and a part of it has fewer";

/// Most rows that are matched at a time, if nothing else is said: the paper's sweet spot.
pub const PART: usize = 100;
/// Matching takes time quadratic in the rows of a part, at least.
pub const MOST_PART: usize = 1000;

/// A release of people whose worlds are known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SequentialRelease {
    /// Most rows that are matched at a time, up to 1,000.
    pub p: usize,
    /// The loss to minimize.
    pub loss: Loss,
}

/// Worlds for new people, and a release of everybody: what a publication is made with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Sequential {
    /// Number of worlds, the true one included.
    pub l: usize,
    /// Most rows that are matched at a time, up to 1,000.
    pub p: usize,
    /// The loss to minimize.
    pub loss: Loss,
    /// Way to cut new people into buckets.
    pub cuts: Cuts,
}

impl SequentialRelease {
    /// Makes releases by parts of at most `p` rows (100 is the paper's). They are of everybody who has worlds.
    pub fn new(p: usize) -> Self {
        Self { p, loss: Loss::default() }
    }

    setters! {
        /// The loss to minimize.
        with_loss(loss: Loss);
    }

    /// Returns the bytes that a release takes, without its boxes.
    ///
    /// Of each row these are its class, its person in each of `worlds` worlds, and its place and a person's while classes are cut. The parts that are
    /// matched at the same time add their losses. The method asks for the bytes of boxes once it knows the number of values.
    fn bytes(&self, rows: usize, quasi: usize, worlds: usize) -> usize {
        let at_a_time = self.p.min(rows).pow(2) * 2 * size_of::<f64>() * rayon::current_num_threads();
        rows * (8 * quasi + 8 * worlds + 100) + at_a_time
    }

    /// Fails when values that travel have changed, or people are missing.
    fn check_partners(partners: &Partners) -> Result<()> {
        if partners.changed > 0 {
            return Err(Error::refused(format!(
                "{} people have other values in the sensitive column, or in one that travels with it, than when their worlds were made or \
                 in an earlier release; they cannot change, because the worlds would contradict earlier releases: pass the values as \
                 they were, or leave the column out. {WHERE_VALUES_CHANGE}",
                thousands(partners.changed)
            )));
        }
        if partners.missing > 0 {
            return Err(Error::refused(format!(
                "{} people who have worlds are missing; a reader who knows who left could reason from what left with them. Pass the rows of \
                 people who have left, too, as they were: they are counterfeits from then on. A publication keeps such rows by itself",
                thousands(partners.missing)
            )));
        }
        Ok(())
    }

    /// Makes a release in these worlds: of every row `width` partners.
    fn release(
        &self,
        microdata: Microdata,
        known: &Partners,
        (partners, width): (&[u32], usize),
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        Self::check_partners(known)?;
        if microdata.quasi.is_empty() {
            return Err(Error::refused("there is no quasi-identifier in the table; a release needs one"));
        }
        if microdata.quasi.len() > MOST {
            return Err(too_many(microdata.quasi.len()));
        }
        if microdata.rows == 0 {
            let groups = Groups { starts: vec![0], ..Groups::default() };
            let body = Body::Rows { intervals: Intervals::default(), worlds: None, ghosts: 0 };
            return Ok(Release { microdata, groups, body, withheld: 0 });
        }
        if self.p == 0 {
            return Err(Error::refused("p must be at least 1"));
        }
        let ends = 2 * microdata.quasi.len();
        monitor.charge(microdata.rows * ends * Codes::bytes_of(microdata.greatest_code() as usize + 1))?;
        let measure = Measure::new(self.loss, &microdata);
        let matching = Matching { microdata: &microdata, partners, width, measure: &measure, p: self.p, monitor };
        let matched = monitor.phase("matching", || matching.release(rng))?;
        monitor.phase("check", || check::check(&microdata, partners, width, &matched, monitor))?;
        let members = matched.people.into_iter().next().unwrap_or_default();
        let sensitive = microdata.sensitive_of(&members);
        let starts = (0..=members.len() as u32).collect();
        let groups = Groups { starts, members, sensitive, ..Groups::default() };
        let body = Body::Rows { intervals: matched.boxes, worlds: None, ghosts: known.ghosts };
        Ok(Release { microdata, groups, body, withheld: 0 })
    }
}

impl Sequential {
    /// Makes `l` worlds for everybody, and releases by parts of 100 rows.
    pub fn new(l: usize) -> Self {
        let (loss, cuts) = (Loss::default(), Cuts::default());
        Self { l, p: PART, loss, cuts }
    }

    setters! {
        /// Most rows that are matched at a time, up to 1,000.
        with_p(p: usize);
        /// The loss to minimize.
        with_loss(loss: Loss);
        /// Sets the way to cut new people into buckets.
        with_cuts(cuts: Cuts);
    }

    fn worlds(&self) -> Worlds {
        Worlds { l: self.l, cuts: self.cuts }
    }

    fn of_release(&self) -> SequentialRelease {
        SequentialRelease { p: self.p, loss: self.loss }
    }
}

impl Declared for SequentialRelease {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "sequential_release",
        about: "a release of some columns, safe beside releases of other columns of the same people",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("worlds", Kind::Relation, "worlds").says("what sequential_worlds returned"),
            Parameter::ID,
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::OTHER,
            P,
            LOSS,
            Parameter::HIERARCHIES,
            Parameter::SEED,
            Parameter::PRIVATE,
        ],
        refused: &[("cells", WORLDS_ARE_WHOLE)],
    };

    const OFFERED: Offered = Offered::Function;
}

impl Method for SequentialRelease {
    fn form(&self) -> Form {
        Form::Rows
    }

    fn state(&self) -> Option<StateKind> {
        Some(StateKind::Worlds)
    }

    fn needs(&self) -> Needs {
        Needs { id: true, other: true, ..Needs::default() }
    }

    fn guarantee(&self) -> String {
        "sequential l-diversity with the l of the worlds".to_owned()
    }

    fn against(&self) -> Against {
        Against::Program
    }

    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        // The rest is asked for when it is known how many worlds there are.
        self.bytes(rows, quasi, 0)
    }

    /// Anonymizes a table of people whose worlds are known.
    /// Fails when somebody has no worlds, when a value that travels has changed, and when people are missing.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        let partners = state.worlds()?;
        let of_row = |row| partners.of(row).unwrap_or_default();
        let new = (0..microdata.rows as u32).filter(|&row| of_row(row).is_empty()).count();
        if new > 0 {
            return Err(Error::refused(format!(
                "{} of {} rows are of people without worlds; make some with sequential_worlds(.., worlds => ..), and add them to \
                 what there is",
                thousands(new),
                thousands(microdata.rows)
            )));
        }
        let all = partners.of_all();
        monitor.charge(all.len() * 8)?;
        self.release(microdata, partners, (all, partners.width()), monitor, rng)
    }
}

impl Declared for Sequential {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "sequential",
        about: "worlds for new people and a release of everybody, with the worlds in the ledger",
        parameters: &[
            Parameter::INPUT,
            L.says("how many worlds there are, the true one included: the bound is 1/l"),
            Parameter::ID,
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::OTHER,
            P,
            LOSS,
            Parameter::CUTS,
            Parameter::HIERARCHIES,
        ],
        refused: &[("cells", WORLDS_ARE_WHOLE)],
    };

    const OFFERED: Offered = Offered::Publication;
}

impl Method for Sequential {
    fn form(&self) -> Form {
        Form::Rows
    }

    fn state(&self) -> Option<StateKind> {
        Some(StateKind::ValuedWorlds)
    }

    fn needs(&self) -> Needs {
        Needs { id: true, sensitive: true, other: true }
    }

    fn leaves_out(&self) -> LeftOut {
        LeftOut::Anything
    }

    fn guarantee(&self) -> String {
        format!("sequential {}-diversity", self.l)
    }

    fn against(&self) -> Against {
        Against::Program
    }

    fn foresees(&self) -> Foreseen {
        Foreseen::Nothing
    }

    /// Promises that each batch of people is diverse by itself, and so are whole rings. That a release is consistent
    /// with all worlds cannot be told without the people's quasi-identifiers, which nobody keeps.
    fn promises(&self) -> Option<Promises> {
        Some(Promises { whole: Some(self.l), memory: Remembered::Worlds(self.l), ..Promises::default() })
    }

    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        self.worlds().working_bytes(rows, quasi).max(self.of_release().bytes(rows, quasi, self.l))
            + rows * (4 * self.l + 8)
    }

    /// Makes worlds for new people, and a release of everybody.
    /// Fails with those of [`Worlds`] and [`SequentialRelease`].
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        let known = state.worlds()?;
        let release = self.of_release();
        SequentialRelease::check_partners(known)?;
        let drawn = self.worlds().extend(&microdata, known, monitor, rng)?;
        let mut release = release.release(microdata, known, (&drawn.partners, drawn.width), monitor, rng)?;
        if let Body::Rows { worlds, .. } = &mut release.body {
            // For the ledger.
            *worlds = Some(drawn);
        }
        Ok(release)
    }
}
