//! `mondrian(input, k, l, ..)`.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::{Choice, FAIR_CUTS};
use super::method::MethodFunction;
use super::numbers::Integer;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::methods::mondrian::{Diversity, Mondrian};
use crate::methods::{AnyMethod, Share};

/// One release, generalized.
#[derive(Debug)]
pub(super) struct MondrianFunction;

/// What `l` means.
static DIVERSITY: Choice<Diversity, 3> = Choice::new(
    "diversity",
    [("frequency", Diversity::Frequency), ("distinct", Diversity::Distinct), ("entropy", Diversity::Entropy)],
    "'distinct'",
);

/// Rows of a group.
static K: Integer = Integer::optional("k", 2, "10");
/// Its diversity.
static L: Integer = Integer::optional("l", 2, "5");

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "mondrian",
    parameters: &[
        Parameter::INPUT,
        K.parameter(),
        L.parameter(),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        DIVERSITY.parameter(),
        Parameter::optional("t", Kind::Number, "0.2"),
        Parameter::HIERARCHIES,
        Parameter::WITHIN,
        FAIR_CUTS.parameter(),
        Parameter::ID,
        Parameter::SEED,
        Parameter::PRIVATE,
        Parameter::INSENSITIVE,
        Parameter::CELLS,
    ],
};

impl MethodFunction for MondrianFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let name = SIGNATURE.name;
        let k = K.given(arguments)?;
        let l = L.given(arguments)?;
        let t = arguments.number("t").map(|t| Share::try_new("t", t)).transpose();
        let t = t.map_err(|error| error.in_function(name))?;
        if k.is_none() && l.is_none() && t.is_none() {
            return Err(refusal!(
                name,
                "give k (rows in a group), l (diversity of a group), t (how far its values may be from the table's) or \
                 several of them, for example {}",
                arguments.style().write("k", "10")
            ));
        }
        // What t allows alone may be groups of one row, which hide nobody.
        let least = if l.is_none() { 2 } else { 1 };
        let given = DIVERSITY.given(arguments);
        let diversity = given.or_else(|| l.map(|_| DIVERSITY.of(arguments)));
        if diversity.is_some() && l.is_none() {
            let example = arguments.style().write("l", "5");
            return Err(refusal!(
                name,
                "diversity says what l means, but there is no l; give it, for example {example}"
            ));
        }
        let (cuts, fair) = FAIR_CUTS.of(arguments);
        if fair && (l.is_none() || t.is_some() || diversity.is_some_and(|diversity| diversity != Diversity::Frequency))
        {
            return Err(refusal!(
                name,
                argument "cuts",
                "{} needs l, with diversity 'frequency' (the default) and without t: fair cuts hide what a cut that was not made tells \
                 of values that make up more than 1/l; with k alone no cut looks at values",
                arguments.style().write("cuts", "'fair'")
            ));
        }
        let method = Mondrian { k: k.unwrap_or(least), l, diversity, t, cuts, fair };
        Ok(AnyMethod::Mondrian(method))
    }
}
