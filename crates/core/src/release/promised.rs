//! Lists the bounds of methods in the terms that audits check.

/// Names a bound that holds for every group of a release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Promise {
    /// No sensitive value occurs twice, and at least `m` do.
    Unique {
        /// Least number of values.
        m: usize,
    },
    /// At least `k` rows.
    Anonymous {
        /// Least number of rows.
        k: usize,
    },
    /// At least `l` different sensitive values.
    Distinct {
        /// Least number of values.
        l: usize,
    },
    /// The most frequent sensitive value makes up at most `1/l`.
    Frequency {
        /// Inverse of the greatest share.
        l: usize,
    },
    /// The entropy of the sensitive values is at least `ln l`.
    Entropy {
        /// Equally frequent values with that entropy.
        l: usize,
    },
    /// The sensitive values are distributed as in the whole, or its part by `within`. The earth mover's distance is at
    /// most `t`: over ranks for numbers and times, over equal distances for categories.
    Close {
        /// Greatest distance, 0 to 1.
        t: f64,
    },
}

/// Names a rule for people's signatures from release to release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lineage {
    /// m-invariance: everybody has one signature for ever.
    Invariant,
    /// The same, and later people have signatures of the first release. Other signatures have a value that the first release has not.
    Drawn,
    /// m-Distinct: everybody has one label for ever, people of a group have different ones, and the value at every label of a
    /// group is one that the value at that label can have become, of the group that each of its people was in most recently.
    Distinct {
        /// True if missing pairs of the update relation are added; else it must be transitive.
        close: bool,
        /// True if no two values of a first group can become the same value.
        disjoint: bool,
    },
}
