//! A method as a relation function.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{Result, internal_err};

use super::anonymized_table::AnonymizedTable;
use super::arguments::Arguments;
use super::cells::WantedCells;
use super::opaque::OpaqueTable;
use super::options::AnonymizeOptions;
use super::prepare::prepare;
use crate::error::refusal;
use crate::methods::METHODS;
use crate::release::{Form, View};

pub(super) fn table(mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let Some(method) = METHODS.iter().find(|method| method.signature.name == arguments.function()) else {
        return internal_err!("{} is no method", arguments.function());
    };
    let method = arguments.method(method)?;
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
