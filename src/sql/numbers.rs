//! Parameters that take a number: its range, and what holds if it is left out, said once.

use datafusion::common::Result;

use super::arguments::Arguments;
use super::signature::{Kind, Parameter, Preset};
use crate::error::refusal;

/// A parameter that takes a number of some range.
#[derive(Debug)]
pub(super) struct Number {
    parameter: Parameter,
    /// It must be above this.
    above: f64,
    most: Option<f64>,
    otherwise: Option<f64>,
}

impl Number {
    /// Declares a number that may be left out.
    pub(super) const fn optional(name: &'static str, above: f64, example: &'static str) -> Self {
        Self { parameter: Parameter::optional(name, Kind::Number, example), above, most: None, otherwise: None }
    }

    /// Sets the number that holds if it is left out.
    pub(super) const fn or(mut self, otherwise: f64) -> Self {
        self.parameter.default = Preset::Number(otherwise);
        self.otherwise = Some(otherwise);
        self
    }

    pub(super) const fn at_most(mut self, most: f64) -> Self {
        self.most = Some(most);
        self
    }

    pub(super) const fn parameter(&'static self) -> Parameter {
        self.parameter
    }

    /// Returns the number of a call, if it has one.
    /// Fails when it is out of range.
    pub(super) fn given(&self, arguments: &Arguments) -> Result<Option<f64>> {
        let Parameter { name, example, .. } = self.parameter;
        let Some(given) = arguments.number(name) else { return Ok(None) };
        if given > self.above && self.most.is_none_or(|most| given <= most) {
            return Ok(Some(given));
        }
        let (noun, above) = (arguments.style().noun(), self.above);
        let most = self.most.map_or_else(String::new, |most| format!(" and at most {most}"));
        let example = arguments.style().write(name, example);
        Err(refusal!(
            arguments.function(),
            argument name,
            "{noun} {name} must be above {above}{most}, for example {example}"
        ))
    }

    /// Returns the number of a call, or else the default.
    /// Fails when it is out of range, or missing.
    pub(super) fn of(&self, arguments: &Arguments) -> Result<f64> {
        self.given(arguments)?.or(self.otherwise).ok_or_else(|| arguments.missing(&self.parameter))
    }
}
