//! Anatomy: exact quasi-identifiers beside the sensitive values of their group.
//!
//! # Guarantee
//! In every group no sensitive value makes up more than `1/l` of the rows, and a row tells its group but not which of the
//! group's values is its own (*l-diversity*, frequency form). Whoever knows that somebody is in the table finds the row, which
//! is what the method gives up; the sensitive value stays uncertain with probability at most `1/l`. For one release, and
//! two releases of overlapping data can contradict each other.
//!
//! # Method
//! X. Xiao and Y. Tao, *Anatomy: Simple and Effective Privacy Preservation*, VLDB 2006: groups of rows with different
//! sensitive values, drawn uniformly. Ours are those of m-invariance's assignment (`methods::assignment`) for `m = l`, which
//! takes care of the last rows by construction: `l` rows to a group, and a few more in the last groups, no value twice. Where
//! rows lie plays no part, as in the paper, so nothing can be read from who is together.
//!
//! # Cost
//! O(n log n).

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::{Monitor, assignment};
use crate::error::{Error, Result, thousands};
use crate::microdata::Microdata;
use crate::release::{Groups, Release};

#[cfg(test)]
mod tests;

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Anatomy {
    /// Least number of sensitive values in a group, at least 2.
    pub l: usize,
}

impl Anatomy {
    /// Bytes the method needs beside the microdata itself: for each row a place in the list of its value, a member, and, as
    /// nearly every row may have a value of its own, a count and its place among the counts.
    pub fn working_bytes(&self, rows: usize, _quasi: usize) -> usize {
        rows * 96
    }

    /// Anonymizes a table.
    ///
    /// # Errors
    /// [`Error::Refused`] when the most frequent sensitive value makes up more than `1/l` of the rows.
    pub fn anonymize(&self, microdata: Microdata, monitor: &Monitor, rng: &mut impl Rng) -> Result<Release> {
        microdata.sensitive()?;
        let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
        // Rows stand in the order of a keyed hash; within a value they stay so until they are shuffled.
        rows.sort_by_key(|&row| microdata.sensitive_codes[row as usize]);
        let same = |a: &u32, b: &u32| microdata.sensitive_codes[*a as usize] == microdata.sensitive_codes[*b as usize];
        let mut rows: Vec<&mut [u32]> = rows.chunk_by_mut(same).collect();
        self.check_eligible(&microdata, &rows)?;
        let groups = monitor.phase("assignment", || self.group(&microdata, &mut rows, rng))?;
        monitor.phase("check", || self.check(&microdata, &groups))?;
        Ok(Release { microdata, groups, withheld: 0 })
    }

    fn check_eligible(&self, microdata: &Microdata, rows: &[&mut [u32]]) -> Result<()> {
        if self.l == 0 {
            return Err(Error::refused("l must be at least 2"));
        }
        let most = rows.iter().map(|rows| rows.len()).max().unwrap_or(0);
        if most.saturating_mul(self.l) <= microdata.rows {
            return Ok(());
        }
        let name = microdata.sensitive()?.field.name();
        let instead = match microdata.rows / most {
            0 | 1 => String::new(),
            l => format!("; lower l (l = {l} would do) or add rows of other values"),
        };
        Err(Error::refused(format!(
            "the {} rows are not {}-eligible: the most frequent value of {name} makes up {:.2}% of them and at most \
             1/l = {:.2}% is allowed{instead}",
            thousands(microdata.rows),
            self.l,
            100.0 * most as f64 / microdata.rows as f64,
            100.0 / self.l as f64,
        )))
    }

    /// Groups of rows with different values; `rows` lists the rows of each value that occurs.
    fn group(&self, microdata: &Microdata, rows: &mut [&mut [u32]], rng: &mut impl Rng) -> Result<Groups> {
        let mut left: Vec<usize> = rows.iter().map(|rows| rows.len()).collect();
        let steps = assignment::steps(&left, self.l, rng)?;
        rows.iter_mut().for_each(|rows| rows.shuffle(rng));
        let mut groups = Groups { starts: vec![0], ..Groups::default() };
        groups.members.reserve_exact(microdata.rows);
        groups.sensitive.reserve_exact(microdata.rows);
        for step in steps {
            for _ in 0..step.rows {
                for &value in &step.signature {
                    let value = value as usize;
                    let next = left[value].checked_sub(1);
                    left[value] = next.ok_or_else(|| Error::internal("more rows assigned than there are"))?;
                    let row = rows[value][left[value]];
                    groups.members.push(row);
                    groups.sensitive.push(microdata.sensitive_codes[row as usize]);
                }
                groups.starts.push(groups.members.len() as u32);
            }
        }
        Ok(groups)
    }

    fn check(&self, microdata: &Microdata, groups: &Groups) -> Result<()> {
        let fail = |what: &str| {
            Err(Error::internal(format!("the release failed its own check ({what}); nothing was published")))
        };
        let mut seen = vec![false; microdata.rows];
        for (&row, &value) in groups.members.iter().zip(&groups.sensitive) {
            if std::mem::replace(&mut seen[row as usize], true) {
                return fail("a row in two places");
            }
            if microdata.sensitive_codes[row as usize] != value {
                return fail("a row with another's sensitive value");
            }
        }
        if seen.contains(&false) {
            return fail("a row missing");
        }
        for group in 0..groups.len() {
            let size = groups.range(group).len();
            if groups.histogram(group).iter().any(|&(_, count)| (count as usize).saturating_mul(self.l) > size) {
                return fail("a group that is not l-diverse");
            }
        }
        Ok(())
    }
}
