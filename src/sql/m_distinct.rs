//! `m_distinct(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::{Choice, ON_INELIGIBLE};
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::methods::AnyMethod;
use crate::methods::m_distinct::{Balance, MDistinct, Possible};

/// Re-publication when rows come and go and values change.
#[derive(Debug)]
pub(super) struct MDistinctFunction;

/// Different sensitive values of a group.
static M: Integer = Integer::required("m", 2, "10");

/// How returning rows are balanced: no mode of it is safe from who knows this program, so that it is the one with fewer counterfeits.
static BALANCE: Choice<Balance, 2> =
    Choice::new("balance", [("minimal", Balance::Minimal), ("blind", Balance::Blind)], "'blind'");

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "m_distinct",
    parameters: &[
        Parameter::INPUT,
        M.parameter(),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::UPDATES,
        Parameter::optional("previous", Kind::Relation, "(SELECT patient_id, signature, release FROM releases)"),
        Parameter::optional("disjoint", Kind::Boolean, "true"),
        Parameter::optional("close_updates", Kind::Boolean, "true"),
        BALANCE.parameter(),
        ON_INELIGIBLE.parameter(),
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        Parameter::INSENSITIVE,
        Parameter::CELLS,
    ],
};

impl MethodFunction for MDistinctFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let method = AnyMethod::MDistinct(MDistinct {
            m: M.of(arguments)?,
            disjoint: arguments.boolean("disjoint"),
            close_updates: arguments.boolean("close_updates"),
            updates: match arguments.word(Parameter::UPDATES.name) {
                Some(_) => Possible::Any,
                None => Possible::Listed,
            },
            balance: BALANCE.of(arguments),
            on_ineligible: ON_INELIGIBLE.of(arguments),
        });
        Ok(method)
    }
}
