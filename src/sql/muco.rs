//! `muco(input, delta, l, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::CUTS;
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::methods::AnyMethod;
use crate::methods::muco::Muco;

/// One release of rows that still look like rows.
#[derive(Debug)]
pub(super) struct MucoFunction;

/// Rows of a group.
static L: Integer = Integer::optional("l", 2, "10");

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "muco",
    parameters: &[
        Parameter::INPUT,
        Parameter::required("delta", Kind::Number, "0.2"),
        L.parameter(),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        CUTS.parameter(),
        Parameter::ID,
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::INSENSITIVE,
        Parameter::CELLS,
    ],
};

impl MethodFunction for MucoFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let delta = arguments.number("delta").unwrap_or_default();
        let method = Muco::try_new(delta, L.given(arguments)?, CUTS.of(arguments));
        let method = method.map_err(|error| error.in_function(SIGNATURE.name))?;
        Ok(AnyMethod::Muco(method))
    }
}
