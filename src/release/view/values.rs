//! Quasi-identifiers that rows show, or have, one by one.

use datafusion::arrow::array::{ArrayRef, UInt32Array};

use super::{Published, gather};
use crate::error::{Error, Result};
use crate::microdata::Attribute;
use crate::release::{Body, COUNTERFEIT};

impl Published {
    /// Values of the quasi-identifiers that some members publish one by one, column after column: the drawn ones where rows are perturbed, else
    /// their own. NULL for counterfeits.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub(crate) fn exact(&self, members: &[u32]) -> Result<Vec<ArrayRef>> {
        let d = self.release.microdata.quasi.len();
        match &self.release.body {
            Body::Perturbed(perturbed) => self.values(members, |member| {
                let codes = perturbed.codes.get(member as usize * d..).and_then(|codes| codes.get(..d));
                codes.map(|codes| Some(codes.iter().copied())).ok_or_else(|| Error::internal("a row for which nothing was drawn"))
            }),
            _ => self.originals(members),
        }
    }

    /// Values of the quasi-identifiers that some members have, column after column; NULL for counterfeits.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    pub(crate) fn originals(&self, members: &[u32]) -> Result<Vec<ArrayRef>> {
        self.values(members, |member| match self.release.groups.members[member as usize] {
            COUNTERFEIT => Ok(None),
            row => Ok(Some(self.release.microdata.quasi_of(row))),
        })
    }

    /// The columns of some members, who have these codes or none. They are looked at once for all columns: see [`Near`].
    fn values<C: IntoIterator<Item = u32>>(
        &self,
        members: &[u32],
        codes_of: impl Fn(u32) -> Result<Option<C>>,
    ) -> Result<Vec<ArrayRef>> {
        const NONE: u32 = u32::MAX;
        let quasi = &self.release.microdata.quasi;
        let mut codes = Vec::with_capacity(members.len() * quasi.len());
        for &member in members {
            match codes_of(member)? {
                Some(of_member) => codes.extend(of_member),
                None => codes.resize(codes.len() + quasi.len(), NONE),
            }
        }
        let has_none = codes.contains(&NONE);
        let column = |(j, attribute): (usize, &Attribute)| {
            let codes = codes.iter().copied().skip(j).step_by(quasi.len());
            let codes: UInt32Array = match has_none {
                true => codes.map(|code| (code != NONE).then_some(code)).collect(),
                false => UInt32Array::from_iter_values(codes),
            };
            gather(attribute.domain.values(), &codes, attribute.field.data_type())
        };
        quasi.iter().enumerate().map(column).collect()
    }
}
