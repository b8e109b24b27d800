//! `m_distinct(input, m, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::{Choice, ON_INELIGIBLE};
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::methods::AnyMethod;
use crate::methods::m_distinct::{Balance, MDistinct, OnIneligible, Possible};

/// Re-publication when rows come and go and values change.
#[derive(Debug)]
pub(super) struct MDistinctFunction;

/// Whether everybody has exactly `1/m`.
const EXACT: &str = "exact";
const UPDATES: &str = Parameter::UPDATES.name;

/// Different sensitive values of a group.
static M: Integer = Integer::required("m", 2, "10");

/// How returning rows are balanced: where releases are not exact, no mode of it is safe from who knows this program, so that it is the one with
/// fewer counterfeits.
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
        Parameter::PREVIOUS,
        Parameter::optional("disjoint", Kind::Boolean, "true"),
        Parameter::optional("close_updates", Kind::Boolean, "true"),
        Parameter::optional(EXACT, Kind::Boolean, "true"),
        BALANCE.parameter(),
        ON_INELIGIBLE.parameter(),
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        Parameter::CELLS,
    ],
};

impl MethodFunction for MDistinctFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        if arguments.boolean(EXACT) {
            return exact(arguments).map(AnyMethod::MDistinct);
        }
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
            exact: false,
        });
        Ok(method)
    }
}

/// The method whose releases give everybody exactly `1/m`; what else it needs is not asked for, but must not be denied.
fn exact(arguments: &Arguments) -> Result<MDistinct> {
    let style = arguments.style();
    let refused = |argument: &'static str, why: &str| -> Result<MDistinct> {
        let (ours, noun) = (style.write(EXACT, "true"), style.noun());
        Err(refusal!("m_distinct", argument argument, "{noun} {argument} contradicts {ours}: {why}"))
    };
    match arguments.word(UPDATES) {
        Some(_) => {
            return refused(
                UPDATES,
                "with 'any' nothing is known of how probable changes are, and all values can become alike; give the relation with the columns \
                 from_value, to_value and probability",
            );
        }
        None if !arguments.is_given(UPDATES) => {
            return Err(refusal!(
                "m_distinct",
                argument UPDATES,
                "{} {UPDATES} is missing, with {}: give the relation with the columns from_value, to_value and probability; where no value \
                 ever changes, m_invariant promises the same with fewer counterfeits",
                style.noun(),
                style.write(EXACT, "true")
            ));
        }
        None => {}
    }
    if arguments.is_given("disjoint") && !arguments.boolean("disjoint") {
        return refused(
            "disjoint",
            "where values of a group can become alike, who is kept apart tells of values; leave it out",
        );
    }
    if BALANCE.given(arguments) == Some(Balance::Minimal) {
        return refused(
            "balance",
            "new rows in the places of people who have left tell of values; leave it out, or write 'blind'",
        );
    }
    if ON_INELIGIBLE.of(arguments) != OnIneligible::Refuse {
        return refused(
            "on_ineligible",
            "who is padded or left out has the value that is too frequent; leave it out, and publish larger snapshots or take a smaller m",
        );
    }
    Ok(MDistinct::new(M.of(arguments)?).with_exact(true).with_close_updates(arguments.boolean("close_updates")))
}
