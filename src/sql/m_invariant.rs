//! `m_invariant(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::{BALANCE, ON_INELIGIBLE};
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Parameter};
use crate::methods::AnyMethod;
use crate::methods::m_invariance::MInvariance;

/// Re-publication when rows come and go.
#[derive(Debug)]
pub(super) struct MInvariantFunction;

/// Different sensitive values of a group.
static M: Integer = Integer::required("m", 2, "10");

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "m_invariant",
    parameters: &[
        Parameter::INPUT,
        M.parameter(),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::PREVIOUS,
        BALANCE.parameter(),
        ON_INELIGIBLE.parameter(),
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        Parameter::INSENSITIVE,
        Parameter::CELLS,
    ],
};

impl MethodFunction for MInvariantFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let m = M.of(arguments)?;
        let (balance, on_ineligible) = (BALANCE.of(arguments), ON_INELIGIBLE.of(arguments));
        let method = AnyMethod::MInvariance(MInvariance { m, balance, on_ineligible });
        Ok(method)
    }
}
