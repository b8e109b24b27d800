//! The way from arguments to a method.

use datafusion::common::{DataFusionError, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::parameters::{FunctionSignature, Kind, Parameter, Preset, Style};
use super::{AnyMethod, Method};
use crate::error::{Error, refusal};
use crate::release::Form;

/// A method as users call it.
pub(crate) trait Declared: Method + DeserializeOwned {
    /// Its function. Arguments that are parameters of the method are called as these are serialized.
    const SIGNATURE: FunctionSignature<'static>;

    /// Forms in which it is offered.
    const OFFERED: Offered = Offered::Both;

    /// Settings by which `advise` measures it, if it does.
    const TRIALS: &'static [Trial] = &[];

    /// Makes the method of arguments that are within their ranges.
    /// Fails when arguments contradict each other.
    fn of(given: &Given<'_>) -> Result<Self> {
        given.parameters()
    }
}

/// Forms in which a method is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// A relation function, and the method of a publication.
    Both,
    /// A relation function only.
    Function,
    /// The method of a publication only, which remembers what the next release must know.
    Publication,
}

/// A parameter that `advise` varies, and what it knows of releases that are made so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Parameter that is varied.
    pub parameter: &'static str,
    /// Arguments of a call, with `{}` where the value is.
    pub arguments: &'static str,
    /// Form in which it publishes.
    pub form: Form,
    /// True if a bound on the probability of each sensitive value comes with it.
    pub bounded: bool,
    /// Argument `reader`: the best informed reader for whom the bound holds; the default if `None`.
    pub reader: Option<&'static str>,
    /// True if the most frequent sensitive value limits the parameter: to the inverse of its share. Else the number of rows limits it.
    pub by_values: bool,
}

/// A line of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    /// Its function.
    pub signature: &'static FunctionSignature<'static>,
    /// Forms in which it is offered.
    pub offered: Offered,
    /// Settings by which `advise` measures it.
    pub trials: &'static [Trial],
    /// Makes the method of arguments.
    pub of: fn(&Given<'_>) -> Result<AnyMethod>,
}

/// An argument that is a parameter of a method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Argument<'a> {
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A word.
    Word(&'a str),
    /// A relation, which the method gets with the microdata.
    Relation,
}

/// Arguments of a call, or options of a publication.
#[derive(Debug)]
pub struct Given<'a> {
    signature: &'static FunctionSignature<'static>,
    style: Style,
    arguments: Vec<(&'static Parameter, Argument<'a>)>,
}

impl<'a> Given<'a> {
    /// Takes the arguments of a function that are parameters, not about the call.
    ///
    /// # Errors
    /// When a whole number is out of range.
    pub fn try_new(
        signature: &'static FunctionSignature<'static>,
        style: Style,
        given: impl Fn(&str) -> Option<Argument<'a>>,
    ) -> Result<Self> {
        let mut arguments = Vec::new();
        for parameter in signature.parameters.iter().filter(|parameter| !parameter.is_of_call()) {
            let Some(argument) = given(parameter.name) else { continue };
            if let Argument::Integer(number) = argument
                && let Some(why) = parameter.out_of_range(style, number)
            {
                return Err(refusal!(signature.name, argument parameter.name, "{why}"));
            }
            arguments.push((parameter, argument));
        }
        Ok(Self { signature, style, arguments })
    }

    fn argument(&self, name: &str) -> Option<Argument<'a>> {
        self.arguments.iter().find(|(parameter, _)| parameter.name == name).map(|(_, argument)| *argument)
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.argument(name).is_some()
    }

    pub(crate) fn integer(&self, name: &str) -> Option<usize> {
        match self.argument(name) {
            Some(Argument::Integer(number)) => usize::try_from(number).ok(),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        match self.argument(name) {
            Some(Argument::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn word(&self, name: &str) -> Option<&'a str> {
        match self.argument(name) {
            Some(Argument::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Returns whether a flag was set, if it was given.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.argument(name) {
            Some(Argument::Boolean(set)) => Some(set),
            _ => None,
        }
    }

    /// Returns what a word that was given means.
    /// Fails when the word has no meaning, which is a bug.
    pub(crate) fn meaning<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.word(name).map(|word| self.read(word.into())).transpose()
    }

    /// Returns the parameters of a method by the arguments, which have their names. Those that were not given get defaults.
    /// Fails when these are no parameters of it, which is a bug.
    pub(crate) fn parameters<T: DeserializeOwned>(&self) -> Result<T> {
        let mut values = Map::new();
        for parameter in self.signature.parameters.iter().filter(|parameter| !parameter.is_of_call()) {
            let value: Value = match (self.argument(parameter.name), parameter.default) {
                (Some(Argument::Integer(number)), _) | (None, Preset::Integer(number)) => number.into(),
                (Some(Argument::Number(number)), _) | (None, Preset::Number(number)) => number.into(),
                (Some(Argument::Boolean(set)), _) => set.into(),
                (Some(Argument::Word(word)), _) | (None, Preset::Word(word)) => word.into(),
                (None, Preset::Described) if parameter.kind == Kind::Boolean => false.into(),
                (Some(Argument::Relation), _) | (None, Preset::Described) => continue,
            };
            values.insert(parameter.name.to_owned(), value);
        }
        self.read(values.into())
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T> {
        let wrong = |_| Error::internal("arguments that are no parameters").in_function(self.signature.name);
        serde_json::from_value(value).map_err(wrong)
    }

    pub(crate) fn refused(&self, argument: &str, why: impl std::fmt::Display) -> DataFusionError {
        refusal!(self.signature.name, argument argument, "{why}")
    }

    pub(crate) fn refused_together(&self, why: impl std::fmt::Display) -> DataFusionError {
        refusal!(self.signature.name, "{why}")
    }

    /// Writes an argument as it is written here.
    pub(crate) fn write(&self, name: &str, example: &str) -> String {
        self.style.write(name, example)
    }

    /// Calls arguments what they are called here.
    pub(crate) fn noun(&self) -> &'static str {
        self.style.noun()
    }
}
