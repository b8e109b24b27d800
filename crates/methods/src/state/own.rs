//! The value that everybody was published with, where it must stay: as it is in private releases that a call is passed, sealed in ledgers.
//!
//! A value that changes inside of its signature would be published without a trace of it in the signature, and of a group of one person and counterfeits
//! the value that changes is the person's. A seal is a hash of the value, with the person's own salt ([`Commitments`]): by it a change is noticed, equal
//! values do not look equal, and it is no secret to who has the ledger and tries the values of the signature.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use rayon::prelude::*;

use super::entries::Entries;
use crate::error::{Error, Result, thousands};
use crate::microdata::{Codes, ColumnEncoder, Commitments, Encoded, EncodedColumns, Identifiers};
use crate::release::Published;

/// Column of a ledger: the seal of the sensitive value that somebody is published with.
pub const SEAL: &str = "seal";

/// Rows of a piece, which is looked at on one core.
const PIECE: usize = 1 << 13;

/// The own values of people, entry by entry.
#[derive(Debug, Default)]
pub(super) enum OwnValues {
    /// No entries, or entries that do not say.
    #[default]
    Unknown,
    Values(Codes),
    /// Seals of a ledger.
    Seals(Vec<i64>),
}

impl OwnValues {
    /// Appends those of some entries: seals, or values, which join the domain.
    /// Fails when some are NULL.
    pub(super) fn append(&mut self, own: &ArrayRef, sealed: bool, sensitive: &mut ColumnEncoder) -> Result<()> {
        if own.null_count() > 0 {
            return Err(Error::refused(format!(
                "`previous` has {} rows with an identifier but with a NULL in the sensitive column; pass the private releases (private => true) \
                 unchanged",
                thousands(own.null_count())
            )));
        }
        if matches!(self, Self::Unknown) {
            *self = if sealed { Self::Seals(Vec::new()) } else { Self::Values(Codes::default()) };
        }
        match self {
            Self::Values(codes) if !sealed => {
                let mut more = Vec::new();
                sensitive.encode(own, &mut more)?;
                codes.extend(&more);
            }
            Self::Seals(seals) if sealed => {
                let more = cast(own, &DataType::Int64)?;
                seals.extend_from_slice(more.as_primitive::<Int64Type>().values());
            }
            _ => return Err(Error::internal("values that are sealed and values that are not")),
        }
        Ok(())
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Values(codes) => codes.size(),
            Self::Seals(seals) => seals.capacity() * size_of::<i64>(),
        }
    }

    /// Returns true if some of a person's entries differ in value from the others.
    pub(super) fn differ(&self, entries: &[u32]) -> bool {
        entries.windows(2).any(|pair| match self {
            Self::Unknown => false,
            Self::Values(codes) => codes.at(pair[0]) != codes.at(pair[1]),
            Self::Seals(seals) => seals[pair[0] as usize] != seals[pair[1] as usize],
        })
    }

    /// Returns the provisional code of an entry's value, if values are known.
    pub(super) fn provisional(&self, entry: u32) -> Option<u32> {
        match self {
            Self::Values(codes) => Some(codes.at(entry)),
            Self::Unknown | Self::Seals(_) => None,
        }
    }

    /// Counts the entries whose value is not one of their signature; of sealed ones, none. `ranks` are those of provisional codes.
    pub(super) fn strays<'a>(&self, ranks: &[u32], signature_of: impl Fn(u32) -> &'a [u32] + Sync) -> usize {
        let Self::Values(codes) = self else { return 0 };
        let is_stray = |entry: &u32| signature_of(*entry).binary_search(&ranks[codes.at(*entry) as usize]).is_err();
        (0..codes.len() as u32).into_par_iter().with_min_len(PIECE).filter(is_stray).count()
    }

    /// Returns for every row of microdata true if its person was published with another value; nothing if that is so of none.
    /// Fails when Arrow cannot show values as text.
    pub(super) fn changed(&self, entries: &Entries, columns: &EncodedColumns<'_>) -> Result<Vec<bool>> {
        let (Some(people), Some(sensitive)) = (columns.identifiers, columns.sensitive) else { return Ok(Vec::new()) };
        let seal = match self {
            Self::Unknown => return Ok(Vec::new()),
            Self::Values(_) => None,
            Self::Seals(_) => Some(Commitments::of(&sensitive.attribute, true)?),
        };
        let arrivals: Vec<u32> = people.par_order().collect();
        let of_piece = |(piece, arrivals): (usize, &[u32])| {
            let first = piece * PIECE;
            self.changed_in(first, arrivals, entries, (people, sensitive), seal.as_ref())
        };
        let pieces = arrivals.par_chunks(PIECE).enumerate().map(of_piece).collect::<Result<Vec<_>>>()?;
        match pieces.iter().flatten().any(|changed| *changed) {
            true => Ok(pieces.concat()),
            false => Ok(Vec::new()),
        }
    }

    /// Finds changes of the rows from `first` on, which arrived at these places.
    fn changed_in(
        &self,
        first: usize,
        arrivals: &[u32],
        entries: &Entries,
        (people, sensitive): (&Identifiers, &Encoded),
        seal: Option<&Commitments>,
    ) -> Result<Vec<bool>> {
        let salts = match seal {
            Some(_) => people.salts(arrivals)?,
            None => Vec::new(),
        };
        let is_changed = |(place, &arrival): (usize, &u32)| {
            let Some(entry) = entries.of(first + place) else { return false };
            let now = sensitive.codes.at(arrival);
            match (self, seal) {
                (Self::Values(codes), _) => sensitive.ranks[codes.at(entry) as usize] != now,
                (Self::Seals(seals), Some(seal)) => seal.to(salts[place], now) != seals[entry as usize],
                _ => false,
            }
        };
        Ok(arrivals.iter().enumerate().map(is_changed).collect())
    }
}

/// Returns the seals of some members, for a ledger.
/// Fails when there is no sensitive attribute, and when Arrow cannot show its values as text.
pub(super) fn seals(published: &Published, members: &[u32]) -> Result<ArrayRef> {
    Ok(Arc::new(published.seals(members)?))
}
