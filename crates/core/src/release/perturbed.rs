//! Rows whose quasi-identifiers were replaced at random.

use crate::microdata::RowCodes;

/// Published values of the members of a release, and what was done to them.
#[derive(Debug, Default)]
pub struct Perturbed {
    /// Published codes of the quasi-identifiers, member after member; empty where values are not perturbed.
    pub codes: RowCodes,
    /// Groups whose tables were mixed so that no row comes out as it was.
    pub mixed: usize,
    /// Groups whose rows agree on all quasi-identifiers, so that nothing can change.
    pub unchangeable: usize,
    /// Rows that came out as they were: the rows of those, and some of groups in which only one quasi-identifier differs.
    pub unchanged: usize,
}

impl Perturbed {
    /// Appends the members of another release.
    pub fn append(&mut self, other: Self) {
        self.codes.append(other.codes);
        self.mixed += other.mixed;
        self.unchangeable += other.unchangeable;
        self.unchanged += other.unchanged;
    }
}
