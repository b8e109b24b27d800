//! `anatomy(input, l, ..)`.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use super::arguments::Arguments;
use super::function::RelationFunction;
use super::input::prepare;
use super::options::AnonymizeOptions;
use super::roles::Needs;
use super::signature::{Kind, Parameter, Signature};
use super::table::AnonymizedTable;
use crate::methods::Method;
use crate::methods::anatomy::Anatomy;
use crate::release::View;

/// One release with exact quasi-identifiers.
#[derive(Debug)]
pub(super) struct AnatomyFunction;

static SIGNATURE: Signature = Signature {
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

impl RelationFunction for AnatomyFunction {
    fn signature(&self) -> &'static Signature {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let l = arguments.integer("l", 2)?.unwrap_or(2) as usize;
        let seed = arguments.seed("seed");
        let view = if arguments.boolean("private") { View::Private } else { View::Public };
        let prepared = prepare(&mut arguments, options, view, Needs { id: false, sensitive: true })?;
        Ok(Arc::new(AnonymizedTable::try_new(prepared, Method::Anatomy(Anatomy { l }), view, seed)?))
    }
}
