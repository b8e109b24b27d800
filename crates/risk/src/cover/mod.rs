//! Join of points and boxes: the groups that cover each person.
//!
//! Readers who know somebody's quasi-identifiers know a *point*; a released row shows a *box*. `walk` goes down a tree of the points;
//! `candidates` collects what covers each of them, `counts` only how much that is.

mod candidates;
mod counts;
mod walk;

pub(super) use candidates::{Candidates, join};
pub(super) use counts::Counts;

/// Boxes of a release in codes, and the sensitive values of their groups.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    /// Number of attributes.
    pub quasi: usize,
    /// Ends of each box and attribute, both included: box `b`, attribute `j` at `b * quasi + j`. The greater end may come
    /// first, in which case nothing is covered.
    pub ends: Vec<[u32; 2]>,
    /// Group of each box.
    pub group: Vec<u32>,
    /// Rows of the release that show the box.
    pub rows: Vec<u32>,
    /// First entry of each group in `shares`, and one more.
    pub starts: Vec<u32>,
    /// Sensitive values of each group, ascending, and which share of its rows has them.
    pub shares: Vec<(u32, f64)>,
    /// Number of rows with each of the values.
    pub counted: Vec<u32>,
    /// The values alone, which take less room, and each group's share if equal. Shares are equal if all values of the group have the same.
    pub packed: (Vec<u32>, Vec<Option<f64>>),
}

impl Boxes {
    /// Returns the sensitive values of a group and their shares.
    pub(super) fn group(&self, group: u32) -> &[(u32, f64)] {
        &self.shares[self.range(group)]
    }

    /// Returns the sensitive values of a group and their numbers of rows.
    pub(super) fn counts(&self, group: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.range(group);
        self.shares[range.clone()].iter().map(|(value, _)| *value).zip(self.counted[range].iter().copied())
    }

    fn range(&self, group: u32) -> std::ops::Range<usize> {
        self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize
    }

    /// Packs the boxes, once all of them are added.
    pub(super) fn pack(&mut self) {
        let values = self.shares.iter().map(|(value, _)| *value).collect();
        let even = |group: u32| {
            let shares = self.group(group);
            let (_, first) = *shares.first()?;
            shares.iter().all(|(_, share)| *share == first).then_some(first)
        };
        let even = (0..self.starts.len() as u32 - 1).map(even).collect();
        self.packed = (values, even);
    }

    /// Calls `f` with the sensitive values of a box and the rows that have them.
    #[inline]
    fn for_each(&self, place: u32, mut f: impl FnMut(u32, f64)) {
        let (group, rows) = (self.group[place as usize], f64::from(self.rows[place as usize]));
        match self.packed.1[group as usize] {
            Some(share) => self.packed.0[self.range(group)].iter().for_each(|&value| f(value, share * rows)),
            None => self.group(group).iter().for_each(|&(value, share)| f(value, share * rows)),
        }
    }
}
