//! A method as a relation function.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use super::anonymized_table::AnonymizedTable;
use super::arguments::Arguments;
use super::cells::WantedCells;
use super::function::RelationFunction;
use super::opaque::OpaqueTable;
use super::options::AnonymizeOptions;
use super::prepare::prepare;
use super::signature::FunctionSignature;
use crate::error::refusal;
use crate::methods::Registered;
use crate::release::{Form, View};

/// A method as a relation function.
#[derive(Debug)]
pub(super) struct ReleaseFunction(pub &'static Registered);

impl RelationFunction for ReleaseFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        self.0.signature
    }

    fn table(&self, mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let method = arguments.method(self.0)?;
        let cells = WantedCells::of(&arguments)?;
        let seed = arguments.seed("seed");
        let view = if arguments.boolean("private") { View::Private } else { View::Public };
        let prepared = prepare(&mut arguments, options, view, method.as_method())?;
        if let Some(composite) = prepared.composite.as_ref().filter(|_| method.form() == Form::Anatomy) {
            return Err(refusal!(
                method.name(),
                "several sensitive columns cannot be published as columns there, for they would be lists that do not say what belongs \
                 together; {}",
                composite.way_out()
            ));
        }
        Ok(Arc::new(OpaqueTable(AnonymizedTable::try_new(prepared, method, view, seed, cells)?)))
    }
}
