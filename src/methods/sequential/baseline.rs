//! The baseline: one release of all columns, of which every later one is a projection.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::ordering::Cycles;
use super::{Loss, Order, Worlds};
use crate::error::{Error, Result};
use crate::methods::mondrian::Cuts;
use crate::methods::{Monitor, assignment};
use crate::microdata::Microdata;
use crate::release::{Groups, Release};

/// One release in which every row covers the people of the `l - 1` rows before it in its cycle.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NonSequential {
    /// People that every row covers, all with different sensitive values.
    pub l: usize,
    /// The loss that the order of rows minimizes.
    #[serde(default)]
    pub loss: Loss,
    /// How rows are put into cycles.
    #[serde(default)]
    pub order: Order,
    /// How the table is cut into buckets.
    #[serde(default)]
    pub cuts: Cuts,
}

impl NonSequential {
    fn worlds(&self) -> Worlds {
        Worlds { l: self.l, loss: self.loss, order: self.order, cuts: self.cuts }
    }

    /// Bytes needed beside the microdata: those of worlds, and the published values.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        self.worlds().working_bytes(rows, quasi) + rows * 8 * quasi
    }

    /// Anonymizes a table.
    ///
    /// # Errors
    /// [`Error::Refused`] when the most frequent sensitive value makes up more than `1/l` of the rows.
    pub fn anonymize(&self, microdata: Microdata, monitor: &Monitor, rng: &mut impl Rng) -> Result<Release> {
        let sensitive = microdata.sensitive()?;
        if microdata.rows == 0 {
            return Ok(Release { groups: Groups { starts: vec![0], ..Groups::default() }, microdata, withheld: 0 });
        }
        let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
        let most = assignment::by_value(&mut rows, &microdata.sensitive_codes).iter().map(|rows| rows.len()).max();
        assignment::check_eligible("rows", microdata.rows, most.unwrap_or(0), self.l, sensitive.field.name())?;
        drop(rows);
        let cycles = Cycles::make(&microdata, &self.worlds(), rng.random(), monitor)?;
        let boxes = monitor.phase("covering", || Ok(cover(&microdata, &cycles, self.l)))?;
        monitor.phase("check", || check(&microdata, &cycles, &boxes, self.l))?;
        let members = cycles.rows;
        let sensitive = members.iter().map(|&row| microdata.sensitive_codes[row as usize]).collect();
        let starts = (0..=members.len() as u32).collect();
        let groups = Groups { starts, members, sensitive, intervals: boxes, ..Groups::default() };
        Ok(Release { microdata, groups, withheld: 0 })
    }
}

/// Published values of the rows of the cycles, one after the other.
pub(super) fn cover(microdata: &Microdata, cycles: &Cycles, l: usize) -> Vec<[u32; 2]> {
    let mut boxes = Vec::with_capacity(microdata.quasi_codes.len());
    for bucket in cycles.iter() {
        let n = bucket.len();
        for h in 0..n {
            for (j, attribute) in microdata.quasi.iter().enumerate() {
                let codes = || (0..l).map(|back| microdata.quasi_of(bucket[(h + n - back) % n])[j]);
                let (lo, hi) = codes().fold((u32::MAX, 0), |(lo, hi), code| (lo.min(code), hi.max(code)));
                boxes.push(attribute.closure([lo, hi]));
            }
        }
    }
    boxes
}

/// Everybody is covered by `l` rows with different sensitive values, their own among them; and shifting people along the cycles deals the
/// rows anew, so that each of the `l` is as good as the others.
fn check(microdata: &Microdata, cycles: &Cycles, boxes: &[[u32; 2]], l: usize) -> Result<()> {
    let d = microdata.quasi.len();
    let mut seen = vec![false; microdata.rows];
    let mut first = 0;
    let mut right = boxes.len() == microdata.rows * d && cycles.rows.len() == microdata.rows;
    for bucket in cycles.iter() {
        let n = bucket.len();
        right &= n >= l;
        for (h, &person) in bucket.iter().enumerate() {
            right &= !std::mem::replace(&mut seen[person as usize], true);
            let values = |ahead: usize| microdata.sensitive_codes[bucket[(h + ahead) % n] as usize];
            right &= (1..l).all(|a| (0..a).all(|b| values(a) != values(b)));
            right &= (0..l).all(|ahead| {
                let boxes = &boxes[(first + (h + ahead) % n) * d..][..d];
                boxes.iter().zip(microdata.quasi_of(person)).all(|([lo, hi], code)| lo <= code && code <= hi)
            });
        }
        first += n;
    }
    match right {
        true => Ok(()),
        false => Err(Error::internal("the release failed its own check; nothing was published")),
    }
}
