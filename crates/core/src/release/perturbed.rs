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
    /// Rows that are published as an earlier release did, or as it has dealt them. They are the last members.
    pub repeated: usize,
    /// Place of each member in the order of its group, of dealt rows; empty of others.
    pub places: Vec<u32>,
    /// Of these, for each quasi-identifier the place of whom they show, member after member.
    pub shown: Vec<u32>,
    /// Members who have left and are there for the sake of others: counterfeits, of which nobody may know which they are.
    pub ghosts: usize,
}

impl Perturbed {
    /// Appends the members of another release.
    pub fn append(&mut self, other: Self) {
        self.codes.append(other.codes);
        self.mixed += other.mixed;
        self.unchangeable += other.unchangeable;
        self.unchanged += other.unchanged;
        self.repeated += other.repeated;
        self.places.extend(other.places);
        self.shown.extend(other.shown);
        self.ghosts += other.ghosts;
    }
}
