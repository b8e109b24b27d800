//! Rows whose quasi-identifiers were replaced at random.

/// Published values of the members of a release, and what was done to them.
#[derive(Debug, Default)]
pub struct Perturbed {
    /// Published codes of the quasi-identifiers, member after member; empty where values are not perturbed.
    pub codes: Vec<u32>,
    /// Rows that came out unchanged and got another value.
    pub randomized: usize,
    /// Groups whose rows agree on all quasi-identifiers, so that nothing can change.
    pub unchangeable: usize,
    /// The rows of those.
    pub unchanged: usize,
    /// Rows that are published as an earlier release did. They are the last members, as if they were one group.
    pub repeated: usize,
}

impl Perturbed {
    /// Appends the members of another release.
    pub(crate) fn append(&mut self, other: Self) {
        self.codes.extend(other.codes);
        self.randomized += other.randomized;
        self.unchangeable += other.unchangeable;
        self.unchanged += other.unchanged;
        self.repeated += other.repeated;
    }
}
