//! `anatomy(input, l, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::method::MethodFunction;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::methods::AnyMethod;
use crate::methods::anatomy::Anatomy;

/// One release with exact quasi-identifiers.
#[derive(Debug)]
pub(super) struct AnatomyFunction;

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "anatomy",
    parameters: &[
        Parameter::INPUT,
        Parameter::required("l", Kind::Integer, "5"),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::WITHIN,
        Parameter::ID,
        Parameter::SEED,
        Parameter::PRIVATE,
    ],
};

impl MethodFunction for AnatomyFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let l = arguments.integer("l", 2)?.unwrap_or(2) as usize;
        Ok(AnyMethod::Anatomy(Anatomy { l }))
    }
}
