//! The methods: plain functions from microdata to a release. No async, no SQL, no I/O.
//!
//! Each is deterministic for a random generator's seed on any number of threads and for any order of arrival, and each
//! ends by checking its own guarantee on its result.
//!
//! | module | |
//! |---|---|
//! | [`m_invariance`] | re-publication when rows come and go |
//! | [`m_distinct`] | re-publication when values change, too |
//! | [`dynamic`] | re-publication when everything changes: rows, values, columns |
//! | [`mondrian`] | one release, generalized: k-anonymity, l-diversity, t-closeness |
//! | [`anatomy`] | one release, exact quasi-identifiers: l-diversity |
//! | [`muco`] | one release of rows that still look like rows: delta-probability |
//! | [`reposition`] | not a release, but what makes small skewed snapshots ready for one of these |
//! | [`sequential`] | releases of the same people with other columns, and of more people |
//!
//! What they have in common is the trait [`Method`]; [`AnyMethod`] is any of them with its parameters, as plans carry it; what a release
//! leaves to the next one is [`state`].

/// Methods that set one parameter, for structs of parameters that may get more of them.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($field:ident: $type:ty);)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
}

#[cfg(feature = "publication")]
mod against;
mod assignment;
mod balance;
mod deal;
mod every_row;
mod extent;
mod lots;
mod monitor;
mod of_group;
mod rings;
mod seen;
mod share;
mod split;
mod strata;

#[cfg(test)]
mod choices;
#[cfg(test)]
mod known_others;
#[cfg(test)]
mod participants;
#[cfg(test)]
mod sample;

pub(crate) mod anatomy;
pub(crate) mod dynamic;
pub(crate) mod m_distinct;
pub(crate) mod m_invariance;
pub(crate) mod mondrian;
pub(crate) mod muco;
pub(crate) mod reposition;
pub(crate) mod sequential;
pub(crate) mod state;

use std::fmt;

use datafusion::common::Result as EngineResult;

#[cfg(feature = "publication")]
pub(crate) use against::{Against, OfParticipants};
pub use monitor::Monitor;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
pub use share::Share;

pub use state::{SnapshotBuilder, State, StateKind};

use crate::error::{Error, Result, refusal};
use crate::microdata::{Layout, Microdata};
use crate::release::{Description, Form, Release};
use anatomy::Anatomy;
use dynamic::Dynamic;
use m_distinct::MDistinct;
use m_invariance::{Assignment, MInvariance};
use mondrian::{Diversity, Mondrian, PlacePrinciple};
use muco::Muco;
use sequential::{NonSequential, Sequential, SequentialRelease, Worlds};

/// Sets what to write where a method refuses changed values, as a part of what it says.
pub(crate) const WHERE_VALUES_CHANGE: &str = "Where values really change, begin with 'method' 'dynamic', 'updates' 'changes' (in a call: \
    m_distinct(.., updates => changes, exact => true)), for people who are not in these releases; changes has the columns from_value, to_value and \
    probability";

/// Columns that releases of one publication may have or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeftOut {
    /// None: all releases have the same.
    #[default]
    Nothing,
    /// Quasi-identifiers.
    Quasi,
    /// Quasi-identifiers, and sensitive columns of people who were published before: what they had in them is remembered.
    Remembered,
    /// Quasi-identifiers, the sensitive attribute and what travels with it.
    Anything,
}

/// A method: parameters, and how they make a release of microdata.
pub trait Method: fmt::Debug + Send + Sync {
    /// Name of the SQL function.
    fn name(&self) -> &'static str;

    /// How it publishes.
    fn form(&self) -> Form;

    /// What its releases leave to later ones, if anything.
    fn state(&self) -> Option<StateKind> {
        None
    }

    /// The columns that it cannot do without.
    fn needs(&self) -> Needs;

    /// Which columns a release of a publication may lack that others have.
    fn leaves_out(&self) -> LeftOut {
        LeftOut::Nothing
    }

    /// What it guarantees, in the field's terms.
    fn guarantee(&self) -> String;

    /// Bytes needed beside the microdata. What is not known before the method runs is charged to its monitor.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize;

    /// Makes a release, and checks its own guarantee on it. `state` is what earlier releases say of the rows, of the method's
    /// own kind.
    ///
    /// # Errors
    /// Refused when the data do not allow what is guaranteed; internal when the check fails.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release>;
}

/// Which columns a method cannot do without, beside quasi-identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// An identifier.
    pub id: bool,
    /// A sensitive attribute.
    pub sensitive: bool,
    /// Columns that travel with it, if there are any; other methods publish none.
    pub other: bool,
    /// How probable changes of the sensitive attribute are.
    pub probabilities: bool,
}

/// What decides on the cell of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellsBy {
    /// The value of a column, by its place in the layout.
    Column(usize),
    /// Where the row lies.
    Place,
}

/// Any method, with its parameters: what a plan carries, in a form that can be shipped to another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnyMethod {
    /// Re-publication when rows come and go.
    #[serde(alias = "m_invariant")]
    MInvariance(MInvariance),
    /// Re-publication when values change, too.
    MDistinct(MDistinct),
    /// Re-publication when rows, values and columns change.
    Dynamic(Dynamic),
    /// One release, generalized.
    Mondrian(Mondrian),
    /// One release with exact quasi-identifiers.
    Anatomy(Anatomy),
    /// One release of rows that still look like rows.
    Muco(Muco),
    /// Worlds of people, for the publisher.
    SequentialWorlds(Worlds),
    /// A release of people whose worlds are known.
    SequentialRelease(SequentialRelease),
    /// Worlds for new people, and a release.
    Sequential(Sequential),
    /// One release of all columns, to be projected: the baseline.
    NonSequential(NonSequential),
}

/// Sets what releases of publications say among the parameters, of other things than the method: how many snapshots are held back, and cells.
const BESIDE: [&str; 2] = ["window", "cells"];

/// Why there are no places for cells where cuts are fair.
const FAIR_IN_CELLS: &str = "a release with fair cuts cannot be made in cells: the first cuts would be made by a sample, and a cut that was \
                             not made would tell something; leave cells out, or choose other cuts";

/// Why cells do not draw signatures.
const DRAWN_IN_CELLS: &str = "a release with assignment => 'drawn' cannot be made in cells: each would take the shares of its own people of the \
                              first release for those of all, and lack values that others have; leave cells out, or take assignment => 'eligible'";

impl AnyMethod {
    pub(crate) fn as_method(&self) -> &dyn Method {
        match self {
            Self::MInvariance(method) => method,
            Self::MDistinct(method) => method,
            Self::Dynamic(method) => method,
            Self::Mondrian(method) => method,
            Self::Anatomy(method) => method,
            Self::Muco(method) => method,
            Self::SequentialWorlds(method) => method,
            Self::SequentialRelease(method) => method,
            Self::Sequential(method) => method,
            Self::NonSequential(method) => method,
        }
    }

    /// Name of the SQL function.
    pub fn name(&self) -> &'static str {
        self.as_method().name()
    }

    /// What it guarantees, in the field's terms.
    pub fn guarantee(&self) -> String {
        self.as_method().guarantee()
    }

    /// What its releases leave to later ones, if anything.
    pub fn state(&self) -> Option<StateKind> {
        self.as_method().state()
    }

    pub(crate) fn form(&self) -> Form {
        self.as_method().form()
    }

    /// What decides on the cell of a row: the identifier, of which people have one for ever; for methods that remember nobody, the column
    /// that the release is made within; and for those whose groups are of people who are close together, where rows lie. A cell that
    /// followed from anything else would tell something of the sensitive value.
    /// `remembered` is whether earlier releases are known to those that follow, as in publications.
    ///
    /// # Errors
    /// Why its releases of such a table are not made in cells.
    pub(crate) fn cells_by(&self, layout: &Layout, remembered: bool) -> EngineResult<CellsBy> {
        let identifier = layout.identifier.as_ref().map(|_| CellsBy::Column(0));
        let within = layout.within.as_ref();
        let within = within.and_then(|within| layout.fields().position(|field| field.name() == within.name()));
        let within = within.map(CellsBy::Column);
        let refused = |why: &str| Err(refusal!(self.name(), argument "cells", "{why}"));
        let by = match self {
            Self::MInvariance(method) if method.assignment == Assignment::Drawn => return refused(DRAWN_IN_CELLS),
            Self::MDistinct(MDistinct { exact: true, .. }) | Self::Dynamic(_) if !remembered => {
                return refused(
                    "such a release cannot be made in cells by a call: a cell sees the earlier releases of its own people, and not how many there \
                     were, which says how often values could change; leave cells out, or make a publication, which numbers its releases",
                );
            }
            // Earlier releases say nothing of the column `within`, and people may change theirs.
            Self::MInvariance(_) | Self::MDistinct(_) | Self::Dynamic(_) => identifier,
            Self::Muco(method) if method.equal => {
                return refused(
                    "a release with delta => 'equal' cannot be made in cells: the first cuts would be made by a sample, and a cut that was \
                     not made would tell something; leave cells out, or give a number for delta",
                );
            }
            Self::Muco(method) if method.fair && !remembered && within.is_none() => return refused(FAIR_IN_CELLS),
            // Its rows tell no groups, and would tell places by their order.
            Self::Muco(_) if remembered => identifier,
            // A publication does not look for people who are in two parts; by identifiers, they meet.
            Self::Anatomy(_) if remembered => identifier.or(within),
            Self::Anatomy(_) => within.or(identifier),
            Self::Muco(_) => return Ok(within.unwrap_or(CellsBy::Place)),
            Self::Mondrian(method) => match within {
                Some(within) => return Ok(within),
                None if method.t.is_some() => {
                    return refused(
                        "a release with t cannot be made in cells: no cell knows the distribution of the whole table; leave t or cells out",
                    );
                }
                None if method.fair => return refused(FAIR_IN_CELLS),
                None => return Ok(CellsBy::Place),
            },
            Self::SequentialWorlds(_) | Self::SequentialRelease(_) | Self::Sequential(_) | Self::NonSequential(_) => {
                None
            }
        };
        match by {
            Some(by) => Ok(by),
            None => refused(
                "cells need an identifier (id => ..), which decides on the cell of a row: a cell that followed from other columns would \
                 tell something of the sensitive value",
            ),
        }
    }

    /// What groups of a method whose cells are places must keep; `None` of other methods.
    pub(crate) fn place_principle(&self) -> Option<PlacePrinciple> {
        match self {
            Self::Mondrian(method) => {
                let l = method.l.map(|l| (l, method.diversity.unwrap_or_default()));
                Some(PlacePrinciple { least: method.k.max(method.l.unwrap_or(1)), l })
            }
            Self::Muco(method) => Some(PlacePrinciple { least: method.l, l: Some((method.l, Diversity::Frequency)) }),
            _ => None,
        }
    }

    /// Why its releases of such a table are not for publications, if they are not, and the argument that it is about.
    #[cfg(feature = "publication")]
    pub(crate) fn not_published_again(&self, layout: &Layout) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Muco(method) if method.equal && layout.within.is_some() => Some((
                "within",
                "with delta => 'equal' the people of a group stay together for ever, and one who moves to another part would be known in it by \
                 their row; leave within out, give the column in quasi, or give a number for delta",
            )),
            // Of others whose people are in several releases, no call has them.
            Self::Muco(method) if method.equal && !layout.insensitive.is_empty() => Some((
                "insensitive",
                "whoever leaves stays as a counterfeit, and what is kept beside it would be somebody else's, so that of two rows with one value one \
                 is known to be nobody's; leave insensitive out, or give a number for delta",
            )),
            _ => None,
        }
    }

    /// Whether its releases of such a table can be made in cells.
    pub(crate) fn has_cells(&self, layout: &Layout, remembered: bool) -> bool {
        self.cells_by(layout, remembered).is_ok()
    }

    /// The method that made a release, by what the release says; `None` if nobody here knows it, or one of its parameters.
    pub(crate) fn described(release: &Description) -> Option<Self> {
        let mut parameters: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&release.parameters).ok()?;
        parameters.retain(|name, _| !BESIDE.contains(&name.as_str()));
        parameters.insert("method".to_owned(), release.method.clone().into());
        serde_json::from_value(parameters.into()).ok()
    }

    /// The parameters as a JSON object, for the release's description and for EXPLAIN.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    pub(crate) fn parameters(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(mut map)) => {
                map.remove("method");
                Ok(map)
            }
            _ => Err(Error::internal("parameters that are not an object")),
        }
    }

    /// The same as a text.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    pub(crate) fn parameters_text(&self) -> Result<String> {
        Ok(serde_json::Value::Object(self.parameters()?).to_string())
    }

    /// Runs the method: on the whole, or on each part by the column `within`.
    ///
    /// # Errors
    /// The method's refusals.
    pub(crate) fn release(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        let release = match microdata.within {
            Some(_) if matches!(self.form(), Form::Rows | Form::Worlds) || state.is_of_the_whole() => {
                Err(Error::internal("worlds of parts of a table"))
            }
            Some(_) => strata::anonymize(self.as_method(), microdata, state, monitor, rng),
            None => self.as_method().anonymize(microdata, state, monitor, rng),
        };
        release.map_err(|error| match error {
            Error::Internal(message) => Error::internal(format!("{message} (the guarantee is {})", self.guarantee())),
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m_distinct::Possible;
    use mondrian::Cuts;
    use sequential::Loss;

    /// Whoever has a release knows how it was made, whatever else its parameters say.
    #[test]
    fn a_release_tells_its_method() {
        let (l, cuts, loss, p) = (3, Cuts::Median, Loss::Lm, 50);
        let methods = [
            AnyMethod::MInvariance(MInvariance::new(4)),
            AnyMethod::MInvariance(MInvariance::new(4).with_assignment(Assignment::Drawn)),
            AnyMethod::MDistinct(MDistinct { updates: Possible::Any, ..MDistinct::new(4) }),
            AnyMethod::MDistinct(MDistinct::new(4).with_exact(true)),
            AnyMethod::Mondrian(Mondrian::new(5)),
            AnyMethod::Anatomy(Anatomy { l }),
            AnyMethod::Muco(Muco::try_new(0.5, None, cuts).unwrap()),
            AnyMethod::SequentialWorlds(Worlds { l, cuts }),
            AnyMethod::SequentialRelease(SequentialRelease { p, loss }),
            AnyMethod::Sequential(Sequential { l, p, loss, cuts }),
            AnyMethod::Sequential(Sequential::new(l)),
            AnyMethod::NonSequential(NonSequential { l, cuts }),
        ];
        for method in methods {
            let mut parameters = method.parameters().unwrap();
            parameters.insert("window".to_owned(), 1.into());
            let description = Description {
                method: method.name().to_owned(),
                parameters: serde_json::Value::Object(parameters).to_string(),
                release_id: String::new(),
                number: None,
            };
            assert_eq!(AnyMethod::described(&description), Some(method));
            let other = Description { method: "reposition".to_owned(), ..description.clone() };
            assert_eq!(AnyMethod::described(&other), None);
            // Of a version that promises, or gives up, something else.
            let parameters = description.parameters.replacen('{', "{\"unheard_of\": true, ", 1);
            assert_eq!(AnyMethod::described(&Description { parameters, ..description }), None);
        }
    }
}
