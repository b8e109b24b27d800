//! `dynamic(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Parameter};
use crate::error::refusal;
use crate::methods::AnyMethod;
use crate::methods::dynamic::Dynamic;

/// Re-publication when rows, values and columns change.
#[derive(Debug)]
pub(super) struct DynamicFunction;

/// Different sensitive values of a group.
static M: Integer = Integer::required("m", 2, "10");

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "dynamic",
    parameters: &[
        Parameter::INPUT,
        M.parameter(),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::UPDATES,
        Parameter::PREVIOUS,
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        Parameter::CELLS,
    ],
};

impl MethodFunction for DynamicFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let updates = Parameter::UPDATES.name;
        if arguments.word(updates).is_some() {
            return Err(refusal!(
                SIGNATURE.name,
                argument updates,
                "{} {updates} is 'any', by which nothing is known of how probable changes are, and all values can become alike; give the relation \
                 with the columns from_value, to_value and probability, or leave it out where no value ever changes",
                arguments.style().noun()
            ));
        }
        Ok(AnyMethod::Dynamic(Dynamic::new(M.of(arguments)?)))
    }
}
