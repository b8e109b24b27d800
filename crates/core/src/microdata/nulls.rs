//! Rows without a sensitive value: they are refused, unless an earlier release of the period says which value the person has.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::quote_identifier;

use super::{Codes, Microdata, Updates, parts_of};
use crate::error::{Error, Result, thousands};

impl Microdata {
    /// Takes NULL out of the domain of the sensitive attribute, if no row has it. Returns true if it was there, so that all codes are one less.
    ///
    /// # Errors
    /// When a row has it still.
    pub fn drop_null_value(&mut self) -> Result<bool> {
        let Some(sensitive) = self.sensitive.as_mut().filter(|sensitive| sensitive.domain.has_null()) else {
            return Ok(false);
        };
        let nulls = self.sensitive_codes.iter().filter(|code| *code == 0).count();
        refuse_nulls(&sensitive.field, nulls, self.rows)?;
        sensitive.domain = sensitive.domain.without_null()?;
        self.sensitive_codes = self.sensitive_codes.iter().map(|code| code - 1).collect::<Codes>();
        if let Some(updates) = &self.updates {
            let pairs = updates.pairs.iter().map(|(from, to)| (from - 1, to - 1)).collect();
            self.updates = Some(Arc::new(Updates { pairs, probabilities: updates.probabilities.clone() }));
        }
        Ok(true)
    }
}

/// Fails when there are rows without a sensitive value.
pub(super) fn refuse_nulls(field: &FieldRef, nulls: usize, rows: usize) -> Result<()> {
    if nulls == 0 {
        return Ok(());
    }
    let name = field.name();
    // Of several columns each can be the one without a value.
    let mut parts = parts_of(field)?;
    if parts.is_empty() {
        parts.push(FieldRef::clone(field));
    }
    let there: Vec<_> = parts.iter().map(|part| format!("{} IS NOT NULL", quote_identifier(part.name()))).collect();
    let own = parts.last().map(|part| own_value(part)).unwrap_or_default();
    Err(Error::refused(format!(
        "{} of {} rows have a NULL in the sensitive column {name}; leave them out, WHERE {}, or give NULL a value of its own, {own}, which \
         is their value for all releases: it cannot be filled in later",
        thousands(nulls),
        thousands(rows),
        there.join(" AND "),
    )))
}

/// Returns an expression that has a value of its own in the place of NULL.
fn own_value(field: &Field) -> String {
    let name = quote_identifier(field.name());
    match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => format!("coalesce({name}, 'unknown') AS {name}"),
        number if number.is_numeric() => format!("coalesce({name}, -1) AS {name} (if nobody has -1)"),
        _ => format!("coalesce(CAST({name} AS VARCHAR), 'unknown') AS {name}"),
    }
}
