//! The relation function `audit(publication)`: whether it keeps its promises.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use super::release::PUBLICATION;
use super::table::PublicationTable;
use crate::exec::PublicationAudit;
use crate::publication::Audit;
use crate::sql::arguments::Arguments;
use crate::sql::computed::computed;
use crate::sql::options::AnonymizeOptions;
use crate::sql::signature::FunctionSignature;

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "audit",
    about: "whether a publication keeps its promises, check by check",
    refused: &[],
    parameters: &[PUBLICATION],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let plan = arguments.relation(PUBLICATION.name)?;
    let (audit, updates) = PublicationTable::with(&plan, SIGNATURE.name, |publication| {
        let audit = Audit { public: publication.public.clone(), private: publication.private().cloned() };
        Ok((audit, publication.updates().cloned()))
    })?;
    let computation = Arc::new(PublicationAudit { audit });
    Ok(computed(computation, updates.into_iter().collect()))
}
