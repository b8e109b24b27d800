//! What a method is in SQL: a relation function, and what a publication is made with.

use std::fmt::Debug;
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
use crate::methods::AnyMethod;
use crate::release::{Form, View};

/// A method that makes a release of a table.
pub(super) trait MethodFunction: Debug + Send + Sync + 'static {
    /// Name and parameters of the relation function.
    fn signature(&self) -> &'static FunctionSignature<'static>;

    /// The method with the parameters that the arguments give it.
    fn method(&self, arguments: &Arguments) -> Result<AnyMethod>;

    /// What it is offered as.
    fn offered(&self) -> Offered {
        Offered::Both
    }
}

/// What a method is offered as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    /// A relation function, and the method of a publication.
    Both,
    /// A relation function only.
    Function,
    /// The method of a publication only, which remembers what the next release must know.
    Publication,
}

/// A method as a relation function.
#[derive(Debug)]
pub(super) struct ReleaseFunction(pub Arc<dyn MethodFunction>);

impl RelationFunction for ReleaseFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        self.0.signature()
    }

    fn table(&self, mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let method = self.0.method(&arguments)?;
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
