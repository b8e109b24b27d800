//! What the ledger holds: for each method, what its next release needs to know of this one.
//!
//! A method joins by saying which columns that are, which members of a release have an entry, and how an entry is made.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::methods::Method;
use crate::microdata::{LABEL, Layout, Ledger, PARTNERS, SEALS};
use crate::release::{Published, SIGNATURE, seals_type, signature_type};

/// Column of the ledger: who.
pub(crate) const IDENTIFIER: &str = "identifier";
/// Column of the ledger: the release that the entry is from.
pub(crate) const RELEASE: &str = "release";

/// Column of the ledger: the value that somebody has of a quasi-identifier, by its place from 0.
pub(super) fn original_column(j: usize) -> String {
    format!("original_{}", j + 1)
}

/// Column of the ledger: the one that was published in its place.
pub(super) fn published_column(j: usize) -> String {
    format!("published_{}", j + 1)
}

/// Why a publication of changing values cannot go on.
const UNLABELLED: &str = "this publication was made by a version whose ledger does not say whose value is whose (it has no column \
    signature_label), and whose releases can give people away to a reader who combines the members of groups; nothing that is \
    published beside them can take that back, so it is not continued. Look at what they tell with disclosure(..), and begin a \
    new publication under another LOCATION for people who are not in this one; whoever is in both is not protected from a \
    reader of both";

/// What a method remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Nothing: its releases do not know of each other.
    Nothing,
    /// For everybody ever published, the sensitive values of their group, which are the same in all releases.
    Signatures,
    /// For everybody ever published, the sensitive values of their most recent group, in the order of labels, and their own label,
    /// which is the same in all releases.
    LatestSignatures,
    /// For everybody and each of their quasi-identifiers, which value was drawn and published.
    Drawn,
    /// For everybody ever published, whose values they carry in which world; and seals of the values that travel.
    Worlds,
}

impl Memory {
    /// That of a method.
    pub(crate) fn of(method: &Method) -> Self {
        match method {
            Method::MInvariance(_) => Self::Signatures,
            Method::MDistinct(_) => Self::LatestSignatures,
            Method::Muco(_) => Self::Drawn,
            Method::Sequential(_) => Self::Worlds,
            Method::Mondrian(_)
            | Method::Anatomy(_)
            | Method::SequentialWorlds(_)
            | Method::SequentialRelease(_)
            | Method::NonSequential(_) => Self::Nothing,
        }
    }

    /// Whether it is of sensitive values of groups.
    fn is_signatures(self) -> bool {
        matches!(self, Self::Signatures | Self::LatestSignatures)
    }

    /// Columns of the ledger.
    ///
    /// # Errors
    /// When the layout lacks what is to be remembered, which planning should have refused.
    pub(crate) fn schema(self, layout: &Layout) -> Result<SchemaRef> {
        let nothing = || Error::internal("nothing to remember people by");
        let mut fields = Vec::new();
        if self != Self::Nothing {
            let id = layout.identifier.as_ref().ok_or_else(nothing)?;
            fields.push(Field::new(IDENTIFIER, id.data_type().clone(), false));
        }
        if self.is_signatures() {
            let sensitive = layout.sensitive.as_ref().ok_or_else(nothing)?;
            fields.push(Field::new(SIGNATURE, signature_type(sensitive.data_type()), false));
        }
        if self == Self::LatestSignatures {
            fields.push(Field::new(LABEL, DataType::Int32, false));
        }
        if let Some(id) = layout.identifier.as_ref().filter(|_| self == Self::Worlds) {
            fields.push(Field::new(PARTNERS, signature_type(id.data_type()), false));
            fields.push(Field::new(SEALS, seals_type(), false));
        }
        fields.push(Field::new(RELEASE, DataType::Int64, false));
        if self == Self::Drawn {
            for name in [original_column, published_column] {
                let column = |(j, quasi): (usize, &FieldRef)| Field::new(name(j), quasi.data_type().clone(), true);
                fields.extend(layout.quasi.iter().enumerate().map(column));
            }
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    /// # Errors
    /// When a ledger with these columns was made by a version that remembered less than is needed.
    pub(crate) fn check_ledger(self, columns: &Schema) -> Result<()> {
        if self == Self::LatestSignatures && columns.index_of(LABEL).is_err() {
            return Err(Error::refused(UNLABELLED));
        }
        Ok(())
    }

    /// Those columns that the next release needs, in the order in which they are read
    /// ([`append_previous`](crate::microdata::MicrodataBuilder::append_previous)).
    ///
    /// # Errors
    /// As for [`schema`](Self::schema).
    pub(crate) fn read(self, layout: &Layout) -> Result<Vec<FieldRef>> {
        let schema = self.schema(layout)?;
        let needed = |field: &&FieldRef| self != Self::Signatures || field.name() != RELEASE;
        Ok(schema.fields().iter().filter(needed).cloned().collect())
    }

    /// The members of a release that are to be remembered: real rows of people who were not published before, or not with
    /// these values.
    pub(crate) fn members(self, published: &Published, ledger: &Ledger) -> Vec<u32> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Signatures => published.members(|row| ledger.signature_of(row as usize).is_none()),
            Self::LatestSignatures => published.members_who(|row, values| {
                let before = ledger.signature_of(row as usize).map(|number| &ledger.signatures()[number as usize]);
                before.is_none_or(|before| **before != *values)
            }),
            Self::Drawn => published.members(|row| ledger.drawn(row).is_none()),
            Self::Worlds => {
                let worlds = ledger.partners();
                published.members(|row| worlds.of(row).is_none() || !worlds.is_sealed(row))
            }
        }
    }

    /// The entries of some members.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub(crate) fn entries(
        self,
        published: &Published,
        members: &[u32],
        number: u64,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        if self != Self::Nothing {
            columns.push(published.identifiers(members)?);
        }
        if self.is_signatures() {
            columns.push(published.signatures(members)?);
        }
        if self == Self::LatestSignatures {
            columns.push(published.labels(members));
        }
        if self == Self::Worlds {
            columns.push(published.partners(members)?);
            columns.push(published.seals(members)?);
        }
        columns.push(Arc::new(Int64Array::from(vec![number as i64; members.len()])));
        if self == Self::Drawn {
            let quasi = 0..published.release().microdata.quasi.len();
            for values in [Published::originals, Published::exact] {
                for j in quasi.clone() {
                    columns.push(values(published, j, members)?);
                }
            }
        }
        Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a ledger without labels is of can have given people away, so nothing is published beside it.
    #[test]
    fn a_ledger_without_labels_is_not_continued() {
        let column = |name: &str| Field::new(name, DataType::Int64, false);
        let now = Schema::new([IDENTIFIER, SIGNATURE, LABEL, RELEASE].map(column).to_vec());
        let then = Schema::new([IDENTIFIER, SIGNATURE, RELEASE].map(column).to_vec());
        assert!(Memory::LatestSignatures.check_ledger(&now).is_ok());
        assert!(Memory::Signatures.check_ledger(&then).is_ok());
        let text = Memory::LatestSignatures.check_ledger(&then).unwrap_err().to_string();
        assert!(text.contains("does not say whose value is whose") && text.contains("new publication"), "{text}");
    }
}
