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
//! | [`anatomy`] | one release with exact quasi-identifiers, or several of people who come and go: l-diversity |
//! | [`muco`] | one release of rows that still look like rows, or several with equal shares: delta-probability |
//! | [`reposition`] | not a release, but what makes small skewed snapshots ready for one of these |
//! | [`sequential`] | releases of the same people with other columns, and of more people |
//!
//! What they have in common is the trait [`Method`]; [`AnyMethod`] is any of them with its parameters, as plans carry it; what a release
//! leaves to the next one is [`state`].

#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used)]

/// The allocator of the shell: a third of what tests that enumerate all draws do is to allocate.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

mod against;
mod assignment;
mod balance;
mod capabilities;
mod close;
mod deal;
mod every_row;
mod extent;
mod given;
mod lots;
mod monitor;
mod of_group;
mod rings;
mod secrets;
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
#[cfg(test)]
mod toy;

pub mod anatomy;
pub mod dynamic;
pub mod m_distinct;
pub mod m_invariance;
pub mod mondrian;
pub mod muco;
pub mod parameters;
pub mod reposition;
pub mod sequential;
pub mod state;

use std::fmt;

use datafusion::common::Result as EngineResult;

pub use against::{Against, OfParticipants};
use capabilities::CellColumns;
pub use capabilities::{CellsBy, Foreseen, LeftOut, Needs, Promises, Remembered, ValueChanges};
use given::Declared;
pub use given::{Argument, Given, Offered, Registered, Trial};
pub use monitor::Monitor;
use parameters::{FunctionSignature, Parameter};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
pub use share::Share;

#[doc(hidden)]
pub use state::Numbers;
pub use state::{SnapshotBuilder, State, StateKind};

use datafusion_anonymize_core::{error, microdata, release};
#[cfg(test)]
use datafusion_anonymize_risk as risk;

use crate::error::{Error, Result, refusal};
use crate::microdata::{Layout, Microdata, is_of_each, parts_of};
use crate::release::{Description, Form, Release};
use mondrian::PlacePrinciple;

/// Sets the advice of a method that refuses changed values, within its text.
pub(crate) const WHERE_VALUES_CHANGE: &str = "Where values really change, begin with 'method' 'dynamic', 'updates' 'changes' (in a call: \
    m_distinct(.., updates => changes, exact => true)), for people who are not in these releases; changes has the columns from_value, to_value and \
    probability";

/// A method: parameters, and how they make a release of microdata.
pub trait Method: fmt::Debug + Send + Sync {
    /// Returns the form in which it publishes.
    fn form(&self) -> Form;

    /// Returns the state that its releases leave to later ones, if any.
    fn state(&self) -> Option<StateKind> {
        None
    }

    /// Returns the columns that it cannot do without.
    fn needs(&self) -> Needs;

    /// Returns the columns that a release of a publication may lack though others have them.
    fn leaves_out(&self) -> LeftOut {
        LeftOut::Nothing
    }

    /// Returns the guarantee, in the field's terms.
    fn guarantee(&self) -> String;

    /// Returns what the absence of a parameter means, as users can write it.
    fn unsaid(&self, _parameter: &str) -> Option<&'static str> {
        None
    }

    /// Returns the best informed stranger for whom the bound holds. All releases before it must be made in the same way.
    fn against(&self) -> Against;

    /// Returns what a participant can infer of others. In most methods something ties groups together (`participants`), so that nothing is excluded.
    fn of_participants(&self) -> OfParticipants {
        OfParticipants::NONE
    }

    /// Checks that the method hides each of so many sensitive columns by itself.
    ///
    /// # Errors
    /// Why it does not. Then it takes their combination only.
    fn hides_each(&self, _columns: usize) -> Result<(), &'static str> {
        Err("it bounds the combination of several sensitive columns, not each of them by itself")
    }

    /// Says how the value of a person may change from release to release.
    fn changes(&self) -> ValueChanges {
        ValueChanges::Never
    }

    /// Says what can be told of a snapshot before it is published.
    fn foresees(&self) -> Foreseen {
        Foreseen::ByItself
    }

    /// Returns what an audit checks of a publication; `None` if it makes no publications.
    fn promises(&self) -> Option<Promises> {
        None
    }

    /// Returns what decides on the cell of a row: for methods with a ledger the identifier, of which people have one for ever; for methods that
    /// remember nobody the column that the release is made within; for methods whose groups are of people who are close together the place of the
    /// row. A cell that followed from anything else would tell something of the sensitive value.
    ///
    /// # Errors
    /// Why releases are not made in cells.
    fn cells(&self, _columns: CellColumns) -> Result<CellsBy, &'static str> {
        Err("its releases are made of the whole table; leave cells out")
    }

    /// Returns what groups must keep, of methods whose cells are places.
    fn place_principle(&self) -> Option<PlacePrinciple> {
        None
    }

    /// Returns the argument that rules out publications of such a table, with the reason.
    fn not_published_again(&self, _layout: &Layout) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns the argument that rules out repositioned streams, and why, if one does.
    fn not_repositioned(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns whether a release is balanced, so that it tells nothing beside its groups; `None` where that is no question.
    fn balanced(&self) -> Option<bool> {
        None
    }

    /// Returns the bytes needed beside the microdata. What is not known before the method runs is charged to its monitor.
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

/// Makes the enumeration of all methods, and what is the same for each.
macro_rules! registry {
    ($($(#[doc = $doc:expr])+ $(#[cfg($cfg:meta)])? $(#[serde($serde:meta)])? $variant:ident($method:ty);)+) => {
        /// Any method, with its parameters: what a plan carries, in a form that can be shipped to another process.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(tag = "method", rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum AnyMethod {
            $($(#[doc = $doc])+ $(#[cfg($cfg)])? $(#[serde($serde)])? $variant($method),)+
        }

        impl AnyMethod {
            #[doc(hidden)]
            pub fn as_method(&self) -> &dyn Method {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant(method) => method,)+
                }
            }

            fn signature(&self) -> &'static FunctionSignature<'static> {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant(_) => &<$method>::SIGNATURE,)+
                }
            }
        }

        /// All methods, in the order of the reference.
        pub static METHODS: &[Registered] = &[
            $($(#[cfg($cfg)])? Registered {
                signature: &<$method>::SIGNATURE,
                offered: <$method>::OFFERED,
                trials: <$method>::TRIALS,
                of: |given| <$method>::of(given).map(AnyMethod::$variant),
            },)+
        ];
    };
}

registry! {
    /// Re-publication when rows come and go.
    #[serde(alias = "m_invariant")]
    MInvariance(m_invariance::MInvariance);
    /// Re-publication when values change, too.
    MDistinct(m_distinct::MDistinct);
    /// Re-publication when rows, values and columns change.
    Dynamic(dynamic::Dynamic);
    /// A generalized release.
    Mondrian(mondrian::Mondrian);
    /// A release with exact quasi-identifiers.
    Anatomy(anatomy::Anatomy);
    /// A release of rows that still look like rows.
    Muco(muco::Muco);
    /// Worlds of people, for the publisher.
    SequentialWorlds(sequential::Worlds);
    /// A release of people whose worlds are known.
    SequentialRelease(sequential::SequentialRelease);
    /// A release of all columns, to be projected: the baseline.
    NonSequential(sequential::NonSequential);
    /// Worlds for new people, and a release.
    Sequential(sequential::Sequential);
    /// The least that a method is, for tests.
    #[cfg(test)]
    Toy(toy::Toy);
}

/// Sets what releases of publications say among the parameters, of other things than the method: how many snapshots are held back, and cells.
const BESIDE: [&str; 2] = ["window", "cells"];

impl AnyMethod {
    /// Returns the name of the SQL function.
    pub fn name(&self) -> &'static str {
        self.signature().name
    }

    /// Returns the argument with possible sensitive values beside those of the snapshot. It is the domain, or the update relation.
    #[doc(hidden)]
    pub fn values_argument(&self) -> &'static str {
        let takes = |name: &str| self.signature().parameters.iter().any(|parameter| parameter.name == name);
        if takes(Parameter::DOMAIN.name) { Parameter::DOMAIN.name } else { Parameter::UPDATES.name }
    }

    /// Returns the guarantee, in the field's terms.
    pub fn guarantee(&self) -> String {
        self.as_method().guarantee()
    }

    /// Returns the state that its releases leave to later ones, if any.
    pub fn state(&self) -> Option<StateKind> {
        self.as_method().state()
    }

    #[doc(hidden)]
    pub fn form(&self) -> Form {
        self.as_method().form()
    }

    /// Returns what decides on the cell of a row ([`Method::cells`]). `remembered` is true in publications, where earlier releases are known to those
    /// that follow.
    ///
    /// # Errors
    /// Why its releases of such a table are not made in cells.
    #[doc(hidden)]
    pub fn cells_by(&self, layout: &Layout, remembered: bool) -> EngineResult<CellsBy> {
        let by = self.as_method().cells(CellColumns::of(layout, remembered));
        by.map_err(|why| refusal!(self.name(), argument "cells", "{why}"))
    }

    /// Returns true if its releases of such a table can be made in cells.
    #[doc(hidden)]
    pub fn has_cells(&self, layout: &Layout, remembered: bool) -> bool {
        self.cells_by(layout, remembered).is_ok()
    }

    /// Returns the method that made a release, by what the release says; `None` if nobody here knows it, or one of its parameters.
    #[doc(hidden)]
    pub fn described(release: &Description) -> Option<Self> {
        let mut parameters: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&release.parameters).ok()?;
        parameters.retain(|name, _| !BESIDE.contains(&name.as_str()));
        Self::from_parameters(&release.method, parameters)
    }

    fn from_parameters(method: &str, mut parameters: serde_json::Map<String, serde_json::Value>) -> Option<Self> {
        parameters.insert("method".to_owned(), method.into());
        serde_json::from_value(parameters.into()).ok()
    }

    /// Returns the parameters as a JSON object, for the release's description and for EXPLAIN.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    #[doc(hidden)]
    pub fn parameters(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(mut map)) => {
                map.remove("method");
                Ok(map)
            }
            _ => Err(Error::internal("parameters that are not an object")),
        }
    }

    /// Returns the same as a text.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    #[doc(hidden)]
    pub fn parameters_text(&self) -> Result<String> {
        Ok(serde_json::Value::Object(self.parameters()?).to_string())
    }

    /// Runs the method: on the whole, or on each part by the column `within`.
    ///
    /// # Errors
    /// The method's refusals.
    #[doc(hidden)]
    pub fn release(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        if let Some(sensitive) = &microdata.sensitive
            && is_of_each(&sensitive.field)?
        {
            let columns = parts_of(&sensitive.field)?.len();
            self.as_method().hides_each(columns).map_err(Error::refused)?;
        }
        let release = match microdata.within {
            Some(_) if matches!(self.form(), Form::Rows | Form::Worlds) => {
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
    use super::anatomy::Anatomy;
    use super::m_distinct::{MDistinct, Possible};
    use super::m_invariance::{Assignment, Grouping, MInvariance, Reader};
    use super::mondrian::{Cuts, Mondrian};
    use super::muco::Muco;
    use super::sequential::{Loss, NonSequential, Sequential, SequentialRelease, Worlds};
    use super::*;

    /// Checks that a release tells how it was made, whatever else its parameters say.
    #[test]
    fn a_release_tells_its_method() {
        let (l, cuts, loss, p) = (3, Cuts::Median, Loss::Lm, 50);
        let methods = [
            AnyMethod::MInvariance(MInvariance::new(4)),
            AnyMethod::MInvariance(MInvariance::of_cohort(4).with_assignment(Assignment::Drawn)),
            AnyMethod::MDistinct(MDistinct { updates: Possible::Any, ..MDistinct::new(4) }),
            AnyMethod::MDistinct(MDistinct::new(4).with_exact(true)),
            AnyMethod::Mondrian(Mondrian::new(5)),
            AnyMethod::Anatomy(Anatomy::new(l)),
            AnyMethod::Anatomy(Anatomy::new(l).with_groups(Grouping::Close).with_reader(Reader::Participant)),
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
            let parameters = serde_json::Value::Object(parameters).to_string();
            let mut description = Description::new(method.name(), parameters, String::new(), None);
            assert_eq!(AnyMethod::described(&description), Some(method));
            let mut other = description.clone();
            other.method = "reposition".to_owned();
            assert_eq!(AnyMethod::described(&other), None);
            // Of a version that promises, or gives up, something else.
            description.parameters = description.parameters.replacen('{', "{\"unheard_of\": true, ", 1);
            assert_eq!(AnyMethod::described(&description), None);
        }
    }
}
