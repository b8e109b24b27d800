//! Facts about the groups of rows that leave together, side by side.
//!
//! Rows leave in random order, so that every look at a group goes somewhere else in the memory, and costs more than all that is
//! made of what is there. So groups are looked at once for all columns.

use std::ops::Range;

use crate::release::{Groups, Intervals};

/// Facts that are published of a group beside intervals and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Its first member.
    pub start: u32,
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
    /// Of each row's group, if there are any.
    pub facts: Vec<Facts>,
    /// Both ends of each of the `d` intervals of each row's group, in turn.
    ends: Vec<u32>,
    d: usize,
}

impl Near {
    /// Looks at the groups of rows. Groups have `d` intervals each, and facts, if any are wanted.
    pub(super) fn new(groups: Vec<u32>, facts: &[Facts], intervals: Option<&Intervals>, d: usize) -> Self {
        let facts = match facts.is_empty() {
            true => Vec::new(),
            false => groups.iter().map(|&group| facts[group as usize]).collect(),
        };
        let mut ends = Vec::new();
        if let Some(intervals) = intervals {
            ends.reserve_exact(groups.len() * d * 2);
            intervals.append_to(&mut ends, groups.iter().copied());
        }
        Self { groups, facts, ends, d }
    }

    /// Returns the ranges of the members of each row's group.
    pub(super) fn parts(&self, groups: &Groups) -> Vec<Range<usize>> {
        match self.facts.is_empty() {
            true => self.groups.iter().map(|&group| groups.range(group as usize)).collect(),
            false => self.facts.iter().map(|of| of.start as usize..(of.start + of.size) as usize).collect(),
        }
    }

    /// Returns the interval of a quasi-identifier in each row's group.
    pub(super) fn intervals(&self, j: usize) -> impl ExactSizeIterator<Item = [u32; 2]> + '_ {
        self.ends.chunks_exact(2 * self.d.max(1)).map(move |ends| [ends[2 * j], ends[2 * j + 1]])
    }
}
