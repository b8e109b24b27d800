//! Publication for everything that changes: people come, leave and return, their values change by a known law or
//! not at all, and every release can have other columns.
//!
//! # Guarantee
//! Everybody has each value of their group with the same probability, `1/m` at most, at every release and in view of all of them, to a reader who knows
//! everybody's quasi-identifiers, who was present when, which group holds whom, how often each value occurs among those who came with each release,
//! the law of changes and this program. The proof is in `docs/theory.md`; its test, for frozen and for changing values and for other
//! columns in every release, is `m_distinct::enumeration`.
//!
//! # Method
//! The papers leave the union of their cases open. What unites them is a *track* per place of a group: whoever is in a place goes on by the law of
//! that place, a person by what happens to them, and a counterfeit by lot. That is what exact releases of [`m_distinct`](super::m_distinct) do, and this
//! is their front for any table: without a law, every value goes on as it is (the identity is a law, too), so that people share a group again with those
//! whose last groups had the same values, as in m-invariance. Columns that travel with the sensitive one are parts of one value; hardly two people have the
//! same values in all of them, so that groups stay together, and who leaves goes on as a counterfeit, as in
//! [`sequential`](super::sequential). Who is in a group does not follow from quasi-identifiers of earlier releases, so that each release may have others.
//!
//! # Source
//! Section 8 of this project's notes on readers who know the program; Li and Zhou 2008 for m-Distinct\*, of which it is the exact form.

use datafusion::common::Result as EngineResult;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use super::capabilities::CellColumns;
use super::given::{Declared, Given};
use super::m_distinct::MDistinct;
use super::parameters::{FunctionSignature, KEPT_LINKS_ROWS, Kind, Parameter};
use super::{Against, CellsBy, Foreseen, LeftOut, Method, Monitor, Needs, Promises, State, StateKind, ValueChanges};
use crate::error::Result;
use crate::microdata::Microdata;
use crate::release::{Form, Release};

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Dynamic {
    /// Least number of sensitive values in a group, at least 2: the bound is `1/m`.
    pub m: usize,
}

impl Dynamic {
    /// Returns the method with its defaults.
    pub fn new(m: usize) -> Self {
        Self { m }
    }

    fn exact(&self) -> MDistinct {
        MDistinct::new(self.m).with_exact(true)
    }
}

impl Declared for Dynamic {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "dynamic",
        about: "a release of people who come and go, whose values may change, with other columns each time; safe \
                beside all earlier ones",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("m", Kind::Integer, "10")
                .at_least(2)
                .says("least number of different sensitive values in a group: the bound is 1/m"),
            Parameter::ID,
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::UPDATES.says("from_value, to_value and probability: what values can become, by which law"),
            Parameter::PREVIOUS.says(
                "all earlier private releases, in their order: several in parentheses, or one table with a column \
                 release (1, 2, 3, ..)",
            ),
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::HIERARCHIES,
            Parameter::WITHIN,
            Parameter::CELLS,
        ],
        refused: &[("insensitive", KEPT_LINKS_ROWS)],
    };

    fn of(given: &Given<'_>) -> EngineResult<Self> {
        if given.word("updates").is_some() {
            let why = format!(
                "{} updates is 'any', by which nothing is known of how probable changes are, and all values can become alike; give the relation \
                 with the columns from_value, to_value and probability, or leave it out where no value ever changes",
                given.noun()
            );
            return Err(given.refused("updates", why));
        }
        given.parameters()
    }
}

impl Method for Dynamic {
    fn form(&self) -> Form {
        self.exact().form()
    }

    fn state(&self) -> Option<StateKind> {
        self.exact().state()
    }

    fn needs(&self) -> Needs {
        self.exact().needs()
    }

    /// Lets releases have fewer sensitive columns: one is a part of a release of all, and says no more.
    fn leaves_out(&self) -> LeftOut {
        LeftOut::Remembered
    }

    fn guarantee(&self) -> String {
        self.exact().guarantee()
    }

    fn against(&self) -> Against {
        self.exact().against()
    }

    fn changes(&self) -> ValueChanges {
        self.exact().changes()
    }

    fn foresees(&self) -> Foreseen {
        self.exact().foresees()
    }

    fn promises(&self) -> Option<Promises> {
        self.exact().promises()
    }

    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        self.exact().cells(columns)
    }

    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        self.exact().working_bytes(rows, quasi)
    }

    /// Anonymizes a snapshot. The state must have everybody's most recent group and its release; the microdata have the law of changes, if values change.
    ///
    /// # Errors
    /// Those of exact releases of [`m_distinct`](super::m_distinct): a change that the law does not allow, new people who are not eligible, and a law that is
    /// not complete.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        self.exact().anonymize(microdata, state, monitor, rng)
    }
}
