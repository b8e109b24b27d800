//! `muco(input, delta, l, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::FAIR_CUTS;
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
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
        Parameter::required("delta", Kind::NumberOrWord("equal"), "0.2"),
        L.parameter(),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        FAIR_CUTS.parameter(),
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
        let (l, (cuts, fair)) = (L.given(arguments)?, FAIR_CUTS.of(arguments));
        let method = match (arguments.word("delta"), l) {
            (None, _) => {
                let method = Muco::try_new(arguments.number("delta").unwrap_or_default(), l, cuts);
                method.map(|method| method.with_fair(fair))
            }
            // Its cuts are fair anyway.
            (Some(_), Some(l)) => Muco::equal(l, cuts),
            (Some(_), None) => {
                let style = arguments.style();
                return Err(refusal!(
                    SIGNATURE.name,
                    argument "l",
                    "with {} l must be given, the least number of rows in a group: {}",
                    style.write("delta", "'equal'"),
                    style.write("l", "10")
                ));
            }
        };
        let method = method.map_err(|error| error.in_function(SIGNATURE.name))?;
        Ok(AnyMethod::Muco(method))
    }
}
