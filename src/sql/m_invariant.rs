//! `m_invariant(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::method::MethodFunction;
use super::signature::{BALANCE, FunctionSignature, Kind, ON_INELIGIBLE, Parameter};
use crate::methods::AnyMethod;
use crate::methods::m_invariance::MInvariance;

/// Re-publication when rows come and go.
#[derive(Debug)]
pub(super) struct MInvariantFunction;

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "m_invariant",
    parameters: &[
        Parameter::INPUT,
        Parameter::required("m", Kind::Integer, "10"),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::PREVIOUS,
        Parameter::BALANCE,
        Parameter::ON_INELIGIBLE,
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
    ],
};

impl MethodFunction for MInvariantFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let m = arguments.integer("m", 2)?.unwrap_or(2) as usize;
        let (balance, on_ineligible) = (BALANCE.of(arguments), ON_INELIGIBLE.of(arguments));
        let method = AnyMethod::MInvariance(MInvariance { m, balance, on_ineligible });
        Ok(method)
    }
}
