//! `sequential_worlds(input, l, ..)`, `sequential_release(input, worlds, ..)`, `non_sequential(input, l, ..)`, and the method of
//! publications that does the first two.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::choice::{CUTS, Choice};
use super::input::WORLDS;
use super::method::{MethodFunction, Offered};
use super::numbers::Integer;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::methods::AnyMethod;
use crate::methods::sequential::{Loss, MOST_PART, NonSequential, PART, Sequential, SequentialRelease, Worlds};

/// Worlds. More than this would cost more memory than the table, many times.
static L: Integer = Integer::required("l", 2, "5").at_most(1000);
/// Rows that are matched at a time.
static P: Integer = Integer::optional("p", 1, "100").or(PART as i64).at_most(MOST_PART as i64);
/// By what measure a release loses little.
static LOSS: Choice<Loss, 2> = Choice::new("loss", [("lm", Loss::Lm), ("em", Loss::Em)], "'em'");

/// Worlds, for the publisher.
#[derive(Debug)]
pub(super) struct SequentialWorldsFunction;

static WORLDS_SIGNATURE: FunctionSignature = FunctionSignature {
    name: "sequential_worlds",
    parameters: &[
        Parameter::INPUT,
        L.parameter(),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::OTHER,
        Parameter::optional(WORLDS, Kind::Relation, "worlds"),
        CUTS.parameter(),
        Parameter::HIERARCHIES,
        Parameter::SEED,
    ],
};

impl MethodFunction for SequentialWorldsFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &WORLDS_SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let method = AnyMethod::SequentialWorlds(Worlds { l: L.of(arguments)?, cuts: CUTS.of(arguments) });
        Ok(method)
    }

    fn offered(&self) -> Offered {
        Offered::Function
    }
}

/// A release of people whose worlds are known.
#[derive(Debug)]
pub(super) struct SequentialReleaseFunction;

static RELEASE_SIGNATURE: FunctionSignature = FunctionSignature {
    name: "sequential_release",
    parameters: &[
        Parameter::INPUT,
        Parameter::required(WORLDS, Kind::Relation, "worlds"),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::OTHER,
        P.parameter(),
        LOSS.parameter(),
        Parameter::HIERARCHIES,
        Parameter::SEED,
        Parameter::PRIVATE,
    ],
};

impl MethodFunction for SequentialReleaseFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &RELEASE_SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let release = SequentialRelease { p: P.of(arguments)?, loss: LOSS.of(arguments) };
        let method = AnyMethod::SequentialRelease(release);
        Ok(method)
    }

    fn offered(&self) -> Offered {
        Offered::Function
    }
}

/// The baseline.
#[derive(Debug)]
pub(super) struct NonSequentialFunction;

static NON_SEQUENTIAL_SIGNATURE: FunctionSignature = FunctionSignature {
    name: "non_sequential",
    parameters: &[
        Parameter::INPUT,
        L.parameter(),
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::OTHER,
        CUTS.parameter(),
        Parameter::HIERARCHIES,
        Parameter::ID,
        Parameter::SEED,
        Parameter::PRIVATE,
    ],
};

impl MethodFunction for NonSequentialFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &NON_SEQUENTIAL_SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let method = AnyMethod::NonSequential(NonSequential { l: L.of(arguments)?, cuts: CUTS.of(arguments) });
        Ok(method)
    }

    fn offered(&self) -> Offered {
        Offered::Function
    }
}

/// Worlds for new people and a release of everybody, with the worlds in the ledger.
#[derive(Debug)]
pub(super) struct SequentialFunction;

static SEQUENTIAL_SIGNATURE: FunctionSignature = FunctionSignature {
    name: "sequential",
    parameters: &[
        Parameter::INPUT,
        L.parameter(),
        Parameter::ID,
        Parameter::QUASI,
        Parameter::SENSITIVE,
        Parameter::OTHER,
        P.parameter(),
        LOSS.parameter(),
        CUTS.parameter(),
        Parameter::HIERARCHIES,
    ],
};

impl MethodFunction for SequentialFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SEQUENTIAL_SIGNATURE
    }

    fn method(&self, arguments: &Arguments) -> Result<AnyMethod> {
        let method = AnyMethod::Sequential(Sequential {
            l: L.of(arguments)?,
            p: P.of(arguments)?,
            loss: LOSS.of(arguments),
            cuts: CUTS.of(arguments),
        });
        Ok(method)
    }

    fn offered(&self) -> Offered {
        Offered::Publication
    }
}
