//! `muco(input, delta, l, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::method::MethodFunction;
use super::signature::{CUTS, FunctionSignature, Kind, Parameter};
use crate::methods::AnyMethod;
use crate::methods::muco::Muco;

/// One release of rows that still look like rows.
#[derive(Debug)]
pub(super) struct MucoFunction;

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "muco",
    parameters: &[
        Parameter::INPUT,
        Parameter::required("delta", Kind::Number, "0.2"),
        Parameter::optional("l", Kind::Integer, "10"),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        Parameter::CUTS,
        Parameter::ID,
        Parameter::SEED,
        Parameter::PRIVATE,
    ],
};

impl MethodFunction for MucoFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let delta = arguments.number("delta").unwrap_or_default();
        let l = arguments.integer("l", 2)?.map(|l| l as usize);
        let method = Muco::try_new(delta, l, CUTS.of(arguments));
        let method = method.map_err(|error| error.in_function(SIGNATURE.name))?;
        Ok(AnyMethod::Muco(method))
    }
}
