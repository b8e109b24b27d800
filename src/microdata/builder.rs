//! Record batches to [`Microdata`].

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use rayon::prelude::*;

use super::{ColumnEncoder, Encoded, HashKey, IdentifierBuilder, Ledger, LedgerBuilder, Microdata};
use crate::error::{Error, Result, thousands};

/// Metadata key of a column that gives the order of its categories, as a JSON array of texts.
pub const ORDER_KEY: &str = "anonymize.order";

/// Where the roles stand in the batches: the identifier first, then the quasi-identifiers, then the sensitive attribute.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Identifier column.
    pub identifier: FieldRef,
    /// Quasi-identifier columns.
    pub quasi: Vec<FieldRef>,
    /// Sensitive column.
    pub sensitive: FieldRef,
}

impl Layout {
    /// Reads the layout off a schema whose columns stand in that order.
    ///
    /// # Errors
    /// When there are fewer than three columns.
    pub fn try_from_schema(schema: &SchemaRef) -> Result<Self> {
        match schema.fields().as_ref() {
            [identifier, quasi @ .., sensitive] if !quasi.is_empty() => {
                Ok(Self { identifier: identifier.clone(), quasi: quasi.to_vec(), sensitive: sensitive.clone() })
            }
            _ => Err(Error::internal("microdata needs an identifier, quasi-identifiers and a sensitive attribute")),
        }
    }
}

/// Collects batches of microdata, and of earlier private releases, as codes.
pub struct MicrodataBuilder {
    layout: Layout,
    rows: usize,
    identifiers: IdentifierBuilder,
    quasi: Vec<ColumnEncoder>,
    sensitive: ColumnEncoder,
    ledger: LedgerBuilder,
}

impl MicrodataBuilder {
    /// A builder for batches of the given layout.
    ///
    /// # Errors
    /// When a column's type cannot be grouped by.
    pub fn try_new(layout: Layout) -> Result<Self> {
        let encoder = |field: &FieldRef| ColumnEncoder::try_new(FieldRef::clone(field));
        Ok(Self {
            rows: 0,
            identifiers: IdentifierBuilder::new(layout.identifier.data_type().clone()),
            quasi: layout.quasi.iter().map(encoder).collect::<Result<_>>()?,
            sensitive: encoder(&layout.sensitive)?,
            ledger: LedgerBuilder::new(layout.identifier.data_type().clone()),
            layout,
        })
    }

    /// Appends rows of microdata, columns in the order of the layout.
    ///
    /// # Errors
    /// When there are too many rows.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let [identifier, quasi @ .., sensitive] = batch.columns() else {
            return Err(Error::internal("a batch without columns"));
        };
        self.identifiers.append(identifier)?;
        for (encoder, column) in self.quasi.iter_mut().zip(quasi) {
            encoder.append(column)?;
        }
        self.sensitive.append(sensitive)?;
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Appends rows of earlier private releases: identifier and signature.
    ///
    /// # Errors
    /// When a published row has no signature.
    pub fn append_previous(&mut self, batch: &RecordBatch) -> Result<()> {
        self.ledger.append(batch.column(0), batch.column(1), &mut self.sensitive)
    }

    /// Rows of microdata so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        let quasi: usize = self.quasi.iter().map(ColumnEncoder::size).sum();
        self.identifiers.size() + quasi + self.sensitive.size() + self.ledger.size()
    }

    /// Sorts domains, orders the rows by the keyed hash of their identifiers and checks what every method needs.
    ///
    /// # Errors
    /// NULL or repeated identifiers, NULL sensitive values, an incomplete order of categories, a contradictory ledger.
    pub fn finish(self, key: HashKey) -> Result<(Microdata, Ledger)> {
        let identifiers = self.identifiers.finish(key)?;
        let name = self.layout.identifier.name();
        if identifiers.nulls() > 0 {
            return Err(Error::refused(format!(
                "{} of {} rows have a NULL in the identifier column {name}; every row needs an identifier",
                thousands(identifiers.nulls()),
                thousands(self.rows)
            )));
        }
        let repeated = identifiers.repeated()?;
        if repeated > 0 {
            return Err(Error::refused(format!(
                "{} of {} rows repeat an identifier of column {name}; a release has one row per identifier: \
                 aggregate or deduplicate the input first",
                thousands(repeated),
                thousands(self.rows)
            )));
        }
        let sensitive = self.sensitive.finish(given_order(&self.layout.sensitive)?.as_deref())?;
        let ledger = self.ledger.finish(&sensitive.ranks, key, &identifiers)?;
        let people = identifiers.into_people();
        let sensitive_codes: Vec<u32> = people.arrival.iter().map(|&place| sensitive.codes[place as usize]).collect();
        let sensitive = sensitive.attribute;
        if sensitive.domain.has_null() && sensitive_codes.contains(&0) {
            return Err(Error::refused(format!(
                "{} of {} rows have a NULL in the sensitive column {}; drop them or give NULL a value of its own, \
                 for example coalesce({}, 'unknown')",
                thousands(sensitive_codes.iter().filter(|&&code| code == 0).count()),
                thousands(self.rows),
                sensitive.field.name(),
                sensitive.field.name()
            )));
        }
        let encoded: Vec<Encoded> = self
            .quasi
            .into_par_iter()
            .zip(&self.layout.quasi)
            .map(|(encoder, field)| encoder.finish(given_order(field)?.as_deref()))
            .collect::<Result<_>>()?;
        let quasi_codes = row_after_row(&encoded, &people.arrival);
        let quasi = encoded.into_iter().map(|encoded| encoded.attribute).collect();
        Ok((Microdata { rows: self.rows, people, quasi, quasi_codes, sensitive, sensitive_codes }, ledger))
    }
}

/// The codes of all columns, row after row; row `i` is the one that arrived as number `arrival[i]`.
fn row_after_row(columns: &[Encoded], arrival: &[u32]) -> Vec<u32> {
    const ROWS: usize = 4096;
    let d = columns.len();
    let mut codes = vec![0; arrival.len() * d];
    codes.par_chunks_mut(ROWS * d).zip(arrival.par_chunks(ROWS)).for_each(|(codes, arrival)| {
        for (row, &place) in codes.chunks_exact_mut(d).zip(arrival) {
            for (code, column) in row.iter_mut().zip(columns) {
                *code = column.codes[place as usize];
            }
        }
    });
    codes
}

fn given_order(field: &FieldRef) -> Result<Option<Vec<String>>> {
    let Some(text) = field.metadata().get(ORDER_KEY) else { return Ok(None) };
    let order = serde_json::from_str(text).map_err(|_| {
        Error::refused(format!(
            "the metadata {ORDER_KEY} of column {} must be a JSON array of texts, such as '[\"low\", \"high\"]'",
            field.name()
        ))
    })?;
    Ok(Some(order))
}
