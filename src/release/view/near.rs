//! What rows that leave together tell of their groups, side by side.
//!
//! Rows leave in random order, so that every look at a group goes somewhere else in the memory, and costs more than all that is
//! made of what is there. So groups are looked at once for all columns.

use crate::microdata::append_rows;

/// What is published of a group beside intervals and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Published number, 1 to the number of groups.
    pub number: u32,
    /// Number of members, counterfeits included.
    pub size: u32,
    /// Number of counterfeits.
    pub counterfeits: u32,
}

/// The groups of some rows.
pub(super) struct Near {
    /// Of each row.
    pub groups: Vec<u32>,
    /// Of each row's group.
    pub facts: Vec<Facts>,
    /// `d` of each row's group, one after the other.
    intervals: Vec<[u32; 2]>,
    d: usize,
}

impl Near {
    /// Looks at the groups of rows. Groups have `d` intervals each, or none that are wanted, and `d` is 0.
    pub(super) fn new(groups: Vec<u32>, facts: &[Facts], intervals: &[[u32; 2]], d: usize) -> Self {
        let facts = groups.iter().map(|&group| facts[group as usize]).collect();
        let mut near = Vec::with_capacity(groups.len() * d);
        append_rows(intervals, d, groups.iter().copied(), &mut near);
        Self { groups, facts, intervals: near, d }
    }

    /// The interval of a quasi-identifier in each row's group.
    pub(super) fn intervals(&self, j: usize) -> impl ExactSizeIterator<Item = [u32; 2]> + '_ {
        self.intervals.chunks_exact(self.d.max(1)).map(move |intervals| intervals[j])
    }
}
