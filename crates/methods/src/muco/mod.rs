//! MuCo (mutual cover): one release whose rows still look like rows.
//!
//! # Guarantee
//! Rows are in hidden groups of at least `l` with different sensitive values. In every group and for every single
//! quasi-identifier, a *random output table* says with which probability each row publishes which value, and no row contributes more than
//! `delta` of a value's probability over all rows (*delta-probability*). So a value that is published in a group stems from each of
//! its rows with probability at most `delta`, and could stem from at least `1 / delta` of them (Corollary 3.2). The tables are
//! those that rows are drawn from, with nothing replaced afterwards; the check is of them.
//!
//! Where at least two quasi-identifiers differ in a group, none of its rows comes out as it was: whoever looks for somebody by all
//! quasi-identifiers does not find their row. Where only one does, `delta` bounds whoever combines all of them, and where none does, the
//! rows are all alike: there, rows may stay, and are counted ([`Perturbed::unchanged`](crate::release::Perturbed)).
//!
//! With equal shares ([`Muco::equal`]) all rows of a group draw from one distribution in every quasi-identifier, and the groups come of cuts that are
//! decided by all worlds: then nobody's sensitive value is likelier than `1/l`, also to a reader who knows the groups and this code and combines all
//! columns (`equal`). What follows is about the other shares.
//!
//! This bounds **one quasi-identifier at a time**, for a reader who does not know the groups. Who knew them and the tables and combined
//! all quasi-identifiers would find the right row far more often. `risk::Perturbed` measures what a reader without
//! the groups finds.
//!
//! Every draw from the same tables is another look at the originals: averages of many converge to them. And a release beside another one tells of
//! everybody who is in both and has changed, or is in one of them only, which rows were theirs: rows that stay as they were are those of people who stay.
//! So a publication with a number for `delta` has nobody in two releases ([`StateKind::People`]). With equal shares groups are rings for ever
//! (`close`), and several releases are as safe as one; other methods where people come and go are [`m_invariance`](super::m_invariance)
//! and [`sequential`](super::sequential).
//!
//! # Method
//! Li et al., *MuCo: Publishing Microdata with Privacy Preservation through Mutual Cover*, 2023. Its steps are the files of this
//! module: `grouping` (Mondrian's cuts under l-diversity, then an assignment inside of the parts; or [fair](Muco::fair) cuts, and the rings of
//! their parts), `reduced` (what a table depends
//! on), `program` (its linear program: least expected distance between original and published value), `table` (made exact), `mix`
//! (so that rows change), `tables` (all that of a group), `draw`. Ours differ in that cuts may be chosen by what they lose
//! ([`Cuts::Tight`]), that the program is solved over covers, so that it takes microseconds, that tables are exact in floating
//! point, and that rows change by the tables instead of by a replacement after them, which would undo delta: the paper's Algorithm 2,
//! in a group of nine people of 20 and one of 60 years with delta 0.2, publishes the age of 20 of the one of 60 only.
//!
//! # Cost
//! O(n log n) for the cuts, and a linear program for every group and quasi-identifier that is not like one before, cubic in its number of
//! different values; on a line it begins next to its optimum (`starts`). Mixing takes as long as a look at the tables. Each group is checked when it
//! is drawn, so no program is solved for the check. Parallel over groups.

mod check;
mod draw;
mod equal;
mod grouping;
mod mix;
mod program;
mod reduced;
mod starts;
mod table;
mod tables;

#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod tests;

use datafusion::common::Result as EngineResult;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use self::reduced::Memo;
use self::tables::Source;
use super::capabilities::{CellColumns, FAIR_IN_CELLS};
use super::close::{CloseMethod, Reader};
use super::given::{Declared, Given, Trial};
use super::mondrian::{self, Cuts, Diversity, PlacePrinciple, Streams};
use super::parameters::{FunctionSignature, Kind, Parameter};
use super::{
    Against, CellsBy, Foreseen, Method, Monitor, Needs, OfParticipants, Promises, Remembered, Share, State, StateKind,
    assignment,
};
use crate::error::{Error, Result};
use crate::microdata::{Distance, Layout, Microdata};
use crate::release::{Body, Form, Groups, Lineage, Perturbed, Release};

/// Says why releases with equal shares are not made in cells.
const EQUAL_IN_CELLS: &str = "a release with delta => 'equal' cannot be made in cells: the first cuts would be made by a sample, and a cut that \
                              was not made would tell something; leave cells out, or give a number for delta";

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Muco {
    /// The greatest share of a published value's probability that one row may contribute.
    pub delta: Share,
    /// Least number of rows, and of different sensitive values, in a group.
    pub l: usize,
    /// Way to cut the table.
    pub cuts: Cuts,
    /// True if all rows of a group draw from one distribution, of every quasi-identifier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub equal: bool,
    /// True if all worlds decide cuts: cuts that were not made tell nothing. This is so to a reader who learns the
    /// groups. With equal shares they always are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fair: bool,
    /// The best informed reader for whom equal shares keep the bound.
    #[serde(default, skip_serializing_if = "Reader::is_stranger")]
    pub reader: Reader,
}

impl Muco {
    setters! {
        /// Sets the best informed reader for whom equal shares keep the bound.
        with_reader(reader: Reader);
        /// Lets all worlds decide cuts.
        with_fair(fair: bool);
    }

    /// Returns the method with these parameters. Without `l`, groups are as small as delta allows.
    ///
    /// # Errors
    /// When delta is not possible in groups of `l` rows.
    pub fn try_new(delta: f64, l: Option<usize>, cuts: Cuts) -> Result<Self> {
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Error::refused(format!("delta must be between 0 and 1, for example 0.2, got {delta}")));
        }
        let rows = reduced::cover(delta).ceil() as usize;
        let l = l.unwrap_or_else(|| rows.max(2));
        if l < 2 {
            return Err(Error::refused("l must be at least 2"));
        }
        if delta < 1.0 / l as f64 {
            return Err(Error::refused(format!(
                "delta = {delta} is not possible in groups of l = {l} rows, of which each contributes at least 1/{l}: delta can be from \
                 {} up to 1; raise it, or give l => {rows} or more",
                1.0 / l as f64
            )));
        }
        Ok(Self {
            delta: Share::try_new("delta", delta)?,
            l,
            cuts,
            equal: false,
            fair: false,
            reader: Reader::Stranger,
        })
    }

    /// Makes the method in which each row of a group is equally likely anybody's. Groups have `l` rows or more.
    ///
    /// # Errors
    /// When `l` is less than 2.
    pub fn equal(l: usize, cuts: Cuts) -> Result<Self> {
        // Of two rows, if fewer were asked for, which is refused.
        Ok(Self { equal: true, ..Self::try_new(1.0 / l.max(2) as f64, Some(l), cuts)? })
    }

    /// Draws a release of all rows.
    fn draw(&self, microdata: &Microdata, monitor: &Monitor, rng: &mut impl Rng) -> Result<(Groups, Perturbed)> {
        if microdata.rows == 0 {
            return Ok((Groups { starts: vec![0], ..Groups::default() }, Perturbed::default()));
        }
        check_eligible(microdata, self.l)?;
        let (dealing, drawing) = (rng.random(), rng.random());
        let distances: Vec<Distance> = microdata.quasi.iter().map(Distance::of).collect::<Result<_>>()?;
        let groups = monitor.phase("grouping", || match self.fair {
            true => grouping::fair(microdata, self.l, self.cuts, &Streams(dealing), monitor),
            false => grouping::group(microdata, self.l, self.cuts, dealing, monitor),
        })?;
        let memo = Memo::new(self.delta.get());
        let ends = |attribute: &crate::microdata::Attribute| [0, (attribute.domain.len().max(1) - 1) as u32];
        let all = microdata.quasi.iter().zip(&distances);
        let widest: Vec<f64> = all.map(|(attribute, distance)| distance.widest(&ends(attribute))).collect();
        let source = Source { microdata, distances: &distances, memo: &memo, widest: &widest };
        let perturbed = monitor.phase("drawing", || source.draw(&groups, drawing, self, monitor))?;
        monitor.phase("check", || check::check(&source, &groups, &perturbed, self))?;
        Ok((groups, perturbed))
    }
}

/// # Errors
/// When the most frequent sensitive value makes up more than `1/l` of the rows.
fn check_eligible(microdata: &Microdata, l: usize) -> Result<()> {
    let sensitive = microdata.sensitive()?;
    let mut counts = vec![0; sensitive.domain.len()];
    microdata.sensitive_codes.iter().for_each(|code| counts[code as usize] += 1);
    let most = counts.into_iter().max().unwrap_or(0);
    assignment::check_eligible("rows", microdata.rows, most, l, sensitive.field.name())
}

impl CloseMethod for Muco {
    fn least(&self) -> usize {
        self.l
    }

    fn parameter(&self) -> &'static str {
        "l"
    }

    fn reader(&self) -> Reader {
        self.reader
    }

    fn cuts(&self) -> Cuts {
        self.cuts
    }

    /// Returns the bytes of counterfeits: each has its place, its value and its published values.
    fn counterfeit_bytes(&self, counterfeits: usize, quasi: usize) -> usize {
        counterfeits.saturating_mul(16 + 8 * quasi)
    }
}

impl Declared for Muco {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "muco",
        about: "one release whose rows still look like rows (mutual cover)",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("delta", Kind::NumberOrWord("equal"), "0.2").says(
                "no row contributes more than this share to the probability of a published value; 'equal': all rows \
                 of a group the same",
            ),
            Parameter::optional("l", Kind::Integer, "10")
                .at_least(2)
                .otherwise("what delta needs")
                .says("least number of rows in a group, all with different sensitive values"),
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::HIERARCHIES,
            Parameter::WITHIN,
            Parameter::FAIR_CUTS,
            Parameter::ID,
            Parameter::word("reader", &["stranger", "participant"], "'participant'").says(
                "with delta 'equal', for whom the bound holds: a reader who knows nobody's value, or also one who knows their own and others' values",
            ),
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::INSENSITIVE,
            Parameter::CELLS,
        ],
        refused: &[],
    };

    const TRIALS: &'static [Trial] = &[Trial {
        parameter: "1/delta",
        arguments: "1.0 / {}",
        form: Form::Perturbed,
        bounded: false,
        reader: None,
        by_values: true,
    }];

    fn of(given: &Given<'_>) -> EngineResult<Self> {
        let (l, (cuts, fair)) = (given.integer("l"), Cuts::of(given)?);
        if given.is_given("reader") && given.word("delta").is_none() {
            let why = format!(
                "shares other than equal ones keep no bound for readers who know values: leave reader out, or write {}",
                given.write("delta", "'equal'")
            );
            return Err(given.refused("reader", why));
        }
        let reader = given.meaning("reader")?.unwrap_or_default();
        let method = match (given.word("delta"), l) {
            (None, _) => {
                let method = Self::try_new(given.number("delta").unwrap_or_default(), l, cuts);
                method.map(|method| method.with_fair(fair))
            }
            // Its cuts are fair anyway.
            (Some(_), Some(l)) => Self::equal(l, cuts).map(|method| method.with_reader(reader)),
            (Some(_), None) => {
                let why = format!(
                    "with {} l must be given, the least number of rows in a group: {}",
                    given.write("delta", "'equal'"),
                    given.write("l", "10")
                );
                return Err(given.refused("l", why));
            }
        };
        method.map_err(|error| error.in_function(Self::SIGNATURE.name))
    }
}

impl Method for Muco {
    fn form(&self) -> Form {
        Form::Perturbed
    }

    fn state(&self) -> Option<StateKind> {
        self.equal.then_some(StateKind::Rings)
    }

    fn needs(&self) -> Needs {
        Needs { sensitive: true, ..Needs::default() }
    }

    fn guarantee(&self) -> String {
        match self.equal {
            true => format!("equal shares of all rows of a group, {}-diversity", self.l),
            false => format!("delta-probability with delta = {}, {}-diversity", self.delta.get(), self.l),
        }
    }

    fn against(&self) -> Against {
        match self.reader {
            Reader::Participant => Against::Participant,
            Reader::Stranger => Against::program_if(self.equal),
        }
    }

    fn of_participants(&self) -> OfParticipants {
        match self.reader {
            Reader::Participant => OfParticipants::always_among(self.l.saturating_sub(1)),
            Reader::Stranger => OfParticipants::NONE,
        }
    }

    fn foresees(&self) -> Foreseen {
        match self.equal {
            true => Foreseen::ByValues { least: Some(self.l) },
            false => Foreseen::Nothing,
        }
    }

    /// Promises that whole rings have `l` different values, each once. Delta is a promise of tables that nobody keeps.
    fn promises(&self) -> Option<Promises> {
        Some(match self.equal {
            true => {
                let memory = Remembered::Signatures(self.l, Lineage::Invariant);
                Promises { whole: Some(self.l), memory, ..Promises::default() }
            }
            false => Promises::default(),
        })
    }

    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        match columns.within {
            _ if self.equal => Err(EQUAL_IN_CELLS),
            None if self.fair && !columns.remembered => Err(FAIR_IN_CELLS),
            // Its rows tell no groups, and would tell places by their order.
            _ if columns.remembered => columns.by_identifier(),
            within => Ok(within.unwrap_or(CellsBy::Place)),
        }
    }

    fn place_principle(&self) -> Option<PlacePrinciple> {
        Some(PlacePrinciple { least: self.l, l: Some((self.l, Diversity::Frequency)) })
    }

    fn not_published_again(&self, layout: &Layout) -> Option<(&'static str, &'static str)> {
        if self.equal && layout.within.is_some() {
            return Some((
                "within",
                "with delta => 'equal' the people of a group stay together for ever, and one who moves to another part would be known in it by \
                 their row; leave within out, give the column in quasi, or give a number for delta",
            ));
        }
        // Of others whose people are in several releases, no call has them.
        (self.equal && !layout.insensitive.is_empty()).then_some((
            "insensitive",
            "whoever leaves stays as a counterfeit, and what is kept beside it would be somebody else's, so that of two rows with one value one \
             is known to be nobody's; leave insensitive out, or give a number for delta",
        ))
    }

    /// Adds up the bytes of each row, of room to cut, and of the tables. Each row has its positions, its place, its
    /// value, its group and its published values.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        let axes = mondrian::axes_bytes(rows, quasi);
        if self.equal {
            return rows * (mondrian::leaves_with_worlds_bytes(quasi) + 24 + 8 * quasi) + axes;
        }
        let tables = (reduced::REMEMBERED + starts::REMEMBERED).min(rows.saturating_mul(quasi * self.l * 32));
        let leaves = match self.fair {
            true => mondrian::leaves_with_worlds_bytes(quasi),
            false => mondrian::leaves_bytes(quasi),
        };
        rows * (leaves + 24 + 12 * quasi) + tables + axes
    }

    /// Anonymizes a table. With equal shares, rings of earlier releases of which somebody is present are shown again.
    ///
    /// # Errors
    /// [`Error::Refused`] when the most frequent sensitive value makes up more than `1/l` of the rows that are drawn, and with equal shares when
    /// somebody has another one than was published.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        if self.equal {
            let (source, first) = (Streams(rng.random()), rng.random());
            let groups = equal::groups(&microdata, state.signatures()?, self, (&source, first), monitor)?;
            let perturbed = equal::deal(&microdata, &groups, monitor)?;
            return Ok(Release { microdata, groups, body: Body::Perturbed(perturbed), withheld: 0 });
        }
        let (groups, perturbed) = self.draw(&microdata, monitor, rng)?;
        Ok(Release { microdata, groups, body: Body::Perturbed(perturbed), withheld: 0 })
    }
}
