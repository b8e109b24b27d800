//! `m_invariant(input, m, ..)`.

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
use crate::methods::m_invariance::{Balance, MInvariance, OnIneligible};
use crate::release::View;

/// Re-publication when rows come and go.
#[derive(Debug)]
pub(super) struct MInvariantFunction;

static SIGNATURE: Signature = Signature {
    name: "m_invariant",
    parameters: &[
        Parameter::INPUT,
        Parameter::required("m", Kind::Integer, "10"),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::optional("previous", Kind::Relation, "(SELECT patient_id, signature FROM releases)"),
        Parameter::optional("balance", Kind::Word(&["minimal", "blind"]), "'blind'"),
        Parameter::optional("on_ineligible", Kind::Word(&["refuse", "counterfeit", "withhold"]), "'counterfeit'"),
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
    ],
};

impl RelationFunction for MInvariantFunction {
    fn signature(&self) -> &'static Signature {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let m = arguments.integer("m", 2)?.unwrap_or(2) as usize;
        let balance = match arguments.word("balance") {
            Some("blind") => Balance::Blind,
            _ => Balance::Minimal,
        };
        let on_ineligible = match arguments.word("on_ineligible") {
            Some("counterfeit") => OnIneligible::Counterfeit,
            Some("withhold") => OnIneligible::Withhold,
            _ => OnIneligible::Refuse,
        };
        let seed = arguments.seed("seed");
        let view = if arguments.boolean("private") { View::Private } else { View::Public };
        let needs = Needs { id: true, sensitive: true };
        let prepared = prepare(&mut arguments, options, view, needs)?;
        let method = Method::MInvariance(MInvariance { m, balance, on_ineligible });
        Ok(Arc::new(AnonymizedTable::try_new(prepared, method, view, seed)?))
    }
}
