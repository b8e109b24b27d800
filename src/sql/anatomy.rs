//! `anatomy(input, l, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Parameter};
use crate::methods::AnyMethod;
use crate::methods::anatomy::Anatomy;

/// One release with exact quasi-identifiers.
#[derive(Debug)]
pub(super) struct AnatomyFunction;

/// Different sensitive values of a group.
static L: Integer = Integer::required("l", 2, "5");

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "anatomy",
    parameters: &[
        Parameter::INPUT,
        L.parameter(),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::WITHIN,
        Parameter::ID,
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::INSENSITIVE,
        Parameter::CELLS,
    ],
};

impl MethodFunction for AnatomyFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let l = L.of(arguments)?;
        Ok(AnyMethod::Anatomy(Anatomy { l }))
    }
}
