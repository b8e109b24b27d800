//! The smallest method: everybody in one group. A test shows by it that one folder and one line in the registry make a method.

mod tests;

use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use super::given::Declared;
use super::parameters::{FunctionSignature, Kind, Parameter};
use super::{Against, Method, Monitor, Needs, Promises, State};
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::{Body, Form, Groups, Promise, Release};

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toy {
    /// Least number of rows of the table.
    pub k: usize,
}

impl Declared for Toy {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "toy",
        about: "one release, of one group",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("k", Kind::Integer, "3").at_least(2).says("least number of rows"),
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::ID,
            Parameter::SEED,
            Parameter::PRIVATE,
        ],
        refused: &[("cells", "there is one group")],
    };
}

impl Method for Toy {
    fn form(&self) -> Form {
        Form::Intervals
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn guarantee(&self) -> String {
        format!("{}-anonymity", self.k)
    }

    fn against(&self) -> Against {
        Against::Program
    }

    fn promises(&self) -> Option<Promises> {
        Some(Promises::of_groups(vec![Promise::Anonymous { k: self.k }]))
    }

    fn working_bytes(&self, rows: usize, _quasi: usize) -> usize {
        8 * rows
    }

    fn anonymize(
        &self,
        microdata: Microdata,
        _state: &State,
        _monitor: &Monitor,
        _rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        if microdata.rows < self.k {
            return Err(Error::refused(format!("there are fewer than k = {} rows", self.k)));
        }
        let members: Vec<u32> = (0..microdata.rows as u32).collect();
        let (starts, sensitive) = (vec![0, members.len() as u32], microdata.sensitive_of(&members));
        let groups = Groups { starts, members, sensitive, ..Groups::default() };
        let intervals = Release::cover(&microdata, &groups)?;
        Ok(Release { microdata, groups, body: Body::Grouped { intervals }, withheld: 0 })
    }
}
