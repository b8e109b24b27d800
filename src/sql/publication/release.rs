//! The relation function `release(publication, number)`: the rows that the world sees.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use super::release_table::ReleaseTable;
use super::table::PublicationTable;
use crate::sql::arguments::Arguments;
use crate::sql::block_on_io::block_on_io;
use crate::sql::opaque::OpaqueTable;
use crate::sql::options::AnonymizeOptions;
use crate::sql::signature::{FunctionSignature, Kind, Parameter};

/// The publication that a function is about.
pub(super) const PUBLICATION: Parameter =
    Parameter::required("publication", Kind::Relation, "hospital").says("the name of a publication");

const NUMBER: Parameter =
    Parameter::optional("number", Kind::Integer, "3").at_least(1).otherwise("the newest").says("which; from 1");

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "release",
    about: "the rows of a publication's release, by number or the newest",
    refused: &[],
    parameters: &[PUBLICATION, NUMBER],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let number = arguments.integer(&NUMBER)?.map(|number| number as u64);
    let plan = arguments.relation(PUBLICATION.name)?;
    PublicationTable::with(&plan, SIGNATURE.name, |publication| {
        let (public, runtime) = (&publication.public, &publication.runtime);
        let table = block_on_io(|| ReleaseTable::open(public, runtime, number))?;
        Ok(Arc::new(OpaqueTable(table)) as Arc<dyn TableProvider>)
    })
}
