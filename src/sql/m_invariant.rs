//! `m_invariant(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::method::MethodFunction;
use super::roles::Needs;
use super::signature::{Kind, Parameter, Signature};
use crate::methods::Method;
use crate::methods::m_invariance::{Balance, MInvariance, OnIneligible};

/// Re-publication when rows come and go.
#[derive(Debug)]
pub(super) struct MInvariantFunction;

static SIGNATURE: Signature = Signature {
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
    fn signature(&self) -> &'static Signature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<(Method, Needs)> {
        let m = arguments.integer("m", 2)?.unwrap_or(2) as usize;
        let (balance, on_ineligible) = (balance(arguments), on_ineligible(arguments));
        let method = Method::MInvariance(MInvariance { m, balance, on_ineligible });
        Ok((method, Needs { id: true, sensitive: true, other: false }))
    }
}

pub(super) fn balance(arguments: &Arguments) -> Balance {
    match arguments.word("balance") {
        Some("blind") => Balance::Blind,
        _ => Balance::Minimal,
    }
}

pub(super) fn on_ineligible(arguments: &Arguments) -> OnIneligible {
    match arguments.word("on_ineligible") {
        Some("counterfeit") => OnIneligible::Counterfeit,
        Some("withhold") => OnIneligible::Withhold,
        _ => OnIneligible::Refuse,
    }
}
