//! Quasi-identifiers that rows show, or have, one by one.

use datafusion::arrow::array::{ArrayRef, UInt32Array};

use super::Published;
use super::gather::{gather, gather_codes};
use crate::error::{Error, Result};
use crate::microdata::Attribute;
use crate::release::{Body, COUNTERFEIT};

/// Instead of a code: no value.
const NONE: u32 = u32::MAX;

impl Published {
    /// Returns the published values of some members' quasi-identifiers, column after column. They are the drawn ones
    /// where rows are perturbed, else their own. NULL for counterfeits.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub fn exact(&self, members: &[u32]) -> Result<Vec<ArrayRef>> {
        let d = self.release.microdata.quasi.len();
        let Body::Perturbed(perturbed) = &self.release.body else { return self.originals(members) };
        if perturbed.codes.rows() < self.release.groups.members.len() && d > 0 {
            return Err(Error::internal("a row for which nothing was drawn"));
        }
        let mut codes = Vec::new();
        perturbed.codes.append_to(&mut codes, members.iter().copied());
        self.columns(&codes)
    }

    /// Returns the values of the quasi-identifiers that some members have, column after column; NULL for counterfeits.
    /// Fails when Arrow fails to gather values.
    pub(crate) fn originals(&self, members: &[u32]) -> Result<Vec<ArrayRef>> {
        let d = self.release.microdata.quasi.len();
        let (rows, mut codes) = (self.rows_of(members), Vec::with_capacity(members.len() * d));
        if rows.contains(&COUNTERFEIT) {
            for row in rows {
                match row {
                    COUNTERFEIT => codes.resize(codes.len() + d, NONE),
                    row => codes.extend(self.release.microdata.quasi_of(row)),
                }
            }
        } else {
            self.release.microdata.quasi_codes.append_to(&mut codes, rows.into_iter());
        }
        self.columns(&codes)
    }

    /// Returns the columns of rows with these codes. A code `NONE` becomes NULL.
    fn columns(&self, codes: &[u32]) -> Result<Vec<ArrayRef>> {
        let quasi = &self.release.microdata.quasi;
        let has_none = codes.contains(&NONE);
        let column = |(j, attribute): (usize, &Attribute)| {
            let codes = codes.chunks_exact(quasi.len()).map(|row| row[j]);
            let (values, data_type) = (attribute.domain.values(), attribute.field.data_type());
            match has_none {
                true => gather(
                    values,
                    &codes.map(|code| (code != NONE).then_some(code)).collect::<UInt32Array>(),
                    data_type,
                ),
                false => gather_codes(values, codes, data_type),
            }
        };
        quasi.iter().enumerate().map(column).collect()
    }
}
