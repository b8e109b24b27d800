//! `m_invariant(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::{ASSIGNMENT, BALANCE, ON_INELIGIBLE};
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Parameter};
use crate::error::refusal;
use crate::methods::AnyMethod;
use crate::methods::m_invariance::{Assignment, Balance, MInvariance, OnIneligible};

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
        Parameter::CELLS,
        ASSIGNMENT.parameter(),
        Parameter::DOMAIN,
    ],
};

impl MethodFunction for MInvariantFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let m = M.of(arguments)?;
        let (balance, on_ineligible) = (BALANCE.of(arguments), ON_INELIGIBLE.of(arguments));
        let assignment = ASSIGNMENT.of(arguments);
        check(assignment, balance, on_ineligible, arguments)?;
        Ok(AnyMethod::MInvariance(MInvariance { m, balance, on_ineligible, assignment }))
    }
}

/// # Errors
/// When signatures are to be drawn in a way that looks at other rows, or not drawn from a domain.
fn check(assignment: Assignment, balance: Balance, on_ineligible: OnIneligible, arguments: &Arguments) -> Result<()> {
    let name = SIGNATURE.name;
    let leave_out = |argument: &str| format!("leave {argument} out");
    match assignment {
        Assignment::Eligible if arguments.has(Parameter::DOMAIN.name) => Err(refusal!(
            name,
            argument Parameter::DOMAIN.name,
            "domain is for assignment => 'drawn', where values that the first release has not seen need signatures; here each release \
             makes them for the values that come: {}, or write {}",
            leave_out("domain"),
            arguments.style().write("assignment", "'drawn'")
        )),
        Assignment::Drawn if balance != Balance::Blind => Err(refusal!(
            name,
            argument "balance",
            "with assignment => 'drawn' every new row draws a signature for itself, so none is spent on a gap, and balance is 'blind': {}",
            leave_out("balance")
        )),
        Assignment::Drawn if on_ineligible != OnIneligible::Refuse => Err(refusal!(
            name,
            argument "on_ineligible",
            "with assignment => 'drawn' no batch of new rows is ineligible but the first release, whose rows are shares to draw by and \
             must not be padded or withheld: {}, and begin with rows of which no value makes up more than 1/m",
            leave_out("on_ineligible")
        )),
        _ => Ok(()),
    }
}
