//! Statements that a reader has prepared, and the values that are bound to them.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use pgwire::api::Type;
use pgwire::messages::extendedquery::Bind;

use super::allowed::{Allowed, LONGEST_TEXT};
use super::errors::Failure;
use super::frames::{Described, Given};

/// Bytes of a parameter that is a list.
const LONGEST_LIST: usize = 64 << 10;

#[derive(Debug, Clone)]
pub(super) struct Prepared(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub fingerprint: String,
    pub allowed: Allowed,
    pub sql: String,
    /// Of a question.
    pub described: Option<Described>,
}

impl Inner {
    /// Returns the number of parameters.
    pub(super) fn takes(&self) -> usize {
        self.described.as_ref().map_or(0, |described| described.parameters.len())
    }
}

/// Returns what is bound to a statement, as processes take it.
pub(super) fn given(values: &[Option<Bytes>], formats: Vec<i16>, columns: Vec<i16>, types: &[Option<Type>]) -> Given {
    Given {
        types: types.iter().map(|of| of.as_ref().map(Type::oid)).collect(),
        formats,
        values: values.iter().map(|value| value.as_ref().map(|value| BASE64_STANDARD.encode(value))).collect(),
        columns,
    }
}

/// Refuses parameters that are longer than a text in a statement may be: the engine repeats them as it repeats texts.
/// Fails when one is too long.
pub(super) fn refuse_long(bind: &Bind, types: &[Type]) -> Result<(), Failure> {
    for (place, value) in bind.parameters.iter().enumerate() {
        // PostgreSQL's names of types of lists.
        let is_list = types.get(place).is_some_and(|of| of.name().starts_with('_'));
        let most = if is_list { LONGEST_LIST } else { LONGEST_TEXT };
        if value.as_ref().is_some_and(|value| value.len() > most) {
            return Err(Failure::new("54001", format!("parameter ${} has more than {most} bytes", place + 1))
                .hint("Compare with shorter texts"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_parameters_are_refused() {
        let of =
            |length: usize| Bind::new(None, None, Vec::new(), vec![None, Some(vec![b'x'; length].into())], Vec::new());
        let texts = [Type::INT4, Type::TEXT];
        assert_eq!(refuse_long(&of(LONGEST_TEXT), &texts), Ok(()));
        let failure = refuse_long(&of(LONGEST_TEXT + 1), &texts).expect_err("long");
        assert_eq!(failure.code(), "54001");
        let lists = [Type::INT4, Type::TEXT_ARRAY];
        assert_eq!(refuse_long(&of(LONGEST_LIST), &lists), Ok(()));
        assert!(refuse_long(&of(LONGEST_LIST + 1), &lists).is_err());
    }
}
